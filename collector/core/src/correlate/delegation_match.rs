//! Decides which hooks describe one delegation if the hooks name it incompletely. Examples: a `subagentStop` without an
//! id, as documented; a subagent whose id differs from its call's; a subagent without any id.
//!
//! A known id decides, and two different ids of one kind exclude each other. Without a known id, an end belongs to an
//! open delegation: one with equal type and task, else with equal task, else with equal type, else the only open one.
//! Among equals the duration decides.

use std::collections::{BTreeMap, BTreeSet};

use crate::correlate::delegation::{Delegation, plain_type};
use crate::correlate::fact::Fact;
use crate::model::event::{EventKind, SubagentFacts};
use crate::model::time::{Timestamp, nanos};
use crate::model::tool::ToolFacts;

/// The delegation of hooks that do not name it themselves, by hook.
pub(crate) type Names = BTreeMap<u64, Box<str>>;

/// All delegations of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    pub(crate) delegations: BTreeMap<Box<str>, Delegation>,
    pub(crate) names: Names,
    /// Delegations by their subagents' ids, if those differ from the delegation's.
    pub(crate) aliases: BTreeMap<Box<str>, Box<str>>,
}

/// Whether a fact describes a delegation.
pub(crate) fn tells(kind: &EventKind) -> bool {
    match kind {
        EventKind::SubagentStart(_) | EventKind::SubagentStop(_) => true,
        EventKind::ToolStart(tool) | EventKind::ToolEnd(tool) | EventKind::ToolFailure(tool) => {
            tool.delegation().is_some()
        }
        _ => false,
    }
}

/// Reads all facts that describe delegations, in order, each with the generation that it names.
pub(crate) fn resolve(facts: &[(&str, &Fact)]) -> Resolved {
    let mut matching = Matching::default();
    for (_, fact) in facts {
        if let EventKind::ToolEnd(tool) = &fact.kind
            && let Some((call, subagent)) = tool.id.as_deref().zip(tool.subagent())
        {
            matching.proven.insert(subagent, call);
        }
        if let EventKind::SubagentStart(agent) | EventKind::SubagentStop(agent) = &fact.kind {
            let is_stop = matches!(fact.kind, EventKind::SubagentStop(_));
            let call = agent.call.as_deref().filter(|_| is_stop);
            matching.own.extend([agent.id.as_deref(), call].into_iter().flatten());
        }
    }
    for (generation, fact) in facts {
        matching.take(generation, fact);
    }
    for (id, at) in &matching.by_id {
        let key = &matching.all[*at].key;
        if **key != **id {
            matching.resolved.aliases.insert((*id).into(), key.clone());
        }
    }
    matching.resolved
}

/// One delegation, as described by the facts read so far.
struct Told<'a> {
    key: Box<str>,
    /// Ids of the call and of the subagent.
    call: Option<&'a str>,
    subagent: Option<&'a str>,
    agent: Option<Box<str>>,
    task: u64,
    begun: Timestamp,
    /// Whether `subagentStart` arrived.
    announced: bool,
    /// Whether an end arrived.
    over: bool,
    /// Whether its subagent has stopped.
    stopped: bool,
    /// The generation that its first hook names.
    generation: &'a str,
    /// Whether the subagent's hooks use the id of the call. Then a hook with another id describes another delegation.
    owned: bool,
}

#[derive(Default)]
struct Matching<'a> {
    all: Vec<Told<'a>>,
    by_id: BTreeMap<&'a str, usize>,
    /// The latest delegation of a subagent that worked again in a later turn, and their number.
    resumed: BTreeMap<&'a str, (usize, usize)>,
    /// Calls by the subagent that their result names.
    proven: BTreeMap<&'a str, &'a str>,
    /// Ids of subagents, and of calls that a stop names.
    own: BTreeSet<&'a str>,
    /// Delegations before this index have ended.
    over: usize,
    resolved: Resolved,
}

/// The facts in a subagent's hook.
struct Said<'a> {
    call: Option<&'a str>,
    subagent: Option<&'a str>,
    agent: Option<Box<str>>,
    task: u64,
}

impl<'a> Said<'a> {
    fn of(facts: &'a SubagentFacts) -> Self {
        Self {
            call: facts.call.as_deref(),
            subagent: facts.id.as_deref(),
            agent: plain_type(facts.agent.as_deref()),
            task: facts.task,
        }
    }

