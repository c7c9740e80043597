//! Shows what a destination would get of a session: selected, encoded and redacted as for sending, but not sent.

use std::collections::BTreeMap;
use std::io::Write;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use rusqlite::Connection;
use serde::Serialize;

use super::Settings;
use super::file::FileError;
use super::otlp::Request;
use super::plan::Plan;
use crate::clock;
use crate::config::destination::{Destination, Signal};
use crate::store::bodies::Bodies;
use crate::store::read;
use crate::store::whole::{self, SessionRow};

/// Beginning of a redacted secret. The name of the rule follows, up to a colon.
const MARK: &str = "[redacted:";

/// The result of a preview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preview {
    /// Spans that would be sent.
    pub spans: u64,
    /// Settled spans that would not be sent: `sample` leaves out their session, or they are older than `max_span_age`.
    pub left_out: u64,
    /// Redacted secrets, by rule.
    pub redacted: BTreeMap<String, u64>,
}

/// Writes one OTLP/JSON document with the settled spans of `sessions` as `destination` would get them.
///
/// # Errors
/// The store cannot be read or the output cannot be written.
pub(crate) fn write(
    db: &Connection,
    destination: &Destination,
    settings: &Settings,
    sessions: &[SessionRow],
    out: &mut dyn Write,
) -> Result<Preview, FileError> {
    let plan = Plan::of(destination, settings);
    let now = clock::now();
    let mut preview = Preview::default();
    let mut separator = "";
    let list = match plan.signal {
        Signal::Logs => "resourceLogs",
        Signal::Traces | Signal::Metrics => "resourceSpans",
    };
    write!(out, "{{\"{list}\":[")?;
    for session in sessions {
        let mut request = Request::new(&plan.encoding);
        let mut bodies = Bodies::new(db);
        whole::settled_spans_of::<FileError>(db, &session.root, |span| {
            if !plan.sends(&span, now) {
                preview.left_out += 1;
                return Ok(());
            }
            let Some(encoded) = plan.encode(&span, &mut bodies) else { return Ok(()) };
            request.push(&span, &encoded, usize::MAX);
            preview.spans += 1;
            Ok(())
        })?;
        for text in resources(plan.signal, &request.finish())? {
            preview.count_redacted(&text);
            out.write_all(separator.as_bytes())?;
            out.write_all(text.as_bytes())?;
            separator = ",";
        }
    }
    out.write_all(b"]}\n")?;
    out.flush()?;
    Ok(preview)
}

/// The resources of a request as documents.
fn resources(signal: Signal, request: &[u8]) -> Result<Vec<String>, FileError> {
    fn texts<T: Serialize>(resources: &[T]) -> Result<Vec<String>, FileError> {
        Ok(resources.iter().map(serde_json::to_string).collect::<Result<_, _>>()?)
    }
    match signal {
        Signal::Logs => texts(&ExportLogsServiceRequest::decode(request)?.resource_logs),
        Signal::Traces | Signal::Metrics => {
            texts(&ExportTraceServiceRequest::decode(request)?.resource_spans)
        }
    }
}

/// Writes a preview for the dashboard: what the destination with this name would get of the given session, or of the
/// last one.
pub(crate) fn asked(
    settings: Settings,
    destinations: Vec<Destination>,
) -> impl Fn(&Connection, &str, Option<&str>) -> rusqlite::Result<Option<Vec<u8>>> {
    move |db, name, root| {
        let found = destinations.iter().find(|one| one.name == name);
        let Some(destination) = found else { return Ok(None) };
        let row = match root {
            Some(root) => read::session(db, root)?
                .map(|session| SessionRow { root: root.to_owned(), last: session.last_at }),
            None => whole::last_session(db)?,
        };
        let Some(row) = row else { return Ok(None) };
        let mut bytes = Vec::new();
        match write(db, destination, &settings, &[row], &mut bytes) {
            Err(FileError::Store(error)) => Err(error),
            // Writing to memory does not fail, and our own values are valid JSON.
            _ => Ok(Some(bytes)),
        }
    }
}

impl Preview {
    fn count_redacted(&mut self, text: &str) {
        for after in text.split(MARK).skip(1) {
            if let Some((rule, _)) = after.split_once(':') {
                *self.redacted.entry(rule.to_owned()).or_default() += 1;
            }
        }
    }
}
