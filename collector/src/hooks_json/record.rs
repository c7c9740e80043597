//! Records what `install` did in `install.json` of the state directory, so that `uninstall` undoes exactly that.
//!
//! It is read and written while [`dirs::Exclusive`] is held, so that installations into several projects at once are
//! all recorded.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Scope;
use super::edit::Made;
use super::git::Excluded;
use crate::config::Environment;
use crate::dirs;

/// Everything that is installed from one state directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// One per hooks.json.
    pub files: Vec<Installed>,
}

/// The changes to one hooks.json.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Installed {
    /// The file, as it is named.
    pub path: PathBuf,
    /// The scope. Older versions did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// The hook program its entries run.
    pub program: PathBuf,
    /// Whether the file did not exist before.
    pub was_absent: bool,
    /// Folders that were created for it, outermost first.
    pub folders: Vec<PathBuf>,
    /// Path of the backup.
    pub backup: Option<PathBuf>,
    /// What was inserted in it in addition to the entries.
    pub made: Made,
    /// The line that keeps it out of git, if the user asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excluded: Option<Excluded>,
}

/// A hooks.json that may run the hook program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Whose it is.
    pub scope: Scope,
    /// The file, which need not exist.
    pub path: PathBuf,
    /// Whether `install.json` lists it.
    pub recorded: bool,
}

/// Every hooks.json that may run the hook program: the files that Cursor reads from the working folder, and those
/// listed in `install.json`. Each file once.
#[must_use]
pub(crate) fn places(env: &Environment, dir: &Path) -> Vec<Place> {
    let record = Record::load(dir);
    let mut places: Vec<Place> = Vec::new();
    for scope in Scope::ALL {
        let Some(path) = scope.path(env) else { continue };
        // In the home folder, the project's file is the user's file.
        if places.iter().all(|place| place.path != path) {
            places.push(Place { scope, recorded: record.of(&path).is_some(), path });
        }
    }
    for installed in record.files {
        if places.iter().all(|place| place.path != installed.path) {
            let scope = installed.scope.unwrap_or(Scope::Project);
            places.push(Place { scope, path: installed.path, recorded: true });
        }
    }
    places
}

impl Record {
    fn path(dir: &Path) -> PathBuf {
        dir.join("install.json")
    }

    /// Reads the record of a state directory. A record that is missing or cannot be read counts as empty. `uninstall`
    /// then removes only what it recognises.
    #[must_use]
    pub(crate) fn load(dir: &Path) -> Self {
        let bytes = std::fs::read(Self::path(dir)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Writes the record. If nothing is installed any more, removes it.
    ///
    /// # Errors
    /// The state directory cannot be written.
    pub(crate) fn save(&self, dir: &Path) -> std::io::Result<()> {
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
    pub(crate) fn of(&self, path: &Path) -> Option<&Installed> {
        self.files.iter().find(|installed| installed.path == path)
    }

    /// Adds or replaces what was done to a file.
    pub(crate) fn put(&mut self, installed: Installed) {
        self.remove(&installed.path.clone());
        self.files.push(installed);
    }

    /// Forgets a file.
    pub(crate) fn remove(&mut self, path: &Path) {
        self.files.retain(|installed| installed.path != path);
    }

    /// Whether a hook program is still used.
    #[must_use]
    pub(crate) fn uses(&self, program: &Path) -> bool {
        self.files.iter().any(|installed| installed.program == program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(path: &Path, scope: Option<Scope>) -> Installed {
        Installed {
            path: path.to_path_buf(),
            scope,
            program: "/s/bin/hookspan-shim".into(),
            was_absent: true,
            folders: Vec::new(),
            backup: None,
            made: Made::default(),
            excluded: None,
        }
    }

    #[test]
    fn every_scope_and_every_recorded_project_is_a_place_once() {
        let folder = tempfile::tempdir().unwrap();
        let env = Environment::of(&[("HOME", "/home/u")], "/repos/here");
        let user = Scope::User.path(&env).unwrap();
        let mut record = Record::default();
        record.put(installed(&user, Some(Scope::User)));
        record.put(installed(Path::new("/repos/other/.cursor/hooks.json"), None));
        record.save(folder.path()).unwrap();
        let found = places(&env, folder.path());
        let seen: Vec<_> = found.iter().map(|place| (place.scope, place.recorded)).collect();
        assert_eq!(
            seen,
            [
                (Scope::User, true),
                (Scope::Project, false),
                (Scope::Enterprise, false),
                (Scope::Project, true)
            ]
        );
    }

    #[test]
    fn a_record_of_an_older_version_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let old = r#"{"files":[{"path":"/h/.cursor/hooks.json","program":"/s/bin/hookspan-shim","was_absent":false,
            "folders":[],"backup":null,"made":{"keys":["hooks"],"opened":{}}}]}"#;
        std::fs::write(folder.path().join("install.json"), old).unwrap();
        let record = Record::load(folder.path());
        assert_eq!(record.files.len(), 1);
        assert!(record.files[0].made.keys.contains("hooks"));
    }
}
