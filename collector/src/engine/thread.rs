//! Runs the engine in a thread: takes batches one at a time, and keeps deadlines between them.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use hookspan_view::source::Deleted;

use super::{Batch, DeleteError, Engine, Horizon, Outcome, STRAGGLER_NS};
use crate::clock;
use crate::store::prune::Selection;
use crate::store::received::{Incoming, Limits, Taken};

/// Requests to the engine.
#[derive(Debug)]
pub(crate) enum Input {
    /// Commit a batch. If the program ends first, the sender of the answer is dropped.
    Batch(Batch, Option<Sender<Outcome>>),
    /// Move the write-ahead log into the database. The answer says whether all of it was moved.
    Checkpoint(Sender<bool>),
    /// Store a request of another program, completely or not at all. The answer comes when the request is on the disk,
    /// or has SQLite's error.
    Receive(Incoming, Limits, Sender<rusqlite::Result<Taken>>),
    /// Delete the selection. The answer comes when no file of the database holds any of it.
    Delete(Selection, Sender<Result<Deleted, DeleteError>>),
}

/// Maximum number of pages given back to the file system after a deletion. More would make hooks wait.
const GIVEN_BACK: u32 = 4_096;
/// Maximum wait for readers before truncating the write-ahead log.
const PATIENCE: Duration = Duration::from_secs(5);

/// After a delay this long, the reader must confirm that it has read everything up to now, because the delay may have
/// affected the reader as well.
const HELD_UP: Duration = Duration::from_nanos(STRAGGLER_NS.unsigned_abs());

/// Runs `engine` until every sender of `inputs` is gone. `look_again` asks the reader for another [`Horizon::End`].
///
/// # Errors
/// The system's error if no thread can be started.
pub(crate) fn spawn(
    mut engine: Engine,
    inputs: Receiver<Input>,
    look_again: impl Fn() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("engine".into()).spawn(move || {
        if let Err(stopped) = engine.restore().and_then(|()| engine.catch_up(|_, _| {})) {
            tracing::warn!(error = %stopped, "the collector stopped before it had read the stored hooks that are not folded yet");
            return;
        }
        if let Err(error) = engine.store.checkpoint_beside() {
            tracing::warn!(%error, "the write-ahead log is moved by the writer alone");
        }
        if let Err(error) = engine.store.starts(clock::now()) {
            tracing::warn!(%error, "the start is not noted");
        }
        run(&mut engine, &inputs, &look_again);
        if let Err(error) = engine.store.is_alive(clock::now()) {
            tracing::warn!(%error, "the end is not noted");
        }
        // Moves the write-ahead log into the database, so that a copy of the database file alone is complete.
        if let Err(error) = engine.store.checkpoint() {
            tracing::warn!(%error, "the write-ahead log could not be moved into the database");
        }
    })
}

/// What is known about input that the engine has not received yet.
#[derive(Clone, Copy, Default)]
struct Reader {
    /// The reader has read everything up to now.
    drained: bool,
    /// A long delay since `drained` was set makes it uncertain.
    held_up: bool,
}

impl Reader {
    /// Notes what a batch tells about the input behind it.
    fn heard(&mut self, batch: &Batch, look_again: &dyn Fn()) {
        // A batch of evidence tells nothing about other input.
        let is_reader =
            batch.position.is_some() || batch.horizon != Horizon::Still || batch.import.is_some();
        if is_reader {
            self.drained = batch.horizon.is_end();
        }
        if let Horizon::End(seen_at) = batch.horizon {
            self.held_up = false;
            if clock::now().since(seen_at) > STRAGGLER_NS {
                self.drained = false;
                look_again();
            }
        }
    }
}

fn run(engine: &mut Engine, inputs: &Receiver<Input>, look_again: &dyn Fn()) {
    let mut reader = Reader::default();
    loop {
        let due = if reader.drained { engine.due(clock::now()) } else { None };
        let patience = due.unwrap_or(Duration::from_secs(3_600));
        let asleep = Stretch::begin();
        let input = match inputs.recv_timeout(patience) {
            Ok(input) => input,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) if !reader.drained => continue,
            // This process was stopped or got no processor time, so there may be unread hooks.
            Err(RecvTimeoutError::Timeout) if reader.held_up || asleep.is_longer_than(patience) => {
                reader = Reader::default();
                look_again();
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {
                let work = Stretch::begin();
                if engine.pass(clock::now()).is_err() {
                    return;
                }
                reader.held_up |= work.is_held_up();
                continue;
            }
        };
        let work = Stretch::begin();
        match input {
            Input::Batch(batch, answer) => {
                reader.heard(&batch, look_again);
                let hooks = batch.arrivals.len();
                let taken =
                    tracing::info_span!("engine.batch", hooks).in_scope(|| engine.take(batch));
                let Ok(outcome) = taken else { return };
                if let Some(answer) = answer {
                    // The receiver may have gone.
                    let _sent = answer.send(outcome);
                }
            }
            Input::Delete(what, answer) => {
                let deleted = engine.delete(&what, PATIENCE);
                if let Err(error) = engine.store.give_back(GIVEN_BACK) {
                    tracing::warn!(%error, "the deleted data still takes up space on the disk");
                }
                let _sent = answer.send(deleted);
            }
            Input::Receive(incoming, limits, answer) => {
                let _sent = answer.send(engine.receive(&incoming, limits, clock::now()));
            }
            Input::Checkpoint(answer) => engine.store.ask_checkpoint(answer),
        }
        reader.held_up |= work.is_held_up();
    }
}

