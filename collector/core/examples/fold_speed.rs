//! Events per second through `normalise` and the fold, on one core: `cargo run --release -p hookspan-core --example
//! fold_speed [CASE [ROUNDS [EVENTS]]]`. Payloads are 4 KiB; changes are taken and dropped, time passes as the hooks say. The
//! allocator is the collector's.

use std::time::Instant;

use hookspan_core::{Config, Hook, Sessions, Timestamp, normalise};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MS: i64 = 1_000_000;

fn body(name: &str, conversation: usize, generation: usize, own: &str) -> Vec<u8> {
    let text = format!(
        "{{\"conversation_id\":\"conversation-{conversation}\",\"generation_id\":\"generation-{generation}\",\
         \"model\":\"gpt-5.5-medium\",{own},\"session_id\":\"conversation-{conversation}\",\
         \"hook_event_name\":\"{name}\",\"cursor_version\":\"3.7.19\",\
         \"workspace_roots\":[\"/home/dev/app\"],\"user_email\":\"dev@example.com\",\
         \"transcript_path\":\"/home/dev/t/conversation-{conversation}.jsonl\""
    );
    let rest = 4_096_usize.saturating_sub(text.len() + 20);
    format!("{text},\"padding\":\"{}\"}}", "x".repeat(rest)).into_bytes()
}

/// Sessions side by side, each with turns of `calls` tool calls.
fn stream(events: usize, sessions: usize, calls: usize) -> Vec<Hook> {
    let mut hooks: Vec<Hook> = Vec::with_capacity(events);
    let mut now = 1_780_000_000_000 * MS;
    let mut generation = 0;
    while hooks.len() < events {
        for conversation in 0..sessions {
            generation += 1;
            let mut push = |name: &str, own: &str| {
                now += 20 * MS;
                hooks.push(Hook {
                    seq: hooks.len() as u64 + 1,
                    observed_at: Timestamp(now),
                    body: body(name, conversation, generation, own),
                    ..Hook::default()
                });
            };
            push("beforeSubmitPrompt", "\"prompt\":\"go on\",\"attachments\":[]");
            for call in 0..calls {
                let tool = format!(
                    "\"tool_name\":\"Read\",\"tool_input\":{{\"file_path\":\"/home/dev/app/{call}.rs\"}},\
                     \"tool_use_id\":\"call_{generation}_{call}\""
                );
                push("preToolUse", &tool);
                let read = format!("\"file_path\":\"/home/dev/app/{call}.rs\",\"content\":\"x\"");
                push("beforeReadFile", &read);
                let output = format!("{tool},\"tool_output\":\"{{}}\",\"duration\":1.25");
                push("postToolUse", &output);
            }
            push("afterAgentResponse", "\"text\":\"done\",\"input_tokens\":9,\"output_tokens\":2");
            push("stop", "\"status\":\"completed\",\"input_tokens\":9,\"output_tokens\":2");
        }
    }
    hooks.truncate(events);
    hooks
}

/// Time this process has run, not what it waited for a core: seconds. Linux tells it; elsewhere it is the clock.
#[expect(clippy::disallowed_methods, reason = "a measurement needs a clock")]
fn cpu_seconds(start: Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ran = stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ran.map_or_else(|| start.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

#[expect(clippy::disallowed_methods, reason = "a measurement needs a clock")]
#[expect(clippy::print_stdout, reason = "the result is for the terminal")]
fn measure(what: &str, hooks: &[Hook], batch: usize) {
    let origin = Instant::now();
    let start = cpu_seconds(origin);
    for hook in hooks {
        std::hint::black_box(normalise(hook));
    }
    let read = cpu_seconds(origin) - start;
    let start = cpu_seconds(origin);
    let mut sessions = Sessions::new(Config::default());
    let mut changes = 0_u64;
    for chunk in hooks.chunks(batch) {
        for hook in chunk {
            sessions.handle(normalise(hook));
        }
        if let Some(last) = chunk.last() {
            sessions.handle_deadline(last.observed_at);
        }
        while sessions.poll_change().is_some() {
            changes += 1;
        }
    }
    let all = cpu_seconds(origin) - start;
    let per_event = |seconds: f64| seconds * 1e6 / hooks.len() as f64;
    println!(
        "{what}: {:.0} events/s; normalise {:.2} us, fold {:.2} us per event; {changes} changes",
        hooks.len() as f64 / all,
        per_event(read),
        per_event(all - read),
    );
}

/// A name, the hooks of the case, and how many of them a batch has.
type Case<'a> = (&'a str, &'a dyn Fn() -> Vec<Hook>, usize);

#[expect(clippy::disallowed_methods, reason = "a command has arguments")]
fn main() {
    // With a number only that case runs, some rounds of it: for a profiler.
    let number = |at| std::env::args().nth(at).and_then(|text| text.parse::<usize>().ok());
    let (only, rounds) = (number(1), number(2).unwrap_or(10));
    let events = number(3).unwrap_or(60_000);
    let many = || stream(events, 20, 12);
    let cases: [Case<'_>; 6] = [
        ("20 sessions, 12 calls a turn, batches of 1,000", &many, 1_000),
        ("20 sessions, 12 calls a turn, batches of 20", &many, 20),
        ("one session of 1,500 turns, batches of 1,000", &|| stream(events, 1, 12), 1_000),
        ("one session of 1,500 turns, batches of 20", &|| stream(events, 1, 12), 20),
        ("one turn of 5,000 calls, batches of 1,000", &|| stream(15_003, 1, 5_000), 1_000),
        ("one turn of 5,000 calls, batches of 20", &|| stream(15_003, 1, 5_000), 20),
    ];
    for (index, (what, hooks, batch)) in cases.into_iter().enumerate() {
        match only {
            None => measure(what, &hooks(), batch),
            Some(chosen) if chosen == index => {
                let hooks = hooks();
                (0..rounds).for_each(|_| measure(what, &hooks, batch));
            }
            Some(_) => {}
        }
    }
}
