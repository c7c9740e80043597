//! Fills a store like that of a team's busy year: many sessions, most of them on the newest days. Some still run.

use std::collections::BTreeMap;
use std::path::Path;

use hookspan::parts::{Arrival, Batch, Engine, Horizon, Preparer, Signals, Store};
use hookspan_core::{Hook, HookSource, Timestamp};
use serde_json::{Value, json};

const SECOND_NS: i64 = 1_000_000_000;
const YEAR_NS: i64 = 365 * 86_400 * SECOND_NS;
/// Sessions that still run when the store is full, as a page that shows running agents needs some.
const RUNNING: usize = 12;
const PROJECTS: usize = 40;
/// One session in this many has forty times as many hooks as the others.
const LONG_EVERY: usize = 500;
const LONG_TIMES: usize = 40;
/// Hooks of a turn: a prompt, its calls with two hooks each, a thought, an answer, a stop.
const TURN: usize = 24;
const BATCH: usize = 1_000;
const MODELS: [&str; 4] = ["claude-4.5-sonnet", "gpt-5.5-medium", "composer-2", "gemini-3-pro"];

/// Fills the store with `sessions` sessions of `hooks` hooks in all, up to `now`. Returns the ids of the sessions.
pub(crate) fn fill(database: &Path, sessions: usize, hooks: usize, now: i64) -> Vec<String> {
    let mut store = Store::open(database).unwrap();
    store.begin("bench").unwrap();
    let config = hookspan_core::Config::default();
    let mut engine = Engine::new(store, config, Signals::default(), crossbeam_channel::never());
    let mut preparer = Preparer::default();
    let roots: Vec<String> = (0..sessions).map(id).collect();
    let share = hooks * LONG_EVERY / (LONG_EVERY + LONG_TIMES - 1) / sessions.max(1);
    let mut waiting: BTreeMap<(i64, usize), Arrival> = BTreeMap::new();
    let (mut number, mut batch, mut taken) = (0, Vec::with_capacity(BATCH), 0);
    for (session, root) in roots.iter().enumerate() {
        let wanted =
            if session % LONG_EVERY == LONG_EVERY / 2 { share * LONG_TIMES } else { share };
        let mut story = Story { root, session, at: start(session, sessions, now), out: Vec::new() };
        story.write((wanted / TURN).max(1), session + RUNNING >= sessions, now);
        for (at, body) in story.out {
            waiting.insert((at, number), arrival(&mut preparer, at, number, &body));
            number += 1;
        }
        // Hooks are sent in order of time: first those that precede the next session's first hook.
        let next =
            if session + 1 < sessions { start(session + 1, sessions, now) } else { i64::MAX };
        while let Some(entry) = waiting.first_entry().filter(|entry| entry.key().0 < next) {
            batch.push(entry.remove());
            if batch.len() == BATCH {
                taken += BATCH;
                take(&mut engine, std::mem::replace(&mut batch, Vec::with_capacity(BATCH)));
                if taken % 100_000 == 0 {
                    println!("{taken} hooks");
                }
            }
        }
    }
    take(&mut engine, batch);
    roots
}

pub(crate) fn id(session: usize) -> String {
    format!("bench-{session:06}")
}

fn take(engine: &mut Engine, arrivals: Vec<Arrival>) {
    let Some(last) = arrivals.last() else { return };
    let horizon = Horizon::At(last.hook.observed_at);
    engine.take(Batch { arrivals, horizon, ..Batch::default() }).unwrap();
}

/// When a session begins: half of them within the last three months, a twentieth on the last day.
fn start(session: usize, sessions: usize, now: i64) -> i64 {
    if session + RUNNING >= sessions {
        return now - 400 * SECOND_NS + session as i64 % 60 * SECOND_NS;
    }
    let share = (sessions - session) as f64 / sessions as f64;
    now - 600 * SECOND_NS - (share * share * YEAR_NS as f64) as i64
}

struct Story<'a> {
    root: &'a str,
    session: usize,
    at: i64,
    out: Vec<(i64, Value)>,
}

