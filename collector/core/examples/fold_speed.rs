//! Measures how many events per second `normalise` and the fold handle on one core: `cargo run --release -p
//! hookspan-core --example fold_speed [CASE [ROUNDS [EVENTS]]]`. Payloads are 4 KiB. Changes are polled and dropped,
//! and time passes as the hooks say. The allocator is the collector's. If only one case is given, it also measures the
//! memory that an event takes while it is held, including its share of the reported spans.

use std::time::Instant;

use hookspan_core::sessions::TraceMode;
use hookspan_core::{Config, Event, Hook, Reader, Sessions, Timestamp};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MS: i64 = 1_000_000;

fn body(name: &str, conversation: usize, generation: Option<usize>, own: &str) -> Vec<u8> {
    let generation = generation
        .map_or_else(String::new, |number| format!("\"generation_id\":\"generation-{number}\","));
    let text = format!(
        "{{\"conversation_id\":\"conversation-{conversation}\",{generation}\
         \"model\":\"gpt-5.5-medium\",{own},\"session_id\":\"conversation-{conversation}\",\
         \"hook_event_name\":\"{name}\",\"cursor_version\":\"3.7.19\",\
         \"workspace_roots\":[\"/home/dev/app\"],\"user_email\":\"dev@example.com\",\
         \"transcript_path\":\"/home/dev/t/conversation-{conversation}.jsonl\""
    );
    let rest = 4_096_usize.saturating_sub(text.len() + 24);
    format!("{text},\"description\":\"{}\"}}", "x".repeat(rest)).into_bytes()
}

/// Which hooks name their generation. Hooks of other hosts do not, and neither do the hooks for tools of Cursor's CLI.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    All,
    Calls,
    None,
}

/// Sessions side by side. Each has endless turns of `calls` tool calls.
struct Stream {
    sessions: usize,
    calls: usize,
    named: Named,
    now: i64,
    seq: u64,
    generation: usize,
    /// The remaining hooks of the turn, in reverse order.
    turn: Vec<(&'static str, String)>,
}

impl Stream {
    fn new(sessions: usize, calls: usize, named: Named) -> Self {
        let now = 1_780_000_000_000 * MS;
        Self { sessions, calls, named, now, seq: 0, generation: 0, turn: Vec::new() }
    }

