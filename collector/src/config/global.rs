//! What every command and `doctor` need: the environment and the paths.

use std::path::PathBuf;

use super::policy::Policy;
use super::{Config, Environment, paths};
use crate::dirs::StateDir;

/// The environment and the paths, determined once.
#[derive(Clone, Debug)]
pub(crate) struct Global {
    /// The environment, read once.
    pub env: Environment,
    /// The state directory; it need not exist yet.
    pub state: StateDir,
    /// Whether a hook finds the state directory when its environment contains only `HOME`. This is so when Cursor is
    /// started from the desktop.
    pub dir_is_default: bool,
    /// Whether `--dir` or `HOOKSPAN_DIR` names the directory.
    pub dir_is_given: bool,
    /// The configuration file to use. It need not exist. `None` without a home folder.
    pub config_file: Option<PathBuf>,
    /// Whether `--config` names the file. If it does, the file must exist.
    pub config_required: bool,
    /// Where the policy of this machine lies, if it has one. `None` for invented data, which never leaves.
    pub policy_file: Option<PathBuf>,
}

impl Global {
    /// Resolves paths: flag, then environment, then the platform's default.
    ///
    /// # Errors
    /// There is no home folder and no folder was named.
    pub(crate) fn new(
        env: Environment,
        dir: Option<PathBuf>,
        config: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let places = paths::places(&env);
        let dir_is_given = dir.is_some() || places.hookspan_dir.is_some();
        let flag = dir.map(|dir| env.current_dir().join(dir));
        let state = StateDir::resolve(flag.as_deref(), &places)?;
        let config_required = config.is_some();
        Ok(Self {
            dir_is_default: state.is_found_from_home(&places),
            dir_is_given,
            state,
            config_file: config.or_else(|| paths::default_config_file(&env)),
            config_required,
            policy_file: Some(paths::policy_file()),
            env,
        })
    }

    /// A command line to show to the user. Run in this environment, it uses the same state directory.
    #[must_use]
    pub(crate) fn command(&self, words: &str) -> String {
        let found = StateDir::resolve(None, &paths::places(&self.env));
        if found.is_ok_and(|found| found.root() == self.state.root()) {
            return format!("hookspan {words}");
        }
        let dir = self.state.root().display().to_string();
        let plain = |c: char| c.is_alphanumeric() || "/._-+:".contains(c);
        let dir = match dir.chars().all(plain) {
            true => dir,
            false => format!("'{}'", dir.replace('\'', r"'\''")),
        };
        format!("hookspan --dir {dir} {words}")
    }

    /// Loads the configuration: defaults, file, environment, and the limits of this machine's policy.
    ///
    /// # Errors
    /// A file cannot be read or is not valid, or the policy is refused. The message names file, line and column.
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        let mut config =
            Config::load(self.config_file.as_deref(), self.config_required, &self.env)?;
        let policy = self.policy_file.as_deref().map(Policy::load).transpose()?.flatten();
        if let Some(policy) = policy {
            policy.restrict(&mut config);
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_directory_comes_from_the_flag_then_the_environment_then_the_home() {
        #[track_caller]
        fn check(flag: Option<&str>, variables: &[(&str, &str)], dir: &str, is_default: bool) {
            let env = Environment::of(variables, "/w");
            let global = Global::new(env, flag.map(PathBuf::from), None).unwrap();
            let found = (global.state.root().to_path_buf(), global.dir_is_default);
            assert_eq!(found, (PathBuf::from(dir), is_default));
        }
        let home = ("HOME", "/home/u");
        check(Some("/a"), &[home, ("HOOKSPAN_DIR", "/b")], "/a", false);
        check(Some("a"), &[home], "/w/a", false);
        check(None, &[home, ("HOOKSPAN_DIR", "/b")], "/b", false);
        if cfg!(target_os = "linux") {
            check(None, &[home, ("XDG_STATE_HOME", "/s")], "/s/hookspan", false);
            check(
                None,
                &[home, ("XDG_STATE_HOME", "relative")],
                "/home/u/.local/state/hookspan",
                true,
            );
            check(None, &[home], "/home/u/.local/state/hookspan", true);
            check(
                Some("/home/u/.local/state/hookspan"),
                &[home],
                "/home/u/.local/state/hookspan",
                true,
            );
        }
        assert!(Global::new(Environment::of(&[], "/work"), None, None).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn advice_names_the_directory_unless_the_environment_does() {
        #[track_caller]
        fn check(flag: Option<&str>, variables: &[(&str, &str)], expected: &str) {
            let env = Environment::of(variables, "/w");
            let global = Global::new(env, flag.map(PathBuf::from), None).unwrap();
            assert_eq!(global.command("open"), expected);
        }
        let home = ("HOME", "/home/u");
        check(None, &[home], "hookspan open");
        check(None, &[home, ("XDG_STATE_HOME", "/s")], "hookspan open");
        check(Some("/a b"), &[home], "hookspan --dir '/a b' open");
        check(Some("/home/u/.local/state/hookspan/"), &[home], "hookspan open");
    }
}
