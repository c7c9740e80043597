//! SIGKILL at any moment, of the collector and of shims.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::control::Control;
use super::{Report, Traffic, bar, frames, nothing_is_lost, settle};
use crate::collector::{self, Collector};
use crate::ledger::{self, Ledger};
use crate::machine;
use crate::player;
use crate::random::Random;
use crate::verify::rebuild_is_equal;
use crate::wait::pause;
use crate::world::World;

/// How long.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Kills of the collector.
    pub kills: u64,
    /// Shims at once.
    pub at_once: u64,
    /// Shims per kill.
    pub shims: u64,
    /// One kill in so many comes when segments are being deleted, which is after ten seconds; 0 for none.
    pub late_one_in: u64,
    /// Where the randomness starts.
    pub seed: u64,
}

/// One kill in so many comes after the collector said that it is ready, and that time is taken.
const READY_ONE_IN: u64 = 5;

/// Sessions that end soon are forgotten soon: otherwise every start replays the whole campaign. Segments that are put aside
/// early are put aside often.
const CONFIG: &str = "[trace]\nsession_idle = \"2s\"\ngeneration_idle = \"1s\"\n\n[journal]\nsegment_bytes = 1048576\n";

/// Kills the collector again and again under `at_once` shims, some of which are killed too.
#[track_caller]
pub fn run(plan: Plan) -> Report {
    let world = World::new();
    world.write_config(CONFIG);
    let traffic = Traffic::new(&world, 40);
    let control = Control::start(&world);
    let mut random = Random::from_seed(plan.seed);
    let bar = bar("kill", plan.kills);
    let mut ready = Vec::new();
    thread::scope(|scope| {
        let _end = traffic.until_the_end();
        for seed in 0..plan.at_once {
            let (traffic, control) = (&traffic, &control);
            scope.spawn(move || traffic.run(plan.seed ^ seed << 32, |number| control.send(number)));
        }
        for kill in 0..plan.kills {
            if kill % 4 == 1 {
                control.distract();
            }
            traffic.allow(plan.shims);
            if plan.late_one_in > 0 && kill % plan.late_one_in == plan.late_one_in - 1 {
                kill_late(&world, &mut random);
            } else if kill % READY_ONE_IN == 0 {
                ready.push(kill_when_ready(&world, &mut random));
            } else {
                kill_soon(&world, &mut random);
            }
            control.kill();
            bar.inc(1);
        }
    });
    bar.finish_and_clear();
    let ledger = traffic.ledger.into_inner().unwrap();
    let collector = Collector::start(&world);
    collector.drained(Duration::from_secs(900));
    drop(collector);
    nothing_is_lost(&world, &ledger);
    // Longer than anything of the configuration takes to be idle and settled.
    rebuild_is_equal(&world, Duration::from_secs(8));
    let (sent, lost) = control.end();
    assert!(lost > 0, "the negative control lost nothing of {sent}: this campaign proves nothing");
    ready.sort();
    let rolled = rolls(&world);
    format!(
        "kill: seed {}, {} kills of the collector and {} of shims, {} hooks accepted: 0 lost, 0 duplicated, 0 torn; \
         ready after {:.0?} median, {:.0?} at most; {rolled} segments; control: socket lost {lost} of {sent}",
        plan.seed,
        plan.kills,
        ledger.killed(),
        ledger.accepted(),
        ready[ready.len() / 2],
        ready[ready.len() - 1],
    )
}

