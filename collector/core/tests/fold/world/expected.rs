//! The spans that should result from a generated session.

use serde_json::Value;

use super::{Surface, Thing, Told, World};
use crate::truth::{Fact, Truth};

impl World {
    /// The spans that should exist if hooks of the kind `lost` never arrive. This is the documented degradation:
    ///
    /// * A span that only the lost hook reports (a thought, a response, a compaction) is missing. All other spans exist
    ///   and keep their parent. A span whose parent is missing is below the nearest ancestor that exists.
    /// * A time that only the lost hook reports is unknown. A duration in another hook is still known.
    /// * On the CLI, a delegation without the pre hook of its call has no name, and the child is a session of its own.
    ///   In print mode without thoughts, calls before the first delegation are a turn of their own.
    pub(crate) fn truth(&self, lost: Option<&str>) -> Truth {
        let mut truth = Truth::default();
        let mut index: Vec<Option<usize>> = vec![None; self.things.len()];
        let has = |name: &str| lost != Some(name);
        let split = self.split(lost);
        let mut early = None;
        // Parents come before their children, except that a session comes after all of its turns.
        for (at, (thing, above)) in self.things.iter().enumerate() {
            let mut fact = Fact::default();
            match thing {
                Thing::Session { start, end } => {
                    fact.name = "cursor.session".to_owned();
                    if lost.is_none() {
                        (fact.start, fact.end) = (Some(*start), Some(*end));
                    }
                }
                Thing::Turn { prompt, stop, response, tokens } => {
                    let is_call =
                        |(thing, _): &_| matches!(thing, Thing::Call(_) | Thing::Task { .. });
                    if self.surface == Surface::Print
                        && !has("afterAgentThought")
                        && split.is_none()
                        && !self.things.iter().any(is_call)
                    {
                        continue;
                    }
                    fact.name = "invoke_agent cursor".to_owned();
                    fact.start = match self.surface {
                        Surface::Print => {
                            split.or(self.first_thought().filter(|_| has("afterAgentThought")))
                        }
                        _ => prompt.filter(|_| has("beforeSubmitPrompt")),
                    };
                    fact.end = stop.filter(|_| has("stop"));
                    let told = has("stop") || (*response && has("afterAgentResponse"));
                    fact.tokens = tokens.filter(|_| told);
                }
                Thing::Thought { at, run } => {
                    if !has("afterAgentThought") {
                        continue;
                    }
                    fact.name = "agent_thought".to_owned();
                    (fact.start, fact.end) = (Some(at - run), Some(*at));
                }
                Thing::Response { at } => {
                    if !has("afterAgentResponse") {
                        continue;
                    }
                    fact.name = "chat gpt-5.5-medium".to_owned();
                    fact.end = Some(*at);
                }
                Thing::Compaction { at } => {
                    if !has("preCompact") {
                        continue;
                    }
                    fact.name = "context_compaction".to_owned();
                    (fact.start, fact.end) = (Some(*at), Some(*at));
                }
                Thing::Call(told) => match told.fact(lost) {
                    Some(told) => fact = told,
                    None => continue,
                },
                Thing::Task { tool, agent, id, pre, stop, thought } => {
                    if !has("preToolUse") {
                        continue;
                    }
                    fact.name = format!("execute_tool {tool} {agent}");
                    fact.id = Some(id.escape_debug().to_string());
                    fact.start = Some(*pre);
                    let stop = stop.filter(|_| has("subagentStop"));
                    fact.end = stop.or(thought.filter(|_| has("afterAgentThought")));
                }
                Thing::Agent { agent, id, start, stop } => {
                    let on_the_cli = id.is_empty();
                    if on_the_cli {
                        // It begins with a thought.
                        fact.start = start.filter(|_| has("afterAgentThought"));
                    }
                    fact.name = format!("invoke_agent {agent}");
                    if on_the_cli && !has("preToolUse") {
                        // No hook names the child's parent, so the child is a session with one turn.
                        let session = Fact { name: "cursor.session".to_owned(), ..Fact::default() };
                        truth.facts.push(session);
                        fact.name = "invoke_agent cursor".to_owned();
                        index[at] = Some(truth.facts.len());
                        truth.facts.push(fact);
                        continue;
                    }
                    if !on_the_cli {
                        fact.id = Some(id.escape_debug().to_string());
                        let (stop, run) = stop.filter(|_| has("subagentStop")).unzip();
                        fact.end = stop;
                        let began = stop.zip(run).map(|(stop, run)| stop - run);
                        fact.start = began.or(start.filter(|_| has("subagentStart")));
                    }
                }
            }
            fact.parent = self.above(*above, &index);
            let is_early = |until: i64| self.first(at).is_some_and(|first| first < until);
            if fact.parent.is_some_and(|parent| truth.facts[parent].parent.is_none())
                && fact.parent == index[self.turn()]
                && split.is_some_and(is_early)
            {
                let turn = *early.get_or_insert_with(|| {
                    let name = "invoke_agent cursor".to_owned();
                    truth.facts.push(Fact { name, ..Fact::default() });
                    truth.facts.len() - 1
                });
                fact.parent = Some(turn);
            }
            index[at] = Some(truth.facts.len());
            truth.facts.push(fact);
        }
        truth
    }

