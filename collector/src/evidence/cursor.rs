//! Cursor's own database as evidence: which call of which conversation a composer works for.
//!
//! The file is Cursor's, often in use and sometimes larger than memory. It is opened for a question, read by key, and closed;
//! a lock, damage or a form that is not known costs that answer and is counted.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hookspan_core::event::{Confidence, Evidence, LinkSource};

use super::usable;
use crate::clock;
use crate::store::cursor::{Database, Subagent};

/// Questions that may be put to the file within [`WINDOW`].
const QUESTIONS_MAX: u32 = 30;
const WINDOW: Duration = Duration::from_secs(60);
/// After a refusal it is left alone for as long.
const REST: Duration = Duration::from_secs(10);
/// Longest call id that is taken over.
const LONGEST_CALL: usize = 512;

/// Cursor's database, and how often it may be asked.
#[derive(Debug)]
pub(crate) struct CursorStore {
    path: PathBuf,
    window: Option<Instant>,
    asked: u32,
    rests_until: Option<Instant>,
}

impl CursorStore {
    /// The database at `path`, which need not be there.
    #[must_use]
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path, window: None, asked: 0, rests_until: None }
    }

    /// What the database says about `children`, of which it is not known what `parent` has to do with them. `knows` tells
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
                // Warn rarely: the file is Cursor's, and we cannot repair it.
                tracing::debug!(%error, "Cursor's database does not answer");
                counts.push(("evidence_store_failed", 1));
                self.rests_until = clock::instant().checked_add(REST);
                Vec::new()
            }
        }
    }

    /// Whether now is a time to ask, and if so, counts it.
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

/// What the database says about each child, by its own row first, and then by what `parent` says of its children.
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

/// If no hook shows that the parent made the call, only the parent is reported, without the call.
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
