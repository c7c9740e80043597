//! The failing path: decides where a hook is stored if `journal` cannot simply be opened.
//!
//! The program tries these places in order:
//!
//! 1. the journal in the state directory. Missing directories are created;
//! 2. a spill file in the user's run-time directory, from which the collector takes the hook later;
//! 3. `losses` in the state directory: the hook is lost, and the loss is counted;
//! 4. a file of losses in the run-time directory.
//!
//! The program neither follows nor writes to anything that another user created. It opens directories one by one, never
//! follows a link of another user, and creates something only in a directory that belongs to the effective user. Files
//! are created with `O_EXCL` and mode 0600. An existing file must be regular, belong to the effective user and be
//! closed to everybody else. This is checked on the open descriptor before a byte is written. The mode of a directory
//! is not checked: a user who may write to our directory can hide our files, but can neither read them nor replace them
//! with files of our own.

use core::ffi::CStr;

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fstat, mkdirat, open, openat, readlinkat_raw, statat,
};
use rustix::io::Errno;
use rustix::process::{geteuid, umask};

use crate::hash::xxh64;
use crate::path::PathBuffer;
use crate::program::Place;

/// The folder in the run-time directory for files that belong to state directories.
pub const RUN_TIME_FOLDER: &CStr = c"hookspan";
/// Prefix of a spill file's name. [`place_id`] in hexadecimal follows.
pub const SPILL_PREFIX: &str = "spill-";
/// Prefix of a loss file's name in the run-time directory. [`place_id`] in hexadecimal follows.
pub const LOSSES_PREFIX: &str = "losses-";

/// Target of the link that replaces the journal at its bound. The target does not exist.
pub(crate) const STOP_TARGET: &CStr = c"journal-is-full";
/// Flags for opening a file to append. Links are never followed, and opening a FIFO fails at once.
pub(crate) const APPEND: OFlags = OFlags::WRONLY
    .union(OFlags::APPEND)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(SHARED_LOCK);
/// On macOS, all writers hold a shared lock. The reader tries to take an exclusive lock: if that works, no writer is
/// left.
const SHARED_LOCK: OFlags =
    OFlags::from_bits_retain(if cfg!(target_os = "macos") { 0x10 } else { 0 });
/// Flags for opening a directory. On Linux the directory need not be readable.
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(LOOK_ONLY);
#[cfg(target_os = "linux")]
const LOOK_ONLY: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const LOOK_ONLY: OFlags = OFlags::RDONLY;

/// Mode of files: only the owner may read and write.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Rights that no file of ours may give to others.
const OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);
/// Maximum number of attempts. An attempt fails only if the collector renames the file between its creation and its
/// opening. The collector renames it about once an hour.
const TRIES: u32 = 8;
/// Maximum length of a file name, including its NUL.
const NAME_BYTES: usize = 256;
/// Reserved space for two thousand losses. The collector reserves the same.
#[cfg(target_os = "linux")]
const LOSSES_BYTES: u64 = 64 << 10;

/// The directories that the environment names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    /// The state directory; empty if the environment does not tell where it is.
    pub(crate) state_dir: &'a [u8],
    /// Length of the home directory at the start of `state_dir`; 0 if `state_dir` does not start with it. The program
    /// never creates the home directory itself.
    pub(crate) home_bytes: usize,
    /// `XDG_RUNTIME_DIR`, or empty.
    pub(crate) run_time_dir: &'a [u8],
    /// Where a relative `state_dir` starts.
    pub(crate) working_dir: &'a [u8],
}

