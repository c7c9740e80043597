//! A value that cannot be used: its key, and the reason.

/// Why a text is not a URL.
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
    /// `user` without `user_key`.
    #[error("set user_key as well: a hash without a key could be guessed from a list of names")]
    UserKey,
    /// `user_key` without `user`.
    #[error("is used only together with user; set user as well")]
    UserAlone,
    /// The preset's receiver takes spans only.
    #[error(
        "{0} takes traces only; leave metrics out, or add a second destination for them, such as an OpenTelemetry Collector"
    )]
    TracesOnly(&'static str),
    /// A key that configures metrics, in a destination that gets no metrics.
    #[error("has no effect without metrics = true")]
    NoMetrics,
    /// `logs_endpoint` where none are sent.
    #[error("no log records are sent without logs = true")]
    NoLogs,
    /// A backend that takes no logs.
    #[error("{0} takes no logs; leave `logs` out, or send them to another destination")]
    NoLogsThere(&'static str),
    /// An HTTP endpoint from which the one of metrics or logs cannot be told.
    #[error("write the URL: `endpoint` does not end in /v1/traces")]
    OtherEndpoint,
    /// Not a valid interval for metrics.
    #[error("{0:?} is not a time from 1s to 1d, such as 60s")]
    Interval(String),
    /// A timeout of zero.
    #[error("0 would fail every request; leave it out for 10 s")]
    NoTime,
    /// A timeout that is too long, milliseconds.
    #[error("{0} ms is more than ten minutes")]
    TooLong(u64),
    /// The text is not a number.
    #[error("{0:?} is not a number of milliseconds")]
    Milliseconds(String),
    /// The text is not a duration.
    #[error("{0:?} is not a duration such as 55m, 6h or 7d")]
    Duration(String),
    /// The text is not a boolean.
    #[error("{0:?} is not true or false")]
    Boolean(String),
    /// A share below 0 or above 1.
    #[error("{0} is not between 0 and 1")]
    Share(f64),
    /// The text is not a URL.
    #[error("{0}: write http(s)://host:port")]
    Url(UrlError),
    /// Content would be sent over a network in plain text.
    #[error(
        "\"full\" would send prompts, answers and results to {0} without TLS, and whoever sees the network could read them; use \
         an https endpoint or content = \"metadata\", or set allow_plain_http = true if the network between is trusted"
    )]
    FullWithoutTls(String),
    /// A URL with a scheme other than http and https.
    #[error("scheme {0:?} is unknown; use http or https")]
    Scheme(String),
    /// A URL without a host.
    #[error("has no host")]
    NoHost,
    /// A URL with a secret in it.
    #[error("contains a user name or a password; move it to headers as env:NAME")]
    Credentials,
    /// A link with a scheme other than http and https.
    #[error("must start with http:// or https://")]
    LinkScheme,
    /// The endpoint is missing.
    #[error("is missing; this preset has no default endpoint")]
    NoEndpoint,
    /// The endpoint has a placeholder without a value.
    #[error("{{{0}}} has no value; set values.{0} or write the whole endpoint")]
    EndpointPlaceholder(String),
    /// The link has a placeholder without a value.
    #[error("{{{0}}} has no value; set values.{0}")]
    LinkPlaceholder(String),
    /// Redaction may be off only at `full`.
    #[error("false needs content = \"full\": with less content, secrets never leave")]
    RedactBelowFull,
    /// A name that is too long or contains invalid characters.
    #[error("must have 1 to 64 characters of A-Z a-z 0-9 . _ -")]
    Name,
    /// Two destinations with the same name.
    #[error("is the name of another destination; choose a different one")]
    Taken,
    /// A variable with a list of headers that cannot be parsed.
    #[error("a header is not of the form key=value")]
    HeaderForm,
    /// A variable with a list of attributes that cannot be parsed.
    #[error("is not of the form key=value,key=value")]
    AttributeForm,
    /// A header name that HTTP does not allow.
    #[error("{0:?} is not a header name")]
    HeaderName(String),
    /// A header value that HTTP does not allow.
    #[error("its value contains a character that is not allowed in a header")]
    HeaderValue,
    /// A header that the preset's receiver requires. The text says where to get its value.
    #[error("is missing; {0}")]
    HeaderMissing(&'static str),
    /// A secret in plain text.
    #[error("write env:NAME or file:PATH, so that the secret is not in the configuration file")]
    PlainSecret,
    /// The configured value refers to a variable that is not set.
    #[error("the variable {0} is not set")]
    NotSet(String),
    /// The configured value refers to a file that cannot be read. Contains the path and the reason.
    #[error("{0} cannot be read: {1}")]
    Unreadable(String, String),
    /// The configured value refers to a file without a PEM block.
    #[error("{0} contains no PEM block")]
    NoPem(String),
    /// A key file that is not UTF-8 text.
    #[error("is not text")]
    NotText,
    /// Only one of two keys that belong together, such as a certificate and its key.
    #[error("needs {0} as well")]
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
