//! Files that shims write to the user's run-time directory if the state directory does not accept the hook.
//!
//! | name in `hookspan/` | is |
//! |---|---|
//! | `spill-ID` | records that the journal did not accept |
//! | `spill-ID.N` | the same, taken over by a collector, until they are stored |
//! | `losses-ID` | losses that `losses` in the state directory did not accept |
//!
//! `ID` is a hash of the state directory's path: see [`hookspan_shim::fallback::place_id`]. The path of the state
//! directory may be written in several ways, so each file may have several names. Before version 0.2, shims named the
//! spill file after device and inode of the state directory.

use std::io;
use std::path::{Path, PathBuf};

use crate::dirs::StateDir;
use crate::disk;

/// The spill files of this state directory. There are few, if any.
///
/// # Errors
///
/// The state directory's metadata cannot be read. A missing directory is not an error: it may have spill files, too.
pub(super) fn spill_files(dir: &StateDir) -> io::Result<Vec<PathBuf>> {
    let mut names: Vec<String> =
        ids(dir)?.into_iter().map(|id| format!("{}{id:x}", prefix::SPILL)).collect();
    names.extend(disk::look_at(dir.root())?.map(|found| {
        let (device, inode) = disk::identity(&found);
        format!("{}{device:x}-{inode:x}", prefix::SPILL)
    }));
    Ok(in_folders(dir, &names))
}

/// Files with records of this state directory that are not stored yet: files that shims write to, and files that a
/// collector has taken over.
#[must_use]
pub(crate) fn spilled(dir: &StateDir) -> Vec<PathBuf> {
    let spills = spill_files(dir).unwrap_or_default();
    spills.iter().flat_map(|spill| beside(spill).unwrap_or_default()).collect()
}

/// Files with losses of this state directory, in folders that belong to us.
#[must_use]
pub(crate) fn spare_losses(dir: &StateDir) -> Vec<PathBuf> {
    let names: Vec<String> = ids(dir)
        .unwrap_or_default()
        .into_iter()
        .map(|id| format!("{}{id:x}", prefix::LOSSES))
        .collect();
    let mut files = in_folders(dir, &names);
    let is_file = |path: &Path| disk::regular(path).is_ok_and(|found| found.is_some());
    files.retain(|path| is_ours(path).unwrap_or(false) && is_file(path));
    files
}

/// A spill file and the numbered files beside it, in order.
///
/// # Errors
///
/// The folder cannot be listed. A folder that is missing or belongs to another user counts as empty.
pub(super) fn beside(spill: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(folder) = spill.parent() else { return Ok(Vec::new()) };
    if !is_ours(spill)? {
        return Ok(Vec::new());
    }
    let mut found = disk::list(folder)?;
    found.retain(|path| path.file_stem() == spill.file_name());
    found.sort();
    Ok(found)
}

/// Whether the file's folder belongs to us. Files in another user's folder are not trusted.
///
/// # Errors
/// The folder's metadata cannot be read.
pub(super) fn is_ours(path: &Path) -> io::Result<bool> {
    let Some(folder) = path.parent() else { return Ok(false) };
    let found = disk::look_at(folder)?;
    Ok(found.is_some() && crate::dirs::is_our_directory(folder))
}

fn in_folders(dir: &StateDir, names: &[String]) -> Vec<PathBuf> {
    let folders = dir.run_time_folders();
    folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))).collect()
}

/// The path as given, and the path with symbolic links resolved.
#[cfg(unix)]
fn ids(dir: &StateDir) -> io::Result<Vec<u64>> {
    use std::os::unix::ffi::OsStrExt as _;

    let written = Some(dir.root().to_path_buf());
    let paths = [written, disk::without_links(dir.root())?].into_iter().flatten();
    let mut ids: Vec<u64> = paths
        .filter_map(|path| hookspan_shim::fallback::place_id(path.as_os_str().as_bytes(), b""))
        .collect();
    ids.dedup();
    Ok(ids)
}

#[cfg(unix)]
mod prefix {
    pub(super) use hookspan_shim::fallback::{LOSSES_PREFIX as LOSSES, SPILL_PREFIX as SPILL};
}

/// There is no run-time directory.
#[cfg(not(unix))]
fn ids(_: &StateDir) -> io::Result<Vec<u64>> {
    Ok(Vec::new())
}

#[cfg(not(unix))]
mod prefix {
    pub(super) const SPILL: &str = "spill-";
    pub(super) const LOSSES: &str = "losses-";
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::dirs::Places;

    #[test]
    fn a_state_directory_behind_a_link_is_found_under_both_names() {
        let temp = tempfile::tempdir().unwrap();
        let run = temp.path().join("run");
        let real = temp.path().join("real/state");
        fs::create_dir_all(&real).unwrap();
        fs::create_dir_all(run.join("hookspan")).unwrap();
        symlink(temp.path().join("real"), temp.path().join("link")).unwrap();
        let places = Places { xdg_runtime_dir: Some(run), ..Places::default() };
        let at = |path: &str| {
            let root = temp.path().join(path);
            StateDir::resolve(Some(&root), &places).unwrap()
        };
        let spilled_to = spill_files(&at("real/state")).unwrap().remove(0);
        fs::write(&spilled_to, "x").unwrap();
        fs::write(spilled_to.with_extension("3"), "x").unwrap();
        fs::write(spilled_to.with_file_name("spill-1"), "x").unwrap();
        let expected = [spilled_to.clone(), spilled_to.with_extension("3")];
        assert_eq!(spilled(&at("link/state")), expected);
        assert_eq!(spilled(&at("real/./state/")), expected);
        assert_eq!(spilled(&at("real/other")), Vec::<PathBuf>::new());
    }
}