/// Measures how long something takes.
struct Stretch(Instant);

impl Stretch {
    fn begin() -> Self {
        Self(clock::instant())
    }

    fn is_held_up(&self) -> bool {
        self.is_longer_than(Duration::ZERO)
    }

    /// Whether it took longer than `expected`, by more than the time that a hook may be late.
    fn is_longer_than(&self, expected: Duration) -> bool {
        clock::instant().duration_since(self.0) > expected.saturating_add(HELD_UP)
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::{bounded, never};
    use hookspan_core::{Hook, Timestamp};
    use rusqlite::Connection;
    use serde_json::json;

    use super::super::Signals;
    use super::*;
    use crate::store::write::{Arrival, Preparer, Store};

    const SECOND: i64 = 1_000_000_000;

    /// An engine's thread with a database of its own, and the questions that it asks the reader.
    struct Running {
        temp: tempfile::TempDir,
        inputs: Sender<Input>,
        asked: Receiver<()>,
        thread: JoinHandle<()>,
    }

    impl Running {
        fn start() -> Self {
            let temp = tempfile::tempdir().unwrap();
            let store = Store::open(&temp.path().join("hookspan.db")).unwrap();
            let config = hookspan_core::Config::default();
            let engine = Engine::new(store, config, Signals::default(), never());
            let ((inputs, batches), (ask, asked)) = (bounded(4), bounded(4));
            let thread = spawn(engine, batches, move || {
                // Once is enough for a test.
                let _asked = ask.try_send(());
            })
            .unwrap();
            Self { temp, inputs, asked, thread }
        }

        fn db(&self) -> Connection {
            Connection::open(self.temp.path().join("hookspan.db")).unwrap()
        }

        fn send(&self, arrivals: Vec<Arrival>, seen_at: Timestamp) {
            let horizon = Horizon::End(seen_at);
            self.inputs
                .send(Input::Batch(Batch { arrivals, horizon, ..Batch::default() }, None))
                .unwrap();
        }

        #[track_caller]
        fn is_asked(&self) {
            self.asked.recv_timeout(Duration::from_secs(20)).expect("the reader is asked");
        }

        /// The time at which the root's turn settles: two seconds after it is over.
        fn settled(&self) -> i64 {
            self.db().query_row("SELECT count(*) FROM settled", [], |row| row.get(0)).unwrap()
        }

        #[track_caller]
        fn settles(self) {
            self.send(Vec::new(), clock::now());
            let started = clock::instant();
            while self.settled() == 0 {
                assert!(started.elapsed() < Duration::from_secs(20), "never settled");
                std::thread::sleep(Duration::from_millis(10));
            }
            drop(self.inputs);
            self.thread.join().unwrap();
        }
    }

    fn turn(at: Timestamp) -> Vec<Arrival> {
        let hook = |(number, name): (u8, &str)| {
            let body = json!({"hook_event_name": name, "conversation_id": "c", "generation_id": "g",
                              "prompt": "do it", "status": "completed"});
            let body = body.to_string().into_bytes();
            let hook = Hook { observed_at: at.plus(i64::from(number)), body, ..Hook::default() };
            Preparer::default().prepare([number; 16], 0, hook)
        };
        [(1, "beforeSubmitPrompt"), (2, "stop")].map(hook).into()
    }

    #[test]
    fn time_passes_to_where_the_reader_has_seen_and_not_to_where_a_batch_waited() {
        let running = Running::start();
        let an_hour_ago = clock::now().plus(-3_600 * SECOND);
        // When the reader reaches the end of the journal, the turn has been over for a second. The batch then waits for
        // an hour.
        running.send(turn(an_hour_ago), an_hour_ago.plus(SECOND));
        running.is_asked();
        // Waits much longer than the engine would wait for a deadline that has passed.
        std::thread::sleep(Duration::from_millis(400));
        assert_eq!(running.settled(), 0, "hooks of that hour may wait to be read");
        running.settles();
    }

    #[test]
    fn a_commit_that_was_held_up_is_no_sign_that_nothing_has_come_meanwhile() {
        let running = Running::start();
        // Waits until the engine has started.
        let (answer, taken) = bounded(1);
        running.inputs.send(Input::Batch(Batch::default(), Some(answer))).unwrap();
        taken.recv().unwrap();
        let db = running.db();
        db.execute_batch("BEGIN IMMEDIATE").unwrap();
        running.send(turn(clock::now()), clock::now());
        std::thread::sleep(Duration::from_millis(600));
        // A fast operation after the delay does not settle the turn either.
        let (answer, checkpointed) = bounded(1);
        running.inputs.send(Input::Checkpoint(answer)).unwrap();
        db.execute_batch("COMMIT").unwrap();
        running.is_asked();
        checkpointed.recv().unwrap();
        assert_eq!(running.settled(), 0);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(running.settled(), 0, "it waits for the answer");
        running.settles();
    }
}
