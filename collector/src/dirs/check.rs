//! Checks who owns the state directory and who may read it.

use std::fs::{DirBuilder, Metadata};
use std::path::{Path, PathBuf};

use super::{DirError, StateDir};

/// Creates `path` with mode 0700, or adopts an existing directory of ours if it is empty or was begun by a shim. Then
/// checks it. Returns the parent folders that were created, innermost first.
pub(super) fn create(path: &Path) -> Result<Vec<PathBuf>, DirError> {
    let io = |action| move |source| DirError::Io { action, path: path.to_path_buf(), source };
    let around = path.ancestors().skip(1).take_while(|folder| !folder.exists());
    let made = around.filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_path_buf);
    let made: Vec<PathBuf> = made.collect();
    if let Some(parent) = path.parent()
        && !parent.exists()
    {
        builder().recursive(true).create(parent).map_err(io("create the parent of"))?;
    }
    match builder().create(path) {
        Ok(()) => close_to_others(path).map_err(io("set the mode of"))?,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            // No other user can have placed or read a file in such a directory: it is empty, or contains only files
            // that shims create. All files are checked anyway.
            if is_our_directory(path) && holds_at_most(path, &["journal", "losses"]) {
                close_to_others(path).map_err(io("set the mode of"))?;
            }
        }
        Err(error) => return Err(io("create")(error)),
    }
    directory(path)?;
    Ok(made)
}

/// Whether a directory contains no files but these.
fn holds_at_most(path: &Path, names: &[&str]) -> bool {
    let is_known = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| names.iter().any(|name| entry.file_name() == *name))
    };
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.all(is_known))
}

/// Checks that `path` is a directory of ours that other users cannot enter.
pub(super) fn directory(path: &Path) -> Result<(), DirError> {
    let found = metadata(path)?;
    if found.is_symlink() {
        return refuse(path, "is a symbolic link", "name the real directory with --dir DIR");
    }
    if !found.is_dir() {
        return refuse(path, "is not a directory", "move it away, or use another --dir DIR");
    }
    owner(path, &found)?;
    if mode(&found) & 0o077 != 0 {
        let problem = format!("is open to other accounts (mode {:03o})", mode(&found) & 0o777);
        return refuse(path, &problem, &format!("run: chmod 700 '{}'", path.display()));
    }
    Ok(())
}

/// Whether `path` is a directory, not reached through a link, that belongs to this user.
pub(crate) fn is_our_directory(path: &Path) -> bool {
    metadata(path).is_ok_and(|found| found.is_dir() && is_ours(&found))
}

/// Checks the files that hookspan opens. A file that does not exist yet passes.
pub(super) fn files(dir: &StateDir) -> Result<(), DirError> {
    let database = dir.database();
    let beside = |suffix: &str| {
        let mut name = database.clone().into_os_string();
        name.push(suffix);
        name.into()
    };
    let known = [
        dir.journal(),
        dir.losses(),
        dir.torn(),
        dir.folders(),
        dir.lock_file(),
        dir.access(),
        dir.audit(),
        dir.serve_info(),
        beside("-wal"),
        beside("-shm"),
        database.clone(),
    ];
    known.iter().try_for_each(|path| file(path))
}

fn file(path: &Path) -> Result<(), DirError> {
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    // While the journal is at its bound, `journal` is a link that leads nowhere. The collector replaces it.
    let stopped = path.file_name().is_some_and(|name| name == "journal") && found.is_symlink();
    if stopped {
        return Ok(());
    }
    let remedy = "look at it, then move it away";
    if found.is_symlink() {
        return refuse(path, "is a symbolic link", remedy);
    }
    if !found.is_file() {
        return refuse(path, "is not a regular file", remedy);
    }
    owner(path, &found)?;
    // During a rotation the journal briefly has two names. Both are ours.
    let names = if path.file_name().is_some_and(|name| name == "journal") { 2 } else { 1 };
    if links(&found) > names {
        return refuse(path, "has a second name (hard link)", remedy);
    }
    if mode(&found) & 0o077 != 0 {
        let problem = format!("is open to other accounts (mode {:03o})", mode(&found) & 0o777);
        return refuse(path, &problem, &format!("run: chmod 600 '{}'", path.display()));
    }
    Ok(())
}

fn owner(path: &Path, found: &Metadata) -> Result<(), DirError> {
    if is_ours(found) {
        return Ok(());
    }
    refuse(path, "belongs to another account", "use a directory of your own with --dir DIR")
}

fn metadata(path: &Path) -> Result<Metadata, DirError> {
    path.symlink_metadata().map_err(|source| DirError::Io {
        action: "look at",
        path: path.to_path_buf(),
        source,
    })
}

