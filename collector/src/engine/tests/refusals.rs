//! Tests a database that refuses batches: locked, stopped, or without its last commits.

use super::*;

#[test]
fn a_locked_database_is_waited_for_and_the_fold_is_not_repeated() {
    let world = World::new();
    let mut engine = world.engine();
    let other = Connection::open(&world.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut trouble = engine.signals.trouble.subscribe();
    let thread = std::thread::spawn(move || {
        play(&mut engine, &stream(), 1_000);
        finish(&mut engine);
        engine
    });
    // The lock is released only after the first refusal was reported.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(trouble.wait_for(Option::is_some)).unwrap();
    let text = trouble.borrow().clone().unwrap();
    assert!(text.contains("lock"), "{text}");
    other.execute_batch("ROLLBACK").unwrap();
    let engine = thread.join().unwrap();
    assert_eq!(*engine.signals.trouble.borrow(), None);
    drop(engine);
    assert_eq!(tables(&world.path), reference());
    let db = Connection::open(&world.path).unwrap();
    let retries = rows(&db, "SELECT value > 0 FROM counter WHERE key = 'store_retries'");
    assert_eq!(retries, [json!([1])]);
}

#[test]
fn a_batch_refused_behind_the_fold_is_written_whole_and_counted_once() {
    let world = World::new();
    let mut engine = world.engine();
    let other = Connection::open(&world.path).unwrap();
    let refuse = "CREATE TRIGGER no BEFORE INSERT ON span BEGIN SELECT RAISE(ABORT, 'no'); END";
    other.execute_batch(refuse).unwrap();
    let all = stream();
    // The batch begins with a hook that is already stored, ends with a copy of one of its own hooks, and contains one
    // hook with the same content as another.
    let mut twice = all[2].clone();
    twice.id[0] ^= 0x80;
    let batch = [&all[..1], &all[..], &[twice], &all[11..]].concat();
    let mut trouble = engine.signals.trouble.subscribe();
    let thread = std::thread::spawn(move || {
        play(&mut engine, &batch, 1_000);
        finish(&mut engine);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(trouble.wait_for(Option::is_some)).unwrap();
    other.busy_timeout(Duration::from_secs(5)).unwrap();
    other.execute_batch("DROP TRIGGER no").unwrap();
    thread.join().unwrap();
    assert_eq!(tables(&world.path), reference());
    let counters = "SELECT key, value FROM counter
         WHERE key IN ('received', 'duplicate', 'malformed', 'duplicate_content') ORDER BY key";
    let n = all.len() as u64;
    let again = n - 11 + 1;
    let expected = [
        json!(["duplicate", again]),
        json!(["duplicate_content", 1]),
        json!(["malformed", 1]),
        json!(["received", n + again + 1]),
    ];
    assert_eq!(rows(&other, counters), expected);
}

#[test]
fn a_stopped_engine_gives_a_refused_batch_back() {
    let world = World::new();
    let store = Store::open(&world.path).unwrap();
    let (stop, stopped) = bounded::<()>(0);
    let mut engine =
        Engine::new(store, hookspan_core::Config::default(), Signals::default(), stopped);
    drop(stop);
    let other = Connection::open(&world.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = engine.take(Batch { arrivals: stream(), ..Batch::default() }).unwrap_err();
    assert!(refused.to_string().contains("wait"), "{refused}");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(rows(&other, "SELECT count(*) FROM raw_hook"), [json!([0])]);
}

/// What remains if a write-ahead log is lost, or if an older copy of the database is put in its place.
#[test]
fn a_database_that_has_lost_commits_asks_for_a_new_start() {
    let world = World::new();
    let mut engine = world.engine();
    let stream = stream();
    play(&mut engine, &stream[..4], 1);
    let older = world.path.with_file_name("older.db");
    let into = format!("VACUUM INTO '{}'", older.display());
    Connection::open(&world.path).unwrap().execute_batch(&into).unwrap();

    let failed = || {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_READ);
        rusqlite::Error::SqliteFailure(code, None)
    };
    engine.recover(&failed());
    assert_eq!(*engine.signals.restart.borrow(), None, "nothing is missing");

    play(&mut engine, &stream[4..8], 1);
    for suffix in ["-wal", "-shm"] {
        let mut name = world.path.clone().into_os_string();
        name.push(suffix);
        std::fs::remove_file(name).unwrap();
    }
    std::fs::rename(older, &world.path).unwrap();
    engine.recover(&failed());
    assert_eq!(*engine.signals.restart.borrow(), Some(Restart::FellBack));
}
