//! Writes the spans of a transaction. Final spans are also counted and put into the export queue.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use hookspan_core::{Span, SpanId, SpanKey, SpanKind};
use rusqlite::Connection;

use super::derived::{self, Before, Place, SpanRows};
use super::files::Files;
use super::names::Names;
use super::reach::Reach;
use super::sketches::{Counted, Sketches};
use super::subjects::Subjects;
use super::times::Times;
use super::{Committed, Marks, Store, replay};

/// Maximum number of spans that are remembered until they settle (200 to 300 bytes each). For other spans the row is
/// read again.
const ENDING: usize = 65_536;

/// Recently written spans that have ended but not settled.
pub(super) type Ending = HashMap<SpanId, (Place, Counted), RandomState>;

/// The parts of the store that writing a span needs.
pub(super) struct Spans<'a> {
    db: &'a Connection,
    rows: SpanRows<'a>,
    names: &'a mut Names,
    files: &'a mut Files,
    subjects: &'a Subjects,
    ending: &'a mut Ending,
    sketches: &'a mut Sketches,
    reach: &'a mut Reach,
    times: &'a mut Times,
    marks: &'a mut Marks,
    committed: &'a mut Committed,
}

impl<'a> Spans<'a> {
    pub(super) fn open(
        store: &'a mut Store,
        committed: &'a mut Committed,
    ) -> rusqlite::Result<Self> {
        let Store { db, names, files, subjects, ending, sketches, reach, times, marks, .. } = store;
        let rows = SpanRows::open(db)?;
        Ok(Self {
            db,
            rows,
            names,
            files,
            subjects,
            ending,
            sketches,
            reach,
            times,
            marks,
            committed,
        })
    }

    /// Writes a span and counts it.
    pub(super) fn write(&mut self, span: &Span) -> rusqlite::Result<()> {
        if span.kind == SpanKind::Generation {
            let turn = self.names.id(self.db, &span.conversation)?;
            self.times.touch(self.db, turn, span.id)?;
        }
        let subject = self.subjects.of(span);
        let unsettled = self.ending.contains_key(&span.id);
        let (place, before) =
            self.rows.write((self.names, self.files), self.marks.rev, span, &subject, unsettled)?;
        self.committed.add(&span.root, 1);
        let counted = Counted::of(span);
        match before {
            // A settled span that changes keeps its place in the export queue.
            Before::Settled(before) => self.count_anew(Counted::of(&before), counted),
            Before::New | Before::Unsettled if span.settled => {
                if matches!(before, Before::Unsettled) {
                    self.ending.remove(&span.id);
                    self.rows.finish(place)?;
                }
                self.settled(span.id, place, counted)
            }
            Before::New => {
                self.rows.unsettled(place)?;
                self.expect(span.id, place, counted);
                Ok(())
            }
            Before::Unsettled => {
                self.expect(span.id, place, counted);
                Ok(())
            }
        }
    }

    /// Remembers the facts by which the span will be counted if it settles unchanged.
    fn expect(&mut self, id: SpanId, place: Place, counted: Option<Counted>) {
        let Some(counted) = counted else {
            self.ending.remove(&id);
            return;
        };
        if self.ending.len() >= ENDING {
            self.ending.clear();
        }
        self.ending.insert(id, (place, counted));
    }

    /// Notes that a stored span is final. Its revision stays the same, because pages show no difference.
    pub(super) fn settle(&mut self, key: &SpanKey) -> rusqlite::Result<()> {
        let expected = self.ending.remove(&key.id);
        if let Some((place, counted)) = expected
            && derived::is_unsettled(self.db, place)?
        {
            return self.finish(key, place, Some(counted));
        }
        // The span was written long ago, or has been bound to another root since.
        let Some(place) = derived::place(self.db, self.names, key)? else { return Ok(()) };
        if !derived::is_unsettled(self.db, place)? {
            return Ok(());
        }
        let counted = Counted::of(&derived::stored(self.db, place.row)?);
        self.finish(key, place, counted)
    }

    fn finish(
        &mut self,
        key: &SpanKey,
        place: Place,
        counted: Option<Counted>,
    ) -> rusqlite::Result<()> {
        if counted.as_ref().is_some_and(Counted::is_turn) {
            let turn = self.names.id(self.db, &key.conversation)?;
            self.times.touch(self.db, turn, key.id)?;
        }
        self.rows.finish(place)?;
        self.settled(key.id, place, counted)
    }

    /// Removes a span and subtracts it from the counts.
    pub(super) fn withdraw(&mut self, key: &SpanKey) -> rusqlite::Result<()> {
        self.ending.remove(&key.id);
        let Some(place) = derived::place(self.db, self.names, key)? else { return Ok(()) };
        let turn = self.names.id(self.db, &key.conversation)?;
        self.times.touch(self.db, turn, key.id)?;
        if !derived::is_unsettled(self.db, place)? {
            let before = Counted::of(&derived::stored(self.db, place.row)?);
            self.count_anew(before, None)?;
        }
        derived::withdraw(self.db, place, key)
    }

    /// Called when a span has just settled: gives it a place in the export queue and counts it.
    fn settled(
        &mut self,
        id: SpanId,
        place: Place,
        counted: Option<Counted>,
    ) -> rusqlite::Result<()> {
        let before = if self.marks.rebuilding { replay::take_place(self.db, id)? } else { None };
        let seq = before.unwrap_or_else(|| {
            self.marks.settled += 1;
            self.marks.settled
        });
        self.rows.queue(seq, place)?;
        self.committed.settled = true;
        match counted {
            Some(counted) => self.count(&counted),
            None => Ok(()),
        }
    }

    /// Updates the sums for a settled span that changed.
    fn count_anew(
        &mut self,
        before: Option<Counted>,
        now: Option<Counted>,
    ) -> rusqlite::Result<()> {
        if before == now {
            return Ok(());
        }
        if let Some(before) = before {
            self.sketches.take_back(self.db, &before)?;
            self.reach.take_back(&before.reached);
        }
        now.map_or(Ok(()), |now| self.count(&now))
    }

    fn count(&mut self, counted: &Counted) -> rusqlite::Result<()> {
        self.reach.add(&counted.reached);
        self.sketches.count(self.db, counted)
    }
}