/// Kills the collector in the middle of a given system call, the first, the second and so on: every step of a roll, of a
/// deletion, of a commit and of the first migration.
///
/// # Errors
/// `strace` is not there.
pub fn exactly(calls: u64, seed: u64) -> Result<Report, String> {
    machine::tool("strace")?;
    let world = World::new();
    world.write_config(CONFIG);
    world.shim();
    let mut ledger = Ledger::of(ledger::mixed);
    let kinds = ["fdatasync", "fsync", "pwrite64", "rename", "linkat", "unlink", "fallocate"];
    let bar = bar("kill in a system call", calls * kinds.len() as u64);
    let (mut number, mut killed) = (0, 0);
    for kind in kinds {
        for call in 1..=calls {
            for _ in 0..6 {
                let body = ledger::mixed(number);
                ledger.enter(number, player::hook(&world, "afterAgentThought", &body));
                number += 1;
            }
            killed += u64::from(kill_in(&world, kind, call));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    settle(&world, &ledger);
    Ok(format!(
        "kill in a system call: seed {seed}, {} calls of {} kinds tried, {killed} kills, {} hooks: 0 lost, 0 duplicated, \
         0 torn",
        calls * kinds.len() as u64,
        kinds.len(),
        ledger.accepted(),
    ))
}

/// A length that is believed costs neighbours: the negative control of every reader of a journal.
///
/// Returns how many whole records a trusting reader loses; the collector must lose none of them.
#[track_caller]
pub fn a_trusting_reader_loses() -> Report {
    let world = World::new();
    world.shim();
    let mut ledger = Ledger::of(ledger::mixed);
    let journal = world.state().join("journal");
    for number in 0..40 {
        let body = ledger::mixed(number);
        ledger.enter(number, player::hook(&world, "afterAgentThought", &body));
        if number % 10 == 4 {
            // What a shim leaves that was killed in the middle of its one write.
            let torn = frames::record(number, 1, "stop", &vec![b'x'; 30_000]);
            let mut file = fs::File::options().append(true).open(&journal).unwrap();
            std::io::Write::write_all(&mut file, &torn[..torn.len() / 8]).unwrap();
        }
    }
    let file = fs::read(&journal).unwrap();
    let found: std::collections::BTreeSet<u64> = frames::trusting(&file)
        .into_iter()
        .filter_map(|payload| {
            let at = payload.windows(8).position(|window| window == b"{\"conver")?;
            ledger::number(&payload[at..])
        })
        .collect();
    let lost = ledger.accepted() - found.len();
    assert!(lost > 0, "the control lost nothing: this proves nothing");
    settle(&world, &ledger);
    let torn = world.json(&["status", "--json"])["counters"]["torn_frame"].clone();
    assert_eq!(torn, 4, "torn frames are counted");
    format!(
        "torn frames: 40 records beside 4 torn ones: 0 lost; control: a reader that trusts lengths lost {lost}"
    )
}

fn kill_soon(world: &World, random: &mut Random) {
    let mut child = collector::spawn(world, "serve", &[]);
    pause(Duration::from_micros(random.between(1_000, 500_000)));
    let ended = child.try_wait().unwrap();
    assert_eq!(ended, None, "it ended by itself\n{}", collector::log(world));
    child.kill().unwrap();
    child.wait().unwrap();
}

fn kill_when_ready(world: &World, random: &mut Random) -> Duration {
    let started = Instant::now();
    let collector = Collector::start(world);
    let ready = started.elapsed();
    pause(Duration::from_millis(random.between(0, 400)));
    collector.kill();
    ready
}

fn kill_late(world: &World, random: &mut Random) {
    let collector = Collector::start(world);
    pause(Duration::from_millis(random.between(10_000, 10_600)));
    collector.kill();
}

fn kill_in(world: &World, kind: &str, call: u64) -> bool {
    let trace = format!("trace={kind}");
    let inject = format!("inject={kind}:signal=KILL:when={call}");
    let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    let mut child = collector::spawn_below(world, &wrapper, "serve", &[]);
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(1_500) {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        pause(Duration::from_millis(10));
    }
    // The call did not come so often. A tracer that is killed lets go of whom it traces; it ends by itself when that one has.
    let tracer = child.id();
    let traced = fs::read_to_string(format!("/proc/{tracer}/task/{tracer}/children")).unwrap();
    let traced = traced.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
    for pid in traced {
        let _may_have_ended = kill_process(pid, Signal::KILL);
    }
    child.wait().unwrap();
    false
}

/// How many segments there have been.
fn rolls(world: &World) -> u64 {
    let names = fs::read_dir(world.state()).unwrap().flatten();
    let numbers = names
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("seg-")?.parse::<u64>().ok());
    numbers.max().unwrap_or(0)
}
