//! Keeps the longest settled span of each tool and kind, and the longest failed one, by session. Filters of sessions
//! use them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hookspan_core::Span;
use hookspan_view::facet;
use hookspan_view::line::LineKind;
use rusqlite::{Connection, OptionalExtension as _};
use smol_str::SmolStr;

use super::names::Names;
use crate::store::rows::{is_failure, length_ns};

/// Tool, kind and result of a settled span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    root: Arc<str>,
    class: u8,
    /// The tool in lower case; empty for spans that are not calls.
    tool: SmolStr,
    /// `None` if its duration is unknown.
    ns: Option<i64>,
    failed: bool,
}

impl Reached {
    pub(super) fn of(span: &Span) -> Self {
        let tool = facet::tool(span).unwrap_or_default();
        Self {
            root: Arc::clone(&span.root),
            class: LineKind::of(span) as u8,
            tool: tool.to_ascii_lowercase().into(),
            ns: span.length_ns(),
            failed: span.is_failure(),
        }
    }
}

type Key = (Arc<str>, u8, SmolStr);

/// Lengths of the longest spans of one kind and tool, if known.
#[derive(Clone, Copy, Default)]
struct Longest {
    all: Option<i64>,
    has_failed: bool,
    failed: Option<i64>,
}

/// The longest durations in one transaction. They are compared with the stored ones at its end.
#[derive(Default)]
pub(super) struct Reach {
    longest: BTreeMap<Key, Longest>,
    /// Keys of settled spans that change or are removed. For each of these keys, the longest remaining span is
    /// searched.
    gone: BTreeSet<Key>,
}

impl Reach {
    /// Adds a settled span.
    pub(super) fn add(&mut self, Reached { root, class, tool, ns, failed }: &Reached) {
        let key = (Arc::clone(root), *class, tool.clone());
        let longest = self.longest.entry(key).or_default();
        longest.all = longest.all.max(*ns);
        longest.has_failed |= *failed;
        longest.failed = longest.failed.max(ns.filter(|_| *failed));
    }

    /// Removes a settled span.
    pub(super) fn take_back(&mut self, Reached { root, class, tool, .. }: &Reached) {
        self.gone.insert((Arc::clone(root), *class, tool.clone()));
    }

    /// Stores the changes.
    pub(super) fn write(&mut self, db: &Connection, names: &mut Names) -> rusqlite::Result<()> {
        if self.longest.is_empty() && self.gone.is_empty() {
            return Ok(());
        }
        let mut put = db.prepare_cached(&format!(
            "INSERT INTO reach (root, class, tool, longest_ns, failed, failed_ns)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             {KEEP_LONGEST}
             WHERE excluded.longest_ns > coalesce(longest_ns, -1) OR excluded.failed > failed
                OR excluded.failed_ns > coalesce(failed_ns, -1)"
        ))?;
        // The child may have been bound to another session after the span was added.
        let mut top = db.prepare_cached("SELECT root FROM conversation WHERE id = ?1")?;
        let mut place = |root: &str| {
            let own = names.id(db, root)?;
            Ok::<i64, rusqlite::Error>(
                top.query_row([own], |row| row.get(0)).optional()?.unwrap_or(own),
            )
        };
        for ((root, class, tool), longest) in std::mem::take(&mut self.longest) {
            let Longest { all, has_failed, failed } = longest;
            put.execute((place(&root)?, class, tool.as_str(), all, has_failed, failed))?;
        }
        for (root, class, tool) in std::mem::take(&mut self.gone) {
            look(db, place(&root)?, class, &tool)?;
        }
        Ok(())
    }

    /// Moves a child's durations to the session that it was bound to.
    pub(super) fn bind(db: &Connection, own: i64, top: i64) -> rusqlite::Result<()> {
        db.prepare_cached(&format!(
            "INSERT INTO reach (root, class, tool, longest_ns, failed, failed_ns)
             SELECT ?2, class, tool, longest_ns, failed, failed_ns FROM reach WHERE root = ?1
             {KEEP_LONGEST}"
        ))?
        .execute((own, top))?;
        db.prepare_cached("DELETE FROM reach WHERE root = ?1")?.execute([own])?;
        Ok(())
    }

    /// Clears the changes of a transaction that was rolled back.
    pub(super) fn clear(&mut self) {
        self.longest.clear();
        self.gone.clear();
    }
}

/// Keeps the longer of a stored row and a new one. SQLite's `max` of two values is NULL if one of them is NULL.
const KEEP_LONGEST: &str = "ON CONFLICT (root, class, tool) DO UPDATE
             SET longest_ns = max(coalesce(longest_ns, excluded.longest_ns),
                                  coalesce(excluded.longest_ns, longest_ns)),
                 failed = max(failed, excluded.failed),
                 failed_ns = max(coalesce(failed_ns, excluded.failed_ns),
                                 coalesce(excluded.failed_ns, failed_ns))";

/// Finds the longest settled spans of a kind and tool in a session, and stores their lengths.
fn look(db: &Connection, root: i64, class: u8, tool: &str) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM reach WHERE root = ?1 AND class = ?2 AND tool = ?3")?
        .execute((root, class, tool))?;
    let (length, failed) = (length_ns("s"), is_failure("s"));
    db.prepare_cached(&format!(
        "INSERT INTO reach (root, class, tool, longest_ns, failed, failed_ns)
         SELECT ?1, ?2, ?3, max({length}), max({failed}), max(CASE WHEN {failed} THEN {length} END)
         FROM span s
         WHERE s.root = ?1 AND s.class = ?2 AND lower(coalesce(s.tool, '')) = ?3 AND s.end_ns IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM unsettled u WHERE u.root = s.root AND u.span = s.row)
         HAVING count(*) > 0"
    ))?
    .execute((root, class, tool))
    .map(drop)
}
