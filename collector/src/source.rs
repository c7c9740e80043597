//! The store as the dashboard sees it.

mod administration;
mod exposition;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use hookspan_core::content::extract;
use hookspan_core::price::{Prices, Usage};
use hookspan_core::{SessionSummary, Span, SpanId, TraceId, TurnSummary};
use hookspan_view::health::JournalHealth;
use hookspan_view::label::with_subject;
use hookspan_view::line::{Line, LineKind};
use hookspan_view::received::AllReceived;
use hookspan_view::source::{
    Audit, COUNTED_MAX, EDGES_MAX, Failure, Files, Found, Gap, HeatCell, Hit, InstallStep,
    LOOKED_AT_MAX, LatencyRow, LineFilter, Lines, Marks, Position, Privacy, ProjectWork, Query,
    SavedFilter, Search, SessionFilter, SessionMarks, Sessions, Spans, Spent, Statistics, Totals,
    Touch, Touched, WantedFiles,
};
use hookspan_view::subject::{field_of, subject};
use hookspan_view::{Result, SourceError};
use rusqlite::Connection;

use crate::export::resource::ResourceBase;
use crate::redaction::Redaction;
use crate::search::{Handle, query};
use crate::store::damage::Suspicion;
use crate::store::open::{OpenError, Readers};
use crate::store::read::lines::Found as FoundLine;
use crate::store::{bodies, marks, read, received, search};

/// Maximum number of cached subjects, of about a hundred bytes each. They stay valid, because a raw hook never changes.
const SUBJECTS_MAX: usize = 100_000;
/// Maximum number of subjects read from raw hooks for one answer. Further lines are labelled by their names, and the
/// next answer continues.
const SUBJECTS_PER_READ: usize = 4_000;

/// Asks how the journal is doing.
pub(crate) type AskJournal = Box<dyn Fn() -> JournalHealth + Send + Sync>;

/// [`hookspan_view::Source`] over the database.
pub struct StoreSource {
    database: PathBuf,
    readers: Readers,
    journal: AskJournal,
    /// Endpoint host by destination.
    hosts: HashMap<String, String>,
    /// The subject of a hook's call, by the number of the hook.
    subjects: Mutex<HashMap<u64, Option<Arc<str>>>>,
    extras: Extras,
    /// The sums of the last `/metrics` answer.
    told: exposition::Told,
    /// Modification time of the hook program that was checked last, and its version.
    shim: Mutex<Option<(SystemTime, String)>>,
}

/// Facts and requests that only a running collector provides.
#[derive(Default)]
pub struct Extras {
    /// Other places where a span can be viewed: name and template of the address.
    pub links: Vec<(String, String)>,
    /// What is stored. Counts are filled in later.
    pub privacy: Privacy,
    /// What remains to be done until hooks arrive.
    pub install: Option<AskInstall>,
    /// Resource of exported files.
    pub resource: ResourceBase,
    /// Redacts secrets in exported files.
    pub redaction: Redaction,
    /// Previews what a destination would get.
    pub preview: Option<AskPreview>,
    /// Prices of tokens.
    pub prices: Prices,
    /// The search index's file.
    pub search_path: Option<PathBuf>,
    /// The indexer that fills it.
    pub search: Option<Handle>,
    /// Where the hook program is or will be installed.
    pub shim: PathBuf,
    /// Receives reports of damage from pages. The writer never notices damage in rows that it does not write.
    pub suspicion: Suspicion,
    /// The audit log.
    pub audit: Option<AskAudit>,
    /// Adds an entry about an exported file to the audit log.
    pub note_export: Option<NoteExport>,
}

/// Shows what a destination would get. Takes the database, the destination, and the root of a session (or none for the
/// last one). Returns `None` if there is no such destination or session.
pub(crate) type AskPreview =
    Box<dyn Fn(&Connection, &str, Option<&str>) -> rusqlite::Result<Option<Vec<u8>>> + Send + Sync>;

/// Asks for the audit log.
pub(crate) type AskAudit = Box<dyn Fn() -> Result<Audit> + Send + Sync>;

/// Takes the text of an audit entry about an exported file.
pub(crate) type NoteExport = Box<dyn Fn(&str) + Send + Sync>;

/// Asks what is left to install.
pub(crate) type AskInstall = Box<dyn Fn() -> Vec<InstallStep> + Send + Sync>;

impl std::fmt::Debug for StoreSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreSource").field("database", &self.database).finish_non_exhaustive()
    }
}

