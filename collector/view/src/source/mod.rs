//! Reading traits: what pages, terminal and MCP server read from the store. There is one trait per purpose.

pub mod sessions;
pub mod spans;
pub mod statistics;
pub mod files;
pub mod marks;
pub mod search;
pub mod administration;

pub use administration::{
    Administration, Audit, Control, Deleted, FILE_CONTENTS, FILE_FORMATS, InstallStep, Privacy,
    PrivacyClass,
};
pub use files::{FileSums, Files, LOOKED_AT_MAX, Touch, Touched, WantedFiles};
pub use marks::{
    FilterPage, MarkChange, Marked, Marks, SAVED_MAX, SavedFilter, SessionMarks, TAGS_MAX,
};
pub use search::{Found, Hit, Query, Search};
pub use sessions::{Position, SessionFilter, SessionSort, Sessions};
pub use spans::{Failure, LineFilter, Lines, Spans};
pub use statistics::{
    COUNTED_MAX, DayTime, EDGES_MAX, Gap, HeatCell, LatencyRow, ProjectWork, Spent, Statistics,
    Totals,
};

/// All reading traits together. A type that implements the seven traits implements this one too.
pub trait Source:
    Sessions + Marks + Spans + Files + Statistics + Search + Administration + Send + Sync + 'static
{
}

impl<T> Source for T where
    T: Sessions
        + Marks
        + Spans
        + Files
        + Statistics
        + Search
        + Administration
        + Send
        + Sync
        + 'static
{
}
