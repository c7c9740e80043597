//! The sample data: a few projects, two weeks, turns that read files, run commands, edit, fail and delegate.

use std::fmt::Write as _;

use fastrand::Rng;
use serde_json::{Value, json};

const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND;

const PROJECTS: [&str; 4] = ["lighthouse", "harbour-api", "tide-tables", "docs"];
const MODELS: [&str; 3] = ["composer-2", "gpt-5.5", "claude-4.5-sonnet"];
const PROMPTS: [&str; 10] = [
    "The lamp test is flaky. Find out why and make it reliable.",
    "Add pagination to the berth list, with tests.",
    "Bump axum and fix what breaks.",
    "Why does the tide table miss the leap second?",
    "Write the missing docs for the signal module.",
    "Rename Beacon to Light everywhere, keep the old name as an alias.",
    "Make the import ten times faster.",
    "Review my last commit and tell me what you would change.",
    "The container does not start any more. Look at the logs.",
    "Now the tests, please.",
];
const THOUGHTS: [&str; 4] = [
    "The test waits for a fixed time; under load the lamp has not turned yet. Wait for the event instead.",
    "Two call sites build the query by hand. One helper, then a keyset.",
    "The lockfile pins hyper 0.14 through an old client. Replace that first.",
    "Read the module before changing anything.",
];
const FILES: [&str; 8] = [
    "src/lamp.rs",
    "src/beacon/mod.rs",
    "src/api/berths.rs",
    "tests/turns.rs",
    "Cargo.toml",
    "README.md",
    "src/tide.rs",
    "docs/signals.md",
];
/// Command, output, exit code, typical milliseconds.
const COMMANDS: [(&str, &str, i64, u64); 8] = [
    ("cargo test --workspace", "running 42 tests\n42 passed; 0 failed", 0, 14_000),
    ("cargo test --workspace", "test shines_far ... FAILED\n41 passed; 1 failed", 101, 12_000),
    ("cargo clippy --all-targets -- -D warnings", "Finished `dev` profile", 0, 9_000),
    ("git status --porcelain", " M src/lamp.rs\n", 0, 40),
    ("git diff --stat", " src/lamp.rs | 12 +++++-----\n", 0, 60),
    ("npm run build", "built in 4.1s", 0, 6_000),
    ("docker compose up -d", "Error: port is already allocated", 1, 2_500),
    ("rg -n 'TODO' src", "src/tide.rs:88: // TODO leap second\n", 0, 30),
];

/// The sample history as import lines, ending at `now` (nanoseconds since the epoch). Equal arguments give equal lines.
pub(super) fn write(now: i64, sessions: u32) -> String {
    let mut author =
        Author { rng: Rng::with_seed(4_329), out: String::new(), at: 0, ids: Ids::default() };
    for number in 0..sessions {
        // Squared, so that most sessions are recent. The last two are within the last hour.
        let back = f64::from(sessions - number) / f64::from(sessions);
        let at = if number + 2 >= sessions {
            now - HOUR / 2 * i64::from(sessions - number)
        } else {
            now - 2 * HOUR - (back * back * 14.0 * 24.0 * HOUR as f64) as i64
        };
        let open = number + 1 == sessions;
        author.session(number, at, now, open);
    }
    author.out
}

#[derive(Default)]
struct Ids {
    conversation: String,
    generation: String,
    model: &'static str,
    workspace: String,
}

struct Author {
    rng: Rng,
    out: String,
    at: i64,
    ids: Ids,
}

impl Author {
    fn session(&mut self, number: u32, at: i64, now: i64, open: bool) {
        self.at = at;
        self.ids = Ids {
            conversation: self.uuid(),
            generation: String::new(),
            model: MODELS[self.rng.usize(..MODELS.len())],
            workspace: format!("/home/dev/src/{}", PROJECTS[self.rng.usize(..PROJECTS.len())]),
        };
        self.emit("sessionStart", json!({"is_background_agent": false, "composer_mode": "agent"}));
        let turns = 1 + self.rng.usize(..5);
        for turn in 0..turns {
            let last = turn + 1 == turns;
            // Sessions other than the last must end in the past.
            if self.at > now - 600 * SECOND {
                break;
            }
            self.turn(number as usize + turn, open && last);
            self.pass(30_000, 600_000);
        }
        if !open && self.rng.bool() {
            self.emit("sessionEnd", json!({"reason": "user_close", "duration_ms": 0}));
        }
    }

