//! The sessions that a server answers about: those of one project, unless it was started with `--all`.

use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::Global;

/// Cursor puts the open folders into this variable. It starts servers of the user's own mcp.json in the home folder.
const FOLDERS: &str = "WORKSPACE_FOLDER_PATHS";

/// Which sessions a server answers about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All sessions.
    All,
    /// Sessions whose workspace is this folder or a folder inside it.
    Project(String),
    /// No sessions, because nobody named the project.
    Unknown,
}

impl Scope {
    /// `--all`, else `--project`, else the folder that Cursor names, else the repository around the working directory.
    pub(super) fn of(global: &Global, args: &Args) -> Self {
        if args.all {
            return Self::All;
        }
        // A host that does not replace variables in the configuration passes the text on unchanged.
        let given = args.project.as_ref().filter(|path| !path.to_string_lossy().contains("${"));
        let given = given.map(|path| global.env.current_dir().join(path));
        let project = given.or_else(|| named(global)).or_else(|| around(global));
        match project {
            Some(path) => {
                Self::Project(path.to_string_lossy().trim_end_matches(['/', '\\']).to_owned())
            }
            None => Self::Unknown,
        }
    }

    /// The value of the API's parameter `project`. The separator keeps `/src/app` from matching `/src/app-2`.
    pub(super) fn parameter(&self) -> Option<String> {
        match self {
            Self::Project(root) if cfg!(windows) => Some(root.clone()),
            Self::Project(root) => Some(format!("{root}/")),
            Self::All | Self::Unknown => None,
        }
    }

    /// Whether the server may answer about a session of this workspace.
    pub(super) fn holds(&self, workspace: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Unknown => false,
            Self::Project(root) => workspace.is_some_and(|workspace| {
                let is_prefix = workspace.get(..root.len()).is_some_and(|head| {
                    head == root || (cfg!(windows) && head.eq_ignore_ascii_case(root))
                });
                is_prefix
                    && workspace[root.len()..]
                        .chars()
                        .next()
                        .is_none_or(|c| matches!(c, '/' | '\\'))
            }),
        }
    }

    /// The project's name in the statistics per project.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Project(root) => root.rsplit(['/', '\\']).next(),
            Self::All | Self::Unknown => None,
        }
    }
}

fn named(global: &Global) -> Option<PathBuf> {
    let text = global.env.var(FOLDERS)?;
    let list: Vec<String> = serde_json::from_str(text)
        .unwrap_or_else(|_| text.split(',').map(|path| path.trim().to_owned()).collect());
    let open: Vec<PathBuf> =
        list.into_iter().map(PathBuf::from).filter(|path| path.is_absolute()).collect();
    let here = global.env.current_dir();
    open.iter().find(|path| here.starts_with(path)).or(open.first()).cloned()
}

/// The repository around the working directory, else the working directory. A home folder, or a folder above it, is not
/// a project.
fn around(global: &Global) -> Option<PathBuf> {
    let here: &Path = global.env.current_dir();
    let home = global.env.home();
    let is_project =
        |path: &&Path| path.parent().is_some() && !home.is_some_and(|home| home.starts_with(path));
    let repository =
        here.ancestors().take_while(is_project).find(|path| path.join(".git").exists());
    repository.or(Some(here).filter(is_project)).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    fn scope(variables: &[(&str, &str)], here: &str, args: &Args) -> Scope {
        let variables = [&[("HOME", "/home/u")], variables].concat();
        let env = Environment::of(&variables, here);
        Scope::of(&Global::new(env, Some("/s".into()), None).unwrap(), args)
    }

    fn project(path: &str) -> Scope {
        Scope::Project(path.to_owned())
    }

    #[test]
    #[cfg(unix)]
    fn a_server_belongs_to_the_project_it_was_started_for() {
        let none = Args::default();
        assert_eq!(scope(&[], "/w/app", &none), project("/w/app"));
        assert_eq!(scope(&[], "/home/u", &none), Scope::Unknown);
        assert_eq!(scope(&[], "/", &none), Scope::Unknown);
        let cursor = |value| scope(&[(FOLDERS, value)], "/home/u", &none);
        assert_eq!(cursor("/w/app"), project("/w/app"));
        assert_eq!(cursor("[\"/w/app\",\"/w/b\"]"), project("/w/app"));
        assert_eq!(cursor("/w/app,/w/b"), project("/w/app"));
        assert_eq!(cursor("relative"), Scope::Unknown);
        let given = |path: &str| Args { project: Some(path.into()), ..Args::default() };
        assert_eq!(scope(&[], "/home/u", &given("/w/x/")), project("/w/x"));
        assert_eq!(scope(&[], "/home/u", &given("${workspaceFolder}")), Scope::Unknown);
        assert_eq!(scope(&[], "/", &Args { all: true, ..Args::default() }), Scope::All);
    }

    #[test]
    fn a_sibling_with_a_longer_name_is_another_project() {
        let app = project("/w/app");
        for (workspace, expected) in [
            (Some("/w/app"), true),
            (Some("/w/app/"), true),
            (Some("/w/app/sub"), true),
            (Some("/w/app-2"), false),
            (Some("/w"), false),
            (None, false),
        ] {
            assert_eq!(app.holds(workspace), expected, "{workspace:?}");
        }
        assert!(Scope::All.holds(None) && !Scope::Unknown.holds(Some("/w/app")));
    }
}
