//! Selects what to delete, the oldest first, and counts it.
//!
//! A hook belongs to a session through its conversation. Hooks without a conversation (a body that could not be read,
//! `workspaceOpen`) and conversations that never became a session are *unowned*. Nobody can open them as a session, so
//! they are deleted before any session.

use hookspan_view::source::{Deleted, LineFilter, SessionFilter};
use rusqlite::{Connection, Params};

use super::read;
use crate::config::Retention;

/// Number of sessions deleted in one transaction. Hooks are committed between two of these transactions.
pub(crate) const STEP: u32 = 20;
/// Number of unowned hooks deleted in one transaction. Each is a small row, so 2,000 take about as long as a few
/// sessions.
pub(crate) const HOOKS_STEP: u32 = 2_000;

/// Conversations that have hooks and no session, with the time of their newest hook.
const UNOWNED: &str = "SELECT n.id, (SELECT max(observed_ns) FROM raw_hook WHERE conversation = n.id) AS newest FROM name n
     WHERE EXISTS (SELECT 1 FROM raw_hook WHERE conversation = n.id)
       AND NOT EXISTS (SELECT 1 FROM session
                       WHERE root = coalesce((SELECT root FROM conversation WHERE id = n.id), n.id))";

/// What one transaction deletes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Roots of sessions.
    pub sessions: Vec<String>,
    /// Unowned conversations, by their row in `name`.
    pub conversations: Vec<i64>,
    /// Hooks without a conversation, by their number in the raw log.
    pub hooks: Vec<i64>,
}

impl Selection {
    /// A selection of these sessions.
    #[must_use]
    pub fn sessions(roots: &[String]) -> Self {
        Self { sessions: roots.to_vec(), ..Self::default() }
    }

    /// Whether nothing is selected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.conversations.is_empty() && self.hooks.is_empty()
    }
}

/// What retention must delete next. `now_ns` is the wall clock.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn due(db: &Connection, keep: Retention, now_ns: i64) -> rusqlite::Result<Selection> {
    if is_behind(db)? {
        return Ok(Selection::default());
    }
    if keep.max_age_ns > 0 {
        let old = older_than(db, now_ns.saturating_sub(keep.max_age_ns))?;
        if !old.is_empty() {
            return Ok(old);
        }
    }
    if keep.max_bytes > 0 && used_bytes(db)? > keep.max_bytes {
        return older_than(db, i64::MAX);
    }
    Ok(Selection::default())
}

/// The next part of the data that is older than a time: first unowned hooks and conversations, then sessions by their
/// last event.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn older_than(db: &Connection, before_ns: i64) -> rusqlite::Result<Selection> {
    let mut found = Selection {
        hooks: unowned_hooks(db, before_ns)?,
        conversations: unowned_conversations(db, before_ns)?,
        ..Selection::default()
    };
    if found.is_empty() {
        found.sessions = sessions(db, before_ns)?;
    }
    Ok(found)
}

/// Counts what is older than a time. A deletion of all of it would report the same numbers.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn count(db: &Connection, before_ns: i64) -> rusqlite::Result<Deleted> {
    sum(db, "SELECT root FROM session WHERE last_ns < ?1", (before_ns, before_ns))
}

/// The same counts as [`count`], for these sessions only.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn count_of(db: &Connection, roots: &[String]) -> rusqlite::Result<Deleted> {
    let named = "SELECT session.root FROM session JOIN name ON name.id = session.root
         WHERE name.text IN (SELECT value FROM json_each(?1))";
    let list = serde_json::Value::from(roots).to_string();
    sum(db, named, (list, i64::MIN))
}

/// Sessions that match the filter and whose last event was before a time, the newest first, at most `limit`.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn matching(
    db: &Connection,
    filter: &LineFilter,
    before_ns: i64,
    limit: usize,
) -> rusqlite::Result<Vec<String>> {
    let filter =
        SessionFilter { spans: filter.clone(), completions: true, ..SessionFilter::default() };
    let found = read::sessions(db, &filter, Some(&(before_ns, String::new())), limit)?;
    Ok(found.into_iter().map(|session| session.root.to_string()).collect())
}

