//! Streams made to be expensive: each shape at any length, and the cost of folding one hook of it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use hookspan_core::{Change, Event, Hook, Reader, Sessions, Timestamp};

const MS: i64 = 1_000_000;
/// A kind of stream that is made to be expensive.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Makes a stream of about `n` hooks.
    pub(crate) hooks: fn(usize) -> Vec<Hook>,
}

/// The cost of folding a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) hooks: usize,
    pub(crate) time: Duration,
    pub(crate) changes: usize,
    /// Maximum number of hooks in memory at once.
    pub(crate) held: usize,
    pub(crate) left_out: u64,
    /// Number of items that the fold read.
    pub(crate) work: u64,
}

/// CPU time of this thread in seconds. Linux reports it; on other systems the wall clock is used instead.
#[expect(clippy::disallowed_methods, reason = "a measurement needs a clock")]
pub(crate) fn cpu_time() -> f64 {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ran = stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ran.map_or_else(|| ORIGIN.get_or_init(Instant::now).elapsed().as_secs_f64(), |ns| ns / 1e9)
}

/// Folds `hooks` as a collector does: in batches, with time passing between them. Reading the bodies is not timed.
pub(crate) fn cost(hooks: &[Hook], batch: usize, mut sessions: Sessions) -> (Cost, Sessions) {
    let mut reader = Reader::default();
    let mut cost = Cost {
        hooks: hooks.len(),
        time: Duration::ZERO,
        changes: 0,
        held: 0,
        left_out: 0,
        work: 0,
    };
    for chunk in hooks.chunks(batch) {
        let events: Vec<Event> = chunk.iter().map(|hook| reader.read(hook)).collect();
        let last = events.iter().map(|event| event.at).max().unwrap_or_default();
        let begun = cpu_time();
        events.into_iter().for_each(|event| sessions.handle(event));
        sessions.handle_deadline(last.plus(-250 * MS));
        while let Some(change) = sessions.poll_change() {
            cost.changes += usize::from(!matches!(change, Change::Bind { .. }));
        }
        cost.time += Duration::from_secs_f64((cpu_time() - begun).max(0.0));
        cost.held = cost.held.max(sessions.held());
    }
    (cost.left_out, cost.work) = (sessions.left_out(), sessions.work());
    (cost, sessions)
}

/// Writes hooks one after another, one millisecond apart.
#[derive(Default)]
struct Pen {
    now: i64,
    step: i64,
    hooks: Vec<Hook>,
}

impl Pen {
    fn new() -> Self {
        Self { now: 1_780_000_000_000 * MS, step: MS, hooks: Vec::new() }
    }

    /// A hook of `conversation` with the extra fields `more`. If `generation` is empty, the hook belongs to no turn.
    fn hook(&mut self, name: &str, conversation: &str, generation: &str, more: &str) {
        self.now += self.step;
        let generation = if generation.is_empty() {
            String::new()
        } else {
            format!("\"generation_id\":\"{generation}\",")
        };
        let more = if more.is_empty() { String::new() } else { format!(",{more}") };
        let body = format!(
            "{{\"hook_event_name\":\"{name}\",\"conversation_id\":\"{conversation}\",{generation}\
             \"workspace_roots\":[\"/w/app\"]{more}}}"
        );
        self.hooks.push(Hook {
            seq: self.hooks.len() as u64 + 1,
            observed_at: Timestamp(self.now),
            body: body.into_bytes(),
            ..Hook::default()
        });
    }

    fn start(&mut self, conversation: &str, generation: &str, id: &str) {
        self.hook("preToolUse", conversation, generation, &tool(id));
    }

    fn end(&mut self, conversation: &str, generation: &str, id: &str) {
        let more = format!("{},\"tool_output\":\"{{}}\",\"duration\":1.5", tool(id));
        self.hook("postToolUse", conversation, generation, &more);
    }

    fn prompt(&mut self, conversation: &str, generation: &str) {
        self.hook("beforeSubmitPrompt", conversation, generation, "\"prompt\":\"go\"");
    }

    fn stop(&mut self, conversation: &str, generation: &str) {
        let more = "\"status\":\"completed\",\"input_tokens\":9,\"output_tokens\":2";
        self.hook("stop", conversation, generation, more);
    }