impl StoreSource {
    /// A source for `database`. `hosts`: host and port of each configured destination, without path and user.
    #[must_use]
    pub fn new(
        database: &Path,
        journal: AskJournal,
        hosts: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        Self {
            database: database.to_owned(),
            readers: Readers::new(database),
            journal,
            hosts: hosts.into_iter().collect(),
            subjects: Mutex::default(),
            told: exposition::Told::new(),
            extras: Extras::default(),
            shim: Mutex::default(),
        }
    }

    /// The same source, with what only a running collector knows.
    #[must_use]
    pub fn with(self, extras: Extras) -> Self {
        let readers = self.readers.reporting(&extras.suspicion);
        Self { readers, extras, ..self }
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        self.readers.with(read).map_err(|error| failed(&error))
    }

    /// Like [`Self::read`], but returns `empty` if no hook has been collected yet.
    fn read_or<T>(
        &self,
        empty: T,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        match self.readers.with(read) {
            Err(OpenError::Missing(_)) => Ok(empty),
            result => result.map_err(|error| failed(&error)),
        }
    }

    /// The line with its complete label. Reads the label's subject from the raw hook if the writer did not have it in
    /// memory.
    fn line(
        &self,
        db: &Connection,
        found: FoundLine,
        budget: &mut usize,
    ) -> rusqlite::Result<Line> {
        let FoundLine { mut line, subject, .. } = found;
        if let Some(hook) = subject
            && let Some(subject) = self.subject(db, hook, line.kind, budget)?
        {
            line.label = with_subject(&line.label, &subject);
        }
        Ok(line)
    }

    /// The subject of a call, from the hook that contains its input.
    fn subject(
        &self,
        db: &Connection,
        hook: u64,
        kind: LineKind,
        budget: &mut usize,
    ) -> rusqlite::Result<Option<Arc<str>>> {
        if let Some(known) = self.subjects().get(&hook) {
            return Ok(known.clone());
        }
        if *budget == 0 {
            return Ok(None);
        }
        *budget -= 1;
        let body = bodies::body(db, hook)?;
        let found =
            body.and_then(|body| extract(field_of(kind), &body)).and_then(|one| subject(&one));
        let found: Option<Arc<str>> = found.map(Into::into);
        let mut subjects = self.subjects();
        if subjects.len() >= SUBJECTS_MAX {
            subjects.clear();
        }
        subjects.insert(hook, found.clone());
        Ok(found)
    }

