//! Feeds the fold an event, after any history of the event that the fold has evicted.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hookspan_core::{Event, Hook, Reader, Replay, Sessions, Timestamp};

use super::{STRAGGLER_NS, TURN_RELOADED};
use crate::store::write::{Changes, Transaction};

/// Maximum number of remembered conversations. Beyond it the list starts over.
const MOST: usize = 10_000;

/// Conversations that have no stored history, so that the history is not looked up for each of their hooks.
#[derive(Debug, Default)]
pub(super) struct Stateless(HashSet<Arc<str>, RandomState>);

impl Stateless {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn note(&mut self, conversation: Arc<str>) {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(conversation);
    }
}

/// Feeds the fold the hook at `seq`, which is in the raw log. If the fold has evicted the hook's conversation or turn, its
/// history is replayed first. Takes `event` once the history was read. Returns how many hooks found their session full: one or
/// none.
///
/// # Errors
/// Returns SQLite's error if the history cannot be read. `event` is still there.
pub(super) fn feed(
    sessions: &mut Sessions,
    stateless: &mut Stateless,
    changes: &mut Changes,
    open: &mut Transaction<'_>,
    seq: u64,
    event: &mut Option<Event>,
) -> rusqlite::Result<u64> {
    let Some(conversation) = event.as_ref().map(|event| Arc::clone(&event.conversation)) else {
        return Ok(0);
    };
    if let Some(event) = event
        && sessions.holds(&conversation)
    {
        bring_back(sessions, changes, open, event)?;
    }
    let held = conversation.is_empty() || sessions.holds(&conversation);
    if held {
        stateless.0.remove(&conversation);
    } else if !stateless.0.contains(&conversation) {
        recall(sessions, stateless, changes, open, &conversation, seq)?;
    }
    let before = sessions.left_out();
    if let Some(event) = event.take() {
        sessions.handle(Event { seq, ..event });
    }
    if !held {
        if sessions.holds(&conversation) {
            stateless.0.remove(&conversation);
        } else {
            stateless.note(conversation);
        }
    }
    Ok(sessions.left_out() - before)
}

/// Feeds the fold the hooks of a settled turn that was evicted, because `event` arrived late for that turn.
///
/// # Errors
/// Returns SQLite's error if the history cannot be read. The fold is unchanged.
fn bring_back(
    sessions: &mut Sessions,
    changes: &mut Changes,
    open: &mut Transaction<'_>,
    event: &Event,
) -> rusqlite::Result<()> {
    let missing = sessions.poll_missing(event);
    if missing.is_empty() {
        return Ok(());
    }
    let store = open.store();
    let mut hooks = Vec::with_capacity(missing.len());
    for seq in missing {
        hooks.extend(store.hook(seq)?);
    }
    let (mut replay, mut reader) = (sessions.handle_missing(event), Reader::default());
    hooks.iter().for_each(|hook| replay.handle(reader.read(hook)));
    replay.finish().into_iter().for_each(|change| changes.push(change));
    store.count(TURN_RELOADED, 1);
    Ok(())
}

/// Feeds the fold the history of an evicted conversation. The resulting changes are in the store already, except that the fold
/// holds these conversations again.
fn recall(
    sessions: &mut Sessions,
    stateless: &mut Stateless,
    changes: &mut Changes,
    open: &mut Transaction<'_>,
    conversation: &str,
    before: u64,
) -> rusqlite::Result<()> {
    let store = open.store();
    let Some(root) = store.known_root(conversation, before)? else { return Ok(()) };
    let history = store.group(&root, before)?;
    let mut reader = Reader::default();
    let is_long = sessions.is_long(history.len());
    let mut replay = sessions.handle_history();
    for (block, horizon) in blocks(&history, is_long) {
        for &(seq, _) in block {
            let Some(hook) = store.hook(seq)? else { continue };
            let event = reader.read(&hook);
            // Whichever conversation of the group came back, it is held again or has to be looked up again.
            stateless.0.remove(&event.conversation);
            replay_one(&mut replay, event, |seq| store.hook(seq))?;
        }
        if let Some(horizon) = horizon {
            replay.handle_deadline(horizon);
        }
    }
    replay.finish().into_iter().for_each(|change| changes.push(change));
    store.count("recalled", 1);
    Ok(())
}

/// Hooks per block of a long history. Time passes between blocks.
const BLOCK: usize = 50;

/// Cuts a history into blocks of hooks (number and time). Each block says how far time may pass after it: up to the earliest
/// hook that still follows. So a long history is folded as it happened. After the last block nothing is known to follow.
pub(super) fn blocks(
    history: &[(u64, i64)],
    is_long: bool,
) -> impl Iterator<Item = (&[(u64, i64)], Option<Timestamp>)> {
    let mut earliest = i64::MAX;
    let later = history.chunks(BLOCK).rev().map(|block| {
        let later = (earliest != i64::MAX).then_some(Timestamp(earliest).plus(-STRAGGLER_NS));
        earliest = block.iter().map(|(_, at)| *at).fold(earliest, i64::min);
        later.filter(|_| is_long)
    });
    let mut later: Vec<Option<Timestamp>> = later.collect();
    later.reverse();
    history.chunks(BLOCK).zip(later)
}

/// Feeds the fold an event of a history. If its turn was evicted, the turn's hooks go first. `hook` reads the raw log.
pub(super) fn replay_one<E>(
    replay: &mut Replay<'_>,
    event: Event,
    mut hook: impl FnMut(u64) -> Result<Option<Hook>, E>,
) -> Result<(), E> {
    let missing = replay.poll_missing(&event);
    if !missing.is_empty() {
        let mut hooks = Vec::with_capacity(missing.len());
        for seq in missing {
            hooks.extend(hook(seq)?);
        }
        let (mut turn, mut reader) = (replay.handle_missing(&event), Reader::default());
        hooks.iter().for_each(|hook| turn.handle(reader.read(hook)));
        // The history contains its own questions and ends.
        drop(turn.finish());
    }
    replay.handle(event);
    Ok(())
}

/// Collects all changes from the fold.
pub(super) fn drain(sessions: &mut Sessions, changes: &mut Changes) {
    while let Some(change) = sessions.poll_change() {
        changes.push(change);
    }
}