    fn agent(&mut self, name: &str, conversation: &str, generation: &str, id: &str) {
        let more = format!(
            "\"subagent_id\":\"{id}\",\"subagent_type\":\"explore\",\"task\":\"look {id}\""
        );
        self.hook(name, conversation, generation, &more);
    }
}

fn tool(id: &str) -> String {
    format!(
        "\"tool_name\":\"Read\",\"tool_use_id\":\"{id}\",\"tool_input\":{{\"file_path\":\"/w/{id}.rs\"}}"
    )
}

/// Writes `n` hooks into one turn of one conversation.
fn in_one_turn(n: usize, mut write: impl FnMut(&mut Pen, usize)) -> Vec<Hook> {
    let mut pen = Pen::new();
    pen.prompt("c", "g");
    (0..n).for_each(|at| write(&mut pen, at));
    pen.hooks
}

/// Every shape.
pub(crate) const SHAPES: &[Shape] = &[
    Shape { name: "delegations, then as many children that nothing proves", hooks: guessed },
    Shape { name: "children of delegations in turns, one after another", hooks: in_turns },
    Shape { name: "few delegations, many children", hooks: few_delegations },
    Shape { name: "subagents of one turn, each with its child, by transcript", hooks: proven },
    Shape { name: "subagents of one turn, without children", hooks: childless },
    Shape { name: "delegating calls of one turn, without ends", hooks: open_tasks },
    Shape { name: "a chain of subagents", hooks: chain },
    Shape { name: "parents in a circle", hooks: circle },
    Shape { name: "conversations with an open turn", hooks: conversations },
    Shape { name: "conversations begun in one second", hooks: at_once },
    Shape { name: "conversations of one call each", hooks: calls_alone },
    Shape { name: "one generation named by many conversations", hooks: one_generation },
    Shape { name: "unknown events in one turn", hooks: unknown },
    Shape { name: "unknown events outside turns", hooks: unknown_outside },
    Shape { name: "open calls in one turn", hooks: open_calls },
    Shape { name: "calls in one turn, all of them ended", hooks: ended_calls },
    Shape { name: "calls of one turn, open at first, ended last first", hooks: nested_calls },
    Shape { name: "equal calls without ids", hooks: equal_calls },
    Shape { name: "equal commands of the specific layer alone", hooks: equal_commands },
    Shape { name: "equal commands in both layers", hooks: both_layers },
    Shape { name: "names of tools and models, each once", hooks: names },
    Shape { name: "prompts without a stop", hooks: prompts },
    Shape { name: "prompts without a generation", hooks: loose_prompts },
    Shape { name: "calls without a generation", hooks: loose_calls },
    Shape { name: "thoughts of one text", hooks: thoughts },
    Shape { name: "thoughts beside delegations", hooks: thoughts_and_tasks },
    Shape { name: "responses in one turn", hooks: responses },
    Shape { name: "compactions in one turn", hooks: compactions },
    Shape { name: "compactions outside turns", hooks: compactions_outside },
    Shape { name: "Tab edits", hooks: tab_edits },
    Shape { name: "starts of one session", hooks: session_starts },
    Shape { name: "ends of one session", hooks: session_ends },
    Shape { name: "stops of one turn", hooks: stops },
    Shape { name: "late calls of a turn that was left", hooks: late_calls },
    Shape { name: "one hook again and again", hooks: same_hook },
    Shape { name: "hooks in reverse", hooks: reverse },
    Shape { name: "versions of Cursor by turns", hooks: versions },
    Shape { name: "turns of a long session", hooks: long_session },
    Shape { name: "turns of a long session, without generations", hooks: long_loose_session },
    Shape { name: "turns of a long session, each with a subagent", hooks: long_family },
];

fn guessed(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    pen.prompt("root", "g");
    (0..n / 2).for_each(|at| pen.agent("subagentStart", "root", "g", &format!("s{at}")));
    (0..n / 2).for_each(|at| pen.start(&format!("child-{at}"), "cg", &format!("t{at}")));
    pen.hooks
}

