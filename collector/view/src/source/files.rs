//! Files that agents read and changed.

use hookspan_core::{SpanId, Timestamp};

use crate::Result;

/// Maximum number of touches that are looked at for a list of files: it bounds how long a page can take.
pub const LOOKED_AT_MAX: usize = 40_000;

/// The calls that read, change or delete files. Every call is short (it runs on a blocking thread) and bounded by its arguments.
pub trait Files {
    /// Files that were touched in a period (nanoseconds since the epoch, the end included), in no order. At most [`LOOKED_AT_MAX`]
    /// touches are looked at, the newest first.
    fn files(&self, wanted: &WantedFiles) -> Result<Touched>;
    /// Touches of one file in a period, newest first, at most `limit`. An empty project means: outside of any workspace.
    fn touches(
        &self,
        project: &str,
        path: &str,
        period: (i64, i64),
        limit: usize,
    ) -> Result<Vec<Touch>>;
}

/// Which files are asked for; all must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedFiles {
    /// From and to, nanoseconds since the epoch.
    pub period: (i64, i64),
    /// The project by name, whatever the case.
    pub project: Option<String>,
    /// A part of the path, whatever the case.
    pub text: Option<String>,
    /// Only files touched in this session.
    pub session: Option<String>,
}

/// Files of a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// The files.
    pub files: Vec<FileSums>,
    /// Start of the oldest touch that was looked at, if there are older ones in the period.
    pub since: Option<Timestamp>,
}

/// What agents did to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSums {
    /// `None`: it lies outside of any workspace.
    pub project: Option<String>,
    /// Below the workspace, or whole.
    pub path: String,
    /// Calls that read it.
    pub reads: u64,
    /// Calls that changed or deleted it.
    pub edits: u64,
    /// Lines added by edits that did not fail; `None` where no edit tells.
    pub added: Option<u64>,
    /// Lines removed by them.
    pub removed: Option<u64>,
    /// Calls that failed.
    pub errors: u64,
    /// Sessions that touched it.
    pub sessions: u64,
    /// Start of the newest touch.
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
    /// Turn of a root conversation: its trace, by which turns are found.
    pub trace: hookspan_core::TraceId,
    /// Its start.
    pub start: Timestamp,
    /// Length, if it is known.
    pub length_ns: Option<i64>,
    /// It changes or deletes.
    pub edits: bool,
    /// Lines; `None` where nobody told.
    pub added: Option<u64>,
    /// Lines.
    pub removed: Option<u64>,
    /// It failed.
    pub failed: bool,
    /// It has no end yet.
    pub open: bool,
}
