//! Full-text search: a thread follows the store and indexes redacted texts; queries read the index.
//!
//! Ingest never waits for the index. Settled spans are indexed in the order of settling, so that none is missed. Unsettled
//! spans are checked whenever their session changes, so that a running turn can be found.

pub(crate) mod query;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvError, RecvTimeoutError, Sender, bounded, never, select};
use hookspan_core::content::{EDIT_CHANGES, Field, extract};
use hookspan_core::{ContentRef, Span};
use hookspan_view::subject::readable;
use rusqlite::Connection;

use crate::redaction::Redaction;
use crate::store::bodies::Bodies;
use crate::store::open::{self, OpenError, Readers};
use crate::store::prune;
use crate::store::read;
use crate::store::search::{Batch, Index};

/// Wait between a commit and indexing it, because more commits may follow.
const LOOK_AFTER: Duration = Duration::from_millis(500);
/// Time between two checks while nothing is committed.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Pause while hooks wait for the store. Indexing would take processor time from them at any priority: indexing a text
/// takes as long as storing ten hooks.
const GIVE_WAY: Duration = Duration::from_millis(250);
/// While hooks wait, only every N-th pause is followed by a step.
const STEP_EVERY: u32 = 8;
/// Spans of one read and one write.
const SPANS: usize = 200;
/// Spans per step while hooks wait.
const SPANS_BETWEEN: usize = 16;
/// Maximum number of waiting deletions. With more, the caller has to wait.
const COMMANDS: usize = 16;
/// Maximum searchable bytes of one text. The rest is only in the span's payload.
const TEXT_MAX_BYTES: usize = 16 * 1_024;
/// Number of bytes after that limit in which secrets are searched, too, so that a secret across the limit is found.
const LOOK_BEHIND_BYTES: usize = 4 * 1_024;

/// The running indexer.
#[derive(Debug)]
pub struct Search {
    path: PathBuf,
    commands: Sender<Command>,
    lag: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

type Deleted = Result<u64, RemoveError>;

/// Why the index still contains what was to be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// There is no indexer.
    #[error("the search index does not run")]
    NotRunning,
    /// There is no index to write to.
    #[error("the search index cannot be opened: {0}")]
    Unopened(OpenError),
    /// The index could not be written.
    #[error(transparent)]
    Index(rusqlite::Error),
}

enum Command {
    Remove(Vec<String>, Sender<Deleted>),
    Clean(Sender<Deleted>),
}

/// The requests that others can make to a running indexer.
#[derive(Clone, Debug)]
pub struct Handle {
    path: PathBuf,
    commands: Sender<Command>,
    lag: Arc<AtomicU64>,
}

impl Search {
    /// Starts to index the store of `readers` into the file at `path`. `commits` signals new commits. While `behind`
    /// says that hooks wait, only a small step is made now and then.
    ///
    /// # Errors
    ///
    /// The system cannot start a thread.
    pub fn start(
        readers: Readers,
        path: &Path,
        redaction: Redaction,
        commits: Receiver<()>,
        behind: Arc<AtomicBool>,
    ) -> std::io::Result<Self> {
        let (commands, inbox) = bounded(COMMANDS);
        // Until the first check, nobody knows whether everything is in the index.
        let lag = Arc::new(AtomicU64::new(1));
        let indexer =
            Indexer { readers, path: path.to_owned(), lag: Arc::clone(&lag), behind, redaction };
        let thread = std::thread::Builder::new()
            .name("search".into())
            .spawn(move || indexer.run(&inbox, commits))?;
        Ok(Self { path: path.to_owned(), commands, lag, thread })
    }

    /// A handle for sending requests to the indexer.
    #[must_use]
    pub fn handle(&self) -> Handle {
        let Self { path, commands, lag, .. } = self;
        Handle { path: path.clone(), commands: commands.clone(), lag: Arc::clone(lag) }
    }

    /// Ends the thread once every [`Handle`] is gone, or at its next check.
    pub fn stop(self) {
        let Self { commands, thread, .. } = self;
        drop(commands);
        if thread.is_finished() && thread.join().is_err() {
            tracing::error!("the search index had failed");
        }
    }
}

