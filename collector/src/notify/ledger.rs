//! `notify.json`: which notices were decided, and whether they could be sent. The file has hashes, counts, times and
//! error messages, and no text of a session.

use std::collections::{BTreeMap, VecDeque};
use std::io;

use serde::{Deserialize, Serialize};

use crate::dirs::{StateDir, read_regular, write_private};

/// Maximum size of the file. A full file is smaller.
const MAX_BYTES: u64 = 1 << 20;

/// A way to tell a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Way {
    /// A desktop notice.
    Desktop,
    /// A request to an address.
    Webhook,
    /// A program.
    Command,
}

impl Way {
    /// The word in configuration and output.
    #[must_use]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Desktop => "desktop",
            Self::Webhook => "webhook",
            Self::Command => "command",
        }
    }
}

/// Successes and failures of one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct WayState {
    /// Notices that were sent.
    pub sent: u64,
    /// Notices that could not be sent.
    pub failed: u64,
    /// Failures since the last success.
    pub failing: u64,
    /// Why the last failed notice failed.
    pub last_error: Option<String>,
    /// When it failed, seconds since the epoch.
    pub last_error_s: i64,
}

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Ledger {
    pub(super) seen: VecDeque<u64>,
    /// Notices that were not sent because there were too many.
    pub dropped: u64,
    /// Successes and failures by way.
    pub ways: BTreeMap<Way, WayState>,
}

impl Ledger {
    /// Reads the file. Without a file, or if it is damaged, the ledger is empty. Old events still cause no notices,
    /// because the first look skips them.
    #[must_use]
    pub(crate) fn read(dir: &StateDir) -> Self {
        let found = read_regular(&dir.notices(), MAX_BYTES).ok().flatten();
        found.and_then(|found| serde_json::from_slice(&found.bytes).ok()).unwrap_or_default()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The file system refuses.
    pub(super) fn write(&self, dir: &StateDir) -> io::Result<()> {
        write_private(&dir.notices(), &serde_json::to_vec(self)?)
    }
}
