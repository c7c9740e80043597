//! Faults in which a limit is reached: of descriptors, of a wait, of the journal's size, or of the number of shims at
//! once.

use std::fs;
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use super::super::{Report, extend, send};
use super::system::stored;
use crate::collector::{self, Collector};
use crate::ledger::{self, Ledger};
use crate::machine;
use crate::player;
use crate::verify;
use crate::wait::{SOON, eventually, pause};
use crate::world::World;

/// Sixty-four file descriptors are enough for the collector. If they are not, it must not spin.
pub(super) fn sixty_four_descriptors(seed: u64) -> Result<Report, String> {
    machine::tool("prlimit")?;
    let world = World::new();
    world.shim();
    let collector = Collector::start_below(&world, &["prlimit", "--nofile=64"]);
    // Pages that stay open use up the available descriptors.
    let host = collector.url.trim_start_matches("http://").to_owned();
    let pages: Vec<_> = (0..60).filter_map(|_| std::net::TcpStream::connect(&host).ok()).collect();
    let ledger = send(&world, 200, seed);
    let before = cpu_ms(&collector);
    pause(Duration::from_secs(2));
    let spent = cpu_ms(&collector) - before;
    let open = pages.len();
    drop(pages);
    stored(&world, collector, &ledger);
    assert!(spent < 1_500, "it spins: {spent} ms of CPU in 2 s");
    Ok(format!(
        "64 descriptors, {open} connections held open: {} hooks, 0 lost; {spent} ms of CPU in 2 s",
        ledger.accepted()
    ))
}

fn cpu_ms(collector: &Collector<'_>) -> u64 {
    let stat =
        fs::read_to_string(format!("/proc/{}/stat", collector.pid().as_raw_nonzero())).unwrap();
    let fields: Vec<u64> = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().filter_map(|field| field.parse().ok()).collect())
        .unwrap_or_default();
    // Fields 14 and 15 of the line, counted from the first number after the state, in ticks of 10 ms.
    (fields[10] + fields[11]) * 10
}

