//! Reads the facts of one turn and summarises them, before spans are made.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::correlate::call_match::pair;
use crate::correlate::delegation::plain_type;
use crate::correlate::delegation_match::Names;
use crate::correlate::evidence::is_repeat;
use crate::correlate::fact::Fact;
use crate::correlate::tool_call::{Call, tool_facts};
use crate::model::event::EventKind;
use crate::model::event::{Compaction, Prompt, Response, Stop, SubagentFacts, Thought};
use crate::model::repository::RepositoryState;
use crate::model::summary::Tokens;
use crate::model::time::Timestamp;
use crate::model::tolerance::{DISORDER, REPEAT};
use crate::model::tool::ToolClass;

/// Number of earlier facts that a late hook is compared with to detect a repeated delivery.
const MAX_EARLIER: usize = 256;

/// Maximum number of earlier thoughts or responses that a thought or response is compared with, to find the same one in
/// other words.
const MAX_WORDINGS: usize = 8;

/// Maximum number of unknown hooks that a turn shows. The others are counted by name, and stay in the raw log.
pub(crate) const MAX_UNKNOWN: usize = 64;

/// How often a key was seen, and its last index.
type Seen<'a> = BTreeMap<&'a str, (usize, Option<usize>)>;

/// A thought, a response or a compaction: its key, its first hook, and the facts of the hook with the most details.
type Told<'a, T> = (String, &'a Fact, &'a T);

/// A turn, read.
#[derive(Debug, Default)]
pub(crate) struct Reading<'a> {
    pub(crate) first: Option<Timestamp>,
    pub(crate) prompt: Option<(&'a Fact, &'a Prompt)>,
    pub(crate) stop: Option<(&'a Fact, &'a Stop)>,
    pub(crate) calls: Vec<Call<'a>>,
    pub(crate) thoughts: Vec<Told<'a, Thought>>,
    pub(crate) responses: Vec<Told<'a, Response>>,
    pub(crate) compactions: Vec<Told<'a, Compaction>>,
    pub(crate) agents: Vec<Agent<'a>>,
    /// Ends of compactions, in order.
    pub(crate) compaction_ends: Vec<Timestamp>,
    /// Times at which a person was asked during a call, and the times of the answers.
    pub(crate) questions: Vec<(Timestamp, Option<Timestamp>)>,
    /// What was seen of the repository, in order.
    pub(crate) repository: Vec<&'a RepositoryState>,
    /// Hooks of unknown names, the first [`MAX_UNKNOWN`] of them.
    pub(crate) unknown: Vec<(&'a Fact, &'a str)>,
    pub(crate) unknown_count: u64,
    /// Model label of a tool event, for turns whose prompt and stop have none.
    pub(crate) tool_model: Option<&'a str>,
    /// Model label of a thought. Print mode of the CLI has no other.
    pub(crate) thought_model: Option<&'a str>,
    /// Model label of a response. The oldest payloads have no other.
    pub(crate) response_model: Option<&'a str>,
}

/// A subagent as its parent's hooks describe it.
#[derive(Debug, Default)]
pub(crate) struct Agent<'a> {
    /// Key of its span id.
    pub(crate) key: String,
    pub(crate) start: Option<(&'a Fact, &'a SubagentFacts)>,
    pub(crate) stop: Option<(&'a Fact, &'a SubagentFacts)>,
    /// Index of its delegating call.
    pub(crate) call: Option<usize>,
}

impl<'a> Agent<'a> {
    /// Whether hooks tell nothing but the subagent's id. Claude Code has internal helpers that stop without having
    /// started.
    pub(crate) fn says_nothing(&self) -> bool {
        let is_bare = |facts: &SubagentFacts| {
            facts.agent.is_none()
                && facts.task == 0
                && facts.status.is_none()
                && facts.duration_ms.is_none()
                && facts.has == (false, false, false)
        };
        let bare_stop = self.stop.is_some_and(|(_, facts)| is_bare(facts));
        self.start.is_none() && self.call.is_none() && bare_stop
    }

    /// Time of its stop.
    pub(crate) fn over(&self) -> Option<Timestamp> {
        self.stop.map(|(fact, _)| fact.at)
    }

