//! The process environment, read once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The environment as a value. The program reads the real one once; tests pass in their own.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    home: Option<PathBuf>,
    current_dir: PathBuf,
    program: Option<PathBuf>,
}

impl Environment {
    /// Reads the process's environment, home folder, working folder and program path.
    #[must_use]
    pub fn read() -> Self {
        Self {
            variables: std::env::vars_os().collect(),
            home: std::env::home_dir().filter(|home| home.is_absolute()),
            current_dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            program: std::env::current_exe().ok(),
        }
    }

    /// An environment that contains exactly these variables. `HOME` is also the home folder, and `current_dir` is the
    /// working folder.
    #[must_use]
    pub fn of(variables: &[(&str, &str)], current_dir: impl Into<PathBuf>) -> Self {
        let variables: BTreeMap<OsString, OsString> =
            variables.iter().map(|(key, value)| (key.into(), value.into())).collect();
        let home = variables.get(OsStr::new("HOME")).map(PathBuf::from);
        Self { variables, home, current_dir: current_dir.into(), program: None }
    }

    /// A variable that is set, not empty and valid Unicode. The OpenTelemetry specification treats an empty one as unset.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(OsStr::new(name))?.to_str()?;
        (!value.is_empty()).then_some(value)
    }

    /// A variable that is set and not empty, as a path.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        let value = self.variables.get(OsStr::new(name))?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    }

    /// All variables whose names begin with `prefix`, sorted by name. Values that are not Unicode are left out.
    #[must_use]
    pub fn with_prefix(&self, prefix: &str) -> BTreeMap<String, String> {
        self.variables
            .iter()
            .filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
            .filter(|(name, value)| name.starts_with(prefix) && !value.is_empty())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// The same environment without the variables whose names begin with `prefix`.
    #[must_use]
    pub fn without(&self, prefix: &str) -> Self {
        let mut rest = self.clone();
        rest.variables.retain(|name, _| !name.to_string_lossy().starts_with(prefix));
        rest
    }

    /// The home folder.
    #[must_use]
    pub fn home(&self) -> Option<&PathBuf> {
        self.home.as_ref()
    }

    /// The working folder.
    #[must_use]
    pub fn current_dir(&self) -> &PathBuf {
        &self.current_dir
    }

    /// The path of the running program, if the system provides it.
    #[must_use]
    pub fn program(&self) -> Option<&PathBuf> {
        self.program.as_ref()
    }
}
