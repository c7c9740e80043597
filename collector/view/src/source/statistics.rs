//! Figures over many turns and spans.

use hookspan_core::price::{Prices, Usage};
use hookspan_core::{Parts, Tokens};

use crate::Result;
use crate::source::spans::LineFilter;

/// Maximum number of spans or turns that are counted one by one for an answer. It limits how long a page can take.
pub const COUNTED_MAX: usize = 100_000;

/// Maximum number of spans that are read one by one for the part of a day at either end of a period. Whole days have
/// maintained sums.
pub const EDGES_MAX: usize = 10_000;

/// Sums and distributions over many turns and spans. Every call is short (it runs on a thread for blocking work) and
/// bounded by its arguments.
pub trait Statistics {
    /// Sums over the turns that started at or after a time, nanoseconds since the epoch.
    fn totals(&self, from_ns: i64) -> Result<Totals>;
    /// Tokens by model over the turns that started at or after a time, nanoseconds since the epoch.
    fn usage(&self, from_ns: i64) -> Result<Vec<(Option<String>, Usage)>>;
    /// The price table, which may be empty.
    fn prices(&self) -> &Prices;
    /// Percentiles per name of a dimension (`tool`, `model`, `kind`, `project`) over these days (days since the epoch,
    /// inclusive).
    fn latency(&self, dimension: &str, days: (i64, i64)) -> Result<Vec<LatencyRow>>;
    /// The same from the first to the last of two nanoseconds since the epoch: from sums of whole UTC days, and from
    /// spans counted one by one where the period has a part of a day. `None` if there are more than [`EDGES_MAX`]
    /// such spans.
    fn latency_between(
        &self,
        dimension: &str,
        between: (i64, i64),
    ) -> Result<Option<Vec<LatencyRow>>>;
    /// How often durations occurred, by power of two and by hour (with `daily`: by UTC day), in order of time. `hours`
    /// are hours since the epoch, inclusive. `name` selects one name of the dimension; without it, all names count.
    fn heat(
        &self,
        dimension: &str,
        name: Option<&str>,
        hours: (i64, i64),
        daily: bool,
    ) -> Result<Vec<HeatCell>>;
    /// Percentiles per name of a dimension over the settled spans that match, counted one by one. `None` if more than
    /// [`COUNTED_MAX`] spans would have to be read.
    fn latency_of(&self, dimension: &str, filter: &LineFilter) -> Result<Option<Vec<LatencyRow>>>;
    /// Like [`Statistics::heat`], over the settled spans that match. `None` if more than [`COUNTED_MAX`] spans would
    /// have to be read.
    fn heat_of(
        &self,
        dimension: &str,
        name: Option<&str>,
        filter: &LineFilter,
        daily: bool,
    ) -> Result<Option<Vec<HeatCell>>>;
    /// Sums over finished turns by column, project and model. `edges` are the start of each column and the end of the
    /// last one, in rising order. Each edge is a whole quarter of an hour, in nanoseconds since the epoch.
    fn spent(&self, edges: &[i64]) -> Result<Vec<Spent>>;
    /// The same sums over the turns that match `project`, `model` and `failed` of the filter. The turns are counted one
    /// by one, so an edge may be any time. `None` if more than [`COUNTED_MAX`] turns would have to be read.
    fn spent_of(&self, edges: &[i64], filter: &LineFilter) -> Result<Option<Vec<Spent>>>;
    /// The work of the finished turns that began between two times (nanoseconds since the epoch, both inclusive),
    /// by project.
    fn work(&self, between: (i64, i64)) -> Result<Vec<ProjectWork>>;
    /// The newest day before `before` for which [`Statistics::latency`] of `dimension` has figures, and the number of
    /// spans before `before`.
    fn older(&self, dimension: &str, before: i64) -> Result<Option<(i64, u64)>>;
    /// Periods in which no collector ran although hooks arrived, newest first.
    fn gaps(&self, from_ns: i64, limit: usize) -> Result<Vec<Gap>>;
}

/// Sums over turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Turns.
    pub turns: u64,
    /// Time inside the turns, in nanoseconds. Open turns are not included.
    pub active_ns: i64,
    /// Spans with status error.
    pub errors: u64,
    /// `None` when no turn reported any.
    pub tokens: Option<Tokens>,
}

/// One line of the latency table, in microseconds. Percentiles are over spans of known length; `None` if there are
/// none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyRow {
    /// Tool, model or kind.
    pub name: String,
    /// Calls.
    pub count: u64,
    /// Failed calls.
    pub errors: u64,
    /// Calls whose duration no hook reports.
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
    /// Sum of all durations.
    pub total_us: Option<u64>,
}

/// Number of calls of similar duration in one hour or day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeatCell {
    /// Hours since the epoch. For a day, its first hour.
    pub hour: i64,
    /// Calls that took at least `2^bucket` microseconds and less than twice that.
    pub bucket: u32,
    /// Number of these calls.
    pub count: u64,
}

/// Where the time of the finished turns of one column and project went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DayTime {
    /// Number of the column in which the turns started.
    pub day: i64,
    /// Last name of the workspace; `None` if Cursor named none.
    pub project: Option<String>,
    /// Turns.
    pub turns: u64,
    /// Tool calls.
    pub calls: u64,
    /// Spans with status error.
    pub errors: u64,
    /// Time inside the turns, nanoseconds.
    pub active_ns: i64,
    /// The parts of this time.
    pub parts: Parts,
    /// Input tokens including cached ones, over the turns that reported them; `None` if none did.
    pub input: Option<u64>,
    /// Output tokens, over the turns that reported them; `None` if none did.
    pub output: Option<u64>,
}

/// Sums over the finished turns of one column, project and model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// The sums.
    pub time: DayTime,
    /// The model; `None` if the turns name none.
    pub model: Option<String>,
    /// Tokens by how they are priced.
    pub usage: Usage,
}

/// What the finished turns of a project did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectWork {
    /// Last name of the workspace; `None` if Cursor named none.
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

/// A period in which no collector ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When the previous collector was last known to run, in nanoseconds since the epoch.
    pub from_ns: i64,
    /// The next start.
    pub to_ns: i64,
    /// Number of hooks from this period, which were stored later.
    pub hooks: u64,
}