impl Story<'_> {
    fn write(&mut self, turns: usize, is_running: bool, now: i64) {
        for turn in 0..turns {
            let is_last = turn + 1 == turns;
            self.hook(
                turn,
                "beforeSubmitPrompt",
                json!({"prompt": format!("make part {turn} of {} work", self.root)}),
            );
            for call in 0..(TURN - 4) / 2 {
                self.call(turn, call);
            }
            self.hook(
                turn,
                "afterAgentThought",
                json!({"text": "look at the drain first", "duration_ms": 900}),
            );
            self.hook(
                turn,
                "afterAgentResponse",
                json!({"text": format!("Part {turn} works now; the timeout was wrong.")}),
            );
            if is_last && is_running {
                // No hook is later than `now`.
                self.out.retain(|(at, _)| *at <= now);
                return;
            }
            let n = self.session + turn;
            self.hook(turn, "stop", json!({
                "status": if n % 40 == 9 { "error" } else { "completed" },
                "input_tokens": 40_000 + n % 900 * 100, "output_tokens": 900 + n % 70, "cache_read_tokens": 30_000,
            }));
            // The time in which a person reads the answer and writes the next prompt.
            self.at += 90 * SECOND_NS;
        }
    }

    fn call(&mut self, turn: usize, call: usize) {
        let (session, root) = (self.session, self.workspace());
        let file = format!(
            "{root}/src/part{}/file{}.rs",
            (session / PROJECTS) % 20,
            (session * 7 + turn * 3 + call) % 97
        );
        let (tool, input) = match call {
            0 | 5 => {
                ("Grep", json!({"pattern": format!("fn handler_{}", session % 50), "path": root}))
            }
            1 | 3 | 6 => ("Read", json!({"file_path": file})),
            2 | 7 => (
                "StrReplace",
                json!({"file_path": file, "old_string": format!("let a = {turn};\n"), "new_string": "let a = 2;\nlet b = 3;\n"}),
            ),
            4 => {
                ("Shell", json!({"command": format!("cargo test -p crate{} --lib", session % 31)}))
            }
            8 if session % 7 == 3 => ("Shell", json!({"command": "git commit -am 'Make it work'"})),
            _ => (
                "Shell",
                json!({"command": format!("rg -n timeout crates/c{}", (session + turn) % 400)}),
            ),
        };
        let mut body = json!({"tool_name": tool, "tool_use_id": format!("{session}-{turn}-{call}"), "tool_input": input});
        self.hook(turn, "preToolUse", body.clone());
        let took_ms = 5 + (call * call * 40 + session * 13) % 2_000;
        self.at += took_ms as i64 * 1_000_000;
        body["duration"] = json!(took_ms);
        body["tool_output"] = json!(format!("running {call} of {session}; deliver ok"));
        let n = session + turn * 10 + call;
        if n % 45 == 7 {
            body["error_message"] =
                json!(format!("exit code {}: test {} failed", n % 3, session % 33));
            self.hook(turn, "postToolUseFailure", body);
        } else {
            self.hook(turn, "postToolUse", body);
        }
    }

    fn workspace(&self) -> String {
        format!("/home/dev/project{}", self.session % PROJECTS)
    }

    fn hook(&mut self, turn: usize, name: &str, own: Value) {
        self.at += SECOND_NS / 4;
        let mut body = json!({
            "hook_event_name": name, "conversation_id": self.root, "generation_id": format!("{}-{turn}", self.root),
            "model": MODELS[self.session % MODELS.len()], "cursor_version": "3.7.19", "workspace_roots": [self.workspace()],
        });
        body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        self.out.push((self.at, body));
    }
}

fn arrival(preparer: &mut Preparer, at: i64, number: usize, body: &Value) -> Arrival {
    let body = body.to_string().into_bytes();
    let hook =
        Hook { observed_at: Timestamp(at), source: HookSource::Shim, body, ..Hook::default() };
    preparer.prepare((number as u128 + 1).to_be_bytes(), 0, hook)
}
