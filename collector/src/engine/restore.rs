//! Brings the fold to the store's state, at the start and for a rebuild.

use std::collections::BTreeMap;
use std::sync::Arc;

use hookspan_core::{Change, Reader, Sessions, SpanKey, Timestamp};
use hookspan_view::subject::subject_field;

use super::feed::{blocks, drain, feed, replay_one};
use super::{Engine, Stopped};
use crate::store::write::{Changes, Committed, Reading};

/// Hooks per transaction of a replay.
const BLOCK: usize = 1_000;

impl Engine {
    /// Replays the conversations that were open at the last commit, so that a restart changes no result. The store
    /// already has the resulting changes.
    ///
    /// # Errors
    ///
    /// [`Stopped`] if the database refuses until the program ends.
    pub fn restore(&mut self) -> Result<(), Stopped> {
        let held = self.persist(|engine| engine.store.held())?;
        let fresh = Sessions::new(self.config.clone());
        let (mut sessions, mut reader) =
            (std::mem::replace(&mut self.sessions, fresh), Reader::default());
        let is_long = sessions.is_long(held.len());
        let mut replay = sessions.handle_history();
        for (block, horizon) in blocks(&held, is_long) {
            self.go_on()?;
            for &(seq, _) in block {
                if let Some(hook) = self.persist(|engine| engine.store.hook(seq))? {
                    let event = reader.read(&hook);
                    replay_one(&mut replay, event, |seq| {
                        self.persist(|engine| engine.store.hook(seq))
                    })?;
                }
            }
            if let Some(horizon) = horizon {
                replay.handle_deadline(horizon);
            }
        }
        let mut changes = Changes::default();
        let mut moved = BTreeMap::new();
        for change in replay.finish() {
            match change {
                Change::Bind { conversation, root } => drop(moved.insert(conversation, root)),
                change => changes.push(change),
            }
        }
        // Links are searched at other times than before the stop, so a child without a parent may have one now.
        let mut any_moved = false;
        for (conversation, root) in moved.into_iter().filter(|(own, root)| own != root) {
            let own = self.persist(|engine| engine.store.spans_alone(&conversation))?;
            let Some(spans) = own else { continue };
            any_moved = true;
            changes.push(Change::Bind { conversation: Arc::clone(&conversation), root });
            for id in spans {
                let conversation = Arc::clone(&conversation);
                changes.push(Change::Withdraw(SpanKey { id, conversation }));
            }
        }
        // The changes of the replay were not stored. The store has them, except changes that were delayed when the
        // collector stopped, and spans that moved.
        sessions.handle_restart(is_long || any_moved);
        self.sessions = sessions;
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

    /// Folds hooks that are in the raw log and not in the derived tables. Each block is committed, so an interrupted
    /// run continues with the next block. `progress` receives the number of hooks done and of all hooks.
    ///
    /// # Errors
    /// See [`Self::restore`].
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

    /// Folds a block. Returns the number of its hooks.
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
            let Self { store, sessions, absent, .. } = engine;
            store.transaction(|open| {
                if events.is_empty() {
                    open.folded_all();
                }
                for (seq, reading, event) in &mut events {
                    open.folded(*seq, reading)?;
                    feed(sessions, absent, &mut changes, open, *seq, event)?;
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
