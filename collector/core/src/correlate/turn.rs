//! Reading one turn: what its facts amount to, before anything is a span.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::correlate::fact::Fact;
use crate::correlate::tool_call::{Call, pair, tool_facts};
use crate::model::event::EventKind;
use crate::model::event::{Compaction, Prompt, Response, Stop, SubagentFacts, Thought};
use crate::model::summary::Tokens;
use crate::model::time::Timestamp;
use crate::model::tolerance::REPEAT;
use crate::model::tool::ToolClass;

/// Hooks of unknown names that a turn shows. The others are counted by name, and stay in the raw log.
pub(crate) const MAX_UNKNOWN: usize = 64;

/// How often a key was seen, and where last.
type Seen<'a> = BTreeMap<&'a str, (usize, Option<usize>)>;

/// A turn, read.
#[derive(Debug, Default)]
pub(crate) struct Reading<'a> {
    pub(crate) first: Option<Timestamp>,
    pub(crate) prompt: Option<(&'a Fact, &'a Prompt)>,
    pub(crate) stop: Option<(&'a Fact, &'a Stop)>,
    pub(crate) calls: Vec<Call<'a>>,
    pub(crate) thoughts: Vec<(String, &'a Fact, &'a Thought)>,
    pub(crate) responses: Vec<(String, &'a Fact, &'a Response)>,
    pub(crate) compactions: Vec<(String, &'a Fact, &'a Compaction)>,
    pub(crate) agents: Vec<Agent<'a>>,
    /// When compactions were over, in order.
    pub(crate) compaction_ends: Vec<Timestamp>,
    /// When a person was asked in the middle of a call, and when the answer came.
    pub(crate) questions: Vec<(Timestamp, Option<Timestamp>)>,
    /// Hooks of unknown names, the first [`MAX_UNKNOWN`] of them.
    pub(crate) unknown: Vec<(&'a Fact, &'a str)>,
    pub(crate) unknown_count: u64,
    /// The label a tool event carries, for turns whose prompt and stop carry none.
    pub(crate) tool_model: Option<&'a str>,
    /// The label a thought carries: print mode of the CLI has nothing else.
    pub(crate) thought_model: Option<&'a str>,
    /// The label a response carries: the oldest payloads name the model nowhere else.
    pub(crate) response_model: Option<&'a str>,
}

/// A subagent as its parent tells of it.
#[derive(Debug, Default)]
pub(crate) struct Agent<'a> {
    /// Key of its span id.
    pub(crate) key: String,
    pub(crate) start: Option<(&'a Fact, &'a SubagentFacts)>,
    pub(crate) stop: Option<(&'a Fact, &'a SubagentFacts)>,
    /// Its delegating call, as an index.
    pub(crate) call: Option<usize>,
}

impl<'a> Agent<'a> {
    /// The first answer of stop, then start.
    pub(crate) fn find<T>(&self, get: impl Fn(&'a SubagentFacts) -> Option<T>) -> Option<T> {
        [self.stop, self.start].into_iter().flatten().find_map(|(_, facts)| get(facts))
    }
}

impl<'a> Reading<'a> {
    /// Reads facts, which are in order.
    pub(crate) fn of(facts: &[&'a Fact]) -> Self {
        Self::after(facts, None)
    }

    /// Reads facts that come after others, of which `earlier` counts the equal thoughts.
    pub(crate) fn after(facts: &[&'a Fact], earlier: Option<&'a BTreeMap<String, usize>>) -> Self {
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
                    let seen = if thought.step { &mut steps } else { &mut texts };
                    let list = (&mut reading.thoughts, seen);
                    add(list, &thought.key, fact, &**thought, thought.step);
                }
                EventKind::Response(response) => {
                    reading.response_model = reading.response_model.or_else(|| label(fact));
                    let list = (&mut reading.responses, &mut responses);
                    add(list, &response.key, fact, &**response, false);
                }
                EventKind::Compaction(compaction) => {
                    let list = (&mut reading.compactions, &mut compactions);
                    add(list, &compaction.key, fact, &**compaction, false);
                }
                EventKind::CompactionEnd => reading.compaction_ends.push(fact.at),
                EventKind::Question { answered: false } => reading.questions.push((fact.at, None)),
                EventKind::Question { answered: true } => {
                    if let Some((_, end)) = reading.questions.last_mut() {
                        end.get_or_insert(fact.at);
                    }
                }
                EventKind::SubagentStart(facts) => agents.push((fact, &**facts, true)),
                EventKind::SubagentStop(facts) => agents.push((fact, &**facts, false)),
                EventKind::Unknown { name, body, .. } => {
                    let key = (*body, name.as_str());
                    if bodies.get(&key).is_none_or(|last| !repeats(last, fact)) {
                        bodies.insert(key, fact);
                        reading.unknown_count += 1;
                        if reading.unknown.len() < MAX_UNKNOWN {
                            reading.unknown.push((fact, name));
                        }
                    }
                }
                _ => {}
            }
        }
        reading.calls = pair(&tools);
        reading.agents = pair_agents(&agents, &reading.calls);
        reading
    }

