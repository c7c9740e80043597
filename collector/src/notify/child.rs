//! Starts and stops the process that sends notices.

use std::io::{self, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use crate::clock;
use crate::config::Global;

/// Maximum time that the process may take to end after its input is closed.
const GOODBYE: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(10);

/// The running process. It ends when its input is closed: when this value is dropped, or the collector is killed.
#[derive(Debug)]
pub(crate) struct Notifier {
    child: Child,
    input: Option<ChildStdin>,
}

impl Notifier {
    /// Starts the process. The process waits for [`Notifier::begin`].
    ///
    /// # Errors
    /// The program cannot be started.
    pub(crate) fn start(global: &Global) -> io::Result<Self> {
        let program = global.env.program().ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new(program);
        command.arg("--dir").arg(global.state.root());
        if let Some(file) = global.config_file.as_ref().filter(|file| file.exists()) {
            command.arg("--config").arg(file);
        }
        command.args(["notify", "run"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        Ok(Self { child, input })
    }

    /// Lets the process begin. Call this when the collector has opened the store.
    ///
    /// # Errors
    /// The process has ended.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        self.input.as_mut().map_or(Ok(()), |input| input.write_all(b"\n"))
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        drop(self.input.take());
        let started = clock::instant();
        while matches!(self.child.try_wait(), Ok(None)) {
            if started.elapsed() > GOODBYE {
                drop(self.child.kill());
                drop(self.child.wait());
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Waits for a program until `deadline`, then kills it. Returns whether it ended by itself, and well.
///
/// # Errors
/// The program cannot be waited for.
pub(super) fn wait_until(child: &mut Child, deadline: Instant) -> io::Result<Option<bool>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.success()));
        }
        if clock::instant() >= deadline {
            drop(child.kill());
            drop(child.wait());
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}
