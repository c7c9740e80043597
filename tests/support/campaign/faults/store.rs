//! What can happen to the database.

use std::fs;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::super::{Report, extend, nothing_is_lost, send};
use super::system::stored;
use crate::collector::{self, Collector};
use crate::wait::{SOON, eventually, pause};
use crate::world::World;

/// Another program holds the database for a minute.
pub(super) fn foreign_lock(seed: u64) -> Result<Report, String> {
    let world = World::new();
    world.shim();
    let collector = Collector::start(&world);
    let mut ledger = send(&world, 20, seed);
    collector.drained(SOON);
    let other = Connection::open(world.state().join("hookspan.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let held = Instant::now();
    let mut worst = Duration::ZERO;
    while held.elapsed() < Duration::from_secs(60) {
        let started = Instant::now();
        extend(&mut ledger, &world, 10, seed);
        worst = worst.max(started.elapsed());
        pause(Duration::from_secs(1));
    }
    let status = world.json(&["status", "--json"]);
    assert!(status["trouble"].as_str().is_some_and(|text| text.contains("lock")), "{status:#}");
    other.execute_batch("ROLLBACK").unwrap();
    let freed = Instant::now();
    collector.drained(SOON);
    let back = freed.elapsed();
    assert_eq!(world.json(&["status", "--json"])["trouble"], serde_json::Value::Null);
    stored(&world, collector, &ledger);
    Ok(format!(
        "a foreign write lock of 60 s: {} hooks, 0 lost, shown by `status`; ten shims took {worst:.0?} at most; all stored \
         {back:.1?} after its end",
        ledger.accepted()
    ))
}

/// The write-ahead log is gone: the journal fills it in again.
pub(super) fn lost_log(seed: u64) -> Result<Report, String> {
    let world = World::new();
    world.write_config("[journal]\nsegment_bytes = 1048576\n");
    world.shim();
    let collector = Collector::start(&world);
    let ledger = send(&world, 300, seed);
    collector.drained(SOON);
    collector.kill();
    let log = world.state().join("hookspan.db-wal");
    let bytes = fs::metadata(&log).unwrap().len();
    fs::remove_file(&log).unwrap();
    stored(&world, Collector::start(&world), &ledger);
    Ok(format!(
        "a write-ahead log of {bytes} bytes deleted after kill -9: {} hooks, 0 lost",
        ledger.accepted()
    ))
}

/// Pages in the middle of the database are overwritten: it is moved aside, what can be read of it is taken over, the rest is
/// counted, and the collector is up within two seconds.
pub(super) fn damaged(seed: u64) -> Result<Report, String> {
    let world = World::new();
    world.shim();
    let collector = Collector::start(&world);
    let mut ledger = send(&world, 400, seed);
    collector.drained(SOON);
    drop(collector);
    let path = world.state().join("hookspan.db");
    // The index that every hook is looked up in: damage that nothing reads is noticed by nobody, and harms nobody yet.
    let db = Connection::open(&path).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_raw_hook_1'";
    let index: usize = db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() as usize;
    drop(db);
    let mut bytes = fs::read(&path).unwrap();
    let pages = bytes.len() / 4_096;
    bytes[(index - 1) * 4_096..][..2_048].fill(0xa5);
    // Every ninth page from the second on, so that tables and indexes are hit alike; the header stays readable.
    for page in (1..pages).step_by(9) {
        bytes[page * 4_096..][..2_048].fill(0xa5);
    }
    fs::write(&path, bytes).unwrap();
    let started = Instant::now();
    let collector = Collector::start(&world);
    let ready = started.elapsed();
    assert!(ready < Duration::from_secs(2), "start took {ready:?}");
    let first = ledger.accepted() as u64;
    extend(&mut ledger, &world, 20, seed);
    let status = eventually("the damage is noticed and shown", Duration::from_secs(60), || {
        let status = world.json(&["status", "--json"]);
        let aside = status["damaged"].as_array().is_some_and(|aside| !aside.is_empty());
        let busy = status["salvaging"] == true || status["backlog"] != 0;
        if aside && !busy {
            Ok(status)
        } else {
            Err(format!("{status:#}\n{}", collector::log(&world)))
        }
    });
    let doctor = world.run(&["doctor"]);
    assert!(doctor.stdout.contains("damaged"), "{}", doctor.stdout);
    drop(collector);
    let mut comparison = ledger.comparison();
    // `doctor` has sent one itself.
    let ours = |body: &[u8]| crate::ledger::number(body).is_some();
    crate::verify::each_raw_body(&world, |body| {
        if ours(body) {
            comparison.see(body);
        }
    });
    let stored = comparison.stored();
    let verdict = comparison.verdict();
    assert_eq!((&verdict.duplicate, &verdict.different), (&Vec::new(), &Vec::new()));
    assert!(verdict.lost.iter().all(|number| *number < first), "a hook after the damage is lost");
    assert!(
        stored.len() > 100,
        "too little was salvaged: {} of {}",
        stored.len(),
        ledger.accepted()
    );
    let sane = Connection::open(&path).unwrap();
    let check: String = sane.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    Ok(format!(
        "every ninth page of {pages} overwritten: moved aside, ready after {ready:.0?}, {} of {} hooks there again, 0 changed, \
         0 duplicated, new ones 0 lost; shown: {}",
        stored.len(),
        ledger.accepted(),
        status["damaged"][0]
    ))
}

/// A database of a newer release is refused with what to install, and hooks go on being kept.
pub(super) fn newer_schema(seed: u64) -> Result<Report, String> {
    let world = World::new();
    world.shim();
    let collector = Collector::start(&world);
    let mut ledger = send(&world, 20, seed);
    collector.drained(SOON);
    drop(collector);
    let path = world.state().join("hookspan.db");
    let db = Connection::open(&path).unwrap();
    let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    db.pragma_update(None, "user_version", 9_999).unwrap();
    drop(db);
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["sessions"], &["status"]] {
        let said = world.run(command);
        assert!(said.code == 1 && said.stderr.contains("9999"), "{command:?}: {said:#?}");
    }
    extend(&mut ledger, &world, 20, seed);
    let db = Connection::open(&path).unwrap();
    db.pragma_update(None, "user_version", version).unwrap();
    drop(db);
    let collector = Collector::start(&world);
    collector.drained(SOON);
    drop(collector);
    nothing_is_lost(&world, &ledger);
    Ok(format!(
        "schema 9999 refused by name; {} hooks before and meanwhile, 0 lost",
        ledger.accepted()
    ))
}
