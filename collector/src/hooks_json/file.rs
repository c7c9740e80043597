//! Reading and replacing hooks.json: through symbolic links, same mode and owner, all or nothing.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::Broken;
use crate::config::position;

/// Nobody's hooks.json is this large; a file that is was not meant to be one.
const MAX_BYTES: u64 = 8 << 20;

/// Why a hooks.json cannot be used; nothing was touched.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is not what Cursor could read either.
    #[error("{}:{broken}; nothing was changed, repair the file and run this again", .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Where and what.
        broken: Broken,
    },
    /// It is too large to be a hooks.json.
    #[error("{}: {bytes} bytes are too many for a hooks.json; nothing was changed", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The file system refused.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What came back.
        source: io::Error,
    },
}

/// A hooks.json as it lies on disk.
#[derive(Clone, Debug)]
pub struct HooksFile {
    /// As it is named.
    pub path: PathBuf,
    /// Where the bytes are, links resolved.
    pub target: PathBuf,
    /// Its text without a byte order mark, or `None` when it is not there.
    pub text: Option<String>,
    bom: bool,
}

const BOM: &str = "\u{feff}";

impl HooksFile {
    /// Reads the file; a missing one is fine.
    ///
    /// # Errors
    /// It cannot be read, is not UTF-8, or is far too large.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let target = resolve(path).map_err(|source| FileError::Io {
            action: "follow",
            path: path.to_path_buf(),
            source,
        })?;
        let io = |source| FileError::Io { action: "read", path: target.clone(), source };
        let bytes = match fs::metadata(&target) {
            Ok(meta) if meta.len() > MAX_BYTES => {
                return Err(FileError::TooLarge { path: target, bytes: meta.len() });
            }
            Ok(_) => Some(fs::read(&target).map_err(io)?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(io(error)),
        };
        let text = bytes.map(|bytes| decode(path, bytes)).transpose()?;
        let bom = text.as_ref().is_some_and(|text| text.starts_with(BOM));
        let text = text.map(|text| text.strip_prefix(BOM).map(str::to_owned).unwrap_or(text));
        Ok(Self { path: path.to_path_buf(), target, text, bom })
    }

    /// Names the file in an error about its text.
    #[must_use]
    pub fn broken(&self, broken: Broken) -> FileError {
        FileError::Broken { path: self.path.clone(), broken }
    }

    /// The folders that [`Self::write`] has to make, outermost first.
    #[must_use]
    pub fn missing_folders(&self) -> Vec<PathBuf> {
        missing_parents(&self.target)
    }

    /// Replaces the text: written beside the target, synced, renamed over it, with its mode and owner.
    ///
    /// # Errors
    /// The folder cannot be written. The old file is then still whole.
    pub fn write(&self, text: &str) -> Result<(), FileError> {
        let folder = self.target.parent().unwrap_or(Path::new("."));
        let io = |action| {
            let path = self.target.clone();
            move |source| FileError::Io { action, path, source }
        };
        fs::create_dir_all(folder).map_err(io("make the folder of"))?;
        let mut new = tempfile::Builder::new()
            .prefix(".hooks.json.")
            .tempfile_in(folder)
            .map_err(io("write beside"))?;
        let bom = if self.bom { BOM } else { "" };
        new.write_all(bom.as_bytes())
            .and_then(|()| new.write_all(text.as_bytes()))
            .map_err(io("write beside"))?;
        keep_mode(&self.target, new.as_file()).map_err(io("keep the mode of"))?;
        new.as_file().sync_all().map_err(io("sync"))?;
        new.persist(&self.target).map_err(|error| io("replace")(error.error))?;
        Ok(())
    }

    /// Removes the file; a symbolic link to it stays.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn remove(&self) -> Result<(), FileError> {
        fs::remove_file(&self.target).map_err(|source| FileError::Io {
            action: "remove",
            path: self.target.clone(),
            source,
        })
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

/// Where a chain of links ends, whether or not something is there.
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
pub fn missing_parents(path: &Path) -> Vec<PathBuf> {
    let folders = path.ancestors().skip(1).take_while(|folder| !folder.exists());
    let mut missing: Vec<PathBuf> = folders.map(Path::to_path_buf).collect();
    missing.reverse();
    missing
}

/// Gives the new file the mode and owner of the old one; a new hooks.json is what the umask makes of 0644.
#[cfg(unix)]
fn keep_mode(old: &Path, new: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
    match fs::metadata(old) {
        Ok(meta) => {
            let ours = new.metadata()?;
            if (ours.uid(), ours.gid()) != (meta.uid(), meta.gid()) {
                // Only an administrator may give a file away; for others the group at most differs.
                let _kept = fchown(new, Some(meta.uid()), Some(meta.gid()));
            }
            new.set_permissions(fs::Permissions::from_mode(meta.mode() & 0o7777))
        }
        Err(_) => new.set_permissions(fs::Permissions::from_mode(0o644)),
    }
}

#[cfg(not(unix))]
fn keep_mode(_old: &Path, _new: &fs::File) -> io::Result<()> {
    Ok(())
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
}