    /// The first value from stop, then start.
    pub(crate) fn find<T>(&self, get: impl Fn(&'a SubagentFacts) -> Option<T>) -> Option<T> {
        [self.stop, self.start].into_iter().flatten().find_map(|(_, facts)| get(facts))
    }
}

impl<'a> Reading<'a> {
    /// Reads facts that are in order.
    pub(crate) fn of(facts: &[&'a Fact], names: &'a Names) -> Self {
        Self::after(facts, None, names)
    }

    /// Reads facts that follow others. `earlier` counts the thoughts among those others by key, because equal thoughts
    /// are numbered.
    pub(crate) fn after(
        facts: &[&'a Fact],
        earlier: Option<&'a BTreeMap<String, usize>>,
        names: &'a Names,
    ) -> Self {
        let mut reading = Self { first: facts.first().map(|fact| fact.at), ..Self::default() };
        let mut tools = Vec::with_capacity(facts.len());
        let mut agents = Vec::new();
        let (mut steps, mut texts) = (Seen::new(), Seen::new());
        let earlier = earlier.into_iter().flatten();
        texts.extend(earlier.map(|(key, count)| (key.as_str(), (*count, None))));
        let (mut responses, mut compactions) = (Seen::new(), Seen::new());
        let mut bodies: BTreeMap<(u64, &str), &Fact> = BTreeMap::new();
        for &fact in facts {
            if tool_facts(&fact.kind).is_some() {
                reading.tool_model = reading.tool_model.or_else(|| label(fact));
                tools.push(fact);
                continue;
            }
            match &fact.kind {
                EventKind::Prompt(prompt) => {
                    reading.prompt.get_or_insert((fact, &**prompt));
                }
                EventKind::Stop(stop) => {
                    reading.stop.get_or_insert((fact, &**stop));
                }
                EventKind::Thought(thought) => {
                    reading.thought_model = reading.thought_model.or_else(|| label(fact));
                    let seen = (&mut steps, &mut texts);
                    add_thought(&mut reading.thoughts, seen, fact, thought);
                }
                EventKind::Response(response) => {
                    reading.response_model = reading.response_model.or_else(|| label(fact));
                    if !richer_response(&mut reading.responses, fact, response) {
                        let list = (&mut reading.responses, &mut responses);
                        add(list, &response.key, fact, &**response, false);
                    }
                }
                EventKind::Compaction(compaction) => {
                    let list = (&mut reading.compactions, &mut compactions);
                    add(list, &compaction.key, fact, &**compaction, false);
                }
                EventKind::Repository(state) => reading.repository.push(state),
                EventKind::CompactionEnd => reading.compaction_ends.push(fact.at),
                EventKind::Question { answered } => reading.add_question(fact.at, *answered),
                EventKind::SubagentStart(facts) => agents.push((fact, &**facts, true)),
                EventKind::SubagentStop(facts) => agents.push((fact, &**facts, false)),
                EventKind::Unknown { name, body, .. } => {
                    reading.add_unknown(&mut bodies, fact, (*body, name.as_str()));
                }
                _ => {}
            }
        }
        reading.calls = pair(&tools);
        reading.agents = pair_agents(&agents, &reading.calls, names);
        reading
    }

    fn add_question(&mut self, at: Timestamp, is_answered: bool) {
        if !is_answered {
            self.questions.push((at, None));
        } else if let Some((_, end)) = self.questions.last_mut() {
            end.get_or_insert(at);
        }
    }

    /// Adds a hook of an unknown event, unless it repeats the last one with the same name and body.
    fn add_unknown(
        &mut self,
        last: &mut BTreeMap<(u64, &'a str), &'a Fact>,
        fact: &'a Fact,
        key: (u64, &'a str),
    ) {
        if last.get(&key).is_some_and(|last| repeats(last, fact)) {
            return;
        }
        last.insert(key, fact);
        self.unknown_count += 1;
        if self.unknown.len() < MAX_UNKNOWN {
            self.unknown.push((fact, key.1));
        }
    }

    /// The model label, if prompt and stop have none.
    pub(crate) fn other_model(&self) -> Option<&'a str> {
        self.tool_model.or(self.thought_model).or(self.response_model)
    }

    /// Token counts. They are taken from one hook only: the stop, otherwise the last response that has any.
    pub(crate) fn tokens(&self) -> Option<Tokens> {
        let stop = self.stop.map(|(_, stop)| stop.tokens).unwrap_or_default();
        let responses = self.responses.iter().rev().map(|(_, _, response)| response.tokens);
        responses.fold(stop, Tokens::or).said()
    }
}

/// End of a compaction that began at `from`, if it was reported before the next compaction began at `next`.
pub(crate) fn compaction_end(
    ends: &[Timestamp],
    from: Timestamp,
    next: Option<Timestamp>,
) -> Option<Timestamp> {
    let end = *ends.get(ends.partition_point(|at| *at < from))?;
    next.is_none_or(|next| end <= next).then_some(end)
}

/// A usable model label.
pub(crate) fn label(fact: &Fact) -> Option<&str> {
    fact.model.as_deref().filter(|model| !model.is_empty() && *model != "default")
}

/// Index of the same thought in other words. Two such hooks have the same text and moment, and only one of them names
/// its step.
fn other_wording(thoughts: &[Told<'_, Thought>], fact: &Fact, thought: &Thought) -> Option<usize> {
    let near = thoughts.iter().enumerate().rev().take(MAX_WORDINGS);
    let mut near = near.take_while(|(_, (_, other, _))| fact.at.since(other.at) <= DISORDER);
    let is_it = |old: &Thought| {
        old.step != thought.step
            && (old.text, old.bytes) == (thought.text, thought.bytes)
            && old.duration_ms.zip(thought.duration_ms).is_none_or(|(a, b)| a == b)
    };
    near.find(|(_, (_, _, old))| is_it(old)).map(|(at, _)| at)
}

/// Adds a thought, unless `thoughts` already contains it. If it was delivered twice with different keys, the delivery
/// that names the step is kept.
fn add_thought<'a>(
    thoughts: &mut Vec<Told<'a, Thought>>,
    (steps, texts): (&mut Seen<'a>, &mut Seen<'a>),
    fact: &'a Fact,
    thought: &'a Thought,
) {
    if let Some(at) = other_wording(thoughts, fact, thought) {
        let told = &mut thoughts[at];
        if thought.step && !told.2.step {
            steps.insert(&thought.key, (1, Some(at)));
            (told.0, told.2) = (thought.key.clone(), thought);
        }
        return;
    }
    let seen = if thought.step { steps } else { texts };
    add((thoughts, seen), &thought.key, fact, thought, thought.step);
}

/// Whether a response is the previous one in other words: both have the same text and moment, and one lacks tokens or
/// duration. The more complete one is kept.
fn richer_response<'a>(
    responses: &mut [Told<'a, Response>],
    fact: &'a Fact,
    response: &'a Response,
) -> bool {
    let near = responses.iter_mut().rev().take(MAX_WORDINGS);
    let mut near = near.take_while(|(_, other, _)| fact.at.since(other.at) <= DISORDER);
    let is_it = |old: &Response| {
        old.key == response.key
            && (old.tokens == response.tokens
                || [old, response].iter().any(|r| r.tokens.said().is_none()))
            && old.duration_ms.zip(response.duration_ms).is_none_or(|(a, b)| a == b)
    };
    let Some((_, _, old)) = near.find(|(_, _, old)| is_it(old)) else { return false };
    let said =
        |response: &Response| (response.tokens.said().is_some(), response.duration_ms.is_some());
    if said(response) > said(old) {
        *old = response;
    }
    true
}

/// The late facts, without repeated deliveries.
pub(crate) fn not_again<'a>(before: &[&'a Fact], after: &[&'a Fact]) -> Vec<&'a Fact> {
    let is_new = |fact: &&&'a Fact| {
        let near = before.iter().rev().take_while(|other| fact.at.since(other.at) <= REPEAT);
        !near.take(MAX_EARLIER).any(|other| is_repeat(other, fact))
    };
    after.iter().filter(is_new).copied().collect()
}

/// Whether `second` is a repeated delivery of `first`.
pub(crate) fn repeats(first: &Fact, second: &Fact) -> bool {
    is_repeat(first, second)
}

/// Adds a fact unless it repeats the last fact with the same `key`. A step occurs once per key. Other facts may have
/// equal texts, so each of them gets a number after its key.
fn add<'a, T: PartialEq>(
    (list, seen): (&mut Vec<(String, &'a Fact, &'a T)>, &mut Seen<'a>),
    key: &'a str,
    fact: &'a Fact,
    value: &'a T,
    is_step: bool,
) {
    let (count, last) = seen.get(key).copied().unwrap_or_default();
    let repeated = last.and_then(|at: usize| list.get(at)).is_some_and(|(_, other, old)| {
        is_step || (fact.at.since(other.at) <= REPEAT && *old == value)
    });
    if repeated {
        return;
    }
    seen.insert(key, (count + 1, Some(list.len())));
    let key = if is_step { key.to_owned() } else { format!("{key}#{count}") };
    list.push((key, fact, value));
}

/// Pairs starts with stops. Both belong to one delegation if they name it or were matched with it. Otherwise a stop
/// belongs to the oldest open start of the same type.
fn pair_agents<'a>(
    facts: &[(&'a Fact, &'a SubagentFacts, bool)],
    calls: &[Call<'a>],
    names: &'a Names,
) -> Vec<Agent<'a>> {
    let by_id: BTreeMap<&str, usize> = calls
        .iter()
        .enumerate()
        .filter(|(_, call)| call.class() == ToolClass::Task)
        .map(|(at, call)| (&*call.key, at))
        .collect();
    let mut agents: Vec<Agent<'a>> = Vec::new();
    let mut occurrences: BTreeMap<&str, usize> = BTreeMap::new();
    let mut by_key: BTreeMap<&str, usize> = BTreeMap::new();
    // Starts without an id and without a stop, by type, oldest first.
    let mut waiting: BTreeMap<Option<Box<str>>, VecDeque<usize>> = BTreeMap::new();
    for &(fact, agent, starts) in facts {
        let name = names.get(&fact.seq).map(|name| &**name).or(agent.named());
        let name = name.filter(|name| !name.starts_with('~'));
        let type_of = plain_type(agent.agent.as_deref());
        let open = match name {
            Some(id) => by_key.get(id).copied(),
            None if starts => None,
            None => waiting.get_mut(&type_of).and_then(VecDeque::pop_front),
        };
        let at = open.unwrap_or_else(|| {
            let key = name.map(str::to_owned).unwrap_or_else(|| {
                let count = occurrences.entry(&agent.fallback).or_default();
                *count += 1;
                format!("{}#{}", agent.fallback, *count - 1)
            });
            let call = by_id.get(key.as_str()).copied();
            agents.push(Agent { key, call, ..Agent::default() });
            match name {
                Some(id) => drop(by_key.insert(id, agents.len() - 1)),
                None if starts => waiting.entry(type_of).or_default().push_back(agents.len() - 1),
                None => {}
            }
            agents.len() - 1
        });
        if starts {
            agents[at].start.get_or_insert((fact, agent));
            continue;
        }
        // A hook can prevent an agent from stopping. The last stop is then the agent's end.
        let is_new = agents[at].stop.is_none_or(|(first, _)| !is_repeat(first, fact));
        if is_new {
            agents[at].stop = Some((fact, agent));
        }
    }
    claim_by_task(&mut agents, calls);
    agents
}

/// A subagent without ids belongs to the first unclaimed delegating call with the same task.
fn claim_by_task(agents: &mut [Agent<'_>], calls: &[Call<'_>]) {
    let claimed: BTreeSet<usize> = agents.iter().filter_map(|agent| agent.call).collect();
    let mut by_task: BTreeMap<u64, VecDeque<usize>> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        if let Some(task) = call.find(|tool| tool.delegate().map(|delegate| delegate.task))
            && !claimed.contains(&at)
        {
            by_task.entry(task).or_default().push_back(at);
        }
    }
    for agent in agents {
        let nameless = |facts: &SubagentFacts| facts.named().is_none().then_some(facts.task);
        if agent.call.is_none()
            && let Some(task) = agent.find(nameless)
        {
            agent.call = by_task.get_mut(&task).and_then(VecDeque::pop_front);
        }
    }
}
