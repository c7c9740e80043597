//! Syncs segments beside the reading: a disk that takes its time delays the position, never the hooks.

use std::fs::File;
use std::io;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::assemble::SegmentId;
use super::wait::Waker;

/// What is to be synced, or was.
#[derive(Debug)]
pub(super) struct Request<T> {
    pub id: SegmentId,
    /// Length of the file when it was asked for.
    pub len: u64,
    /// How far it had been read then: a boundary between frames.
    pub read: u64,
    /// The file, then what came of it.
    pub what: T,
}

/// The thread that syncs. The follower has at most one request per segment under way, so the queues are short.
#[derive(Debug)]
pub(super) struct Syncer {
    requests: Sender<Request<File>>,
    answers: Receiver<Request<io::Result<()>>>,
}

impl Syncer {
    /// Starts it; it ends with the last [`Syncer`]. `waker` is rung for every answer.
    pub(super) fn start(waker: Waker) -> io::Result<Self> {
        let (requests, asked) = unbounded::<Request<File>>();
        let (answer, answers) = unbounded();
        std::thread::Builder::new().name("sync".into()).spawn(move || {
            for Request { id, len, read, what } in asked {
                let answered = answer.send(Request { id, len, read, what: what.sync_data() });
                if answered.is_err() {
                    return;
                }
                waker.wake();
            }
        })?;
        Ok(Self { requests, answers })
    }

    /// Asks; false when the thread is gone, which it is only when it panicked.
    pub(super) fn ask(&self, sync: Request<File>) -> bool {
        self.requests.send(sync).is_ok()
    }

    /// An answer, if there is one.
    pub(super) fn answer(&self) -> Option<Request<io::Result<()>>> {
        self.answers.try_recv().ok()
    }
}
