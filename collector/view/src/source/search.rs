//! Full-text search.

use crate::Result;
use crate::line::Line;
use crate::source::spans::LineFilter;

/// Full-text search. Every call is short (it runs on a blocking thread) and bounded by its arguments.
pub trait Search {
    /// Texts that hold every word asked for, newest first, at most `limit`, strictly before `before` (a cursor that
    /// [`Found::next`] gave).
    fn search(&self, query: &Query, before: Option<i64>, limit: usize) -> Result<Found>;
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Words and phrases; all of them must be in the same text. A query of one is never empty.
    pub terms: Vec<String>,
    /// What the span must be.
    pub filter: LineFilter,
    /// Only in texts of this name: prompt, response, thought, input, output, task, result, error.
    pub field: Option<String>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Newest first.
    pub hits: Vec<Hit>,
    /// Cursor of what follows; `None` at the end.
    pub next: Option<i64>,
    /// How many texts hold the words, filters aside; `None` when they were not counted.
    pub total: Option<u64>,
    /// There are more than `total`.
    pub total_is_more: bool,
    /// Changes that are not in the index yet.
    pub lag: u64,
}

/// One text that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Root conversation.
    pub root: String,
    /// Its span.
    pub line: Line,
    /// Which of its texts: prompt, response, thought, input, output ...
    pub field: String,
    /// The text around the first mark. Redacted, and never markup.
    pub text: String,
    /// Where the words stand in `text`: start and end in UTF-16 units.
    pub marks: Vec<(u32, u32)>,
}