impl Handle {
    /// The index's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes that are not in the index yet.
    #[must_use]
    pub fn lag(&self) -> u64 {
        self.lag.load(Ordering::Relaxed)
    }

    /// Deletes these sessions. Returns when no file of the index holds any of them.
    ///
    /// # Errors
    /// [`RemoveError`].
    pub fn delete(&self, roots: &[String]) -> Deleted {
        let deleted = self.remove(roots)?;
        self.clean()?;
        Ok(deleted)
    }

    /// Deletes these sessions. Their words stay in the file until [`Self::clean`]. Use this for several deletions in a
    /// row.
    ///
    /// # Errors
    /// [`RemoveError`].
    pub fn remove(&self, roots: &[String]) -> Deleted {
        self.ask(|answer| Command::Remove(roots.to_vec(), answer))
    }

    /// Removes everything that was deleted from the file as well.
    ///
    /// # Errors
    /// [`RemoveError`].
    pub fn clean(&self) -> Deleted {
        self.ask(Command::Clean)
    }

    fn ask(&self, command: impl FnOnce(Sender<Deleted>) -> Command) -> Deleted {
        let (answer, deleted) = bounded(1);
        self.commands.send(command(answer)).map_err(|_| RemoveError::NotRunning)?;
        deleted.recv().map_err(|_| RemoveError::NotRunning)?
    }
}

impl Command {
    fn refuse(self, error: OpenError) {
        let (Self::Remove(_, answer) | Self::Clean(answer)) = self;
        // The caller may no longer wait for the answer.
        let _sent = answer.send(Err(RemoveError::Unopened(error)));
    }

    fn obey(self, index: &mut Index) {
        let (answer, done) = match self {
            Self::Remove(roots, answer) => (answer, index.remove(&roots)),
            Self::Clean(answer) => (answer, index.clean().map(|()| 0)),
        };
        // The caller may no longer wait for the answer.
        let _sent = answer.send(done.map_err(RemoveError::Index));
    }
}

struct Indexer {
    readers: Readers,
    path: PathBuf,
    lag: Arc<AtomicU64>,
    behind: Arc<AtomicBool>,
    redaction: Redaction,
}

/// How far the store is indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    epoch: String,
    rev: u64,
    settled: i64,
}

/// Why a step was not made.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Index(#[from] rusqlite::Error),
}

