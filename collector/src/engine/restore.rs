//! Bringing the fold to where the store is: at start, and for a rebuild.

use hookspan_core::{Change, Event, Reader, Sessions, Timestamp};
use hookspan_view::subject::subject_field;

use super::feed::{drain, feed};
use super::{Engine, STRAGGLER_NS, Stopped};
use crate::store::write::{Changes, Committed, Reading};

/// Hooks per transaction of a replay.
const BLOCK: usize = 1_000;
/// Hooks between two questions whether the program ends.
const ASKED_EVERY: usize = 50;

/// More hooks than this are a long history.
const LONG: usize = 32_768;

/// For each block of hooks how far time may pass after it: to the earliest hook that is still to come.
fn horizons(held: &[(u64, i64)]) -> Vec<Timestamp> {
    let mut earliest = i64::MAX;
    let blocks = held.chunks(ASKED_EVERY).rev().map(|block| {
        let later = earliest;
        earliest = block.iter().map(|(_, at)| *at).fold(earliest, i64::min);
        // After the last block nothing is known to follow.
        if later == i64::MAX { Timestamp(i64::MIN) } else { Timestamp(later).plus(-STRAGGLER_NS) }
    });
    let mut horizons: Vec<Timestamp> = blocks.collect();
    horizons.reverse();
    horizons
}

/// Takes what the fold tells of conversations; what it tells of spans is in the store already.
fn take_questions_and_ends(sessions: &mut Sessions, changes: &mut Changes) {
    while let Some(change) = sessions.poll_change() {
        if matches!(change, Change::Forget(_) | Change::Ask(_)) {
            changes.push(change);
        }
    }
}

impl Engine {
    /// Replays the conversations that were open when the last transaction was committed, so that going on equals never
    /// having stopped. What the fold says meanwhile is in the store already.
    ///
    /// # Errors
    /// [`Stopped`] when the database refuses until the program ends.
    pub fn restore(&mut self) -> Result<(), Stopped> {
        let held = self.persist(|engine| engine.store.held())?;
        // A long history is folded as it happened, time passing with it, so that what is settled leaves memory.
        let is_long = held.len() > LONG;
        let horizons = horizons(&held);
        let (mut reader, mut changes) = (Reader::default(), Changes::default());
        for (block, horizon) in held.chunks(ASKED_EVERY).zip(horizons) {
            self.go_on()?;
            for (seq, _) in block {
                if let Some(hook) = self.persist(|engine| engine.store.hook(*seq))? {
                    self.replay(reader.read(&hook))?;
                }
            }
            if is_long {
                self.sessions.handle_deadline(horizon);
            }
            take_questions_and_ends(&mut self.sessions, &mut changes);
        }
        // What was told meanwhile was not stored. All of it is in the store, except where it was told late before the stop.
        self.sessions.tell_again(is_long);
        drain(&mut self.sessions, &mut changes);
        let questions = changes.take_questions();
        if !changes.is_empty() {
            let committed =
                self.persist(|engine| engine.store.transaction(|open| open.changes(&changes)))?.1;
            self.publish(committed, Vec::new());
        }
        self.publish(Committed { rev: 0, ..Committed::default() }, questions);
        Ok(())
    }

    /// Hands the fold an event of the past, behind the hooks of its turn where that has left memory.
    fn replay(&mut self, event: Event) -> Result<(), Stopped> {
        let missing = self.sessions.missing(&event);
        if !missing.is_empty() {
            let mut hooks = Vec::with_capacity(missing.len());
            for seq in missing {
                hooks.extend(self.persist(|engine| engine.store.hook(seq))?);
            }
            self.sessions.reload(&event);
            let mut reader = Reader::default();
            hooks.iter().for_each(|hook| self.sessions.handle(reader.read(hook)));
            take_questions_and_ends(&mut self.sessions, &mut Changes::default());
            self.sessions.reloaded();
        }
        self.sessions.handle(event);
        Ok(())
    }

    /// Folds what is in the raw log and not yet in the derived tables, in blocks that are each committed: interrupted at
    /// any point, it goes on there. `progress` is told how many hooks are done, and of how many.
    ///
    /// # Errors
    /// As [`Self::restore`].
    pub fn catch_up(&mut self, mut progress: impl FnMut(u64, u64)) -> Result<(), Stopped> {
        if !self.store.is_behind() {
            return Ok(());
        }
        let horizons = self.persist(|engine| engine.store.horizons(BLOCK))?;
        let of = self.persist(|engine| engine.store.unfolded_hooks())?;
        let (mut horizons, mut done) = (horizons.into_iter(), 0);
        while self.store.is_behind() {
            self.go_on()?;
            let horizon = Timestamp(horizons.next().unwrap_or(i64::MIN));
            done += self.fold_block(horizon)?;
            progress(done, of);
        }
        Ok(())
    }

    /// Folds a block. Returns how many hooks it held.
    fn fold_block(&mut self, horizon: Timestamp) -> Result<u64, Stopped> {
        let hooks = self.persist(|engine| engine.store.unfolded(BLOCK))?;
        let mut reader = Reader::default();
        let mut events: Vec<_> = hooks
            .iter()
            .map(|hook| {
                let (event, content) = reader.read_with(hook, subject_field);
                (hook.seq, Reading::of(&event, content.as_ref()), Some(event))
            })
            .collect();
        let mut changes = Changes::default();
        let mut passed = false;
        let ((), committed) = self.persist(|engine| {
            let Self { store, sessions, stateless, .. } = engine;
            store.transaction(|open| {
                if events.is_empty() {
                    open.folded_all();
                }
                for (seq, reading, event) in &mut events {
                    open.folded(*seq, reading)?;
                    feed(sessions, stateless, &mut changes, open, *seq, event)?;
                }
                if !std::mem::replace(&mut passed, true) && horizon.0 != i64::MIN {
                    sessions.handle_deadline(horizon);
                }
                drain(sessions, &mut changes);
                open.changes(&changes)
            })
        })?;
        let questions = changes.take_questions();
        self.publish(committed, questions);
        Ok(events.len() as u64)
    }
}
