//! SIGKILL at any moment.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, thread};

use rustix::process::{Pid, Signal, kill_process};

use e2e_support::campaign::Until;
use e2e_support::collector::{self, Collector};
use e2e_support::fixture::Fixture;
use e2e_support::ledger::{self, Ledger, Verdict};
use e2e_support::player::{self, Reply};
use e2e_support::random::Random;
use e2e_support::wait::{SOON, eventually, pause};
use e2e_support::world::World;
use e2e_support::{skip, verify};

const KILLS: u32 = 20;
const WRITERS: usize = 4;
const HOOKS_PER_KILL: u64 = 20;

#[test]
fn twenty_kills_of_the_collector_lose_and_double_nothing() {
    let world = World::new();
    world.shim();
    let mut random = Random::printed("twenty kills");
    let ledger = Mutex::new(Ledger::default());
    let (next, limit, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let _end = Until::new(&stop);
        for _ in 0..WRITERS {
            scope.spawn(|| write_until(&world, &next, &limit, &stop, &ledger));
        }
        for _ in 0..KILLS {
            // Minimum number of hooks per collector. A debug build that only catches up would never be killed in
            // another phase.
            limit.fetch_add(HOOKS_PER_KILL, Ordering::Relaxed);
            kill_one_collector(&world, &mut random);
        }
    });
    let ledger = ledger.into_inner().unwrap();
    assert_eq!(ledger.refused(), [], "a shim was harmed by the collector's death");
    assert!(ledger.accepted() > 100, "too little was written: {}", ledger.accepted());
    let collector = Collector::start(&world);
    collector.committed(ledger.accepted());
    drop(collector);
    assert_eq!(verdict(&ledger, &verify::raw_bodies(&world)), Verdict::default());
    let before = verify::otlp_json(&world);
    world.ok(&["rebuild"]);
    assert_eq!(verify::otlp_json(&world), before, "what a crash left is not what the raw log says");
}

#[test]
fn a_session_survives_a_kill_every_few_hooks() {
    survive(&Fixture::own());
}

#[test]
fn a_recorded_session_survives_a_kill_every_few_hooks() {
    match Fixture::recorded() {
        Ok(fixture) => survive(&fixture),
        Err(reason) => skip::announce("kills during a recording", &reason),
    }
}

#[test]
fn shims_killed_in_mid_write_cost_only_themselves() {
    let world = World::new();
    world.shim();
    let mut random = Random::printed("killed shims");
    let mut ledger = Ledger::default();
    let collector = Collector::start(&world);
    for number in 0..200 {
        let body = ledger::body(number);
        let mut child = player::start(&world, "afterAgentThought");
        if random.between(0, 2) == 0 {
            child.stdin.as_mut().unwrap().write_all(&body[..body.len() / 2]).unwrap();
            pause(Duration::from_micros(random.between(0, 800)));
            child.kill().unwrap();
            let reply = Reply::from(child.wait_with_output().unwrap());
            assert_eq!(reply.code, None, "it ended before its body did");
            ledger.enter_killed(number);
            continue;
        }
        player::feed(&mut child, &body);
        ledger.enter(number, Reply::from(child.wait_with_output().unwrap()));
    }
    assert!(ledger.killed() > 50 && ledger.accepted() > 50);
    assert_eq!(ledger.refused(), []);
    collector.committed(ledger.accepted());
    assert_eq!(verdict(&ledger, &verify::raw_bodies(&world)), Verdict::default());
}

