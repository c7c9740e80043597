//! Tests the way from a real journal into a real database.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{bounded, never};
use hookspan_core::Timestamp;
use rusqlite::Connection;
use serde_json::json;

use super::thread::GATHER;
use super::*;
use crate::clock;
use crate::dirs::{Lock, StateDir};
use crate::engine::{self, Batch, Engine, Input, Signals};
use crate::import::{Source, Staged, Zone, judge, stage};
use crate::journal::{Limits, write};
use crate::store::write::{ImportCounts, Store};

struct World {
    _temp: tempfile::TempDir,
    dir: StateDir,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("s"));
        dir.prepare().unwrap();
        Self { _temp: temp, dir }
    }

    fn journal(&self) -> File {
        write::open(&self.dir.journal()).unwrap()
    }

    fn hooks(&self) -> i64 {
        let db = Connection::open(self.dir.database()).unwrap();
        db.query_row("SELECT count(*) FROM raw_hook", [], |row| row.get(0)).unwrap()
    }

    fn local(&self) -> Local {
        let lock = Lock::acquire(&self.dir).unwrap();
        Local::open(&self.dir, lock, hookspan_core::Config::default(), |_, _| {}).unwrap()
    }

    fn stage(&self, unique: u64, text: &str) -> Staged {
        let input = judge(Source::open(text.as_bytes()).unwrap(), true).unwrap();
        let mut zone = Zone::new(jiff::tz::TimeZone::UTC, "UTC".to_owned());
        stage(&self.dir, clock::now(), unique, input, &mut zone, |_| {}).unwrap().staged
    }

    fn import(&self, unique: u64, text: &str) -> ImportCounts {
        let staged = self.stage(unique, text);
        let mut local = self.local();
        let counts = local.import(&staged, |_, _| {}).unwrap();
        local.settle().unwrap();
        assert!(!staged.path.exists());
        counts
    }
}

fn append(journal: &mut File, number: u64) {
    let body = json!({"hook_event_name": "stop", "conversation_id": "c", "n": number}).to_string();
    let record = write::NewRecord {
        wall_ns: clock::now().0.cast_unsigned(),
        id: number,
        argument: "stop",
        body: body.as_bytes(),
        ..write::NewRecord::default()
    };
    write::append(journal, &record).unwrap();
}

#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::yield_now();
    }
}

/// A bare payload without a time. It gets a time when it is staged.
const UNTIMED: &str = "{\"hook_event_name\": \"stop\", \"conversation_id\": \"c\"}";

fn lines(n: usize) -> String {
    let line = |i: usize| {
        json!({"ts": 1_780_000_000_000_000_000_i64 + i as i64, "event": {
            "hook_event_name": "afterAgentThought", "conversation_id": "c", "generation_id": "g",
            "text": format!("thought {}", i / 2), "duration_ms": 5,
        }})
    };
    (0..n).map(|i| format!("{}\n", line(i))).collect::<String>() + &format!("no JSON\n{UNTIMED}\n")
}

#[test]
fn hooks_that_were_read_and_not_committed_are_read_again_and_committed_once() {
    let world = World::new();
    let mut journal = world.journal();
    (0..5).for_each(|number| append(&mut journal, number));
    let read = || {
        let mut intake = Intake::open(&world.dir, None, Limits::default()).unwrap();
        intake.read().0
    };
    let (lost, again) = (read(), read());
    let ids = |batch: &Batch| batch.arrivals.iter().map(|one| one.id).collect::<Vec<_>>();
    assert!(ids(&lost).len() == 5 && lost.horizon.is_end());
    assert_eq!(ids(&lost), ids(&again));
    let store = Store::open(&world.dir.database()).unwrap();
    let config = hookspan_core::Config::default();
    let mut engine = Engine::new(store, config, Signals::default(), never());
    assert_eq!(engine.take(lost).unwrap().counts.new, 5);
    assert_eq!(engine.take(again).unwrap().counts.duplicate, 5);
    assert_eq!(world.hooks(), 5);
}

#[test]
fn a_running_collector_takes_in_hooks_and_imports_and_goes_on_after_a_restart() {
    let world = World::new();
    let mut journal = world.journal();
    for round in 1..=2 {
        let mut store = Store::open(&world.dir.database()).unwrap();
        let position = store.state("journal").unwrap();
        store.begin("e").unwrap();
        let intake = Intake::open(&world.dir, position.as_deref(), Limits::default()).unwrap();
        let (inputs, batches) = bounded(2);
        let config = hookspan_core::Config::default();
        let engine = Engine::new(store, config, Signals::default(), never());
        let engine = engine::spawn(engine, batches, || {}).unwrap();
        let ingest = spawn(&world.dir, intake, inputs, Arc::default(), None).unwrap();
        (0..20).for_each(|number| append(&mut journal, round * 100 + number));
        let staged = world.stage(round, &lines(1_500));
        eventually("the import is taken in", || !staged.path.exists());
        // Of the second import, only the line without a time could be new. It is recognised, too.
        eventually("hooks are committed", || world.hooks() == 1_502 + 20 * round.cast_signed());
        ingest.stop();
        engine.join().unwrap();
    }
    let db = Connection::open(world.dir.database()).unwrap();
    let runs =
        "SELECT group_concat(new || '/' || duplicate || '/' || malformed || '/' || done, ' ')
                FROM (SELECT * FROM import_run ORDER BY id)";
    let runs: String = db.query_row(runs, [], |row| row.get(0)).unwrap();
    assert_eq!(runs, "1501/0/1/1 0/1502/0/1");
}

