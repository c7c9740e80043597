//! Decides what an answer means for the batch that was sent. The decision depends only on the answer.

mod answer;
mod transport;

use std::time::Duration;

use hookspan_core::Timestamp;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use tonic::Code;
use tonic_types::StatusExt as _;

use super::cause::Cause;
use answer::Success;
pub(super) use transport::from_transport;

/// Maximum delay that is granted if a server asks for one.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3_600);

/// Maximum number of characters kept of a server's message.
const MAX_DETAIL_CHARS: usize = 200;

/// What to do with a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Delivered.
    Ok,
    /// The server accepted the request and refused some of its spans.
    Partial {
        /// Number of refused spans. 0 if the server only sent a message.
        rejected: u64,
        /// The server's message, shortened.
        message: String,
    },
    /// Try the same bytes again.
    Retry {
        /// Minimum delay, if the server gave one.
        after: Option<Duration>,
        /// What happened.
        trouble: Trouble,
    },
    /// The server will not accept the same bytes.
    Permanent {
        /// What kind of refusal.
        class: Refusal,
        /// What happened.
        trouble: Trouble,
    },
}

impl Outcome {
    /// Whether the server has stored some of the `spans` in the request.
    pub(super) const fn took_some_of(&self, spans: u64) -> bool {
        match self {
            Self::Ok => true,
            Self::Partial { rejected, .. } => *rejected < spans,
            Self::Retry { .. } | Self::Permanent { .. } => false,
        }
    }

    /// Minimum delay, if the server gave one.
    pub(super) const fn delay(&self) -> Option<Duration> {
        match self {
            Self::Retry { after, .. } => *after,
            Self::Ok | Self::Partial { .. } | Self::Permanent { .. } => None,
        }
    }
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// Why.
    pub cause: Cause,
    /// What happened, in one short line, often in the server's own words.
    pub detail: String,
}

impl Trouble {
    pub(super) fn new(cause: Cause, detail: impl Into<String>) -> Self {
        Self { cause, detail: detail.into() }
    }
}

/// Why a server will not take a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The server does not accept the credentials: pause, keep the queue.
    Auth,
    /// There is no OTLP receiver at this address: pause, keep the queue.
    Config,
    /// Too many bytes: halve.
    TooLarge,
    /// The server failed on this request: try a few times, then treat the request like [`Self::Rejected`].
    Faulty,
    /// The server rejects part of the content: find that part and drop it.
    Rejected,
}

/// The parts of an HTTP answer that decide something.
#[derive(Clone, Debug, Default)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) retry_after: Option<String>,
    /// `Content-Type` as received; empty if there is none.
    pub(super) content_type: String,
    pub(super) location: Option<String>,
    /// The body, up to the limit.
    pub(super) body: Vec<u8>,
    /// The body was longer.
    pub(super) is_cut: bool,
}

/// Reads an HTTP answer. `now` turns a date in `Retry-After` into a delay.
#[must_use]
pub(super) fn from_http(answer: &HttpAnswer, now: Timestamp) -> Outcome {
    let permanent = |class, cause| Outcome::Permanent {
        class,
        trouble: Trouble::new(cause, answer.describe()),
    };
    let config = |cause| permanent(Refusal::Config, cause);
    match answer.status {
        200..=299 => match answer.success() {
            Success::Otlp(response) => from_response(response),
            Success::Foreign(detail) => Outcome::Permanent {
                class: Refusal::Config,
                trouble: Trouble::new(Cause::NotOtlp, detail),
            },
        },
        300..=399 => config(Cause::Redirect(answer.redirect())),
        408 | 425 | 429 | 502 | 503 | 504 => Outcome::Retry {
            after: answer.retry_after.as_deref().and_then(|text| parse_retry_after(text, now)),
            trouble: Trouble::new(Cause::Busy, answer.describe()),
        },
        401 | 402 | 403 | 407 => permanent(Refusal::Auth, Cause::Credentials),
        404 | 405 | 410 | 501 => config(Cause::WrongPath),
        406 | 415 => config(Cause::ContentType),
        413 => permanent(Refusal::TooLarge, Cause::TooLarge),
        421 | 426 | 505 => config(Cause::NotHttp1),
        400 if answer.wants_tls() => config(Cause::WantsTls),
        // A receiver explains errors in protobuf, JSON or plain text. A web page comes from a proxy or another server.
        400..=499 if answer.is_page() => config(Cause::NotOtlp),
        400..=499 => permanent(Refusal::Rejected, Cause::Content),
        500..=599 => permanent(Refusal::Faulty, Cause::Faulty),
        _ => config(Cause::NotOtlp),
    }
}