    fn turn(&mut self, number: usize, open: bool) {
        self.ids.generation = self.uuid();
        let prompt = PROMPTS[number % PROMPTS.len()];
        self.emit("beforeSubmitPrompt", json!({"prompt": prompt, "attachments": []}));
        let calls = 3 + self.rng.usize(..14);
        for call in 0..calls {
            if call % 4 == 0 {
                self.thought();
            }
            match self.rng.u8(..20) {
                0..7 => self.read(),
                7..12 => self.shell(),
                12..16 => self.edit(),
                16..18 => self.search(),
                18 => self.mcp(),
                _ => self.subagent(),
            }
        }
        if open {
            // The one session that runs now.
            let id = self.call_id();
            let input = json!({"command": "cargo test --workspace", "cwd": ""});
            self.emit(
                "preToolUse",
                json!({"tool_name": "Shell", "tool_use_id": id, "tool_input": input}),
            );
            return;
        }
        let tokens = json!({
            "input_tokens": 9_000 + self.rng.u64(..60_000), "output_tokens": 200 + self.rng.u64(..4_000),
            "cache_read_tokens": 4_000 + self.rng.u64(..5_000), "cache_write_tokens": self.rng.u64(..3_000),
        });
        self.pass(800, 4_000);
        let mut response = tokens.clone();
        response["text"] =
            json!("Done: the change is small, the tests pass, and I left a note where it matters.");
        self.emit("afterAgentResponse", response);
        let mut stop = tokens;
        stop["status"] = json!(if self.rng.u8(..12) == 0 { "aborted" } else { "completed" });
        stop["loop_count"] = json!(0);
        self.pass(40, 90);
        self.emit("stop", stop);
    }

    fn thought(&mut self) {
        let ms = 700 + self.rng.u64(..5_000);
        self.pass_ms(ms);
        let text = THOUGHTS[self.rng.usize(..THOUGHTS.len())];
        self.emit("afterAgentThought", json!({"text": text, "duration_ms": ms}));
    }

    fn read(&mut self) {
        let path = self.path();
        let missing = self.rng.u8(..18) == 0;
        self.call("Read", &json!({"file_path": path}), 12, |ms| {
            if missing {
                json!({"error_message": "File not found", "failure_type": "error", "duration": ms})
            } else {
                json!({"tool_output": "{\"content_length\": 2048}", "duration": ms})
            }
        });
    }

    fn search(&mut self) {
        let path = self.ids.workspace.clone();
        let input = json!({"pattern": "fn turn", "path": path, "output_mode": "content"});
        self.call(
            "Grep",
            &input,
            60,
            |ms| json!({"tool_output": "{\"matches\": 7}", "duration": ms}),
        );
    }

    fn mcp(&mut self) {
        let input = json!({"query": "is:open label:bug lamp"});
        self.call("MCP:search_issues", &input, 700, |ms| {
            json!({"tool_output": "{\"content\":[{\"type\":\"text\",\"text\":\"#41 the lamp flickers\"}]}", "duration": ms})
        });
    }

    fn edit(&mut self) {
        let path = self.path();
        let (old, new) = ("    thread::sleep(SECOND);\n", "    lamp.wait_for(Turn::Whole);\n");
        let input = json!({"file_path": path, "old_string": old, "new_string": new});
        self.call(
            "StrReplace",
            &input,
            25,
            |ms| json!({"tool_output": "{\"success\": true}", "duration": ms}),
        );
        let edits = json!([{"old_string": old, "new_string": new}]);
        self.emit("afterFileEdit", json!({"file_path": path, "edits": edits}));
    }