impl Places<'_> {
    /// Opens a file for appending. Creates what is missing.
    ///
    /// # Errors
    ///
    /// `ELOOP`: the journal has reached its bound. `EPERM`: the file belongs to another user, or is not a regular file.
    /// Otherwise the file system's error.
    pub(crate) fn open(&self, place: Place) -> Result<OwnedFd, Errno> {
        // A new file or directory needs its final mode at creation, because the next hook may use it before a later
        // `chmod`.
        let before = umask(Mode::empty());
        let opened = match place {
            Place::Journal => self.journal(),
            Place::Losses => self.state_dir().and_then(|dir| losses(&dir)),
            Place::Spill => self.in_run_time_dir(SPILL_PREFIX),
            Place::SpareLosses => self.in_run_time_dir(LOSSES_PREFIX),
        };
        umask(before);
        opened
    }

    fn journal(&self) -> Result<OwnedFd, Errno> {
        let mut at_bound = false;
        let opened = self.state_dir().and_then(|dir| {
            // `losses` is created before the journal, while the disk has room. Its reserved space counts hooks that
            // later do not fit.
            let _ = losses(&dir);
            let opened = append_to(&dir, c"journal");
            at_bound = opened.is_err() && is_stop_link(&dir);
            opened
        });
        match opened {
            Err(_) if at_bound => Err(Errno::LOOP),
            // `ELOOP` means that the journal has reached its bound. This link is not the stop link, so the error must
            // be another one.
            Err(Errno::LOOP) => Err(Errno::PERM),
            opened => opened,
        }
    }

    /// Opens the state directory. Creates it if it is missing.
    fn state_dir(&self) -> Result<OwnedFd, Errno> {
        let path = self.state_dir;
        let start = if path.starts_with(b"/") { c"/" } else { c"." };
        let mut at = open(start, DIRECTORY, Mode::empty())?;
        let last = path.iter().rposition(|byte| *byte != b'/').ok_or(Errno::NOENT)?;
        let mut end = 0;
        for part in path.split(|byte| *byte == b'/') {
            end += part.len();
            if !part.is_empty() {
                at = enter(&at, part, end > self.home_bytes, end <= last)?;
            }
            end += 1;
        }
        must_be_ours(&fstat(&at)?)?;
        Ok(at)
    }

    /// A file for this state directory, in the first run-time directory where it can be opened.
    fn in_run_time_dir(&self, prefix: &str) -> Result<OwnedFd, Errno> {
        let id = place_id(self.state_dir, self.working_dir).ok_or(Errno::NOENT)?;
        let mut name = PathBuffer::<NAME_BYTES>::new();
        name.push(prefix.as_bytes())?;
        name.push_hex(id)?;
        if self.run_time_dir.starts_with(b"/") {
            let mut base = PathBuffer::<{ crate::path::PATH_BYTES }>::new();
            base.push(self.run_time_dir)?;
            if let Ok(file) = in_folder(base.as_c_str()?, name.as_c_str()?) {
                return Ok(file);
            }
        }
        // The variable may be absent or wrong: cron and some desktops do not set it, and `sudo -E` keeps another user's
        // value.
        in_folder(own_run_time_dir()?.as_c_str()?, name.as_c_str()?)
    }
}

/// Identifies a state directory by its path, without doubled slashes and dots. `None` if there is no absolute path.
///
/// The path is used and not the inode, because the directory may not exist yet, or may belong to another user and be
/// replaced later.
#[must_use]
pub fn place_id(state_dir: &[u8], working_dir: &[u8]) -> Option<u64> {
    let from: &[u8] = if state_dir.starts_with(b"/") { b"/" } else { working_dir };
    if state_dir.is_empty() || !from.starts_with(b"/") {
        return None;
    }
    let mut path = PathBuffer::<{ crate::path::PATH_BYTES }>::new();
    let parts = [from, state_dir].into_iter().flat_map(|path| path.split(|byte| *byte == b'/'));
    for part in parts.filter(|part| !part.is_empty() && *part != b".") {
        path.push(b"/").and_then(|()| path.push(part)).ok()?;
    }
    Some(xxh64(path.as_c_str().ok()?.to_bytes(), 0))
}

/// `/run/user/UID`. It exists while the user is logged in.
#[cfg(target_os = "linux")]
fn own_run_time_dir() -> Result<PathBuffer<NAME_BYTES>, Errno> {
    let mut path = PathBuffer::new();
    path.push(b"/run/user/")?;
    path.push_decimal(geteuid().as_raw())?;
    Ok(path)
}

/// Other systems have no such place.
#[cfg(not(target_os = "linux"))]
fn own_run_time_dir() -> Result<PathBuffer<NAME_BYTES>, Errno> {
    Err(Errno::NOENT)
}

/// Opens the directory `part` of `at`. Creates it if that is allowed and `at` belongs to us.
fn enter(at: &OwnedFd, part: &[u8], may_make: bool, may_follow: bool) -> Result<OwnedFd, Errno> {
    let mut name = PathBuffer::<NAME_BYTES>::new();
    name.push(part)?;
    let name = name.as_c_str()?;
    let found = match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) if may_make => {
            must_be_ours(&fstat(at)?)?;
            match mkdirat(at, name, Mode::RWXU) {
                // Another hook made it first.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            return openat(at, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
        }
        found => found?,
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
        return openat(at, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
    }
    let of_the_system = found.st_uid == 0;
    if !may_follow || !(of_the_system || is_ours(&found)) {
        return Err(Errno::PERM);
    }
    openat(at, name, DIRECTORY, Mode::empty())
}

