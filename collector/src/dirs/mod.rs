//! The state directory: where it is, its files, and who may read them.
//!
//! Everything that hookspan keeps is in one directory that only its owner may enter. The directory and its files are
//! checked before use, because the shim runs inside another program and must never be tricked into writing elsewhere.

mod check;
mod exclusive;
mod lock;
mod normal;
mod owner_key;
mod private;
mod regular;
mod sync;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub(crate) use check::{is_our_directory, is_ours};
pub(crate) use exclusive::Exclusive;
pub(crate) use lock::{Lock, LockError, ServeInfo};
pub(crate) use normal::normal;
pub(crate) use owner_key::{OwnerKey, random};
pub(crate) use private::{create_private, ensure_private, open_private, write_private};
pub(crate) use regular::{Regular, Unfit, read_regular, read_tail};
pub(crate) use sync::sync_folder;

/// The variables that name folders. `config` reads them from the environment; this module does not.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `HOOKSPAN_DIR`.
    pub hookspan_dir: Option<PathBuf>,
    /// `XDG_STATE_HOME`; ignored unless absolute, as its specification says.
    pub xdg_state_home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`; ignored unless absolute.
    pub xdg_runtime_dir: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `LOCALAPPDATA`, on Windows.
    pub local_app_data: Option<PathBuf>,
}

/// Why a state directory cannot be used. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// Neither a variable nor an argument names the directory.
    #[error("no state directory: HOME is not set; pass --dir DIR or set HOOKSPAN_DIR")]
    Nowhere,
    /// The directory, or a file in it, is unsafe or of the wrong kind.
    #[error("{path}: {problem}; {remedy}", path = .path.display())]
    Unsafe {
        /// The file or directory with the problem.
        path: PathBuf,
        /// The problem.
        problem: String,
        /// What a person can do.
        remedy: String,
    },
    /// The file system refused.
    #[error("cannot {action} {path}: {source}; {remedy}", path = .path.display(), remedy = remedy(source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// The path that it was tried on.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
}

fn remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => "use a directory of your own with --dir DIR",
        ErrorKind::ReadOnlyFilesystem => {
            "the file system is read-only; use a directory on another file system with --dir DIR"
        }
        ErrorKind::StorageFull => "free some space on that file system",
        ErrorKind::NotADirectory => "a part of the path is a file; use --dir DIR",
        _ => "check the path, or use another one with --dir DIR",
    }
}

/// A state directory. Constructing the value changes no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir {
    root: PathBuf,
    /// The user's run-time directories. Shims may put hooks there if the state directory does not accept them.
    run_time: Vec<PathBuf>,
}

impl StateDir {
    /// Finds the state directory: `--dir`, else `HOOKSPAN_DIR`, else the platform's directory for state.
    ///
    /// # Errors
    ///
    /// [`DirError::Nowhere`] if none of these is known; [`DirError::Io`] if a relative path cannot be made absolute.
    pub fn resolve(flag: Option<&Path>, places: &Places) -> Result<Self, DirError> {
        let given =
            flag.or(places.hookspan_dir.as_deref()).filter(|dir| !dir.as_os_str().is_empty());
        let root = match given {
            Some(dir) => dir.to_path_buf(),
            None => default_root(places).ok_or(DirError::Nowhere)?,
        };
        let root = normal(&root).map_err(|source| DirError::Io {
            action: "find",
            path: root.clone(),
            source,
        })?;
        // A shim may use a different run-time directory: cron and some desktops start programs without the variable.
        let named = places.xdg_runtime_dir.clone().filter(|dir| dir.is_absolute());
        let mut run_time: Vec<PathBuf> = named.into_iter().chain(own_run_time_dir()).collect();
        run_time.dedup();
        Ok(Self { root, run_time })
    }

    /// Whether a hook finds this directory if its environment contains only the home folder, as in a Cursor started
    /// from the desktop. A shell's `XDG_STATE_HOME` does not count.
    #[must_use]
    pub fn is_found_from_home(&self, places: &Places) -> bool {
        let bare = Places {
            home: places.home.clone(),
            local_app_data: places.local_app_data.clone(),
            ..Places::default()
        };
        Self::resolve(None, &bare).is_ok_and(|found| found.root == self.root)
    }

    /// The state directory at `root`, without a run-time directory.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), run_time: Vec::new() }
    }

    /// Creates the directory if it is missing, with mode 0700 under any umask. Then checks the directory and its files.
    ///
    /// # Errors
    ///
    /// The directory cannot be created, other users can enter it, another user owns it, or its path is a symbolic link.
    pub fn prepare(&self) -> Result<(), DirError> {
        let made = check::create(&self.root)?;
        check::create(&self.imports())?;
        check::files(self)?;
        if !made.is_empty() {
            self.remember(made).map_err(|source| DirError::Io {
                action: "write",
                path: self.folders(),
                source,
            })?;
        }
        Ok(())
    }

    /// Records which folders were created, because hookspan may remove only those. Several commands may each have
    /// created some.
    fn remember(&self, made: Vec<PathBuf>) -> std::io::Result<()> {
        let _held = Exclusive::wait(self)?;
        let mut all = self.made_folders();
        all.extend(made);
        // The innermost first.
        all.sort_by(|a, b| b.cmp(a));
        all.dedup();
        write_private(&self.folders(), &serde_json::to_vec(&all)?)
    }

    /// The parent folders that were created for the directory, innermost first.
    #[must_use]
    pub fn made_folders(&self) -> Vec<PathBuf> {
        let text = std::fs::read(self.folders()).unwrap_or_default();
        let mut made: Vec<PathBuf> = serde_json::from_slice(&text).unwrap_or_default();
        // Only parent folders are used, no matter what the file lists.
        made.retain(|folder| self.root.starts_with(folder));
        made
    }

    /// Removes the directory if it contains nothing but what [`crate::journal::prepare`] creates. Also removes the
    /// parent folders that were created for it, if they are empty.
    ///
    /// # Errors
    /// Returns the error of the file system.
    pub fn remove_if_unused(&self) -> std::io::Result<()> {
        let fine = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty | ErrorKind::NotADirectory => Ok(()),
            _ => Err(error),
        };
        std::fs::remove_dir(self.imports()).or_else(fine)?;
        let Ok(entries) = std::fs::read_dir(&self.root) else { return Ok(()) };
        let is_unused = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.is_ok_and(|entry| entry.path() == self.folders() || self.is_empty_losses(&entry))
        };
        if !entries.into_iter().all(is_unused) {
            return Ok(());
        }
        let made = self.made_folders();
        for file in [self.folders(), self.losses()] {
            std::fs::remove_file(file).or_else(fine)?;
        }
        std::fs::remove_dir(&self.root).or_else(fine)?;
        made.iter().try_for_each(|folder| std::fs::remove_dir(folder).or_else(fine))
    }

    fn is_empty_losses(&self, entry: &std::fs::DirEntry) -> bool {
        entry.path() == self.losses() && entry.metadata().is_ok_and(|found| found.len() == 0)
    }

    /// Checks without creating anything, for commands that only read. A missing directory is an error.
    ///
    /// # Errors
    /// As [`StateDir::prepare`].
    pub fn verify(&self) -> Result<(), DirError> {
        check::directory(&self.root)?;
        check::files(self)
    }

    /// Why hooks cannot write to the directory; `None` if they can.
    #[cfg(unix)]
    #[must_use]
    pub fn not_writable(&self) -> Option<std::io::Error> {
        use rustix::fs::{Access, AtFlags, CWD, accessat};
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        accessat(CWD, &self.root, wanted, AtFlags::EACCESS).err().map(Into::into)
    }

    /// Why hooks cannot write to the directory. On other systems, only writing would show that.
    #[cfg(not(unix))]
    #[must_use]
    pub fn not_writable(&self) -> Option<std::io::Error> {
        None
    }

    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What the shim appends to.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// A segment: a former journal that the collector has renamed.
    #[must_use]
    pub fn segment(&self, number: u64) -> PathBuf {
        self.root.join(format!("seg-{number}"))
    }

    /// The losses. Space for this file is reserved, so losses are counted even if the disk is full.
    #[must_use]
    pub fn losses(&self) -> PathBuf {
        self.root.join("losses")
    }

    /// Bytes of the journal that are not a whole record:
    #[must_use]
    pub fn torn(&self) -> PathBuf {
        self.root.join("torn")
    }

    /// The list of parent folders that [`StateDir::prepare`] had to create.
    #[must_use]
    pub(crate) fn folders(&self) -> PathBuf {
        self.root.join("folders")
    }

    /// The folders in which shims may put hooks if the state directory does not accept them; usually in memory. See
    /// [`crate::journal`].
    #[must_use]
    pub fn run_time_folders(&self) -> Vec<PathBuf> {
        self.run_time.iter().map(|dir| dir.join("hookspan")).collect()
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.root.join("hookspan.db")
    }

    /// The search index; derived from the database.
    #[must_use]
    pub fn search(&self) -> PathBuf {
        self.root.join("search.db")
    }

    /// The lock file of the one collector; never unlinked.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Who may read the dashboard: signed-in browsers, and tokens of scripts. The file contains only hashes.
    #[must_use]
    pub fn access(&self) -> PathBuf {
        self.root.join("access.json")
    }

    /// The audit log: sign-ins, and what was done with the recorded data.
    #[must_use]
    pub(crate) fn audit(&self) -> PathBuf {
        self.root.join("audit.json")
    }

    /// What was told to the person, and how that went.
    #[must_use]
    pub(crate) fn notices(&self) -> PathBuf {
        self.root.join("notify.json")
    }

    /// The access token of older versions, which all readers shared. It is no longer accepted.
    #[must_use]
    pub fn old_token(&self) -> PathBuf {
        self.root.join("token")
    }

    /// The key with which the digits in `[redacted:RULE:DIGITS]` are made.
    #[must_use]
    pub fn redact_key(&self) -> PathBuf {
        self.root.join("redact.key")
    }

    /// The process that serves, and its address; see [`ServeInfo`].
    #[must_use]
    pub fn serve_info(&self) -> PathBuf {
        self.root.join("serve.json")
    }

    /// Folder of recordings that `hookspan import` hands to the collector.
    #[must_use]
    pub fn imports(&self) -> PathBuf {
        self.root.join("imports")
    }

    /// Folder of the installed hook program.
    #[must_use]
    pub fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }
}

/// Where systemd keeps the files of a logged-in user.
#[cfg(target_os = "linux")]
fn own_run_time_dir() -> Option<PathBuf> {
    Some(PathBuf::from(format!("/run/user/{}", rustix::process::geteuid().as_raw())))
}

#[cfg(not(target_os = "linux"))]
fn own_run_time_dir() -> Option<PathBuf> {
    None
}

fn default_root(places: &Places) -> Option<PathBuf> {
    if cfg!(windows) {
        return places.local_app_data.as_ref().map(|dir| dir.join("hookspan"));
    }
    if cfg!(target_os = "macos") {
        return places.home.as_ref().map(|home| home.join("Library/Application Support/hookspan"));
    }
    let state = places.xdg_state_home.clone().filter(|dir| dir.is_absolute());
    let state = state.or_else(|| places.home.as_ref().map(|home| home.join(".local/state")));
    state.map(|dir| dir.join("hookspan"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places { home: Some("/home/u".into()), ..Places::default() }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_flag_beats_the_variable_which_beats_the_default() {
        let root = |flag: Option<&str>, places: &Places| {
            StateDir::resolve(flag.map(Path::new), places).unwrap().root().to_path_buf()
        };
        let mut places = places();
        assert_eq!(root(None, &places), Path::new("/home/u/.local/state/hookspan"));
        places.xdg_state_home = Some("relative".into());
        assert_eq!(root(None, &places), Path::new("/home/u/.local/state/hookspan"));
        places.xdg_state_home = Some("/state".into());
        assert_eq!(root(None, &places), Path::new("/state/hookspan"));
        places.hookspan_dir = Some("/env".into());
        assert_eq!(root(None, &places), Path::new("/env"));
        assert_eq!(root(Some("/flag"), &places), Path::new("/flag"));
        assert!(root(Some("flag"), &places).is_absolute());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_bare_environment_finds_the_default_alone() {
        let at = |dir: &str, home: &str| {
            let places = Places { home: Some(home.into()), ..Places::default() };
            StateDir::resolve(Some(Path::new(dir)), &places).unwrap().is_found_from_home(&places)
        };
        assert!(at("/home/u/.local/state/hookspan", "/home/u"));
        assert!(at("/home/u//.local/state/hookspan/", "/home/u/"));
        assert!(!at("/x/hookspan", "/home/u"));
        let places = Places { xdg_state_home: Some("/x".into()), ..places() };
        let dir = StateDir::resolve(None, &places).unwrap();
        assert!(!dir.is_found_from_home(&places), "only the shell knows XDG_STATE_HOME");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_home_with_doubled_and_trailing_slashes_gives_one_path() {
        for home in ["/home/u/", "//home//u//", "/home/./u"] {
            let places = Places { home: Some(home.into()), ..Places::default() };
            let dir = StateDir::resolve(None, &places).unwrap();
            assert_eq!(dir.root().to_str(), Some("/home/u/.local/state/hookspan"));
        }
    }

    #[test]
    fn an_unused_directory_goes_with_the_folders_that_were_made_for_it() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let dir = StateDir::at(home.join(".local/state/hookspan"));
        dir.prepare().unwrap();
        // A second call still returns the folders that the first one created.
        dir.prepare().unwrap();
        std::fs::write(dir.losses(), "").unwrap();
        std::fs::write(dir.access(), "secret").unwrap();
        dir.remove_if_unused().unwrap();
        assert!(dir.access().exists(), "it is in use");
        std::fs::remove_file(dir.access()).unwrap();
        dir.remove_if_unused().unwrap();
        assert!(home.exists() && !home.join(".local").exists());

        // Folders of other users stay, and so do folders that meanwhile contain other files.
        std::fs::create_dir(home.join(".local")).unwrap();
        dir.prepare().unwrap();
        std::fs::write(home.join(".local/state/other"), "").unwrap();
        dir.remove_if_unused().unwrap();
        assert!(!dir.root().exists() && home.join(".local/state/other").exists());
        dir.prepare().unwrap();
        std::fs::remove_file(home.join(".local/state/other")).unwrap();
        dir.remove_if_unused().unwrap();
        assert!(home.join(".local/state").exists(), "this time it was there before");
    }

    #[test]
    fn without_any_home_the_error_says_what_to_set() {
        let error = StateDir::resolve(None, &Places::default()).unwrap_err().to_string();
        assert!(error.contains("--dir"), "{error}");
    }

    #[test]
    fn run_time_folders_are_the_named_one_and_the_users_own() {
        let mut places = places();
        let folders = |places: &Places| StateDir::resolve(None, places).unwrap().run_time_folders();
        let own: Vec<PathBuf> =
            own_run_time_dir().into_iter().map(|dir| dir.join("hookspan")).collect();
        places.xdg_runtime_dir = Some("run".into());
        assert_eq!(folders(&places), own);
        places.xdg_runtime_dir = own_run_time_dir();
        assert_eq!(folders(&places), own);
        places.xdg_runtime_dir = Some("/run/elsewhere".into());
        assert_eq!(folders(&places), [vec!["/run/elsewhere/hookspan".into()], own].concat());
    }
}
