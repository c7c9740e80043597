//! Makes a well-formed story from a list of numbers. Each number stands for one thing that happens.

use hookspan_core::{Hook, Timestamp};
use serde_json::{Value, json};

/// All event names that can occur in a story.
pub(crate) const EVENTS: [&str; 21] = [
    "workspaceOpen",
    "sessionStart",
    "sessionEnd",
    "beforeSubmitPrompt",
    "preToolUse",
    "postToolUse",
    "postToolUseFailure",
    "beforeShellExecution",
    "afterShellExecution",
    "beforeMCPExecution",
    "afterMCPExecution",
    "beforeReadFile",
    "afterFileEdit",
    "afterAgentResponse",
    "afterAgentThought",
    "stop",
    "subagentStart",
    "subagentStop",
    "preCompact",
    "beforeTabFileRead",
    "afterTabFileEdit",
];

const MS: i64 = 1_000_000;

struct Teller {
    hooks: Vec<Hook>,
    now: i64,
    turns: usize,
    calls: usize,
    open: bool,
    pending: Vec<Value>,
    agents: Vec<(String, String)>,
    children: usize,
}

/// The hooks of a story.
pub(crate) fn tell(ops: &[u8]) -> Vec<Hook> {
    let mut teller = Teller {
        hooks: Vec::new(),
        now: 1_780_000_000_000 * MS,
        turns: 0,
        calls: 0,
        open: false,
        pending: Vec::new(),
        agents: Vec::new(),
        children: 0,
    };
    for (index, &op) in ops.iter().enumerate() {
        teller.step(op, index);
    }
    teller.hooks
}

impl Teller {
    fn step(&mut self, op: u8, index: usize) {
        self.now += match (op >> 5, index % 16) {
            (7, 3) => 45 * 60_000 * MS,
            (7, 9) => 2 * 3_600_000 * MS,
            (step, _) => i64::from(step) * 400 * MS + 7 * MS,
        };
        if op >= 240 {
            return self.vague(op % 8, index);
        }
        match op % 24 {
            0 => self.prompt(),
            1 | 2 => self.stop(),
            3..=6 => self.read(index),
            7 | 8 => self.shell(index),
            9 => self.mcp(),
            10 | 11 => self.edit(),
            12 => self.begin(),
            13 => self.fail(),
            14 => self.think(index),
            15 => self.respond(index),
            16 => self.delegate(),
            17 | 18 => self.child(),
            19 => self.rejoin(),
            20 => self.push("preCompact", json!({"trigger": "auto", "context_tokens": index})),
            21 => self.push("somethingNew", json!({"x": index})),
            22 => self.session(op >> 5),
            _ => self.tab(op >> 5),
        }
    }

    fn generation(&mut self) -> String {
        if !self.open {
            self.open = true;
            self.turns += 1;
        }
        format!("gen-{}", self.turns)
    }

    fn push(&mut self, name: &str, own: Value) {
        let generation = self.generation();
        self.send(name, "root", &generation, own);
    }

    fn send(&mut self, name: &str, conversation: &str, generation: &str, own: Value) {
        let mut body = json!({
            "hook_event_name": name,
            "conversation_id": conversation,
            "generation_id": generation,
            "cursor_version": "3.7.19",
            "model": "gpt-5.5",
            "workspace_roots": ["/w/app"],
        });
        let own = own.as_object().cloned().unwrap_or_default();
        if let Some(object) = body.as_object_mut() {
            object.extend(own);
        }
        let hook = Hook {
            seq: self.hooks.len() as u64 + 1,
            observed_at: Timestamp(self.now),
            body: body.to_string().into_bytes(),
            ..Hook::default()
        };
        self.hooks.push(hook);
        self.now += 11 * MS;
    }

    fn prompt(&mut self) {
        self.open = false;
        self.push("beforeSubmitPrompt", json!({"prompt": "do it", "attachments": []}));
    }

    fn stop(&mut self) {
        if self.open {
            let tokens = json!({"status": "completed", "input_tokens": 5, "output_tokens": 1});
            self.push("stop", tokens);
            self.open = false;
            self.pending.clear();
            self.agents.clear();
        }
    }