/// Opens `name` in our folder of the run-time directory `base`.
fn in_folder(base: &CStr, name: &CStr) -> Result<OwnedFd, Errno> {
    let base = open(base, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
    must_be_ours(&fstat(&base)?)?;
    // The folder nearly always exists. If it cannot be made, opening the file fails.
    let _ = mkdirat(&base, RUN_TIME_FOLDER, Mode::RWXU);
    let folder = openat(&base, RUN_TIME_FOLDER, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
    must_be_ours(&fstat(&folder)?)?;
    append_to(&folder, name)
}

/// Opens a regular file of ours, closed to others, for appending. Creates it if it is missing.
fn append_to(dir: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    for _ in 0..TRIES {
        match openat(dir, name, APPEND | OFlags::CREATE | OFlags::EXCL, PRIVATE) {
            Err(Errno::EXIST) => {}
            made => return made,
        }
        match openat(dir, name, APPEND, Mode::empty()) {
            Err(Errno::NOENT) => {}
            opened => return opened.and_then(checked),
        }
    }
    Err(Errno::NOENT)
}

fn checked(file: OwnedFd) -> Result<OwnedFd, Errno> {
    let found = fstat(&file)?;
    let regular = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    let closed = !Mode::from_raw_mode(found.st_mode).intersects(OTHERS);
    if regular && closed && is_ours(&found) { Ok(file) } else { Err(Errno::PERM) }
}

fn losses(dir: &OwnedFd) -> Result<OwnedFd, Errno> {
    let file = append_to(dir, c"losses")?;
    #[cfg(target_os = "linux")]
    if fstat(&file)?.st_size == 0 {
        use rustix::fs::{FallocateFlags, fallocate};
        // A failed reservation is ignored. Without reserved space, fewer losses can be counted on a full disk.
        let _ = fallocate(&file, FallocateFlags::KEEP_SIZE, 0, LOSSES_BYTES);
    }
    Ok(file)
}

/// Whether `journal` is the stop link, which means that the journal has reached its bound. A person must have made any
/// other link by mistake.
fn is_stop_link(dir: &OwnedFd) -> bool {
    let mut target = [0; NAME_BYTES];
    let bytes = readlinkat_raw(dir, c"journal", &mut target).unwrap_or_default();
    target.get(..bytes) == Some(STOP_TARGET.to_bytes())
}

/// # Errors
///
/// `EPERM`: the file or directory belongs to another user.
pub(crate) fn must_be_ours(found: &Stat) -> Result<(), Errno> {
    if is_ours(found) { Ok(()) } else { Err(Errno::PERM) }
}

fn is_ours(found: &Stat) -> bool {
    found.st_uid == geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_directory_has_one_name_however_it_is_written() {
        let id = place_id(b"/home/u/state", b"");
        assert!(id.is_some());
        for spelled in [&b"/home/u/state/"[..], b"//home/./u//state/.", b"state", b"./state//"] {
            assert_eq!(place_id(spelled, b"/home/u"), id, "{}", spelled.escape_ascii());
        }
        assert_ne!(place_id(b"/home/u/state2", b""), id);
        assert_ne!(place_id(b"/home/u/x/../state", b""), id, "what .. leads to is not known");
    }

    #[test]
    fn without_an_absolute_path_there_is_no_name() {
        let too_long = [b"/".as_slice(), &[b'x'; 5_000]].concat();
        for (dir, from) in [(&b""[..], &b"/w"[..]), (b"state", b""), (b"state", b"w")] {
            assert_eq!(place_id(dir, from), None);
        }
        assert_eq!(place_id(&too_long, b""), None);
    }

    /// Some file systems refuse `O_NOATIME` even to the file's owner. Then the journal is opened here, without that
    /// flag.
    #[test]
    fn a_journal_that_is_there_is_opened_again() {
        use std::os::unix::ffi::OsStrExt as _;

        let home = std::env::temp_dir().join(format!("fallback-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        let state_dir = home.join("state");
        let places = Places {
            state_dir: state_dir.as_os_str().as_bytes(),
            home_bytes: home.as_os_str().len(),
            run_time_dir: b"",
            working_dir: b"",
        };
        let first = fstat(places.open(Place::Journal).unwrap()).unwrap();
        let again = fstat(places.open(Place::Journal).unwrap()).unwrap();
        assert_eq!(first.st_ino, again.st_ino);
        // A file that other users may read is refused.
        rustix::fs::chmod(
            state_dir.join("journal").as_os_str().as_bytes(),
            Mode::from_raw_mode(0o644),
        )
        .unwrap();
        assert_eq!(places.open(Place::Journal).map(|_| ()), Err(Errno::PERM));
        std::fs::remove_dir_all(&home).unwrap();
    }
}