    fn shell(&mut self) {
        let (command, output, exit, typical) = COMMANDS[self.rng.usize(..COMMANDS.len())];
        if self.rng.u8(..15) == 0 {
            // Before this call, the agent waited for a person's approval.
            self.pass(5_000, 90_000);
        }
        let input = json!({"command": command, "cwd": "", "timeout": 120_000});
        let shown = json!({"output": output, "exitCode": exit}).to_string();
        self.call("Shell", &input, typical, |ms| json!({"tool_output": shown, "duration": ms}));
    }

    fn subagent(&mut self) {
        let id = self.call_id();
        let task =
            "Explore the repository and report where the lamp is tested. Answer in ten lines.";
        let input = json!({"description": "Explore", "prompt": task, "subagent_type": "explore"});
        self.emit(
            "preToolUse",
            json!({"tool_name": "Task", "tool_use_id": id, "tool_input": input}),
        );
        let parent = self.ids.conversation.clone();
        let about = json!({
            "subagent_id": id, "tool_call_id": id, "subagent_type": "explore", "task": task,
            "parent_conversation_id": parent,
        });
        self.emit("subagentStart", about.clone());
        let started = self.at;
        for _ in 0..2 + self.rng.usize(..4) {
            self.read();
        }
        let ms = (self.at - started) / 1_000_000;
        let mut stop = about;
        stop["status"] = json!("completed");
        stop["duration_ms"] = json!(ms);
        stop["summary"] =
            json!("tests/turns.rs:41 waits for a fixed time; the rest waits for events.");
        self.emit("subagentStop", stop);
        let done = json!({
            "tool_name": "Task", "tool_use_id": id, "tool_input": input,
            "tool_output": "{\"status\": \"completed\"}", "duration": ms,
        });
        self.emit("postToolUse", done);
    }

    /// A call from its first hook to its last. `end` makes the fields of the last hook other than name, id and input.
    fn call(&mut self, tool: &str, input: &Value, typical_ms: u64, end: impl FnOnce(f64) -> Value) {
        self.pass(200, 1_500);
        let id = self.call_id();
        let mut hook = json!({"tool_name": tool, "tool_use_id": id, "tool_input": input});
        self.emit("preToolUse", hook.clone());
        let ms = typical_ms / 2 + self.rng.u64(..typical_ms.max(2));
        self.pass_ms(ms + 20);
        let own = end(ms as f64 + 0.5);
        let name =
            if own.get("error_message").is_some() { "postToolUseFailure" } else { "postToolUse" };
        if let (Some(hook), Some(own)) = (hook.as_object_mut(), own.as_object()) {
            hook.extend(own.clone());
        }
        self.emit(name, hook);
    }

    fn emit(&mut self, name: &str, own: Value) {
        let Ids { conversation, generation, model, workspace } = &self.ids;
        let mut event = json!({
            "hook_event_name": name, "conversation_id": conversation, "generation_id": generation,
            "model": model, "session_id": conversation, "cursor_version": "3.7.19",
            "workspace_roots": [workspace], "user_email": "dev@example.com", "transcript_path": null,
        });
        if let (Some(event), Value::Object(own)) = (event.as_object_mut(), own) {
            event.extend(own);
        }
        // Writing to a text cannot fail.
        let _written = writeln!(self.out, "{}", json!({"observed_at": self.at, "event": event}));
        self.at += 1_000_000;
    }

    fn path(&mut self) -> String {
        format!("{}/{}", self.ids.workspace, FILES[self.rng.usize(..FILES.len())])
    }

    fn pass(&mut self, least_ms: u64, most_ms: u64) {
        let ms = self.rng.u64(least_ms..most_ms);
        self.pass_ms(ms);
    }

    fn pass_ms(&mut self, ms: u64) {
        self.at += ms.cast_signed() * 1_000_000;
    }

    fn call_id(&mut self) -> String {
        format!("call_{:024x}", self.rng.u128(..) >> 32)
    }

    fn uuid(&mut self) -> String {
        let bits = self.rng.u128(..);
        let hex = format!("{bits:032x}");
        format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    }
}
