//! Odd things that hooks do: reused ids, a thought in two wordings, missing ids, other roots, calls that wait for most
//! of an hour, children that outlive their turn, bodies that are cut.

use serde_json::{Map, Value, json};

use super::{Actor, MS, Maker, Surface, Thing};

/// What is odd about a call.
#[derive(Default)]
pub(super) struct Oddity {
    /// The id of an earlier call of the conversation. That call has ended.
    pub(super) id: Option<String>,
    /// No hook has the call's id.
    pub(super) without_id: bool,
    /// No hook names the turn.
    pub(super) without_turn: bool,
    /// The end does not repeat the input.
    pub(super) says_less: bool,
    /// The body of the end is cut.
    pub(super) cut: bool,
    /// How much longer the call takes, because a person is asked for approval.
    pub(super) asks: i64,
}

impl Maker {
    /// Decides what is odd about the next call of `actor`. Nothing, if the session is not odd.
    pub(super) fn oddity(&mut self, actor: &Actor, is_shell: bool) -> Oddity {
        if !self.flavor.odd {
            return Oddity::default();
        }
        let own = actor.depth == 0 && self.serial;
        let asks = self.dice.between(1_000_000, 3_400_000) * MS;
        let (name, odd) = match self.dice.roll(10) {
            0 if self.serial && self.over.contains_key(&actor.conversation) => {
                let id = self.over.get(&actor.conversation).cloned();
                ("an id twice", Oddity { id, ..Oddity::default() })
            }
            1 => ("calls without ids", Oddity { without_id: true, ..Oddity::default() }),
            2 if own && self.surface == Surface::Ide => {
                ("hooks without a turn", Oddity { without_turn: true, ..Oddity::default() })
            }
            3 => ("ends that say less", Oddity { says_less: true, ..Oddity::default() }),
            4 => ("cut bodies", Oddity { cut: true, ..Oddity::default() }),
            5..8 if own && is_shell && self.surface != Surface::Print => {
                ("calls of most of an hour", Oddity { asks, ..Oddity::default() })
            }
            _ => return Oddity::default(),
        };
        self.oddities.insert(name);
        odd
    }

    /// Counts the last hook as one that repeats another.
    pub(super) fn note_again(&mut self) {
        self.again += 1;
        self.oddities.insert("two wordings");
    }

    /// Changes the envelope of a hook: gives it another root, or removes one id. The first hook of a conversation is
    /// not changed, because it decides the project.
    pub(super) fn disturb(&mut self, body: &mut Map<String, Value>, conversation: &str) {
        if !self.flavor.odd || self.seen.insert(conversation.to_owned()) {
            return;
        }
        match self.dice.roll(8) {
            0 => {
                body.insert("workspace_roots".to_owned(), json!(["/elsewhere/lib"]));
                self.oddities.insert("other roots");
            }
            1 => {
                body.remove("conversation_id");
                self.oddities.insert("hooks without a conversation");
            }
            2 => drop(body.remove("session_id")),
            _ => {}
        }
    }

    /// Cuts the body of the last hook in the middle of its output, which is the last field of the body.
    pub(super) fn cut_output(&mut self) {
        let Some(hook) = self.hooks.last_mut() else { return };
        let mut body: Map<String, Value> = serde_json::from_slice(&hook.body).unwrap();
        body.remove("tool_output");
        let text = Value::Object(body).to_string();
        let open = text.trim_end_matches('}');
        hook.body = format!(r#"{open},"tool_output":"{{\"output\":\"line 1\nli"#).into_bytes();
    }

    /// Delegates work to a child that continues after the turn. Returns what [`Self::hand_back`] needs.
    pub(super) fn hand_over(&mut self, actor: &Actor) -> Outliving {
        self.oddities.insert("children that outlive");
        let number = self.next();
        let id = format!("call_{number}");
        let input =
            json!({"description": "d", "prompt": "look after it", "subagent_type": "explore"});
        let body = json!({"tool_name": "Task", "tool_input": input, "tool_use_id": id});
        let (root, turn) = (actor.conversation.clone(), actor.exec.clone());
        self.send(self.now, "preToolUse", (&root, &turn), "", body);
        let pre = self.now;
        self.wait(100, 400);
        let start = self.now;
        let body = json!({"subagent_id": id, "tool_call_id": id, "subagent_type": "explore",
            "task": "look after it", "parent_conversation_id": root, "is_parallel_worker": false});
        self.send(start, "subagentStart", (&root, &root), "composer-2.5-fast", body);
        let (tool, agent, stop) = ("Task", "explore", None);
        let task = Thing::Task { tool, agent, id: id.clone(), pre, stop, thought: None };
        let task = self.add(task, Some(actor.thing));
        let thing = Thing::Agent { agent, id: id.clone(), start: None, stop: None };
        let thing = self.add(thing, Some(task));
        self.wait(2_000, 8_000);
        let conversation = format!("child-{number}-{root}");
        let generation = format!("gen-{conversation}");
        let (exec, model) = (generation.clone(), "composer-2.5-fast");
        let child = Actor { conversation, generation, exec, model, thing, depth: 1 };
        self.call(&child);
        self.wait(300, 900);
        Outliving { id, root, pre, start, task, child }
    }

    /// Makes the rest of the child's work, after the stop of the turn that delegated it.
    pub(super) fn hand_back(&mut self, outliving: Outliving) {
        let Outliving { id, root, pre, start, task, child } = outliving;
        self.wait(3_000, 20_000);
        self.call(&child);
        self.wait(500, 2_000);
        let (stop, agent) = (self.now, "explore");
        let run = (stop - start) / MS;
        let body = json!({"subagent_id": id, "subagent_type": agent, "status": "completed",
            "duration_ms": run, "task": "look after it", "parent_conversation_id": root});
        self.send(stop, "subagentStop", (&root, &root), "composer-2.5-fast", body);
        let (tool, over) = ("Task", Some(stop));
        self.things[task].0 =
            Thing::Task { tool, agent, id: id.clone(), pre, stop: over, thought: None };
        self.things[child.thing].0 =
            Thing::Agent { agent, id, start: Some(start), stop: Some((stop, run * MS)) };
    }
}

/// A delegation that is still open when its turn stops.
pub(super) struct Outliving {
    id: String,
    root: String,
    pre: i64,
    start: i64,
    task: usize,
    child: Actor,
}
