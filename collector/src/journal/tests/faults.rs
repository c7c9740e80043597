//! Makes every file operation of the follower fail, each time it occurs: once, for a while, or carried out and reported
//! as failed.
//!
//! All runs follow the same story. Writers append to the journal, to a spill file, and in two parts around a roll. The
//! journal rolls, stops at its bound, and is opened again. Segments are deleted. A ledger outside records what was
//! accepted. The story is played with the first operation failing, then with the second, and so on, until a run has
//! fewer operations.

use std::collections::BTreeSet;
use std::collections::btree_map::Entry;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use hookspan_shim::frame::{self, HEADER_BYTES, LAST};

use super::*;
use crate::dirs::Places;
use crate::disk::Operation;
use crate::disk::faults::{Fault, How, Plan};

/// EIO, EACCES, EMFILE, ENOSPC, EINTR, ESTALE, EROFS, ENFILE.
const ERRNOS: [i32; 8] = [5, 13, 24, 28, 4, 116, 30, 23];
/// Maximum number of polls. It is more than any run needs to store the rest and tidy up.
const PATIENCE: usize = 400;
const STEPS: u64 = 14;

/// How the follower's caller reacts to a failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    /// Commits each batch.
    Commits,
    /// Dies at the failure, before committing, and starts again from the stored position.
    Dies,
    /// Drops the records that were read together with the failure. This is the negative control: it behaves like a poll
    /// that returns an error.
    DropsRecords,
}

/// The result of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    lost: Vec<u64>,
    doubled: Vec<u64>,
    left_over: Vec<String>,
    damage: String,
}

/// Stands for the database. It drops a record if it knows the record's id.
#[derive(Debug, Default)]
struct Store {
    bodies: BTreeMap<u64, Vec<u8>>,
    position: Position,
    again: Vec<u64>,
}

impl Store {
    fn commit(&mut self, batch: Batch) {
        for record in batch.records {
            let id = record.wall_ns - 1_000;
            match self.bodies.entry(id) {
                Entry::Vacant(place) => drop(place.insert(record.body)),
                Entry::Occupied(_) => self.again.push(id),
            }
        }
        if let Some(position) = batch.position {
            self.position = position.to_string().parse().unwrap();
        }
    }
}

/// A follower, its database, and everything that shims wrote.
struct Run {
    world: World,
    dir: StateDir,
    runtime: PathBuf,
    follower: Option<Follower>,
    store: Store,
    ledger: BTreeMap<u64, Vec<u8>>,
    next: u64,
    client: Client,
    plan: Plan,
    deaths: u64,
    _guard: crate::disk::faults::Guard,
}

impl Run {
    fn new(fault: Fault, client: Client) -> Self {
        let limits = Limits {
            segment_bytes: 1_500,
            bound_bytes: 6_000,
            name_age: Duration::ZERO,
            chores: Duration::ZERO,
            ..Limits::default()
        };
        // The files are in memory, because there are thousands of runs.
        let memory = Path::new("/dev/shm");
        let temp = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let world = World::below(temp.unwrap(), limits);
        let runtime = world.dir.root().parent().unwrap().join("run");
        fs::create_dir_all(runtime.join("hookspan")).unwrap();
        let places = Places { xdg_runtime_dir: Some(runtime.clone()), ..Places::default() };
        let dir = StateDir::resolve(Some(world.dir.root()), &places).unwrap();
        // The directory was created by an installation, and has no journal yet.
        let (plan, guard) = Plan::begin(fault);
        Self {
            world,
            dir,
            runtime: runtime.join("hookspan"),
            follower: None,
            store: Store::default(),
            ledger: BTreeMap::new(),
            next: 1,
            client,
            plan,
            deaths: 0,
            _guard: guard,
        }
    }

    /// Plays the whole story. Returns the outcome and the operations that occurred.
    fn play(mut self) -> (Outcome, Vec<Operation>) {
        let mut halves = Vec::new();
        for step in 0..STEPS {
            self.write(1);
            self.write(2 + step % 2);
            match step {
                2 | 7 => halves.push(self.begin()),
                4 | 9 => halves.drain(..).for_each(|half| self.finish(half)),
                3 | 5 | 11 => self.spill(),
                _ => {}
            }
            // In steps 6 to 9 the caller confirms nothing as stored durably, so the journal reaches its bound.
            self.poll(!(6..10).contains(&step));
            self.poll(!(6..10).contains(&step));
        }
        halves.drain(..).for_each(|half| self.finish(half));
        let at_rest = (0..PATIENCE).any(|_| {
            self.poll(true);
            self.poll(true);
            self.is_at_rest()
        });
        (self.outcome(at_rest), self.plan.failed())
    }

