//! The journal's names and how they change hands. At every instant there is something at `journal` that a shim can open,
//! or, at the bound, a link that it must not follow.
//!
//! | name | is |
//! |---|---|
//! | `journal` | what shims append to; a link that leads nowhere while hooks are not kept |
//! | `seg-N` | a segment that was `journal` before; N grows |
//! | `journal.stop` | that link while the journal is open, and the journal while the link is in its place |
//! | `journal.new`, `journal.link` | on their way to being the above; left behind by a crash at most |

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::dirs::StateDir;

/// Where the link leads. It does not exist, and the link is never followed.
const STOP_TARGET: &str = "journal-is-full";

/// A file's identity for as long as somebody has it open.
pub(super) type Identity = (u64, u64);

/// Every `seg-N` there is, oldest first.
pub(super) fn segments(dir: &StateDir) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir.root())? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("seg-")?.parse().ok());
        if let Some(number) = number
            && dir.segment(number) == entry.path()
        {
            found.push((number, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Puts the names in order after whatever was interrupted, and makes sure that there is a journal.
///
/// A journal that was stopped becomes a segment, and a fresh one takes its place.
pub(super) fn settle(dir: &StateDir) -> io::Result<()> {
    remove(&beside(dir, "new"))?;
    remove(&beside(dir, "link"))?;
    let journal = regular(&dir.journal())?;
    for (_, path) in segments(dir)? {
        // Killed between `link` and `rename`: the segment is still the journal.
        if journal.is_some() && journal == regular(&path)? {
            remove(&path)?;
        }
    }
    let stop = beside(dir, "stop");
    if let Some(stopped) = regular(&stop)? {
        let mut known = segments(dir)?.into_iter().map(|(_, path)| path);
        if !known.any(|path| regular(&path).is_ok_and(|found| found == Some(stopped))) {
            fs::hard_link(&stop, dir.segment(next_number(dir)?))?;
        }
    }
    if journal.is_none() {
        create(dir)?;
        if dir.journal().is_symlink() {
            fs::rename(beside(dir, "new"), dir.journal())?;
        } else {
            adopt(dir)?;
        }
    }
    place_stop_link(dir)?;
    sync_dir(dir)
}

/// The new file becomes `journal`, unless a shim was faster: then its file stays.
fn adopt(dir: &StateDir) -> io::Result<()> {
    let linked = fs::hard_link(beside(dir, "new"), dir.journal());
    remove(&beside(dir, "new"))?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Renames the journal, which must be the file `current`, to `seg-NUMBER` and puts an empty one in its place. Returns
/// `None` when `journal` is no longer that file.
pub(super) fn rotate(dir: &StateDir, current: Identity) -> io::Result<Option<PathBuf>> {
    remove(&beside(dir, "new"))?;
    create(dir)?;
    let segment = dir.segment(next_number(dir)?);
    fs::hard_link(dir.journal(), &segment)?;
    // A shim may have put the stop link there meanwhile, and a link to a link is no segment.
    if regular(&segment)? != Some(current) {
        remove(&segment)?;
        remove(&beside(dir, "new"))?;
        return Ok(None);
    }
    fs::rename(beside(dir, "new"), dir.journal())?;
    sync_dir(dir)?;
    Ok(Some(segment))
}

/// Makes `journal` something that shims cannot open. The file goes on at `journal.stop`.
#[cfg(target_os = "linux")]
pub(super) fn stop(dir: &StateDir, journal: &File) -> io::Result<()> {
    use std::ffi::CString;
    use std::os::fd::AsFd as _;
    use std::os::unix::ffi::OsStrExt as _;

    place_stop_link(dir)?;
    let name = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (at, stop) = (name(&dir.journal())?, name(&beside(dir, "stop"))?);
    hookspan_shim::linux::stop_journal(&at, &stop, journal.as_fd());
    sync_dir(dir)
}

/// Elsewhere every shim looks at the journal's size itself.
#[cfg(not(target_os = "linux"))]
pub(super) fn stop(_: &StateDir, _: &File) -> io::Result<()> {
    Ok(())
}

/// The file where the journal is, even while it is stopped.
pub(super) fn current(dir: &StateDir) -> PathBuf {
    let stop = beside(dir, "stop");
    if dir.journal().is_symlink() && !stop.is_symlink() { stop } else { dir.journal() }
}

fn create(dir: &StateDir) -> io::Result<()> {
    let file = crate::dirs::create_private(&beside(dir, "new"))?;
    super::reserve::prepare(&file);
    super::reserve::extend(&file, 0);
    Ok(())
}

fn next_number(dir: &StateDir) -> io::Result<u64> {
    Ok(segments(dir)?.last().map_or(1, |(number, _)| number + 1))
}

#[cfg(unix)]
fn place_stop_link(dir: &StateDir) -> io::Result<()> {
    let stop = beside(dir, "stop");
    if stop.is_symlink() {
        return Ok(());
    }
    let link = beside(dir, "link");
    remove(&link)?;
    std::os::unix::fs::symlink(STOP_TARGET, &link)?;
    fs::rename(link, stop)
}

#[cfg(not(unix))]
fn place_stop_link(_: &StateDir) -> io::Result<()> {
    Ok(())
}

fn beside(dir: &StateDir, suffix: &str) -> PathBuf {
    dir.root().join(format!("journal.{suffix}"))
}

/// Removes a file that may not be there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Identity of the regular file at `path`, or `None` when there is nothing or something else.
pub(super) fn regular(path: &Path) -> io::Result<Option<Identity>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(found) => Ok(found.is_file().then(|| identity(&found))),
    }
}

#[cfg(unix)]
pub(super) fn identity(found: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (found.dev(), found.ino())
}

#[cfg(not(unix))]
pub(super) fn identity(found: &Metadata) -> Identity {
    let created = found.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    (0, created.map_or(0, |since| since.as_nanos() as u64))
}

/// Opens a segment for reading: a regular file of our own, not through a link, and without waiting for a FIFO.
#[cfg(unix)]
pub(super) fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    use std::os::unix::fs::MetadataExt as _;

    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if found.is_file() && found.uid() == rustix::process::geteuid().as_raw() {
        return Ok(file);
    }
    Err(io::Error::other("not a regular file of this account; look at it, then move it away"))
}

#[cfg(not(unix))]
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Makes names durable.
pub(super) fn sync_dir(dir: &StateDir) -> io::Result<()> {
    if cfg!(unix) { File::open(dir.root())?.sync_all() } else { Ok(()) }
}
