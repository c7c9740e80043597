//! Reads Cursor's own database, `state.vscdb`. Opens it read-only for one question, reads by key, and reads a limited
//! number of bytes.
//!
//! Cursor may change its schema at any time. The known schemas, newest first:
//!
//! | where | key | what is read |
//! |---|---|---|
//! | `composerHeaders` | `composerId` | `$.subagentInfo` of `value` |
//! | `cursorDiskKV` | `composerData:` and the id | `$.subagentInfo`, `$.subagentComposerIds` |
//! | `ItemTable` | `composer.composerHeaders` | `$.allComposers[*]`, each with `composerId` and `subagentInfo` |
//!
//! A value that is missing, not JSON, of another type or too large gives no answer. That is not an error.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use serde_json::Value;

use super::open;

/// Maximum wait for a lock that Cursor holds.
const PATIENCE: Duration = Duration::from_millis(50);
/// Larger values are skipped.
const VALUE_MAX_BYTES: u64 = 16 << 20;
/// Maximum bytes of values read for one question.
const BUDGET_BYTES: u64 = 64 << 20;
/// Maximum number of call ids and child ids taken from one value.
const IDS_MAX: usize = 1_024;

/// A composer that works for another composer, as Cursor's database describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subagent {
    /// The conversation it works for.
    pub parent: String,
    /// Calls of the parent conversation for which this composer worked, the earliest first.
    pub calls: Vec<String>,
}

/// Which known tables exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    /// `composerHeaders`.
    pub headers: bool,
    /// `cursorDiskKV`.
    pub values: bool,
    /// `ItemTable`.
    pub items: bool,
}

/// The open database.
#[derive(Debug)]
pub(crate) struct Database {
    db: Connection,
    tables: Tables,
    left: u64,
    too_large: u64,
}

/// Whether the database is in WAL mode and has no log file. If so, no process has it open.
fn is_left_with_log_mode(path: &Path) -> bool {
    const MODE_AT: usize = 18;
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let mut head = [0; MODE_AT + 1];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.last() == Some(&2) && !Path::new(&log).exists()
}

impl Database {
    /// Opens the database. hookspan never writes to it, and blocks Cursor for at most one read.
    ///
    /// # Errors
    ///
    /// Returns SQLite's error: there is no database, it is damaged, or it is locked.
    pub(crate) fn open(path: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // In WAL mode without a writer, SQLite would create a log file beside the database.
        let db = if is_left_with_log_mode(path) {
            open::still(path)?
        } else {
            Connection::open_with_flags(path, flags)?
        };
        db.busy_timeout(PATIENCE)?;
        for (pragma, value) in
            [("query_only", 1), ("trusted_schema", 0), ("mmap_size", 0), ("cache_size", -1_024)]
        {
            db.pragma_update(None, pragma, value)?;
        }
        let tables = tables(&db)?;
        Ok(Self { db, tables, left: BUDGET_BYTES, too_large: 0 })
    }

    /// Which tables it has.
    #[must_use]
    pub(crate) const fn tables(&self) -> Tables {
        self.tables
    }

    /// Number of values skipped because of their size.
    #[must_use]
    pub(crate) const fn too_large(&self) -> u64 {
        self.too_large
    }

    /// The parent of `composer`, according to the composer's own rows.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be read.
    pub(crate) fn subagent(&mut self, composer: &str) -> rusqlite::Result<Option<Subagent>> {
        let info = "$.subagentInfo";
        if self.tables.headers {
            let found = self.part(("composerHeaders", "composerId"), composer, info)?;
            if let Some(said) = found.as_ref().and_then(subagent) {
                return Ok(Some(said));
            }
        }
        if !self.tables.values {
            return Ok(None);
        }
        let key = format!("composerData:{composer}");
        let found = self.part(("cursorDiskKV", "key"), &key, info)?;
        Ok(found.as_ref().and_then(subagent))
    }

    /// Older builds of Cursor keep parents in one list. Returns the parents of `composers` from that list.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be read.
    pub(crate) fn listed(
        &mut self,
        composers: &[&str],
    ) -> rusqlite::Result<Vec<(String, Subagent)>> {
        if !self.tables.items {
            return Ok(Vec::new());
        }
        let place = ("ItemTable", "key");
        let Some(Value::Array(all)) =
            self.part(place, "composer.composerHeaders", "$.allComposers")?
        else {
            return Ok(Vec::new());
        };
        let wanted = |one: &Value| {
            let id = one.get("composerId")?.as_str()?;
            let said = composers.contains(&id).then(|| subagent(one.get("subagentInfo")?))??;
            Some((id.to_owned(), said))
        };
        Ok(all.iter().filter_map(wanted).collect())
    }

    /// The composers that `parent` names as its children.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be read.
    pub(crate) fn children(&mut self, parent: &str) -> rusqlite::Result<Vec<String>> {
        if !self.tables.values {
            return Ok(Vec::new());
        }
        let key = format!("composerData:{parent}");
        let found = self.part(("cursorDiskKV", "key"), &key, "$.subagentComposerIds")?;
        Ok(found.as_ref().map(texts).unwrap_or_default())
    }

