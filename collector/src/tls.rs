//! The cryptography of TLS, chosen once for the whole process.

/// Makes ring the process's cryptography. Building a TLS client before this call panics.
pub(crate) fn install_crypto() {
    // It fails only if a provider is already installed, and then nothing needs to be done.
    drop(rustls::crypto::ring::default_provider().install_default());
}
