//! Tests that the collector sleeps and needs little memory while nothing happens.

use std::fs;
use std::time::{Duration, Instant};

use e2e_support::collector::Collector;
use e2e_support::fixture::Fixture;
use e2e_support::player;
use e2e_support::wait::{eventually, pause};
use e2e_support::world::World;

/// The measured rate is 0.2, with some more once per minute.
const WAKE_UPS_A_SECOND: f64 = 2.0;
/// Maximum private memory. Measured: 10,700 KiB, a good part of it for the tables with which secrets are found. With
/// huge pages it was more than twice as much.
const OWN_KIB: u64 = 16 << 10;

#[test]
fn a_collector_with_nothing_to_do_sleeps_and_holds_little() {
    let world = World::new();
    let collector = Collector::start(&world);
    let fixture = Fixture::own().settle_in(&world);
    player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    // The work after hooks takes time: turns settle, texts are indexed.
    eventually("it sleeps", Duration::from_secs(60), || {
        let (before, since) = (wake_ups(&collector), Instant::now());
        pause(Duration::from_secs(2));
        // A thread that ends takes its count with it. So the sum may fall, and the rate is then too low or zero.
        let rate =
            wake_ups(&collector).saturating_sub(before) as f64 / since.elapsed().as_secs_f64();
        if rate <= WAKE_UPS_A_SECOND { Ok(()) } else { Err(format!("{rate:.1} wake-ups a second")) }
    });
    let own = own_kib(&collector);
    assert!(own <= OWN_KIB, "{own} KiB");
}

/// How often the collector's threads have started to run after a wait.
fn wake_ups(collector: &Collector<'_>) -> u64 {
    let threads = fs::read_dir(format!("/proc/{}/task", collector.pid().as_raw_nonzero())).unwrap();
    let of = |path| line(path, "voluntary_ctxt_switches:");
    threads.map(|thread| of(thread.unwrap().path().join("status"))).sum()
}

fn own_kib(collector: &Collector<'_>) -> u64 {
    line(format!("/proc/{}/status", collector.pid().as_raw_nonzero()).into(), "RssAnon:")
}

/// The number in that line; 0 if the thread has ended.
fn line(path: std::path::PathBuf, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
