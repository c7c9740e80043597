use super::*;

fn path() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("hookspan.db");
    (temp, path)
}

#[test]
fn a_new_database_is_durable_private_and_marked_as_ours() {
    let (_temp, path) = path();
    let db = writer(&path).unwrap();
    let pragma = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(pragma("application_id"), i64::from(APPLICATION_ID));
    assert_eq!(pragma("user_version"), i64::from(SCHEMA_VERSION));
    assert_eq!(pragma("synchronous"), 2);
    assert_eq!(pragma("auto_vacuum"), 2);
    assert_eq!(pragma("secure_delete"), 1);
    #[cfg(unix)]
    for suffix in ["", "-wal", "-shm"] {
        use std::os::unix::fs::PermissionsExt as _;
        let file = PathBuf::from(format!("{}{suffix}", path.display()));
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{suffix}");
    }
    drop(db);
    writer(&path).unwrap();
}

#[test]
fn a_newer_schema_is_refused_with_what_to_install() {
    let (_temp, path) = path();
    let db = writer(&path).unwrap();
    db.pragma_update(None, "user_version", SCHEMA_VERSION + 1).unwrap();
    drop(db);
    for error in [writer(&path).unwrap_err(), reader(&path).unwrap_err()] {
        let text = error.to_string();
        assert!(text.contains("newer hookspan") && text.contains("journal"), "{text}");
    }
    let db = Connection::open(&path).unwrap();
    let kept = db.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0)).unwrap();
    assert_eq!(kept, SCHEMA_VERSION + 1);
}

#[test]
fn what_has_left_keeps_its_place_when_spans_are_folded_again() {
    let (_temp, path) = path();
    let before = Connection::open(&path).unwrap();
    MIGRATIONS.iter().take(7).for_each(|sql| before.execute_batch(sql).unwrap());
    before
        .execute_batch(
            "INSERT INTO name (text) VALUES ('c');
             INSERT INTO span (id, rev, root, conversation, generation, trace, kind, name, plain_name,
                               start_ns, detail, settled_seq)
             VALUES (x'01', 1, 1, 1, '', x'02', 'tool', '', '', 0, '{}', 7),
                    (x'03', 1, 1, 1, '', x'02', 'tool', '', '', 0, '{}', NULL);
             INSERT INTO state (key, value) VALUES ('folded_seq', '9'), ('rebuilding', '0');
             PRAGMA user_version = 7;",
        )
        .unwrap();
    before.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
    drop(before);
    let db = writer(&path).unwrap();
    let text = |sql| db.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    let kept = "SELECT group_concat(hex(id) || ' ' || settled_seq) FROM settled_before";
    assert_eq!(text(kept), "01 7");
    assert_eq!(text("SELECT count(*) || '' FROM span"), "0");
    let state = "SELECT group_concat(key || ' ' || value) FROM state";
    assert_eq!(text(state), "folded_seq 0,rebuilding 1");
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let (_temp, path) = path();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE other (x)").unwrap();
    assert!(matches!(writer(&path), Err(OpenError::Foreign(_))));
    std::fs::write(&path, "not a database, but long enough to be looked at by SQLite".repeat(9))
        .unwrap();
    assert!(matches!(writer(&path), Err(OpenError::Suspected { .. })));
}

/// Name, size and modification time of each file around the database.
#[cfg(unix)]
fn around(path: &Path) -> Vec<(std::ffi::OsString, u64, std::time::SystemTime)> {
    let look = |entry: std::io::Result<std::fs::DirEntry>| {
        let (name, meta) = entry.map(|entry| (entry.file_name(), entry.metadata())).unwrap();
        let meta = meta.unwrap();
        (name, meta.len(), meta.modified().unwrap())
    };
    let mut all: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().map(look).collect();
    all.sort();
    all
}

#[test]
#[cfg(unix)]
fn a_still_reader_sees_the_log_and_leaves_every_file_as_it_was() {
    let (temp, path) = path();
    // A path that needs escapes in a URI.
    let folder = temp.path().join("a b?c#d%41");
    std::fs::create_dir(&folder).unwrap();
    let copy = folder.join("hookspan.db");
    let rows = |path: &Path| -> i64 {
        let db = still_reader(path).unwrap();
        db.query_row("SELECT count(*) FROM name", [], |row| row.get(0)).unwrap()
    };
    let db = writer(&path).unwrap();
    db.execute("INSERT INTO name (id, text) VALUES (1, 'a')", []).unwrap();
    // The state after a collector was killed: the last commits are in the log only.
    for suffix in ["", "-wal"] {
        let from = format!("{}{suffix}", path.display());
        std::fs::copy(from, format!("{}{suffix}", copy.display())).unwrap();
    }
    let before = around(&copy);
    assert_eq!((before.len(), rows(&copy)), (2, 1));
    assert_eq!(around(&copy), before);
    // The state after a collector has ended.
    drop(db);
    let before = around(&path);
    assert_eq!((before.len(), rows(&path)), (2, 1));
    assert_eq!(around(&path), before);
    let missing = still_reader(&folder.join("none.db"));
    assert!(matches!(missing, Err(OpenError::Missing(_))), "{missing:?}");
    assert!(still_reader(&path).unwrap().execute("DELETE FROM name", []).is_err());
}

#[test]
fn readers_see_committed_rows_and_cannot_write() {
    let (_temp, path) = path();
    let readers = Readers::new(&path);
    assert!(matches!(readers.with(|_| Ok(())), Err(OpenError::Missing(_))));
    let db = writer(&path).unwrap();
    let count =
        |db: &Connection| db.query_row("SELECT count(*) FROM name", [], |row| row.get::<_, i64>(0));
    assert_eq!(readers.with(count).unwrap(), 0);
    db.execute("INSERT INTO name (text) VALUES ('x')", []).unwrap();
    assert_eq!(readers.with(count).unwrap(), 1);
    let write = readers.with(|db| db.execute("DELETE FROM name", []));
    assert!(write.is_err());
    assert_eq!(readers.with(count).unwrap(), 1);
}

#[test]
fn library_versions_that_lose_rows_are_refused() {
    assert!(library(3_051_002, "3.51.2").is_err());
    assert!(library(3_051_003, "3.51.3").is_ok());
    assert!(library(3_052_000, "3.52.0").is_err());
    assert!(library(rusqlite::version_number(), "now").is_ok());
}