    /// The part of a JSON value at `path`. SQLite parses the value, so the rest of it is never in our memory.
    fn part(
        &mut self,
        (table, key_column): (&str, &str),
        key: &str,
        path: &str,
    ) -> rusqlite::Result<Option<Value>> {
        // A key is text or, in some builds, the same bytes as a blob.
        let sql = format!(
            "SELECT octet_length(value), CASE WHEN octet_length(value) <= ?2 AND json_valid(CAST(value AS TEXT))
                    THEN json_extract(CAST(value AS TEXT), ?3) END
             FROM {table} WHERE {key_column} IN (?1, CAST(?1 AS BLOB)) LIMIT 1"
        );
        let most = self.left.min(VALUE_MAX_BYTES);
        let mut statement = self.db.prepare_cached(&sql)?;
        let found = statement
            .query_row((key, i64::try_from(most).unwrap_or(i64::MAX), path), |row| {
                let size = row.get::<_, Option<i64>>(0)?.unwrap_or_default();
                let part = match row.get_ref(1)? {
                    ValueRef::Text(text) => serde_json::from_slice(text).ok(),
                    _ => None,
                };
                Ok((u64::try_from(size).unwrap_or_default(), part))
            })
            .optional()?;
        drop(statement);
        let Some((size, part)) = found else { return Ok(None) };
        if size > most {
            self.too_large += 1;
        } else {
            self.left -= size;
        }
        Ok(part)
    }
}

fn tables(db: &Connection) -> rusqlite::Result<Tables> {
    let mut statement = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let mut tables = Tables::default();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        match row.get_ref(0)? {
            ValueRef::Text(b"composerHeaders") => tables.headers = true,
            ValueRef::Text(b"cursorDiskKV") => tables.values = true,
            ValueRef::Text(b"ItemTable") => tables.items = true,
            _ => {}
        }
    }
    Ok(tables)
}

/// `subagentInfo`.
fn subagent(info: &Value) -> Option<Subagent> {
    let text = |key: &str| info.get(key).and_then(Value::as_str).map(str::to_owned);
    let parent = text("parentComposerId")?;
    let mut calls = info.get("toolCallIdHistory").map(texts).unwrap_or_default();
    calls.extend(text("toolCallId"));
    Some(Subagent { parent, calls })
}

fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.take(IDS_MAX).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use serde_json::json;

    use super::*;

    struct Made {
        _temp: tempfile::TempDir,
        path: std::path::PathBuf,
        db: Connection,
    }

    /// A database as Cursor makes them.
    fn made() -> Made {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("state.vscdb");
        let db = Connection::open(&path).unwrap();
        db.execute_batch(
            "CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
             CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
             CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, isSubagent INTEGER, value TEXT);",
        )
        .unwrap();
        Made { _temp: temp, path, db }
    }

    impl Made {
        fn header(&self, id: &str, value: &str) {
            let sql = "INSERT INTO composerHeaders VALUES (?1, 1, ?2)";
            self.db.execute(sql, (id, value)).unwrap();
        }

        fn put(&self, table: &str, key: &str, value: &str) {
            let sql = format!("INSERT INTO {table} VALUES (?1, ?2)");
            self.db.execute(&sql, (key, value.as_bytes())).unwrap();
        }

        fn open(&self) -> Database {
            Database::open(&self.path).unwrap()
        }
    }

    fn info(parent: &str, call: &str) -> String {
        let info =
            json!({"parentComposerId": parent, "toolCallId": call, "subagentType": "explore"});
        json!({"name": "x", "subagentInfo": info}).to_string()
    }

    fn said(parent: &str, calls: &[&str]) -> Subagent {
        let calls = calls.iter().map(|call| (*call).to_owned()).collect();
        Subagent { parent: parent.to_owned(), calls }
    }

    #[test]
    fn a_header_names_parent_and_call() {
        let made = made();
        made.header("child", &info("root", "call_1\nfc_1"));
        let history = json!({"subagentInfo": {"parentComposerId": "root", "toolCallId": "c3",
                             "toolCallIdHistory": ["c1", 2, "c2"]}});
        made.header("resumed", &history.to_string());
        let mut open = made.open();
        assert_eq!(open.subagent("child").unwrap(), Some(said("root", &["call_1\nfc_1"])));
        assert_eq!(open.subagent("resumed").unwrap(), Some(said("root", &["c1", "c2", "c3"])));
        assert_eq!(open.subagent("nobody").unwrap(), None);
    }

    #[test]
    fn older_builds_keep_the_headers_in_one_list() {
        let made = made();
        made.db.execute("DROP TABLE composerHeaders", []).unwrap();
        let list = json!({"allComposers": [
            {"composerId": "root"}, 7, {"composerId": 7},
            {"composerId": "child", "subagentInfo": {"parentComposerId": "root", "toolCallId": "c"}},
            {"composerId": "other", "subagentInfo": {"parentComposerId": "root"}},
        ]});
        made.put("ItemTable", "composer.composerHeaders", &list.to_string());
        let mut open = made.open();
        assert_eq!(open.subagent("child").unwrap(), None);
        let found = open.listed(&["child", "root", "nobody"]).unwrap();
        assert_eq!(found, [("child".to_owned(), said("root", &["c"]))]);
    }

    #[test]
    fn a_parent_names_its_children_and_a_child_its_parent_by_key() {
        let made = made();
        let data = json!({"subagentComposerIds": ["a", null, "b"], "text": "x".repeat(1 << 20)});
        made.put("cursorDiskKV", "composerData:root", &data.to_string());
        made.put("cursorDiskKV", "composerData:a", &info("root", "c"));
        let sql = "INSERT INTO cursorDiskKV VALUES (CAST('composerData:b' AS BLOB), ?1)";
        made.db.execute(sql, [info("root", "d")]).unwrap();
        let mut open = made.open();
        assert_eq!(open.children("root").unwrap(), ["a", "b"]);
        assert_eq!(open.children("a").unwrap(), [""; 0]);
        assert_eq!(open.subagent("a").unwrap(), Some(said("root", &["c"])));
        assert_eq!(open.subagent("b").unwrap(), Some(said("root", &["d"])));
    }

    #[test]
    fn hostile_values_are_no_answer() {
        let made = made();
        let deep = format!("{{\"subagentInfo\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let hostile = [
            "",
            "not JSON",
            "{\"subagentInfo\": ",
            "[]",
            "7",
            "null",
            "\u{0}",
            &deep,
            "{\"subagentInfo\": \"text\"}",
            "{\"subagentInfo\": [1]}",
            "{\"subagentInfo\": {\"parentComposerId\": {\"a\": 1}}}",
            "{\"subagentInfo\": {\"toolCallId\": \"c\"}}",
            "{\"subagentInfo\": {\"parentComposerId\": \"\\ud800\"}}",
        ];
        for (at, value) in hostile.iter().enumerate() {
            made.header(&format!("h{at}"), value);
            made.put("cursorDiskKV", &format!("composerData:h{at}"), value);
            made.put("ItemTable", "composer.composerHeaders", value);
            let mut open = made.open();
            assert_eq!(open.subagent(&format!("h{at}")).unwrap(), None, "{at}");
            assert_eq!(open.listed(&["h0"]).unwrap(), [], "{at}");
            assert_eq!(open.children(&format!("h{at}")).unwrap(), [""; 0], "{at}");
        }
        made.db.execute("INSERT INTO composerHeaders VALUES ('null', 1, NULL)", []).unwrap();
        assert_eq!(made.open().subagent("null").unwrap(), None);
        let quoted = made.open().subagent("x' OR '1'='1").unwrap();
        assert_eq!(quoted, None);
    }

    #[test]
    fn a_huge_value_is_passed_over_and_counted() {
        let made = made();
        let mut value = info("root", "c");
        value.extend(std::iter::repeat_n(' ', usize::try_from(VALUE_MAX_BYTES).unwrap()));
        made.header("huge", &value);
        let mut open = made.open();
        assert_eq!(open.subagent("huge").unwrap(), None);
        assert_eq!(open.too_large(), 1);
        open.left = 10;
        made.header("small", &info("root", "c"));
        assert_eq!(open.subagent("small").unwrap(), None);
        assert_eq!(open.too_large(), 2);
    }

    #[test]
    fn a_lock_or_damage_is_an_error_in_short_time() {
        let made = made();
        made.header("child", &info("root", "c"));
        made.db.execute_batch("BEGIN EXCLUSIVE").unwrap();
        assert!(Database::open(&made.path).is_err());
        made.db.execute_batch("ROLLBACK").unwrap();
        assert!(made.open().subagent("child").unwrap().is_some());
        let damaged = made.path.with_file_name("damaged");
        std::fs::write(&damaged, vec![b'x'; 8_192]).unwrap();
        assert!(Database::open(&damaged).is_err());
        assert!(Database::open(&made.path.with_file_name("missing")).is_err());
        assert!(!made.path.with_file_name("missing").exists());
    }

    #[test]
    fn a_reader_beside_a_writer_sees_what_is_committed_and_changes_nothing() {
        let made = made();
        made.db.pragma_update(None, "journal_mode", "WAL").unwrap();
        made.header("child", &info("root", "c"));
        made.db.execute_batch("BEGIN IMMEDIATE; DELETE FROM composerHeaders;").unwrap();
        let before = std::fs::read(&made.path).unwrap();
        assert!(made.open().subagent("child").unwrap().is_some());
        assert_eq!(std::fs::read(&made.path).unwrap(), before);
        let db = made.open().db;
        assert!(db.execute("DELETE FROM composerHeaders", []).is_err());
    }
}
