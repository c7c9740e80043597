//! Who may read the dashboard, stored in `access.json`, a file of the owner.
//!
//! Both a running collector and `hookspan token` change it. So each change reads the file again while it holds the lock
//! of the state directory.

use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

pub(crate) use hookspan_dashboard::{
    Access, BadToken, BySocket, Clock, Door, Knock, Vault, VaultError,
};

use crate::audit::{AuditFile, Refusal, What};
use crate::dirs::{Exclusive, StateDir, open_private, random, write_private};

/// Maximum size of the file, larger than everything that [`Access`] may contain.
const MAX_BYTES: u64 = 4 << 20;

/// The file.
#[derive(Debug)]
pub(crate) struct AccessFile {
    dir: StateDir,
    audit: Arc<AuditFile>,
    last: Mutex<Option<(Stamp, Arc<Access>)>>,
}

/// Identifies a version of the file, to notice that it was replaced since it was read.
type Stamp = (u64, Option<SystemTime>, u64);

impl AccessFile {
    /// The file of a state directory. It need not exist. Sign-ins and refusals are recorded in `audit`.
    #[must_use]
    pub(crate) fn new(dir: &StateDir, audit: Arc<AuditFile>) -> Self {
        Self { dir: dir.clone(), audit, last: Mutex::new(None) }
    }

    fn stamp(&self) -> Option<Stamp> {
        let found = std::fs::symlink_metadata(self.dir.access()).ok()?;
        Some((found.len(), found.modified().ok(), number(&found)))
    }

    fn load(&self) -> Result<Access, VaultError> {
        let path = self.dir.access();
        let failed = |error| VaultError::Read(path.clone(), error);
        let file = match open_private(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Access::default());
            }
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(failed)?;
        serde_json::from_slice(&bytes).map_err(|_| VaultError::Damaged(path))
    }
}

#[cfg(unix)]
fn number(found: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    found.ino()
}

#[cfg(not(unix))]
fn number(_: &std::fs::Metadata) -> u64 {
    0
}

impl Vault for AccessFile {
    fn read(&self) -> Result<Arc<Access>, VaultError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stamp) = self.stamp() else { return Ok(Arc::default()) };
        if let Some((known, access)) = &*last
            && *known == stamp
        {
            return Ok(Arc::clone(access));
        }
        // The stamp is taken before reading. If the file changes in between, it is read again.
        let access = Arc::new(self.load()?);
        *last = Some((stamp, Arc::clone(&access)));
        Ok(access)
    }

    fn change(&self, change: &mut dyn FnMut(&mut Access)) -> Result<(), VaultError> {
        let path = self.dir.access();
        let failed = |error| VaultError::Write(path.clone(), error);
        let _held = Exclusive::wait(&self.dir).map_err(failed)?;
        let mut access = self.load()?;
        change(&mut access);
        let text = serde_json::to_vec(&access).map_err(|error| failed(error.into()))?;
        write_private(&path, &text).map_err(failed)
    }

    fn note(&self, knock: Knock<'_>) {
        match knock {
            Knock::SignedIn(browser) => self.audit.note(What::SignedIn, browser),
            Knock::SignedOut => self.audit.note(What::SignedOut, "on a page"),
            Knock::TokenEnded(name) => self.audit.note(What::TokenEnded, name),
            Knock::CodeRefused => self.audit.refuse(Refusal::SignIn),
            Knock::TokenRefused => self.audit.refuse(Refusal::Token),
        }
    }

    fn random(&self) -> Result<[u8; 32], VaultError> {
        random().map_err(VaultError::Random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_by_another_process_is_seen_and_kept() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("s"));
        dir.prepare().unwrap();
        let file = || AccessFile::new(&dir, Arc::new(AuditFile::new(&dir)));
        let (collector, command) = (file(), file());
        assert!(collector.read().unwrap().tokens.is_empty());
        let add = |file: &AccessFile, name: &str| {
            file.change(&mut |access| drop(access.create_token(name, [1; 32], 5).unwrap()))
                .unwrap();
        };
        add(&command, "a");
        assert_eq!(collector.read().unwrap().tokens.len(), 1);
        add(&collector, "b");
        add(&command, "c");
        let names: Vec<_> =
            collector.read().unwrap().tokens.iter().map(|token| token.name.clone()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        dir.verify().unwrap();

        std::fs::write(dir.access(), "{").unwrap();
        assert!(matches!(collector.read(), Err(VaultError::Damaged(_))));
        assert!(collector.change(&mut |_| ()).is_err(), "what is damaged is not thrown away");
    }
}
