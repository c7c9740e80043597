use std::cell::Cell;

use super::*;
use crate::store::write::Store;

fn made() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("hookspan.db");
    drop(Store::open(&path).unwrap());
    (temp, path)
}

fn overwrite(path: &Path, from: usize, to: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[from..to].fill(0xa5);
    std::fs::write(path, bytes).unwrap();
}

fn examined(path: &Path) -> Verdict {
    examine(path, &Ending::default(), || {})
}

#[test]
fn a_database_is_damaged_when_it_was_read_and_is_unsound_twice() {
    let (_temp, path) = made();
    assert_eq!(examined(&path), Verdict::Sound);
    overwrite(&path, 4_096, 8_192);
    let rounds = Cell::new(0);
    let verdict = examine(&path, &Ending::default(), || rounds.set(rounds.get() + 1));
    assert!(matches!(verdict, Verdict::Damaged(_)), "{verdict:?}");
    assert_eq!(rounds.get(), 1);
    overwrite(&path, 0, 100);
    assert_eq!(examined(&path), Verdict::Damaged("file is not a database".to_owned()));
}

#[test]
fn an_index_that_lacks_a_row_is_damage_too() {
    let (_temp, path) = made();
    let db = Connection::open(&path).unwrap();
    db.execute_batch("CREATE TABLE t (a); CREATE INDEX i ON t (a); INSERT INTO t VALUES (1), (2)")
        .unwrap();
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let root = |name: &str| -> i64 {
        let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
        db.query_row(sql, [name], |row| row.get(0)).unwrap()
    };
    let (page, size) = (root("i") as usize, 4_096);
    drop(db);
    let mut bytes = std::fs::read(&path).unwrap();
    // Changes the number of cells in the index's page. Every page stays well-formed, but the table has one row more
    // than the index.
    bytes[(page - 1) * size + 4] = 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(examined(&path), Verdict::Damaged(_)));
}

#[test]
fn what_is_sound_at_the_second_look_was_a_failed_read() {
    let (_temp, path) = made();
    let sound = std::fs::read(&path).unwrap();
    overwrite(&path, 4_096, 8_192);
    let verdict = examine(&path, &Ending::default(), || std::fs::write(&path, &sound).unwrap());
    assert_eq!(verdict, Verdict::Sound);
}

#[test]
fn what_cannot_be_read_is_not_damaged() {
    let (temp, path) = made();
    let missing = examined(&temp.path().join("none.db"));
    assert!(matches!(&missing, Verdict::Unreadable(why) if why.contains("none.db")), "{missing:?}");
    // The log cannot be read, although the database can.
    std::fs::create_dir(temp.path().join("hookspan.db-wal")).unwrap();
    let log = examined(&path);
    assert!(matches!(&log, Verdict::Unreadable(why) if why.contains("hookspan.db-wal")), "{log:?}");
}

#[test]
fn lines_of_the_check_that_stand_for_a_failed_read_are_known() {
    for line in [
        "Tree 5 page 7: unable to get the page. error code=8458",
        "Tree 5 page 7: unable to get the page. error code=266",
        "Tree 5 page 7: unable to get the page. error code=3082",
        "Tree 5 page 7: unable to get the page. error code=7",
        "Tree 5 page 7 cell 2: failed to get page 9",
    ] {
        assert!(is_failed_read(line), "{line}");
    }
    for line in [
        "Tree 5 page 7: unable to get the page. error code=11",
        "Tree 5 page 7: btreeInitPage() returns error code 11",
        "row 1 missing from index i",
        "Tree 5 page 7 cell 0: invalid page number 16843009",
    ] {
        assert!(!is_failed_read(line), "{line}");
    }
}

#[test]
fn an_examination_can_be_ended() {
    let (_temp, path) = made();
    overwrite(&path, 4_096, 8_192);
    let ending = Ending::default();
    assert!(matches!(examine(&path, &ending, || ending.end()), Verdict::Unreadable(_)));
}

/// The locks of this process on a file, as the system lists them.
#[cfg(target_os = "linux")]
fn locks(path: &Path) -> usize {
    use std::os::unix::fs::MetadataExt as _;
    let file = format!(":{} ", std::fs::metadata(path).unwrap().ino());
    let all = std::fs::read_to_string("/proc/locks").unwrap();
    let own = format!(" {} ", std::process::id());
    all.lines().filter(|line| line.contains(&file) && line.contains(&own)).count()
}

/// Without these locks, another program that closes the database believes that it is the last one and deletes the log.
#[test]
#[cfg(target_os = "linux")]
fn neither_an_examination_nor_another_connection_costs_the_writer_its_locks() {
    let (_temp, path) = made();
    let writer = open::writer(&path).unwrap();
    writer.execute_batch("CREATE TABLE t (a)").unwrap();
    let held = locks(&path);
    assert!(held > 0, "a connection in WAL mode holds a lock on the database");
    drop(open::writer(&path).unwrap());
    assert_eq!(locks(&path), held, "another connection");
    assert_eq!(examined(&path), Verdict::Sound);
    assert_eq!(locks(&path), held, "an examination");
}
