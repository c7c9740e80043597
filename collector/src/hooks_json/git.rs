//! Edits `.git/info/exclude`, so that git does not offer to commit one person's hooks.json.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::dirs::{Unfit, read_regular};

const MAX_BYTES: u64 = 1 << 20;
/// Maximum size of an index that is read. An index of a million files is about this large.
const MAX_INDEX_BYTES: u64 = 128 << 20;

/// A git work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkTree {
    root: PathBuf,
    /// The folder that belongs to this work tree alone. It contains the index.
    own: PathBuf,
    /// The folder that all work trees of the repository share.
    common: PathBuf,
}

/// A line that was added to an exclude file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Excluded {
    /// The file.
    pub path: PathBuf,
    /// What was appended to it.
    pub text: String,
}

impl WorkTree {
    /// The work tree whose outermost folder is `root`.
    #[must_use]
    pub(crate) fn at(root: &Path) -> Option<Self> {
        let git = root.join(".git");
        let own = if git.is_dir() { git } else { pointed_to(root, &git, "gitdir:")? };
        let common = pointed_to(&own, &own.join("commondir"), "").unwrap_or_else(|| own.clone());
        Some(Self { root: root.to_path_buf(), own, common })
    }

    /// Whether the index contains `path`. If so, excluding it has no effect.
    #[must_use]
    pub(crate) fn tracks(&self, path: &Path) -> bool {
        let Some(name) = self.relative(path) else { return false };
        let index = read_regular(&self.own.join("index"), MAX_INDEX_BYTES);
        let Ok(Some(index)) = index else { return false };
        // A name ends with a zero byte.
        let name = [name.as_bytes(), b"\0"].concat();
        index.bytes.windows(name.len()).any(|window| window == name)
    }

    /// The line that excludes `path`; `None` if it is already there.
    ///
    /// # Errors
    /// The exclude file is no regular file or cannot be read.
    pub(crate) fn exclusion(&self, path: &Path) -> io::Result<Option<Excluded>> {
        let Some(name) = self.relative(path) else { return Ok(None) };
        let line = format!("/{name}");
        let file = self.common.join("info").join("exclude");
        let text = read(&file)?;
        if text.lines().any(|known| known.trim() == line || known.trim() == name) {
            return Ok(None);
        }
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        Ok(Some(Excluded { path: file, text: format!("{gap}{line}\n") }))
    }

    fn relative(&self, path: &Path) -> Option<String> {
        Some(path.strip_prefix(&self.root).ok()?.to_str()?.to_owned())
    }
}

impl Excluded {
    /// Appends the text.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn add(&self) -> io::Result<()> {
        let text = read(&self.path)? + &self.text;
        fs::create_dir_all(self.path.parent().unwrap_or(Path::new(".")))?;
        replace(&self.path, &text)
    }

    /// Removes the text, if it is still there.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let text = read(&self.path)?;
        match text.find(&self.text) {
            Some(at) => {
                let (before, after) = (text.get(..at), text.get(at + self.text.len()..));
                let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
                // The line before had no line break, and the text added after our line needs one.
                let gap = if self.text.starts_with('\n') && !after.is_empty() { "\n" } else { "" };
                replace(&self.path, &[before, gap, after].concat())
            }
            None => Ok(()),
        }
    }
}

/// The folder that a file of git names, relative to `base`.
fn pointed_to(base: &Path, file: &Path, key: &str) -> Option<PathBuf> {
    let text = read_regular(file, 4096).ok()??;
    let text = String::from_utf8(text.bytes).ok()?;
    let named = text.trim().strip_prefix(key)?.trim();
    (!named.is_empty()).then(|| base.join(named))
}

fn read(path: &Path) -> io::Result<String> {
    let found = read_regular(path, MAX_BYTES).map_err(|unfit| match unfit {
        Unfit::Kind(kind) => io::Error::other(format!("it is {kind}, not a regular file")),
        Unfit::TooLarge(bytes) => io::Error::other(format!("{bytes} bytes are too many")),
        Unfit::Io(error) => error,
    })?;
    let Some(found) = found else { return Ok(String::new()) };
    String::from_utf8(found.bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new().prefix(".exclude.").tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    if let Ok(old) = fs::metadata(path) {
        new.as_file().set_permissions(old.permissions())?;
    }
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_added_once_and_taken_out_again() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(WorkTree::at(root), None);
        fs::create_dir_all(root.join(".git/info")).unwrap();
        let exclude = root.join(".git/info/exclude");
        let hooks = root.join(".cursor/hooks.json");
        for before in ["", "*.log\n", "*.log", "# comment\n/build\n"] {
            fs::write(&exclude, before).unwrap();
            let tree = WorkTree::at(root).unwrap();
            let added = tree.exclusion(&hooks).unwrap().unwrap();
            added.add().unwrap();
            let text = fs::read_to_string(&exclude).unwrap();
            assert!(text.starts_with(before) && text.ends_with("/.cursor/hooks.json\n"), "{text}");
            assert_eq!(tree.exclusion(&hooks).unwrap(), None, "a second time");
            fs::write(&exclude, text.clone() + "later\n").unwrap();
            added.remove().unwrap();
            let left = fs::read_to_string(&exclude).unwrap();
            assert_eq!(left, text.replace("/.cursor/hooks.json\n", "later\n"));
            fs::write(&exclude, &text).unwrap();
            added.remove().unwrap();
            assert_eq!(fs::read_to_string(&exclude).unwrap(), before);
            fs::write(&exclude, before).unwrap();
        }
    }

    #[test]
    fn a_linked_work_tree_shares_the_exclude_file_of_its_repository() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join("main/.git");
        fs::create_dir_all(git.join("worktrees/w")).unwrap();
        fs::write(git.join("worktrees/w/commondir"), "../..\n").unwrap();
        let root = folder.path().join("w");
        fs::create_dir(&root).unwrap();
        fs::write(root.join(".git"), format!("gitdir: {}/worktrees/w\n", git.display())).unwrap();
        let tree = WorkTree::at(&root).unwrap();
        tree.exclusion(&root.join(".cursor/hooks.json")).unwrap().unwrap().add().unwrap();
        let text = fs::read_to_string(git.join("info/exclude")).unwrap();
        assert_eq!(text, "/.cursor/hooks.json\n");
    }

    #[test]
    fn what_the_index_names_is_tracked() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".git/index"), b"DIRC....\x12.cursor/hooks.json\0\0\0").unwrap();
        let tree = WorkTree::at(root).unwrap();
        assert!(tree.tracks(&root.join(".cursor/hooks.json")));
        assert!(!tree.tracks(&root.join(".cursor/hooks")));
        assert!(!tree.tracks(Path::new("/elsewhere/.cursor/hooks.json")));
    }
}
