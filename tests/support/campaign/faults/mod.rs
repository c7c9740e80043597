//! Faults, each with what must hold. They are the rows of the table in RELIABILITY.md.

mod damage;
mod files;
mod ingest;
mod limits;
mod store;
mod system;

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Report;

/// A fault: its name and its test. `Err` says why this machine cannot run it.
pub type Fault = (&'static str, fn(u64) -> Result<Report, String>);

/// Faults that take only seconds. They are tests as well.
pub const QUICK: &[Fault] = &[
    ("eio-journal", system::eio_on_the_journal),
    ("eio-database", system::eio_on_the_database),
    ("read-only", system::read_only),
    ("unwritable", ingest::unwritable),
    ("no-descriptors", ingest::no_descriptors),
    ("no-room-to-roll", ingest::no_room_to_roll),
    ("nofile-64", limits::sixty_four_descriptors),
    ("no-home", limits::no_home),
    ("hung-collector", limits::hung_collector),
    ("clock", system::clock_jumps),
    ("other-uid", files::other_account),
    ("planted", files::planted),
    ("umask", files::umasks),
    ("second-collector", limits::second_collector),
    ("another-program", store::another_program),
    ("lost-log", store::lost_log),
    ("damaged-index", |seed| damage::run(&damage::INDEX, seed)),
    ("damaged-raw-log", |seed| damage::run(&damage::RAW_LOG, seed)),
    ("damaged-bodies", |seed| damage::run(&damage::BODIES, seed)),
    ("damaged-large-body", |seed| damage::run(&damage::LARGE_BODY, seed)),
    ("damaged-in-journal", |seed| damage::run(&damage::IN_JOURNAL, seed)),
    ("damaged-spans", |seed| damage::run(&damage::SPANS, seed)),
    ("damaged-schema", |seed| damage::run(&damage::SCHEMA, seed)),
    ("damaged-header", |seed| damage::run(&damage::HEADER, seed)),
    ("newer-schema", store::newer_schema),
    ("missing-directory", files::missing_directory),
];

/// Those that take longer.
pub const SLOW: &[Fault] = &[
    ("foreign-lock", store::foreign_lock),
    ("bound", limits::journal_at_its_bound),
    ("two-thousand", limits::two_thousand_at_once),
];

/// Runs all faults, or one. Returns false if one failed.
#[must_use]
#[expect(clippy::print_stdout, reason = "the figures are the output")]
pub fn run(only: Option<&str>, seed: u64) -> bool {
    let mut right = true;
    for (name, fault) in QUICK.iter().chain(SLOW) {
        if only.is_some_and(|only| only != *name) {
            continue;
        }
        match catch_unwind(AssertUnwindSafe(|| fault(seed))) {
            Ok(Ok(report)) => println!("{name}: {report}"),
            Ok(Err(reason)) => println!("{name}: SKIPPED: {reason}"),
            Err(_) => {
                println!("{name}: FAILED, seed {seed}");
                right = false;
            }
        }
    }
    right
}
