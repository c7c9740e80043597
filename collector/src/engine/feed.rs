//! Handing the fold an event, and before it whatever the fold has let go and needs again.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hookspan_core::{Event, Hook, Reader, Replay, Sessions, Timestamp};

use super::{STRAGGLER_NS, TURN_RELOADED};
use crate::store::write::{Changes, Transaction};

/// Past so many, all are looked for once more.
const MOST: usize = 10_000;

/// Conversations of which the fold keeps nothing, so that their history need not be looked for with each of their hooks.
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

/// Hands the fold the hook at `seq`, which is in the raw log. If the fold has evicted the hook's conversation or turn, the
/// history of that comes first. Takes `event` once the history is read. Returns how many hooks found their session full: one
/// or none.
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

/// Hands the fold the hooks of a settled turn that has left memory, where `event` comes late for that turn.
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

/// Hands the fold the history of a conversation that it let go and that comes back. What it says about the past is in the
/// store already, except that it holds these conversations again.
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
            // Whichever of the group came back: this one is held again, or has to be looked for once more.
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

/// Hooks between two moments at which time passes in a long history.
const BLOCK: usize = 50;

/// Cuts a history in blocks, of hooks by number and time. A long history is folded as it happened: with each block comes how far
/// time may pass after it, to the earliest hook that is still to come. After the last block nothing is known to follow.
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

/// Hands the fold an event of a history, behind the hooks of its turn where that has left memory. `hook` reads the raw log.
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
        // The history asks and ends for itself.
        drop(turn.finish());
    }
    replay.handle(event);
    Ok(())
}

/// Takes everything the fold has to say.
pub(super) fn drain(sessions: &mut Sessions, changes: &mut Changes) {
    while let Some(change) = sessions.poll_change() {
        changes.push(change);
    }
}
