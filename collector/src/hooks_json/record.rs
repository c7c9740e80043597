//! What `install` did, so that `uninstall` undoes that and no more: `install.json` in the state directory.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::edit::Made;
use crate::dirs;

/// Everything that is installed from one state directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// One per hooks.json.
    pub files: Vec<Installed>,
}

/// What was done to one hooks.json.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// The file, as it is named.
    pub path: PathBuf,
    /// The hook program its entries run.
    pub program: PathBuf,
    /// Whether there was no such file before.
    pub was_absent: bool,
    /// Folders that were made for it, outermost first.
    pub folders: Vec<PathBuf>,
    /// Where its bytes of before are kept.
    pub backup: Option<PathBuf>,
    /// What was made in it besides the entries.
    pub made: Made,
}

impl Record {
    fn path(dir: &Path) -> PathBuf {
        dir.join("install.json")
    }

    /// Reads the record of a state directory. A missing one is empty, and so is an unreadable one: then `uninstall` takes
    /// only what it can recognise.
    #[must_use]
    pub fn load(dir: &Path) -> Self {
        let bytes = std::fs::read(Self::path(dir)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Writes the record, or removes it when nothing is installed any more.
    ///
    /// # Errors
    /// The state directory cannot be written.
    pub fn save(&self, dir: &Path) -> std::io::Result<()> {
        let path = Self::path(dir);
        if !self.files.is_empty() {
            return dirs::write_private(&path, &serde_json::to_vec_pretty(self)?);
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// What was done to this file.
    #[must_use]
    pub fn of(&self, path: &Path) -> Option<&Installed> {
        self.files.iter().find(|installed| installed.path == path)
    }

    /// Replaces or adds what was done to a file.
    pub fn put(&mut self, installed: Installed) {
        self.remove(&installed.path.clone());
        self.files.push(installed);
    }

    /// Forgets a file.
    pub fn remove(&mut self, path: &Path) {
        self.files.retain(|installed| installed.path != path);
    }

    /// Whether a hook program is still in use.
    #[must_use]
    pub fn uses(&self, program: &Path) -> bool {
        self.files.iter().any(|installed| installed.program == program)
    }
}
