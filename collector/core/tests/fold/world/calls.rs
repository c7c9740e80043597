//! The calls of a generated session, and the work that it delegates.

use serde_json::{Value, json};

use super::{Actor, MS, Maker, Surface, Thing, Told};

impl Maker {
    /// One tool call of any kind.
    pub(super) fn call(&mut self, actor: &Actor) {
        let number = self.next();
        let equal = self.flavor.crowded && self.dice.roll(3) == 0;
        let file = format!("/w/app/{}.rs", if equal { 0 } else { number });
        let command = format!("tool-{} run", if equal { 0 } else { number });
        let kind = self.dice.roll(6);
        let (tool, input) = match kind {
            0 | 1 => ("Read".to_owned(), json!({"file_path": file})),
            2 => ("Grep".to_owned(), json!({"pattern": format!("x{number}"), "path": file})),
            3 => ("Shell".to_owned(), json!({"command": command, "cwd": ""})),
            4 => (format!("MCP:look_{number}"), json!({"q": number})),
            _ => ("Write".to_owned(), json!({"file_path": file, "content": "a"})),
        };
        let odd = self.oddity(actor, kind == 3);
        let id = odd.id.clone().unwrap_or_else(|| format!("call_{number}\nfc_{number}"));
        let run = self.dice.between(1, 2_000) * MS / 4 + 250_000;
        let outcome = self.dice.roll(12);
        let (pre, begins) = (self.now, self.now + self.dice.between(20, 45) * MS);
        let ends = begins + self.dice.between(20, 45) * MS + run + odd.asks;
        let named = if odd.without_id { String::new() } else { id.clone() };
        let mut told = Told { id: named, pre, run, ..Told::default() };
        let program = command.split(' ').next().unwrap_or_default().to_owned();
        told.name = match kind {
            3 => format!("execute_tool Shell {program}"),
            4 => format!("execute_tool look_{number}"),
            _ => format!("execute_tool {tool}"),
        };
        told.bare = told.name.clone();
        let turn = if odd.without_turn { "" } else { actor.exec.as_str() };
        let who = (actor.conversation.as_str(), turn);
        let mut generic = json!({"tool_name": tool, "tool_input": input, "tool_use_id": id});
        if let Some(generic) = generic.as_object_mut().filter(|_| odd.without_id) {
            generic.remove("tool_use_id");
        }
        let with = |mut body: Value, more: Value| {
            if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
                body.extend(more);
            }
            body
        };
        self.send(pre, "preToolUse", who, actor.model, generic.clone());
        let duration = run as f64 / 1e6;
        let fails = outcome < 2;
        let hangs = outcome == 2;
        let specific = self.surface == Surface::Ide || kind < 2;
        if specific && !(fails && kind < 2) {
            let inner = input.to_string();
            let before = match kind {
                // The two layers may spell a file differently.
                0 => Some(("beforeReadFile", json!({"file_path": file, "content": "x"}))),
                1 => Some((
                    "beforeReadFile",
                    json!({"file_path": format!("file://{file}"), "content": "x"}),
                )),
                3 => Some(("beforeShellExecution", json!({"command": command, "cwd": ""}))),
                4 => Some((
                    "beforeMCPExecution",
                    json!({"tool_name": format!("look_{number}"), "tool_input": inner, "command": "srv"}),
                )),
                _ => None,
            };
            if let Some((name, body)) = before {
                self.send(begins, name, who, actor.model, body);
                told.before = Some((name, begins));
            }
            let after = match kind {
                3 => Some((
                    "afterShellExecution",
                    json!({"command": command, "output": "x", "duration": duration}),
                )),
                4 => Some((
                    "afterMCPExecution",
                    json!({"tool_name": format!("look_{number}"), "tool_input": inner,
                        "result_json": "{\"isError\":false}", "duration": duration}),
                )),
                5 => Some((
                    "afterFileEdit",
                    json!({"file_path": file, "edits": [{"old_string": "", "new_string": "a"}]}),
                )),
                _ => None,
            };
            if let Some((name, body)) = after.filter(|_| !fails && !hangs) {
                let at = ends - 10 * MS;
                self.send(at, name, who, actor.model, body);
                told.after = Some((name, at));
                told.after_has_run = kind != 5;
            }
        }
        self.now = ends;
        if let Some(generic) = generic.as_object_mut().filter(|_| odd.says_less) {
            generic.remove("tool_input");
        }
        if fails {
            let body =
                json!({"error_message": "no", "failure_type": "error", "duration": duration});
            self.send(ends, "postToolUseFailure", who, actor.model, with(generic, body));
            told.post = Some(("postToolUseFailure", ends));
        } else if !hangs {
            let body = json!({"tool_output": "{}", "duration": duration});
            self.send(ends, "postToolUse", who, actor.model, with(generic, body));
            if odd.cut {
                self.cut_output();
            }
            told.post = Some(("postToolUse", ends));
        }
        if !hangs && self.serial && !odd.without_id {
            self.over.insert(actor.conversation.clone(), id);
        }
        self.add(Thing::Call(told), Some(actor.thing));
    }

    /// Delegates work to a child, with the IDE's hooks.
    pub(super) fn delegate(&mut self, actor: &Actor) {
        let parallel = self.flavor.crowded && actor.depth == 0 && self.dice.roll(3) == 0;
        let models: &[&'static str] =
            if parallel { &["composer-2.5-fast", "gpt-5.5-mini"] } else { &["composer-2.5-fast"] };
        let mut open = Vec::new();
        for &model in models {
            let number = self.next();
            let id = format!("call_{number}\nfc_{number}");
            let input = json!({"description": "d", "prompt": "look around",
                "subagent_type": "explore", "run_in_background": false});
            let body = json!({"tool_name": "Subagent", "tool_input": input, "tool_use_id": id});
            let who = (actor.conversation.clone(), actor.exec.clone());
            self.send(self.now, "preToolUse", (&who.0, &who.1), "", body);
            let pre = self.now;
            self.wait(100, 400);
            let start = self.now;
            let body = json!({"subagent_id": id, "tool_call_id": id, "subagent_type": "explore",
                "task": "look around", "parent_conversation_id": actor.conversation,
                "subagent_model": model, "is_parallel_worker": false});
            self.send(start, "subagentStart", (&who.0, &who.0), model, body);
            let task = Thing::Task {
                tool: "Subagent",
                agent: "explore",
                id: id.clone(),
                pre,
                stop: None,
                thought: None,
            };
            let task = self.add(task, Some(actor.thing));
            let agent = Thing::Agent { agent: "explore", id: id.clone(), start: None, stop: None };
            let agent = self.add(agent, Some(task));
            let conversation = format!("child-{number}-{}", actor.conversation);
            open.push((id, model, pre, start, task, agent, conversation));
            self.wait(10, 20);
        }
        self.wait(2_000, 8_000);
        for (_, model, _, _, _, agent, conversation) in &open {
            let mut child = Actor {
                generation: format!("gen-{conversation}"),
                exec: format!("gen-{conversation}"),
                conversation: conversation.clone(),
                model,
                thing: *agent,
                depth: actor.depth + 1,
            };
            // The child's first call. It is the first hook that names the child.
            self.call(&child);
            self.wait(300, 900);
            for step in 0..self.dice.roll(4) {
                self.step(&mut child, step);
            }
        }
        self.wait(500, 10_000);
        for (id, model, pre, start, task, agent, _) in open {
            let stop = self.now;
            let run = (stop - start) / MS;
            let body = json!({"subagent_id": id, "subagent_type": "explore", "status": "completed",
                "duration_ms": run, "task": "look around", "summary": "ok",
                "parent_conversation_id": actor.conversation});
            let who = actor.conversation.clone();
            self.send(stop, "subagentStop", (&who, &who), model, body);
            self.things[task].0 = Thing::Task {
                tool: "Subagent",
                agent: "explore",
                id: id.clone(),
                pre,
                stop: Some(stop),
                thought: None,
            };
            self.things[agent].0 = Thing::Agent {
                agent: "explore",
                id,
                start: Some(start),
                stop: Some((stop, run * MS)),
            };
            self.wait(10, 20);
        }
    }

    /// Delegates work to a child, with the CLI's hooks: only the parent's next thought ends the delegation.
    pub(super) fn delegate_on_the_cli(&mut self, actor: &Actor) {
        let number = self.next();
        let id = format!("toolu_{number}");
        let input = json!({"description": "d", "prompt": "look around",
            "subagent_type": "prober", "run_in_background": false});
        let body = json!({"tool_name": "Task", "tool_input": input, "tool_use_id": id});
        let pre = self.now;
        let who = (actor.conversation.clone(), actor.generation.clone());
        self.send(pre, "preToolUse", (&who.0, &who.1), "", body);
        let task = Thing::Task {
            tool: "Task",
            agent: "prober",
            id: id.clone(),
            pre,
            stop: None,
            thought: None,
        };
        let task = self.add(task, Some(actor.thing));
        self.wait(1_000, 5_000);
        let (start, id_of_agent) = (Some(self.now), String::new());
        let agent = Thing::Agent { agent: "subagent", id: id_of_agent, start, stop: None };
        let agent = self.add(agent, Some(task));
        let conversation = format!("child-{number}-{}", actor.conversation);
        let child = Actor {
            generation: format!("gen-{conversation}"),
            exec: conversation.clone(),
            conversation,
            model: "claude-4.5-sonnet-thinking",
            thing: agent,
            depth: 1,
        };
        self.think(&child, 0);
        for _ in 0..1 + self.dice.roll(3) {
            self.call(&child);
            self.wait(300, 900);
        }
        self.wait(2_000, 9_000);
        // The step number is beyond every step of the turn itself, because a step is the key of a thought.
        let at = self.think(actor, 100 + number);
        self.things[task].0 =
            Thing::Task { tool: "Task", agent: "prober", id, pre, stop: None, thought: Some(at) };
    }
}
