//! Figures over many turns and spans.

use hookspan_core::price::{Prices, Usage};
use hookspan_core::{Parts, Tokens};

use crate::Result;
use crate::source::spans::LineFilter;

/// Maximum number of spans or turns that are counted one by one for an answer: it bounds how long a page can take.
pub const COUNTED_MAX: usize = 100_000;

/// Sums and distributions over many turns and spans. Every call is short (it runs on a blocking thread) and bounded by its arguments.
pub trait Statistics {
    /// Sums over the turns that started at or after a time, nanoseconds since the epoch.
    fn totals(&self, from_ns: i64) -> Result<Totals>;
    /// Tokens by model over the turns that started at or after a time, nanoseconds since the epoch.
    fn usage(&self, from_ns: i64) -> Result<Vec<(Option<String>, Usage)>>;
    /// What tokens cost, if anybody said so.
    fn prices(&self) -> &Prices;
    /// Percentiles per name of a dimension (`tool`, `model`, `kind`, `project`) over the days given (days since the epoch,
    /// inclusive).
    fn latency(&self, dimension: &str, days: (i64, i64)) -> Result<Vec<LatencyRow>>;
    /// How often a duration happened, by hour (or, with `daily`, by UTC day) and power of two, over the hours given (hours
    /// since the epoch, inclusive), in the order of time; of one name of the dimension, or of all.
    fn heat(
        &self,
        dimension: &str,
        name: Option<&str>,
        hours: (i64, i64),
        daily: bool,
    ) -> Result<Vec<HeatCell>>;
    /// Where the time of finished turns went, over the days given (days since the epoch, inclusive), by day, then project.
    fn times(&self, days: (i64, i64)) -> Result<Vec<DayTime>>;
    /// Percentiles per name of a dimension of the settled spans that match, counted one by one. `None` if more than
    /// [`COUNTED_MAX`] spans have to be looked at.
    fn latency_of(&self, dimension: &str, filter: &LineFilter) -> Result<Option<Vec<LatencyRow>>>;
    /// The same as [`Statistics::heat`] of the settled spans that match; `None` as above.
    fn heat_of(
        &self,
        dimension: &str,
        name: Option<&str>,
        filter: &LineFilter,
        daily: bool,
    ) -> Result<Option<Vec<HeatCell>>>;
    /// The same as [`Statistics::times`] of the turns that match `project`, `model`, `failed` and the period of the filter; `None`
    /// if more than [`COUNTED_MAX`] turns have to be looked at.
    fn times_of(&self, filter: &LineFilter) -> Result<Option<Vec<DayTime>>>;
    /// What finished turns did that began on the days given (days since the epoch, inclusive), by project.
    fn work(&self, days: (i64, i64)) -> Result<Vec<ProjectWork>>;
    /// The newest day before `before` that [`Statistics::latency`] of `dimension` knows anything of, and how many spans there are
    /// before `before` in all.
    fn older(&self, dimension: &str, before: i64) -> Result<Option<(i64, u64)>>;
    /// Stretches in which no collector ran, and in which there was something to collect, newest first.
    fn gaps(&self, from_ns: i64, limit: usize) -> Result<Vec<Gap>>;
}

/// Sums over turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Turns.
    pub turns: u64,
    /// Time inside them, nanoseconds; open turns not included.
    pub active_ns: i64,
    /// Spans with status error.
    pub errors: u64,
    /// `None` when no turn reported any.
    pub tokens: Option<Tokens>,
}

/// One line of the latency table, microseconds. Lengths are of the spans whose length is known; `None` where none is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyRow {
    /// Tool, model or kind.
    pub name: String,
    /// Calls.
    pub count: u64,
    /// Failed calls.
    pub errors: u64,
    /// Calls whose length no hook tells.
    pub unknown: u64,
    /// 50th percentile.
    pub p50_us: Option<u64>,
    /// 90th percentile.
    pub p90_us: Option<u64>,
    /// 95th percentile.
    pub p95_us: Option<u64>,
    /// 99th percentile.
    pub p99_us: Option<u64>,
    /// Longest.
    pub max_us: Option<u64>,
    /// All of them together.
    pub total_us: Option<u64>,
}

/// How often a duration happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeatCell {
    /// Hours since the epoch; of a day the first.
    pub hour: i64,
    /// Calls of `2^bucket` microseconds and more, below twice that.
    pub bucket: u32,
    /// How many.
    pub count: u64,
}

/// Where the time of the finished turns of one day and project went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DayTime {
    /// UTC day on which the turns started, since the epoch.
    pub day: i64,
    /// Last name of the workspace; `None` when Cursor named none.
    pub project: Option<String>,
    /// Turns.
    pub turns: u64,
    /// Tool calls.
    pub calls: u64,
    /// Spans with status error.
    pub errors: u64,
    /// Time inside the turns, nanoseconds.
    pub active_ns: i64,
    /// What it is made of.
    pub parts: Parts,
    /// Tokens in, cache included, of the turns that reported them; `None` where none did.
    pub input: Option<u64>,
    /// Tokens out; `None` as above.
    pub output: Option<u64>,
}

/// What the finished turns of a project did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectWork {
    /// Last name of the workspace; `None` when Cursor named none.
    pub project: Option<String>,
    /// Sessions with such a turn.
    pub sessions: u64,
    /// Edits.
    pub edits: u64,
    /// Test runs that passed.
    pub tests_passed: u64,
    /// Test runs that failed.
    pub tests_failed: u64,
    /// Commits, each once.
    pub commits: u64,
    /// Pull requests, each once.
    pub pull_requests: u64,
    /// Tokens by model.
    pub usage: Vec<(Option<String>, Usage)>,
}

/// A stretch in which no collector ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last sign of life before it, nanoseconds since the epoch.
    pub from_ns: i64,
    /// The next start.
    pub to_ns: i64,
    /// Hooks of that time, taken in afterwards.
    pub hooks: u64,
}
