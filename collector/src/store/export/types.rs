//! The content of the export tables, as values.

use bytes::Bytes;
use hookspan_core::Timestamp;

/// A destination's position in the queue: a row of `export_position`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// `settled.seq` up to which every span was delivered or counted as lost.
    pub acked_seq: i64,
    /// `settled.seq` up to which requests were built.
    pub built_seq: i64,
    /// State.
    pub state: DestinationState,
    /// No attempt before this.
    pub not_before: Timestamp,
    /// Failures in a row.
    pub attempts: u32,
    /// Whether the receiver has accepted spans over the connection that is configured now.
    pub has_accepted: bool,
    /// Whether a person paused the destination.
    pub stopped: bool,
    /// Maximum size of a request, and when the receiver refused a larger one. `None` if no size was refused.
    pub size: Option<(u64, Timestamp)>,
}

/// `export_position.state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DestinationState {
    /// The destination delivers, or has nothing to deliver.
    Ok,
    /// Waiting to try again.
    Retry,
    /// The receiver refuses requests, and waiting alone will not help. A request is tried from time to time.
    Paused,
    /// Not in the configuration any more.
    Off,
}

impl DestinationState {
    /// The word in the store, in JSON and on pages.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Retry => "retry",
            Self::Paused => "paused",
            Self::Off => "off",
        }
    }

    pub(super) fn parse(word: &str) -> Self {
        [Self::Retry, Self::Paused, Self::Off]
            .into_iter()
            .find(|state| state.as_str() == word)
            .unwrap_or(Self::Ok)
    }
}

/// An encoded request. It is stored before its first attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// The first `settled.seq` in the request; the request's key.
    pub first_seq: i64,
    /// The last `settled.seq` that the request covers.
    pub last_seq: i64,
    /// Number of spans in the request.
    pub spans: u64,
    /// An `ExportTraceServiceRequest`. Copies of a batch share it.
    pub body: Bytes,
    /// Attempts so far.
    pub attempts: u32,
}

/// How a refused batch is set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// The batch can be split. Once the receiver accepts another batch, it is sent again and split.
    Whole,
    /// The batch cannot be split. Once the receiver accepts another batch, it is lost.
    Alone,
    /// The batch is a single span that is too large. It is treated like `Alone`.
    TooLarge,
}

impl Held {
    pub(super) const fn code(self) -> i64 {
        match self {
            Self::Whole => 1,
            Self::Alone => 2,
            Self::TooLarge => 3,
        }
    }
}

/// Spans that will never arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// First `settled.seq` concerned.
    pub first_seq: i64,
    /// Last `settled.seq` concerned.
    pub last_seq: i64,
    /// Number of spans.
    pub count: u64,
    /// Why.
    pub reason: LossReason,
    /// More detail, as text.
    pub detail: String,
}

impl Loss {
    /// The same loss without its text.
    #[must_use]
    pub(crate) fn untold(&self) -> Self {
        Self { detail: String::new(), ..self.clone() }
    }
}

/// `export_loss.reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossReason {
    /// The destination refused the spans.
    Rejected,
    /// The destination accepted the request and refused some of its spans.
    Partial,
    /// The spans were older than the destination accepts.
    Expired,
    /// Too many spans were waiting.
    Overflow,
    /// A single span was larger than the destination accepts.
    TooLarge,
}

impl LossReason {
    /// The word in the store, in JSON and on pages.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Partial => "partial",
            Self::Expired => "expired",
            Self::Overflow => "overflow",
            Self::TooLarge => "too_large",
        }
    }

    /// The reason that `word` stands for.
    #[must_use]
    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Rejected, Self::Partial, Self::Expired, Self::Overflow, Self::TooLarge]
            .into_iter()
            .find(|reason| reason.as_str() == word)
    }

    /// What a person can do so that this does not happen again.
    #[must_use]
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::Rejected | Self::Partial => {
                "Read the receiver's answer and its log: it accepts other spans, but not these."
            }
            Self::Expired => "Raise `max_span_age`, or leave it out to send spans of any age.",
            Self::Overflow => {
                "Raise `backlog_max_spans`, or make the destination reachable sooner."
            }
            Self::TooLarge => "Raise the receiver's limit for requests, or send less content.",
        }
    }
}

/// Which stored spans a new destination gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartAt {
    /// None. Only spans that settle from now on are sent.
    Head,
    /// Those that ended at this time or later.
    Since(Timestamp),
    /// All.
    Beginning,
}

/// The state of a destination after an attempt that did not deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setback {
    /// New state.
    pub state: DestinationState,
    /// No attempt before this.
    pub not_before: Timestamp,
    /// Failures in a row, this one included.
    pub attempts: u32,
    /// What happened, in words.
    pub error: String,
    /// What a person can do about it; empty if nothing.
    pub advice: String,
}