/// Counts what would be deleted with the sessions that `gone` selects, and with unowned hooks before a time.
fn sum(db: &Connection, gone: &str, values: impl Params) -> rusqlite::Result<Deleted> {
    let sql = format!(
        "WITH gone (root) AS MATERIALIZED ({gone}),
              talk (id) AS MATERIALIZED (SELECT root FROM gone
                  UNION SELECT c.id FROM conversation c JOIN gone ON gone.root = c.root
                  UNION SELECT s.conversation FROM span s JOIN gone ON gone.root = s.root
                  UNION SELECT id FROM ({UNOWNED}) WHERE newest < ?2),
              hooks (bytes) AS MATERIALIZED (
                  SELECT coalesce(h.body_len, p.len, 0) FROM talk JOIN raw_hook h ON h.conversation = talk.id
                      LEFT JOIN payload p ON p.seq = coalesce(h.pack, h.seq)
                  UNION ALL SELECT coalesce(h.body_len, p.len, 0) FROM raw_hook h
                      LEFT JOIN payload p ON p.seq = coalesce(h.pack, h.seq)
                      WHERE h.conversation IS NULL AND h.observed_ns < ?2)
         SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM gone JOIN turn USING (root)),
                (SELECT count(*) FROM gone JOIN span USING (root)),
                (SELECT count(*) FROM hooks), (SELECT coalesce(sum(bytes), 0) FROM hooks)"
    );
    db.query_row(&sql, values, |row| {
        let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
        Ok(Deleted {
            sessions: number(0)?,
            turns: number(1)?,
            spans: number(2)?,
            hooks: number(3)?,
            bytes: number(4)?,
            ..Deleted::default()
        })
    })
}

/// The `roots` that have no session. Empty while hooks wait to be folded.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn without_session(
    db: &Connection,
    mut roots: Vec<String>,
) -> rusqlite::Result<Vec<String>> {
    if is_behind(db)? {
        return Ok(Vec::new());
    }
    let mut find = db.prepare_cached(
        "SELECT 1 FROM session WHERE root = (SELECT id FROM name WHERE text = ?1)",
    )?;
    let mut found = Vec::with_capacity(roots.len());
    for root in &roots {
        found.push(find.exists([root])?);
    }
    let mut found = found.into_iter();
    roots.retain(|_| !found.next().unwrap_or(true));
    Ok(roots)
}

/// Roots of sessions whose last event was before a time, the oldest first.
fn sessions(db: &Connection, before_ns: i64) -> rusqlite::Result<Vec<String>> {
    db.prepare_cached(
        "SELECT n.text FROM session s JOIN name n ON n.id = s.root
         WHERE s.last_ns < ?1 ORDER BY s.last_ns, s.root LIMIT ?2",
    )?
    .query_map((before_ns, STEP), |row| row.get(0))?
    .collect()
}

fn unowned_hooks(db: &Connection, before_ns: i64) -> rusqlite::Result<Vec<i64>> {
    db.prepare_cached(
        "SELECT seq FROM raw_hook WHERE conversation IS NULL AND observed_ns < ?1
         ORDER BY observed_ns, seq LIMIT ?2",
    )?
    .query_map((before_ns, HOOKS_STEP), |row| row.get(0))?
    .collect()
}

fn unowned_conversations(db: &Connection, before_ns: i64) -> rusqlite::Result<Vec<i64>> {
    let sql = format!("SELECT id FROM ({UNOWNED}) WHERE newest < ?1 ORDER BY newest, id LIMIT ?2");
    db.prepare_cached(&sql)?.query_map((before_ns, STEP), |row| row.get(0))?.collect()
}

/// Whether hooks wait to be folded, as during a rebuild. If so, a conversation without a session may still get one.
fn is_behind(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row(
        "SELECT coalesce((SELECT CAST(value AS INTEGER) FROM state WHERE key = 'folded_seq'), 0)
              < coalesce((SELECT max(seq) FROM raw_hook), 0)",
        [],
        |row| row.get(0),
    )
}

/// Bytes of the database that are in use.
fn used_bytes(db: &Connection) -> rusqlite::Result<u64> {
    let pragma = |name| {
        db.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map(i64::cast_unsigned)
    };
    let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    Ok(pages.saturating_mul(pragma("page_size")?))
}

#[cfg(test)]
mod tests;
