//! Counters of events, fields and words that hookspan does not know, by name. The names come from payloads. When hooks
//! are deleted, what they counted is subtracted, and a name whose count becomes 0 is removed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use hookspan_core::Reader;
use rusqlite::{Connection, Params};

use super::{Reading, Store, Transaction};
use crate::store::codec::Unpacker;
use crate::store::write::{HOOK_COLUMNS, HOOK_TABLES, hook};

/// Maximum number of names with their own counter. Further names share one counter.
const MOST: usize = 256;
/// Key of the state table: the release that wrote the counters. Another release knows other names.
const COUNTED_BY: &str = "counted_by";
const NAMED: &str = "key GLOB 'unknown_event.*' OR key GLOB 'unknown_field.*'
     OR key GLOB 'unknown_value.*'";

/// What the hooks that are being deleted have counted.
#[derive(Debug, Default)]
pub(super) struct Forgotten {
    counters: BTreeMap<String, u64>,
    /// Unknown event names. Known names are left out.
    events: BTreeSet<String>,
}

impl Forgotten {
    /// Collects what the hooks that match a `WHERE` clause have counted, before they are deleted.
    pub(super) fn note(
        &mut self,
        store: &Store,
        clause: &str,
        values: impl Params + Clone,
    ) -> rusqlite::Result<()> {
        let sql = format!("SELECT coalesce(sum(malformed), 0) FROM raw_hook h WHERE {clause}");
        let malformed: i64 =
            store.db.prepare_cached(&sql)?.query_row(values.clone(), |row| row.get(0))?;
        self.add("malformed".to_owned(), malformed.cast_unsigned());
        if store.novel.is_empty() {
            // If no unknown name was ever counted, no hook must be read.
            return Ok(());
        }
        let sql = format!("SELECT {HOOK_COLUMNS} FROM {HOOK_TABLES} WHERE {clause} ORDER BY h.seq");
        let (mut unpacker, mut reader) = (Unpacker::default(), Reader::default());
        let mut statement = store.db.prepare_cached(&sql)?;
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            // A damaged body was counted as malformed and not as unknown.
            let Ok(hook) = hook(row, &mut unpacker) else { continue };
            self.reading(&Reading::of(&reader.read(&hook), None));
        }
        Ok(())
    }

    fn reading(&mut self, reading: &Reading) {
        if reading.unknown {
            self.add("unknown_event".to_owned(), 1);
            self.add(key("unknown_event", reading, &reading.name), 1);
            if let Cow::Owned(name) = &reading.name {
                self.events.insert(name.clone());
            }
        }
        for name in &reading.unseen {
            self.add(key("unknown_field", reading, name), 1);
        }
        for name in &reading.unseen_values {
            self.add(key("unknown_value", reading, name), 1);
        }
    }

    fn add(&mut self, key: String, by: u64) {
        if by > 0 {
            *self.counters.entry(key).or_default() += by;
        }
    }

    /// Subtracts the collected counts, and removes names whose count becomes 0.
    pub(super) fn settle(self, open: &mut Transaction<'_>) -> rusqlite::Result<()> {
        let Store { db, novel, .. } = &mut *open.store;
        for (key, by) in self.counters {
            let rest = subtract(db, &key, by)?;
            match key.split_once('.') {
                // The rest was counted by the shared counter, when no further name could get its own.
                Some((kind, _)) if rest > 0 => drop(subtract(db, &format!("{kind}.others"), rest)?),
                _ => {}
            }
        }
        *novel = named(db)?;
        let used = |name: &str| {
            let suffix = format!(" {}", plain(name));
            novel.iter().any(|key| key.starts_with("unknown_event.") && key.ends_with(&suffix))
        };
        for name in self.events.iter().filter(|name| !used(name)) {
            // A conversation may have the same text in the name table.
            db.prepare_cached(
                "UPDATE name SET text = 'deleted:' || id WHERE text = ?1
                 AND NOT EXISTS (SELECT 1 FROM raw_hook WHERE conversation = name.id)
                 AND NOT EXISTS (SELECT 1 FROM session WHERE root = name.id)",
            )?
            .execute([name])?;
        }
        Ok(())
    }
}

impl Store {
    /// Drops the counters if another release wrote them. This release may know those names, and a deletion would then
    /// not find them. `rebuild` counts again.
    ///
    /// # Errors
    /// Returns SQLite's error if the database cannot be written.
    pub(super) fn renew_names(&mut self, release: &str) -> rusqlite::Result<()> {
        if self.state(COUNTED_BY)?.as_deref() == Some(release) {
            return Ok(());
        }
        self.transaction(|open| {
            open.store.db.execute(&format!("DELETE FROM counter WHERE {NAMED}"), [])?;
            open.set_state(COUNTED_BY, release)
        })?;
        self.novel.clear();
        Ok(())
    }
}

impl Transaction<'_> {
    pub(super) fn reading(&mut self, reading: &Reading) {
        if reading.malformed {
            self.count("malformed", 1);
        }
        if reading.unknown {
            self.count("unknown_event", 1);
            self.novel("unknown_event", reading, &reading.name);
        }
        for name in &reading.unseen {
            self.novel("unknown_field", reading, name);
        }
        for name in &reading.unseen_values {
            self.novel("unknown_value", reading, name);
        }
    }

    /// Counts an unknown name with the version that sent it. The number of names is limited.
    fn novel(&mut self, kind: &str, reading: &Reading, name: &str) {
        let mut key = key(kind, reading, name);
        let novel = &mut self.store.novel;
        if novel.len() >= MOST && !novel.contains(&key) {
            key = format!("{kind}.others");
        } else {
            novel.insert(key.clone());
        }
        self.count(key, 1);
    }
}

/// Keys of the names that have a counter.
pub(super) fn named(db: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut keys = db.prepare(&format!("SELECT key FROM counter WHERE {NAMED}"))?;
    keys.query_map([], |row| row.get(0))?.collect()
}

fn key(kind: &str, reading: &Reading, name: &str) -> String {
    let version = reading.version.as_deref().unwrap_or("unknown");
    format!("{kind}.{} {}", plain(version), plain(name))
}

fn plain(name: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | ':' | '=');
    name.chars().map(|c| if is_plain(c) { c } else { '?' }).collect()
}

/// Subtracts from a counter and removes it at 0. Returns the part that the counter did not hold.
fn subtract(db: &Connection, key: &str, by: u64) -> rusqlite::Result<u64> {
    let by = by.cast_signed();
    let left: Option<i64> = db
        .prepare_cached("UPDATE counter SET value = value - ?2 WHERE key = ?1 RETURNING value")?
        .query_map((key, by), |row| row.get(0))?
        .next()
        .transpose()?;
    match left {
        None => Ok(by.cast_unsigned()),
        Some(left) if left > 0 => Ok(0),
        Some(left) => {
            db.prepare_cached("DELETE FROM counter WHERE key = ?1")?.execute([key])?;
            Ok(left.unsigned_abs())
        }
    }
}
