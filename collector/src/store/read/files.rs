//! Files that agents touched: the newest touches of a period, added up by file.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;
use hookspan_core::{SpanId, Timestamp, TraceId};
use hookspan_view::line::LineKind;
use hookspan_view::source::{FileSums, Touch, Touched, WantedFiles};
use rusqlite::{Connection, Row};

use super::{name, sql_limit};
use crate::store::rows;

/// The newest touches of a period. All columns are in one index.
const NEWEST: &str = "SELECT start_ns, file, class, error_type IS NOT NULL, added, removed, root
     FROM span INDEXED BY span_touched
     WHERE file IS NOT NULL AND start_ns BETWEEN ?1 AND ?2 ORDER BY start_ns DESC LIMIT ?3";
/// All touches of one session.
const OF_SESSION: &str = "SELECT start_ns, file, class, error_type IS NOT NULL, added, removed, root FROM span
     WHERE root = ?4 AND file IS NOT NULL AND start_ns BETWEEN ?1 AND ?2 ORDER BY start_ns DESC LIMIT ?3";

/// Sums of a file while its touches are read.
#[derive(Default)]
struct Sum {
    sums: FileSums,
    sessions: BTreeSet<i64>,
}

/// Files that were touched in the period. Only the `most` newest touches are read.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn files(
    db: &Connection,
    wanted: &WantedFiles,
    most: usize,
) -> rusqlite::Result<Touched> {
    let mut touched = Touched::default();
    let named = named(db, wanted)?;
    let mut found: HashMap<i64, Sum, RandomState> = HashMap::default();
    let mut statement =
        db.prepare_cached(if wanted.session.is_some() { OF_SESSION } else { NEWEST })?;
    let (from, to) = wanted.period;
    let limit = sql_limit(most.saturating_add(1));
    let mut rows = match &wanted.session {
        Some(root) => match name(db, root)? {
            Some(root) => statement.query((from, to, limit, root))?,
            None => return Ok(touched),
        },
        None => statement.query((from, to, limit))?,
    };
    let (mut seen, mut oldest) = (0, 0);
    while let Some(row) = rows.next()? {
        seen += 1;
        if seen > most {
            touched.since = Some(Timestamp(oldest));
            break;
        }
        oldest = row.get(0)?;
        let file: i64 = row.get(1)?;
        if named.as_ref().is_none_or(|named| named.contains(&file)) {
            found.entry(file).or_default().add(row)?;
        }
    }
    let mut path = db.prepare_cached("SELECT project, path FROM file WHERE id = ?1")?;
    for (file, Sum { sums, sessions }) in found {
        let (project, path): (String, String) =
            path.query_row([file], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let project = Some(project).filter(|name| !name.is_empty());
        let sessions = sessions.len() as u64;
        touched.files.push(FileSums { project, path, sessions, ..sums });
    }
    Ok(touched)
}

/// The files whose names match. `None` if the request does not filter by name.
fn named(db: &Connection, wanted: &WantedFiles) -> rusqlite::Result<Option<BTreeSet<i64>>> {
    if wanted.project.is_none() && wanted.text.is_none() {
        return Ok(None);
    }
    let ids = db
        .prepare_cached(
            "SELECT id FROM file WHERE (?1 IS NULL OR project = iif(?1 = 'none' COLLATE NOCASE, '', ?1) COLLATE NOCASE)
             AND (?2 IS NULL OR instr(lower(path), lower(?2)) > 0)",
        )?
        .query_map((&wanted.project, &wanted.text), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(Some(ids))
}

impl Sum {
    fn add(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let sums = &mut self.sums;
        let failed: bool = row.get(3)?;
        sums.last_ns = sums.last_ns.max(row.get(0)?);
        sums.errors += u64::from(failed);
        if edits(row, 2)? {
            sums.edits += 1;
            let more = |sum: &mut Option<u64>, lines: Option<u64>| {
                if let Some(lines) = lines.filter(|_| !failed) {
                    *sum = Some(sum.unwrap_or(0).saturating_add(lines));
                }
            };
            more(&mut sums.added, lines(row, 4)?);
            more(&mut sums.removed, lines(row, 5)?);
        } else {
            sums.reads += 1;
        }
        self.sessions.insert(row.get(6)?);
        Ok(())
    }
}

/// Touches of one file in a period, newest first.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn touches(
    db: &Connection,
    (project, path): (&str, &str),
    period: (i64, i64),
    limit: usize,
) -> rusqlite::Result<Vec<Touch>> {
    let length = rows::length_ns("s");
    db.prepare_cached(&format!(
        "SELECT s.row, s.id, root.text, s.trace, s.start_ns, {length}, s.class, s.added, s.removed,
                s.error_type IS NOT NULL, s.end_ns IS NULL
         FROM span s JOIN name root ON root.id = s.root
         WHERE s.file = (SELECT id FROM file WHERE project = ?1 AND path = ?2)
           AND s.start_ns BETWEEN ?3 AND ?4
         ORDER BY s.start_ns DESC, s.row DESC LIMIT ?5"
    ))?
    .query_map((project, path, period.0, period.1, sql_limit(limit)), touch)?
    .collect()
}

fn touch(row: &Row<'_>) -> rusqlite::Result<Touch> {
    Ok(Touch {
        row: row.get(0)?,
        id: SpanId(row.get(1)?),
        root: row.get(2)?,
        trace: TraceId(row.get(3)?),
        start: Timestamp(row.get(4)?),
        length_ns: row.get(5)?,
        edits: edits(row, 6)?,
        added: lines(row, 7)?,
        removed: lines(row, 8)?,
        failed: row.get(9)?,
        open: row.get(10)?,
    })
}

fn edits(row: &Row<'_>, index: usize) -> rusqlite::Result<bool> {
    Ok(row.get::<_, u8>(index)? == LineKind::Edits as u8)
}

fn lines(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<u64>> {
    let lines: Option<i64> = row.get(index)?;
    Ok(lines.map(|lines| lines.max(0).cast_unsigned()))
}
