//! What shims leave in the user's run-time directory when the state directory does not take it.
//!
//! | name in `hookspan/` | is |
//! |---|---|
//! | `spill-ID` | records that the journal did not take |
//! | `spill-ID.N` | the same, taken over by a collector, until they are stored |
//! | `losses-ID` | losses that `losses` in the state directory did not take |
//!
//! `ID` is a hash of the state directory's path: see [`hookspan_shim::fallback::place_id`]. The path of the state directory
//! may be written in several ways, so each file may have several names. Shims before version 0.2 called the spill file after
//! device and inode of the state directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::dirs::StateDir;

/// Where shims of this state directory spill. Few of these files exist, if any.
pub(super) fn spill_files(dir: &StateDir) -> Vec<PathBuf> {
    let mut names: Vec<String> =
        ids(dir).into_iter().map(|id| format!("{}{id:x}", prefix::SPILL)).collect();
    names.extend(fs::metadata(dir.root()).ok().map(|found| {
        let (device, inode) = super::files::identity(&found);
        format!("{}{device:x}-{inode:x}", prefix::SPILL)
    }));
    in_folders(dir, &names)
}

/// Files with records of this state directory that are not stored yet: those that shims write to and those that a collector
/// has taken over.
#[must_use]
pub fn spilled(dir: &StateDir) -> Vec<PathBuf> {
    spill_files(dir).iter().flat_map(|spill| beside(spill)).collect()
}

/// Files with losses of this state directory, in places that belong to us.
#[must_use]
pub fn spare_losses(dir: &StateDir) -> Vec<PathBuf> {
    let names: Vec<String> =
        ids(dir).into_iter().map(|id| format!("{}{id:x}", prefix::LOSSES)).collect();
    let mut files = in_folders(dir, &names);
    files
        .retain(|path| is_ours(path) && path.symlink_metadata().is_ok_and(|found| found.is_file()));
    files
}

/// A spill file and the numbered ones beside it.
pub(super) fn beside(spill: &Path) -> Vec<PathBuf> {
    if !is_ours(spill) {
        return Vec::new();
    }
    let entries = spill.parent().and_then(|folder| fs::read_dir(folder).ok());
    let paths = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.file_stem() == spill.file_name()).collect();
    found.sort();
    found
}

/// Whether the file's folder is a directory of ours. In one of another user, nothing can be believed.
pub(super) fn is_ours(path: &Path) -> bool {
    path.parent().is_some_and(crate::dirs::is_our_directory)
}

fn in_folders(dir: &StateDir, names: &[String]) -> Vec<PathBuf> {
    let folders = dir.run_time_folders();
    folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))).collect()
}

/// The path as it is written, and the path without symbolic links.
#[cfg(unix)]
fn ids(dir: &StateDir) -> Vec<u64> {
    use std::os::unix::ffi::OsStrExt as _;

    let written = Some(dir.root().to_path_buf());
    let paths = [written, fs::canonicalize(dir.root()).ok()].into_iter().flatten();
    let mut ids: Vec<u64> = paths
        .filter_map(|path| hookspan_shim::fallback::place_id(path.as_os_str().as_bytes(), b""))
        .collect();
    ids.dedup();
    ids
}

#[cfg(unix)]
mod prefix {
    pub(super) use hookspan_shim::fallback::{LOSSES_PREFIX as LOSSES, SPILL_PREFIX as SPILL};
}

/// There is no run-time directory.
#[cfg(not(unix))]
fn ids(_: &StateDir) -> Vec<u64> {
    Vec::new()
}

#[cfg(not(unix))]
mod prefix {
    pub(super) const SPILL: &str = "spill-";
    pub(super) const LOSSES: &str = "losses-";
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
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
        let spilled_to = spill_files(&at("real/state")).remove(0);
        fs::write(&spilled_to, "x").unwrap();
        fs::write(spilled_to.with_extension("3"), "x").unwrap();
        fs::write(spilled_to.with_file_name("spill-1"), "x").unwrap();
        let expected = [spilled_to.clone(), spilled_to.with_extension("3")];
        assert_eq!(spilled(&at("link/state")), expected);
        assert_eq!(spilled(&at("real/./state/")), expected);
        assert_eq!(spilled(&at("real/other")), Vec::<PathBuf>::new());
    }
}