/// Some service managers do not set HOME. Shim and collector then work if they are told the directory.
pub(super) fn no_home(_: u64) -> Result<Report, String> {
    let world = World::new();
    world.shim();
    let state = world.state();
    let mut child = world
        .command(world.shim())
        .env_remove("HOME")
        .args(["--dir", state.to_str().unwrap(), "afterAgentThought"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    player::feed(&mut child, &ledger::mixed(0));
    let mut ledger = Ledger::of(ledger::mixed);
    ledger.enter(0, player::Reply::from(child.wait_with_output().unwrap()));
    let collector = Collector::start_below(
        &world,
        &["env", "-u", "HOME", &format!("HOOKSPAN_DIR={}", state.display())],
    );
    stored(&world, collector, &ledger);
    Ok("without HOME, with a directory named: shim and collector work; 0 lost".into())
}

/// A stopped collector costs a hook nothing.
pub(super) fn hung_collector(_: u64) -> Result<Report, String> {
    let world = World::new();
    world.shim();
    let collector = Collector::start(&world);
    let mut ledger = Ledger::of(ledger::mixed);
    // Measured in turns, because other work on the machine slows down both.
    let (mut running, mut hung) = (Vec::new(), Vec::new());
    for _ in 0..15 {
        for (times, signal) in [(&mut running, Signal::STOP), (&mut hung, Signal::CONT)] {
            for _ in 0..10 {
                let number = ledger.accepted() as u64;
                let body = ledger::mixed(number);
                let started = Instant::now();
                let reply = player::hook(&world, "afterAgentThought", &body);
                times.push(started.elapsed());
                ledger.enter(number, reply);
            }
            kill_process(collector.pid(), signal).unwrap();
        }
    }
    let [at_work, stopped] = [running, hung].map(|mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    });
    assert!(
        stopped < at_work * 2 + Duration::from_millis(2),
        "a hook waits for a hung collector: {stopped:?} against {at_work:?}"
    );
    stored(&world, collector, &ledger);
    Ok(format!(
        "hook from spawn to exit, median of 150: {at_work:.1?} with the collector at work, {stopped:.1?} with it hung; 0 lost"
    ))
}

/// A second collector is refused at once, with the name of the process that uses the directory.
pub(super) fn second_collector(_: u64) -> Result<Report, String> {
    let world = World::new();
    let first = Collector::start(&world);
    let mut times: Vec<Duration> = (0..9)
        .map(|_| {
            let started = Instant::now();
            let second = world.run(&["serve", "--listen", "127.0.0.1:0"]);
            let took = started.elapsed();
            assert_eq!(second.code, 1, "{second:#?}");
            assert!(
                second.stderr.contains(&first.pid().as_raw_nonzero().to_string()),
                "{second:#?}"
            );
            took
        })
        .collect();
    times.sort();
    let median = times[times.len() / 2];
    first.kill();
    let started = Instant::now();
    drop(Collector::start(&world));
    let free = started.elapsed();
    let allowed = if cfg!(debug_assertions) { 400 } else { 200 };
    assert!(
        median < Duration::from_millis(allowed),
        "a second collector is refused after {median:?}"
    );
    Ok(format!(
        "a second collector is refused after {median:.0?}; after kill -9 the next one is ready in {free:.0?}"
    ))
}

/// The journal reaches its bound while the database is locked. Hooks are counted, and they are stored again once there
/// is room.
pub(super) fn journal_at_its_bound(seed: u64) -> Result<Report, String> {
    let world = World::new().with_env("XDG_RUNTIME_DIR", "/nonexistent");
    world.write_config("[journal]\nmax_bytes = 16777216\n");
    world.shim();
    let collector = Collector::start(&world);
    kill_process(collector.pid(), Signal::STOP).unwrap();
    let mut ledger = send(&world, 3_000, seed);
    kill_process(collector.pid(), Signal::CONT).unwrap();
    // The collector finds more than it may keep. It stops the journal until it has caught up.
    extend(&mut ledger, &world, 200, seed);
    collector.drained(Duration::from_secs(180));
    let before = ledger.accepted();
    eventually("the journal takes hooks again", Duration::from_secs(120), || {
        let symlink = fs::symlink_metadata(world.state().join("journal")).unwrap().is_symlink();
        if symlink { Err(collector::log(&world)) } else { Ok(()) }
    });
    extend(&mut ledger, &world, 50, seed);
    collector.drained(SOON);
    drop(collector);
    let mut comparison = ledger.comparison();
    verify::each_raw_body(&world, |body| comparison.see(body));
    let verdict = comparison.verdict();
    assert_eq!((&verdict.duplicate, &verdict.different), (&Vec::new(), &Vec::new()));
    let late = verdict.lost.iter().filter(|number| **number >= before as u64).count();
    assert_eq!(late, 0, "hooks are lost after there is room again");
    let losses = world.json(&["status", "--json"])["losses"].clone();
    let counted: u64 =
        losses.as_object().unwrap().values().filter_map(serde_json::Value::as_u64).sum();
    let counters = world.json(&["status", "--json"])["counters"].clone();
    let lost = &verdict.lost;
    assert_eq!(lost.len() as u64, counted, "{losses:#} {counters:#} {lost:?}");
    Ok(format!(
        "{} hooks against a bound of 16 MiB: {counted} lost and counted, sum exact, then kept again",
        ledger.accepted()
    ))
}

/// Two thousand shims started together.
pub(super) fn two_thousand_at_once(seed: u64) -> Result<Report, String> {
    let world = World::new();
    world.shim();
    let collector = Collector::start(&world);
    let started = Instant::now();
    let ledger = Mutex::new(Ledger::of(ledger::mixed));
    thread::scope(|scope| {
        for part in 0..16 {
            let (world, ledger) = (&world, &ledger);
            scope.spawn(move || {
                // All are started and fed before any is waited for.
                let children: Vec<_> = (0..125)
                    .map(|one| {
                        let number = (seed % 7) * 2_000 + part * 125 + one;
                        let mut child = player::start(world, "afterAgentThought");
                        player::feed(&mut child, &ledger::mixed(number));
                        (number, child)
                    })
                    .collect();
                for (number, child) in children {
                    let reply = player::Reply::from(child.wait_with_output().unwrap());
                    ledger.lock().unwrap().enter(number, reply);
                }
            });
        }
    });
    let ledger = ledger.into_inner().unwrap();
    let took = started.elapsed();
    stored(&world, collector, &ledger);
    Ok(format!(
        "2,000 shims started without waiting for one another, all ended after {took:.1?}: 0 lost, 0 torn"
    ))
}
