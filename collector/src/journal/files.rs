//! The journal's file names, and how they change.
//!
//! At every instant `journal` is a file that a shim can open or, if the bound is reached, a link that shims do not
//! follow. A change of names takes several file operations, and each can fail. Every function here first looks at which
//! files exist, so the next attempt completes a change that failed half way.
//!
//! | name | is |
//! |---|---|
//! | `journal` | the file that shims append to; while hooks are not kept, a link that leads nowhere |
//! | `seg-N` | a former `journal`; N grows |
//! | `journal.stop` | the stop link while the journal is open; the journal while the link is in its place |
//! | `journal.new`, `journal.link` | about to become one of the files above; only left over after a crash |

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::dirs::StateDir;
use crate::disk::{self, Identity};

/// Target of the link. The target does not exist, and no program follows the link.
const STOP_TARGET: &str = "journal-is-full";

/// A journal that became a segment.
#[derive(Debug)]
pub(super) struct Rolled {
    /// Where it is now.
    pub segment: PathBuf,
    /// The new journal, open for reading.
    pub fresh: File,
}

/// Every `seg-N`, oldest first.
pub(super) fn segments(dir: &StateDir) -> io::Result<Vec<(u64, PathBuf)>> {
    let numbered = |path: PathBuf| {
        let number = path.file_name()?.to_str()?.strip_prefix("seg-")?.parse().ok()?;
        (dir.segment(number) == path).then_some((number, path))
    };
    let mut found: Vec<_> = disk::list(dir.root())?.into_iter().filter_map(numbered).collect();
    found.sort_unstable();
    Ok(found)
}

/// The segment with this identity.
pub(super) fn segment_of(dir: &StateDir, wanted: Identity) -> io::Result<Option<PathBuf>> {
    for (_, path) in segments(dir)? {
        if disk::regular(&path)? == Some(wanted) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Completes every interrupted change of names, and makes sure that there is a journal. A stopped journal becomes a
/// segment, and a new journal takes its place.
pub(super) fn settle(dir: &StateDir) -> io::Result<()> {
    disk::remove(&beside(dir, "new"))?;
    disk::remove(&beside(dir, "link"))?;
    let journal = disk::regular(&dir.journal())?;
    for (_, path) in segments(dir)? {
        // A roll was interrupted between `link` and `rename`: the file is still called `journal`, or the stop link is.
        let found = disk::regular(&path)?;
        if (journal.is_some() && journal == found) || (found.is_none() && disk::is_link(&path)?) {
            disk::remove(&path)?;
        }
    }
    let stop = beside(dir, "stop");
    if let Some(stopped) = disk::regular(&stop)?
        && segment_of(dir, stopped)?.is_none()
    {
        disk::link(&stop, &dir.segment(next_number(dir)?))?;
    }
    if journal.is_none() {
        create(dir)?;
        if disk::is_link(&dir.journal())? {
            disk::rename(&beside(dir, "new"), &dir.journal())?;
        } else {
            adopt(dir)?;
        }
    }
    place_stop_link(dir)?;
    disk::sync_names(dir.root())
}

/// Renames the new file to `journal`. If a shim has meanwhile created a journal, that file stays.
fn adopt(dir: &StateDir) -> io::Result<()> {
    let linked = disk::link(&beside(dir, "new"), &dir.journal());
    disk::remove(&beside(dir, "new"))?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Renames the journal to `seg-N` and puts an empty file in its place. Returns `None` if `journal` is no longer the file
/// `current`.
///
/// # Errors
/// An operation failed. The journal may have a second name, `seg-N`. The next attempt uses that name.
pub(super) fn roll(dir: &StateDir, current: Identity) -> io::Result<Option<Rolled>> {
    disk::remove(&beside(dir, "new"))?;
    create(dir)?;
    // The new file is opened before any name changes: a file that cannot be opened must not become the journal.
    let fresh = disk::open(&beside(dir, "new"))?;
    let segment = match segment_of(dir, current)? {
        Some(segment) => segment,
        None => {
            let segment = dir.segment(next_number(dir)?);
            disk::link(&dir.journal(), &segment)?;
            segment
        }
    };
    // A shim may have put the stop link there in the meantime. A hard link to the stop link is not a segment.
    if disk::regular(&segment)? != Some(current) {
        disk::remove(&segment)?;
        disk::remove(&beside(dir, "new"))?;
        return Ok(None);
    }
    disk::rename(&beside(dir, "new"), &dir.journal())?;
    Ok(Some(Rolled { segment, fresh }))
}

/// Replaces `journal` with the stop link. The journal's file is then at `journal.stop`. Returns whether the journal is
/// stopped now; another process may have changed the names in the meantime.
#[cfg(target_os = "linux")]
pub(super) fn stop(dir: &StateDir, journal: &File) -> io::Result<bool> {
    use std::ffi::CString;
    use std::os::fd::AsFd as _;
    use std::os::unix::ffi::OsStrExt as _;

    place_stop_link(dir)?;
    let name = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (at, stop) = (name(&dir.journal())?, name(&beside(dir, "stop"))?);
    hookspan_shim::linux::stop_journal(&at, &stop, journal.as_fd());
    disk::is_link(&dir.journal())
}

/// On other systems every shim checks the journal's size itself.
#[cfg(not(target_os = "linux"))]
pub(super) fn stop(_: &StateDir, _: &File) -> io::Result<bool> {
    Ok(true)
}

/// Path of the journal's file, even while the journal is stopped.
pub(super) fn current(dir: &StateDir) -> PathBuf {
    let stop = beside(dir, "stop");
    if dir.journal().is_symlink() && !stop.is_symlink() { stop } else { dir.journal() }
}

fn create(dir: &StateDir) -> io::Result<()> {
    let file = disk::create(&beside(dir, "new"))?;
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
    if disk::is_link(&stop)? {
        return Ok(());
    }
    let link = beside(dir, "link");
    disk::remove(&link)?;
    disk::symlink(STOP_TARGET, &link)?;
    disk::rename(&link, &stop)
}

#[cfg(not(unix))]
fn place_stop_link(_: &StateDir) -> io::Result<()> {
    Ok(())
}

fn beside(dir: &StateDir, suffix: &str) -> PathBuf {
    dir.root().join(format!("journal.{suffix}"))
}
