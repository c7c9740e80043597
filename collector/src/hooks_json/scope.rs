//! Scopes: the places where Cursor looks for a hooks.json.

use std::path::{Path, PathBuf};

use crate::config::Environment;
use crate::dirs::normal;

/// A place where Cursor looks for hooks. All of them run (<https://cursor.com/docs/hooks>).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// ~/.cursor/hooks.json: every project of yours
    User,
    /// .cursor/hooks.json at the root of the repository around the working folder
    Project,
    /// The machine's hooks.json, for all its users; needs an administrator
    Enterprise,
}

impl Scope {
    /// Every scope.
    pub(crate) const ALL: [Self; 3] = [Self::User, Self::Project, Self::Enterprise];

    /// The word on the command line.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Enterprise => "enterprise",
        }
    }

    /// Its hooks.json; `None` without a home folder.
    #[must_use]
    pub(crate) fn path(self, env: &Environment) -> Option<PathBuf> {
        let folder = match self {
            Self::User => env.home()?.join(".cursor"),
            Self::Project => project_root(env.current_dir()).join(".cursor"),
            Self::Enterprise if cfg!(windows) => PathBuf::from(r"C:\ProgramData\Cursor"),
            Self::Enterprise if cfg!(target_os = "macos") => {
                PathBuf::from("/Library/Application Support/Cursor")
            }
            Self::Enterprise => PathBuf::from("/etc/cursor"),
        };
        let path = folder.join("hooks.json");
        // One spelling is used, because the record identifies files by their paths.
        Some(normal(&path).unwrap_or(path))
    }
}

/// The folder of the project that a hooks.json configures.
#[must_use]
pub(crate) fn project_of(path: &Path) -> Option<&Path> {
    path.parent()?.parent()
}

/// The root of the repository around `folder`, otherwise `folder`. A `.cursor` folder does not mark a project, because
/// the home folder has one as well.
fn project_root(folder: &Path) -> &Path {
    folder.ancestors().find(|ancestor| ancestor.join(".git").exists()).unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_the_repository_around_the_working_folder() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        let path = |folder: &Path| Scope::Project.path(&Environment::of(&[], folder)).unwrap();
        assert_eq!(path(&inner), inner.join(".cursor/hooks.json"));
        std::fs::create_dir(root.path().join(".git")).unwrap();
        assert_eq!(path(&inner), root.path().join(".cursor/hooks.json"));
    }

    #[test]
    fn the_user_scope_needs_a_home() {
        let env = Environment::of(&[("HOME", "/home/u")], "/w");
        assert_eq!(Scope::User.path(&env), Some("/home/u/.cursor/hooks.json".into()));
        assert_eq!(Scope::User.path(&Environment::of(&[], "/w")), None);
    }
}
