//! Uses Cursor's own database as evidence. The database tells for which call of which conversation a composer works.
//!
//! The file belongs to Cursor, is often in use, and is sometimes larger than memory. It is opened for one question,
//! read by key, and closed. If it is locked, damaged or of an unknown form, there is no answer, and this is counted.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hookspan_core::event::{Confidence, Evidence, LinkSource};

use super::usable;
use crate::clock;
use crate::store::cursor::{Database, Subagent};

/// Maximum number of questions to the file within [`WINDOW`].
const QUESTIONS_MAX: u32 = 30;
const WINDOW: Duration = Duration::from_secs(60);
/// After a refusal, the file is not opened again for this long.
const REST: Duration = Duration::from_secs(10);
/// Maximum length of a call id that is used.
const LONGEST_CALL: usize = 512;

/// Cursor's database, and the limit on how often it is read.
#[derive(Debug)]
pub(crate) struct CursorStore {
    path: PathBuf,
    window: Option<Instant>,
    asked: u32,
    rests_until: Option<Instant>,
}

impl CursorStore {
    /// The database at `path`. The file need not exist.
    #[must_use]
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path, window: None, asked: 0, rests_until: None }
    }

    /// What the database tells about those `children` whose relation to `parent` is not known yet. `knows` tells
    /// whether a conversation is known to have made a call.
    pub(super) fn look(
        &mut self,
        parent: &str,
        children: &[&str],
        knows: impl Fn(&str, &str) -> bool,
        counts: &mut Vec<(&'static str, u64)>,
    ) -> Vec<Evidence> {
        let children: Vec<&str> = children.iter().copied().filter(|child| usable(child)).collect();
        if children.is_empty() || !self.path.is_file() {
            return Vec::new();
        }
        if !self.may_ask(clock::instant()) {
            counts.push(("evidence_store_skipped", 1));
            return Vec::new();
        }
        let read = Database::open(&self.path).and_then(|mut database| {
            let told = told(&mut database, parent, &children)?;
            Ok((told, database.too_large()))
        });
        match read {
            Ok((told, too_large)) => {
                let found: Vec<Evidence> =
                    told.iter().filter_map(|(child, said)| evidence(child, said, &knows)).collect();
                let counted = [
                    ("evidence_store", found.len() as u64),
                    ("evidence_store_too_large", too_large),
                ];
                counts.extend(counted.into_iter().filter(|(_, count)| *count > 0));
                found
            }
            Err(error) => {
                // Logged at debug level: the file belongs to Cursor, and we cannot repair it.
                tracing::debug!(%error, "Cursor's database does not answer");
                counts.push(("evidence_store_failed", 1));
                self.rests_until = clock::instant().checked_add(REST);
                Vec::new()
            }
        }
    }

    /// Whether the database may be asked now. If so, counts the question.
    fn may_ask(&mut self, now: Instant) -> bool {
        if self.rests_until.is_some_and(|until| now < until) {
            return false;
        }
        if self.window.is_none_or(|start| now.duration_since(start) >= WINDOW) {
            self.window = Some(now);
            self.asked = 0;
        }
        self.asked += 1;
        self.asked <= QUESTIONS_MAX
    }
}

/// What the database tells about each child: from the child's own row, otherwise from its parent's list of children.
fn told<'a>(
    database: &mut Database,
    parent: &str,
    children: &[&'a str],
) -> rusqlite::Result<Vec<(&'a str, Subagent)>> {
    let mut told = Vec::new();
    let mut rest = Vec::new();
    for child in children {
        match database.subagent(child)? {
            Some(said) => told.push((*child, said)),
            None => rest.push(*child),
        }
    }
    if !rest.is_empty() {
        let listed = database.listed(&rest)?;
        rest.retain(|child| !listed.iter().any(|(id, _)| id == child));
        told.extend(listed.into_iter().filter_map(|(id, said)| {
            children.iter().find(|child| **child == id).map(|child| (*child, said))
        }));
    }
    if !rest.is_empty() && usable(parent) {
        let below = database.children(parent)?;
        told.extend(
            rest.into_iter()
                .filter(|child| below.iter().any(|id| id == child))
                .map(|child| (child, Subagent { parent: parent.to_owned(), calls: Vec::new() })),
        );
    }
    Ok(told)
}

/// If no hook shows that the parent made the call, the evidence names only the parent.
fn evidence(child: &str, said: &Subagent, knows: impl Fn(&str, &str) -> bool) -> Option<Evidence> {
    if !usable(&said.parent) || said.parent == child {
        return None;
    }
    let plausible = |call: &&String| !call.is_empty() && call.len() <= LONGEST_CALL;
    let call = said.calls.iter().filter(plausible).find(|call| knows(&said.parent, call));
    Some(Evidence {
        child: child.to_owned(),
        parent: said.parent.clone(),
        call: call.cloned(),
        confidence: Confidence::Exact,
        source: LinkSource::Store,
    })
}
