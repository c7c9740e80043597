//! Values that a destination takes from environment variables and files. If one is missing now, the destination is paused.

use std::fs;

use super::connection::Secret;
use super::mistake::{Mistake, Why};
use crate::config::Environment;

/// Headers whose values are not secret. These may be written in the file in plain text.
pub(in crate::config) const PLAIN_HEADERS: [&str; 5] = [
    "x-scope-orgid",
    "x-honeycomb-dataset",
    "x-mlflow-experiment-id",
    "dd-otlp-source",
    "x-langfuse-ingestion-version",
];

/// A value that cannot be used now.
#[derive(Debug)]
pub(in crate::config) enum Problem {
    /// The configured text is wrong. The collector does not start until it is corrected.
    Wrong(Mistake),
    /// The configured text refers to something that is missing now. Only this destination waits for it.
    Missing(Mistake),
}

/// Missing values. The first one is reported.
#[derive(Debug, Default)]
pub(in crate::config) struct Missing(Option<Mistake>);

impl Missing {
    /// The value, or `None` when it is missing.
    pub(in crate::config) fn take<T>(
        &mut self,
        read: Result<T, Problem>,
    ) -> Result<Option<T>, Mistake> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(Problem::Wrong(mistake)) => Err(mistake),
            Err(Problem::Missing(mistake)) => {
                self.note(mistake);
                Ok(None)
            }
        }
    }

    /// Records a missing value, unless one was recorded before.
    pub(in crate::config) fn note(&mut self, mistake: Mistake) {
        self.0.get_or_insert(mistake);
    }

    /// A description of the first missing value.
    pub(in crate::config) fn words(&self) -> Option<String> {
        self.0.as_ref().map(Mistake::to_string)
    }
}

/// Reads the value of the header `name`: a reference, one word and a reference, or plain text for a header that is not
/// secret.
pub(in crate::config) fn header_value(
    name: &str,
    text: &str,
    env: &Environment,
) -> Result<Secret, Problem> {
    let key = || format!("headers.{name}");
    let missing = |why: Why| Problem::Missing(why.at(key()));
    if let Some(value) = reference(text, env) {
        return value.map(Secret).map_err(missing);
    }
    if let Some((scheme, rest)) = text.split_once(' ')
        && let Some(value) = reference(rest.trim(), env)
    {
        let value = value.map_err(missing)?;
        return Ok(Secret(format!("{scheme} {value}")));
    }
    if PLAIN_HEADERS.contains(&name) {
        return Ok(Secret(text.to_owned()));
    }
    Err(Problem::Wrong(Why::PlainSecret.at(key())))
}

/// Reads a value that must not be written in the file itself.
pub(in crate::config) fn secret(
    key: &str,
    text: &str,
    env: &Environment,
) -> Result<String, Problem> {
    match reference(text, env) {
        Some(value) => value.map_err(|why| Problem::Missing(why.at(key))),
        None => Err(Problem::Wrong(Why::PlainSecret.at(key))),
    }
}

fn reference(text: &str, env: &Environment) -> Option<Result<String, Why>> {
    if let Some(key) = text.strip_prefix("env:") {
        let value = env.var(key).map(str::to_owned);
        return Some(value.ok_or_else(|| Why::NotSet(key.to_owned())));
    }
    let path = text.strip_prefix("file:")?;
    Some(
        fs::read_to_string(path)
            .map(|value| value.trim().to_owned())
            .map_err(|error| Why::Unreadable(path.to_owned(), error.to_string())),
    )
}

pub(in crate::config) fn check_headers(headers: &[(String, Secret)]) -> Result<(), Mistake> {
    for (name, value) in headers {
        reqwest::header::HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Why::HeaderName(name.clone()).at("headers"))?;
        reqwest::header::HeaderValue::from_str(&value.0)
            .map_err(|_| Why::HeaderValue.at(format!("headers.{name}")))?;
    }
    Ok(())
}

pub(in crate::config) fn read_pem(
    key: &str,
    path: Option<&str>,
) -> Result<Option<Vec<u8>>, Problem> {
    let Some(path) = path else { return Ok(None) };
    let missing = |why: Why| Problem::Missing(why.at(key));
    let bytes = fs::read(path)
        .map_err(|error| missing(Why::Unreadable(path.to_owned(), error.to_string())))?;
    if !bytes.windows(11).any(|w| w == b"-----BEGIN ") {
        return Err(missing(Why::NoPem(path.to_owned())));
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
                .map_err(|_| Problem::Missing(Why::NotText.at("client_key")))?;
            Ok(Some((certificate, Secret(key))))
        }
        (Some(_), None) => Err(Problem::Wrong(Why::Alone("client_key").at("client_certificate"))),
        (None, Some(_)) => Err(Problem::Wrong(Why::Alone("client_certificate").at("client_key"))),
    }
}
