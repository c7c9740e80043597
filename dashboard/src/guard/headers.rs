//! Headers of every response, including errors.

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Allows only our own files. Scripts cannot write HTML from text, because the policy allows no Trusted Types policy.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const ALWAYS: [(HeaderName, &str); 9] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=()"),
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("hookspan-version"), env!("CARGO_PKG_VERSION")),
];

/// Adds missing headers. A route may set its own cache control (assets) and policy (downloads: `sandbox`).
pub(crate) fn put(headers: &mut HeaderMap) {
    for (name, value) in ALWAYS {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}
