//! Measures the figures of BENCHMARKS.md about the whole path:
//!
//! ```text
//! cargo run --release -p e2e --example bench -- backlog [EVENTS]
//! cargo run --release -p e2e --example bench -- sustained [SECONDS] [EVENTS_PER_SECOND]
//! cargo run --release -p e2e --example bench -- latency [ROUNDS] [EVENTS_PER_SECOND]
//! cargo run --release -p e2e --example bench -- export [EVENTS] [ROUNDS]
//! ```
//!
//! `export` sends to a receiver of its own over HTTP. `HOOKSPAN_BENCH_GRPC=URL` names one for gRPC.
//!
//! Each run prints which targets were reached. With `--gate` it fails if one is missed. `cargo test` runs none of them,
//! because the figures depend on the machine. The shim has its own benchmark, see BENCHMARKS.md.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]
#![expect(clippy::print_stdout, reason = "the figures are the output")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use serde_json::json;

use e2e_support::collector::Collector;
use e2e_support::journal::{JournalWriter, now};
use e2e_support::player;
use e2e_support::random::Random;
use e2e_support::swallow::Swallow;
use e2e_support::wait::{eventually, pause};
use e2e_support::world::World;

/// Number of events in a conversation: a prompt, pairs of tool hooks, a stop.
const SESSION: u64 = 100;
/// Number of conversations that are active at the same time.
const ABREAST: u64 = 20;
/// Different texts of each step.
const VARIANTS: u64 = 16;
const BODY_BYTES: usize = 4096;
/// Between two hooks of a backlog.
const PAUSE_NS: u64 = 1_000_000;
/// Maximum backlog. A collector that is further behind does not keep up, and the backlog must not fill the disk.
const BEHIND_MAX: u64 = 4 << 30;
const TICK: Duration = Duration::from_millis(5);

const USAGE: &str = "bench [backlog [EVENTS] | sustained [SECONDS] [PER_SECOND] | latency [ROUNDS] [PER_SECOND] | export [EVENTS] [ROUNDS]] \
                     [--gate]";

