//! The spans of a transaction: written, and once they are final queued for export and counted.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use hookspan_core::{Span, SpanId, SpanKey};
use rusqlite::Connection;

use super::derived::{self, Place, SpanRows};
use super::names::Names;
use super::reach::Reach;
use super::settled_turn::SettledTurn;
use super::sketches::{Counted, Sketches};
use super::subjects::Subjects;
use super::{Committed, Marks, Store, replay};

/// Spans whose settling is expected: those of the last seconds, 200 to 300 bytes each. Of others the row is read.
const ENDING: usize = 65_536;

/// Spans that have ended and not settled, as far as they were written lately.
pub(super) type Ending = HashMap<SpanId, (Place, Counted), RandomState>;

/// What writing a span takes of the store.
pub(super) struct Spans<'a> {
    db: &'a Connection,
    rows: SpanRows<'a>,
    names: &'a mut Names,
    subjects: &'a Subjects,
    ending: &'a mut Ending,
    sketches: &'a mut Sketches,
    reach: &'a mut Reach,
    marks: &'a mut Marks,
    committed: &'a mut Committed,
}

impl<'a> Spans<'a> {
    pub(super) fn open(
        store: &'a mut Store,
        committed: &'a mut Committed,
    ) -> rusqlite::Result<Self> {
        let Store { db, names, subjects, ending, sketches, reach, marks, .. } = store;
        let rows = SpanRows::open(db)?;
        Ok(Self { db, rows, names, subjects, ending, sketches, reach, marks, committed })
    }

    /// Writes a span. Says which turn it is when it has just settled.
    pub(super) fn write(&mut self, span: &Span) -> rusqlite::Result<Option<SettledTurn>> {
        let place = self.rows.write(self.names, self.marks.rev, span, &self.subjects.of(span))?;
        self.committed.add(&span.root, 1);
        let counted = Counted::of(span);
        if !span.settled {
            if !place.known {
                self.rows.unsettled(place)?;
            }
            if let Some(counted) = counted {
                if self.ending.len() >= ENDING {
                    self.ending.clear();
                }
                self.ending.insert(span.id, (place, counted));
            }
            return Ok(None);
        }
        self.ending.remove(&span.id);
        if place.known && !self.rows.finish(place)? {
            // It had settled: it keeps its place, and counts once.
            return Ok(None);
        }
        self.settled(span.id, place, counted)
    }

    /// Notes that a stored span is final. Nothing that a page shows of it changes, so its revision stays. Says which turn it
    /// is.
    pub(super) fn settle(&mut self, key: &SpanKey) -> rusqlite::Result<Option<SettledTurn>> {
        if let Some((place, counted)) = self.ending.remove(&key.id)
            && self.rows.finish(place)?
        {
            return self.settled(key.id, place, Some(counted));
        }
        // Written long ago, or since then bound to another root.
        let Some(place) = derived::place(self.db, self.names, key)? else { return Ok(None) };
        if !self.rows.finish(place)? {
            return Ok(None);
        }
        let counted = Counted::of(&derived::stored(self.db, place.row)?);
        self.settled(key.id, place, counted)
    }

    /// A span has just settled: it takes its place in the export queue, and counts. Says which turn it is.
    fn settled(
        &mut self,
        id: SpanId,
        place: Place,
        counted: Option<Counted>,
    ) -> rusqlite::Result<Option<SettledTurn>> {
        let before = if self.marks.rebuilding { replay::take_place(self.db, id)? } else { None };
        let seq = before.unwrap_or_else(|| {
            self.marks.settled += 1;
            self.marks.settled
        });
        self.rows.queue(seq, place)?;
        self.committed.settled = true;
        let Some(mut counted) = counted else { return Ok(None) };
        let turn = counted.take_turn();
        self.reach.add(&counted.reached);
        self.sketches.count(self.db, counted)?;
        Ok(turn)
    }
}