#[cfg(unix)]
#[test]
fn an_import_that_cannot_be_read_at_first_is_stored_later_and_hooks_do_not_wait_for_it() {
    let world = World::new();
    let mut journal = world.journal();
    // A link is refused in the same way as a file for which no descriptor is left.
    let staged = world.stage(1, &lines(10));
    let aside = world.dir.root().join("aside");
    std::fs::rename(&staged.path, &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &staged.path).unwrap();
    let store = Store::open(&world.dir.database()).unwrap();
    let intake = Intake::open(&world.dir, None, Limits::default()).unwrap();
    let (inputs, batches) = bounded(2);
    let engine = Engine::new(store, hookspan_core::Config::default(), Signals::default(), never());
    let engine = engine::spawn(engine, batches, || {}).unwrap();
    let ingest = spawn(&world.dir, intake, inputs, Arc::default(), None).unwrap();
    (0..5).for_each(|number| append(&mut journal, number));
    eventually("hooks are stored beside it", || world.hooks() == 5);
    assert!(staged.path.is_symlink(), "it is kept");
    std::fs::rename(&aside, &staged.path).unwrap();
    eventually("the import is stored", || world.hooks() == 5 + 12 && !staged.path.exists());
    ingest.stop();
    engine.join().unwrap();
}

#[test]
fn hooks_that_follow_each_other_are_committed_together() {
    let world = World::new();
    let mut journal = world.journal();
    let (inputs, batches) = bounded(1_024);
    let intake = Intake::open(&world.dir, None, Limits::default()).unwrap();
    let started = Instant::now();
    let ingest = spawn(&world.dir, intake, inputs, Arc::default(), None).unwrap();
    let mut sizes = Vec::new();
    let mut written = 0;
    while sizes.iter().sum::<usize>() < 200 {
        if written < 200 {
            append(&mut journal, written);
            written += 1;
            std::thread::sleep(Duration::from_millis(1));
        }
        for input in batches.try_iter() {
            let Input::Batch(batch, _) = input else { continue };
            sizes.extend(Some(batch.arrivals.len()).filter(|hooks| *hooks > 0));
        }
        assert!(started.elapsed() < Duration::from_secs(20), "not read: {sizes:?}");
    }
    let most = started.elapsed().as_millis() / GATHER.as_millis() + 1;
    assert!(sizes.len() as u128 <= most, "more than one batch in 10 ms: {sizes:?}");
    ingest.stop();
}

#[test]
fn an_import_without_a_collector_gives_nothing_new_the_second_time() {
    let world = World::new();
    let mut journal = world.journal();
    append(&mut journal, 1);
    let first = world.import(1, &lines(1_200));
    assert_eq!(first, ImportCounts { new: 1_201, duplicate: 0, malformed: 1 });
    let again = world.import(2, &lines(1_200));
    assert_eq!(again, ImportCounts { new: 0, duplicate: 1_202, malformed: 0 });
    // The hooks that waited in the journal were stored first.
    let db = Connection::open(world.dir.database()).unwrap();
    let sources = "SELECT source FROM raw_hook ORDER BY seq LIMIT 2";
    let mut statement = db.prepare(sources).unwrap();
    let found: Vec<i64> =
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(found, [0, 1]);
}

#[test]
fn a_rebuild_of_an_import_gives_equal_spans() {
    let world = World::new();
    // A stop without a time would get the current time. Whether it settles would then depend on how long the import
    // takes.
    let timed = json!({"ts": 1_780_000_010_000_000_000_i64, "event": {"hook_event_name": "stop", "conversation_id": "c"}});
    let text = lines(300).replace(UNTIMED, &timed.to_string());
    assert!(!text.contains(UNTIMED));
    world.import(1, &text);
    let spans = || {
        let db = Connection::open(world.dir.database()).unwrap();
        let sql = "SELECT hex(id), detail, start_ns, end_ns, seq FROM span LEFT JOIN settled ON span = row ORDER BY id";
        let mut statement = db.prepare(sql).unwrap();
        let row = |row: &rusqlite::Row<'_>| {
            let times: (i64, Option<i64>, Option<i64>) = (row.get(2)?, row.get(3)?, row.get(4)?);
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, times))
        };
        statement.query_map([], row).unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    let before = spans();
    assert!(before.len() > 10, "{}", before.len());
    let mut steps = Vec::new();
    world.local().rebuild(|done, of| steps.push((done, of))).unwrap();
    assert_eq!(steps.last(), Some(&(302, 302)));
    assert_eq!(spans(), before);
}

#[test]
fn what_an_interrupted_import_left_is_taken_in_by_the_next_one() {
    let world = World::new();
    let staged = world.stage(1, &lines(10));
    let staged_again = Staged { at: Timestamp(staged.at.0), ..staged.clone() };
    let mut local = world.local();
    for one in crate::import::pending(&world.dir).unwrap() {
        assert_eq!(one, staged_again);
        assert_eq!(local.import(&one, |_, _| {}).unwrap().new, 11);
    }
    assert_eq!(crate::import::pending(&world.dir).unwrap(), []);
}