fn in_turns(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    pen.prompt("root", "g");
    for at in 0..n / 4 {
        pen.agent("subagentStart", "root", "g", &format!("s{at}"));
        pen.start(&format!("child-{at}"), "cg", &format!("t{at}"));
        pen.end(&format!("child-{at}"), "cg", &format!("t{at}"));
        pen.agent("subagentStop", "root", "g", &format!("s{at}"));
    }
    pen.hooks
}

fn few_delegations(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    pen.prompt("root", "g");
    (0..8).for_each(|at| pen.agent("subagentStart", "root", "g", &format!("s{at}")));
    for at in 0..n / 2 {
        pen.start(&format!("child-{at}"), "cg", &format!("t{at}"));
        pen.end(&format!("child-{}", at / 2), "cg", &format!("t{}", at / 2));
    }
    pen.hooks
}

fn proven(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    pen.prompt("root", "g");
    for at in 0..n / 3 {
        pen.agent("subagentStart", "root", "g", &format!("s{at}"));
        let child = format!("child-{at}");
        let path = format!("\"transcript_path\":\"/t/root/subagents/{child}.jsonl\"");
        pen.hook("preToolUse", &child, "cg", &format!("{},{path}", tool("t")));
        pen.agent("subagentStop", "root", "g", &format!("s{at}"));
    }
    pen.hooks
}

fn childless(n: usize) -> Vec<Hook> {
    in_one_turn(n, |pen, at| {
        let name = if at < n / 2 { "subagentStart" } else { "subagentStop" };
        pen.agent(name, "c", "g", &format!("s{}", at % (n / 2).max(1)));
    })
}

fn open_tasks(n: usize) -> Vec<Hook> {
    in_one_turn(n, |pen, at| {
        let more = format!(
            "\"tool_name\":\"Task\",\"tool_use_id\":\"t{at}\",\"tool_input\":{{\"prompt\":\"look {at}\"}}"
        );
        pen.hook("preToolUse", "c", "g", &more);
    })
}

fn chain(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    pen.prompt("c0", "g");
    for at in 0..n / 2 {
        let path = match at {
            0 => "\"transcript_path\":\"/t/c0.jsonl\"".to_owned(),
            _ => format!("\"transcript_path\":\"/t/c{}/subagents/c{at}.jsonl\"", at - 1),
        };
        pen.hook("preToolUse", &format!("c{at}"), "g", &format!("{},{path}", tool("t")));
        pen.agent("subagentStart", &format!("c{at}"), "g", "s");
    }
    pen.hooks
}

fn circle(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    for at in 0..n {
        let before = (at + n - 1) % n;
        let path = format!("\"transcript_path\":\"/t/c{before}/subagents/c{at}.jsonl\"");
        pen.hook("preToolUse", &format!("c{at}"), "g", &format!("{},{path}", tool("t")));
    }
    pen.hooks
}

fn conversations(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    pen.step = 20 * MS;
    for at in 0..n / 2 {
        pen.prompt(&format!("c{at}"), "g");
        pen.start(&format!("c{at}"), "g", "t");
    }
    pen.hooks
}

fn at_once(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    pen.step = 1_000 * MS / n as i64;
    (0..n).for_each(|at| pen.prompt(&format!("c{at}"), "g"));
    pen.hooks
}

fn calls_alone(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    (0..n).for_each(|at| pen.start(&format!("c{at}"), "g", "t"));
    pen.hooks
}

fn one_generation(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    for at in 0..n / 2 {
        pen.start(&format!("c{at}"), "shared", "t");
        pen.end(&format!("c{at}"), "shared", "t");
    }
    pen.hooks
}

fn unknown(n: usize) -> Vec<Hook> {
    in_one_turn(n, |pen, at| pen.hook("afterNobodyKnows", "c", "g", &format!("\"n\":{at}")))
}

fn unknown_outside(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    (0..n).for_each(|at| pen.hook("afterNobodyKnows", "c", "", &format!("\"n\":{at}")));
    pen.hooks
}

fn open_calls(n: usize) -> Vec<Hook> {
    in_one_turn(n, |pen, at| pen.start("c", "g", &format!("t{at}")))
}

