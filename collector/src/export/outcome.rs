//! What an answer means for the batch that got it: one table, no state.

use std::error::Error as StdError;
use std::time::Duration;

use hookspan_core::Timestamp;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use tonic::Code;
use tonic_types::StatusExt as _;

/// A server may ask for more, but is not believed beyond this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3_600);

/// The most of a server's own words that is kept.
const MAX_DETAIL_CHARS: usize = 200;

/// What to do with a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Delivered.
    Ok,
    /// Delivered, but the server kept less than all of it. Never sent again.
    Partial {
        /// Spans it refused; 0 when it only had something to say.
        rejected: u64,
        /// Its words, shortened.
        message: String,
    },
    /// Try the same bytes again.
    Retry {
        /// Not before this long, where the server said so.
        after: Option<Duration>,
        /// What happened.
        detail: String,
    },
    /// The same bytes will never go in as things are.
    Permanent {
        /// What kind of refusal.
        class: Refusal,
        /// What happened.
        detail: String,
    },
}

/// Why a server will not take a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not know us: pause, keep the queue.
    Auth,
    /// It is not what we think it is: pause, keep the queue.
    Config,
    /// Too many bytes: halve.
    TooLarge,
    /// It does not like something inside: find it, lose it.
    Rejected,
}

/// Reads an HTTP answer. `retry_after` is the header as it came; `now` turns a date into a delay.
#[must_use]
pub fn from_http(status: u16, retry_after: Option<&str>, body: &[u8], now: Timestamp) -> Outcome {
    let detail = || describe_http(status, body);
    match status {
        200..=299 => from_response(ExportTraceServiceResponse::decode(body).unwrap_or_default()),
        429 | 502 | 503 | 504 => Outcome::Retry {
            after: retry_after.and_then(|text| parse_retry_after(text, now)),
            detail: detail(),
        },
        401 | 403 => Outcome::Permanent { class: Refusal::Auth, detail: detail() },
        404 | 405 | 415 => Outcome::Permanent { class: Refusal::Config, detail: detail() },
        413 => Outcome::Permanent { class: Refusal::TooLarge, detail: detail() },
        _ => Outcome::Permanent { class: Refusal::Rejected, detail: detail() },
    }
}

/// Reads a gRPC status that is not OK.
#[must_use]
pub fn from_grpc(status: &tonic::Status) -> Outcome {
    let detail = format!("gRPC {:?}: {}", status.code(), shorten(status.message()));
    if let Some(outcome) = from_certificate(status) {
        return outcome;
    }
    let retry = |after| Outcome::Retry { after, detail: detail.clone() };
    let permanent = |class| Outcome::Permanent { class, detail: detail.clone() };
    let asked = status
        .get_details_retry_info()
        .map(|info| info.retry_delay.unwrap_or_default().min(MAX_RETRY_AFTER));
    match status.code() {
        Code::Ok => Outcome::Ok,
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Unavailable
        | Code::DataLoss => retry(asked),
        Code::ResourceExhausted if asked.is_some() => retry(asked),
        Code::ResourceExhausted | Code::OutOfRange => permanent(Refusal::TooLarge),
        Code::Unauthenticated | Code::PermissionDenied => permanent(Refusal::Auth),
        Code::Unimplemented => permanent(Refusal::Config),
        _ => permanent(Refusal::Rejected),
    }
}

/// Reads the message of a success.
#[must_use]
pub fn from_response(response: ExportTraceServiceResponse) -> Outcome {
    match response.partial_success {
        Some(part) if part.rejected_spans > 0 || !part.error_message.is_empty() => {
            Outcome::Partial {
                rejected: u64::try_from(part.rejected_spans).unwrap_or(0),
                message: shorten(&part.error_message),
            }
        }
        _ => Outcome::Ok,
    }
}

/// Reads an error of the connection itself: retried, unless the server's certificate will not do.
#[must_use]
pub fn from_transport(error: &(dyn StdError + 'static)) -> Outcome {
    from_certificate(error)
        .unwrap_or_else(|| Outcome::Retry { after: None, detail: shorten(&chain(error)) })
}

fn from_certificate(error: &(dyn StdError + 'static)) -> Option<Outcome> {
    let mut next = Some(error);
    while let Some(current) = next {
        // An I/O error hides what it wraps from `source`.
        let inner = current.downcast_ref::<std::io::Error>().and_then(|io| io.get_ref());
        let tls = current
            .downcast_ref::<rustls::Error>()
            .or_else(|| inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()));
        if let Some(rustls::Error::InvalidCertificate(reason)) = tls {
            let detail = format!("the server's certificate is not valid: {reason:?}");
            return Some(Outcome::Permanent { class: Refusal::Config, detail });
        }
        next = current.source().or_else(|| inner.map(|inner| inner as _));
    }
    None
}

/// An error with its causes, without the URL that some put into their text.
fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(current) = next {
        let text = current.to_string();
        if !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        next = current.source();
    }
    parts.join(": ")
}

/// `Retry-After`: seconds or an HTTP date.
fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let delay = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let at = httpdate::parse_http_date(text).ok()?;
            let at = at.duration_since(std::time::UNIX_EPOCH).ok()?;
            let now = Duration::from_nanos(u64::try_from(now.0).unwrap_or(0));
            at.saturating_sub(now)
        }
    };
    Some(delay.min(MAX_RETRY_AFTER))
}

