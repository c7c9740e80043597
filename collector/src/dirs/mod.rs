//! The state directory: where it is, what lies in it, who may read it.
//!
//! Everything hookspan keeps is below one directory that only its owner may enter. The directory and every file in it are
//! checked before use, because the shim writes there from inside another program and must never be led elsewhere.

mod check;
mod lock;
mod private;

use std::path::{Path, PathBuf};

pub use lock::{Lock, LockError, ServeInfo};
pub use private::{create_private, open_private, write_private};

/// Why a state directory cannot be used. The text says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// It, or a file in it, is not what it must be.
    #[error("{path}: {problem}; {remedy}", path = .path.display())]
    Unsafe {
        /// What is wrong.
        path: PathBuf,
        /// How it is wrong.
        problem: String,
        /// What a person can do.
        remedy: String,
    },
    /// The file system refused.
    #[error("cannot {action} {path}: {source}; {remedy}", path = .path.display(), remedy = remedy(source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What came back.
        source: std::io::Error,
    },
}

fn remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => "use a directory of your own with --dir DIR",
        std::io::ErrorKind::ReadOnlyFilesystem => {
            "the file system is read-only; use another one with --dir DIR"
        }
        std::io::ErrorKind::StorageFull => "free some space on that file system",
        std::io::ErrorKind::NotADirectory => "a part of the path is a file; use --dir DIR",
        _ => "check the path, or use another one with --dir DIR",
    }
}

/// A state directory. Making one touches nothing; see [`StateDir::prepare`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir {
    root: PathBuf,
    runtime: Option<PathBuf>,
}

impl StateDir {
    /// The state directory at `root`, an absolute path; without a place for spilled records.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), runtime: None }
    }

    /// With `XDG_RUNTIME_DIR`, where a shim spills records that the state directory does not take.
    #[must_use]
    pub fn with_runtime(mut self, runtime: Option<PathBuf>) -> Self {
        self.runtime = runtime.filter(|dir| dir.is_absolute());
        self
    }

    /// Creates the directory where it is missing, closed to others under any umask, and checks it and the files in it.
    ///
    /// # Errors
    /// When it cannot be made, or is open to others, owned by somebody else, or reached through a symbolic link.
    pub fn prepare(&self) -> Result<(), DirError> {
        check::create(&self.root)?;
        check::create(&self.imports())?;
        check::files(self)
    }

    /// Checks without creating: what a command that only reads does first. A missing directory is an error.
    ///
    /// # Errors
    /// As [`StateDir::prepare`].
    pub fn verify(&self) -> Result<(), DirError> {
        check::directory(&self.root)?;
        check::files(self)
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

    /// A segment that the collector has put aside.
    #[must_use]
    pub fn segment(&self, number: u64) -> PathBuf {
        self.root.join(format!("seg-{number}"))
    }

    /// Losses that a full disk cannot prevent from being counted.
    #[must_use]
    pub fn losses(&self) -> PathBuf {
        self.root.join("losses")
    }

    /// Where the shim writes when the state directory cannot take a record: usually memory.
    #[must_use]
    pub fn spill(&self) -> Option<PathBuf> {
        self.runtime.as_ref().map(|dir| dir.join("hookspan").join("spill"))
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.root.join("hookspan.db")
    }

    /// Held by the one collector; never unlinked.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// The dashboard's access token.
    #[must_use]
    pub fn token(&self) -> PathBuf {
        self.root.join("token")
    }

    /// Who serves, and where; see [`ServeInfo`].
    #[must_use]
    pub fn serve_info(&self) -> PathBuf {
        self.root.join("serve.json")
    }

    /// Files of `hookspan import` on their way to the collector.
    #[must_use]
    pub fn imports(&self) -> PathBuf {
        self.root.join("imports")
    }

    /// Where `install` puts the hook program.
    #[must_use]
    pub fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spilled_records_need_an_absolute_runtime_directory() {
        let dir = StateDir::at("/s");
        assert_eq!(dir.clone().with_runtime(Some("run".into())).spill(), None);
        let spill = dir.with_runtime(Some("/run/user/7".into())).spill();
        assert_eq!(spill, Some("/run/user/7/hookspan/spill".into()));
    }
}
