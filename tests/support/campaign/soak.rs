//! Half an hour of a busy machine: hooks at a steady rate, restarts, kills, an upgrade.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::{Report, Traffic, bar, nothing_is_lost};
use crate::collector::Collector;
use crate::random::Random;
use crate::verify::rebuild_is_equal;
use crate::wait::pause;
use crate::world::World;

/// Sessions become idle soon after their last hook. Otherwise time alone could still change something between the
/// tables and a later rebuild.
const CONFIG: &str = "[trace]\nsession_idle = \"3s\"\ngeneration_idle = \"2s\"\n";

/// How long nothing may change. It is longer than a session takes to become idle with this configuration.
const REST: Duration = Duration::from_secs(9);

/// Length and settings of a soak.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long hooks arrive.
    pub time: Duration,
    /// Hooks per second. A busy agent sends 5 to 20.
    pub rate: u64,
    /// An earlier build of hookspan for the first half. The second half upgrades its database.
    pub previous: Option<PathBuf>,
    /// Where the randomness starts.
    pub seed: u64,
}

/// Runs the soak. At its end every hook is stored once, and a rebuild gives the same tables: spans, sessions,
/// statistics.
#[track_caller]
pub fn run(plan: &Plan) -> Report {
    let mut world = World::new();
    world.copy_shim();
    world.write_config(CONFIG);
    world.set_program(plan.previous.clone());
    let first = half(&world, plan, 0, plan.seed);
    let from = schema(&world);
    world.set_program(None);
    let second = half(&world, plan, first.started, plan.seed ^ 1);
    let to = schema(&world);
    let mut ledger = first.ledger;
    ledger.join(&second.ledger);
    let collector = Collector::start(&world);
    collector.drained(Duration::from_secs(300));
    drop(collector);
    nothing_is_lost(&world, &ledger);
    let before = at_rest(&world);
    // The spans are already final, so there is nothing to wait for.
    let spans = rebuild_is_equal(&world, Duration::ZERO);
    for (command, (before, after)) in SHOWN.iter().zip(before.iter().zip(shown(&world))) {
        assert!(*before == after, "{command:?} before a rebuild:\n{before}\nafter it:\n{after}");
    }
    format!(
        "soak: seed {}, {:.0?} at {} hooks/s, {} hooks, {} kills, {} restarts, schema {from} to {to}: 0 lost, 0 duplicated; \
         rebuild equal ({} bytes of spans, {} of sessions, {} of statistics); collector's memory at most {} KiB",
        plan.seed,
        plan.time,
        plan.rate,
        ledger.accepted(),
        first.kills + second.kills,
        first.restarts + second.restarts,
        spans.len(),
        before[1].len(),
        before[2..].iter().map(String::len).sum::<usize>(),
        first.memory.max(second.memory),
    )
}

/// What a rebuild must not change.
const SHOWN: [&[&str]; 4] = [
    &["export", "--all", "--format", "otlp-json", "--content", "off"],
    &["sessions", "--json", "--limit", "0"],
    &["stats", "--json", "--group", "kind"],
    &["stats", "--json", "--group", "model"],
];

fn shown(world: &World) -> [String; 4] {
    SHOWN.map(|command| world.ok(command))
}

/// The export, once time alone no longer changes anything.
#[track_caller]
fn at_rest(world: &World) -> [String; 4] {
    let collector = Collector::start(world);
    let started = Instant::now();
    let (mut before, mut since) = (shown(world), started);
    while since.elapsed() < REST {
        assert!(started.elapsed() < Duration::from_secs(300), "the sessions never came to rest");
        pause(Duration::from_millis(500));
        let now = shown(world);
        if now != before {
            (before, since) = (now, Instant::now());
        }
    }
    drop(collector);
    before
}

struct Half {
    ledger: crate::ledger::Ledger,
    started: u64,
    kills: u64,
    restarts: u64,
    memory: u64,
}

fn half(world: &World, plan: &Plan, first: u64, seed: u64) -> Half {
    let traffic = Traffic::from(world, 0, first);
    let mut random = Random::from_seed(seed);
    let time = plan.time / 2;
    let bar = bar("soak", time.as_secs());
    let (mut kills, mut restarts, mut memory) = (0, 0, 0);
    thread::scope(|scope| {
        let _end = traffic.until_the_end();
        for one in 0..8 {
            let traffic = &traffic;
            scope.spawn(move || traffic.run(seed ^ one, |_| {}));
        }
        let started = Instant::now();
        while started.elapsed() < time {
            let collector = Collector::start(world);
            let until = started.elapsed() + Duration::from_secs(random.between(5, 60));
            while started.elapsed() < until.min(time) {
                traffic.allow(plan.rate);
                pause(Duration::from_secs(1));
                bar.set_position(started.elapsed().as_secs());
            }
            memory = memory.max(collector.peak_memory_kib());
            match random.between(0, 3) {
                0 => {
                    restarts += 1;
                    drop(collector);
                }
                _ => {
                    kills += 1;
                    collector.kill();
                }
            }
            // Sometimes nobody reads for a while.
            pause(Duration::from_millis(random.between(0, 3_000)));
        }
    });
    bar.finish_and_clear();
    let started = traffic.started();
    Half { ledger: traffic.ledger.into_inner().unwrap(), started, kills, restarts, memory }
}

fn schema(world: &World) -> i64 {
    let db = rusqlite::Connection::open_with_flags(
        world.state().join("hookspan.db"),
        rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
    )
    .unwrap();
    db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}