/// The negative controls. The same ledger and comparison must notice a channel that loses, and storage that doubles or
/// changes; otherwise the tests above prove nothing.
#[test]
fn the_ledger_sees_a_channel_that_loses() {
    let world = World::new();
    let file = world.scratch("received");
    // A reader at the end of a pipe stops and then dies. The senders of all bytes in the pipe's buffer were told that
    // they succeeded.
    let mut reader = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(fs::File::create(&file).unwrap())
        .spawn()
        .unwrap();
    let mut pipe = reader.stdin.take().unwrap();
    let mut ledger = Ledger::default();
    let mut send = |number: u64| {
        let mut line = ledger::body(number);
        line.push(b'\n');
        pipe.write_all(&line).unwrap();
        let ok = Reply { code: Some(0), stdout: "{}\n".into(), stderr: String::new() };
        ledger.enter(number, ok);
    };
    (0..5).for_each(&mut send);
    eventually("the reader has caught up", SOON, || {
        let lines = fs::read(&file).unwrap().iter().filter(|byte| **byte == b'\n').count();
        if lines == 5 { Ok(()) } else { Err(format!("{lines} lines")) }
    });
    kill_process(Pid::from_child(&reader), Signal::STOP).unwrap();
    (5..8).for_each(&mut send);
    reader.kill().unwrap();
    reader.wait().unwrap();
    let received = fs::read(&file).unwrap();
    let stored = received.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let found = ledger.compare(stored);
    assert_eq!(found, Verdict { lost: vec![5, 6, 7], ..Verdict::default() });
}

#[test]
fn the_ledger_sees_doubled_and_changed_bodies() {
    let mut ledger = Ledger::default();
    let ok = Reply { code: Some(0), stdout: "{}\n".into(), stderr: String::new() };
    (0..3).for_each(|number| ledger.enter(number, ok.clone()));
    let mut changed = ledger::body(2);
    let last = changed.len() - 4;
    changed[last] ^= 1;
    let stored = [ledger::body(0), ledger::body(1), ledger::body(1), changed];
    let found = verdict(&ledger, &stored);
    assert_eq!((found.lost, found.duplicate, found.different.len()), (vec![2], vec![1], 1));
}

/// Starts shims one after another until told to stop, and keeps the ledger.
fn write_until(
    world: &World,
    next: &AtomicU64,
    limit: &AtomicU64,
    stop: &AtomicBool,
    ledger: &Mutex<Ledger>,
) {
    while !stop.load(Ordering::Relaxed) {
        if next.load(Ordering::Relaxed) >= limit.load(Ordering::Relaxed) {
            pause(Duration::from_micros(500));
            continue;
        }
        let number = next.fetch_add(1, Ordering::Relaxed);
        let reply = player::hook(world, "afterAgentThought", &ledger::body(number));
        ledger.lock().unwrap().enter(number, reply);
    }
}

/// Starts a collector and kills it at a random moment: while it starts, catches up, or works.
fn kill_one_collector(world: &World, random: &mut Random) {
    let mut child = collector::spawn(world, "serve", &[]);
    pause(Duration::from_micros(random.between(1_000, 400_000)));
    let ended = child.try_wait().unwrap();
    assert_eq!(ended, None, "it ended by itself\n{}", collector::log(world));
    child.kill().unwrap();
    child.wait().unwrap();
}

fn survive(fixture: &Fixture) {
    let world = World::new();
    let fixture = fixture.settle_in(&world);
    let mut random = Random::printed("kills in a session");
    let mut bodies = fixture.bodies.as_slice();
    while !bodies.is_empty() {
        let collector = Collector::start(&world);
        let some = usize::try_from(random.between(5, 20)).unwrap().min(bodies.len());
        let (now, later) = bodies.split_at(some);
        now.iter().for_each(|body| player::play_one(&world, body));
        bodies = later;
        collector.kill();
    }
    let collector = Collector::start(&world);
    collector.committed(fixture.bodies.len());
    let played: Vec<_> = fixture.bodies.iter().map(|body| body.bytes.clone()).collect();
    assert_eq!(verify::raw_bodies(&world), played);
    verify::session_is_right(&world, &fixture);
}

fn verdict(ledger: &Ledger, stored: &[Vec<u8>]) -> Verdict {
    ledger.compare(stored.iter().map(Vec::as_slice))
}
