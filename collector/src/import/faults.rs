//! Makes every file operation of an import fail, each time it occurs: reading the source, writing the copy, handing it
//! over, reading it again, each commit, and removing it.
//!
//! All runs follow the same story. A person imports a file and repeats the command until it succeeds, and the collector
//! imports what waits. The story is played with the first operation failing, then with the second, and so on, until a
//! run has fewer operations.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::PathBuf;

use hookspan_core::Timestamp;

use super::source::Damage;
use super::{Plan as Blocks, Source, Staged, Zone, judge, pending, stage, sweep, take_in};
use crate::dirs::StateDir;
use crate::disk::faults::{Fault, Guard, How, Plan};
use crate::disk::{self, Operation};
use crate::engine::Batch;

/// EIO, EACCES, EMFILE, ENOSPC, ESTALE, EROFS, ENFILE.
const ERRNOS: [i32; 7] = [5, 13, 24, 28, 116, 30, 23];
/// More attempts than any run needs.
const PATIENCE: u64 = 60;
/// More than one batch.
const LINES: usize = 1_050;

/// The result of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    lost: usize,
    /// Number of lines that were stored twice, with two ids.
    doubled: usize,
    left_over: Vec<String>,
}

/// Stands for the database. It drops hooks whose id it knows, and knows how many lines of an import it has.
#[derive(Debug, Default)]
struct Store {
    ids: BTreeSet<[u8; 16]>,
    done: BTreeMap<String, u64>,
}

struct Run {
    dir: StateDir,
    source: PathBuf,
    store: Store,
    plan: Plan,
    _guard: Guard,
    _temp: tempfile::TempDir,
}

/// Some lines have a time; others have none and are identified by their text alone. One line is longer than any buffer.
fn line(number: usize) -> String {
    let text = "x".repeat(if number == 700 { 600_000 } else { 20 });
    let body = format!("{{\"n\":{number},\"text\":\"{text}\"}}");
    if number.is_multiple_of(3) {
        body
    } else {
        format!("{{\"ts\": {}, \"event\": {body}}}", 1_000 + number)
    }
}

impl Run {
    fn new(fault: Fault, packed: bool) -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let temp = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let temp = temp.unwrap();
        let dir = StateDir::at(temp.path().join("s"));
        dir.prepare().unwrap();
        let source = temp.path().join("hooks.jsonl");
        let text: String = (0..LINES).map(|number| line(number) + "\n").collect();
        let bytes = if packed {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
            out.write_all(text.as_bytes()).unwrap();
            out.finish().unwrap()
        } else {
            text.into_bytes()
        };
        std::fs::write(&source, bytes).unwrap();
        let (plan, guard) = Plan::begin(fault);
        Self { dir, source, store: Store::default(), plan, _guard: guard, _temp: temp }
    }

    fn play(mut self) -> (Outcome, Vec<Operation>) {
        // The time of each attempt is the same. A repeated command differs only by its number.
        let done = (0..PATIENCE).any(|attempt| self.stage(attempt).is_ok());
        assert!(done, "the command never succeeds");
        for _ in 0..PATIENCE {
            // A file that cannot be removed now is removed later.
            let _swept = sweep(&self.dir);
            let _collected = self.collect();
            if self.left_over().is_empty() {
                break;
            }
        }
        (self.outcome(), self.plan.failed())
    }

    fn stage(&self, unique: u64) -> io::Result<()> {
        let file = disk::Reading(disk::open_private(&self.source)?);
        let input = judge(Source::open(file)?, false).map_err(io::Error::other)?;
        let mut zone = Zone::new(jiff::tz::TimeZone::UTC, "UTC".to_owned());
        let report = stage(&self.dir, Timestamp(9_000), unique, input, &mut zone, |_| {})?;
        // A file that cannot be read does not count as a damaged archive.
        assert_eq!(report.damage, None::<Damage>);
        Ok(())
    }

    /// Imports what waits, as the collector does between two batches of the journal.
    fn collect(&mut self) -> io::Result<()> {
        for staged in pending(&self.dir)? {
            self.take(&staged)?;
            disk::remove(&staged.path)?;
        }
        Ok(())
    }

    fn take(&mut self, staged: &Staged) -> io::Result<()> {
        let skip = self.store.done.get(&staged.run).copied().unwrap_or(0);
        let blocks = Blocks::of(staged)?;
        let (store, dir) = (&mut self.store, &self.dir);
        take_in(staged, &blocks, skip, |batch| commit(store, dir, batch))
    }

    fn outcome(&self) -> Outcome {
        let lost = LINES.saturating_sub(self.store.ids.len());
        let doubled = self.store.ids.len().saturating_sub(LINES);
        Outcome { lost, doubled, left_over: self.left_over() }
    }

    fn left_over(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.imports()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// A commit fails in the same way as a file operation.
fn commit(store: &mut Store, dir: &StateDir, batch: Batch) -> io::Result<()> {
    disk::sync_names(dir.root())?;
    for arrival in batch.arrivals {
        store.ids.insert(arrival.id);
    }
    if let Some(step) = batch.import {
        store.done.insert(step.run, step.lines);
    }
    Ok(())
}

/// Plays the story once for each operation in it.
#[track_caller]
fn at_every_point(count: u64, how: How, packed: bool) {
    let mut kinds = BTreeSet::new();
    for first in 1.. {
        let errno = ERRNOS[(first + count) as usize % ERRNOS.len()];
        let fault = Fault { first, count, errno, how };
        let (outcome, failed) = Run::new(fault, packed).play();
        if failed.is_empty() {
            let all = [Operation::Open, Operation::Create, Operation::List, Operation::Read];
            let all = all.into_iter().chain([Operation::Write, Operation::Sync, Operation::Rename]);
            assert_eq!(kinds, all.chain([Operation::Remove]).collect(), "kinds that failed");
            assert!(first > 20, "the story is too short: {first} operations");
            eprintln!("{count} in a row, {how:?}, packed {packed}: {} runs", first - 1);
            return;
        }
        kinds.extend(failed.iter().copied());
        assert_eq!(outcome, Outcome::default(), "{fault:?}: {failed:?}");
    }
}

#[test]
fn no_operation_that_fails_once_loses_or_doubles_a_line() {
    at_every_point(1, How::Before, false);
    at_every_point(1, How::Before, true);
}

#[test]
fn no_operation_that_fails_though_it_was_done_loses_or_doubles_a_line() {
    at_every_point(1, How::Behind, false);
}

#[test]
fn no_operation_that_fails_for_a_while_loses_or_doubles_a_line() {
    at_every_point(10, How::Before, false);
}