impl Indexer {
    fn run(&self, inbox: &Receiver<Command>, mut commits: Receiver<()>) {
        give_way();
        let Some(mut index) = self.open(inbox) else { return };
        let mut gave_way = 0_u32;
        loop {
            gave_way = if self.is_behind() { gave_way + 1 } else { 0 };
            let gives_way = !gave_way.is_multiple_of(STEP_EVERY);
            let step = if gives_way {
                self.note_lag(&index).map(|()| true)
            } else {
                self.step(&mut index)
            };
            let quiet = matches!(step, Ok(false));
            let mut wait = match step {
                Ok(true) if gave_way > 0 => GIVE_WAY,
                Ok(_) => Duration::ZERO,
                Err(StepError::Store(OpenError::Missing(_))) => LOOK_AFTER,
                Err(error) => {
                    tracing::warn!(%error, "the search index cannot go on; trying again");
                    self.mend(&mut index, &error);
                    LOOK_AFTER * 10
                }
            };
            if quiet {
                select! {
                    recv(inbox) -> command => match command {
                        Ok(command) => command.obey(&mut index),
                        Err(RecvError) => return,
                    },
                    recv(commits) -> commit => {
                        if commit.is_err() {
                            commits = never();
                        }
                        wait = LOOK_AFTER;
                    }
                    default(LOOK_EVERY) => {}
                }
            }
            match inbox.recv_timeout(wait) {
                Ok(command) => command.obey(&mut index),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Opens the index, and tries again until that succeeds: the process may have no descriptor left. `None` if the
    /// collector ends.
    fn open(&self, inbox: &Receiver<Command>) -> Option<Index> {
        let mut wait = LOOK_AFTER;
        loop {
            let error = match Index::open(&self.path) {
                Ok(index) => return Some(index),
                Err(error) => error,
            };
            if wait == LOOK_AFTER {
                tracing::warn!(%error, "nothing can be searched; trying again");
            }
            match inbox.recv_timeout(wait) {
                Ok(command) => command.refuse(error),
                Err(RecvTimeoutError::Timeout) => wait = (wait * 2).min(LOOK_EVERY),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// After a failed read, the connection's cached state cannot be trusted. A damaged index is built again.
    fn mend(&self, index: &mut Index, error: &StepError) {
        if let StepError::Index(error) = error
            && open::is_doubtful(error)
            && let Err(error) = index.reopen(&self.path)
        {
            tracing::debug!(%error, "the search index cannot be opened again yet");
        }
    }

    /// Whether hooks wait for the store.
    fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Relaxed)
    }

    /// Indexes the next few spans. Returns true if there may be more at once.
    fn step(&self, index: &mut Index) -> Result<bool, StepError> {
        let now = self.readers.with(read::position)?;
        let mut place = place(index)?;
        let rules = index.meta("rules")?;
        if place.epoch != now.epoch || rules.as_deref() != Some(self.redaction.version()) {
            place = Place { epoch: now.epoch.clone(), rev: 0, settled: 0 };
            *index = renewed(&self.path)?;
            index.batch(|batch| write_place(batch, &place, self.redaction.version()))?;
        }
        self.stay_behind(index, &mut place)?;
        self.look_back(&place)?;
        let most = if self.is_behind() { SPANS_BETWEEN } else { SPANS };
        let settled = self.readers.with(|db| read::settled_after(db, place.settled, most))?;
        if let Some((last, _)) = settled.last() {
            let last = *last;
            let spans: Vec<Span> = settled.into_iter().map(|(_, span)| span).collect();
            place.settled = last;
            self.add(index, &spans, &place)?;
            self.look_back(&place)?;
            return Ok(true);
        }
        if self.is_behind() {
            // Unsettled spans are indexed if there is time, or when they settle.
            return Ok(true);
        }
        if now.rev > place.rev {
            let rows = self.readers.with(|db| read::changed_spans(db, place.rev))?;
            for rows in rows.chunks(SPANS) {
                // Spans that are already indexed are not indexed again.
                if self.is_behind() {
                    return Ok(true);
                }
                let read =
                    |db: &Connection| rows.iter().map(|row| read::span_row(db, *row)).collect();
                let spans: Vec<Option<(i64, Span)>> = self.readers.with(read)?;
                let spans: Vec<Span> = spans.into_iter().flatten().map(|(_, span)| span).collect();
                self.add(index, &spans, &place)?;
            }
            place.rev = now.rev;
            index.batch(|batch| write_place(batch, &place, self.redaction.version()))?;
        }
        self.lag.store(0, Ordering::Relaxed);
        Ok(false)
    }

    /// Goes back to the store's state when it was opened last, once per opening. A power cut may have lost commits that
    /// the index already contains.
    fn stay_behind(&self, index: &mut Index, place: &mut Place) -> Result<(), StepError> {
        let Some((opened, rev, settled)) = self.readers.with(read::opened)? else { return Ok(()) };
        if index.meta("opened")?.as_deref() == Some(&opened) {
            return Ok(());
        }
        place.rev = place.rev.min(rev);
        place.settled = place.settled.min(settled);
        // The collector may have been killed in the middle of a deletion, after the store and before the index.
        let roots = index.roots()?;
        let gone = self.readers.with(|db| prune::without_session(db, roots))?;
        index.delete(&gone)?;
        index.batch(|batch| {
            write_place(batch, place, self.redaction.version())?;
            batch.set_meta("opened", &opened)
        })?;
        Ok(())
    }

    /// Notes how far the index is behind while it waits because of hooks.
    fn note_lag(&self, index: &Index) -> Result<(), StepError> {
        let (now, place) = (self.readers.with(read::position)?, place(index)?);
        let settled = if place.epoch == now.epoch { place.settled } else { 0 };
        self.look_back(&Place { settled, ..place })
    }

    fn look_back(&self, place: &Place) -> Result<(), StepError> {
        let head = self.readers.with(read::last_settled)?;
        self.lag
            .store(head.saturating_sub(place.settled).max(0).cast_unsigned(), Ordering::Relaxed);
        Ok(())
    }

    /// Reads and redacts the texts of `spans`, then writes them together with the place.
    fn add(&self, index: &mut Index, spans: &[Span], place: &Place) -> Result<(), StepError> {
        let wanted = index.batch(|batch| {
            let mut wanted: Vec<(&Span, ContentRef)> = Vec::new();
            for span in spans {
                batch.set_root(span.id, &span.root)?;
                for content in span.contents.iter().filter(|part| part.key != EDIT_CHANGES) {
                    if !batch.has(span.id, content.hook, word(content.field))? {
                        wanted.push((span, content.clone()));
                    }
                }
            }
            Ok(wanted)
        })?;
        let texts = self.readers.with(|db| texts(db, &wanted))?;
        let mut redacted = 0;
        let texts: Vec<_> = texts
            .into_iter()
            .map(|text| {
                let (text, count) = self.redaction.redact(&text);
                redacted += count;
                let mut text = text.into_owned();
                cut(&mut text, TEXT_MAX_BYTES);
                text
            })
            .collect();
        index.batch(|batch| {
            for ((span, content), text) in wanted.iter().zip(&texts) {
                let field = word(content.field);
                if !text.is_empty() && !batch.has(span.id, content.hook, field)? {
                    batch.add(&span.root, span.id, content.hook, field, text)?;
                }
            }
            batch.count("redacted", redacted as u64)?;
            write_place(batch, place, self.redaction.version())
        })?;
        Ok(())
    }
}

/// Lowers the priority of this thread. If hooks arrive faster than the machine can process them, the index falls behind
/// and the store does not.
#[cfg(target_os = "linux")]
fn give_way() {
    // On Linux the priority applies to the thread. If the system refuses, the thread keeps the normal priority.
    let _refused = rustix::process::nice(19);
}

/// On other systems a priority applies to the whole process.
#[cfg(not(target_os = "linux"))]
fn give_way() {}

/// The texts of `wanted`, in the same order; empty if a hook does not hold one.
fn texts(db: &Connection, wanted: &[(&Span, ContentRef)]) -> rusqlite::Result<Vec<String>> {
    let mut bodies = Bodies::new(db);
    let mut texts = Vec::with_capacity(wanted.len());
    for (_, content) in wanted {
        // A damaged body has no text. The damage is reported elsewhere.
        let body = bodies.get(content.hook).unwrap_or_default();
        let mut text = extract(content.field, body)
            .map(readable)
            .map_or_else(String::new, |content| content.text);
        cut(&mut text, TEXT_MAX_BYTES + LOOK_BEHIND_BYTES);
        texts.push(text);
    }
    Ok(texts)
}

fn place(index: &Index) -> rusqlite::Result<Place> {
    let number = |key| {
        Ok::<i64, rusqlite::Error>(index.meta(key)?.and_then(|text| text.parse().ok()).unwrap_or(0))
    };
    Ok(Place {
        epoch: index.meta("epoch")?.unwrap_or_default(),
        rev: number("rev")?.cast_unsigned(),
        settled: number("settled")?,
    })
}

fn write_place(batch: &Batch<'_>, place: &Place, rules: &str) -> rusqlite::Result<()> {
    batch.set_meta("epoch", &place.epoch)?;
    batch.set_meta("rev", &place.rev.to_string())?;
    batch.set_meta("settled", &place.settled.to_string())?;
    batch.set_meta("rules", rules)
}

/// Cuts `text` to `max` bytes or a little less.
fn cut(text: &mut String, max: usize) {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or(0));
}

/// Replaces the index at `path` by an empty one.
fn renewed(path: &Path) -> Result<Index, OpenError> {
    crate::store::search::remove(path)
        .map_err(|source| OpenError::Io { path: path.into(), source })?;
    Index::open(path)
}

/// The name of a text in filters and answers.
const fn word(field: Field) -> &'static str {
    match field {
        Field::Prompt => "prompt",
        Field::Response => "response",
        Field::Thought => "thought",
        Field::ToolInput => "input",
        Field::ToolOutput => "output",
        Field::Task => "task",
        Field::Summary => "result",
        Field::Description => "description",
        Field::McpCommand => "mcp-command",
        Field::ErrorMessage => "error",
    }
}

#[cfg(test)]
mod tests;
