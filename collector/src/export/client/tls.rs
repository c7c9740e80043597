//! TLS to a server whose certificate is named in the configuration.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

use super::{ClientError, failed};
use crate::config::destination::Connection;

/// Trusts the system's authorities, certificates signed by the named certificates, and the named certificates
/// themselves.
///
/// `openssl req -x509` makes a certificate that is its own issuer and may sign other certificates. The usual check
/// rejects such a certificate for a server. But the user has configured exactly these bytes, and the handshake proves
/// that the server has the matching key. So neither issuer nor host name is checked.
#[derive(Debug)]
struct Named {
    certificates: Vec<CertificateDer<'static>>,
    usual: Verifier,
}

/// A verifier for the certificates in `pem`.
///
/// # Errors
///
/// `pem` contains no certificate, or one that cannot be read.
pub(super) fn verifier(pem: &[u8]) -> Result<Arc<dyn ServerCertVerifier>, ClientError> {
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| ClientError(format!("certificate: {error}")))?;
    if certificates.is_empty() {
        return Err(ClientError("certificate: the file holds no certificate".to_owned()));
    }
    let usual = Verifier::new_with_extra_roots(certificates.iter().cloned(), provider())
        .map_err(|error| ClientError(format!("certificate: {error}")))?;
    Ok(Arc::new(Named { certificates, usual }))
}

/// TLS for `connection`, with a client certificate if there is one.
///
/// # Errors
/// A certificate or key cannot be read.
pub(in crate::export) fn client_config(
    connection: &Connection,
    protocols: &[&[u8]],
) -> Result<ClientConfig, ClientError> {
    let verifier: Arc<dyn ServerCertVerifier> = match &connection.certificate {
        Some(pem) => verifier(pem)?,
        None => Arc::new(Verifier::new(provider()).map_err(failed)?),
    };
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &connection.client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_slice_iter(certificate)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| ClientError(format!("client_certificate: {error}")))?;
            let key = PrivateKeyDer::from_pem_slice(key.0.as_bytes())
                .map_err(|error| ClientError(format!("client_key: {error}")))?;
            builder.with_client_auth_cert(chain, key).map_err(failed)?
        }
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let usual = self.usual.verify_server_cert(certificate, intermediates, name, ocsp, now);
        if usual.is_err() && self.certificates.iter().any(|named| named == certificate) {
            return Ok(ServerCertVerified::assertion());
        }
        usual
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}
