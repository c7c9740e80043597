//! Invented sessions, always the same ones: turns with thoughts, calls, subagents, failures, idle gaps and hostile
//! text.

use std::borrow::Cow;
use std::sync::Arc;

use hookspan_core::content::Field;
use hookspan_core::outcome::{TestRun, Work};
use hookspan_core::repository::Repository;
use hookspan_core::{
    Attribute, Class, ContentRef, End, EndReason, ErrorType, Parts, SessionState, SessionSummary,
    Span, SpanId, SpanKind, Status, Timestamp, Tokens, TraceId, TurnSummary, Value,
};

use super::{Data, Stored};

const SECOND: i64 = 1_000_000_000;

/// Text that must stay text.
pub const HOSTILE: &str = "<img src=x onerror=alert(1)> \u{202e}gnp.exe </script><script>alert(2)</script> javascript:alert(3) __proto__";

/// A secret. Texts that are copied or exported must not contain it.
pub const SECRET: &str = "hunter2-hunter2-hunter2";

/// What an agent says at the end of a turn.
const ANSWER: &str = "The deliver tests pass (**18**), and `/health` stays open.\n\n- `src/deliver.rs` drains before it closes\n- `tests/e2e.rs` waits for the drain\n\n| crate | tests |\n|---|---:|\n| shim | 7 |\n\n```rust\nfn main() {}\n```\nSee [the rules](javascript:alert(4)) and https://docs.example/a. ![pixel](https://evil.example/p.png) The key was hunter2-hunter2-hunter2.";

/// How much a session holds.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Turns.
    pub turns: u64,
    /// Calls in each, on average.
    pub calls: u64,
}

/// Writes sessions into [`Data`].
#[derive(Debug)]
pub struct Author<'a> {
    data: &'a mut Data,
    seed: u64,
    root: Arc<str>,
    workspace: Arc<str>,
    trace: TraceId,
    generation: Arc<str>,
    errors: u64,
    calls: u64,
    subagents: u64,
    parts: Parts,
}

struct Call {
    tool: &'static str,
    class: &'static str,
    detail: &'static str,
    output: &'static str,
}

const CALLS: [Call; 12] = [
    Call {
        tool: "Shell",
        class: "shell",
        detail: "cargo test --workspace",
        output: "\u{1b}[1m\u{1b}[32m   Compiling\u{1b}[0m collector v0.1.0\n\u{1b}[31;1merror[E0308]\u{1b}[0m: mismatched types\n  --> src/deliver.rs:41:17\n\u{1b}]0;owned\u{7}<script>alert(document.cookie)</script>\n",
    },
    Call {
        tool: "Shell",
        class: "shell",
        detail: "git status --porcelain",
        output: " M src/deliver.rs\n",
    },
    Call {
        tool: "Read",
        class: "read",
        detail: "crates/shim/src/lib.rs",
        output: "//! The hook program.\n",
    },
    Call { tool: "Read", class: "read", detail: "docs/README.md", output: "# hookspan\n" },
    Call { tool: "Grep", class: "search", detail: "fn deliver", output: "src/deliver.rs:41\n" },
    Call { tool: "StrReplace", class: "edit", detail: "src/deliver.rs", output: "ok\n" },
    Call { tool: "Write", class: "edit", detail: "tests/e2e.rs", output: "ok\n" },
    Call { tool: "search_issues", class: "mcp", detail: "", output: "[]" },
    Call {
        tool: "Shell",
        class: "shell",
        detail: "cargo clippy --all-targets -- -D warnings",
        output: "",
    },
    Call { tool: "WebSearch", class: "search", detail: "rust channel select fairness", output: "" },
    Call { tool: "Glob", class: "search", detail: "**/*.toml", output: "Cargo.toml\n" },
    Call { tool: "TodoWrite", class: "other", detail: "", output: "" },
];

impl<'a> Author<'a> {
    /// An author of `data`.
    pub fn new(data: &'a mut Data) -> Self {
        Self {
            data,
            seed: 7,
            root: "".into(),
            workspace: "".into(),
            trace: TraceId([0; 16]),
            generation: "".into(),
            errors: 0,
            calls: 0,
            subagents: 0,
            parts: Parts::default(),
        }
    }

