//! Takes over spill files: hooks that shims wrote to the run-time directory because the state directory did not accept
//! them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Follower;
use super::held::Role;
use crate::disk;
use crate::journal::{JournalError, run_time};

impl Follower {
    /// Renames each spill file, so that shims create a new one, and follows the renamed file. If the file cannot be
    /// opened, the next round tries again.
    pub(super) fn take_spill(&mut self, now: Instant) -> Result<(), JournalError> {
        let mut done = Ok(());
        for spill in self.spills.clone() {
            done = self.take_one_spill(&spill).and(done);
        }
        done?;
        if self.spills_unheld {
            self.hold_spills(now)?;
            self.spills_unheld = false;
        }
        self.spills_seen = Some(now);
        Ok(())
    }

    fn take_one_spill(&mut self, spill: &Path) -> Result<(), JournalError> {
        let fail = |action| JournalError::of(action, spill);
        if disk::regular(spill).map_err(fail("look at"))?.is_none()
            || !run_time::is_ours(spill).map_err(fail("look at the folder of"))?
        {
            return Ok(());
        }
        let taken = free_name(spill).map_err(fail("look beside"))?;
        // Follow the file even if renaming reported an error: it may have been renamed all the same.
        self.spills_unheld = true;
        disk::rename(spill, &taken).map_err(fail("take over"))
    }

    /// Follows every numbered spill file. A file that cannot be opened does not block the others.
    fn hold_spills(&mut self, now: Instant) -> Result<(), JournalError> {
        let mut done = Ok(());
        for spill in self.spills.clone() {
            let beside = run_time::beside(&spill);
            let beside = beside.map_err(JournalError::of("list what lies beside", &spill));
            let beside = match beside {
                Ok(beside) => beside,
                Err(error) => {
                    done = Err(error);
                    continue;
                }
            };
            for path in beside.into_iter().filter(|path| path.extension().is_some()) {
                done = self.hold_spill(path, now).and(done);
            }
        }
        done
    }

    fn hold_spill(&mut self, path: PathBuf, now: Instant) -> Result<(), JournalError> {
        let found = disk::regular(&path).map_err(JournalError::of("look at", &path))?;
        if found.is_some_and(|identity| self.is_held(identity)) {
            return Ok(());
        }
        self.hold(path, Role::Spill, now)
    }
}

/// A name with an unused number.
fn free_name(spill: &Path) -> io::Result<PathBuf> {
    for number in 1_u32.. {
        let path = spill.with_extension(number.to_string());
        if disk::look_at(&path)?.is_none() {
            return Ok(path);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}