fn describe_http(status: u16, body: &[u8]) -> String {
    // Errors come as a google.rpc.Status, or as whatever a proxy in between says.
    let message = match tonic_types::pb::Status::decode(body) {
        Ok(status) if !status.message.is_empty() => status.message,
        _ => String::from_utf8_lossy(body).into_owned(),
    };
    let message = shorten(&message);
    if message.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {message}") }
}

/// One short line: a server's words are somebody else's text.
fn shorten(text: &str) -> String {
    let clean: String =
        text.chars().take(MAX_DETAIL_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    clean.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;
    use tonic_types::ErrorDetails;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);

    /// The outcome in one word, for tables.
    fn word(outcome: &Outcome) -> String {
        match outcome {
            Outcome::Ok => "ok".to_owned(),
            Outcome::Partial { rejected, .. } => format!("partial {rejected}"),
            Outcome::Retry { after: None, .. } => "retry".to_owned(),
            Outcome::Retry { after: Some(after), .. } => format!("retry {}", after.as_secs()),
            Outcome::Permanent { class, .. } => format!("{class:?}"),
        }
    }

    #[test]
    fn every_http_status_has_its_outcome() {
        let table = [
            (200, "ok"),
            (202, "ok"),
            (400, "Rejected"),
            (401, "Auth"),
            (403, "Auth"),
            (404, "Config"),
            (405, "Config"),
            (408, "Rejected"),
            (413, "TooLarge"),
            (415, "Config"),
            (422, "Rejected"),
            (429, "retry"),
            (500, "Rejected"),
            (502, "retry"),
            (503, "retry"),
            (504, "retry"),
            (302, "Rejected"),
        ];
        for (status, expected) in table {
            assert_eq!(word(&from_http(status, None, b"", NOW)), expected, "HTTP {status}");
        }
    }

    #[test]
    fn every_grpc_code_has_its_outcome() {
        let table = [
            (Code::Cancelled, "retry"),
            (Code::Unknown, "Rejected"),
            (Code::InvalidArgument, "Rejected"),
            (Code::DeadlineExceeded, "retry"),
            (Code::NotFound, "Rejected"),
            (Code::AlreadyExists, "Rejected"),
            (Code::PermissionDenied, "Auth"),
            (Code::ResourceExhausted, "TooLarge"),
            (Code::FailedPrecondition, "Rejected"),
            (Code::Aborted, "retry"),
            (Code::OutOfRange, "TooLarge"),
            (Code::Unimplemented, "Config"),
            (Code::Internal, "Rejected"),
            (Code::Unavailable, "retry"),
            (Code::DataLoss, "retry"),
            (Code::Unauthenticated, "Auth"),
        ];
        for (code, expected) in table {
            let status = tonic::Status::new(code, "");
            assert_eq!(word(&from_grpc(&status)), expected, "{code:?}");
        }
        let details = ErrorDetails::with_retry_info(Some(Duration::from_secs(5)));
        let status = tonic::Status::with_error_details(Code::ResourceExhausted, "", details);
        assert_eq!(word(&from_grpc(&status)), "retry 5");
    }

    #[test]
    fn a_delay_is_seconds_or_a_date_and_at_most_an_hour() {
        let after = |text| word(&from_http(429, Some(text), b"", NOW));
        assert_eq!(after("7"), "retry 7");
        assert_eq!(after("86400"), "retry 3600");
        assert_eq!(after("Fri, 15 Jan 2027 08:01:00 GMT"), "retry 60");
        assert_eq!(after("Fri, 15 Jan 2027 07:00:00 GMT"), "retry 0");
        assert_eq!(after("soon"), "retry");
    }

    #[test]
    fn partial_success_is_read_and_a_body_that_is_no_protobuf_is_success() {
        let partial = |rejected_spans, error_message: &str| {
            let part =
                ExportTracePartialSuccess { rejected_spans, error_message: error_message.into() };
            let body = ExportTraceServiceResponse { partial_success: Some(part) }.encode_to_vec();
            word(&from_http(200, None, &body, NOW))
        };
        assert_eq!(partial(0, ""), "ok");
        assert_eq!(partial(3, ""), "partial 3");
        assert_eq!(partial(0, "slow down"), "partial 0");
        assert_eq!(word(&from_http(200, None, b"{\"ok\":true}", NOW)), "ok");
    }

    #[test]
    fn an_invalid_certificate_is_a_matter_of_configuration() {
        let tls = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let error = std::io::Error::other(tls);
        assert_eq!(word(&from_transport(&error)), "Config");
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        assert_eq!(word(&from_transport(&refused)), "retry");
    }

    #[test]
    fn a_servers_words_are_one_short_line() {
        let Outcome::Permanent { detail, .. } =
            from_http(400, None, "bad\n\u{1b}[31m".repeat(300).as_bytes(), NOW)
        else {
            panic!("a refusal")
        };
        assert!(detail.len() < 300 && !detail.contains(['\n', '\u{1b}']), "{detail}");
    }
}