fn main() -> ExitCode {
    let (flags, arguments): (Vec<String>, Vec<String>) =
        env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let numbers: Result<Vec<u64>, _> = arguments.iter().skip(1).map(|text| text.parse()).collect();
    let (Ok(numbers), true) = (numbers, flags.iter().all(|flag| flag == "--gate")) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let number = |at: usize, otherwise: u64| numbers.get(at).copied().unwrap_or(otherwise);
    World::clear_up();
    machine();
    let mut aims = Aims::default();
    match arguments.first().map(String::as_str) {
        Some("backlog") => backlog(&mut aims, number(0, 200_000)),
        Some("sustained") => sustained(&mut aims, number(0, 300), number(1, 20_000)),
        Some("latency") => latency(&mut aims, number(0, 200), number(1, 2_000)),
        Some("export") => export(&mut aims, number(0, 100_000), number(1, 3)),
        Some(_) => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
        None => {
            backlog(&mut aims, 200_000);
            latency(&mut aims, 200, 2_000);
        }
    }
    let failed = aims.missed > 0 && !flags.is_empty();
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The targets, see BENCHMARKS.md.
#[derive(Default)]
struct Aims {
    missed: u32,
}

impl Aims {
    fn note(&mut self, aim: &str, reached: bool) {
        println!("{} {aim}", if reached { "  reached:" } else { "  MISSED: " });
        self.missed += u32::from(!reached);
    }
}

/// Hooks accumulate while no collector runs. Measures the time from the collector's start to its last commit.
fn backlog(aims: &mut Aims, events: u64) {
    let world = World::new();
    let mut load = Load::new(&world);
    // The hooks are spread over time: a turn stays in memory for a while after its end, so hooks of one moment would
    // all stay.
    load.began = now().checked_sub(events * PAUSE_NS);
    load.write(events).unwrap();
    // In reality the backlog would be on the disk by now. Without this, the collector's first sync would have to write
    // all of it.
    load.writer.sync().unwrap();
    let started = Instant::now();
    let collector = Collector::start(&world);
    let listening = started.elapsed();
    let took =
        eventually("the backlog is committed", Duration::from_secs(3_600), || {
            match received(&collector)? {
                received if received >= events => Ok(started.elapsed()),
                received => Err(format!("{received} of {events}")),
            }
        });
    let usage = Usage::of(&collector);
    println!(
        "backlog of {events} hooks of {BODY_BYTES} bytes: {:.0} events/s ({took:.2?} from the start of `serve` to the last \
         commit, page after {listening:.0?}); {}; peak memory {:.1} MiB",
        events as f64 / took.as_secs_f64(),
        usage.per_event(&Usage::default(), events),
        mib(memory(&collector, "VmHWM:")),
    );
    let fast = events as f64 / took.as_secs_f64() >= 20_000.0;
    aims.note("20,000 events/s from the start of `serve`", fast);
    aims.note("a page within 300 ms", listening <= Duration::from_millis(300));
    complete(&world, events);
}

/// Hooks arrive at a steady rate. Reports whether the collector keeps up, its cost and its memory.
fn sustained(aims: &mut Aims, seconds: u64, rate: u64) {
    let world = World::new();
    let mut load = Load::new(&world);
    let collector = Collector::start(&world);
    let (written, enough) = (AtomicU64::new(0), AtomicBool::new(false));
    let full = AtomicBool::new(false);
    let started = Instant::now();
    let usage = Usage::of(&collector);
    println!("second  committed  behind  events/s  CPU µs per event (by thread)  memory MiB");
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            while !enough.load(Ordering::Relaxed) && started.elapsed().as_secs() < seconds {
                let due = (started.elapsed().as_secs_f64() * rate as f64) as u64;
                if let Err(error) = load.write(due - written.load(Ordering::Relaxed)) {
                    println!("the journal takes no more, so the load ends here: {error}");
                    full.store(true, Ordering::Relaxed);
                    break;
                }
                written.store(due, Ordering::Relaxed);
                pause(TICK);
            }
            started.elapsed()
        });
        let step = Duration::from_secs((seconds / 20).max(1));
        let (mut before, mut since, mut at) = (0, Instant::now(), usage.clone());
        let mut next = step;
        let mut most = 0;
        let mut held = Vec::new();
        loop {
            pause(Duration::from_millis(100));
            let done = received(&collector).unwrap();
            let all = written.load(Ordering::Relaxed);
            most = most.max(all.saturating_sub(done));
            if most * BODY_BYTES as u64 > BEHIND_MAX {
                enough.store(true, Ordering::Relaxed);
            }
            let over = writer.is_finished() && done >= written.load(Ordering::Relaxed);
            if started.elapsed() >= next || over {
                next += step;
                let now = Usage::of(&collector);
                let fresh = done - before;
                let resident = mib(memory(&collector, "VmRSS:"));
                held.push(resident);
                println!(
                    "{:>6.0} {done:>10} {:>7} {:>9.0}  {}  {resident:.1}",
                    started.elapsed().as_secs_f64(),
                    all - done.min(all),
                    fresh as f64 / since.elapsed().as_secs_f64(),
                    now.per_event(&at, fresh.max(1)),
                );
                (before, since, at) = (done, Instant::now(), now);
            }
            if over {
                break;
            }
        }
        let wrote = writer.join().unwrap();
        let (events, took) = (written.load(Ordering::Relaxed), started.elapsed());
        println!(
            "sustained: {events} hooks of {BODY_BYTES} bytes written in {wrote:.1?}, the last committed {:.2?} later: \
             {:.0} events/s; at most {most} behind; {}; peak memory {:.1} MiB",
            took - wrote,
            events as f64 / took.as_secs_f64(),
            Usage::of(&collector).per_event(&usage, events),
            mib(memory(&collector, "VmHWM:")),
        );
        let kept_pace = !full.load(Ordering::Relaxed) && !enough.load(Ordering::Relaxed);
        aims.note("kept pace to the end", kept_pace);
        aims.note("the last committed within 2 s", took - wrote <= Duration::from_secs(2));
        // Memory is compared after the first third. Until then, structures that keep some seconds of hooks fill up.
        let third = held.len() / 3;
        let (middle, last) = (&held[third..2 * third], &held[2 * third..]);
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
        if third > 0 {
            let flat = mean(last) <= mean(middle) * 1.15;
            aims.note("memory flat: the last third of the time within 15 % of the second", flat);
        }
        // The last hooks were refused in part.
        if !full.load(Ordering::Relaxed) {
            complete(&world, events);
        }
    });
    drop(collector);
    let started = Instant::now();
    let _collector = Collector::start(&world);
    let listening = started.elapsed();
    println!("started anew: page after {listening:.0?}");
    aims.note("a page within 300 ms, all of it stored", listening <= Duration::from_millis(300));
}

