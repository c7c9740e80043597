//! Handles errors of the connection. They tell nothing about the batch, so no batch is lost because of them.

use std::error::Error as StdError;
use std::io::ErrorKind;

use rustls::AlertDescription as Alert;

use super::{Outcome, Refusal, Trouble, shorten};
use crate::export::cause::Cause;

/// Classifies an error of the connection. The delivery is tried again, or the destination is paused if only a person
/// can remove the cause.
#[must_use]
pub(in crate::export) fn from_transport(error: &(dyn StdError + 'static)) -> Outcome {
    let text = shorten(&chain(error));
    if let Some(outcome) = from_tls(error, &text) {
        return outcome;
    }
    let cause = from_io(error).unwrap_or_else(|| from_words(&text));
    let detail = match cause {
        Cause::NotHttp1 => format!("the port does not answer in HTTP/1.1: {text}"),
        Cause::NotHttp2 => format!("the port does not answer in HTTP/2: {text}"),
        _ => text,
    };
    Outcome::Retry { after: None, trouble: Trouble::new(cause, shorten(&detail)) }
}

fn from_tls(error: &(dyn StdError + 'static), text: &str) -> Option<Outcome> {
    let config = |cause, detail: String| Outcome::Permanent {
        class: Refusal::Config,
        trouble: Trouble::new(cause, detail),
    };
    let retry = |cause, detail: String| Outcome::Retry {
        after: None,
        trouble: Trouble::new(cause, detail),
    };
    let tls = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>())?;
    Some(match tls {
        rustls::Error::InvalidCertificate(reason) => {
            let reason = shorten(&format!("{reason:?}"));
            config(Cause::Certificate, format!("the server's certificate is not valid: {reason}"))
        }
        rustls::Error::AlertReceived(
            Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied,
        ) => config(Cause::ClientCertificate, format!("the server ends the TLS handshake: {text}")),
        rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_) => {
            retry(Cause::ClientCertificate, format!("the TLS handshake fails: {text}"))
        }
        rustls::Error::NoApplicationProtocol => {
            retry(Cause::NotHttp2, format!("the server does not offer HTTP/2 over TLS: {text}"))
        }
        rustls::Error::InvalidMessage(_) => {
            retry(Cause::NotTls, format!("the port does not answer in TLS: {text}"))
        }
        _ => return None,
    })
}

fn from_io(error: &(dyn StdError + 'static)) -> Option<Cause> {
    causes(error).filter_map(|cause| cause.downcast_ref::<std::io::Error>()).find_map(|io| {
        Some(match io.kind() {
            ErrorKind::ConnectionRefused => Cause::Refused,
            ErrorKind::TimedOut => Cause::Timeout,
            _ => return None,
        })
    })
}

/// The libraries do not expose the kinds of their errors, so the error text must be read. The result decides only which
/// advice is shown, and after how many attempts a destination is paused. It never decides whether a span is dropped.
fn from_words(text: &str) -> Cause {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&["dns error", "failed to lookup address"]) {
        Cause::Dns
    } else if says(&["timed out", "deadline has elapsed"]) {
        Cause::Timeout
    } else if says(&[
        "FRAME_SIZE_ERROR",
        "frame with invalid size",
        "not negotiated",
        "HTTP_1_1_REQUIRED",
    ]) || (says(&["http2 error"]) && says(&["PROTOCOL_ERROR", "protocol error detected"]))
    {
        Cause::NotHttp2
    } else if says(&["invalid HTTP", "invalid HTTP version", "unexpected message from connection"])
    {
        Cause::NotHttp1
    } else {
        Cause::Broken
    }
}

/// An error and its causes. An I/O error does not show its inner error through `source`.
fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |current| {
        let current: &'a (dyn StdError + 'static) = *current;
        let inner = current.downcast_ref::<std::io::Error>().and_then(|io| io.get_ref());
        inner.map(|inner| inner as _).or_else(|| current.source())
    })
    .take(16)
}

/// An error with its causes, without repetitions.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in causes(error) {
        let text = cause.to_string();
        if !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
    }
    parts.join(": ")
}
