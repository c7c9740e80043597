//! A batch on its way into the store. A batch that the database refuses is kept and tried again.

use hookspan_core::sessions::Question;
use hookspan_core::{Sessions, Timestamp};

use super::feed::{drain, feed};
use super::{CLOCK_STEPS, DUPLICATE_CONTENT, Engine, SESSION_EVICTED, SESSION_FULL, STRAGGLER_NS};
use crate::clock;
use crate::store::write::{Arrival, Changes, Committed, ImportCounts, Transaction};

/// Hooks that are committed together, and the state that is committed with them.
#[derive(Debug, Default)]
pub struct Batch {
    /// The hooks, in order.
    pub arrivals: Vec<Arrival>,
    /// Position up to which the journal is committed with them.
    pub position: Option<String>,
    /// The import they belong to.
    pub import: Option<ImportStep>,
    /// How far the fold's time may advance after the batch.
    pub horizon: Horizon,
    /// Counters of the reader: torn frames, cut records ...
    pub counts: Vec<(&'static str, u64)>,
    /// Counters that another file keeps (losses by reason), with their current values.
    pub gauges: Vec<(String, u64)>,
}

/// How far the fold's time may advance. All input that is older must have been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Horizon {
    /// Not at all, because older input may still arrive.
    #[default]
    Still,
    /// Up to this time.
    At(Timestamp),
    /// All input was seen at this time: the journal was read to its end, and nothing was being imported. The batch may
    /// be committed long after this time.
    End(Timestamp),
}

impl Horizon {
    /// Whether no input waits behind the batch.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(self, Self::End(_))
    }
}

/// The import that a batch belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportStep {
    /// Its id in `import_run`.
    pub run: String,
    /// The import's lines up to the end of this batch.
    pub lines: u64,
    /// Whether this is its last batch.
    pub done: bool,
    /// Why the rest of the import could not be read.
    pub error: Option<String>,
}

/// Result of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of hooks by result.
    pub counts: ImportCounts,
}

/// A batch, and how many of its hooks the fold has processed. A refused transaction is repeated, but its hooks are not
/// folded again.
pub(super) struct Work {
    batch: Batch,
    folded: usize,
    /// Duplicate hooks: an equal hook arrived within a few seconds.
    doubled: u64,
    /// Number of hooks before which the clock was set.
    stepped: u64,
    /// Number of hooks whose session was full.
    left_out: u64,
    passed: bool,
    changes: Changes,
    counts: ImportCounts,
}

impl Work {
    pub(super) fn new(batch: Batch) -> Self {
        Self {
            batch,
            folded: 0,
            doubled: 0,
            stepped: 0,
            left_out: 0,
            passed: false,
            changes: Changes::default(),
            counts: ImportCounts::default(),
        }
    }

    /// Whether more of the journal waits behind this batch.
    pub(super) fn is_behind(&self) -> bool {
        let Batch { position, horizon, import, .. } = &self.batch;
        position.is_some() && import.is_none() && matches!(horizon, Horizon::At(_))
    }

    pub(super) fn take_questions(&mut self) -> Vec<Question> {
        self.changes.take_questions()
    }

    /// Counts hooks by their places in the raw log.
    fn count(&mut self, places: &[Option<u64>]) {
        self.counts = ImportCounts::default();
        for (arrival, place) in self.batch.arrivals.iter().zip(places) {
            match place {
                None => self.counts.duplicate += 1,
                Some(_) if arrival.reading.malformed => self.counts.malformed += 1,
                Some(_) => self.counts.new += 1,
            }
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        Outcome { counts: self.counts }
    }
}

impl Engine {
    pub(super) fn try_take(&mut self, work: &mut Work) -> rusqlite::Result<Committed> {
        let Self { store, sessions, evicted, absent, doubles, steps, .. } = self;
        let ((), committed) = store.transaction(|open| {
            let now = clock::now();
            open.set_state("alive_ns", &now.0.to_string())?;
            let places = open.hooks(&work.batch.arrivals)?;
            work.count(&places);
            for (index, place) in places.into_iter().enumerate() {
                if let Some(seq) = place {
                    let arrival = &mut work.batch.arrivals[index];
                    open.arrived(arrival, now)?;
                    if index >= work.folded {
                        work.doubled += u64::from(doubles.note(arrival));
                        work.stepped += u64::from(steps.note(&arrival.hook));
                        let event = &mut arrival.event;
                        work.left_out +=
                            feed(sessions, absent, &mut work.changes, open, seq, event)?;
                    }
                }
                // The fold has the hook now, whether or not the transaction is committed.
                work.folded = work.folded.max(index + 1);
            }
            pass(sessions, work);
            drain(sessions, &mut work.changes);
            if work.doubled > 0 {
                open.count(DUPLICATE_CONTENT, work.doubled);
            }
            if work.stepped > 0 {
                open.count(CLOCK_STEPS, work.stepped);
            }
            if work.left_out > 0 {
                open.count(SESSION_FULL, work.left_out);
            }
            let left = sessions.evicted().saturating_sub(*evicted);
            if left > 0 {
                open.count(SESSION_EVICTED, left);
            }
            finish(open, work)
        })?;
        Ok(committed)
    }
}

fn pass(sessions: &mut Sessions, work: &mut Work) {
    if std::mem::replace(&mut work.passed, true) {
        return;
    }
    match work.batch.horizon {
        Horizon::Still => {}
        Horizon::At(at) => sessions.handle_deadline(at),
        Horizon::End(at) => sessions.handle_deadline(at.plus(-STRAGGLER_NS)),
    }
}

fn finish(open: &mut Transaction<'_>, work: &Work) -> rusqlite::Result<()> {
    open.changes(&work.changes)?;
    let batch = &work.batch;
    if let Some(position) = &batch.position {
        open.set_state("journal", position)?;
    }
    if let Some(step) = &batch.import {
        open.import_run(&step.run, &work.counts, step.done, step.error.as_deref())?;
        open.set_state("import", &format!("{} {}", step.run, step.lines))?;
    }
    for (key, by) in &batch.counts {
        open.count(*key, *by);
    }
    for (key, value) in &batch.gauges {
        open.set_counter(key, *value)?;
    }
    if batch.horizon.is_end() {
        open.end_rebuild()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_journal_holds_and_has_more_of_is_committed_in_haste() {
        let behind = |position: Option<&str>, import: Option<ImportStep>, horizon: Horizon| {
            let position = position.map(str::to_owned);
            Work::new(Batch { position, import, horizon, ..Batch::default() }).is_behind()
        };
        let (at, step) = (
            Horizon::At(Timestamp(7)),
            ImportStep { run: "r".into(), lines: 1, done: false, error: None },
        );
        assert!(behind(Some("p"), None, at));
        assert!(!behind(Some("p"), None, Horizon::End(Timestamp(7))), "the end of the journal");
        assert!(!behind(None, None, at), "a salvage, whose source may be looked at once");
        assert!(!behind(None, Some(step), at), "an import, whose file goes");
    }
}
