//! Handles the signals that end the collector. It does so before the collector creates anything that must be removed at
//! the end.

use std::io;

use crossbeam_channel::{Receiver, bounded, select};
use tokio::sync::watch;

/// Whether the collector was told to end.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    asked: watch::Receiver<bool>,
    /// Closed when the collector is told to end.
    ended: Receiver<()>,
}

impl Stop {
    /// Listens for SIGTERM and SIGINT from now on.
    ///
    /// # Errors
    /// Returns the system's error if it gives no thread or no descriptor.
    pub(super) fn listen() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signal = {
            let _within = runtime.enter();
            signal()?
        };
        let (told, asked) = watch::channel(false);
        let (closing, ended) = bounded(0);
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            runtime.block_on(signal);
            told.send_replace(true);
            drop(closing);
        })?;
        Ok(Self { asked, ended })
    }

    /// Waits until the collector is told to end.
    pub(super) async fn asked(mut self) {
        if self.asked.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Runs `work` in a separate thread. Returns `None` if the collector was told to end first. `work` then continues
    /// until the process ends, which interrupts it like a kill; every part of the start can be interrupted in that way.
    ///
    /// # Errors
    ///
    /// Returns the system's error if it cannot start a thread, and [`io::ErrorKind::Other`] if `work` panics.
    pub(super) fn or<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Option<T>> {
        let (done, result) = bounded(1);
        std::thread::Builder::new().name("start".into()).spawn(move || {
            // The receiver is gone if the collector is ending.
            let _taken = done.send(work());
        })?;
        select! {
            recv(result) -> result => result.map(Some).map_err(|_| io::Error::other("the start had failed")),
            recv(self.ended) -> _ => Ok(None),
        }
    }
}

/// Ends at the first signal.
#[cfg(unix)]
fn signal() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn signal() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        let _came = interrupt.recv().await;
    })
}
