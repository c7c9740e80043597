//! The engine as a thread: batches in, one at a time, and the deadlines between them.

use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use hookspan_dashboard::source::Deleted;

use super::{Batch, Engine, Horizon, Outcome};
use crate::clock;

/// What the engine is asked to do.
#[derive(Debug)]
pub enum Input {
    /// Commit a batch. The answer is dropped without a word when it could not be committed before the end.
    Batch(Batch, Option<Sender<Outcome>>),
    /// Move the write-ahead log into the database; answers whether all of it is there.
    Checkpoint(Sender<bool>),
    /// Delete the sessions with these roots; answers when nothing of them is in the database's files.
    Delete(Vec<String>, Sender<Result<Deleted, String>>),
}

/// Pages given back to the file system after a deletion, at most: hooks are waiting.
const GIVEN_BACK: u32 = 4_096;
/// How long readers may be in the way of cutting the write-ahead log.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs `engine` until every sender of `inputs` is gone.
///
/// # Errors
/// When the system gives no thread.
pub fn spawn(mut engine: Engine, inputs: Receiver<Input>) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("engine".into()).spawn(move || {
        if let Err(stopped) = engine.restore().and_then(|()| engine.catch_up(|_, _| {})) {
            tracing::warn!(error = %stopped, "the collector ends before its history was read");
            return;
        }
        if let Err(error) = engine.store.checkpoint_beside() {
            tracing::warn!(%error, "the write-ahead log is moved by the writer alone");
        }
        if let Err(error) = engine.store.starts(clock::now()) {
            tracing::warn!(%error, "the start is not noted");
        }
        run(&mut engine, &inputs);
        if let Err(error) = engine.store.is_alive(clock::now()) {
            tracing::warn!(%error, "the end is not noted");
        }
        // The write-ahead log goes into the database, so that a copy of that file alone is whole.
        if let Err(error) = engine.store.checkpoint() {
            tracing::warn!(%error, "the write-ahead log stays");
        }
    })
}

fn run(engine: &mut Engine, inputs: &Receiver<Input>) {
    // Whether all input up to now has been seen.
    let mut drained = false;
    loop {
        let due = if drained { engine.due(clock::now()) } else { None };
        let input = match inputs.recv_timeout(due.unwrap_or(Duration::from_secs(3_600))) {
            Ok(input) => input,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                if drained && engine.pass(clock::now()).is_err() {
                    return;
                }
                continue;
            }
        };
        match input {
            Input::Batch(batch, answer) => {
                // Evidence says nothing about what else is on its way.
                let is_reader = batch.position.is_some()
                    || batch.horizon != Horizon::Still
                    || batch.import.is_some();
                if is_reader {
                    drained = batch.horizon == Horizon::Now;
                }
                let hooks = batch.arrivals.len();
                let taken =
                    tracing::info_span!("engine.batch", hooks).in_scope(|| engine.take(batch));
                let Ok(outcome) = taken else { return };
                if let Some(answer) = answer {
                    // Whoever asked may have gone.
                    let _sent = answer.send(outcome);
                }
            }
            Input::Delete(roots, answer) => {
                let deleted = engine.delete(&roots, PATIENCE);
                if let Err(error) = engine.store.give_back(GIVEN_BACK) {
                    tracing::warn!(%error, "what was deleted still takes its place on the disk");
                }
                let _sent = answer.send(deleted);
            }
            Input::Checkpoint(answer) => engine.store.ask_checkpoint(answer),
        }
    }
}
