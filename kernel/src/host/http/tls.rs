//! TLS configurations. Trust comes from the system, and reading it takes time, so only clients that
//! need it get it.

use std::sync::Arc;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use rustls::crypto::ring;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_platform_verifier::BuilderVerifierExt;

/// TLS for clients that never use it; trusting nobody costs no reading.
pub(super) fn without_roots() -> Result<ClientConfig, Error> {
    Ok(tls_builder()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

/// TLS as browsers on this system do it.
pub(super) fn with_system_roots() -> Result<ClientConfig, Error> {
    let mut tls = tls_builder()?
        .with_platform_verifier()
        .map_err(|cause| unusable(&cause))?
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

fn tls_builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, Error> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|cause| unusable(&cause))
}

pub(super) fn unusable(cause: &dyn std::error::Error) -> Error {
    Error::new(
        code::IO,
        format!(
            "TLS cannot be set up: {cause}. Install the system's CA certificates or name a file \
             with SSL_CERT_FILE."
        ),
    )
}