    /// The nearest ancestor that has a span.
    fn above(&self, mut above: Option<usize>, index: &[Option<usize>]) -> Option<usize> {
        while let Some(at) = above {
            if let Some(fact) = index[at] {
                return Some(fact);
            }
            above = self.things[at].1;
        }
        None
    }

    fn turn(&self) -> usize {
        let is_turn = |(thing, _): &(Thing, Option<usize>)| matches!(thing, Thing::Turn { .. });
        self.things.iter().position(is_turn).unwrap_or_default()
    }

    /// In print mode a turn begins with a thought.
    fn first_thought(&self) -> Option<i64> {
        self.things.iter().find_map(|(thing, _)| match thing {
            Thing::Thought { at, run } => Some(at - run),
            _ => None,
        })
    }

    /// In print mode, if thoughts are lost: the time of the first hook that names the turn. Otherwise `None`.
    fn split(&self, lost: Option<&str>) -> Option<i64> {
        if self.surface != Surface::Print || lost != Some("afterAgentThought") {
            return None;
        }
        let named = self.hooks.iter().filter(|hook| {
            let body: Value = serde_json::from_slice(&hook.body).unwrap();
            let generation = body["generation_id"].as_str().unwrap_or_default();
            body["hook_event_name"] != "afterAgentThought" && generation.starts_with("turn-")
        });
        named.map(|hook| hook.observed_at.0).min()
    }

    /// The time of the first hook of a call.
    fn first(&self, at: usize) -> Option<i64> {
        match &self.things[at].0 {
            Thing::Call(told) => Some(told.pre),
            _ => None,
        }
    }
}

impl Told {
    /// The call's span, as far as the remaining hooks describe it.
    fn fact(&self, lost: Option<&str>) -> Option<Fact> {
        let has = |hook: &(&'static str, i64)| lost != Some(hook.0);
        let pre = Some(self.pre).filter(|_| lost != Some("preToolUse"));
        let before = self.before.filter(has);
        let after = self.after.filter(has);
        let post = self.post.filter(has);
        if pre.is_none() && before.is_none() && after.is_none() && post.is_none() {
            return None;
        }
        let named = pre.is_some() || post.is_some();
        let read = before.filter(|hook| hook.0 == "beforeReadFile").map(|(_, at)| at);
        let opened = pre.or(before.filter(|hook| hook.0 != "beforeReadFile").map(|(_, at)| at));
        let end = post.or(after).map(|(_, at)| at);
        let has_run = post.is_some() || (after.is_some() && self.after_has_run);
        let began = end.filter(|_| has_run).map(|end| end - self.run);
        let start = match (opened, began) {
            (Some(opened), Some(began)) => Some(opened.max(began)),
            (opened, began) => opened.or(began),
        };
        Some(Fact {
            name: if named { self.name.clone() } else { self.bare.clone() },
            id: (named && !self.id.is_empty()).then(|| self.id.escape_debug().to_string()),
            start: start.or(read),
            end,
            ..Fact::default()
        })
    }
}
