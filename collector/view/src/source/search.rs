//! Full-text search.

use crate::Result;
use crate::line::Line;
use crate::source::spans::LineFilter;

/// Full-text search. Every call is short (it runs on a thread for blocking work) and bounded by its arguments.
pub trait Search {
    /// Texts that contain every word of the query, newest first, at most `limit`, strictly before `before` (a cursor
    /// from [`Found::next`]).
    fn search(&self, query: &Query, before: Option<i64>, limit: usize) -> Result<Found>;
}

/// A search query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Words and phrases. All of them must occur in the same text. A parsed query has at least one.
    pub terms: Vec<String>,
    /// What the span must be.
    pub filter: LineFilter,
    /// Searches only texts with this name: prompt, response, thought, input, output, task, result, error.
    pub field: Option<String>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Newest first.
    pub hits: Vec<Hit>,
    /// Cursor of the next hits; `None` at the end.
    pub next: Option<i64>,
    /// Number of texts that contain the words, without regard to filters; `None` if they were not counted.
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
    /// Which of the span's texts: prompt, response, thought, input, output ...
    pub field: String,
    /// The text around the first mark. It is redacted, and must never be used as markup.
    pub text: String,
    /// Positions of the words in `text`: start and end in UTF-16 units.
    pub marks: Vec<(u32, u32)>,
}