    /// Appends records like shims. If there is no journal, a shim counts a loss, and the ledger gets no entry.
    fn write(&mut self, records: u64) {
        for _ in 0..records {
            let Some(mut journal) = self.journal() else { return };
            let (id, body) = self.record(200);
            write::append(&mut journal, &record(id, &body)).unwrap();
            self.ledger.insert(id, body);
        }
    }

    /// Writes the first half of a record. Its writer continues after other writers and after a roll.
    fn begin(&mut self) -> (Option<fs::File>, u64, Vec<u8>) {
        let (id, body) = self.record(400);
        let [first, _] = halves(id, &body);
        let journal = self.journal().map(|mut journal| {
            journal.write_all(&first).unwrap();
            journal
        });
        (journal, id, body)
    }

    /// Writes the other half: into the same file, or nowhere if there was none.
    fn finish(&mut self, (journal, id, body): (Option<fs::File>, u64, Vec<u8>)) {
        let Some(mut journal) = journal else { return };
        let [_, rest] = halves(id, &body);
        // Every second writer finds the journal full, and writes the rest to the spill file.
        if id % 2 == 0 {
            journal.write_all(&rest).unwrap();
        } else {
            self.spill_file().write_all(&rest).unwrap();
        }
        self.ledger.insert(id, body);
    }

    fn spill(&mut self) {
        let (id, body) = self.record(300);
        let mut spill = self.spill_file();
        write::append(&mut spill, &record(id, &body)).unwrap();
        self.ledger.insert(id, body);
    }

    fn spill_file(&self) -> fs::File {
        use std::os::unix::fs::MetadataExt as _;
        let root = fs::metadata(self.dir.root()).unwrap();
        let name = format!("spill-{:x}-{:x}", root.dev(), root.ino());
        write::open(&self.runtime.join(name)).unwrap()
    }

    /// The journal as a shim opens it.
    fn journal(&self) -> Option<fs::File> {
        let mut options = fs::OpenOptions::new();
        let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        options.append(true).create(true).mode(0o600).custom_flags(flags);
        options.open(self.dir.journal()).ok()
    }

    fn record(&mut self, bytes: usize) -> (u64, Vec<u8>) {
        let id = self.next;
        self.next += 1;
        let mut body = format!("{{\"n\":{id},\"text\":\"").into_bytes();
        body.resize(bytes, b'a' + (id % 26) as u8);
        (id, body)
    }

    /// Opens the follower if necessary, reads a batch, commits it, syncs, and confirms what is stored.
    fn poll(&mut self, forget: bool) {
        let before = self.plan.failed().len();
        let Some(mut follower) = self.follower.take().or_else(|| self.open()) else { return };
        let mut batch = follower.poll(4);
        let failed = self.plan.failed().len() > before;
        if failed && self.client == Client::Dies {
            self.deaths += 1;
            return;
        }
        if failed && self.client == Client::DropsRecords {
            batch.records.clear();
        }
        self.store.commit(batch);
        follower.sync_by_hand();
        if forget {
            follower.may_forget(&self.store.position);
        }
        self.follower = Some(follower);
    }

    /// If opening fails, it is tried again, as a service manager would.
    fn open(&mut self) -> Option<Follower> {
        Follower::by_hand(&self.dir, &self.store.position, self.world.limits).ok()
    }

    /// Whether everything that was handed out is stored, no task fails, and no file is left except the journal and its
    /// link.
    fn is_at_rest(&self) -> bool {
        let Some(follower) = &self.follower else { return false };
        let named = self.names() == ["journal", "journal.stop"];
        let read = follower.usage().unread_bytes == 0;
        named && read && follower.held_count() == 1 && follower.problems().is_empty()
    }

