//! Values that a destination refers to: environment variables and files. What is not there now pauses the destination.

use std::fs;

use super::connection::Secret;
use crate::config::Environment;

/// Headers that hold no secret and may therefore stand in the file as they are.
pub(in crate::config) const PLAIN_HEADERS: [&str; 5] = [
    "x-scope-orgid",
    "x-honeycomb-dataset",
    "x-mlflow-experiment-id",
    "dd-otlp-source",
    "x-langfuse-ingestion-version",
];

/// Why a value cannot be used.
#[derive(Debug)]
pub(in crate::config) enum Problem {
    /// What was written is wrong. Nothing starts until it is corrected.
    Wrong(String),
    /// What was written refers to something that is not there now. Only this destination waits for it.
    Missing(String),
}

impl From<String> for Problem {
    fn from(words: String) -> Self {
        Self::Wrong(words)
    }
}

impl From<&str> for Problem {
    fn from(words: &str) -> Self {
        Self::Wrong(words.to_owned())
    }
}

impl Problem {
    pub(in crate::config) fn within(self, key: &str) -> Self {
        match self {
            Self::Wrong(words) => Self::Wrong(format!("{key}: {words}")),
            Self::Missing(words) => Self::Missing(format!("{key}: {words}")),
        }
    }
}

/// What is not there now: the first of it is told.
#[derive(Debug, Default)]
pub(in crate::config) struct Missing(pub(in crate::config) Option<String>);

impl Missing {
    /// The value, or `None` when it is missing.
    pub(in crate::config) fn take<T>(
        &mut self,
        read: Result<T, Problem>,
    ) -> Result<Option<T>, String> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(Problem::Wrong(words)) => Err(words),
            Err(Problem::Missing(words)) => {
                self.0.get_or_insert(words);
                Ok(None)
            }
        }
    }
}

/// Reads a header value: a reference, or one word and a reference, or plain text where nothing is secret.
pub(in crate::config) fn header_value(
    name: &str,
    text: &str,
    env: &Environment,
) -> Result<Secret, Problem> {
    if let Some(value) = reference(text, env) {
        return value.map(Secret).map_err(Problem::Missing);
    }
    if let Some((scheme, rest)) = text.split_once(' ')
        && let Some(value) = reference(rest.trim(), env)
    {
        let value = value.map_err(Problem::Missing)?;
        return Ok(Secret(format!("{scheme} {value}")));
    }
    if PLAIN_HEADERS.contains(&name) {
        return Ok(Secret(text.to_owned()));
    }
    Err("takes env:NAME or file:PATH, so that no secret stands in the file".into())
}

fn reference(text: &str, env: &Environment) -> Option<Result<String, String>> {
    if let Some(key) = text.strip_prefix("env:") {
        return Some(
            env.var(key).map(str::to_owned).ok_or_else(|| format!("the variable {key} is not set")),
        );
    }
    let path = text.strip_prefix("file:")?;
    Some(
        fs::read_to_string(path)
            .map(|value| value.trim().to_owned())
            .map_err(|error| format!("{path} cannot be read: {error}")),
    )
}

pub(in crate::config) fn check_headers(headers: &[(String, Secret)]) -> Result<(), String> {
    for (name, value) in headers {
        reqwest::header::HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("headers: {name:?} is not a header name"))?;
        reqwest::header::HeaderValue::from_str(&value.0).map_err(|_| {
            format!("headers.{name}: its value holds a character no header may hold")
        })?;
    }
    Ok(())
}

pub(in crate::config) fn read_pem(
    key: &str,
    path: Option<&str>,
) -> Result<Option<Vec<u8>>, Problem> {
    let Some(path) = path else { return Ok(None) };
    let bytes = fs::read(path)
        .map_err(|error| Problem::Missing(format!("{key}: {path} cannot be read: {error}")))?;
    if !bytes.windows(11).any(|w| w == b"-----BEGIN ") {
        return Err(Problem::Missing(format!("{key}: {path} holds no PEM block")));
    }
    Ok(Some(bytes))
}

pub(in crate::config) fn client_pem(
    certificate: Option<&str>,
    key: Option<&str>,
) -> Result<Option<(Vec<u8>, Secret)>, Problem> {
    match (read_pem("client_certificate", certificate)?, read_pem("client_key", key)?) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            let key = String::from_utf8(key)
                .map_err(|_| Problem::Missing("client_key: is not text".to_owned()))?;
            Ok(Some((certificate, Secret(key))))
        }
        _ => Err("client_certificate and client_key belong together".into()),
    }
}