    /// Varies a hook as other builds and hosts do: ids used twice, ends with fewer facts, one event in two wordings.
    fn vague(&mut self, kind: u8, index: usize) {
        let read = json!({"file_path": "/w/app/v.rs"});
        let named = |tool: &str, input: &Value| json!({"tool_name": tool, "tool_input": input, "tool_use_id": "call_0"});
        match kind {
            0 => {
                self.push("preToolUse", named("Read", &read));
                self.push("preToolUse", named("Write", &read));
                self.end(named("Write", &read), json!({"tool_output": "{}", "duration": 4.5}));
            }
            1 => {
                self.push("preToolUse", named("Read", &read));
                let duration = 2.5 + index as f64;
                self.end(named("Read", &read), json!({"tool_output": "{}", "duration": duration}));
            }
            2 => {
                let call = self.call("Grep", json!({"pattern": "v"}));
                self.push("preToolUse", call);
                let end = json!({"tool_name": "Grep", "tool_output": "{}", "duration": 3.5});
                self.push("postToolUse", end);
            }
            3 => {
                let own = json!({"text": "plainly", "duration_ms": 90});
                let generation = format!("{}-{index}-ef01", self.generation());
                self.push("afterAgentThought", own.clone());
                self.send("afterAgentThought", "root", &generation, own);
                self.push("afterAgentResponse", json!({"text": "once"}));
                let tokens = json!({"text": "once", "input_tokens": 7, "output_tokens": 2});
                self.push("afterAgentResponse", tokens);
            }
            4 => {
                self.agents.pop();
                let own =
                    json!({"subagent_type": "explore", "task": "look", "status": "completed"});
                self.send("subagentStop", "root", "root", own);
            }
            5 => {
                let call = self.call("Shell", json!({"command": "ls -a", "cwd": ""}));
                self.push("preToolUse", call.clone());
                let own = json!({"command": "nice ls -a", "cwd": "", "sandbox": true});
                self.push("beforeShellExecution", own);
                let duration = 15.25 + self.calls as f64;
                let own = json!({"command": "nice ls -a", "output": "a", "duration": duration});
                self.push("afterShellExecution", own);
                self.end(call, json!({"tool_output": "{}", "duration": duration}));
            }
            6 => {
                let Some((id, child)) = self.agents.first().cloned() else { return };
                let mut call = self.call("Read", read);
                call["parent_tool_call_id"] = json!(id);
                self.send("preToolUse", &child, &format!("{child}-gen"), call);
                let own = json!({"subagent_id": id, "child_conversation_id": child,
                    "subagent_type": "explore", "status": "completed"});
                if index.is_multiple_of(2) {
                    self.send("subagentStop", "root", "root", own);
                }
            }
            _ => {
                let input = json!({"command": "serve", "is_background": true});
                let call = self.call("Shell", input);
                self.push("preToolUse", call.clone());
                self.end(call, json!({"tool_output": "{\"shell_id\":7}", "duration": 5.5}));
                let call = self.call("AskQuestion", json!({"title": "which?"}));
                self.push("preToolUse", call.clone());
                self.end(call, json!({"tool_output": "{}", "duration": 10.5}));
            }
        }
    }

    fn call(&mut self, tool: &str, input: Value) -> Value {
        self.calls += 1;
        let id = if self.calls.is_multiple_of(9) {
            String::new()
        } else {
            format!("call\n{}", self.calls)
        };
        json!({"tool_name": tool, "tool_input": input, "tool_use_id": id})
    }

    fn read(&mut self, index: usize) {
        let path = format!("/w/app/{}.rs", index % 3);
        let call = self.call("Read", json!({"file_path": path}));
        self.push("preToolUse", call.clone());
        self.push("beforeReadFile", json!({"file_path": path, "content": "x"}));
        self.end(call, json!({"tool_output": "{\"content_length\":1}", "duration": 1.25}));
    }

    fn end(&mut self, mut call: Value, more: Value) {
        if let (Some(call), Some(more)) = (call.as_object_mut(), more.as_object()) {
            call.extend(more.clone());
        }
        self.push("postToolUse", call);
    }

    fn shell(&mut self, index: usize) {
        let call = self.call("Shell", json!({"command": "ls", "cwd": ""}));
        if !index.is_multiple_of(5) {
            self.push("preToolUse", call.clone());
        }
        self.push("beforeShellExecution", json!({"command": "ls", "cwd": "", "sandbox": true}));
        let duration = 20.5 + self.calls as f64;
        let output = json!({"command": "ls", "output": "a", "duration": duration});
        self.push("afterShellExecution", output);
        if !index.is_multiple_of(5) {
            let code = i32::from(index % 4 == 1);
            let output = format!("{{\"output\":\"a\",\"exitCode\":{code}}}");
            self.end(call, json!({"tool_output": output, "duration": duration}));
        }
    }

