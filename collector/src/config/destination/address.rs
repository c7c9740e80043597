//! Endpoints and links as texts: fills in placeholders, adds the usual path, and finds the host to show.

use std::collections::BTreeMap;

use super::{Connection, Protocol, Signal};
use crate::config::connection::check_endpoint;
use crate::config::mistake::{Mistake, Why};

/// Placeholders that stay in a link until the span is known.
const SPAN_PLACEHOLDERS: [&str; 7] =
    ["trace_id", "span_id", "conversation_id", "start_ms", "end_ms", "start_s", "end_s"];

/// Adds `path` to an HTTP endpoint that has none.
pub(super) fn with_path(endpoint: String, protocol: Protocol, path: &str) -> String {
    let bare = endpoint.splitn(4, '/').nth(3).unwrap_or_default().is_empty();
    if protocol == Protocol::Http && bare {
        format!("{}{path}", endpoint.trim_end_matches('/'))
    } else {
        endpoint
    }
}

pub(in crate::config) fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest).rsplit('@').next().unwrap_or(rest)
}

/// The URL for another signal than spans: the configured one, or the one beside the URL for spans. `given` has the key
/// and the configured text.
pub(in crate::config) fn other_endpoint(
    signal: Signal,
    (key, template): (&'static str, Option<&str>),
    spans: &Connection,
    values: &BTreeMap<String, String>,
) -> Result<String, Mistake> {
    match template {
        Some(template) => {
            let endpoint = fill(template, values)
                .map_err(|Unfilled(placeholder)| Why::EndpointPlaceholder(placeholder).at(key))?;
            check_endpoint(&endpoint).map_err(|why| why.at(key))?;
            Ok(with_path(endpoint, spans.protocol, signal.path()))
        }
        None if spans.protocol == Protocol::Grpc => Ok(spans.endpoint.clone()),
        None => match spans.endpoint.strip_suffix(Signal::Traces.path()) {
            Some(base) => Ok(format!("{base}{}", signal.path())),
            None => Err(Why::OtherEndpoint.at(key)),
        },
    }
}

/// A placeholder without a value.
pub(in crate::config) struct Unfilled(pub(in crate::config) String);

/// Replaces the `{placeholders}` of `template` by `values`. Returns an error for the first unknown one.
pub(in crate::config) fn fill(
    template: &str,
    values: &BTreeMap<String, String>,
) -> Result<String, Unfilled> {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}').map(|at| open + at) else { break };
        let key = &rest[open + 1..close];
        out.push_str(&rest[..open]);
        if SPAN_PLACEHOLDERS.contains(&key) {
            out.push_str(&rest[open..=close]);
        } else {
            out.push_str(values.get(key).ok_or_else(|| Unfilled(key.to_owned()))?);
        }
        rest = &rest[close + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Fills in a link and checks it. Only placeholders of the span may stay. If another placeholder has no value, a link
/// that the user wrote is an error, and a preset's link is left out.
pub(super) fn check_link(
    template: &str,
    values: &BTreeMap<String, String>,
    explicit: bool,
) -> Result<Option<String>, Mistake> {
    match fill(template, values) {
        Ok(link) if link.starts_with("http://") || link.starts_with("https://") => Ok(Some(link)),
        Ok(_) => Err(Why::LinkScheme.at("link")),
        Err(Unfilled(key)) if explicit => Err(Why::LinkPlaceholder(key).at("link")),
        Err(_) => Ok(None),
    }
}
