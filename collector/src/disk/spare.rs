//! Keeps spare file descriptors for storing hooks.
//!
//! Hooks must be stored even if connections use up all descriptors. So the collector keeps a few unused descriptors
//! open. If an operation fails because no descriptor is left, the spare ones are closed, the operation is repeated, and
//! as many spare ones as possible are opened again.

use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of spare descriptors. A roll needs two at once, reopening the database needs three.
const KEPT: usize = 8;
/// Number of spare descriptors closed for one operation. Another thread may take a freed descriptor before the
/// operation does.
const TRIES: usize = 3;

static SPARE: Mutex<Spare> = Mutex::new(Spare { wanted: 0, held: Vec::new() });

struct Spare {
    wanted: usize,
    held: Vec<File>,
}

/// Opens the spare descriptors, which are kept until the process ends.
pub(crate) fn keep() {
    let mut spare = spare();
    spare.wanted = KEPT;
    spare.fill();
}

/// Opens the spare descriptors again that were used. Cheap if none was used.
pub(crate) fn refill() {
    spare().fill();
}

/// Runs `work` while the spare descriptors are closed, so that `work` can use them.
pub(crate) fn lend<T>(work: impl FnOnce() -> T) -> T {
    spare().held.clear();
    let done = work();
    refill();
    done
}

/// Runs `work`. If no descriptor is left, repeats it with the spare descriptors closed.
pub(super) fn retried<T>(mut work: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut done = work();
    for _ in 0..TRIES {
        if !done.as_ref().is_err_and(has_no_descriptor) || spare().held.is_empty() {
            break;
        }
        done = lend(&mut work);
    }
    done
}

/// Whether the process (`EMFILE`) or the system (`ENFILE`) has no descriptor left.
#[cfg(unix)]
fn has_no_descriptor(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].iter().any(|none| code == Some(none.raw_os_error()))
}

#[cfg(not(unix))]
fn has_no_descriptor(_: &io::Error) -> bool {
    false
}

fn spare() -> MutexGuard<'static, Spare> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Spare {
    fn fill(&mut self) {
        while self.held.len() < self.wanted {
            let Ok(file) = File::open(if cfg!(windows) { "NUL" } else { "/dev/null" }) else {
                return;
            };
            self.held.push(file);
        }
    }
}
