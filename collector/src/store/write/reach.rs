//! How long the longest settled span of each tool and kind took, by session: what a filter of sessions asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hookspan_core::{Span, Timestamp};
use hookspan_view::line::LineKind;
use rusqlite::{Connection, OptionalExtension as _};
use smol_str::SmolStr;

use super::names::Names;

/// A tool's name is short; a longer one was forged.
const LONGEST_NAME: usize = 120;

/// What a settled span is, for the row of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    root: Arc<str>,
    class: u8,
    /// Lower case; empty for what is not a call.
    tool: SmolStr,
    ns: i64,
}

impl Reached {
    pub(super) fn of(span: &Span, end: Timestamp) -> Self {
        let tool = span.plain_name.strip_prefix("execute_tool ").unwrap_or_default();
        Self {
            root: Arc::clone(&span.root),
            class: LineKind::of(span) as u8,
            tool: tool.chars().take(LONGEST_NAME).map(|c| c.to_ascii_lowercase()).collect(),
            ns: end.since(span.start),
        }
    }
}

type Key = (Arc<str>, u8, SmolStr);

/// Longest durations of one transaction, to be compared with what is stored.
#[derive(Default)]
pub(super) struct Reach {
    longest: BTreeMap<Key, i64>,
    /// What a settled span was that changes or goes: the longest of the others has to be looked for.
    gone: BTreeSet<Key>,
}

impl Reach {
    /// Takes a settled span.
    pub(super) fn add(&mut self, Reached { root, class, tool, ns }: &Reached) {
        let key = (Arc::clone(root), *class, tool.clone());
        let longest = self.longest.entry(key).or_insert(*ns);
        *longest = (*longest).max(*ns);
    }

    /// Takes back what a settled span was.
    pub(super) fn take_back(&mut self, Reached { root, class, tool, .. }: &Reached) {
        self.gone.insert((Arc::clone(root), *class, tool.clone()));
    }

    /// Stores what was taken.
    pub(super) fn write(&mut self, db: &Connection, names: &mut Names) -> rusqlite::Result<()> {
        if self.longest.is_empty() && self.gone.is_empty() {
            return Ok(());
        }
        let mut put = db.prepare_cached(
            "INSERT INTO reach (root, class, tool, longest_ns) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (root, class, tool) DO UPDATE
             SET longest_ns = excluded.longest_ns WHERE excluded.longest_ns > longest_ns",
        )?;
        // A child may have been bound since the span was told.
        let mut top = db.prepare_cached("SELECT root FROM conversation WHERE id = ?1")?;
        let mut place = |root: &str| {
            let own = names.id(db, root)?;
            Ok::<i64, rusqlite::Error>(
                top.query_row([own], |row| row.get(0)).optional()?.unwrap_or(own),
            )
        };
        for ((root, class, tool), ns) in std::mem::take(&mut self.longest) {
            put.execute((place(&root)?, class, tool.as_str(), ns))?;
        }
        for (root, class, tool) in std::mem::take(&mut self.gone) {
            look(db, place(&root)?, class, &tool)?;
        }
        Ok(())
    }

    /// Moves what a child's spans reached to the session that it turned out to be of.
    pub(super) fn bind(db: &Connection, own: i64, top: i64) -> rusqlite::Result<()> {
        db.prepare_cached(
            "INSERT INTO reach (root, class, tool, longest_ns)
             SELECT ?2, class, tool, longest_ns FROM reach WHERE root = ?1
             ON CONFLICT (root, class, tool) DO UPDATE
             SET longest_ns = max(longest_ns, excluded.longest_ns)",
        )?
        .execute((own, top))?;
        db.prepare_cached("DELETE FROM reach WHERE root = ?1")?.execute([own])?;
        Ok(())
    }

    /// Forgets what was taken in a transaction that was rolled back.
    pub(super) fn clear(&mut self) {
        self.longest.clear();
        self.gone.clear();
    }
}

/// Looks for the longest settled span of a kind and tool in a session, and stores it.
fn look(db: &Connection, root: i64, class: u8, tool: &str) -> rusqlite::Result<()> {
    let found: Option<i64> = db
        .prepare_cached(
            "SELECT max(s.end_ns - s.start_ns) FROM span s
             WHERE s.root = ?1 AND s.class = ?2
               AND CASE WHEN s.plain_name GLOB 'execute_tool *'
                   THEN lower(substr(s.plain_name, 14, 120)) ELSE '' END = ?3
               AND NOT EXISTS (SELECT 1 FROM unsettled u WHERE u.root = s.root AND u.span = s.row)",
        )?
        .query_row((root, class, tool), |row| row.get(0))?;
    let key = (root, class, tool);
    match found {
        Some(ns) => db
            .prepare_cached(
                "INSERT OR REPLACE INTO reach (root, class, tool, longest_ns) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute((root, class, tool, ns))?,
        None => db
            .prepare_cached("DELETE FROM reach WHERE root = ?1 AND class = ?2 AND tool = ?3")?
            .execute(key)?,
    };
    Ok(())
}
