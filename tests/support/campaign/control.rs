//! The negative control of a kill: the same senders, an unacknowledged stream socket, and a reader that is killed.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};

use crate::world::World;

/// A reader at the end of a socket, and every message that was sent to it.
#[derive(Debug)]
pub struct Control {
    file: PathBuf,
    channel: Mutex<Channel>,
    accepted: AtomicU64,
}

#[derive(Debug)]
struct Channel {
    sender: UnixStream,
    reader: Child,
}

impl Control {
    /// A reader that writes every received line to a file.
    #[must_use]
    pub fn start(world: &World) -> Self {
        let file = world.scratch("received-by-socket");
        File::create(&file).unwrap();
        let channel = Mutex::new(channel(&file));
        Self { file, channel, accepted: AtomicU64::new(0) }
    }

    /// Sends one message. The sender learns what a hook would learn: the write succeeded.
    pub fn send(&self, number: u64) {
        let line = format!("{number} {:0298}\n", 0);
        let mut channel = self.channel.lock().unwrap();
        if channel.sender.write_all(line.as_bytes()).is_ok() {
            self.accepted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Keeps the reader busy with something else for a moment, as happens to any reader.
    pub fn distract(&self) {
        let channel = self.channel.lock().unwrap();
        kill_process(Pid::from_child(&channel.reader), Signal::STOP).unwrap();
    }

    /// Kills the reader and starts another.
    pub fn kill(&self) {
        let mut held = self.channel.lock().unwrap();
        held.reader.kill().unwrap();
        held.reader.wait().unwrap();
        *held = channel(&self.file);
    }

    /// Messages sent and lost.
    #[must_use]
    pub fn end(self) -> (u64, u64) {
        let Channel { sender, mut reader } = self.channel.into_inner().unwrap();
        drop(sender);
        reader.wait().unwrap();
        let text = fs::read(&self.file).unwrap();
        let received = text.split(|byte| *byte == b'\n').filter(|line| line.len() > 200).count();
        let sent = self.accepted.into_inner();
        (sent, sent.saturating_sub(received as u64))
    }
}

fn channel(file: &PathBuf) -> Channel {
    let (sender, end) = UnixStream::pair().unwrap();
    sender.set_write_timeout(Some(std::time::Duration::from_millis(5))).unwrap();
    let reader = Command::new("cat")
        .stdin(Stdio::from(OwnedFd::from(end)))
        .stdout(File::options().append(true).open(file).unwrap())
        .spawn()
        .unwrap();
    Channel { sender, reader }
}
