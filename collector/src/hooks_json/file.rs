//! Reads and replaces hooks.json: follows symbolic links, keeps mode and owner, and replaces the file completely or not
//! at all.
//!
//! The file may be a symbolic link, because people keep hooks.json in a repository of dotfiles. In that case, the
//! link's target is written, and the link stays. The target must be a regular file or missing. A link to `/dev/null`
//! switches hooks off on purpose, and replacing the device would break the machine.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{Broken, attributes};
use crate::config::position;
use crate::dirs::{Unfit, read_regular, sync_folder};

/// Maximum size. A larger file is not a hooks.json.
const MAX_BYTES: u64 = 8 << 20;

/// Why a hooks.json cannot be used. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// The text is not valid. Cursor could not read it either.
    #[error("{}:{broken}; nothing was changed, repair the file and run this again", .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where and what.
        broken: Broken,
    },
    /// The file is too large to be a hooks.json.
    #[error("{}: {bytes} bytes is too large for a hooks.json; nothing was changed", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The path is not a regular file.
    #[error(
        "{place} is {kind}, not a regular file; nothing was changed. Put a file there, or remove it"
    )]
    NotRegular {
        /// The path, and where it leads.
        place: String,
        /// "a FIFO" and so on.
        kind: &'static str,
    },
    /// The file belongs to another account.
    #[error("{} belongs to another account (uid {owner}); nothing was changed. Run this as that account", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// The file has several hard links.
    #[error(
        "{} has {names} names (hard links); a new file in its place would leave the others with the old text, so nothing was \
         changed. Make it a file of its own (`cp {0} {0}.new && mv {0}.new {0}`), or use symbolic links",
        .path.display()
    )]
    Linked {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        names: u64,
    },
    /// A link leads out of the repository.
    #[error(
        "{} leads to {}, outside the project {}; nothing was changed. Replace the link by a file, or use --scope user",
        .path.display(), .target.display(), .root.display()
    )]
    Outside {
        /// The file, as it is named.
        path: PathBuf,
        /// Where it is.
        target: PathBuf,
        /// The project.
        root: PathBuf,
    },
    /// The file was changed since it was read.
    #[error("{} was changed by another program in the meantime, so hookspan did not change it. Run this again", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot {action} {}: {cause}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's error. It is not the source of this error, because the text already contains it.
        cause: io::Error,
    },
}

/// A hooks.json as it lies on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HooksFile {
    /// The path as it was named.
    pub path: PathBuf,
    /// The path of the file itself, with links resolved.
    pub target: PathBuf,
    /// Its text without a byte order mark; `None` if the file is missing.
    pub text: Option<String>,
    bom: bool,
    owner: Option<u32>,
    names: u64,
}

const BOM: &str = "\u{feff}";

impl HooksFile {
    /// Reads the file. A missing file is not an error.
    ///
    /// # Errors
    ///
    /// It is not a regular file, cannot be read, is not UTF-8, or is far too large.
    pub(crate) fn read(path: &Path) -> Result<Self, FileError> {
        let io = |action, path: &Path| {
            let path = path.to_path_buf();
            move |cause| FileError::Io { action, path, cause }
        };
        let target = resolve(path).map_err(io("follow", path))?;
        let found = read_regular(&target, MAX_BYTES).map_err(|unfit| match unfit {
            Unfit::Kind(kind) => FileError::NotRegular { place: place(path, &target), kind },
            Unfit::TooLarge(bytes) => FileError::TooLarge { path: target.clone(), bytes },
            Unfit::Io(cause) => io("read", &target)(cause),
        })?;
        let owner = found.as_ref().and_then(|found| owner(&found.metadata));
        let names = found.as_ref().map_or(1, |found| names(&found.metadata));
        let text = found.map(|found| decode(path, found.bytes)).transpose()?;
        let bom = text.as_ref().is_some_and(|text| text.starts_with(BOM));
        let text = text.map(|text| text.strip_prefix(BOM).map(str::to_owned).unwrap_or(text));
        Ok(Self { path: path.to_path_buf(), target, text, bom, owner, names })
    }

