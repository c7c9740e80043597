//! How the reader sleeps. Shims do not wake the reader, because that would cost them more than all their other work.
//!
//! While hooks arrive, the reader polls every few milliseconds. After a second without hooks, it asks the kernel for a
//! notification. Only the first shim that writes again then needs a little more time.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Ends the current or the next [`super::Follower::wait`], from another thread.
#[derive(Clone, Debug)]
pub(crate) struct Waker(Arc<imp::Bell>);

impl Waker {
    /// Ends the wait.
    pub(crate) fn wake(&self) {
        self.0.ring();
    }
}

/// The sleeping side.
#[derive(Debug)]
pub(super) struct Sleeper {
    bell: Arc<imp::Bell>,
    watch: imp::Watch,
}

impl Sleeper {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { bell: Arc::new(imp::Bell::new()?), watch: imp::Watch::new() })
    }

    pub(super) fn waker(&self) -> Waker {
        Waker(self.bell.clone())
    }

    /// Sleeps until the bell rings.
    pub(super) fn sleep(&mut self, at_most: Duration) {
        self.watch.stop();
        self.bell.wait(None, at_most);
    }

    /// Starts to watch a file for changes and folders for new names. Read the file once more after this and before
    /// [`Sleeper::sleep_watching`]. Returns whether the file can be watched.
    pub(super) fn watch(&mut self, file: &Path, folders: &[&Path]) -> bool {
        self.watch.start(file, folders)
    }

    /// Sleeps until the file or a folder changes, or the bell rings.
    pub(super) fn sleep_watching(&mut self, at_most: Duration) {
        self.bell.wait(Some(&self.watch), at_most);
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::time::Duration;

    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

    #[derive(Debug)]
    pub(super) struct Bell(OwnedFd);

    impl Bell {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
        }

        pub(super) fn ring(&self) {
            // If the channel is full, the bell is ringing already.
            let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
        }

        pub(super) fn wait(&self, watch: Option<&Watch>, at_most: Duration) {
            let bell = PollFd::new(&self.0, PollFlags::IN);
            let inotify = watch.and_then(|watch| watch.inotify.as_ref());
            let watched = inotify.map(|inotify| PollFd::new(inotify, PollFlags::IN));
            let mut both = [bell.clone(), watched.unwrap_or(bell)];
            let timeout = Timespec::try_from(at_most).ok();
            // A signal ends the wait early. That is harmless.
            if poll(&mut both, timeout.as_ref()).is_ok() {
                let _ = rustix::io::read(&self.0, &mut [0; 8]);
            }
        }
    }

    /// If no inotify instance is left (128 per account by default), the caller continues to poll.
    #[derive(Debug)]
    pub(super) struct Watch {
        inotify: Option<OwnedFd>,
        watched: Vec<i32>,
    }

    impl Watch {
        pub(super) fn new() -> Self {
            Self { inotify: init(), watched: Vec::new() }
        }

        pub(super) fn start(&mut self, file: &Path, folders: &[&Path]) -> bool {
            self.stop();
            if self.inotify.is_none() {
                self.inotify = init();
            }
            let Some(inotify) = &self.inotify else { return false };
            let changes = WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::MOVE_SELF;
            let names = WatchFlags::CREATE | WatchFlags::MOVED_TO;
            let file = inotify::add_watch(inotify, file, changes).ok();
            let folders = folders.iter().map(|folder| inotify::add_watch(inotify, *folder, names));
            self.watched.extend(file.into_iter().chain(folders.flatten()));
            file.is_some()
        }

        pub(super) fn stop(&mut self) {
            if self.watched.is_empty() {
                return;
            }
            let Some(inotify) = &self.inotify else { return };
            for watched in self.watched.drain(..) {
                let _ = inotify::remove_watch(inotify, watched);
            }
            while rustix::io::read(inotify, &mut [0; 4_096]).is_ok_and(|read| read > 0) {}
        }
    }

    fn init() -> Option<OwnedFd> {
        inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod imp {
    use std::io;
    use std::path::Path;
    use std::sync::{Condvar, Mutex, PoisonError};
    use std::time::Duration;

    #[derive(Debug, Default)]
    pub(super) struct Bell {
        ringing: Mutex<bool>,
        rung: Condvar,
    }

    impl Bell {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self::default())
        }

        pub(super) fn ring(&self) {
            *self.ringing.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.rung.notify_all();
        }

        pub(super) fn wait(&self, _: Option<&Watch>, at_most: Duration) {
            let ringing = self.ringing.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.rung.wait_timeout_while(ringing, at_most, |ringing| !*ringing);
            *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
        }
    }

    /// On this system there are no notifications, so the caller continues to poll.
    #[derive(Debug)]
    pub(super) struct Watch;

    impl Watch {
        pub(super) fn new() -> Self {
            Self
        }

        pub(super) fn start(&mut self, _: &Path, _: &[&Path]) -> bool {
            false
        }

        pub(super) fn stop(&mut self) {}
    }
}