    fn names(&self) -> Vec<String> {
        let list = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
            entries.map(|name| name.into_string().unwrap()).collect()
        };
        let mut names = list(self.dir.root());
        names.retain(|name| name.starts_with("seg-") || name.starts_with("journal"));
        names.extend(list(&self.runtime));
        names.sort();
        names
    }

    fn outcome(&self, at_rest: bool) -> Outcome {
        let wrong = |(id, body): &(&u64, &Vec<u8>)| self.store.bodies.get(id) != Some(body);
        let lost = self.ledger.iter().filter(wrong).map(|(id, _)| *id).collect();
        let again: BTreeSet<u64> = self.store.again.iter().copied().collect();
        // A follower that starts again from a stored position may read some records twice.
        let doubled = if self.deaths > 0 { Vec::new() } else { again.into_iter().collect() };
        let mut left_over = if at_rest { Vec::new() } else { self.names() };
        let mut damage = String::new();
        if let Some(follower) = &self.follower {
            left_over.extend(follower.problems().iter().map(ToString::to_string));
            let Counters { torn, truncated, headless, evicted, conflicting, .. } =
                follower.counters();
            let all = [torn, truncated, headless, evicted, conflicting];
            if self.client == Client::Commits && all != [0; 5] {
                damage = format!("torn, truncated, headless, evicted, conflicting: {all:?}");
            }
        }
        Outcome { lost, doubled, left_over, damage }
    }
}

fn record(id: u64, body: &[u8]) -> write::NewRecord<'_> {
    write::NewRecord { wall_ns: 1_000 + id, id, argument: "stop", body, ..new() }
}

/// A record in two frames.
fn halves(id: u64, body: &[u8]) -> [Vec<u8>; 2] {
    let mut metadata = vec![0; record::METADATA_MAX];
    let stamp = record::Stamp { wall_ns: 1_000 + id, ..record::Stamp::default() };
    let len = record::encode(&mut metadata, &stamp, &[]).unwrap();
    let (front, back) = body.split_at(body.len() / 2);
    let seal = |content: &[u8], seq, meta_bytes, flags| {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.extend_from_slice(content);
        frame::seal(&mut bytes, id, seq, meta_bytes, flags);
        bytes
    };
    let first = [&metadata[..len.into()], front].concat();
    [seal(&first, 0, len, 0), seal(back, 1, 0, LAST)]
}

/// Plays the story once for each operation in it. Returns the number of runs, and the number of records that each run
/// lost.
#[track_caller]
fn at_every_point(client: Client, count: u64, how: How) -> (u64, usize) {
    let (mut lost, mut kinds) = (0, BTreeSet::new());
    for first in 1.. {
        let errno = ERRNOS[(first + count) as usize % ERRNOS.len()];
        let fault = Fault { first, count, errno, how };
        let (outcome, failed) = Run::new(fault, client).play();
        if failed.is_empty() {
            assert!(first > 200, "the story is too short: {first} operations");
            let all = [Operation::Open, Operation::Create, Operation::Look, Operation::List];
            let all = all.into_iter().chain([Operation::Read, Operation::Sync, Operation::Link]);
            let all = all.chain([Operation::Rename, Operation::Remove, Operation::Reserve]);
            assert_eq!(kinds, all.collect(), "kinds of operations that failed");
            eprintln!("{client:?}, {count} in a row, {how:?}: {} runs", first - 1);
            return (first, lost);
        }
        kinds.extend(failed.iter().copied());
        if client == Client::DropsRecords {
            lost += outcome.lost.len();
        } else {
            assert_eq!(outcome, Outcome::default(), "{fault:?} {client:?}: {failed:?}");
        }
    }
    unreachable!()
}

#[test]
fn no_operation_that_fails_once_loses_a_record() {
    at_every_point(Client::Commits, 1, How::Before);
}

#[test]
fn no_operation_that_fails_though_it_was_done_loses_a_record() {
    at_every_point(Client::Commits, 1, How::Behind);
}

#[test]
fn no_operation_that_fails_ten_times_in_a_row_loses_a_record() {
    at_every_point(Client::Commits, 10, How::Before);
}

#[test]
fn no_operation_that_fails_for_a_long_while_loses_a_record() {
    at_every_point(Client::Commits, 120, How::Before);
}

#[test]
fn a_collector_that_dies_at_any_failure_loses_no_record() {
    at_every_point(Client::Dies, 1, How::Before);
    at_every_point(Client::Dies, 3, How::Behind);
}

/// The follower's former behaviour: a poll that failed dropped what it had read.
#[test]
fn a_reader_that_drops_its_batch_at_a_failure_loses_records() {
    let (runs, lost) = at_every_point(Client::DropsRecords, 1, How::Before);
    assert!(lost > 20, "the control lost {lost} records in {runs} runs: these tests prove nothing");
}
