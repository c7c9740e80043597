mod files; // files and what calls did to them
mod periods; // durations, percentiles and failures over days
mod sessions; // lists of sessions: filters, order, pages
mod spans; // spans of one session and of all
mod spent; // time and tokens of turns
mod words; // the words about a session, and what counts as a failure

use std::sync::Arc;

use hookspan_core::{
    Attribute, Change, Class, End, EndReason, Parts, SessionState, Span, SpanKey, SpanKind, Status,
    Timestamp, Tokens, Value,
};
use hookspan_view::line::{Line, LineKind};
use hookspan_view::source::{DayTime, HeatCell, LatencyRow, LineFilter, WantedFiles};
use rusqlite::Connection;

use super::*;
use crate::store::bodies::body;
use crate::store::open::Readers;
use crate::store::prune::Selection;
use crate::store::sample;
use crate::store::write::{Changes, Store};
fn stored(changes: impl IntoIterator<Item = Change>) -> (tempfile::TempDir, Store, Readers) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hookspan.db");
    let mut store = Store::open(&path).unwrap();
    write(&mut store, changes);
    (dir, store, Readers::new(path))
}

fn write(store: &mut Store, changes: impl IntoIterator<Item = Change>) {
    let mut batch = Changes::default();
    changes.into_iter().for_each(|change| batch.push(change));
    store.transaction(|open| open.changes(&batch)).unwrap();
}

fn session_at(root: &str, last_ns: i64) -> Change {
    let mut session = sample::session(root);
    session.last_at = Timestamp(last_ns);
    Change::Session(Box::new(session))
}

fn roots(readers: &Readers, filter: &SessionFilter, before: Option<(i64, String)>) -> Vec<String> {
    let read = |db: &Connection| sessions(db, filter, before.as_ref(), 2);
    readers.with(read).unwrap().into_iter().map(|session| session.root.to_string()).collect()
}