    /// Names the file in an error about its text.
    #[must_use]
    pub(crate) fn broken(&self, broken: Broken) -> FileError {
        FileError::Broken { path: self.path.clone(), broken }
    }

    /// Its bytes, or `None` when it is not there.
    #[must_use]
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        self.text.as_deref().map(|text| self.encoded(text))
    }

    fn encoded(&self, text: &str) -> Vec<u8> {
        [if self.bom { BOM } else { "" }, text].concat().into_bytes()
    }

    /// Whether this account may replace the file. The new file would belong to this account, and only an administrator
    /// can keep the owner. A file with several hard links cannot be replaced under all its names.
    ///
    /// # Errors
    /// [`FileError::Foreign`], [`FileError::Linked`].
    pub(crate) fn check_owner(&self) -> Result<(), FileError> {
        if self.names > 1 {
            return Err(FileError::Linked { path: self.target.clone(), names: self.names });
        }
        match self.owner.filter(|owner| !may_replace(*owner)) {
            Some(owner) => Err(FileError::Foreign { path: self.target.clone(), owner }),
            None => Ok(()),
        }
    }

    /// Whether the file is below `root` after all links are followed.
    ///
    /// # Errors
    /// [`FileError::Outside`].
    pub(crate) fn check_within(&self, root: &Path) -> Result<(), FileError> {
        let folder = self.target.ancestors().skip(1).find_map(|folder| folder.canonicalize().ok());
        let real = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
        if folder.as_ref().is_some_and(|folder| folder.starts_with(&real)) {
            return Ok(());
        }
        let name = self.target.file_name().unwrap_or_default();
        Err(FileError::Outside {
            path: self.path.clone(),
            target: folder.unwrap_or_default().join(name),
            root: root.to_path_buf(),
        })
    }

    /// The folders that [`Self::write`] must create, outermost first.
    #[must_use]
    pub(crate) fn missing_folders(&self) -> Vec<PathBuf> {
        missing_parents(&self.target)
    }

    /// Checks in advance whether a file can be created beside it. A missing folder is not checked.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn check_writable(&self) -> Result<(), FileError> {
        let folder = self.target.parent().filter(|folder| folder.exists());
        let tried = folder.map(|folder| self.stage(folder)).transpose();
        tried.map(drop)
    }

    /// A new file beside the target.
    fn stage(&self, folder: &Path) -> Result<tempfile::NamedTempFile, FileError> {
        let staged = tempfile::Builder::new().prefix(".hooks.json.").tempfile_in(folder);
        staged.map_err(|error| FileError::Io {
            action: "write beside",
            path: self.target.clone(),
            // The error without the random name of the temporary file, which would not help a person.
            cause: error.raw_os_error().map_or(error, io::Error::from_raw_os_error),
        })
    }

    /// Reads the file again and compares.
    ///
    /// # Errors
    /// [`FileError::Changed`] when something else is there by now.
    pub(crate) fn check_unchanged(&self) -> Result<(), FileError> {
        if Self::read(&self.path).is_ok_and(|now| now == *self) {
            return Ok(());
        }
        Err(FileError::Changed { path: self.path.clone() })
    }

    /// Replaces the text. The new text is written beside the target, synced, and renamed over the target, with its
    /// mode, owner, extended attributes and access control list. Directly before that, the file is read again.
    ///
    /// # Errors
    ///
    /// The file was changed since it was read, or the folder cannot be written. The existing file is then still
    /// complete.
    pub(crate) fn write(&self, text: &str) -> Result<(), FileError> {
        let folder = self.target.parent().unwrap_or(Path::new("."));
        let io = |action| {
            let path = self.target.clone();
            move |cause| FileError::Io { action, path, cause }
        };
        fs::create_dir_all(folder).map_err(io("make the folder of"))?;
        let mut new = self.stage(folder)?;
        new.write_all(&self.encoded(text)).map_err(io("write beside"))?;
        keep_mode(&self.target, new.as_file()).map_err(io("keep the mode of"))?;
        attributes::keep(&self.target, new.as_file()).map_err(io("keep the attributes of"))?;
        new.as_file().sync_all().map_err(io("sync"))?;
        self.check_unchanged()?;
        let placed = match self.text {
            Some(_) => new.persist(&self.target),
            // A file that appears at this moment must not be replaced either.
            None => new.persist_noclobber(&self.target),
        };
        placed.map_err(|error| match error.error.kind() {
            io::ErrorKind::ResourceBusy => io("replace the mounted file")(error.error),
            _ => io("replace")(error.error),
        })?;
        sync_folder(folder).map_err(io("sync the folder of"))
    }

    /// Removes the file; a symbolic link to it stays.
    ///
    /// # Errors
    /// The file was changed since it was read, or the folder cannot be written.
    pub(crate) fn remove(&self) -> Result<(), FileError> {
        self.check_unchanged()?;
        fs::remove_file(&self.target).map_err(|cause| FileError::Io {
            action: "remove",
            path: self.target.clone(),
            cause,
        })
    }
}