    /// A number below `below`.
    fn random(&mut self, below: u64) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % below
    }

    fn duration(&mut self, typical_ms: u64) -> i64 {
        let factor = 1 << self.random(6);
        let ms = typical_ms * factor / 8 + self.random(typical_ms);
        i64::try_from(ms.max(1)).unwrap() * 1_000_000
    }

    fn push(&mut self, span: Span, detail: Option<&str>) -> SpanId {
        let id = span.id;
        let rev = self.data.rev;
        self.data.spans.push(Stored { rev, span, detail: detail.map(str::to_owned) });
        id
    }

    fn span(
        &mut self,
        kind: SpanKind,
        name: &str,
        parent: Option<SpanId>,
        start: i64,
        ns: i64,
    ) -> Span {
        let key = self.data.spans.len().to_string();
        Span {
            id: SpanId::derive(&self.root, &self.generation, kind.as_str(), &key),
            trace: self.trace,
            parent,
            links: Vec::new(),
            kind,
            name: name.to_owned(),
            plain_name: Cow::Owned(name.to_owned()),
            root: self.root.clone(),
            conversation: self.root.clone(),
            generation: self.generation.clone(),
            workspace: Some(self.workspace.clone()),
            cursor_version: Some("3.7.19".into()),
            start: Timestamp(start),
            end: Some(End { at: Timestamp(start + ns), reason: EndReason::Matched }),
            status: Status::Unset,
            attributes: vec![string("hookspan.timing", "measured")],
            events: Vec::new(),
            contents: Vec::new(),
            settled: true,
        }
    }

    fn content(
        &mut self,
        span: &mut Span,
        key: &'static str,
        field: Field,
        body: &serde_json::Value,
    ) {
        let hook = self.data.bodies.len() as u64 + 1;
        self.data.bodies.insert(hook, body.to_string().into_bytes());
        span.contents.push(ContentRef { key, hook, field });
    }

    fn thought(&mut self, parent: SpanId, at: i64) -> i64 {
        let ns = self.duration(1_200);
        let mut span = self.span(SpanKind::Thought, "agent_thought", Some(parent), at, ns);
        let body = serde_json::json!({"hook_event_name": "afterAgentThought", "text": "The channel is closed before the drain; look at deliver()."});
        self.content(&mut span, "gen_ai.output.messages", Field::Thought, &body);
        self.push(span, None);
        self.parts.thinking += ns;
        at + ns
    }

    fn call(&mut self, parent: SpanId, at: i64) -> i64 {
        let call = &CALLS[usize::try_from(self.random(12)).unwrap()];
        let typical = if call.class == "shell" { 4_000 } else { 250 };
        let wait = if self.random(9) == 0 { self.duration(3_000) } else { 0 };
        let ns = self.duration(typical);
        let name = format!("execute_tool {}", call.tool);
        let mut span = self.span(SpanKind::Tool, &name, Some(parent), at + wait, ns);
        span.attributes.push(string("gen_ai.tool.name", call.tool));
        span.attributes.push(string("hookspan.tool.class", call.class));
        if wait > 0 {
            let value = Value::Double(wait as f64 / 1e6);
            span.attributes.push(Attribute {
                key: "hookspan.wait_ms".into(),
                value,
                class: Class::Plain,
            });
        }
        if self.random(30) == 0 {
            self.errors += 1;
            span.status =
                Status::Error { kind: ErrorType::ExitCode, message: "exit code 101".to_owned() };
            span.attributes.push(string("error.type", "exit_code"));
        }
        let input = match call.class {
            "edit" => {
                serde_json::json!({"file_path": call.detail, "old_string": "let sent = 1;\nclose();\n", "new_string": "let sent = 1;\ndrain();\nclose();\n"})
            }
            _ => serde_json::json!({"command": call.detail}),
        };
        let body = serde_json::json!({
            "hook_event_name": "postToolUse", "tool_name": call.tool,
            "tool_input": input, "tool_output": call.output,
        });
        self.content(&mut span, "gen_ai.tool.call.arguments", Field::ToolInput, &body);
        self.content(&mut span, "gen_ai.tool.call.result", Field::ToolOutput, &body);
        self.push(span, Some(call.detail));
        self.calls += 1;
        self.parts.wait += wait;
        match call.class {
            "shell" => self.parts.shell += ns,
            "edit" => self.parts.edits += ns,
            "mcp" => self.parts.mcp += ns,
            _ => self.parts.tools += ns,
        }
        at + wait + ns
    }

    fn subagent(&mut self, parent: SpanId, at: i64) -> i64 {
        self.subagents += 1;
        let mut span = self.span(SpanKind::Subagent, "invoke_agent explore", Some(parent), at, 1);
        span.attributes.push(string("gen_ai.agent.name", "explore"));
        span.attributes.push(string("hookspan.subagent.link", "exact"));
        let index = self.data.spans.len();
        let id = self.push(span, Some("find the flaky test"));
        let mut end = at + 100_000_000;
        for _ in 0..4 + self.random(6) {
            end = self.thought(id, end);
            end = self.call(id, end) + 40_000_000;
        }
        if let Some(stored) = self.data.spans.get_mut(index) {
            stored.span.end = Some(End { at: Timestamp(end), reason: EndReason::Matched });
        }
        end
    }

    fn turn(
        &mut self,
        number: u64,
        prompt: &str,
        at: i64,
        calls: u64,
        open: bool,
    ) -> (TurnSummary, i64) {
        self.generation = format!("g{number}").into();
        self.trace = TraceId::derive("generation", &self.root, &self.generation);
        let (errors, done) = (self.errors, self.calls);
        self.parts = Parts::default();
        let mut span = self.span(SpanKind::Generation, "invoke_agent cursor", None, at, 1);
        let index = Attribute {
            key: "hookspan.generation.index".into(),
            value: Value::Int(i64::try_from(number).unwrap()),
            class: Class::Plain,
        };
        span.attributes.push(index);
        let body = serde_json::json!({"hook_event_name": "beforeSubmitPrompt", "prompt": prompt});
        self.content(&mut span, "gen_ai.input.messages", Field::Prompt, &body);
        let place = self.data.spans.len();
        let id = self.push(span, Some(prompt));
        let mut end = self.thought(id, at + 400_000_000);
        for n in 0..calls.max(2) / 2 + self.random(calls.max(1)) {
            end = match self.random(24) {
                0 => self.subagent(id, end),
                1..7 => self.thought(id, end),
                _ => self.call(id, end),
            };
            end += i64::try_from(self.random(900)).unwrap() * 1_000_000 + i64::from(n == 0);
        }
        let mut response = self.span(SpanKind::Response, "chat composer-2", Some(id), end, 0);
        let body = serde_json::json!({"hook_event_name": "afterAgentResponse", "text": ANSWER});
        self.content(&mut response, "gen_ai.output.messages", Field::Response, &body);
        if open {
            if let Some(last) = self.data.spans.last_mut() {
                last.span.end = None;
            }
        } else {
            self.push(response, None);
        }
        let ended =
            if open { None } else { Some(End { at: Timestamp(end), reason: EndReason::Stopped }) };
        if let Some(stored) = self.data.spans.get_mut(place) {
            stored.span.end = ended;
        }
        let p = self.parts;
        let known = p.thinking + p.tools + p.shell + p.mcp + p.edits + p.wait;
        let parts = Parts { other: (end - at - known).max(0), ..p };
        let turn = TurnSummary {
            root: self.root.clone(),
            generation: self.generation.clone(),
            span: id,
            trace: self.trace,
            index: number,
            started_at: Timestamp(at),
            ended_at: ended.map(|end| end.at),
            end_reason: ended.map(|end| end.reason),
            prompt: Some(prompt.to_owned()),
            model: Some("composer-2".into()),
            status: ended.map(|_| "completed".to_owned()),
            tool_calls: self.calls - done,
            errors: self.errors - errors,
            tokens: ended.map(|_| Tokens {
                input: Some(21_000 + number * 1_900),
                output: Some(800),
                cache_read: Some(14_000),
                cache_write: Some(900),
            }),
            parts,
            repository: ended.map(|_| Box::new(repository(number))),
            work: Work::default(),
        };
        (turn, end)
    }

    /// One session that ends at about `until`.
    pub fn session(
        &mut self,
        root: &str,
        workspace: &str,
        prompts: &[&str],
        state: SessionState,
        until: i64,
        size: Size,
    ) {
        self.root = root.into();
        self.workspace = workspace.into();
        (self.errors, self.calls, self.subagents) = (0, 0, 0);
        let first = self.data.spans.len();
        self.generation = "".into();
        self.trace = TraceId::derive("session", root, "0");
        let segment = self.span(SpanKind::Session, "cursor.session", None, 0, 1);
        self.push(segment, None);
        let mut at = 0;
        let mut turns = Vec::new();
        let live = matches!(state, SessionState::ToolOpen | SessionState::Running);
        for number in 1..=size.turns {
            let prompt = prompts[usize::try_from(number - 1).unwrap() % prompts.len()];
            let (turn, end) =
                self.turn(number, prompt, at, size.calls, live && number == size.turns);
            turns.push(turn);
            let idle = match self.random(4) {
                0 => self.duration(600_000),
                _ => self.duration(9_000),
            };
            at = if number == size.turns { end } else { end + idle };
        }
        self.shift(first, &mut turns, until - at);
        let active_ns = turns.iter().filter_map(|t| Some(t.ended_at?.since(t.started_at))).sum();
        let tokens = turns.iter().filter_map(|turn| turn.tokens).reduce(Tokens::plus);
        self.data.sessions.push(SessionSummary {
            root: self.root.clone(),
            state,
            started_at: Timestamp(until - at),
            last_at: Timestamp(until),
            ended_at: (state == SessionState::Done).then_some(Timestamp(until)),
            workspace: Some(self.workspace.clone()),
            model: Some("composer-2".into()),
            surface: "ide",
            cursor_version: Some("3.7.19".into()),
            first_prompt: Some(prompts[0].to_owned()),
            last_error: (self.errors > 0).then(|| "exit code 101".to_owned()),
            generations: size.turns,
            tool_calls: self.calls,
            subagents: self.subagents,
            errors: self.errors,
            errored_turns: turns.iter().filter(|turn| turn.errors > 0).count() as u64,
            active_ns,
            tokens,
            repository: Some(Box::new(repository(size.turns))),
            work: work(self.calls),
        });
        self.data.turns.insert(root.to_owned(), turns);
    }

    /// Moves a session that was written at time 0 to its real time.
    fn shift(&mut self, first: usize, turns: &mut [TurnSummary], by: i64) {
        let last =
            self.data.spans[first..].iter().filter_map(|s| s.span.end).map(|end| end.at).max();
        for stored in &mut self.data.spans[first..] {
            if stored.span.kind == SpanKind::Session {
                stored.span.end = last.map(|at| End { at, reason: EndReason::Stopped });
            }
            stored.span.start = stored.span.start.plus(by);
            stored.span.end = stored.span.end.map(|end| End { at: end.at.plus(by), ..end });
        }
        for turn in turns {
            turn.started_at = turn.started_at.plus(by);
            turn.ended_at = turn.ended_at.map(|end| end.plus(by));
        }
    }
}