/// Reads a status that a gRPC server sent.
#[must_use]
pub(super) fn from_grpc(status: &tonic::Status) -> Outcome {
    let message = status.message();
    let detail = format!("gRPC {:?}: {}", status.code(), shorten(message));
    let retry =
        |after| Outcome::Retry { after, trouble: Trouble::new(Cause::Busy, detail.as_str()) };
    let permanent =
        |class, cause| Outcome::Permanent { class, trouble: Trouble::new(cause, detail.as_str()) };
    let asked = status
        .get_details_retry_info()
        .map(|info| info.retry_delay.unwrap_or_default().min(MAX_RETRY_AFTER));
    match status.code() {
        Code::Ok => Outcome::Ok,
        Code::ResourceExhausted | Code::OutOfRange
            if asked.is_none() && speaks_of_size(message) =>
        {
            permanent(Refusal::TooLarge, Cause::TooLarge)
        }
        // If the server names no delay, the specification allows the batch to be dropped. But servers also give this
        // answer when they are short of memory or limit the rate (Tempo, the Collector's memory limiter). Such a state
        // passes, so the batch is tried again.
        Code::ResourceExhausted
        | Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Unavailable
        | Code::DataLoss => retry(asked),
        Code::Unauthenticated | Code::PermissionDenied => {
            permanent(Refusal::Auth, Cause::Credentials)
        }
        Code::Unimplemented if message.contains("ompress") || message.contains("encoding") => {
            permanent(Refusal::Config, Cause::Compression)
        }
        Code::Unimplemented => permanent(Refusal::Config, Cause::WrongPath),
        Code::Unknown | Code::Internal => permanent(Refusal::Faulty, Cause::Faulty),
        _ => permanent(Refusal::Rejected, Cause::Content),
    }
}

/// Whether a gRPC server means that the message is too large. The code alone is ambiguous, because it can also mean a
/// quota.
fn speaks_of_size(message: &str) -> bool {
    // The words of grpc-go and grpc-c, grpc-java, grpc-dotnet, and tonic.
    ["larger than", "exceeds maximum", "exceeds the maximum", "too large", "too big"]
        .iter()
        .any(|words| message.contains(words))
}

/// Reads the message of a success.
#[must_use]
pub(super) fn from_response(response: ExportTraceServiceResponse) -> Outcome {
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

/// Reads the message of a gRPC success.
#[must_use]
pub(super) fn from_message(message: &[u8]) -> Outcome {
    match answer::protobuf(message) {
        Some(response) => from_response(response),
        None => Outcome::Permanent {
            class: Refusal::Config,
            trouble: Trouble::new(Cause::NotOtlp, "gRPC OK, but its message is no OTLP answer"),
        },
    }
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

/// Turns someone else's text into one short line without control characters and changes of writing direction.
pub(super) fn shorten(text: &str) -> String {
    let unsafe_to_show = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let clean: String = text
        .chars()
        .take(MAX_DETAIL_CHARS * 4)
        .map(|c| if unsafe_to_show(c) { ' ' } else { c })
        .collect();
    let words: Vec<&str> = clean.split_whitespace().collect();
    words.join(" ").chars().take(MAX_DETAIL_CHARS).collect()
}

#[cfg(test)]
mod tests;
