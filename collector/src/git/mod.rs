//! Finds the branch and commit of a workspace when a turn begins and ends, and the commits made in between. A thread
//! that nothing waits for reads them from the files of the repository. Git itself is not run.
//!
//! What was seen is stored as a hook of its own, so that a rebuild reads no repository again.

mod address;
mod reflog;
mod repository;
#[cfg(unix)]
#[cfg(test)]
mod tests;
mod watch;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender};
use hookspan_core::repository::{MAX_COMMITS, RepositoryState};
use hookspan_core::{Hook, HookSource};
use sha2::{Digest as _, Sha256};

use crate::engine::{Batch, Input};
use crate::store::write::{Arrival, Preparer};

pub(crate) use watch::{Look, Watch};

/// Maximum number of waiting looks. Further ones are dropped and counted.
pub(crate) const LOOKS: usize = 256;

/// Counts looks at repositories that were dropped because too many were waiting.
pub(crate) const SKIPPED: &str = "repository_skipped";

/// The channel to the engine. It is taken away when the collector ends.
pub(crate) type Door = Arc<Mutex<Option<Sender<Input>>>>;

/// Looks at repositories until every [`Watch`] is gone or `inputs` is closed. Nobody waits for this thread, because a
/// file system that hangs must not keep the collector from ending.
///
/// # Errors
///
/// The system cannot start a thread.
pub(crate) fn spawn(looks: Receiver<Look>, inputs: Door) -> std::io::Result<()> {
    let run = move || {
        let mut preparer = Preparer::default();
        for look in looks {
            let Some(arrival) = answer(&look, &mut preparer) else { continue };
            let batch = Batch { arrivals: vec![arrival], ..Batch::default() };
            // The lock is held only while the channel is copied, and not while the engine is busy.
            let engine = inputs.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if engine.is_none_or(|engine| engine.send(Input::Batch(batch, None)).is_err()) {
                return;
            }
        }
    };
    std::thread::Builder::new().name("git".into()).spawn(run).map(drop)
}

/// Makes a hook for the raw log from the result of a look. The same look always gives the same id.
#[must_use]
pub(crate) fn answer(look: &Look, preparer: &mut Preparer) -> Option<Arrival> {
    let since = look.since.map(|at| at.0.div_euclid(1_000_000_000));
    let mut state = repository::look(Path::new(&*look.folder), since).unwrap_or_default();
    for root in &look.others {
        // Their first commit is not known, so commits of the second in which the turn began are left out.
        let made = repository::commits(Path::new(root), since? + 1);
        let new = made.into_iter().filter(|commit| !state.commits.contains(commit));
        let new: Vec<_> = new.take(MAX_COMMITS.saturating_sub(state.commits.len())).collect();
        state.commits.extend(new);
    }
    if state == RepositoryState::default() {
        return None;
    }
    let body = state.to_body(&look.occasion);
    let digest = Sha256::digest(&body);
    let hook = Hook {
        observed_at: look.occasion.at,
        boottime_ns: look.occasion.boottime_ns,
        source: HookSource::Evidence,
        body,
        ..Hook::default()
    };
    Some(preparer.prepare(std::array::from_fn(|at| digest[at]), 0, hook))
}
