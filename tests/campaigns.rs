//! Small versions of the campaigns in RELIABILITY.md. Parts that this machine does not permit are skipped with the
//! reason.

use std::time::Duration;

use e2e_support::campaign::{self, disk, faults, flip, inject, kill, outage, power, soak};
use e2e_support::random::Random;
use e2e_support::skip;

#[test]
fn twenty_kills_of_collector_and_shims_lose_nothing_and_a_socket_does() {
    let seed = seed("kill");
    let plan = kill::Plan { kills: 20, at_once: 50, shims: 30, late_one_in: 0, seed };
    eprintln!("{}", kill::run(plan));
}

#[test]
fn a_kill_in_any_of_its_system_calls_loses_nothing() {
    report("kills in system calls", kill::exactly(2, seed("kills in system calls")));
}

#[test]
fn a_system_call_that_fails_again_and_again_loses_nothing() {
    for call in ["openat", "link", "pread64"] {
        for when in [inject::When::Often, inject::When::Ten(12)] {
            let tried = inject::one(call, when, None, seed(call));
            report(call, tried.map(|tried| format!("{when:?}: {tried:?}")));
        }
    }
}

/// In earlier builds the first of these faults caused the whole database to be moved aside as damaged.
#[test]
fn a_call_that_fails_on_the_database_loses_nothing_and_moves_nothing_aside() {
    use inject::When::{Often, Ten};
    for (call, when) in
        [("db-pread64", Ten(30)), ("db-pread64", Often), ("db-stat", Ten(12)), ("db-sync", Ten(2))]
    {
        let tried = inject::one(call, when, None, seed(call));
        report(call, tried.map(|tried| format!("{when:?}: {tried:?}")));
    }
}

#[test]
fn a_reader_that_trusts_lengths_loses_neighbours_and_the_collector_does_not() {
    eprintln!("{}", kill::a_trusting_reader_loses());
}

#[test]
fn three_power_cuts_lose_nothing_that_was_synced() {
    report("power cuts", power::run(3, seed("power cuts")));
}

#[test]
fn a_full_disk_loses_nothing_uncounted() {
    report("full disks", disk::run(100, seed("full disks")));
}

#[test]
fn a_little_ordinary_use_loses_nothing_and_a_rebuild_changes_nothing() {
    let time = Duration::from_secs(6);
    let plan = soak::Plan { time, rate: 20, previous: None, seed: seed("soak") };
    eprintln!("{}", soak::run(&plan));
}

#[test]
fn destinations_that_were_away_for_a_day_get_what_they_may_keep() {
    report("a day's outage", outage::run(2_000));
}

#[test]
fn every_byte_of_a_segment_flipped_or_cut_costs_its_record_alone() {
    // Every byte in every run, as in the campaign itself.
    eprintln!("{}", flip::run(1));
}

#[test]
fn every_quick_fault_is_survived() {
    let mut failed = Vec::new();
    for (name, fault) in faults::QUICK {
        match std::panic::catch_unwind(|| fault(seed(name))) {
            Ok(done) => report(name, done),
            Err(_) => failed.push(*name),
        }
    }
    assert_eq!(failed, [""; 0]);
}

fn report(what: &str, done: Result<campaign::Report, String>) {
    match done {
        Ok(report) => eprintln!("{what}: {report}"),
        // In CI, a missing tool is a failure, because the gate installs all tools. Privileges cannot be installed, so a
        // test without them is always skipped.
        Err(reason) if reason.ends_with("is not installed") => skip::skip(what, &reason),
        Err(reason) => skip::announce(what, &reason),
    }
}

fn seed(what: &str) -> u64 {
    Random::printed(what).bits()
}
