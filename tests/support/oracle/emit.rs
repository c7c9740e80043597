//! The hooks that Cursor would send for a story, and the ways in which they arrive.

use serde_json::{Value, json};

use super::truth::{Agent, Call, Layers, Session, Story, Tool, Turn};
use crate::random::Random;

/// One hook.
#[derive(Clone, Debug)]
pub struct Hook {
    /// When it is received, milliseconds since 1970.
    pub at: u64,
    /// Its payload.
    pub body: Value,
}

/// How a story arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ways {
    /// Each hook is received up to this many milliseconds late.
    pub jitter: u64,
    /// Some hooks come twice within a second.
    pub doubled: bool,
}

/// Between the hooks of two layers.
const LAYER_MS: u64 = 40;

/// All hooks of a story, in the order in which they are received.
#[must_use]
pub fn hooks(story: &Story, ways: Ways) -> Vec<Hook> {
    let mut out = Vec::new();
    for session in &story.sessions {
        Cursor { session, out: &mut out }.session();
    }
    let mut random = Random::from_seed(story.seed ^ 0x7177);
    let mut again = Vec::new();
    for hook in &mut out {
        hook.at += if ways.jitter > 0 { random.bits() % (ways.jitter + 1) } else { 0 };
        if ways.doubled && random.bits().is_multiple_of(5) {
            again.push(Hook { at: hook.at + 1 + random.bits() % 900, ..hook.clone() });
        }
    }
    out.extend(again);
    out.sort_by_key(|hook| hook.at);
    out
}

struct Cursor<'a> {
    session: &'a Session,
    out: &'a mut Vec<Hook>,
}

/// Whose hooks they are.
#[derive(Clone, Copy)]
struct Voice<'a> {
    conversation: &'a str,
    generation: &'a str,
    model: &'a str,
}