    fn next(&mut self) -> Hook {
        if self.turn.is_empty() {
            self.generation += 1;
            self.turn = turn(self.generation, self.calls);
        }
        let (name, own) = self.turn.pop().unwrap_or_default();
        self.now += 20 * MS;
        if self.named == Named::Calls && name == "beforeSubmitPrompt" {
            // Between turns time passes: a person reads and writes.
            self.now += 1_000 * MS;
        }
        let is_named = match self.named {
            Named::All => true,
            Named::Calls => name != "beforeReadFile",
            Named::None => false,
        };
        self.seq += 1;
        Hook {
            seq: self.seq,
            observed_at: Timestamp(self.now),
            body: body(
                name,
                self.generation % self.sessions,
                is_named.then_some(self.generation),
                &own,
            ),
            ..Hook::default()
        }
    }
}

/// The hooks of a turn, in reverse order.
fn turn(generation: usize, calls: usize) -> Vec<(&'static str, String)> {
    let mut hooks =
        vec![("beforeSubmitPrompt", "\"prompt\":\"go on\",\"attachments\":[]".to_owned())];
    for call in 0..calls {
        let tool = format!(
            "\"tool_name\":\"Read\",\"tool_input\":{{\"file_path\":\"/home/dev/app/{call}.rs\"}},\
             \"tool_use_id\":\"call_{generation}_{call}\""
        );
        let read = format!("\"file_path\":\"/home/dev/app/{call}.rs\",\"content\":\"x\"");
        let output = format!("{tool},\"tool_output\":\"{{}}\",\"duration\":1.25");
        hooks.extend([("preToolUse", tool), ("beforeReadFile", read), ("postToolUse", output)]);
    }
    let usage = "\"input_tokens\":9,\"output_tokens\":2";
    hooks.push(("afterAgentResponse", format!("\"text\":\"done\",{usage}")));
    hooks.push(("stop", format!("\"status\":\"completed\",{usage}")));
    hooks.reverse();
    hooks
}

/// CPU time of this process in seconds. Linux reports it; on other systems the wall clock is used instead.
#[expect(clippy::disallowed_methods, reason = "a measurement needs a clock")]
fn cpu_seconds(start: Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ran = stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ran.map_or_else(|| start.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

/// Resident memory of this process in bytes. Known on Linux only.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<usize>().ok()? * 1_024)
}

/// Number of hooks between two clock readings. Building the hooks is not timed. Afterwards the hooks are in the CPU
/// cache, as they are after the journal was read.
const STRETCH: usize = 1_000;

#[expect(clippy::disallowed_methods, reason = "a measurement needs a clock")]
#[expect(clippy::print_stdout, reason = "the result is for the terminal")]
fn measure(what: &str, mut stream: Stream, config: Config, batch: usize, events: usize) {
    let origin = Instant::now();
    // The memory for one stretch of hooks is allocated before measuring, so that only the fold's memory counts.
    drop(
        (0..STRETCH)
            .map(|_| stream.next())
            .map(|hook| (Reader::default().read(&hook), hook))
            .collect::<Vec<_>>(),
    );
    let (before, mut grown) = (resident(), None);
    let (mut reader, mut sessions) = (Reader::default(), Sessions::new(config));
    let (mut read, mut fold, mut changes, mut most) = (0.0, 0.0, 0_u64, 0);
    for _ in 0..events / STRETCH {
        let hooks: Vec<Hook> = (0..STRETCH).map(|_| stream.next()).collect();
        let start = cpu_seconds(origin);
        let normalised: Vec<Event> = hooks.iter().map(|hook| reader.read(hook)).collect();
        let between = cpu_seconds(origin);
        let mut normalised = normalised.into_iter();
        for chunk in hooks.chunks(batch) {
            normalised.by_ref().take(chunk.len()).for_each(|event| sessions.handle(event));
            if let Some(last) = chunk.last() {
                sessions.handle_deadline(last.observed_at);
            }
            while sessions.poll_change().is_some() {
                changes += 1;
            }
        }
        let end = cpu_seconds(origin);
        read += between - start;
        fold += end - between;
        if sessions.held() > most {
            most = sessions.held();
            grown = resident().zip(before).map(|(now, before)| now.saturating_sub(before) / most);
        }
    }
    let memory =
        grown.map_or_else(String::new, |bytes| format!(", {bytes} bytes resident for each"));
    let per_event = |seconds: f64| seconds * 1e6 / events as f64;
    println!(
        "{what}: {:.0} events/s; normalise {:.2} us, fold {:.2} us per event; {changes} changes; {most} events held at most{memory}",
        events as f64 / (read + fold),
        per_event(read),
        per_event(fold),
    );
}

/// What is folded, and in batches of which size.
struct Case {
    what: &'static str,
    sessions: usize,
    calls: usize,
    named: Named,
    mode: TraceMode,
    batch: usize,
}

const fn case(what: &'static str, sessions: usize, calls: usize, batch: usize) -> Case {
    Case { what, sessions, calls, named: Named::All, mode: TraceMode::Generation, batch }
}

const CASES: [Case; 9] = [
    case("20 sessions, 12 calls a turn, batches of 1,000", 20, 12, 1_000),
    case("20 sessions, 12 calls a turn, batches of 20", 20, 12, 20),
    case("one session, 12 calls a turn, batches of 1,000", 1, 12, 1_000),
    case("one session, 12 calls a turn, batches of 20", 1, 12, 20),
    case("one session, 5,000 calls a turn, batches of 1,000", 1, 5_000, 1_000),
    case("one session, 5,000 calls a turn, batches of 20", 1, 5_000, 20),
    Case { named: Named::None, ..case("one session without generations, else as 3", 1, 12, 20) },
    Case { mode: TraceMode::Session, ..case("one session in one trace, else as 3", 1, 12, 20) },
    Case { named: Named::Calls, ..case("one session of the CLI, else as 3", 1, 12, 20) },
];

#[expect(clippy::disallowed_methods, reason = "a command has arguments")]
fn main() {
    // A number selects one case and the number of rounds, for use under a profiler.
    let number = |at| std::env::args().nth(at).and_then(|text| text.parse::<usize>().ok());
    let (only, rounds, events) = (number(1), number(2).unwrap_or(1), number(3).unwrap_or(100_000));
    for (index, case) in CASES.into_iter().enumerate() {
        let Case { what, sessions, calls, named, mode, batch } = case;
        if only.is_none_or(|only| only == index) {
            for _ in 0..rounds {
                let config = Config { trace_mode: mode, ..Config::default() };
                measure(what, Stream::new(sessions, calls, named), config, batch, events);
            }
        }
    }
}
