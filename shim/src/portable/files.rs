//! The files that the portable program writes to.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

pub(super) use system::{File, append, size};

use crate::program::{ELOOP, JOURNAL_MAX_BYTES, Place};

/// The state directory, and the other directories that the environment names.
#[derive(Default)]
#[cfg_attr(not(unix), expect(dead_code, reason = "only the directory matters there"))]
pub(super) struct State {
    pub(super) dir: PathBuf,
    /// The home directory, if the state directory's path comes from it alone.
    pub(super) home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`, or empty.
    pub(super) run_time_dir: OsString,
    /// `PWD`: where a relative `dir` starts.
    pub(super) working_dir: OsString,
}

impl State {
    /// The directory from the command line, else the one from the environment.
    pub(super) fn find(dir: Option<OsString>) -> Option<Self> {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let named = dir.map(PathBuf::from).or_else(|| set("HOOKSPAN_DIR")).or_else(|| {
            let base = if cfg!(windows) {
                set("LOCALAPPDATA")
            } else if cfg!(target_os = "macos") {
                None
            } else {
                set("XDG_STATE_HOME").filter(|base| base.is_absolute())
            };
            base.map(|base| base.join("hookspan"))
        });
        let variable = |name| env::var_os(name).unwrap_or_default();
        let (run_time_dir, working_dir) = (variable("XDG_RUNTIME_DIR"), variable("PWD"));
        if let Some(dir) = named {
            return Some(Self { dir, home: None, run_time_dir, working_dir });
        }
        let home = set("HOME").filter(|_| !cfg!(windows))?;
        let below = if cfg!(target_os = "macos") {
            "Library/Application Support/hookspan"
        } else {
            ".local/state/hookspan"
        };
        Some(Self { dir: home.join(below), home: Some(home), run_time_dir, working_dir })
    }

    /// Opens a file for appending. Creates what is missing.
    ///
    /// # Errors
    ///
    /// The error number of the operating system.
    pub(super) fn open(&self, place: Place) -> Result<File, u32> {
        let usual = (place == Place::Journal).then(|| self.open_journal()).flatten();
        let file = match usual {
            Some(journal) => journal,
            None => self.fall_back(place)?,
        };
        // This system cannot exchange the journal with a link in one step, so every hook checks the journal's size.
        let is_full =
            place == Place::Journal && size(&file).is_some_and(|bytes| bytes > JOURNAL_MAX_BYTES);
        if is_full { Err(ELOOP) } else { Ok(file) }
    }
}

/// Uses rustix and not std, because [`crate::fallback`] needs rustix's descriptors.
#[cfg(unix)]
mod system {
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::{Mode, fstat, open};
    use rustix::io::{Errno, write};

    use super::State;
    use crate::fallback::{self, Places};
    use crate::program::Place;

    pub(in super::super) type File = rustix::fd::OwnedFd;

    impl State {
        /// Opens the journal in the usual case: it exists and is ours.
        pub(super) fn open_journal(&self) -> Option<File> {
            let path = self.dir.join("journal");
            let journal =
                open(path.as_os_str().as_bytes(), fallback::APPEND, Mode::empty()).ok()?;
            fallback::must_be_ours(&fstat(&journal).ok()?).ok()?;
            Some(journal)
        }

        /// All other cases: see [`crate::fallback`].
        pub(super) fn fall_back(&self, place: Place) -> Result<File, u32> {
            let places = Places {
                state_dir: self.dir.as_os_str().as_bytes(),
                home_bytes: self.home.as_ref().map_or(0, |home| home.as_os_str().len()),
                run_time_dir: self.run_time_dir.as_bytes(),
                working_dir: self.working_dir.as_bytes(),
            };
            places.open(place).map_err(number)
        }
    }

    pub(in super::super) fn append(file: &File, bytes: &[u8]) -> Result<usize, u32> {
        loop {
            match write(file, bytes) {
                Err(Errno::INTR) => {}
                result => return result.map_err(number),
            }
        }
    }

    pub(in super::super) fn size(file: &File) -> Option<u64> {
        fstat(file).ok().and_then(|found| u64::try_from(found.st_size).ok())
    }

    fn number(errno: Errno) -> u32 {
        errno.raw_os_error().unsigned_abs()
    }
}

/// On Windows the state directory is in the user's profile, whose access list keeps other users out. There is no
/// run-time directory.
#[cfg(not(unix))]
mod system {
    use std::fs::OpenOptions;
    use std::io::{self, Write as _};

    use super::State;
    use crate::program::Place;

    pub(in super::super) type File = std::fs::File;

    impl State {
        /// Opens the journal in the usual case: it exists.
        pub(super) fn open_journal(&self) -> Option<File> {
            OpenOptions::new().append(true).open(self.dir.join("journal")).ok()
        }

        /// Makes what is missing.
        pub(super) fn fall_back(&self, place: Place) -> Result<File, u32> {
            const NO_SUCH_FILE: u32 = 2;
            let name = match place {
                Place::Journal => "journal",
                Place::Losses => "losses",
                Place::Spill | Place::SpareLosses => return Err(NO_SUCH_FILE),
            };
            std::fs::create_dir_all(&self.dir).map_err(number)?;
            let mut options = OpenOptions::new();
            options.append(true).create(true).open(self.dir.join(name)).map_err(number)
        }
    }

    pub(in super::super) fn append(mut file: &File, bytes: &[u8]) -> Result<usize, u32> {
        loop {
            match file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(number),
            }
        }
    }

    pub(in super::super) fn size(file: &File) -> Option<u64> {
        file.metadata().ok().map(|metadata| metadata.len())
    }

    #[expect(clippy::needless_pass_by_value, reason = "the form that map_err calls")]
    fn number(error: io::Error) -> u32 {
        error.raw_os_error().unwrap_or_default().unsigned_abs()
    }
}