/// Measures the time from the shim's exit until an answer of the API contains the event, while other events arrive at a
/// steady rate.
fn latency(aims: &mut Aims, rounds: u64, rate: u64) {
    let world = World::new();
    let mut load = Load::new(&world);
    let collector = Collector::start(&world);
    let over = AtomicBool::new(false);
    let mut times = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (started, mut written) = (Instant::now(), 0);
            while !over.load(Ordering::Relaxed) {
                let due = (started.elapsed().as_secs_f64() * rate as f64) as u64;
                load.write(due - written).unwrap();
                written = due;
                pause(TICK);
            }
        });
        let mut seen = 0;
        for number in 0..rounds {
            let (session, step) = (number / SESSION, number % SESSION);
            let (event, body) = hook(&format!("f{session:011}"), step, number);
            assert_eq!(player::hook(&world, event, &body).code, Some(0));
            let started = Instant::now();
            let path = format!("sessions/00000000-0000-4000-8000-f{session:011}/spans");
            let revision = eventually("the event is visible", Duration::from_secs(10), || {
                let answer = collector.get(&path)?;
                let revision = answer["rev"].as_u64().ok_or("no rev")?;
                if step == 0 || revision > seen { Ok(revision) } else { Err(format!("{revision}")) }
            });
            times.push(started.elapsed());
            seen = revision;
        }
        over.store(true, Ordering::Relaxed);
    });
    times.sort();
    let median = times[times.len() / 2];
    println!(
        "shim's exit to an answer of the API that holds the event, at {rate} events/s besides: median {median:.1?}, p99 {:.1?} \
         ({rounds} rounds)",
        times[times.len() * 99 / 100],
    );
    aims.note("a median of 50 ms", median <= Duration::from_millis(50));
}

/// Exports the spans of a stored history to a receiver that accepts everything. Measures spans per second, and the CPU
/// time per span beyond that of a collector without destinations. The protocols take turns, so that other load on the
/// machine affects all of them.
fn export(aims: &mut Aims, events: u64, rounds: u64) {
    let world = World::new();
    let mut load = Load::new(&world);
    load.began = now().checked_sub(events * PAUSE_NS);
    load.write(events).unwrap();
    let collector = Collector::start(&world);
    eventually("the backlog is committed", Duration::from_secs(3_600), || {
        match received(&collector)? {
            received if received >= events => Ok(()),
            received => Err(format!("{received} of {events}")),
        }
    });
    // Turns settle two seconds after their end.
    pause(Duration::from_secs(4));
    drop(collector);
    let swallow = Swallow::start();
    let grpc = env::var("HOOKSPAN_BENCH_GRPC").ok();
    let http = ["none", "gzip"].map(|word| (swallow.address.as_str(), "http/protobuf", word));
    let grpc =
        grpc.iter().flat_map(|url| ["none", "gzip"].map(|word| (url.as_str(), "grpc", word)));
    let ways: Vec<_> = http.into_iter().chain(grpc).collect();
    let idle = idle(&world);
    println!(
        "a collector without destinations: {:.0} ms of CPU, peak memory {:.0} MiB",
        idle.0.all as f64 / 1e6,
        idle.1
    );
    for round in 1..=rounds {
        for (way, (url, protocol, gzip)) in ways.iter().enumerate() {
            let name = format!("r{round}w{way}");
            let (spans, took, usage, peak) = exported(&world, &name, (url, protocol, gzip));
            let (rate, parts) = (spans as f64 / took, usage.per_event(&idle.0, spans));
            println!(
                "{protocol:<13} {gzip:<4} {rate:>7.0} spans/s, {parts}, peak memory {peak:.0} MiB"
            );
            let cost = usage.all.saturating_sub(idle.0.all) as f64 / 1e3 / spans as f64;
            aims.note("15 µs of CPU per span, 60 MiB", cost <= 15.0 && peak <= 60.0);
        }
    }
}

