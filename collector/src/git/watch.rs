//! Which hooks are a reason to look at a repository: the first of a turn, and its stop.

use std::collections::HashMap;
use std::sync::Arc;

use crossbeam_channel::Sender;
use foldhash::fast::RandomState;
use hookspan_core::repository::Occasion;
use hookspan_core::{Event, EventKind, HookSource, Timestamp};

use super::SKIPPED;
use crate::store::write::Arrival;

/// Conversations that are remembered.
const MOST: usize = 1_024;
/// A hook that is older was not received just now: what a repository is at now says nothing of then.
const FRESH_NS: i64 = 10_000_000_000;
/// What comes so soon behind a stop and names no turn belongs to the turn that has stopped.
const STRAGGLER_NS: i64 = 2_000_000_000;

/// A look at a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The hook that is the reason.
    pub(crate) occasion: Occasion,
    /// The workspace.
    pub(crate) folder: Arc<str>,
    /// Commits from then on are asked for.
    pub(crate) since: Option<Timestamp>,
}

/// Finds the reasons among the hooks that arrive.
#[derive(Debug)]
pub(crate) struct Watch {
    conversations: HashMap<Arc<str>, Turn, RandomState>,
    looks: Sender<Look>,
}

/// The last turn of a conversation.
#[derive(Debug, Default)]
struct Turn {
    generation: Arc<str>,
    folder: Option<Arc<str>>,
    /// When it began; `None` before the first one.
    began: Option<Timestamp>,
    over: Option<Timestamp>,
}

impl Watch {
    /// A watch that hands `looks` over.
    #[must_use]
    pub(crate) fn new(looks: Sender<Look>) -> Self {
        Self { conversations: HashMap::default(), looks }
    }

    /// The reasons among `arrivals`, which were read `now`. They are looked at once the hooks are on their way to the engine, so that
    /// what is seen is stored behind them.
    pub(crate) fn reasons(&mut self, arrivals: &[Arrival], now: Timestamp) -> Vec<Look> {
        let fresh = arrivals.iter().filter(|arrival| {
            let hook = &arrival.hook;
            hook.source == HookSource::Shim && now.since(hook.observed_at) < FRESH_NS
        });
        fresh.filter_map(|arrival| arrival.event.as_ref()).filter_map(|e| self.reason(e)).collect()
    }

    /// Hands looks over. Gives what is to be counted: those that nobody has time for.
    pub(crate) fn ask(&self, looks: Vec<Look>) -> Option<(&'static str, u64)> {
        let skipped = looks.into_iter().filter(|look| self.looks.try_send(look.clone()).is_err());
        Some((SKIPPED, skipped.count() as u64)).filter(|(_, count)| *count > 0)
    }

    fn reason(&mut self, event: &Event) -> Option<Look> {
        use EventKind as K;
        let is_root = matches!(
            event.kind,
            K::SessionStart { .. } | K::Prompt(_) | K::Stop(_) | K::SessionEnd(_)
        );
        let beside = matches!(
            event.kind,
            K::Malformed
                | K::WorkspaceOpen
                | K::Unknown { .. }
                | K::TabRead { .. }
                | K::TabEdit { .. }
                | K::SubagentStop(_)
                | K::Evidence(_)
                | K::Repository(_)
        );
        if beside || event.conversation.is_empty() || event.about.remote {
            return None;
        }
        // Only what a root does begins: children work for the turn of another conversation.
        if is_root && !self.conversations.contains_key(&event.conversation) {
            if self.conversations.len() >= MOST {
                self.conversations.clear();
            }
            self.conversations.insert(event.conversation.clone(), Turn::default());
        }
        let turn = self.conversations.get_mut(&event.conversation)?;
        if let Some(root) = &event.about.root {
            turn.folder = Some(root.clone());
        }
        match event.kind {
            K::SessionStart { .. } => None,
            K::Stop(_) | K::SessionEnd(_) => turn.end(event),
            _ => turn.begin(event),
        }
    }
}

impl Turn {
    fn begin(&mut self, event: &Event) -> Option<Look> {
        let is_prompt = matches!(event.kind, EventKind::Prompt(_));
        let is_new = match (self.began, &event.generation) {
            (None, _) => true,
            (_, generation) if !generation.is_empty() => *generation != self.generation,
            (Some(began), _) if is_prompt => event.at > began,
            _ => self.over.is_some_and(|over| event.at.since(over) > STRAGGLER_NS),
        };
        if !is_new {
            return None;
        }
        self.generation = event.generation.clone();
        (self.began, self.over) = (Some(event.at), None);
        self.look(event, None)
    }

    fn end(&mut self, event: &Event) -> Option<Look> {
        let began = self.began.filter(|_| self.over.is_none())?;
        // The end of the session ends a turn that nothing else does, and names none.
        let is_other = !event.generation.is_empty() && event.generation != self.generation;
        if matches!(event.kind, EventKind::Stop(_)) && is_other {
            return None;
        }
        self.over = Some(event.at);
        self.look(event, Some(began))
    }

    fn look(&self, event: &Event, since: Option<Timestamp>) -> Option<Look> {
        let occasion = Occasion {
            conversation: event.conversation.clone(),
            generation: self.generation.clone(),
            at: event.at,
            boottime_ns: event.boottime_ns.map(std::num::NonZeroU64::get),
        };
        Some(Look { occasion, folder: self.folder.clone()?, since })
    }
}
