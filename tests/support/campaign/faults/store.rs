//! What can happen to the database.

use std::fs;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::super::{Report, extend, nothing_is_lost, send};
use super::system::stored;
use crate::collector::Collector;
use crate::wait::{SOON, pause};
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

/// A person opens the database with a program that may write: `sqlite3` or a database browser. When SQLite closes, it
/// believes that it is the last user unless the collector holds its lock. It then deletes the log that the collector
/// still uses.
pub(super) fn another_program(seed: u64) -> Result<Report, String> {
    let world = World::new();
    world.write_config("[[destination]]\nname = \"away\"\nendpoint = \"http://127.0.0.1:1\"\n");
    world.shim();
    let collector = Collector::start(&world);
    let mut ledger = send(&world, 20, seed);
    collector.drained(SOON);
    for _ in 0..3 {
        let other = Connection::open(world.state().join("hookspan.db")).unwrap();
        let rows = |db: &Connection| {
            db.query_row("SELECT count(*) FROM raw_hook", [], |row| row.get::<_, i64>(0)).unwrap()
        };
        assert_eq!(rows(&other) as usize, ledger.accepted());
        drop(other);
        assert!(
            world.state().join("hookspan.db-wal").exists(),
            "the log of a running collector is gone"
        );
        extend(&mut ledger, &world, 20, seed);
        collector.drained(SOON);
    }
    assert_eq!(world.json(&["status", "--json"])["trouble"], serde_json::Value::Null);
    stored(&world, collector, &ledger);
    Ok(format!(
        "opened and closed three times by another program that may write: {} hooks, 0 lost, the log stays",
        ledger.accepted()
    ))
}

/// The write-ahead log is gone. The journal has the missing hooks.
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

/// A database of a newer release is refused, with advice about which version to install. Hooks are still kept.
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
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["sessions"]] {
        let said = world.run(command);
        assert!(said.code == 1 && said.stderr.contains("9999"), "{command:?}: {said:#?}");
    }
    extend(&mut ledger, &world, 20, seed);
    // Waiting hooks can be counted nevertheless.
    let status = world.json(&["status", "--json"]);
    assert!(status["trouble"].as_str().is_some_and(|text| text.contains("9999")), "{status}");
    assert!(status["backlog"].as_u64() >= Some(20), "{status}");
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
