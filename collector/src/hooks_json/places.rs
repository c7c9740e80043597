//! Every hooks.json that may run hookspan here: where Cursor looks, and where `install` has been.

use std::path::{Path, PathBuf};

use super::audit::Audit;
use super::document::Document;
use super::file::HooksFile;
use super::record::Record;
use super::scope::Scope;
use crate::config::Environment;

/// A file that may run hookspan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its scope; `None` for a repository other than the one around the working folder.
    pub scope: Option<Scope>,
    /// The file.
    pub file: PathBuf,
}

/// The file of each scope, then every other that the record of the state directory `root` names.
#[must_use]
pub fn known(env: &Environment, root: &Path) -> Vec<Place> {
    let scopes = Scope::ALL.into_iter().filter_map(|scope| Some((Some(scope), scope.path(env)?)));
    let recorded = Record::load(root).files.into_iter().map(|installed| (None, installed.path));
    let mut places: Vec<Place> = Vec::new();
    for (scope, file) in scopes.chain(recorded) {
        // In the home folder itself, the project's file is the user's.
        if places.iter().all(|known| known.file != file) {
            places.push(Place { scope, file });
        }
    }
    places
}

impl Place {
    /// How many events run hookspan by this file; 0 when it is not there or cannot be read.
    #[must_use]
    pub fn events(&self) -> usize {
        let text = HooksFile::read(&self.file).ok().and_then(|file| file.text).unwrap_or_default();
        let Ok(document) = Document::parse(&text) else { return 0 };
        Audit::of(&document).ours.iter().filter(|ours| !ours.grouped).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks_json::edit::Made;
    use crate::hooks_json::record::Installed;

    #[test]
    fn recorded_files_follow_the_scopes_once_each() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let root = folder.path().join("state");
        for folder in [&home, &root] {
            std::fs::create_dir(folder).unwrap();
        }
        let env = Environment::of(&[("HOME", home.to_str().unwrap())], folder.path());
        let installed = |path: PathBuf| Installed {
            path,
            program: "/p".into(),
            was_absent: true,
            folders: Vec::new(),
            backup: None,
            made: Made::default(),
        };
        let (user, other) = (home.join(".cursor/hooks.json"), folder.path().join("r/hooks.json"));
        let files = vec![installed(user.clone()), installed(other.clone())];
        Record { files }.save(&root).unwrap();
        let known = known(&env, &root);
        assert_eq!(known.iter().filter(|place| place.file == user).count(), 1);
        assert_eq!(known.last().unwrap(), &Place { scope: None, file: other });
        assert_eq!(known[0].events(), 0, "it is not there");
        std::fs::create_dir(home.join(".cursor")).unwrap();
        let text = r#"{"version":1,"hooks":{"stop":[{"command":"/s/hookspan-shim stop"}]}}"#;
        std::fs::write(&user, text).unwrap();
        assert_eq!(known[0].events(), 1);
    }
}