/// CPU time and peak memory of a collector without destinations, over the time that an export usually takes.
fn idle(world: &World) -> (Usage, f64) {
    world.write_config("");
    let collector = Collector::start(world);
    pause(Duration::from_secs(5));
    (Usage::of(&collector), mib(memory(&collector, "VmHWM:")))
}

/// Spans, seconds, CPU time and peak memory of a collector with a new destination that gets everything.
fn exported(
    world: &World,
    name: &str,
    (url, protocol, gzip): (&str, &str, &str),
) -> (u64, f64, Usage, f64) {
    world.write_config(&format!(
        "[[destination]]\nname = \"{name}\"\nendpoint = \"{url}\"\nprotocol = \"{protocol}\"\n\
         compression = \"{gzip}\"\nbackfill = \"all\"\nsemconv = \"genai-1.41-strict\"\n"
    ));
    let collector = Collector::start(world);
    let started = Instant::now();
    let spans = eventually("all spans have left", Duration::from_secs(900), || {
        let health = collector.get("health")?;
        let all = health["exporters"].as_array().cloned().unwrap_or_default();
        let one = all.iter().find(|one| one["name"] == name).ok_or("no such destination")?;
        match (one["queued"].as_u64(), one["delivered"].as_u64()) {
            (Some(0), Some(delivered)) if delivered > 0 => Ok(delivered),
            left => Err(format!("{left:?}: {one}")),
        }
    });
    let took = started.elapsed().as_secs_f64();
    (spans, took, Usage::of(&collector), mib(memory(&collector, "VmHWM:")))
}

/// Checks that nothing is missing. Otherwise the figures would be meaningless.
fn complete(world: &World, events: u64) {
    let status = world.json(&["status", "--json"]);
    assert_eq!(status["backlog"], 0);
    let sessions = world.json(&["sessions", "--limit", "0", "--json"]);
    let begun =
        (events / (SESSION * ABREAST)) * ABREAST + (events % (SESSION * ABREAST)).min(ABREAST);
    assert_eq!(sessions.as_array().unwrap().len() as u64, begun, "sessions");
}

fn received(collector: &Collector<'_>) -> Result<u64, String> {
    Ok(collector.get("health")?["counters"]["received"].as_u64().unwrap_or(0))
}

/// An endless series of ordinary hooks, written into the journal.
struct Load {
    writer: JournalWriter,
    /// By step, then by variant: event, body, and the positions of the session's number in it.
    templates: Vec<(&'static str, Vec<u8>, Vec<usize>)>,
    next: u64,
    /// For a backlog, when its first hook arrived. Otherwise each hook arrives now.
    began: Option<u64>,
}

impl Load {
    fn new(world: &World) -> Self {
        const SESSION_MARK: &str = "SSSSSSSSSSSS";
        // Installing creates the state directory.
        world.shim();
        fs::create_dir_all(world.state()).unwrap();
        let steps = (0..SESSION).flat_map(|step| (0..VARIANTS).map(move |text| (step, text)));
        let template = |(step, text): (u64, u64)| {
            let (event, body) = hook(SESSION_MARK, step, step * VARIANTS + text);
            let mark = SESSION_MARK.as_bytes();
            let places = body.windows(mark.len()).enumerate();
            let places = places.filter(|(_, window)| *window == mark).map(|(at, _)| at).collect();
            (event, body, places)
        };
        Self {
            writer: JournalWriter::new(world.state().join("journal")),
            templates: steps.map(template).collect(),
            next: 0,
            began: None,
        }
    }

