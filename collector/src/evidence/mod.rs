//! Looks on disk for proof of a child conversation's parent: first in transcript folders, which cost less, then in
//! Cursor's own database. Both are only read, within limits, by a thread that nothing waits for.
//!
//! A result is stored as a hook of its own, so that a rebuild does not need the disk again.

mod cursor;
mod transcripts;

#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, select};
use hookspan_core::event::Evidence;
use hookspan_core::sessions::Question;
use hookspan_core::{Hook, HookSource};
use sha2::{Digest as _, Sha256};

pub(crate) use cursor::CursorStore;

use crate::clock;
use crate::engine::{Batch, Input};
use crate::store::open::Readers;
use crate::store::write::Arrival;
use crate::store::write::Preparer;

/// Maximum length of a conversation id that is searched for.
const LONGEST_ID: usize = 128;

/// Answers questions until `stop` is closed. Also reads Cursor's database, if `cursor` is set.
///
/// # Errors
///
/// The system cannot start a thread.
pub(crate) fn spawn(
    readers: Readers,
    mut cursor: Option<CursorStore>,
    questions: Receiver<Question>,
    inputs: Sender<Input>,
    stop: Receiver<()>,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("evidence".into()).spawn(move || {
        loop {
            let question = select! {
                recv(questions) -> question => question,
                recv(stop) -> _ => return,
            };
            let Ok(question) = question else { return };
            let Found { arrivals, counts } = answer(&readers, cursor.as_mut(), &question);
            let batch = Batch { arrivals, counts, ..Batch::default() };
            let empty = batch.arrivals.is_empty() && batch.counts.is_empty();
            if !empty && inputs.send(Input::Batch(batch, None)).is_err() {
                return;
            }
        }
    })
}

/// Answers, and what is counted about them.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Hooks for the raw log.
    pub arrivals: Vec<Arrival>,
    /// Counters: `evidence_transcript`, `evidence_store`, and the reasons for which Cursor's database gave no answer.
    pub counts: Vec<(&'static str, u64)>,
}

/// Evidence for `question`. The same evidence always has the same id.
#[must_use]
pub(crate) fn answer(
    readers: &Readers,
    cursor: Option<&mut CursorStore>,
    question: &Question,
) -> Found {
    let tasks = OnceCell::new();
    let tasks = || &**tasks.get_or_init(|| transcripts::tasks(readers, &question.parent));
    let mut evidence = transcripts::look(question, tasks);
    let mut counts = Vec::new();
    if !evidence.is_empty() {
        counts.push(("evidence_transcript", evidence.len() as u64));
    }
    let named = |child: &str| evidence.iter().any(|e| e.child == child && e.call.is_some());
    let open: Vec<&str> =
        question.candidates.iter().map(AsRef::as_ref).filter(|child| !named(child)).collect();
    if let Some(cursor) = cursor.filter(|_| !open.is_empty()) {
        let knows = |parent: &str, call: &str| {
            let asked = *parent == *question.parent;
            let known = |tasks: &[transcripts::Task]| tasks.iter().any(|task| task.call == call);
            if asked { known(tasks()) } else { known(&transcripts::tasks(readers, parent)) }
        };
        let told = cursor.look(&question.parent, &open, knows, &mut counts);
        evidence.extend(told);
    }
    let mut preparer = Preparer::default();
    let arrivals = evidence.iter().map(|evidence| arrival(evidence, &mut preparer)).collect();
    Found { arrivals, counts }
}

fn arrival(evidence: &Evidence, preparer: &mut Preparer) -> Arrival {
    let body = evidence.to_body();
    let digest = Sha256::digest(&body);
    let id = std::array::from_fn(|at| digest[at]);
    let (observed_at, source) = (clock::now(), HookSource::Evidence);
    let hook = Hook { observed_at, source, body, ..Hook::default() };
    preparer.prepare(id, 0, hook)
}

/// Whether a conversation id is safe to search for: it contains no path and no markup, and is not too long.
fn usable(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !id.is_empty() && id.len() <= LONGEST_ID && id.bytes().all(plain)
}