fn ended_calls(n: usize) -> Vec<Hook> {
    in_one_turn(n / 2, |pen, at| {
        pen.start("c", "g", &format!("t{at}"));
        pen.end("c", "g", &format!("t{at}"));
    })
}

fn nested_calls(n: usize) -> Vec<Hook> {
    let half = n / 2;
    in_one_turn(n, |pen, at| match at.checked_sub(half) {
        None => pen.start("c", "g", &format!("t{at}")),
        Some(at) => pen.end("c", "g", &format!("t{}", half.saturating_sub(at + 1))),
    })
}

fn equal_calls(n: usize) -> Vec<Hook> {
    in_one_turn(n, |pen, at| {
        let name = if at % 3 == 2 { "postToolUse" } else { "preToolUse" };
        let more = format!(
            "\"tool_name\":\"Grep\",\"tool_input\":{{\"pattern\":\"x\"}},\"duration\":{at}"
        );
        pen.hook(name, "c", "g", &more);
    })
}

fn equal_commands(n: usize) -> Vec<Hook> {
    in_one_turn(n, |pen, at| {
        let (name, more) = match at % 2 {
            0 => ("beforeShellExecution", format!("\"sandbox\":{}", at % 4 == 0)),
            _ => ("afterShellExecution", format!("\"duration\":{at}")),
        };
        pen.hook(name, "c", "g", &format!("\"command\":\"make\",{more}"));
    })
}

fn both_layers(n: usize) -> Vec<Hook> {
    in_one_turn(n / 4, |pen, at| {
        let input = "\"tool_name\":\"Shell\",\"tool_input\":{\"command\":\"make\"}";
        let call = format!("{input},\"tool_use_id\":\"t{at}\"");
        pen.hook("preToolUse", "c", "g", &call);
        pen.hook("beforeShellExecution", "c", "g", "\"command\":\"make\"");
        let ran = format!("\"duration\":{at}.25");
        pen.hook("afterShellExecution", "c", "g", &format!("\"command\":\"make\",{ran}"));
        pen.hook("postToolUse", "c", "g", &format!("{call},{ran}"));
    })
}

fn names(n: usize) -> Vec<Hook> {
    in_one_turn(n, |pen, at| {
        let more = format!(
            "\"tool_name\":\"Tool{at}\",\"model\":\"model-{at}\",\"tool_use_id\":\"t{at}\""
        );
        pen.hook("preToolUse", "c", "g", &more);
    })
}

fn prompts(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    (0..n).for_each(|at| pen.prompt("c", &format!("g{at}")));
    pen.hooks
}

fn loose_prompts(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    for at in 0..n {
        pen.hook("beforeSubmitPrompt", "c", "", &format!("\"prompt\":\"go {at}\""));
    }
    pen.hooks
}

fn loose_calls(n: usize) -> Vec<Hook> {
    in_one_turn(n / 2, |pen, at| {
        pen.start("c", "", &format!("t{at}"));
        pen.end("c", "", &format!("t{at}"));
    })
}

fn thoughts(n: usize) -> Vec<Hook> {
    in_one_turn(n, |pen, at| {
        let more = format!("\"text\":\"hm\",\"duration_ms\":{at}");
        pen.hook("afterAgentThought", "c", "g", &more);
    })
}

fn thoughts_and_tasks(n: usize) -> Vec<Hook> {
    in_one_turn(n / 2, |pen, at| {
        let more = format!(
            "\"tool_name\":\"Task\",\"tool_use_id\":\"t{at}\",\"tool_input\":{{\"prompt\":\"look {at}\"}}"
        );
        pen.hook("preToolUse", "c", "g", &more);
        pen.hook("afterAgentThought", "c", "g", &format!("\"text\":\"hm {at}\""));
    })
}

fn responses(n: usize) -> Vec<Hook> {
    in_one_turn(n, |pen, at| {
        pen.hook("afterAgentResponse", "c", "g", &format!("\"text\":\"done {at}\""));
    })
}

fn compactions(n: usize) -> Vec<Hook> {
    in_one_turn(n, |pen, at| {
        pen.hook("preCompact", "c", "g", &format!("\"trigger\":\"auto\",\"context_tokens\":{at}"));
    })
}