fn string(key: &'static str, value: &str) -> Attribute {
    Attribute { key: key.into(), value: Value::Str(value.into()), class: Class::Plain }
}

/// A handful of sessions around `now_ns`, one of them with `big` turns.
#[must_use]
pub fn library(now_ns: i64, big: u64) -> Data {
    let mut data = Data { rev: 1, now_ns, ..Data::default() };
    let mut author = Author::new(&mut data);
    let flaky = [
        "fix flaky collector test",
        "now the other two",
        "run the whole suite again",
        "add the tests",
    ];
    author.session(
        "0176a3f0-flaky",
        "/home/ada/src/hookspan",
        &flaky,
        SessionState::YourTurn,
        now_ns - 840 * SECOND,
        Size { turns: 14, calls: 22 },
    );
    author.session(
        "0176a3f0-live",
        "/home/ada/src/api",
        &["bump axum to 0.9 and fix what breaks", "cargo test"],
        SessionState::ToolOpen,
        now_ns - 130 * SECOND,
        Size { turns: 7, calls: 12 },
    );
    author.session(
        "0176a3f0-hostile",
        "/home/ada/src/<b>bold</b>",
        &[HOSTILE],
        SessionState::Errored,
        now_ns - 3_000 * SECOND,
        Size { turns: 3, calls: 8 },
    );
    author.session(
        "0176a3f0-big",
        "/home/ada/src/monorepo",
        &["migrate every crate to edition 2024", "go on"],
        SessionState::Done,
        now_ns - 9_000 * SECOND,
        Size { turns: big, calls: 60 },
    );
    for n in 0..60_i64 {
        let state = if n % 7 == 3 { SessionState::Stale } else { SessionState::Done };
        let (root, turns) = (format!("0176a3f0-{n:04}"), u64::try_from(n % 5).unwrap() + 1);
        author.session(
            &root,
            "/home/ada/src/docs",
            &["tidy the architecture page", "shorter"],
            state,
            now_ns - (n + 3) * 5_400 * SECOND,
            Size { turns, calls: 6 },
        );
    }
    data
}

/// The repository at a turn.
fn work(calls: u64) -> Work {
    Work {
        edits: calls / 4,
        unclear: calls / 3,
        tests_passed: 2,
        tests_failed: 1,
        last_test: Some(TestRun { at: Timestamp(1), passed: !calls.is_multiple_of(3) }),
        pull_request: None,
    }
}

fn repository(turn: u64) -> Repository {
    Repository {
        url: Some("https://git.example/acme/shop".into()),
        from_branch: Some("main".into()),
        from_commit: Some("1a".repeat(20).into()),
        branch: Some("fix/cart".into()),
        commit: Some(format!("{turn:040x}").into()),
        commits: vec![format!("{turn:040x}").into()],
    }
}
