//! The lock that allows one collector per state directory.

use std::fs::{File, Metadata, TryLockError};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::private::sweep_staged;
use super::{DirError, OwnerKey, StateDir, create_private, open_private, write_private};

/// Held while this process is the collector. The kernel releases it no matter how the process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

/// Why the lock was not acquired.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    /// Another collector runs.
    #[error("{}", busy(.0.as_deref()))]
    Busy(Option<Box<ServeInfo>>),
    /// The lock file cannot be used.
    #[error(transparent)]
    Dir(#[from] DirError),
}

fn busy(info: Option<&ServeInfo>) -> String {
    match info {
        Some(ServeInfo { pid, address: Some(address), .. }) => format!(
            "a collector is already running for this state directory: process {pid}, \
             http://{address}/; see it with `hookspan open` (with the same --dir), or stop that process first"
        ),
        Some(ServeInfo { pid, .. }) => format!(
            "another hookspan command is running for this state directory: process {pid}; wait for \
             it to end, or stop it"
        ),
        None => "another hookspan process uses this state directory; wait until it has finished"
            .to_owned(),
    }
}

impl Lock {
    /// Takes the lock, or returns who holds it. The directory must have been prepared.
    ///
    /// # Errors
    /// [`LockError::Busy`] when another process has it.
    pub(crate) fn acquire(dir: &StateDir) -> Result<Self, LockError> {
        let path = dir.lock_file();
        let io = |action| {
            let path = path.clone();
            move |source| DirError::Io { action, path, source }
        };
        let mut file = create_private(&path).map_err(io("open"))?;
        // `is_held` holds the lock for an instant, so a single refusal does not mean that a collector runs.
        for attempt in 0.. {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if attempt < 5 => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Busy(ServeInfo::holder(dir).map(Box::new)));
                }
                Err(TryLockError::Error(error)) => return Err(io("lock")(error).into()),
            }
        }
        [dir.serve_info(), dir.access(), dir.audit()].iter().for_each(|path| sweep_staged(path));
        // The lock file must never be unlinked: a second file with the same name would be a second lock.
        file.set_len(0).map_err(io("write"))?;
        file.write_all(std::process::id().to_string().as_bytes()).map_err(io("write"))?;
        Ok(Self { file })
    }

    /// Whether the lock file was deleted or replaced. If so, hooks now go to another state directory at the same path.
    /// A directory that cannot be read at the moment does not count as lost.
    #[must_use]
    pub(crate) fn is_lost(&self, dir: &StateDir) -> bool {
        match std::fs::symlink_metadata(dir.lock_file()) {
            Ok(found) => self.file.metadata().is_ok_and(|held| !is_same(&held, &found)),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }

    /// Whether some process holds the lock of `dir`.
    #[must_use]
    pub(crate) fn is_held(dir: &StateDir) -> bool {
        let Ok(file) = open_private(&dir.lock_file()) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }
}

#[cfg(unix)]
fn is_same(left: &Metadata, right: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (left.dev(), left.ino()) == (right.dev(), right.ino())
}

/// On other systems an open file can be neither deleted nor replaced.
#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

/// `serve.json`: the process that serves this state directory. Readable only by its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServeInfo {
    /// Process id.
    pub pid: u32,
    /// Address of the dashboard, once it listens.
    pub address: Option<String>,
    /// Address on which OTLP is received.
    #[serde(default)]
    pub receive: Option<String>,
    /// A Unix socket on which OTLP is received, too.
    #[serde(default)]
    pub receive_socket: Option<PathBuf>,
    /// Version of the collector.
    #[serde(default)]
    pub version: String,
    /// When it started, in nanoseconds since the epoch.
    #[serde(default)]
    pub started_ns: i64,
    /// Whether the dashboard requires a sign-in.
    #[serde(default)]
    pub token_required: bool,
    /// A Unix socket on which the dashboard listens, too.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// The key that commands of the same user present.
    #[serde(default)]
    pub key: OwnerKey,
    /// The rights that the collector gave up; see [`crate::sandbox`].
    #[serde(default)]
    pub sandbox: String,
}