/// A path and its target, in words.
fn place(path: &Path, target: &Path) -> String {
    match path == target {
        true => path.display().to_string(),
        false => format!("{} leads to {}, which", path.display(), target.display()),
    }
}

fn decode(path: &Path, bytes: Vec<u8>) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        let (line, column) = position(&text, valid);
        let what = match error.as_bytes() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "the file is UTF-16; save it as UTF-8",
            _ => "this is not UTF-8",
        };
        FileError::Broken {
            path: path.to_path_buf(),
            broken: Broken { line, column, what: what.to_owned() },
        }
    })
}

/// The end of a chain of links. It need not exist.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..40 {
        match fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new(".")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The folders above `path` that do not exist, outermost first.
#[must_use]
pub(crate) fn missing_parents(path: &Path) -> Vec<PathBuf> {
    let folders = path.ancestors().skip(1).take_while(|folder| !folder.exists());
    let mut missing: Vec<PathBuf> = folders.map(Path::to_path_buf).collect();
    missing.reverse();
    missing
}

/// Gives the new file the mode and owner of the old one. A hooks.json that did not exist gets mode 0644, reduced by the
/// umask.
#[cfg(unix)]
fn keep_mode(old: &Path, new: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
    match fs::symlink_metadata(old) {
        Ok(meta) => {
            let ours = new.metadata()?;
            if ours.uid() != meta.uid() {
                fchown(new, Some(meta.uid()), None)?;
            }
            if ours.gid() != meta.gid() {
                // A user may give a file only to their own groups. An administrator may give it to any group.
                let _kept = fchown(new, None, Some(meta.gid()));
            }
            new.set_permissions(fs::Permissions::from_mode(meta.mode() & 0o7777))
        }
        Err(_) => new.set_permissions(fs::Permissions::from_mode(0o644)),
    }
}

#[cfg(unix)]
fn owner(found: &fs::Metadata) -> Option<u32> {
    Some(std::os::unix::fs::MetadataExt::uid(found))
}

#[cfg(unix)]
fn names(found: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(found)
}

#[cfg(not(unix))]
fn names(_found: &fs::Metadata) -> u64 {
    1
}

#[cfg(unix)]
fn may_replace(owner: u32) -> bool {
    let me = rustix::process::geteuid();
    me.is_root() || me.as_raw() == owner
}

#[cfg(not(unix))]
fn keep_mode(_old: &Path, _new: &fs::File) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn owner(_found: &fs::Metadata) -> Option<u32> {
    None
}

