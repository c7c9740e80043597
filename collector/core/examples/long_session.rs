//! Plays one session that is much longer than the fold's memory. Compares its totals with naive sums over its hooks,
//! and prints for each eighth of the session what a hook costs and how much the fold holds.
//!
//! ```sh
//! cargo run --release -p hookspan-core --example long_session -- 400000
//! cargo run --release -p hookspan-core --example long_session -- 400000 family   # each turn with a subagent
//! cargo run --release -p hookspan-core --example long_session -- 400000 family 1024   # hooks of settled turns that stay
//! ```

#[expect(dead_code, reason = "of the shapes, only the long sessions are of use here")]
#[path = "../tests/fold/shapes.rs"]
mod shapes;

use std::process::ExitCode;

use hookspan_core::{
    Change, Config, Event, Hook, Reader, SessionSummary, Sessions, Timestamp, TurnSummary,
};
use shapes::cpu_time;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Resident memory of this process in bytes. Known on Linux only.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or_default() * 1_024
}

/// The totals of a session.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    turns: u64,
    tool_calls: u64,
    subagents: u64,
    input_tokens: u64,
    output_tokens: u64,
    active_ns: i64,
    began: Timestamp,
    last: Timestamp,
}

/// The totals of a turn: calls, input and output tokens, duration.
type Turn = (u64, u64, u64, i64);

/// Adds up the hooks without the fold's rules for turns, pairs and links. Here each turn is a prompt and the next stop.
fn naive(hooks: &[Hook]) -> Sums {
    let mut sums = Sums { began: hooks[0].observed_at, ..Sums::default() };
    let mut prompt = Timestamp::default();
    for Hook { observed_at: at, body, .. } in hooks {
        let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        match body["hook_event_name"].as_str().unwrap_or_default() {
            "beforeSubmitPrompt" => prompt = *at,
            "preToolUse" => sums.tool_calls += 1,
            "subagentStart" => sums.subagents += 1,
            "stop" => {
                sums.turns += 1;
                sums.input_tokens += body["input_tokens"].as_u64().unwrap_or_default();
                sums.output_tokens += body["output_tokens"].as_u64().unwrap_or_default();
                sums.active_ns += at.since(prompt);
                sums.last = *at;
            }
            _ => {}
        }
    }
    sums
}

/// The latest rows that the fold reported.
struct Told {
    session: Option<SessionSummary>,
    /// Turns by number. The space for all of them is reserved at the start, so that only the fold's memory grows.
    turns: Vec<Option<Turn>>,
}

impl Told {
    fn new(turns: u64) -> Self {
        Self { session: None, turns: vec![None; usize::try_from(turns).unwrap_or_default()] }
    }

    fn take(&mut self, change: Change) {
        match change {
            Change::Session(row) if &*row.root == "c" => self.session = Some(*row),
            Change::Turn(row) if &*row.root == "c" => {
                let TurnSummary { generation, tool_calls, tokens, started_at, ended_at, .. } = *row;
                let tokens = tokens.unwrap_or_default();
                let took = ended_at.map_or(0, |end| end.since(started_at));
                let (input, output) = (tokens.input.unwrap_or(0), tokens.output.unwrap_or(0));
                let turn = (tool_calls, input, output, took);
                let number = generation.strip_prefix('g').and_then(|n| n.parse::<usize>().ok());
                if let Some(known) = number.and_then(|number| self.turns.get_mut(number)) {
                    *known = Some(turn);
                }
            }
            _ => {}
        }
    }

    /// The session's row.
    fn row(&self) -> Sums {
        let Some(row) = &self.session else { return Sums::default() };
        let tokens = row.tokens.unwrap_or_default();
        Sums {
            turns: row.generations,
            tool_calls: row.tool_calls,
            subagents: row.subagents,
            input_tokens: tokens.input.unwrap_or(0),
            output_tokens: tokens.output.unwrap_or(0),
            active_ns: row.active_ns,
            began: row.started_at,
            last: row.last_at,
        }
    }

    /// The rows of all turns together.
    fn turns(&self) -> Sums {
        let row = self.row();
        let (mut sums, turns) =
            (Sums { turns: 0, tool_calls: 0, ..row }, self.turns.iter().flatten());
        (sums.input_tokens, sums.output_tokens, sums.active_ns) = (0, 0, 0);
        for (calls, input, output, took) in turns {
            sums.turns += 1;
            sums.tool_calls += calls;
            sums.input_tokens += input;
            sums.output_tokens += output;
            sums.active_ns += took;
        }
        sums
    }
}

#[expect(clippy::print_stdout, reason = "the result is for the terminal")]
#[expect(clippy::disallowed_methods, reason = "a command has arguments")]
fn main() -> ExitCode {
    let count = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(400_000);
    let family = std::env::args().nth(2).is_some_and(|shape| shape == "family");
    let hooks = if family { shapes::long_family(count) } else { shapes::long_session(count) };
    let settled = std::env::args().nth(3).and_then(|n| n.parse().ok());
    let config = Config::default();
    let config = Config { settled_hooks: settled.unwrap_or(config.settled_hooks), ..config };
    let (mut reader, mut sessions) = (Reader::default(), Sessions::new(config));
    let naive = naive(&hooks);
    let (mut told, before) = (Told::new(naive.turns), resident());
    println!("{:>9} | {:>8} | {:>10} | {:>11}", "hooks", "µs/hook", "hooks held", "MiB resident");
    let mut done = 0;
    for eighth in hooks.chunks(hooks.len().div_ceil(8)) {
        let mut spent = 0.0;
        for chunk in eighth.chunks(50) {
            let events: Vec<Event> = chunk.iter().map(|hook| reader.read(hook)).collect();
            let last = events.last().map_or_else(Timestamp::default, |event| event.at);
            let begun = cpu_time();
            events.into_iter().for_each(|event| sessions.handle(event));
            sessions.handle_deadline(Timestamp(last.0 - 250_000_000));
            let changes: Vec<Change> = std::iter::from_fn(|| sessions.poll_change()).collect();
            spent += cpu_time() - begun;
            changes.into_iter().for_each(|change| told.take(change));
        }
        done += eighth.len();
        let (each, held) = (spent * 1e6 / eighth.len() as f64, sessions.held());
        let mib = resident().saturating_sub(before) as f64 / f64::from(1 << 20);
        println!("{done:>9} | {each:>8.2} | {held:>10} | {mib:>11.1}");
    }
    let (row, turns) = (told.row(), told.turns());
    println!("{naive:?}\n{} left out", sessions.left_out());
    let same = naive == row && naive == turns && sessions.left_out() == 0;
    println!(
        "{}",
        if same { "the session's row and its turns come to the same" } else { "OTHER SUMS" }
    );
    if !same {
        println!("row:   {row:?}\nturns: {turns:?}");
    }
    if same { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