    /// A delegation that no earlier hook described.
    fn first_told(&self, key: &str, generation: &'a str, begun: Timestamp) -> Told<'a> {
        Told {
            key: key.into(),
            stopped: false,
            generation,
            call: self.call,
            subagent: self.subagent,
            agent: self.agent.clone(),
            task: self.task,
            begun,
            announced: false,
            over: false,
            owned: false,
        }
    }

    /// How well a hook fits a delegation; `None` if something excludes it.
    fn fits(&self, told: &Told<'_>) -> Option<u8> {
        let differ =
            |one: Option<&str>, other: Option<&str>| one.zip(other).is_some_and(|(a, b)| a != b);
        if differ(self.call, told.call) || differ(self.subagent, told.subagent) {
            return None;
        }
        let has_id = self.call.is_some() || self.subagent.is_some();
        if told.owned && has_id {
            return None;
        }
        let same = |one: bool, other: bool, equal: bool| (one && other).then_some(equal);
        let task = same(self.task != 0, told.task != 0, self.task == told.task);
        let agent = same(self.agent.is_some(), told.agent.is_some(), self.agent == told.agent);
        match (task, agent) {
            (Some(false), Some(false)) => None,
            (Some(true), Some(true)) => Some(3),
            (Some(true), _) => Some(2),
            (_, Some(true)) => Some(1),
            _ => Some(0),
        }
    }
}

impl<'a> Matching<'a> {
    fn take(&mut self, turn: &'a str, fact: &'a Fact) {
        let (at, own) = match &fact.kind {
            EventKind::ToolStart(tool) => (self.call(turn, fact, tool), tool.delegation()),
            EventKind::ToolEnd(tool) | EventKind::ToolFailure(tool) => {
                (self.call_end(turn, fact, tool), tool.delegation())
            }
            EventKind::SubagentStart(facts) => (self.start(turn, fact, facts), Some(facts.key())),
            EventKind::SubagentStop(facts) => (self.stop(turn, fact, facts), Some(facts.key())),
            _ => return,
        };
        let Some((at, own)) = at.zip(own) else { return };
        let key = &self.all[at].key;
        if **key != *own {
            self.resolved.names.insert(fact.seq, key.clone());
        }
        let delegation = self.resolved.delegations.entry(key.clone()).or_default();
        delegation.tell(fact);
    }

    fn push(&mut self, told: Told<'a>) -> usize {
        for id in [told.call, told.subagent].into_iter().flatten() {
            self.by_id.insert(id, self.all.len());
        }
        self.all.push(told);
        self.all.len() - 1
    }

    /// Delegations that may still end, oldest first.
    fn open(&mut self) -> impl Iterator<Item = (usize, &Told<'a>)> {
        while self.all.get(self.over).is_some_and(|told| told.over) {
            self.over += 1;
        }
        let from = self.over;
        self.all.iter().enumerate().skip(from).take(MAX_OPEN).filter(|(_, told)| !told.over)
    }

    fn call(&mut self, turn: &'a str, fact: &'a Fact, tool: &'a ToolFacts) -> Option<usize> {
        let key = tool.delegation()?;
        if let Some(&at) = self.by_id.get(key) {
            return Some(at);
        }
        let delegate = tool.delegate();
        let at = self.push(Told {
            key: key.into(),
            call: tool.id.as_deref(),
            subagent: None,
            agent: plain_type(delegate.and_then(|delegate| delegate.agent.as_deref())),
            task: delegate.map_or(0, |delegate| delegate.task),
            begun: fact.at,
            announced: false,
            over: false,
            stopped: false,
            generation: turn,
            owned: self.own.contains(key),
        });
        self.by_id.insert(key, at);
        Some(at)
    }

    fn call_end(&mut self, turn: &'a str, fact: &'a Fact, tool: &'a ToolFacts) -> Option<usize> {
        let key = tool.delegation()?;
        let known = self.by_id.get(key).copied();
        let open = || {
            let nameless = tool.id.is_none();
            self.open().find(|(_, told)| nameless && told.call.is_some()).map(|(at, _)| at)
        };
        let at = match known.or_else(open) {
            Some(at) => at,
            None => self.call(turn, fact, tool)?,
        };
        self.all[at].over = true;
        Some(at)
    }

