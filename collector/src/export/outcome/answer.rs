//! Decides whether an HTTP answer comes from an OTLP receiver, and reads it.
//!
//! The specification requires an `ExportTraceServiceResponse` in the encoding of the request. Receivers are less
//! strict: Grafana Cloud answers 204, New Relic and Prometheus an empty body, Langfuse `{}` as JSON, some gateways `OK`
//! as plain text. All of these count. A web page never counts: it comes from the port of a user interface, from a login
//! or from a proxy.

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use prost::Message as _;
use serde_json::Value;

use super::{HttpAnswer, shorten};

/// A 2xx answer.
pub(super) enum Success {
    /// From an OTLP receiver.
    Otlp(ExportTraceServiceResponse),
    /// The answer comes from something else. Contains a description.
    Foreign(String),
}

impl HttpAnswer {
    /// Reads the body of a 2xx answer.
    pub(super) fn success(&self) -> Success {
        let kind = self.kind();
        let read = match kind.as_str() {
            _ if self.is_page() || self.is_cut => None,
            _ if self.is_empty() => Some(ExportTraceServiceResponse::default()),
            "application/x-protobuf"
            | "application/protobuf"
            | "application/vnd.google.protobuf"
            | "application/octet-stream" => protobuf(&self.body),
            json if json == "application/json" || json.ends_with("+json") => {
                json_response(&self.body)
            }
            "" => protobuf(&self.body).or_else(|| loose(&self.body)),
            _ => loose(&self.body),
        };
        match read {
            Some(response) => Success::Otlp(response),
            None => {
                let kind = if kind.is_empty() { "without a content type".to_owned() } else { kind };
                let words =
                    format!("HTTP {}, but no OTLP answer came: {}", self.status, shorten(&kind));
                Success::Foreign(match self.words() {
                    text if text.is_empty() => words,
                    text => format!("{words}: {text}"),
                })
            }
        }
    }

    /// `HTTP 400: what the server said`.
    pub(super) fn describe(&self) -> String {
        let status = match self.status {
            300..=399 => format!("HTTP {}: redirects to {}", self.status, self.redirect()),
            status => format!("HTTP {status}"),
        };
        match self.words() {
            text if text.is_empty() || self.status / 100 == 3 => status,
            text => format!("{status}: {text}"),
        }
    }

    /// The target of a redirect: scheme, host and path. The query is left out, because it may contain a token.
    pub(super) fn redirect(&self) -> String {
        let to = self.location.as_deref().unwrap_or_default();
        let to = to.split(['?', '#']).next().unwrap_or_default();
        let to = match to.split_once("://") {
            Some((scheme, rest)) => match rest.split_once('@') {
                Some((user, host)) if !user.contains('/') => format!("{scheme}://{host}"),
                _ => to.to_owned(),
            },
            None => to.to_owned(),
        };
        if to.is_empty() { "nowhere".to_owned() } else { shorten(&to) }
    }

    /// Whether the body is a web page.
    pub(super) fn is_page(&self) -> bool {
        let kind = self.kind();
        let begin = self.body.trim_ascii_start();
        kind.contains("html") || kind.contains("xml") || begin.starts_with(b"<")
    }

    /// Whether a TLS server complains about plain HTTP, in the words of Go and nginx.
    pub(super) fn wants_tls(&self) -> bool {
        let text = String::from_utf8_lossy(&self.body).to_ascii_lowercase();
        text.contains("http request to an https server")
            || text.contains("plain http request was sent to https port")
    }

    fn is_empty(&self) -> bool {
        self.status == 204 || self.body.trim_ascii().is_empty()
    }

    /// The content type without parameters, in lower case.
    fn kind(&self) -> String {
        let kind = self.content_type.split(';').next().unwrap_or_default();
        kind.trim().to_ascii_lowercase()
    }

    /// The server's message.
    fn words(&self) -> String {
        if self.is_page() {
            return shorten(&title(&self.body));
        }
        // Receivers explain errors as a google.rpc.Status.
        let message = match tonic_types::pb::Status::decode(self.body.as_slice()) {
            Ok(status) if !status.message.is_empty() => status.message,
            _ => String::from_utf8_lossy(&self.body).into_owned(),
        };
        shorten(&message)
    }
}

/// Parses an `ExportTraceServiceResponse` in protobuf. Unknown fields are ignored. Most text could be parsed as unknown
/// fields, so the first byte must be the tag of a low field number. No letter is such a tag.
pub(super) fn protobuf(body: &[u8]) -> Option<ExportTraceServiceResponse> {
    let is_text = body.first().is_some_and(u8::is_ascii_graphic);
    if is_text { None } else { ExportTraceServiceResponse::decode(body).ok() }
}

/// Parses the response in JSON. Unknown keys are ignored, as the specification requires. An answer with the key `error`
/// is not such a response.
fn json_response(body: &[u8]) -> Option<ExportTraceServiceResponse> {
    match serde_json::from_slice(body).ok()? {
        Value::Null => Some(ExportTraceServiceResponse::default()),
        Value::String(text) => is_consent(&text).then(ExportTraceServiceResponse::default),
        Value::Object(map) => {
            let says = |key: &str| map.get(key).is_some_and(|value| !is_nothing(value));
            if says("error") || says("errors") {
                return None;
            }
            let part = map.get("partialSuccess").or_else(|| map.get("partial_success"));
            let partial_success = part.and_then(Value::as_object).map(|part| {
                let get = |camel: &str, snake: &str| part.get(camel).or_else(|| part.get(snake));
                // The binary answers of the signals have the same form; in JSON the count has a name of its own.
                let rejected = [
                    ("rejectedSpans", "rejected_spans"),
                    ("rejectedDataPoints", "rejected_data_points"),
                    ("rejectedLogRecords", "rejected_log_records"),
                ];
                let rejected = rejected.into_iter().find_map(|(camel, snake)| get(camel, snake));
                ExportTracePartialSuccess {
                    rejected_spans: integer(rejected),
                    error_message: get("errorMessage", "error_message")
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned(),
                }
            });
            Some(ExportTraceServiceResponse { partial_success })
        }
        _ => None,
    }
}

/// 64-bit integers are strings in OTLP's JSON. Numbers are accepted, too.
fn integer(value: Option<&Value>) -> i64 {
    match value {
        Some(Value::String(text)) => text.trim().parse().unwrap_or(0),
        Some(value) => value.as_i64().unwrap_or(0),
        None => 0,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(true) => false,
    }
}

/// Parses a body with another content type or none: JSON, or a word of consent.
fn loose(body: &[u8]) -> Option<ExportTraceServiceResponse> {
    let text = std::str::from_utf8(body).ok()?;
    if is_consent(text) {
        return Some(ExportTraceServiceResponse::default());
    }
    text.trim_start().starts_with('{').then(|| json_response(body)).flatten()
}

/// `OK`, `200: OK`, `accepted` and the like.
fn is_consent(text: &str) -> bool {
    let word: String = text.chars().filter(|c| c.is_alphabetic()).take(16).collect();
    text.len() <= 32
        && ["", "ok", "accepted", "success", "created"]
            .contains(&word.to_ascii_lowercase().as_str())
}

/// The title of a web page. It tells more than the page's first tags.
fn title(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|open| {
        let start = open + lower.get(open..)?.find('>')? + 1;
        let end = start + lower.get(start..)?.find("</title")?;
        text.get(start..end)
    });
    match title {
        Some(title) => format!("a web page titled {:?}", title.trim()),
        None => "a web page".to_owned(),
    }
}
