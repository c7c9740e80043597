//! Decides which hooks cause a look at a repository: the first hook of a turn, and its stop.

use std::collections::HashMap;
use std::sync::Arc;

use crossbeam_channel::Sender;
use foldhash::fast::RandomState;
use hookspan_core::repository::Occasion;
use hookspan_core::{Event, EventKind, HookSource, Timestamp};

use super::SKIPPED;
use crate::store::write::Arrival;

/// Maximum number of remembered conversations.
const MOST: usize = 1_024;
/// Maximum number of roots besides the first that are looked at.
const OTHERS_MAX: usize = 7;
/// A hook older than 10 s causes no look, because the present state of the repository tells nothing about the time of
/// the hook.
const FRESH_NS: i64 = 10_000_000_000;
/// An event that names no turn and comes this soon after a stop belongs to the stopped turn.
const STRAGGLER_NS: i64 = 2_000_000_000;

/// A look at a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The hook that is the reason.
    pub(crate) occasion: Occasion,
    /// The workspace: its first root.
    pub(crate) folder: Arc<str>,
    /// Its other roots, from which only commits are wanted.
    pub(crate) others: Vec<String>,
    /// Commits from this time on are wanted.
    pub(crate) since: Option<Timestamp>,
}

/// Finds, among arriving hooks, those that cause a look.
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
    /// When the turn began; `None` before the first one.
    began: Option<Timestamp>,
    over: Option<Timestamp>,
}

impl Watch {
    /// A watch that hands `looks` over.
    #[must_use]
    pub(crate) fn new(looks: Sender<Look>) -> Self {
        Self { conversations: HashMap::default(), looks }
    }

    /// The looks that `arrivals`, which were read at `now`, cause. They are made after the hooks were sent to the
    /// engine, so that their results are stored after the hooks.
    pub(crate) fn reasons(&mut self, arrivals: &[Arrival], now: Timestamp) -> Vec<Look> {
        let fresh = arrivals.iter().filter(|arrival| {
            let hook = &arrival.hook;
            hook.source == HookSource::Shim && now.since(hook.observed_at) < FRESH_NS
        });
        fresh.filter_map(|arrival| self.reason(arrival.event.as_ref()?, &arrival.roots)).collect()
    }

    /// Hands looks to the thread. Returns a counter for those that were dropped because too many are waiting.
    pub(crate) fn ask(&self, looks: Vec<Look>) -> Option<(&'static str, u64)> {
        let skipped = looks.into_iter().filter(|look| self.looks.try_send(look.clone()).is_err());
        Some((SKIPPED, skipped.count() as u64)).filter(|(_, count)| *count > 0)
    }

    fn reason(&mut self, event: &Event, roots: &[String]) -> Option<Look> {
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
        // Only hooks of a root begin a turn: children work for a turn of another conversation.
        if is_root && !self.conversations.contains_key(&event.conversation) {
            if self.conversations.len() >= MOST {
                self.conversations.clear();
            }
            self.conversations.insert(event.conversation.clone(), Turn::default());
        }
        let turn = self.conversations.get_mut(&event.conversation)?;
        // A hook about a file names the root of that file, which may be another one.
        if let Some(root) = event.about.root()
            && (is_root || turn.folder.is_none())
        {
            turn.folder = Some(root.clone());
        }
        match event.kind {
            K::SessionStart { .. } => None,
            K::Stop(_) | K::SessionEnd(_) => turn.end(event, roots),
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

    fn end(&mut self, event: &Event, roots: &[String]) -> Option<Look> {
        let began = self.began.filter(|_| self.over.is_none())?;
        // The end of a session names no turn. It ends a turn that nothing else ended.
        let is_other = !event.generation.is_empty() && event.generation != self.generation;
        if matches!(event.kind, EventKind::Stop(_)) && is_other {
            return None;
        }
        self.over = Some(event.at);
        let look = self.look(event, Some(began))?;
        let others = roots.iter().filter(|root| ***root != *look.folder).take(OTHERS_MAX);
        Some(Look { others: others.cloned().collect(), ..look })
    }

    fn look(&self, event: &Event, since: Option<Timestamp>) -> Option<Look> {
        let occasion = Occasion {
            conversation: event.conversation.clone(),
            generation: self.generation.clone(),
            at: event.at,
            boottime_ns: event.boottime_ns.map(std::num::NonZeroU64::get),
        };
        Some(Look { occasion, folder: self.folder.clone()?, others: Vec::new(), since })
    }
}
