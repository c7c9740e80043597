//! Feeds the fold an event. If the fold has evicted the event's conversation or turn, the evicted history is fed first.

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hookspan_core::{Event, EventKind, Hook, Reader, Replay, Sessions, Timestamp};

use super::{STRAGGLER_NS, TURN_RELOADED};
use crate::store::write::{Changes, Store, Transaction};

/// Maximum number of remembered conversations. When it is exceeded, the list is cleared.
const MOST: usize = 10_000;

/// What is known about conversations that the fold does not hold.
#[derive(Debug, Default)]
pub(super) struct Absent {
    /// Conversations without a stored history. For these, the store need not be searched again.
    stateless: HashSet<Arc<str>, RandomState>,
    /// A history that was being read when the database refused. The fold already has its beginning.
    unfinished: Option<Recall>,
}

impl Absent {
    pub(super) fn clear(&mut self) {
        self.stateless.clear();
        self.unfinished = None;
    }

    fn note_stateless(&mut self, conversation: Arc<str>) {
        if self.stateless.len() >= MOST {
            self.stateless.clear();
        }
        self.stateless.insert(conversation);
    }

    /// Whether the history of a conversation must be replayed before its next hook.
    fn needs_history(&self, sessions: &Sessions, conversation: &str) -> bool {
        let is_unfinished = |recall: &Recall| &*recall.conversation == conversation;
        self.unfinished.as_ref().is_some_and(is_unfinished)
            || !(sessions.holds(conversation) || self.stateless.contains(conversation))
    }
}

/// Feeds the fold the hook at `seq`, which is in the raw log. If the fold has evicted the hook's conversation or turn,
/// its history is replayed first. Takes `event` out of its option once the history was read. Returns the number of
/// hooks dropped because their session is full: one or none.
///
/// # Errors
///
/// Returns SQLite's error if the history cannot be read. `event` is then still there, and the next call with it
/// continues reading at the same place.
pub(super) fn feed(
    sessions: &mut Sessions,
    absent: &mut Absent,
    changes: &mut Changes,
    open: &mut Transaction<'_>,
    seq: u64,
    event: &mut Option<Event>,
) -> rusqlite::Result<u64> {
    let Some(conversation) = event.as_ref().map(|event| Arc::clone(&event.conversation)) else {
        return Ok(0);
    };
    let has_history = !conversation.is_empty();
    if has_history && absent.needs_history(sessions, &conversation) {
        let parent = event.as_ref().and_then(|event| perhaps_parent(sessions, event));
        recall(sessions, absent, changes, open, (&conversation, parent), seq)?;
    }
    let held = !has_history || sessions.holds(&conversation);
    if let Some(event) = event
        && has_history
        && held
    {
        bring_back(sessions, changes, open, event)?;
    }
    let before = sessions.left_out();
    if let Some(event) = event.take() {
        sessions.handle(Event { seq, ..event });
    }
    if held || sessions.holds(&conversation) {
        absent.stateless.remove(&conversation);
    } else {
        absent.note_stateless(conversation);
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

/// The history of an evicted conversation that continues.
#[derive(Debug)]
struct Recall {
    conversation: Arc<str>,
    /// Hooks of its group, by number and time.
    history: Vec<(u64, i64)>,
    /// How many of them the fold has.
    done: usize,
}

/// Where and when a conversation begins whose parent may have been evicted.
struct Place {
    workspace: Arc<str>,
    at_ns: i64,
    idle_ns: i64,
}

/// A child's conversation begins with its work. A person's begins with a prompt or a session start.
fn perhaps_parent(sessions: &Sessions, event: &Event) -> Option<Place> {
    let is_work = matches!(
        event.kind,
        EventKind::ToolStart(_)
            | EventKind::ToolEnd(_)
            | EventKind::ToolFailure(_)
            | EventKind::ShellStart(_)
            | EventKind::ShellEnd(_)
            | EventKind::McpStart(_)
            | EventKind::McpEnd(_)
            | EventKind::FileRead(_)
            | EventKind::FileEdit(_)
            | EventKind::Thought(_)
    );
    let workspace = event.about.workspace.clone().filter(|_| is_work)?;
    Some(Place { workspace, at_ns: event.at.0, idle_ns: sessions.config().session_idle_ns })
}

/// Replays the history of an evicted conversation that continues. The store already has the resulting changes; only the
/// fact that the fold holds these conversations again is new. If the history cannot be read to its end, the next call
/// continues.
fn recall(
    sessions: &mut Sessions,
    absent: &mut Absent,
    changes: &mut Changes,
    open: &mut Transaction<'_>,
    (conversation, parent): (&Arc<str>, Option<Place>),
    before: u64,
) -> rusqlite::Result<()> {
    let store = open.store();
    let is_this = |recall: &mut Recall| recall.conversation == *conversation;
    let mut recall = match absent.unfinished.take_if(is_this) {
        Some(recall) => recall,
        None => {
            let root = match (store.known_root(conversation, before)?, parent) {
                (None, Some(place)) => {
                    let found = store.delegating(&place.workspace, place.at_ns, place.idle_ns)?;
                    found.filter(|root| !sessions.holds(root))
                }
                (root, _) => root,
            };
            let Some(root) = root else { return Ok(()) };
            let history = store.group(&root, before)?;
            Recall { conversation: Arc::clone(conversation), history, done: 0 }
        }
    };
    let read = recall.go_on(sessions, absent, changes, store);
    match read {
        Ok(()) => store.count("recalled", 1),
        Err(_) => absent.unfinished = Some(recall),
    }
    read
}

impl Recall {
    /// Replays the part of the history that the fold does not have yet.
    fn go_on(
        &mut self,
        sessions: &mut Sessions,
        absent: &mut Absent,
        changes: &mut Changes,
        store: &mut Store,
    ) -> rusqlite::Result<()> {
        let mut reader = Reader::default();
        let is_long = sessions.is_long(self.history.len());
        let mut replay = sessions.handle_history();
        let mut read = || {
            let mut behind = 0;
            for (block, horizon) in blocks(&self.history, is_long) {
                let begun = self.done.saturating_sub(behind);
                behind += block.len();
                let Some(rest) = block.get(begun..).filter(|rest| !rest.is_empty()) else {
                    continue;
                };
                for &(seq, _) in rest {
                    if let Some(hook) = store.hook(seq)? {
                        let event = reader.read(&hook);
                        // This conversation is held again, or its history must be searched again, no matter which one
                        // of the group came back.
                        absent.stateless.remove(&event.conversation);
                        replay_one(&mut replay, event, |seq| store.hook(seq))?;
                    }
                    self.done += 1;
                }
                if let Some(horizon) = horizon {
                    replay.handle_deadline(horizon);
                }
            }
            Ok(())
        };
        let read = read();
        // What was reported so far must not be reported twice.
        replay.finish().into_iter().for_each(|change| changes.push(change));
        read
    }
}

/// Number of hooks per block of a long history. Time passes between blocks.
const BLOCK: usize = 50;

/// Divides a history into blocks of hooks (number and time). With each block goes the time of the earliest hook after
/// it, and the fold's time may advance up to that. So a long history is folded as it happened. The last block has no
/// following hook.
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
        // The history already contains the questions and ends of its sessions.
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
