//! Files that agents read and changed.

use hookspan_core::{SpanId, Timestamp};

use crate::Result;

/// Maximum number of file accesses that are read for a list of files. It limits how long a page can take.
pub const LOOKED_AT_MAX: usize = 40_000;

/// The calls that read, change or delete files. Every call is short (it runs on a blocking thread) and bounded by its
/// arguments.
pub trait Files {
    /// Files that were accessed in a period (nanoseconds since the epoch, the end included), in no order. Only the
    /// newest [`LOOKED_AT_MAX`] accesses are read.
    fn files(&self, wanted: &WantedFiles) -> Result<Touched>;
    /// Accesses to one file in a period, newest first, at most `limit`. An empty `project` means that the file lies
    /// outside of any workspace.
    fn touches(
        &self,
        project: &str,
        path: &str,
        period: (i64, i64),
        limit: usize,
    ) -> Result<Vec<Touch>>;
}

/// Which files are asked for. A file must meet all conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedFiles {
    /// From and to, nanoseconds since the epoch.
    pub period: (i64, i64),
    /// The project by name, ignoring case.
    pub project: Option<String>,
    /// A part of the path, ignoring case.
    pub text: Option<String>,
    /// Only files that were accessed in this session.
    pub session: Option<String>,
}

/// Files of a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// The files.
    pub files: Vec<FileSums>,
    /// Start of the oldest access that was read. `None` if no older access of the period was left out.
    pub since: Option<Timestamp>,
}

/// What agents did to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSums {
    /// The project; `None` if the file lies outside of any workspace.
    pub project: Option<String>,
    /// The path: relative to the workspace, or absolute.
    pub path: String,
    /// Calls that read it.
    pub reads: u64,
    /// Calls that changed or deleted it.
    pub edits: u64,
    /// Lines added by edits that did not fail; `None` if no edit reports them.
    pub added: Option<u64>,
    /// Lines removed by edits that did not fail; `None` if no edit reports them.
    pub removed: Option<u64>,
    /// Calls that failed.
    pub errors: u64,
    /// Sessions that accessed it.
    pub sessions: u64,
    /// Start of the newest access.
    pub last_ns: i64,
}

/// A call that read, changed or deleted a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Store row of the span.
    pub row: i64,
    /// The span.
    pub id: SpanId,
    /// Root conversation.
    pub root: String,
    /// Trace of the access. The turn of a root conversation is found by its trace.
    pub trace: hookspan_core::TraceId,
    /// Its start.
    pub start: Timestamp,
    /// Length, if it is known.
    pub length_ns: Option<i64>,
    /// Whether the call changes or deletes the file.
    pub edits: bool,
    /// Lines added; `None` if no hook reports them.
    pub added: Option<u64>,
    /// Lines removed; `None` if no hook reports them.
    pub removed: Option<u64>,
    /// Whether the call failed.
    pub failed: bool,
    /// Whether the call has no end yet.
    pub open: bool,
}
