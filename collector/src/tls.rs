//! The cryptography of TLS, chosen once for the whole process.

/// Makes ring the process's cryptography. Building a TLS client before this call panics.
pub(crate) fn install_crypto() {
    // The only failure is that a provider is installed already, which is what this call is for.
    drop(rustls::crypto::ring::default_provider().install_default());
}
