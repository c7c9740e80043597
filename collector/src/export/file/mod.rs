//! Writes sessions to files: either spans, with the same encoder as for a destination, or the raw log.
//!
//! Everything is written session by session, so that memory contains only one session at a time, even with `--all`.

mod chrome;
mod html;
mod jsonl;

use std::io::Write;

use hookspan_core::content;
use hookspan_core::{ContentRef, Span};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use rusqlite::Connection;

use super::otlp::{Encoding, Request};
use crate::config::destination::ContentPolicy;
use crate::store::bodies::Bodies;
use crate::store::whole::{self, SessionRow};

/// Form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One `{"resourceSpans": […]}` document.
    OtlpJson,
    /// One `ExportTraceServiceRequest`.
    OtlpProto,
    /// Chrome trace events.
    ChromeTrace,
    /// The raw log, one hook a line.
    Jsonl,
    /// One page.
    Html,
}

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// The store.
    #[error("the database cannot be read: {0}")]
    Store(#[from] rusqlite::Error),
    /// The output.
    #[error("the output cannot be written: {0}")]
    Output(#[from] std::io::Error),
    /// What was encoded for the output cannot be read back, to be written in another form.
    #[error("an encoded span cannot be read: {0}")]
    Encoded(#[from] prost::DecodeError),
    /// The output failed inside a JSON writer.
    #[error("the output cannot be written: {0}")]
    Json(#[from] serde_json::Error),
}

/// The selection to write.
#[derive(Debug)]
pub(crate) struct Selection<'a> {
    /// The store, read-only.
    pub db: &'a Connection,
    /// Roots of the sessions, in this order.
    pub sessions: &'a [SessionRow],
    /// Whether everything is selected, including hooks without a session.
    pub all: bool,
    /// How spans are written.
    pub encoding: &'a Encoding,
}

/// Writes the selection to `out` and calls `done` after each session.
///
/// # Errors
/// The store cannot be read, or the output cannot be written.
pub(crate) fn write(
    selection: &Selection<'_>,
    format: Format,
    out: &mut dyn Write,
    done: &mut dyn FnMut(),
) -> Result<(), FileError> {
    match format {
        Format::OtlpJson => otlp_json(selection, out, done)?,
        Format::OtlpProto => otlp_proto(selection, out, done)?,
        Format::ChromeTrace => chrome::write(selection, out, done)?,
        Format::Jsonl => jsonl::write(selection, out, done)?,
        Format::Html => html::write(selection, out, done)?,
    }
    out.flush()?;
    Ok(())
}

fn otlp_json(
    selection: &Selection<'_>,
    out: &mut dyn Write,
    done: &mut dyn FnMut(),
) -> Result<(), FileError> {
    out.write_all(b"{\"resourceSpans\":[")?;
    let mut separator: &[u8] = b"";
    for session in selection.sessions {
        let request = request(selection, session)?.finish();
        for resource in ExportTraceServiceRequest::decode(&*request)?.resource_spans {
            out.write_all(separator)?;
            separator = b",";
            serde_json::to_writer(&mut *out, &resource)?;
        }
        done();
    }
    out.write_all(b"]}\n")?;
    Ok(())
}

/// Messages of Protocol Buffers can be concatenated: several requests in a row are one request.
fn otlp_proto(
    selection: &Selection<'_>,
    out: &mut dyn Write,
    done: &mut dyn FnMut(),
) -> Result<(), FileError> {
    for session in selection.sessions {
        out.write_all(&request(selection, session)?.finish())?;
        done();
    }
    Ok(())
}

fn request<'a>(selection: &Selection<'a>, session: &SessionRow) -> Result<Request<'a>, FileError> {
    let mut request = Request::new(selection.encoding);
    spans(selection, session, |span, encoded| {
        request.push(span, &encoded, usize::MAX);
        Ok(())
    })?;
    Ok(request)
}

/// Calls `each` for every span of a session, with the span as stored and as encoded.
fn spans(
    selection: &Selection<'_>,
    session: &SessionRow,
    mut each: impl FnMut(&Span, Vec<u8>) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let mut bodies = Bodies::new(selection.db);
    let mut read = |part: &ContentRef| content::extract(part.field, bodies.get(part.hook)?);
    whole::spans_of(selection.db, &session.root, |span| {
        let encoded = selection.encoding.bytes_until(&span, session.last, &mut read);
        each(&span, encoded)
    })
}

/// The policy's words, for the headings of files.
const fn policy(content: ContentPolicy) -> &'static str {
    match content {
        ContentPolicy::Off => "off",
        ContentPolicy::Metadata => "metadata",
        ContentPolicy::Full => "full",
    }
}

#[cfg(test)]
mod tests;