    fn by_ids(&self, facts: &SubagentFacts) -> Option<usize> {
        let ids = [facts.call.as_deref(), facts.id.as_deref()];
        let resumed = facts.id.as_deref().and_then(|id| self.resumed.get(id));
        if let Some((at, _)) = resumed.filter(|_| facts.call.is_none()) {
            return Some(*at);
        }
        ids.into_iter().flatten().find_map(|id| {
            let proven = self.proven.get(id).and_then(|call| self.by_id.get(call));
            proven.or_else(|| self.by_id.get(id)).copied()
        })
    }

    /// A subagent that has stopped and starts again in another turn: that turn resumed it (Claude Code). Its new work is a
    /// delegation of its own.
    fn resumed(&mut self, turn: &'a str, fact: &Fact, facts: &'a SubagentFacts) -> Option<usize> {
        let id = facts.id.as_deref().filter(|_| facts.call.is_none() && !turn.is_empty())?;
        let before = self.by_ids(facts).map(|at| &self.all[at])?;
        if !before.stopped || before.generation.is_empty() || before.generation == turn {
            return None;
        }
        let count = self.resumed.get(id).map_or(1, |(_, count)| count + 1);
        let told = Said::of(facts).first_told(&format!("{id}#{count}"), turn, fact.at);
        self.all.push(told);
        self.resumed.insert(id, (self.all.len() - 1, count));
        Some(self.all.len() - 1)
    }

    fn start(&mut self, turn: &'a str, fact: &'a Fact, facts: &'a SubagentFacts) -> Option<usize> {
        let said = Said::of(facts);
        let known = self.resumed(turn, fact, facts).or_else(|| self.by_ids(facts));
        let at = known.or_else(|| {
            let open: Vec<(usize, u8)> = self
                .open()
                .filter(|(_, told)| !told.announced)
                .filter_map(|(at, told)| Some((at, said.fits(told)?)))
                .collect();
            best(&open)
        });
        let at = match at {
            Some(at) => at,
            None => self.push(said.first_told(facts.key(), turn, fact.at)),
        };
        self.learn(at, &said);
        self.all[at].announced = true;
        Some(at)
    }

    fn stop(&mut self, turn: &'a str, fact: &'a Fact, facts: &'a SubagentFacts) -> Option<usize> {
        let said = Said::of(facts);
        let at = self.by_ids(facts).or_else(|| {
            let began = facts.duration_ms.map(|ms| fact.at.plus(-nanos(ms)));
            let mut open: Vec<(usize, u8, bool, i64)> = self
                .open()
                .filter_map(|(at, told)| {
                    let off = began.map_or(0, |began| began.since(told.begun).saturating_abs());
                    Some((at, said.fits(told)?, told.announced, off))
                })
                .collect();
            // A delegation with a start hook is expected to end, so it goes first.
            if open.iter().any(|(_, _, announced, _)| *announced) {
                open.retain(|(_, _, announced, _)| *announced);
            }
            let most = open.iter().map(|(_, fits, _, _)| *fits).max()?;
            let only = open.len() == 1;
            open.retain(|(_, fits, _, _)| *fits == most && (most > 0 || only));
            open.iter().min_by_key(|(at, _, _, off)| (*off, *at)).map(|(at, _, _, _)| *at)
        });
        let at = match at {
            Some(at) => at,
            None => self.push(said.first_told(facts.key(), turn, fact.at)),
        };
        self.learn(at, &said);
        (self.all[at].over, self.all[at].stopped) = (true, true);
        Some(at)
    }

    /// Adds the new facts of a hook.
    fn learn(&mut self, at: usize, said: &Said<'a>) {
        for id in [said.call, said.subagent].into_iter().flatten() {
            self.by_id.entry(id).or_insert(at);
        }
        let told = &mut self.all[at];
        told.call = told.call.or(said.call);
        told.subagent = told.subagent.or(said.subagent);
        if told.agent.is_none() {
            told.agent = said.agent.clone();
        }
        if told.task == 0 {
            told.task = said.task;
        }
    }
}

/// Maximum number of open delegations that a hook is compared with.
const MAX_OPEN: usize = 256;

/// The oldest of the best fits. If no fit has any evidence: the candidate, if there is only one.
fn best(open: &[(usize, u8)]) -> Option<usize> {
    let most = open.iter().map(|(_, fits)| *fits).max()?;
    let mut fit = open.iter().filter(|(_, fits)| *fits == most);
    let first = fit.next()?;
    (most > 0 || fit.next().is_none()).then_some(first.0)
}