    /// Writes this number of hooks. After an error, the last of them may not be written yet.
    fn write(&mut self, events: u64) -> io::Result<()> {
        for number in self.next..self.next + events {
            let (round, step) = (number / (ABREAST * SESSION), number / ABREAST % SESSION);
            let session = round * ABREAST + number % ABREAST;
            let at = step * VARIANTS + Random::from_seed(number).bits() % VARIANTS;
            let (event, body, places) = &mut self.templates[at as usize];
            let digits = format!("{session:012}");
            for &place in places.iter() {
                body[place..place + digits.len()].copy_from_slice(digits.as_bytes());
            }
            let at = self.began.map_or_else(now, |began| began + number * PAUSE_NS);
            self.writer.append(at, event, body)?;
        }
        self.next += events;
        self.writer.flush()
    }
}

/// Step `step` of an ordinary session.
fn hook(session: &str, step: u64, seed: u64) -> (&'static str, Vec<u8>) {
    let call = format!("call_{session}_{}\nfc_1", step.div_ceil(2));
    let command = json!({"command": "cargo test", "cwd": "", "timeout": 30000});
    let (event, own) = match step {
        0 => ("beforeSubmitPrompt", json!({"prompt": filler(seed), "attachments": []})),
        step if step == SESSION - 1 => (
            "stop",
            json!({"status": "completed", "loop_count": 0, "input_tokens": 1000, "output_tokens": 10,
                   "cache_read_tokens": 900, "cache_write_tokens": 0}),
        ),
        step if step % 2 == 1 => (
            "preToolUse",
            json!({"tool_name": "Shell", "tool_input": command, "tool_use_id": call, "agent_message": filler(seed)}),
        ),
        _ => (
            "postToolUse",
            json!({"tool_name": "Shell", "tool_input": command, "tool_use_id": call, "duration": 12.5,
                   "tool_output": json!({"output": filler(seed), "exitCode": 0}).to_string()}),
        ),
    };
    let mut body = json!({
        "conversation_id": format!("00000000-0000-4000-8000-{session}"),
        "generation_id": format!("00000000-0000-4000-9000-{session}"),
        "model": "gpt-5.5",
        "hook_event_name": event,
        "cursor_version": "3.7.19",
        "workspace_roots": ["/home/dev/src/lighthouse"],
        "transcript_path": null,
    });
    body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    (event, serde_json::to_vec(&body).unwrap())
}

/// Real words, so that compression has about as much to do as with real text.
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
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    println!(
        "machine: {} x {}, Linux {}, load average {}",
        thread::available_parallelism().unwrap(),
        model.trim_start_matches([' ', '\t', ':']),
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').next().unwrap_or_default(),
    );
}

/// CPU time that a process has used, in nanoseconds: in total and by thread.
#[derive(Clone, Debug, Default)]
struct Usage {
    all: u64,
    threads: Vec<(String, u64)>,
}

impl Usage {
    fn of(collector: &Collector<'_>) -> Self {
        let mut usage = Self::default();
        let folder = format!("/proc/{}/task", collector.pid().as_raw_nonzero());
        for task in fs::read_dir(folder).into_iter().flatten().flatten() {
            let read = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
            let ran = read("schedstat").split(' ').next().and_then(|ns| ns.parse().ok());
            let (name, ran) = (read("comm").trim().to_owned(), ran.unwrap_or(0));
            usage.all += ran;
            match usage.threads.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += ran,
                None => usage.threads.push((name, ran)),
            }
        }
        usage
    }

    fn per_event(&self, before: &Self, events: u64) -> String {
        let per_event = |now: u64, then: u64| now.saturating_sub(then) as f64 / 1e3 / events as f64;
        let then = |name: &str| {
            before.threads.iter().find(|(known, _)| known == name).map_or(0, |(_, ran)| *ran)
        };
        let mut threads: Vec<(&str, f64)> = self
            .threads
            .iter()
            .map(|(name, ran)| (name.as_str(), per_event(*ran, then(name))))
            .filter(|(_, cost)| *cost >= 0.5)
            .collect();
        threads.sort_by(|a, b| b.1.total_cmp(&a.1));
        let parts: Vec<String> =
            threads.iter().map(|(name, cost)| format!("{name} {cost:.1}")).collect();
        format!("{:.1} µs ({})", per_event(self.all, before.all), parts.join(", "))
    }
}

/// A line of the collector's `/proc/PID/status`, KiB.
fn memory(collector: &Collector<'_>, what: &str) -> u64 {
    let pid = collector.pid().as_raw_nonzero();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap_or("0");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
