//! Long runs that try to lose a hook. Each has a small version that is a test; `cargo run -p e2e --example campaign`
//! runs the long ones.
//!
//! They compare with a [`crate::ledger::Ledger`] outside the system. Every accepted hook must be stored byte for byte
//! and once, or be counted as lost. Each campaign has a negative control: a channel that must lose hooks under the same
//! treatment.

pub mod control;
pub mod disk;
pub mod faults;
pub mod flip;
pub mod frames;
pub mod inject;
pub mod kill;
pub mod outage;
pub mod power;
pub mod soak;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::collector::Collector;
use crate::ledger::{self, Ledger, Verdict};
use crate::player::{self, Reply};
use crate::random::Random;
use crate::verify;
use crate::wait::{eventually, pause};
use crate::world::World;

/// Result of a successful campaign: one line of figures. A failure panics.
pub type Report = String;

/// A progress bar on standard error; none if that is not a terminal.
#[must_use]
pub fn bar(what: &'static str, steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps).with_message(what);
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {elapsed} {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Sets its flag when it is dropped.
#[derive(Debug)]
pub struct Until<'a>(&'a AtomicBool);

impl<'a> Until<'a> {
    /// `stop` is a flag that threads check.
    #[must_use]
    pub fn new(stop: &'a AtomicBool) -> Self {
        Self(stop)
    }
}

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs shims in parallel, one in each thread that calls [`Traffic::run`].
#[derive(Debug)]
pub struct Traffic<'a> {
    world: &'a World,
    make: fn(u64) -> Vec<u8>,
    /// The hooks that were sent.
    pub ledger: Mutex<Ledger>,
    next: AtomicU64,
    limit: AtomicU64,
    stop: AtomicBool,
    /// One in this many shims is killed; 0 for none.
    killed_one_in: u64,
}

impl<'a> Traffic<'a> {
    /// Traffic that starts no shim until [`Traffic::allow`] is called.
    #[must_use]
    pub fn new(world: &'a World, killed_one_in: u64) -> Self {
        Self::from(world, killed_one_in, 0)
    }

    /// The same, with numbers that begin at `first`.
    #[must_use]
    pub fn from(world: &'a World, killed_one_in: u64, first: u64) -> Self {
        Self::of(ledger::mixed, world, killed_one_in, first)
    }

    /// The same with other bodies.
    #[must_use]
    pub fn of(make: fn(u64) -> Vec<u8>, world: &'a World, killed_one_in: u64, first: u64) -> Self {
        world.shim();
        Self {
            world,
            make,
            ledger: Mutex::new(Ledger::of(make)),
            next: AtomicU64::new(first),
            limit: AtomicU64::new(first),
            stop: AtomicBool::new(false),
            killed_one_in,
        }
    }

    /// Allows this number of further shims to run.
    pub fn allow(&self, more: u64) {
        self.limit.fetch_add(more, Ordering::Relaxed);
    }

    /// Number of shims that were started.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.next.load(Ordering::Relaxed).min(self.limit.load(Ordering::Relaxed))
    }

    /// Ends every [`Traffic::run`] when it is dropped, including after a panic. A scope of threads would otherwise wait
    /// for them.
    #[must_use]
    pub fn until_the_end(&self) -> Until<'_> {
        Until(&self.stop)
    }

    /// Runs shims one after another until told to stop. Calls `then` with each number that was accepted.
    pub fn run(&self, seed: u64, mut then: impl FnMut(u64)) {
        let mut random = Random::from_seed(seed);
        while !self.stop.load(Ordering::Relaxed) {
            let claimed = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                (next < self.limit.load(Ordering::Relaxed)).then_some(next + 1)
            });
            let Ok(number) = claimed else {
                pause(Duration::from_millis(2));
                continue;
            };
            let kill = self.killed_one_in > 0 && random.between(0, self.killed_one_in) == 0;
            let reply = match kill {
                true => killed(self.world, &(self.make)(number), &mut random),
                false => player::hook(self.world, "afterAgentThought", &(self.make)(number)),
            };
            let accepted = reply.code.is_some();
            let mut ledger = self.ledger.lock().unwrap();
            if accepted {
                ledger.enter(number, reply);
            } else {
                ledger.enter_killed(number);
            }
            drop(ledger);
            if accepted {
                then(number);
            }
        }
    }
}

/// A shim that is killed somewhere between its start and its end. It may have ended before.
fn killed(world: &World, body: &[u8], random: &mut Random) -> Reply {
    let mut child = player::start(world, "afterAgentThought");
    let whole = random.between(0, 2) == 0;
    if whole {
        player::feed(&mut child, body);
    } else if let Some(stdin) = &mut child.stdin {
        // The shim may have ended already. The next line finds out.
        let _half = std::io::Write::write_all(stdin, &body[..body.len() / 2]);
    }
    pause(Duration::from_micros(random.between(0, 1_500)));
    child.kill().unwrap();
    Reply::from(child.wait_with_output().unwrap())
}

/// Runs this number of shims, two hundred at a time.
#[must_use]
pub fn send(world: &World, shims: u64, seed: u64) -> Ledger {
    let mut ledger = Ledger::of(ledger::mixed);
    extend(&mut ledger, world, shims, seed);
    ledger
}

/// Runs this number of further shims.
pub fn extend(ledger: &mut Ledger, world: &World, shims: u64, seed: u64) {
    extend_of(ledger::mixed, ledger, world, shims, seed);
}

/// The same with the bodies of the ledger.
pub fn extend_of(
    make: fn(u64) -> Vec<u8>,
    ledger: &mut Ledger,
    world: &World,
    shims: u64,
    seed: u64,
) {
    let first = ledger.accepted() as u64;
    if shims == 0 {
        return;
    }
    let traffic = Traffic::of(make, world, 0, first);
    thread::scope(|scope| {
        let _end = traffic.until_the_end();
        for one in 0..200.min(shims) {
            let traffic = &traffic;
            scope.spawn(move || traffic.run(seed ^ one, |_| {}));
        }
        traffic.allow(shims);
        eventually("all shims have ended", Duration::from_secs(300), || {
            let done = traffic.ledger.lock().unwrap().accepted() as u64;
            if done == shims { Ok(()) } else { Err(format!("{done} of {shims}")) }
        });
    });
    ledger.join(&traffic.ledger.into_inner().unwrap());
}

/// Checks that every accepted body is stored exactly once, byte for byte, and nothing else.
#[track_caller]
pub fn nothing_is_lost(world: &World, ledger: &Ledger) {
    assert_eq!(ledger.refused(), [], "a shim was harmed");
    let mut comparison = ledger.comparison();
    verify::each_raw_body(world, |body| comparison.see(body));
    assert_eq!(comparison.verdict(), Verdict::default(), "{}", world.describe());
}

/// Starts a collector, lets it read everything, stops it, and compares.
#[track_caller]
pub fn settle(world: &World, ledger: &Ledger) {
    let collector = Collector::start(world);
    collector.drained(Duration::from_secs(600));
    drop(collector);
    nothing_is_lost(world, ledger);
}