    fn subjects(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Option<Arc<str>>>> {
        self.subjects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lines_of(
        &self,
        db: &Connection,
        root: &str,
        since: Option<u64>,
        limit: usize,
    ) -> rusqlite::Result<Lines> {
        let mut budget = SUBJECTS_PER_READ;
        let found = read::lines::of_session(db, root, since, limit)?;
        let lines = found.into_iter().map(|found| self.line(db, found, &mut budget));
        let lines = lines.collect::<rusqlite::Result<_>>()?;
        let rev = read::position(db)?.rev;
        Ok(Lines { lines, total: read::span_count(db, root)?, rev })
    }

    fn rooted(
        &self,
        db: &Connection,
        found: Vec<(String, FoundLine)>,
    ) -> rusqlite::Result<Vec<(String, Line)>> {
        let mut budget = SUBJECTS_PER_READ;
        let line = |(root, found)| Ok((root, self.line(db, found, &mut budget)?));
        found.into_iter().map(line).collect()
    }
}

impl Sessions for StoreSource {
    fn position(&self) -> Result<Position> {
        self.read_or(Position { epoch: "0".to_owned(), rev: 0 }, read::position)
    }

    fn changed(&self, since: u64, limit: usize) -> Result<Vec<SessionSummary>> {
        self.read_or(Vec::new(), |db| read::changed(db, since, limit))
    }

    fn sessions(
        &self,
        filter: &SessionFilter,
        before: Option<(i64, String)>,
        limit: usize,
    ) -> Result<Vec<SessionSummary>> {
        self.read_or(Vec::new(), |db| read::sessions(db, filter, before.as_ref(), limit))
    }

    fn session(&self, root: &str) -> Result<Option<SessionSummary>> {
        self.read_or(None, |db| read::session(db, root))
    }

    fn turns(&self, root: &str) -> Result<Vec<TurnSummary>> {
        self.read(|db| read::turns(db, root))
    }

    fn usage_of(&self, root: &str) -> Result<Vec<(Option<String>, Usage)>> {
        self.read_or(Vec::new(), |db| read::usage_of(db, root))
    }
}

impl Marks for StoreSource {
    fn marks(&self, roots: &[&str]) -> Result<HashMap<String, SessionMarks>> {
        self.read_or(HashMap::new(), |db| marks::all_of(db, roots))
    }

    fn saved_filters(&self) -> Result<Vec<SavedFilter>> {
        self.read_or(Vec::new(), marks::filters)
    }
}

impl Spans for StoreSource {
    fn lines(&self, root: &str, since: Option<u64>, limit: usize) -> Result<Lines> {
        self.read(|db| self.lines_of(db, root, since, limit))
    }

    fn span_of(&self, root: &str, id: SpanId) -> Result<Option<(i64, Span)>> {
        self.read_or(None, |db| read::span_of(db, root, id))
    }

    fn span(&self, id: SpanId) -> Result<Option<(i64, Span)>> {
        self.read_or(None, |db| read::span(db, id))
    }

    fn span_row(&self, row: i64) -> Result<Option<(i64, Span)>> {
        self.read_or(None, |db| read::span_row(db, row))
    }

    fn spans_of(&self, root: &str, kinds: &[LineKind], limit: usize) -> Result<Vec<(i64, Span)>> {
        self.read_or(Vec::new(), |db| read::lines::spans_of(db, root, kinds, limit))
    }

    fn received(&self, root: Option<&str>, limit: usize) -> Result<AllReceived> {
        self.read_or(AllReceived::default(), |db| match root {
            Some(root) => received::read::of_session(db, root, limit),
            None => received::read::apart(db, limit),
        })
    }

    fn trace(&self, trace: TraceId) -> Result<Option<(String, SpanId)>> {
        self.read_or(None, |db| read::trace(db, trace))
    }

    fn latest(&self, before: Option<i64>, limit: usize) -> Result<Vec<(String, Line)>> {
        self.read_or(Vec::new(), |db| self.rooted(db, read::lines::latest(db, before, limit)?))
    }

    fn matching(
        &self,
        filter: &LineFilter,
        before: Option<(i64, i64)>,
        limit: usize,
    ) -> Result<Vec<(String, Line)>> {
        self.read_or(Vec::new(), |db| {
            self.rooted(db, read::lines::matching(db, filter, before, limit)?)
        })
    }

    fn open_call(&self, root: &str) -> Result<Option<Line>> {
        self.read_or(None, |db| {
            let call = read::lines::open_call(db, root)?;
            call.map(|found| self.line(db, found, &mut 1)).transpose()
        })
    }

    fn failures(&self, filter: &LineFilter, limit: usize) -> Result<Vec<Failure>> {
        self.read_or(Vec::new(), |db| {
            let mut budget = SUBJECTS_PER_READ;
            let found = read::lines::failures(db, filter, limit)?.into_iter();
            let failure = |read::lines::Failed { root, found, message, path }| {
                Ok(Failure { root, line: self.line(db, found, &mut budget)?, message, path })
            };
            found.map(failure).collect()
        })
    }

    fn body(&self, seq: u64) -> Result<Option<Vec<u8>>> {
        self.read(|db| bodies::body(db, seq))
    }

    fn exports(&self, row: i64) -> Result<Vec<(String, String)>> {
        self.read(|db| read::exports(db, row))
    }
}

impl Files for StoreSource {
    fn files(&self, wanted: &WantedFiles) -> Result<Touched> {
        self.read_or(Touched::default(), |db| read::files(db, wanted, LOOKED_AT_MAX))
    }

    fn touches(
        &self,
        project: &str,
        path: &str,
        period: (i64, i64),
        limit: usize,
    ) -> Result<Vec<Touch>> {
        self.read_or(Vec::new(), |db| read::touches(db, (project, path), period, limit))
    }
}

impl Statistics for StoreSource {
    fn totals(&self, from_ns: i64) -> Result<Totals> {
        self.read_or(Totals::default(), |db| read::totals(db, from_ns))
    }

    fn usage(&self, from_ns: i64) -> Result<Vec<(Option<String>, Usage)>> {
        self.read_or(Vec::new(), |db| read::usage(db, from_ns))
    }

    fn prices(&self) -> &Prices {
        &self.extras.prices
    }

    fn latency(&self, dimension: &str, days: (i64, i64)) -> Result<Vec<LatencyRow>> {
        self.read_or(Vec::new(), |db| read::latency(db, dimension, days))
    }

    fn latency_between(
        &self,
        dimension: &str,
        between: (i64, i64),
    ) -> Result<Option<Vec<LatencyRow>>> {
        let none = Some(Vec::new());
        self.read_or(none, |db| read::latency_between(db, dimension, between, EDGES_MAX))
    }

    fn heat(
        &self,
        dimension: &str,
        name: Option<&str>,
        hours: (i64, i64),
        daily: bool,
    ) -> Result<Vec<HeatCell>> {
        self.read_or(Vec::new(), |db| read::heat(db, dimension, name, hours, daily))
    }

    fn latency_of(&self, dimension: &str, filter: &LineFilter) -> Result<Option<Vec<LatencyRow>>> {
        self.read_or(Some(Vec::new()), |db| read::latency_of(db, dimension, filter, COUNTED_MAX))
    }

    fn heat_of(
        &self,
        dimension: &str,
        name: Option<&str>,
        filter: &LineFilter,
        daily: bool,
    ) -> Result<Option<Vec<HeatCell>>> {
        let empty = Some(Vec::new());
        self.read_or(empty, |db| read::heat_of(db, dimension, name, filter, daily, COUNTED_MAX))
    }

    fn spent(&self, edges: &[i64]) -> Result<Vec<Spent>> {
        self.read_or(Vec::new(), |db| read::spent(db, edges))
    }

    fn spent_of(&self, edges: &[i64], filter: &LineFilter) -> Result<Option<Vec<Spent>>> {
        self.read_or(Some(Vec::new()), |db| read::spent_of(db, edges, filter, COUNTED_MAX))
    }

    fn work(&self, between: (i64, i64)) -> Result<Vec<ProjectWork>> {
        self.read_or(Vec::new(), |db| read::work(db, between))
    }

    fn older(&self, dimension: &str, before: i64) -> Result<Option<(i64, u64)>> {
        self.read_or(None, |db| read::older(db, dimension, before))
    }

    fn gaps(&self, from_ns: i64, limit: usize) -> Result<Vec<Gap>> {
        self.read_or(Vec::new(), |db| read::gaps(db, from_ns, limit))
    }
}

impl Search for StoreSource {
    fn search(&self, query: &Query, before: Option<i64>, limit: usize) -> Result<Found> {
        let failed = |error: rusqlite::Error| SourceError(error.to_string());
        let path = self.extras.search_path.as_deref();
        let index = match path {
            Some(path) => search::reader(path).map_err(failed)?,
            None => None,
        };
        let Some(index) = index else { return Ok(Found::default()) };
        self.read_or(Found::default(), |db| {
            let mut lines = HashMap::new();
            let mut budget = SUBJECTS_PER_READ;
            let found = query::search(&index, query, before, limit, |doc| {
                // A span that is missing, or that the filter excludes, does not count as a hit.
                let Ok(Some((root, found))) =
                    read::lines::of_span(db, &doc.root, doc.span, &query.filter)
                else {
                    return false;
                };
                let Ok(line) = self.line(db, found, &mut budget) else { return false };
                lines.insert(doc.id, (root, line));
                true
            })?;
            let hit = |hit: query::TextHit| {
                let (root, line) = lines.remove(&hit.id)?;
                Some(Hit { root, line, field: hit.field, text: hit.text, marks: hit.marks })
            };
            Ok(Found {
                hits: found.hits.into_iter().filter_map(hit).collect(),
                next: found.next,
                total: Some(found.total)
                    .filter(|_| query.filter.is_empty() && query.field.is_none()),
                total_is_more: found.total_is_more,
                lag: self.extras.search.as_ref().map_or(0, Handle::lag),
            })
        })
    }
}

fn failed(error: &OpenError) -> SourceError {
    SourceError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::write::Store;

    #[test]
    fn damage_that_only_a_page_reads_is_told() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("hookspan.db");
        drop(Store::open(&path).unwrap());
        let (suspicion, heard) = Suspicion::heard();
        let source = || {
            let journal: AskJournal = Box::new(JournalHealth::default);
            let extras = Extras { suspicion: suspicion.clone(), ..Extras::default() };
            StoreSource::new(&path, journal, []).with(extras)
        };
        source().changed(0, 10).unwrap();
        assert!(heard.is_empty());

        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4_096..].fill(0xa5);
        std::fs::write(&path, bytes).unwrap();
        source().changed(0, 10).unwrap_err();
        source().changed(0, 10).unwrap_err();
        assert_eq!(heard.len(), 1);
    }
}