impl ServeInfo {
    /// The dashboard's address for a browser on this machine; `None` if there is no dashboard.
    #[must_use]
    pub(crate) fn url(&self) -> Option<String> {
        let mut address: SocketAddr = self.address.as_deref()?.parse().ok()?;
        if address.ip().is_unspecified() {
            let loopback: IpAddr = match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            };
            address.set_ip(loopback);
        }
        Some(format!("http://{address}/"))
    }

    /// Writes `serve.json`.
    ///
    /// # Errors
    /// When the file cannot be replaced.
    pub(crate) fn write(&self, dir: &StateDir) -> Result<(), DirError> {
        let path = dir.serve_info();
        let io = |source| DirError::Io { action: "write", path: path.clone(), source };
        let bytes = serde_json::to_vec(self).map_err(|error| io(error.into()))?;
        write_private(&path, &bytes).map_err(io)
    }

    /// Removes `serve.json`; a missing one is fine.
    pub(crate) fn remove(dir: &StateDir) {
        let _gone = std::fs::remove_file(dir.serve_info());
    }

    /// The running collector, or `None`. The file left by a killed collector is ignored.
    #[must_use]
    pub(crate) fn running(dir: &StateDir) -> Option<Self> {
        if Lock::is_held(dir) {
            Self::read(dir).filter(|info| Some(info.pid) == lock_pid(dir))
        } else {
            None
        }
    }

    fn holder(dir: &StateDir) -> Option<Self> {
        let pid = lock_pid(dir)?;
        let bare = Self {
            pid,
            address: None,
            receive: None,
            receive_socket: None,
            version: String::new(),
            started_ns: 0,
            token_required: false,
            socket: None,
            key: OwnerKey::default(),
            sandbox: String::new(),
        };
        Some(Self::read(dir).filter(|info| info.pid == pid).unwrap_or(bare))
    }

    fn read(dir: &StateDir) -> Option<Self> {
        let mut bytes = Vec::new();
        open_private(&dir.serve_info()).ok()?.take(4_096).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

fn lock_pid(dir: &StateDir) -> Option<u32> {
    let mut text = String::new();
    let file = open_private(&dir.lock_file()).ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(pid: u32) -> ServeInfo {
        ServeInfo {
            pid,
            address: Some("127.0.0.1:4329".into()),
            receive: None,
            receive_socket: None,
            version: "0.1.0".into(),
            started_ns: 5,
            token_required: true,
            socket: None,
            key: OwnerKey::default(),
            sandbox: String::new(),
        }
    }

    #[test]
    fn a_second_collector_is_told_process_and_address() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("s"));
        dir.prepare().unwrap();
        assert!(!Lock::is_held(&dir));
        let held = Lock::acquire(&dir).unwrap();
        info(std::process::id()).write(&dir).unwrap();

        let error = Lock::acquire(&dir).unwrap_err().to_string();
        assert!(error.contains(&std::process::id().to_string()), "{error}");
        assert!(error.contains("http://127.0.0.1:4329/"), "{error}");
        assert_eq!(ServeInfo::running(&dir), Some(info(std::process::id())));

        drop(held);
        assert_eq!(ServeInfo::running(&dir), None);
        Lock::acquire(&dir).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn a_lock_is_lost_with_its_directory_alone() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("s"));
        dir.prepare().unwrap();
        let held = Lock::acquire(&dir).unwrap();
        assert!(!held.is_lost(&dir));
        std::fs::rename(dir.root(), temp.path().join("moved")).unwrap();
        assert!(held.is_lost(&dir));
        dir.prepare().unwrap();
        let other = Lock::acquire(&dir).unwrap();
        assert!(held.is_lost(&dir) && !other.is_lost(&dir));
    }

    #[test]
    fn what_a_killed_collector_left_is_not_believed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("s"));
        dir.prepare().unwrap();
        info(std::process::id() + 1).write(&dir).unwrap();
        let _held = Lock::acquire(&dir).unwrap();
        assert_eq!(ServeInfo::running(&dir), None);
        let error = Lock::acquire(&dir).unwrap_err().to_string();
        assert!(error.contains("another hookspan command"), "{error}");
    }
}