#[cfg(not(unix))]
fn may_replace(_owner: u32) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_survives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks.json");
        fs::write(&path, "\u{feff}{}").unwrap();
        let file = HooksFile::read(&path).unwrap();
        assert_eq!(file.text.as_deref(), Some("{}"));
        file.write("{ }").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "\u{feff}{ }");
    }

    #[test]
    fn what_is_not_utf_8_is_refused_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks.json");
        fs::write(&path, b"{\n  \"a\xff\": 1 }").unwrap();
        let error = HooksFile::read(&path).unwrap_err().to_string();
        assert!(error.contains("hooks.json:2:5: this is not UTF-8"), "{error}");
        fs::write(&path, b"\xff\xfe{\0}\0").unwrap();
        let error = HooksFile::read(&path).unwrap_err().to_string();
        assert!(error.contains("UTF-16"), "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_is_written_through_and_the_mode_stays() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("dotfiles.json");
        let link = folder.path().join("hooks.json");
        fs::write(&real, "{}").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("dotfiles.json", &link).unwrap();
        HooksFile::read(&link).unwrap().write("{ }").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "{ }");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    #[cfg(unix)]
    fn a_link_to_nothing_makes_its_target_and_missing_folders() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("hooks.json");
        std::os::unix::fs::symlink("a/b/real.json", &link).unwrap();
        let file = HooksFile::read(&link).unwrap();
        assert_eq!(file.text, None);
        let missing = file.missing_folders();
        assert_eq!(missing, [folder.path().join("a"), folder.path().join("a/b")]);
        file.write("{}").unwrap();
        assert_eq!(fs::read_to_string(&link).unwrap(), "{}");
    }

    #[test]
    fn a_file_that_was_changed_since_it_was_read_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks.json");
        fs::write(&path, "{}").unwrap();
        let file = HooksFile::read(&path).unwrap();
        fs::write(&path, "{ \"mine\": 1 }").unwrap();
        assert!(matches!(file.write("{ }"), Err(FileError::Changed { .. })));
        assert!(matches!(file.remove(), Err(FileError::Changed { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "{ \"mine\": 1 }");

        let missing = folder.path().join("new.json");
        let file = HooksFile::read(&missing).unwrap();
        fs::write(&missing, "{}").unwrap();
        assert!(matches!(file.write("{ }"), Err(FileError::Changed { .. })));
        assert_eq!(fs::read_to_string(&missing).unwrap(), "{}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_to_a_device_is_refused_with_both_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks.json");
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        let error = HooksFile::read(&path).unwrap_err().to_string();
        let expected = format!(
            "{} leads to /dev/null, which is a device, not a regular file; nothing was changed. \
             Put a file there, or remove it",
            path.display()
        );
        assert_eq!(error, expected);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let error = HooksFile::read(&path).unwrap_err().to_string();
        assert!(error.contains("hooks.json is a directory, not a regular file"), "{error}");
        assert_eq!(error.matches("directory").count(), 1, "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_out_of_a_project_is_seen_wherever_it_stands() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("repo"), folder.path().join("home"));
        fs::create_dir_all(inside.join("config")).unwrap();
        fs::create_dir_all(&outside).unwrap();
        let path = inside.join(".cursor/hooks.json");
        let check = || HooksFile::read(&path).unwrap().check_within(&inside);

        assert!(check().is_ok(), "a folder that is to be made");
        symlink(&outside, inside.join(".cursor")).unwrap();
        assert!(matches!(check(), Err(FileError::Outside { .. })));
        fs::remove_file(inside.join(".cursor")).unwrap();
        fs::create_dir(inside.join(".cursor")).unwrap();
        symlink("../../home/hooks.json", &path).unwrap();
        assert!(matches!(check(), Err(FileError::Outside { .. })));
        fs::remove_file(&path).unwrap();
        symlink("../config/hooks.json", &path).unwrap();
        assert!(check().is_ok());
    }
}
