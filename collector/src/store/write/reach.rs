//! The longest settled span of each tool and kind, and the longest failed one, by session. Filters of sessions use them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hookspan_core::{Span, Status, Timestamp};
use hookspan_view::facet;
use hookspan_view::line::LineKind;
use rusqlite::{Connection, OptionalExtension as _};
use smol_str::SmolStr;

use super::names::Names;

/// Tool, kind and result of a settled span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    root: Arc<str>,
    class: u8,
    /// Lower case; empty for what is not a call.
    tool: SmolStr,
    ns: i64,
    failed: bool,
}

impl Reached {
    pub(super) fn of(span: &Span, end: Timestamp) -> Self {
        let tool = facet::tool(span).unwrap_or_default();
        Self {
            root: Arc::clone(&span.root),
            class: LineKind::of(span) as u8,
            tool: tool.to_ascii_lowercase().into(),
            ns: end.since(span.start),
            failed: matches!(span.status, Status::Error { .. }),
        }
    }
}

type Key = (Arc<str>, u8, SmolStr);

/// The longest durations in one transaction, to be compared with the stored ones.
#[derive(Default)]
pub(super) struct Reach {
    /// Of all spans, and of failed spans.
    longest: BTreeMap<Key, (i64, Option<i64>)>,
    /// Keys of settled spans that change or are removed. The longest remaining span is searched for each key.
    gone: BTreeSet<Key>,
}

impl Reach {
    /// Adds a settled span.
    pub(super) fn add(&mut self, Reached { root, class, tool, ns, failed }: &Reached) {
        let key = (Arc::clone(root), *class, tool.clone());
        let (longest, longest_failed) = self.longest.entry(key).or_insert((*ns, None));
        *longest = (*longest).max(*ns);
        *longest_failed = (*longest_failed).max(failed.then_some(*ns));
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
        let mut put = db.prepare_cached(
            "INSERT INTO reach (root, class, tool, longest_ns, failed_ns) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (root, class, tool) DO UPDATE
             SET longest_ns = max(longest_ns, excluded.longest_ns),
                 failed_ns = max(coalesce(failed_ns, excluded.failed_ns),
                                 coalesce(excluded.failed_ns, failed_ns))
             WHERE excluded.longest_ns > longest_ns OR excluded.failed_ns > coalesce(failed_ns, -1)",
        )?;
        // A child may have been bound since the span was added.
        let mut top = db.prepare_cached("SELECT root FROM conversation WHERE id = ?1")?;
        let mut place = |root: &str| {
            let own = names.id(db, root)?;
            Ok::<i64, rusqlite::Error>(
                top.query_row([own], |row| row.get(0)).optional()?.unwrap_or(own),
            )
        };
        for ((root, class, tool), (ns, failed)) in std::mem::take(&mut self.longest) {
            put.execute((place(&root)?, class, tool.as_str(), ns, failed))?;
        }
        for (root, class, tool) in std::mem::take(&mut self.gone) {
            look(db, place(&root)?, class, &tool)?;
        }
        Ok(())
    }

    /// Moves a child's durations to the session that it was bound to.
    pub(super) fn bind(db: &Connection, own: i64, top: i64) -> rusqlite::Result<()> {
        db.prepare_cached(
            "INSERT INTO reach (root, class, tool, longest_ns, failed_ns)
             SELECT ?2, class, tool, longest_ns, failed_ns FROM reach WHERE root = ?1
             ON CONFLICT (root, class, tool) DO UPDATE
             SET longest_ns = max(longest_ns, excluded.longest_ns),
                 failed_ns = max(coalesce(failed_ns, excluded.failed_ns),
                                 coalesce(excluded.failed_ns, failed_ns))",
        )?
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

/// Searches the longest settled spans of a kind and tool in a session, and stores them.
fn look(db: &Connection, root: i64, class: u8, tool: &str) -> rusqlite::Result<()> {
    let (longest, failed): (Option<i64>, Option<i64>) = db
        .prepare_cached(
            "SELECT max(s.end_ns - s.start_ns),
                    max(CASE WHEN s.error_type IS NOT NULL THEN s.end_ns - s.start_ns END)
             FROM span s
             WHERE s.root = ?1 AND s.class = ?2 AND lower(coalesce(s.tool, '')) = ?3
               AND NOT EXISTS (SELECT 1 FROM unsettled u WHERE u.root = s.root AND u.span = s.row)",
        )?
        .query_row((root, class, tool), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let changed = match longest {
        Some(longest) => db
            .prepare_cached(
                "INSERT OR REPLACE INTO reach (root, class, tool, longest_ns, failed_ns)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute((root, class, tool, longest, failed)),
        None => db
            .prepare_cached("DELETE FROM reach WHERE root = ?1 AND class = ?2 AND tool = ?3")?
            .execute((root, class, tool)),
    };
    changed.map(drop)
}
