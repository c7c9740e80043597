//! A value that cannot be used: its key, and the reason.

/// Why a text is no URL.
type UrlError = <reqwest::Url as std::str::FromStr>::Err;

/// A value that cannot be used. The text begins with the key, which `place` uses to find the line in the file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{key}: {why}")]
pub struct Mistake {
    /// The key in the file, or the variable's name.
    pub key: String,
    /// What is wrong, and what would be right.
    pub why: Why,
}

/// What is wrong with a value, and what would be right.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Why {
    /// The word is none of the known ones.
    #[error("{word:?} is unknown; use {known}")]
    Unknown {
        /// What was written.
        word: String,
        /// What could be written.
        known: &'static str,
    },
    /// The one OTLP protocol that hookspan does not support.
    #[error("http/json is not supported; use http/protobuf or grpc")]
    HttpJson,
    /// The preset's receiver does not accept gRPC.
    #[error("{0} takes http/protobuf only")]
    HttpOnly(&'static str),
    /// An attribute that hookspan sets itself, or that is too long.
    #[error(
        "write up to 32 attributes of letters, digits, dots, dashes and slashes, with values of up to 256 bytes; names that begin \
         with telemetry.sdk, service.instance, user, enduser or hookspan are set by hookspan"
    )]
    Attribute,
    /// A person without a key.
    #[error("set user_key as well: a hash without a key could be guessed from a list of names")]
    UserKey,
    /// A key without a person.
    #[error("nothing is hashed without user")]
    UserAlone,
    /// The preset's receiver takes spans only.
    #[error(
        "{0} takes traces only; leave metrics out, or add a second destination for them, such as an OpenTelemetry Collector"
    )]
    TracesOnly(&'static str),
    /// A key of metrics where none are sent.
    #[error("no metrics are sent without metrics = true")]
    NoMetrics,
    /// An HTTP endpoint from which the one of metrics cannot be told.
    #[error("write the URL for metrics: `endpoint` does not end in /v1/traces")]
    MetricsEndpoint,
    /// No interval of metrics.
    #[error("{0:?} is not a time from 1s to 1d, such as 60s")]
    Interval(String),
    /// A timeout of zero.
    #[error("0 would fail every request; leave it out for 10 s")]
    NoTime,
    /// A timeout that is too long, milliseconds.
    #[error("{0} ms is more than ten minutes")]
    TooLong(u64),
    /// No number.
    #[error("{0:?} is not milliseconds")]
    Milliseconds(String),
    /// No duration.
    #[error("{0:?} is not a duration such as 55m, 6h or 7d")]
    Duration(String),
    /// No boolean.
    #[error("{0:?} is not true or false")]
    Boolean(String),
    /// A share below 0 or above 1.
    #[error("{0} is not between 0 and 1")]
    Share(f64),
    /// No URL.
    #[error("{0}: write http(s)://host:port")]
    Url(UrlError),
    /// Content would be sent over a network in plain text.
    #[error(
        "\"full\" would send prompts, answers and results to {0} without TLS, and whoever sees the network could read them; use \
         an https endpoint or content = \"metadata\", or set allow_plain_http = true if the network between is trusted"
    )]
    FullWithoutTls(String),
    /// A URL of another scheme.
    #[error("scheme {0:?} is unknown; use http or https")]
    Scheme(String),
    /// A URL without a host.
    #[error("has no host")]
    NoHost,
    /// A URL with a secret in it.
    #[error("holds a user or password; put it into headers as env:NAME")]
    Credentials,
    /// A link of another scheme.
    #[error("must start with http:// or https://")]
    LinkScheme,
    /// The endpoint is missing.
    #[error("is missing; this preset has none of its own")]
    NoEndpoint,
    /// The endpoint has a placeholder without a value.
    #[error("{{{0}}} is not known; set values.{0} or write the endpoint out")]
    EndpointPlaceholder(String),
    /// The link has a placeholder without a value.
    #[error("{{{0}}} is not known; set values.{0}")]
    LinkPlaceholder(String),
    /// Redaction may be off only at `full`.
    #[error("false needs content = \"full\": with less content, secrets never leave")]
    RedactBelowFull,
    /// A name that is too long or contains invalid characters.
    #[error("takes 1 to 64 of A-Z a-z 0-9 . _ -")]
    Name,
    /// Two destinations of one name.
    #[error("is taken already")]
    Taken,
    /// A list of headers in a variable.
    #[error("a header is not of the form key=value")]
    HeaderForm,
    /// A list of attributes in a variable.
    #[error("is not of the form key=value,key=value")]
    AttributeForm,
    /// No name that HTTP allows.
    #[error("{0:?} is not a header name")]
    HeaderName(String),
    /// No value that HTTP allows.
    #[error("its value holds a character no header may hold")]
    HeaderValue,
    /// A header that the preset's receiver requires. The text says where to get its value.
    #[error("is missing; {0}")]
    HeaderMissing(&'static str),
    /// A secret in plain text.
    #[error("takes env:NAME or file:PATH, so that no secret stands in the file")]
    PlainSecret,
    /// The variable that the value names.
    #[error("the variable {0} is not set")]
    NotSet(String),
    /// The file that the value names, and why it cannot be read.
    #[error("{0} cannot be read: {1}")]
    Unreadable(String, String),
    /// The file that the value names.
    #[error("{0} holds no PEM block")]
    NoPem(String),
    /// A key in another encoding.
    #[error("is not text")]
    NotText,
    /// One half of a pair.
    #[error("needs {0} beside it")]
    Alone(&'static str),
}

impl From<Mistake> for super::Misuse {
    fn from(mistake: Mistake) -> Self {
        Self(mistake.to_string())
    }
}

impl Why {
    /// The mistake at `key`.
    #[must_use]
    pub fn at(self, key: impl Into<String>) -> Mistake {
        Mistake { key: key.into(), why: self }
    }

    pub(in crate::config) fn unknown(word: &str, known: &'static str) -> Self {
        Self::Unknown { word: word.to_owned(), known }
    }
}
