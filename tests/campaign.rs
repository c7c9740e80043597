//! The long runs of RELIABILITY.md: `cargo run --release -p e2e --example campaign -- kill --count 1000 --seed 7`.
//!
//! Campaigns: `kill`, `inject`, `power-cut`, `disk-full`, `faults`, `flip`, `outage`, `soak`, `oracle`. Each prints one
//! line of figures, or panics with the seed and what differs. `--count N`: kills, points of each system call, cuts,
//! shims on a full disk, hooks of the day of an outage, minutes of soak, seeds of the oracle. `--seed N`. `--only
//! NAME`: one fault, or one system call. `--previous FILE`: the hookspan that a soak begins with, or the one that
//! failing calls are tried on. `--rate N`: hooks per second of a soak.

#![expect(clippy::unwrap_used, reason = "a campaign that cannot run ends")]
#![expect(clippy::print_stdout, reason = "the figures are the output")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use e2e_support::campaign::{disk, faults, flip, inject, kill, outage, power, soak};
use e2e_support::oracle::run as oracle;
use e2e_support::world::World;

/// What was asked for.
struct Asked {
    campaign: String,
    count: Option<u64>,
    seed: u64,
    only: Option<String>,
    previous: Option<PathBuf>,
    rate: u64,
}

fn main() -> ExitCode {
    let asked = match Asked::read(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(problem) => {
            eprintln!("{problem}");
            eprintln!(
                "campaign kill|inject|power-cut|disk-full|faults|flip|outage|soak|oracle [--count N] [--seed N] [--only FAULT] \
                 [--previous FILE] [--rate N]"
            );
            return ExitCode::from(2);
        }
    };
    World::clear_up();
    let started = Instant::now();
    let done = catch_unwind(AssertUnwindSafe(|| run(&asked)));
    let took = started.elapsed();
    match done {
        Ok(true) => {
            println!("{}: passed in {took:.0?}", asked.campaign);
            ExitCode::SUCCESS
        }
        Ok(false) | Err(_) => {
            println!("{}: FAILED after {took:.0?}, seed {}", asked.campaign, asked.seed);
            ExitCode::FAILURE
        }
    }
}

/// Runs the campaign. Returns false if something in it failed.
fn run(asked: &Asked) -> bool {
    let report = match asked.campaign.as_str() {
        "kill" => {
            let kills = asked.count.unwrap_or(1_000);
            let plan =
                kill::Plan { kills, at_once: 200, shims: 60, late_one_in: 50, seed: asked.seed };
            say(kill::exactly((kills / 20).clamp(3, 40), asked.seed));
            say(Ok(kill::a_trusting_reader_loses()));
            Ok(kill::run(plan))
        }
        "inject" => {
            let points = asked.count.unwrap_or(14);
            return inject::run(
                asked.only.as_deref(),
                points,
                asked.previous.as_deref(),
                asked.seed,
            );
        }
        "power-cut" => power::run(asked.count.unwrap_or(200), asked.seed),
        "disk-full" => disk::run(asked.count.unwrap_or(2_000), asked.seed),
        "faults" => return faults::run(asked.only.as_deref(), asked.seed),
        "outage" => outage::run(asked.count.unwrap_or(20_000)),
        "flip" => Ok(flip::run(1)),
        "soak" => Ok(soak::run(&soak::Plan {
            time: Duration::from_secs(60 * asked.count.unwrap_or(30)),
            rate: asked.rate,
            previous: asked.previous.clone(),
            seed: asked.seed,
        })),
        "oracle" => {
            let seeds = asked.count.unwrap_or(1_000);
            let plan = oracle::Plan { first: asked.seed, seeds, chunk: 40 };
            let found = oracle::run(plan, |done, differences| {
                eprintln!("{done} of {seeds} seeds, {differences} differences");
            });
            found.iter().for_each(|line| println!("{line}"));
            println!("{seeds} seeds from {}: {} differences", asked.seed, found.len());
            return found.is_empty();
        }
        other => Err(format!("there is no campaign {other}")),
    };
    say(report);
    true
}

fn say(report: Result<String, String>) {
    match report {
        Ok(report) => println!("{report}"),
        Err(reason) => println!("SKIPPED: {reason}"),
    }
}

impl Asked {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let campaign = words.next().ok_or("which campaign?")?;
        let mut asked =
            Self { campaign, count: None, seed: now, only: None, previous: None, rate: 20 };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            let number = || value.parse().map_err(|_| format!("{word}: {value} is no number"));
            match word.as_str() {
                "--count" | "--seeds" => asked.count = Some(number()?),
                "--seed" => asked.seed = number()?,
                "--rate" => asked.rate = number()?,
                "--only" => asked.only = Some(value),
                "--previous" => asked.previous = Some(value.into()),
                _ => return Err(format!("unknown option {word}")),
            }
        }
        Ok(asked)
    }
}
