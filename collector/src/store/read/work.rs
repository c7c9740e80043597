//! Reads what turns did during a period, by project.

use std::collections::{BTreeMap, BTreeSet};

use hookspan_core::Tokens;
use hookspan_core::price::Usage;
use hookspan_view::source::ProjectWork;
use rusqlite::{Connection, Row};

use crate::store::rows::count;

/// Number of characters that identify a commit. A command's output abbreviates the name.
const COMMIT_CHARS: usize = 7;

/// Sums of a project while its turns are read.
#[derive(Default)]
struct Sum {
    work: ProjectWork,
    sessions: BTreeSet<i64>,
    commits: BTreeSet<String>,
    pull_requests: BTreeSet<String>,
    usage: BTreeMap<Option<String>, Usage>,
}

/// What finished turns did that began between two times, nanoseconds since the epoch, by project.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn work(db: &Connection, between: (i64, i64)) -> rusqlite::Result<Vec<ProjectWork>> {
    // Sessions without activity since the first time have no such turn, so the index on the last activity skips most of
    // the table.
    let mut statement = db.prepare_cached(
        "SELECT s.project, s.root, t.edits, t.tests_passed, t.tests_failed, t.commits,
                t.pull_request, t.model, t.input, t.output, t.cache_read, t.cache_write
         FROM session s CROSS JOIN turn t ON t.root = s.root
         WHERE s.last_ns >= ?1 AND s.surface <> 'tab'
           AND t.started_ns BETWEEN ?1 AND ?2 AND t.ended_ns IS NOT NULL",
    )?;
    let mut projects: BTreeMap<Option<String>, Sum> = BTreeMap::new();
    let mut found = statement.query(between)?;
    while let Some(row) = found.next()? {
        let project: Option<String> = row.get(0)?;
        projects.entry(project.filter(|name| !name.is_empty())).or_default().add(row)?;
    }
    Ok(projects.into_iter().map(|(project, sum)| sum.done(project)).collect())
}

impl Sum {
    fn add(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        self.sessions.insert(row.get(1)?);
        self.work.edits += count(row, 2)?;
        self.work.tests_passed += count(row, 3)?;
        self.work.tests_failed += count(row, 4)?;
        let commits: Option<String> = row.get(5)?;
        let commits = commits.unwrap_or_default();
        let short = |commit: &str| commit.chars().take(COMMIT_CHARS).collect();
        self.commits.extend(commits.split_whitespace().map(short));
        self.pull_requests.extend(row.get::<_, Option<String>>(6)?);
        let said = |index| {
            let count: Option<i64> = row.get(index)?;
            Ok::<Option<u64>, rusqlite::Error>(count.map(|count| count.max(0).cast_unsigned()))
        };
        let tokens = Tokens {
            input: said(8)?,
            output: said(9)?,
            cache_read: said(10)?,
            cache_write: said(11)?,
        };
        if tokens.input.is_some() || tokens.output.is_some() {
            let used = Usage::from(tokens);
            let sum = self.usage.entry(row.get(7)?).or_default();
            sum.input = sum.input.saturating_add(used.input);
            sum.output = sum.output.saturating_add(used.output);
            sum.cache_read = sum.cache_read.saturating_add(used.cache_read);
            sum.cache_write = sum.cache_write.saturating_add(used.cache_write);
        }
        Ok(())
    }

    fn done(self, project: Option<String>) -> ProjectWork {
        ProjectWork {
            project,
            sessions: self.sessions.len() as u64,
            commits: self.commits.len() as u64,
            pull_requests: self.pull_requests.len() as u64,
            usage: self.usage.into_iter().collect(),
            ..self.work
        }
    }
}