impl Cursor<'_> {
    fn say(&mut self, at: u64, voice: Voice<'_>, name: &str, own: Value) {
        let mut body = json!({
            "hook_event_name": name,
            "conversation_id": voice.conversation,
            "session_id": voice.conversation,
            "generation_id": voice.generation,
            "model": voice.model,
            "cursor_version": "3.18.25",
            "workspace_roots": [self.session.workspace],
            "user_email": "dev@example.com",
            "transcript_path": null,
        });
        if let (Some(body), Value::Object(own)) = (body.as_object_mut(), own) {
            body.extend(own);
        }
        self.out.push(Hook { at, body });
    }

    fn session(&mut self) {
        let session = self.session;
        for turn in &session.turns {
            self.turn(turn);
        }
        if let Some(last) = session.turns.last().filter(|_| session.ends) {
            let voice = Voice { conversation: &session.id, generation: "", model: &last.model };
            self.say(last.end + 5_000, voice, "sessionEnd", json!({"reason": "user_close"}));
        }
    }

    fn turn(&mut self, turn: &Turn) {
        let session = self.session;
        let voice =
            Voice { conversation: &session.id, generation: &turn.generation, model: &turn.model };
        let prompt = json!({"prompt": format!("please {}", turn.word), "attachments": []});
        self.say(turn.start, voice, "beforeSubmitPrompt", prompt);
        for call in &turn.calls {
            self.call(call, voice);
        }
        for agent in &turn.agents {
            self.agent(agent, voice);
        }
        let mut told = json!({});
        if let Some([input, output, read, write]) = turn.tokens {
            told = json!({"input_tokens": input, "output_tokens": output,
                          "cache_read_tokens": read, "cache_write_tokens": write});
        }
        let mut response = told.clone();
        response["text"] = json!("done");
        self.say(turn.end - 800, voice, "afterAgentResponse", response);
        told["status"] = json!(turn.status);
        told["loop_count"] = json!(0);
        self.say(turn.end, voice, "stop", told);
    }

    fn agent(&mut self, agent: &Agent, above: Voice<'_>) {
        let task = format!("look {}", agent.id);
        let input = json!({"description": "a look", "prompt": task, "subagent_type": "explore"});
        let pre = json!({"tool_name": "Task", "tool_input": input, "tool_use_id": agent.id});
        self.say(agent.start, above, "preToolUse", pre);
        let mut own = json!({"subagent_id": agent.id, "subagent_type": "explore", "task": task,
            "parent_conversation_id": above.conversation, "tool_call_id": agent.id});
        let parent = Voice { generation: above.conversation, ..above };
        own["subagent_model"] = json!(agent.model);
        self.say(agent.start + 300, parent, "subagentStart", own.clone());
        let voice = Voice {
            conversation: &agent.conversation,
            generation: &agent.generation,
            model: &agent.model,
        };
        for call in &agent.calls {
            self.call(call, voice);
        }
        for below in &agent.agents {
            self.agent(below, voice);
        }
        own["status"] = json!(if agent.failed { "error" } else { "completed" });
        own["duration_ms"] = json!(agent.end - agent.start - 300);
        own["summary"] = json!("seen");
        self.say(agent.end, parent, "subagentStop", own);
    }

    fn call(&mut self, call: &Call, voice: Voice<'_>) {
        let layers = self.session.layers;
        let name = match call.tool {
            Tool::Mcp => format!("MCP:{}", call.tool.name()),
            tool => tool.name().to_owned(),
        };
        let input = call.input(&self.session.workspace);
        let mut pre = json!({"tool_name": name, "tool_input": input});
        if self.session.ids {
            pre["tool_use_id"] = json!(call.id);
        }
        if matches!(layers, Layers::Generic | Layers::Both) {
            self.say(call.start, voice, "preToolUse", pre.clone());
        }
        let before = if layers == Layers::Both { LAYER_MS } else { 0 };
        let has_before = matches!(layers, Layers::Both | Layers::Specific);
        if let Some((event, own)) = self.before(call).filter(|_| has_before) {
            self.say(call.start + before, voice, event, own);
        }
        if call.hangs {
            return;
        }
        let done = call.start + before + call.duration + 5;
        let has_after = layers != Layers::Generic || call.tool == Tool::Write;
        if let Some((event, own)) = self.after(call).filter(|_| has_after) {
            self.say(done, voice, event, own);
        }
        if layers == Layers::Specific {
            return;
        }
        pre["duration"] = json!(call.duration as f64);
        let (event, own) = post(call);
        if let (Some(pre), Value::Object(own)) = (pre.as_object_mut(), own) {
            pre.extend(own);
        }
        let between = if layers == Layers::Generic { 0 } else { LAYER_MS };
        self.say(done + between, voice, event, pre);
    }

    fn before(&self, call: &Call) -> Option<(&'static str, Value)> {
        let workspace = &self.session.workspace;
        match call.tool {
            Tool::Shell => {
                let command = call.command();
                Some((
                    "beforeShellExecution",
                    json!({"command": command, "cwd": "", "sandbox": false}),
                ))
            }
            Tool::Read => {
                let path = format!("{workspace}/{}", call.path());
                Some((
                    "beforeReadFile",
                    json!({"file_path": path, "content": call.mark, "attachments": []}),
                ))
            }
            Tool::Mcp => Some((
                "beforeMCPExecution",
                json!({"tool_name": call.tool.name(), "tool_input": call.input(workspace).to_string(),
                       "mcp_server_name": "GitHub", "command": "GitHub"}),
            )),
            Tool::Grep | Tool::StrReplace | Tool::Write => None,
        }
    }

    fn after(&self, call: &Call) -> Option<(&'static str, Value)> {
        let workspace = &self.session.workspace;
        let duration = call.duration as f64;
        match call.tool {
            Tool::Shell => {
                let command = call.command();
                let own = json!({"command": command, "output": call.output(), "duration": duration, "sandbox": false});
                Some(("afterShellExecution", own))
            }
            Tool::Mcp => Some((
                "afterMCPExecution",
                json!({"tool_name": call.tool.name(), "tool_input": call.input(workspace).to_string(),
                       "result_json": result(call), "duration": duration, "mcp_server_name": "GitHub"}),
            )),
            Tool::StrReplace | Tool::Write => {
                let (old, new) = call.edit.clone().unwrap_or_default();
                let path = format!("{workspace}/{}", call.path());
                let edits = json!([{"old_string": old, "new_string": new}]);
                Some(("afterFileEdit", json!({"file_path": path, "edits": edits})))
            }
            Tool::Read | Tool::Grep => None,
        }
    }
}

fn result(call: &Call) -> String {
    json!({"content": [], "isError": call.failed}).to_string()
}

fn post(call: &Call) -> (&'static str, Value) {
    let done = |output: Value| ("postToolUse", json!({"tool_output": output.to_string()}));
    match call.tool {
        Tool::Shell => done(json!({"output": call.output(), "exitCode": i32::from(call.failed)})),
        Tool::Mcp => ("postToolUse", json!({"tool_output": result(call)})),
        _ if call.failed => (
            "postToolUseFailure",
            json!({"error_message": format!("cannot do {}", call.mark), "failure_type": "error",
                   "is_interrupt": false}),
        ),
        _ => done(json!({"success": true})),
    }
}