    /// What names the model when prompt and stop do not.
    pub(crate) fn other_model(&self) -> Option<&'a str> {
        self.tool_model.or(self.thought_model).or(self.response_model)
    }

    /// Token counts, once: those of the stop, and where it says nothing, of the last response that does.
    pub(crate) fn tokens(&self) -> Option<Tokens> {
        let stop = self.stop.map(|(_, stop)| stop.tokens).unwrap_or_default();
        let responses = self.responses.iter().rev().map(|(_, _, response)| response.tokens);
        responses.fold(stop, Tokens::or).said()
    }
}

/// When a compaction that began `from` was over, if that was told before the `next` one began.
pub(crate) fn compaction_end(
    ends: &[Timestamp],
    from: Timestamp,
    next: Option<Timestamp>,
) -> Option<Timestamp> {
    let end = *ends.get(ends.partition_point(|at| *at < from))?;
    next.is_none_or(|next| end <= next).then_some(end)
}

/// A model label worth showing.
pub(crate) fn label(fact: &Fact) -> Option<&str> {
    fact.model.as_deref().filter(|model| !model.is_empty() && *model != "default")
}

/// Whether `second` is `first` delivered again.
pub(crate) fn repeats(first: &Fact, second: &Fact) -> bool {
    second.at.since(first.at) <= REPEAT && first.kind == second.kind
}

/// Adds a keyed fact unless it repeats one just before. A step is a key in itself; equal texts are numbered.
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

/// Pairs starts with stops: by id, else the oldest open start of the same type.
fn pair_agents<'a>(
    facts: &[(&'a Fact, &'a SubagentFacts, bool)],
    calls: &[Call<'a>],
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
    // Starts without an id that have no stop yet, by type, the oldest first.
    let mut waiting: BTreeMap<Option<&str>, VecDeque<usize>> = BTreeMap::new();
    for &(fact, agent, starts) in facts {
        let open = match agent.id.as_deref() {
            Some(id) => by_key.get(id).copied(),
            None if starts => None,
            None => waiting.get_mut(&agent.agent.as_deref()).and_then(VecDeque::pop_front),
        };
        let at = open.unwrap_or_else(|| {
            let key = agent.id.clone().unwrap_or_else(|| {
                let count = occurrences.entry(&agent.fallback).or_default();
                *count += 1;
                format!("{}#{}", agent.fallback, *count - 1)
            });
            let call = by_id.get(key.as_str()).copied();
            agents.push(Agent { key, call, ..Agent::default() });
            match agent.id.as_deref() {
                Some(id) => drop(by_key.insert(id, agents.len() - 1)),
                None if starts => {
                    let type_of = agent.agent.as_deref();
                    waiting.entry(type_of).or_default().push_back(agents.len() - 1);
                }
                None => {}
            }
            agents.len() - 1
        });
        let slot = if starts { &mut agents[at].start } else { &mut agents[at].stop };
        slot.get_or_insert((fact, agent));
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
        if let Some(task) = agent.find(|facts| facts.id.is_none().then_some(facts.task)) {
            agent.call = by_task.get_mut(&task).and_then(VecDeque::pop_front);
        }
    }
}