    fn mcp(&mut self) {
        let call = self.call("MCP:list", json!({"limit": 1}));
        self.push("preToolUse", call.clone());
        let own = json!({"tool_name": "list", "tool_input": "{\"limit\":1}", "command": "srv"});
        self.push("beforeMCPExecution", own.clone());
        let duration = 9.5 + self.calls as f64;
        let mut after = own;
        after["result_json"] = json!("{\"isError\":false}");
        after["duration"] = json!(duration);
        self.push("afterMCPExecution", after);
        self.end(call, json!({"tool_output": "{\"isError\":true}", "duration": duration}));
    }

    fn edit(&mut self) {
        let call = self.call("Write", json!({"file_path": "/w/app/e.rs", "content": "a\nb"}));
        self.push("preToolUse", call.clone());
        let edits = json!([{"old_string": "a", "new_string": "a\nb"}]);
        self.push("afterFileEdit", json!({"file_path": "/w/app/e.rs", "edits": edits}));
        self.end(call, json!({"tool_output": "{}", "duration": 3}));
    }

    fn begin(&mut self) {
        let call = self.call("Grep", json!({"pattern": "x", "path": "/w/app"}));
        self.push("preToolUse", call.clone());
        self.pending.push(call);
    }

    fn fail(&mut self) {
        let Some(mut call) = self.pending.pop() else { return };
        call["failure_type"] = json!("timeout");
        call["duration"] = json!(5);
        self.push("postToolUseFailure", call);
    }

    fn think(&mut self, index: usize) {
        let own = json!({"text": format!("hm {}", index % 2), "duration_ms": 120});
        if index.is_multiple_of(3) {
            let generation = format!("{}-{index}-abcd", self.generation());
            self.send("afterAgentThought", "root", &generation, own);
        } else {
            self.push("afterAgentThought", own);
        }
    }

    fn respond(&mut self, index: usize) {
        let own =
            json!({"text": format!("r {}", index % 2), "input_tokens": 5, "output_tokens": 1});
        self.push("afterAgentResponse", own);
    }

    fn delegate(&mut self) {
        let input = json!({"prompt": "look", "subagent_type": "explore"});
        let mut call = self.call("Task", input);
        let id = format!("task-{}", self.calls);
        call["tool_use_id"] = json!(id);
        self.push("preToolUse", call);
        let own = json!({
            "subagent_id": id, "tool_call_id": id, "subagent_type": "explore", "task": "look",
            "parent_conversation_id": "root", "subagent_model": "gpt-5.5",
        });
        self.send("subagentStart", "root", "root", own);
        self.children += 1;
        self.agents.push((id, format!("child-{}", self.children)));
    }

    fn child(&mut self) {
        let Some((_, child)) = self.agents.last().cloned() else { return };
        let generation = format!("{child}-gen");
        let call = self.call("Read", json!({"file_path": "/w/app/c.rs"}));
        self.send("preToolUse", &child, &generation, call.clone());
        let mut post = call;
        post["tool_output"] = json!("{}");
        post["duration"] = json!(2.5);
        self.send("postToolUse", &child, &generation, post);
    }

    fn rejoin(&mut self) {
        let Some((id, _)) = self.agents.pop() else { return };
        let own = json!({
            "subagent_id": id, "subagent_type": "explore", "task": "look", "status": "completed",
            "duration_ms": 30, "summary": "done",
        });
        self.send("subagentStop", "root", "root", own);
    }

    fn session(&mut self, which: u8) {
        match which % 4 {
            0 => self.send("sessionEnd", "root", "", json!({"reason": "user_close"})),
            1 => self.send("workspaceOpen", "", "", json!({})),
            _ => self.send("sessionStart", "root", "", json!({"composer_mode": "agent"})),
        }
    }

    fn tab(&mut self, which: u8) {
        let edits = json!([{"old_string": "a", "new_string": "ab"}]);
        match which % 2 {
            0 => self.push("beforeTabFileRead", json!({"file_path": "/w/app/t.rs", "content": ""})),
            _ => self.push("afterTabFileEdit", json!({"file_path": "/w/app/t.rs", "edits": edits})),
        }
    }
}