fn compactions_outside(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    for at in 0..n {
        pen.hook("preCompact", "c", "", &format!("\"trigger\":\"auto\",\"context_tokens\":{at}"));
    }
    pen.hooks
}

fn tab_edits(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    pen.step = 500 * MS;
    for at in 0..n {
        let more = format!(
            "\"file_path\":\"/w/{at}.rs\",\"edits\":[{{\"old_string\":\"a\",\"new_string\":\"b\"}}]"
        );
        pen.hook("afterTabFileEdit", "c", "", &more);
    }
    pen.hooks
}

fn session_starts(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    for at in 0..n / 2 {
        pen.hook("sessionStart", "c", "", "");
        pen.prompt("c", &format!("g{at}"));
    }
    pen.hooks
}

fn session_ends(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    pen.step = 4_000 * MS;
    for at in 0..n / 2 {
        pen.prompt("c", &format!("g{at}"));
        pen.hook("sessionEnd", "c", "", &format!("\"reason\":\"r{at}\""));
    }
    pen.hooks
}

fn stops(n: usize) -> Vec<Hook> {
    in_one_turn(n, |pen, at| {
        pen.hook("stop", "c", "g", &format!("\"status\":\"completed\",\"loop_count\":{at}"));
    })
}

fn late_calls(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    pen.prompt("c", "g");
    pen.stop("c", "g");
    pen.now += 60_000 * MS;
    for at in 0..n / 2 {
        pen.start("c", "g", &format!("t{at}"));
        pen.end("c", "g", &format!("t{at}"));
    }
    pen.hooks
}

fn same_hook(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    pen.start("c", "g", "t");
    pen.hooks.iter().cycle().take(n).cloned().collect()
}

fn reverse(n: usize) -> Vec<Hook> {
    let mut hooks = long_session(n);
    hooks.reverse();
    hooks
}

fn versions(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    pen.step = 100 * MS;
    for at in 0..n / 2 {
        let version = format!("\"cursor_version\":\"3.{}\"", at % 2);
        let turn = format!("g{at}");
        pen.hook("beforeSubmitPrompt", "c", &turn, &format!("\"prompt\":\"go\",{version}"));
        pen.hook("stop", "c", &turn, &format!("\"status\":\"completed\",{version}"));
    }
    pen.hooks
}

/// Turns of eight hooks, some seconds apart.
pub(crate) fn long_session(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    for at in 0..n / 8 {
        let turn = format!("g{at}");
        pen.prompt("c", &turn);
        for call in 0..3 {
            pen.start("c", &turn, &format!("t{at}-{call}"));
            pen.end("c", &turn, &format!("t{at}-{call}"));
        }
        pen.stop("c", &turn);
        pen.now += 5_000 * MS;
    }
    pen.hooks
}

/// The same for a host whose hooks name no turns.
pub(crate) fn long_loose_session(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    for at in 0..n / 8 {
        pen.hook("beforeSubmitPrompt", "c", "", &format!("\"prompt\":\"go {at}\""));
        for call in 0..3 {
            pen.start("c", "", &format!("t{at}-{call}"));
            pen.end("c", "", &format!("t{at}-{call}"));
        }
        pen.stop("c", "");
        pen.now += 5_000 * MS;
    }
    pen.hooks
}

/// Turns of ten hooks. Four of them belong to a subagent.
pub(crate) fn long_family(n: usize) -> Vec<Hook> {
    let mut pen = Pen::new();
    for at in 0..n / 10 {
        let (turn, child) = (format!("g{at}"), format!("child-{at}"));
        pen.prompt("c", &turn);
        pen.agent("subagentStart", "c", &turn, &format!("s{at}"));
        for call in 0..2 {
            pen.start(&child, "cg", &format!("t{call}"));
            pen.end(&child, "cg", &format!("t{call}"));
        }
        pen.agent("subagentStop", "c", &turn, &format!("s{at}"));
        pen.start("c", &turn, &format!("t{at}"));
        pen.end("c", &turn, &format!("t{at}"));
        pen.stop("c", &turn);
        pen.now += 5_000 * MS;
    }
    pen.hooks
}
