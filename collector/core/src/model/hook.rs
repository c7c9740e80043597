//! A hook as received, before any interpretation.

use crate::model::time::Timestamp;

/// One invocation of the shim, or one line of an import: bytes and when they were seen. The raw log stores it verbatim,
/// and everything else is derived from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hook {
    /// Position in the raw log, from 1; strictly increasing.
    pub seq: u64,
    /// Wall clock of receipt.
    pub observed_at: Timestamp,
    /// `CLOCK_BOOTTIME` when the hook was received, in nanoseconds; `None` if the writer could not read that clock.
    pub boottime_ns: Option<u64>,
    /// The event name on the hook's command line. If the body has a name, the body's name is used instead.
    pub argument: Option<String>,
    /// Facts about the writer that the body does not carry.
    pub context: HookContext,
    /// Who wrote it.
    pub source: HookSource,
    /// The bytes of standard input, as they came.
    pub body: Vec<u8>,
}

/// Variables of the shim's environment. They identify the hook only if its body does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookContext {
    /// `CURSOR_VERSION`: presence proves that Cursor started the hook.
    pub cursor_version: Option<String>,
    /// `CURSOR_PROJECT_DIR`.
    pub project_dir: Option<String>,
    /// `CURSOR_TRANSCRIPT_PATH`.
    pub transcript_path: Option<String>,
    /// `PWD`.
    pub cwd: Option<String>,
}

/// Who put a hook into the raw log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookSource {
    /// The shim, through the journal.
    #[default]
    Shim,
    /// `hookspan import`.
    Import,
    /// The collector itself. The body is an [`crate::model::event::Evidence`] that it found on disk, or a
    /// [`crate::repository::RepositoryState`]. The raw log keeps it, so a rebuild does not need the disk. A body from
    /// any other source is never read as evidence.
    Evidence,
}
