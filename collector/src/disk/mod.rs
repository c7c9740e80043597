//! Every file operation of the journal and of its reader, in one place.
//!
//! Each function here is one operation that the system may refuse. Tests make any of them fail, at any point of a run: see
//! `faults`. Operations that need a new descriptor take one from [`spare`] when the process has none left.

pub(crate) mod spare;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// A kind of file operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Open,
    Create,
    Look,
    List,
    Read,
    Write,
    Sync,
    Link,
    Rename,
    Remove,
    Reserve,
}

/// Identifies a file as long as some process has it open.
pub(crate) type Identity = (u64, u64);

/// Opens a file for reading: a regular file of this account, not through a link, and without waiting for a FIFO.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    with_descriptor(Operation::Open, || open_own(path))
}

/// Opens a file for reading, not through a link, and without waiting for a FIFO.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    with_descriptor(Operation::Open, || crate::dirs::open_private(path))
}

/// Opens an existing file for writing. Its content stays.
pub(crate) fn open_to_write(path: &Path) -> io::Result<File> {
    with_descriptor(Operation::Open, || OpenOptions::new().read(true).write(true).open(path))
}

/// Opens an open file once more, no matter what its name is now.
#[cfg(target_os = "linux")]
pub(crate) fn open_again(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd as _;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    with_descriptor(Operation::Open, || File::open(&path))
}

/// On other systems a file can be opened only by name.
#[cfg(not(target_os = "linux"))]
pub(crate) fn open_again(_: &File) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Opens a file for appending, created with mode 0600 when it is missing.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    with_descriptor(Operation::Create, || crate::dirs::create_private(path))
}

/// What the system says about an open file.
pub(crate) fn look(file: &File) -> io::Result<Metadata> {
    tried(Operation::Look, || file.metadata())
}

/// Metadata of a path; symbolic links are not followed. `None` if nothing is there.
pub(crate) fn look_at(path: &Path) -> io::Result<Option<Metadata>> {
    none_if_missing(tried(Operation::Look, || fs::symlink_metadata(path)))
}

/// Identity of the regular file at a path. `None` when there is nothing, or something else.
pub(crate) fn regular(path: &Path) -> io::Result<Option<Identity>> {
    Ok(look_at(path)?.filter(Metadata::is_file).map(|found| identity(&found)))
}

/// Whether a symbolic link stands at a path.
pub(crate) fn is_link(path: &Path) -> io::Result<bool> {
    Ok(look_at(path)?.is_some_and(|found| found.is_symlink()))
}

/// A path with symbolic links resolved. `None` if it leads nowhere.
pub(crate) fn without_links(path: &Path) -> io::Result<Option<PathBuf>> {
    none_if_missing(tried(Operation::Look, || fs::canonicalize(path)))
}

/// Every name in a folder, in no order. A missing folder is an error.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    with_descriptor(Operation::List, || {
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    })
}

/// The content of a file. `None` when there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    none_if_missing(with_descriptor(Operation::Read, || fs::read(path)))
}

/// Reads until `into` is full or the file ends. Returns how many bytes were read.
pub(crate) fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    tried(Operation::Read, || {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match read_once_at(file, rest, offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    })
}

/// A file that is read from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Reading(pub(crate) File);

impl io::Read for Reading {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        tried(Operation::Read, || io::Read::read(&mut self.0, into))
    }
}

/// A file that is written from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Writing(pub(crate) File);

impl io::Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        tried(Operation::Write, || io::Write::write(&mut self.0, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::Write::flush(&mut self.0)
    }
}

/// Makes a file's bytes durable.
pub(crate) fn sync(file: &File) -> io::Result<()> {
    tried(Operation::Sync, || really(|| file.sync_data()))
}

/// Makes the names in a folder durable.
pub(crate) fn sync_names(folder: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let folder = with_descriptor(Operation::Open, || File::open(folder))?;
    tried(Operation::Sync, || really(|| folder.sync_all()))
}

/// Gives a file a second name.
pub(crate) fn link(from: &Path, to: &Path) -> io::Result<()> {
    tried(Operation::Link, || fs::hard_link(from, to).map_err(explained))
}

/// `EPERM` is the answer of file systems without hard links, such as vfat and some network file systems.
fn explained(error: io::Error) -> io::Error {
    const EPERM: i32 = 1;
    let is_unsupported = error.kind() == io::ErrorKind::Unsupported
        || (cfg!(unix) && error.raw_os_error() == Some(EPERM));
    if !is_unsupported {
        return error;
    }
    let text = format!(
        "{error}. This file system may have no hard links, which the journal needs: put the state directory on another one with \
         --dir DIR"
    );
    io::Error::new(error.kind(), text)
}

/// Makes a symbolic link.
#[cfg(unix)]
pub(crate) fn symlink(target: &str, at: &Path) -> io::Result<()> {
    tried(Operation::Link, || std::os::unix::fs::symlink(target, at))
}

/// Renames a file. A file that already has the new name is replaced.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    tried(Operation::Rename, || fs::rename(from, to))
}

/// Removes a file. It may be missing.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    none_if_missing(tried(Operation::Remove, || fs::remove_file(path))).map(|_| ())
}

/// Reserves disk space in a file after `from`. The file does not become longer.
#[cfg(target_os = "linux")]
pub(crate) fn reserve(file: &File, from: u64, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    tried(Operation::Reserve, || {
        really(|| Ok(fallocate(file, FallocateFlags::KEEP_SIZE, from, bytes)?))
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn reserve(_: &File, _: u64, _: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
pub(crate) fn identity(found: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (found.dev(), found.ino())
}

#[cfg(not(unix))]
pub(crate) fn identity(found: &Metadata) -> Identity {
    let created = found.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    (0, created.map_or(0, |since| since.as_nanos() as u64))
}

fn none_if_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Runs an operation that needs a descriptor. If none is left, it closes the spare ones and tries again.
fn with_descriptor<T>(operation: Operation, work: impl Fn() -> io::Result<T>) -> io::Result<T> {
    spare::retried(|| tried(operation, &work))
}

#[cfg(unix)]
fn open_own(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    use std::os::unix::fs::MetadataExt as _;

    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = rustix::io::retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()));
    let file = File::from(opened?);
    let found = file.metadata()?;
    if found.is_file() && found.uid() == rustix::process::geteuid().as_raw() {
        return Ok(file);
    }
    Err(io::Error::other("not a regular file of this account; look at it, then move it away"))
}

#[cfg(not(unix))]
fn open_own(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn read_once_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, offset)
}

#[cfg(windows)]
fn read_once_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, offset)
}

/// Runs one operation. In tests it can be made to fail, before or after the work.
#[cfg(not(test))]
#[inline]
fn tried<T>(_: Operation, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    work()
}

/// Waits for the disk. Fault tests with thousands of runs skip the wait, because they do not test power cuts.
#[cfg(not(test))]
#[inline]
fn really(work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    work()
}

#[cfg(test)]
use faults::{really, tried};

#[cfg(test)]
pub(crate) mod faults;