fn refuse(path: &Path, problem: &str, remedy: &str) -> Result<(), DirError> {
    Err(DirError::Unsafe {
        path: path.to_path_buf(),
        problem: problem.to_owned(),
        remedy: remedy.to_owned(),
    })
}

#[cfg(unix)]
fn builder() -> DirBuilder {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

#[cfg(unix)]
fn close_to_others(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
}

/// Whether a file belongs to this account.
#[cfg(unix)]
pub(crate) fn is_ours(found: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    found.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(unix)]
fn mode(found: &Metadata) -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    found.mode()
}

#[cfg(unix)]
fn links(found: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    found.nlink()
}

// On other systems, the access list of the profile directory keeps other accounts out.

#[cfg(not(unix))]
fn builder() -> DirBuilder {
    DirBuilder::new()
}

#[cfg(not(unix))]
fn close_to_others(_path: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Whether a file belongs to this account.
#[cfg(not(unix))]
pub(crate) fn is_ours(_found: &Metadata) -> bool {
    true
}

#[cfg(not(unix))]
fn mode(_found: &Metadata) -> u32 {
    0
}

#[cfg(not(unix))]
fn links(_found: &Metadata) -> u64 {
    1
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn dir() -> (tempfile::TempDir, StateDir) {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("a/state"));
        (temp, dir)
    }

    fn mode_of(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_new_directory_is_closed_to_others_with_all_its_parents() {
        let (temp, dir) = dir();
        dir.prepare().unwrap();
        dir.prepare().unwrap();
        assert_eq!(mode_of(dir.root()), 0o700);
        assert_eq!(mode_of(&dir.imports()), 0o700);
        assert_eq!(mode_of(&temp.path().join("a")), 0o700);
    }

    #[test]
    fn an_empty_directory_is_adopted_and_a_used_one_must_be_closed_by_its_owner() {
        let (_temp, dir) = dir();
        fs::create_dir_all(dir.root()).unwrap();
        fs::set_permissions(dir.root(), Permissions::from_mode(0o755)).unwrap();
        dir.prepare().unwrap();
        assert_eq!(mode_of(dir.root()), 0o700);

        // A directory begun by a shim is adopted as well.
        fs::remove_dir(dir.imports()).unwrap();
        fs::write(dir.journal(), "").unwrap();
        fs::set_permissions(dir.journal(), Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(dir.root(), Permissions::from_mode(0o755)).unwrap();
        dir.prepare().unwrap();
        assert_eq!(mode_of(dir.root()), 0o700);

        fs::set_permissions(dir.root(), Permissions::from_mode(0o750)).unwrap();
        let error = dir.prepare().unwrap_err().to_string();
        assert!(error.contains("mode 750") && error.contains("chmod 700"), "{error}");
    }

    #[test]
    fn a_link_or_a_file_in_place_of_the_directory_is_refused() {
        let (temp, dir) = dir();
        let real = temp.path().join("real");
        fs::create_dir_all(&real).unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o700)).unwrap();
        fs::create_dir_all(dir.root().parent().unwrap()).unwrap();
        symlink(&real, dir.root()).unwrap();
        let error = dir.prepare().unwrap_err().to_string();
        assert!(error.contains("symbolic link") && error.contains("--dir"), "{error}");

        fs::remove_file(dir.root()).unwrap();
        fs::write(dir.root(), "x").unwrap();
        let error = dir.prepare().unwrap_err().to_string();
        assert!(error.contains("not a directory"), "{error}");
    }

    #[test]
    fn planted_files_are_refused_by_name() {
        let (temp, dir) = dir();
        dir.prepare().unwrap();
        let outside = temp.path().join("outside");
        fs::write(&outside, "x").unwrap();
        fs::set_permissions(&outside, Permissions::from_mode(0o600)).unwrap();

        symlink(&outside, dir.access()).unwrap();
        assert!(dir.verify().unwrap_err().to_string().contains("access.json: is a symbolic link"));
        fs::remove_file(dir.access()).unwrap();

        fs::hard_link(&outside, dir.database()).unwrap();
        assert!(dir.verify().unwrap_err().to_string().contains("second name"));
        fs::remove_file(dir.database()).unwrap();

        fs::create_dir(dir.losses()).unwrap();
        assert!(dir.verify().unwrap_err().to_string().contains("not a regular file"));
        fs::remove_dir(dir.losses()).unwrap();

        fs::write(dir.lock_file(), "x").unwrap();
        fs::set_permissions(dir.lock_file(), Permissions::from_mode(0o644)).unwrap();
        assert!(dir.verify().unwrap_err().to_string().contains("chmod 600"));
    }

    #[test]
    fn a_directory_that_cannot_be_made_says_what_to_do() {
        let error = StateDir::at("/proc/hookspan").prepare().unwrap_err().to_string();
        assert!(error.contains("/proc/hookspan") && error.contains("--dir"), "{error}");
    }
}
