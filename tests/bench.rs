//! Measures what BENCHMARKS.md says about the whole path: `cargo run --release -p e2e --example bench -- [events]`.
//!
//! Not a gate: figures depend on the machine. The shim alone has its own harness, see BENCHMARKS.md.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]
#![expect(clippy::print_stdout, reason = "the figures are the output")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use serde_json::json;

use e2e_support::collector::Collector;
use e2e_support::player;
use e2e_support::random::Random;
use e2e_support::wait::eventually;
use e2e_support::world::World;

/// A conversation of this many events: a prompt, pairs of tool hooks, a stop.
const SESSION: u64 = 100;
const BODY_BYTES: usize = 4096;

fn main() {
    let events: u64 = env::args().nth(1).map_or(20_000, |text| text.parse().unwrap());
    machine();
    throughput(events);
    latency(200);
}

/// Hooks pile up while the collector is away; then it is timed from its start until all of them are committed.
fn throughput(events: u64) {
    let world = World::new();
    world.shim();
    let started = Instant::now();
    let next = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= events {
                        break;
                    }
                    let (event, body) = hook(number);
                    assert_eq!(player::hook(&world, event, &body).code, Some(0));
                }
            });
        }
    });
    let written = started.elapsed();
    let started = Instant::now();
    let collector = Collector::start(&world);
    let listening = started.elapsed();
    let sessions = events.div_ceil(SESSION);
    let took = eventually("the backlog is committed", Duration::from_secs(600), || {
        // The collector's own word: `status` would read the whole backlog itself to count it.
        let behind = collector.get("health")?["journal"]["behind_bytes"].clone();
        if behind == 0 { Ok(started.elapsed()) } else { Err(format!("{behind} bytes behind")) }
    });
    assert_eq!(world.json(&["status", "--json"])["backlog"], 0);
    let shown = world.json(&["sessions", "--json"]);
    assert_eq!(shown.as_array().unwrap().len() as u64, sessions, "sessions");
    let memory = peak_memory_kib(&collector);
    println!(
        "backlog of {events} hooks of {BODY_BYTES} bytes: {:.0} events/s ({took:.2?} from the start of `serve` to the last \
         commit, page after {listening:.0?}), peak memory {:.1} MiB; written by real shims at {:.0} /s",
        events as f64 / took.as_secs_f64(),
        memory as f64 / 1024.0,
        events as f64 / written.as_secs_f64(),
    );
}

/// From the shim's exit until an answer of the API holds the event.
fn latency(rounds: u64) {
    let world = World::new();
    world.shim();
    let collector = Collector::start(&world);
    let mut times = Vec::new();
    let mut seen = 0;
    for number in 0..rounds {
        let conversation = format!("00000000-0000-4000-8000-{:012}", number / SESSION);
        let (event, body) = hook(number);
        assert_eq!(player::hook(&world, event, &body).code, Some(0));
        let started = Instant::now();
        let path = format!("sessions/{conversation}/spans");
        let fresh = number % SESSION == 0;
        let revision = eventually("the event is visible", Duration::from_secs(10), || {
            let answer = collector.get(&path)?;
            let revision = answer["rev"].as_u64().ok_or("no rev")?;
            if fresh || revision > seen { Ok(revision) } else { Err(format!("rev {revision}")) }
        });
        times.push(started.elapsed());
        seen = revision;
    }
    times.sort();
    println!(
        "shim's exit to an answer of the API that holds the event: median {:.1?}, p99 {:.1?} ({rounds} rounds)",
        times[times.len() / 2],
        times[times.len() * 99 / 100],
    );
}

/// Hook `number` of an endless, ordinary day.
fn hook(number: u64) -> (&'static str, Vec<u8>) {
    let (session, step) = (number / SESSION, number % SESSION);
    let call = format!("call_{session}_{}\nfc_1", step.div_ceil(2));
    let command = json!({"command": "cargo test", "cwd": "", "timeout": 30000});
    let (event, own) = match step {
        0 => ("beforeSubmitPrompt", json!({"prompt": filler(number), "attachments": []})),
        step if step == SESSION - 1 => (
            "stop",
            json!({"status": "completed", "loop_count": 0, "input_tokens": 1000, "output_tokens": 10,
                   "cache_read_tokens": 900, "cache_write_tokens": 0}),
        ),
        step if step % 2 == 1 => (
            "preToolUse",
            json!({"tool_name": "Shell", "tool_input": command, "tool_use_id": call, "agent_message": filler(number)}),
        ),
        _ => (
            "postToolUse",
            json!({"tool_name": "Shell", "tool_input": command, "tool_use_id": call, "duration": 12.5,
                   "tool_output": json!({"output": filler(number), "exitCode": 0}).to_string()}),
        ),
    };
    let mut body = json!({
        "conversation_id": format!("00000000-0000-4000-8000-{session:012}"),
        "generation_id": format!("00000000-0000-4000-9000-{session:012}"),
        "model": "gpt-5.5",
        "hook_event_name": event,
        "cursor_version": "3.7.19",
        "workspace_roots": ["/home/dev/src/lighthouse"],
        "transcript_path": null,
    });
    body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    (event, serde_json::to_vec(&body).unwrap())
}

/// Words, so that compression has about as much to do as with real text.
fn filler(number: u64) -> String {
    const WORDS: [&str; 16] = [
        "lamp", "keeper", "harbour", "gull", "tide", "chart", "horn", "fog", "beam", "rock",
        "storm", "boat", "rope", "anchor", "mast", "wave",
    ];
    let mut random = Random::from_seed(number);
    let mut text = String::with_capacity(BODY_BYTES);
    while text.len() < BODY_BYTES - 600 {
        text.push_str(WORDS[(random.bits() % 16) as usize]);
        text.push_str(if random.bits().is_multiple_of(12) { "\n" } else { " " });
        if random.bits().is_multiple_of(8) {
            text.push_str(&format!("{:x} ", random.bits() >> 32));
        }
    }
    text
}

fn machine() {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    println!(
        "machine: {} x {}, Linux {}",
        thread::available_parallelism().unwrap(),
        model.trim_start_matches([' ', '\t', ':']),
        kernel.trim()
    );
}

fn peak_memory_kib(collector: &Collector<'_>) -> u64 {
    let pid = collector.pid().as_raw_nonzero();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
