//! Percentiles per tool, model, kind or project, and how often which durations occurred over time.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use hookspan_view::filter::{NONE, YES};
use hookspan_view::line::LineKind;
use hookspan_view::outcome::OutcomeFilter;
use hookspan_view::source::{COUNTED_MAX, HeatCell, LatencyRow, LineFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::Params;
use super::query::{Narrow, Number, OneOf, Words, words};
use super::{Answer, json, read};
use crate::App;
use crate::problem::Problem;

const HOUR_NS: i64 = 3_600_000_000_000;
pub(super) const DAY_NS: i64 = 24 * HOUR_NS;
const DAYS_MAX: i64 = 3_660;
const DAY_HOURS: i64 = 24;
/// Maximum number of columns of the heatmap (one more may occur). Longer periods have wider columns.
const COLUMNS_MAX: i64 = 200;

words! {
    /// What percentiles are grouped by.
    Dimension { Tool = "tool", Model = "model", Kind = "kind", Project = "project" }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Group {
    /// tool unless given
    group: Option<OneOf<Dimension>>,
}

impl Group {
    fn word(&self) -> &'static str {
        self.group.map_or(Dimension::Tool, |group| group.0).word()
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Name {
    /// only the row with this name
    name: Option<String>,
}

/// Percentiles of a period.
#[derive(Serialize, JsonSchema)]
pub(super) struct Latency {
    group: &'static str,
    /// UTC days in the period.
    days: i64,
    from_us: i64,
    to_us: i64,
    items: Vec<LatencyItem>,
    /// Where older figures are, if the period has none.
    older: Option<Older>,
    url: String,
}

/// What lies before the period.
#[derive(Serialize, JsonSchema)]
struct Older {
    n: u64,
    last_us: i64,
}

/// A period.
#[derive(Deserialize, JsonSchema)]
pub(super) struct PeriodQuery {
    /// number of days up to now: 30 unless given, at most 3660
    days: Option<Number>,
    /// begin of the period, instead of `days`
    from_us: Option<Number>,
    /// end of the period; now unless given
    to_us: Option<Number>,
}

#[derive(Serialize, JsonSchema)]
struct LatencyItem {
    name: String,
    n: u64,
    errors: u64,
    /// Spans whose duration no hook reports. The percentiles do not include them, and are null if no duration is known.
    unknown: u64,
    p50_us: Option<u64>,
    p90_us: Option<u64>,
    p95_us: Option<u64>,
    p99_us: Option<u64>,
    max_us: Option<u64>,
    /// Sum of the durations.
    total_us: Option<u64>,
    /// Link to the sessions with these spans.
    url: String,
}

impl LatencyItem {
    fn new(asked: &Asked, row: LatencyRow) -> Self {
        Self {
            url: asked.sessions(&row.name),
            name: row.name,
            n: row.count,
            errors: row.errors,
            unknown: row.unknown,
            p50_us: row.p50_us,
            p90_us: row.p90_us,
            p95_us: row.p95_us,
            p99_us: row.p99_us,
            max_us: row.max_us,
            total_us: row.total_us,
        }
    }
}

impl PeriodQuery {
    /// Where the period begins, if the query says so.
    pub(super) fn begin_ns(&self) -> Option<i64> {
        self.from_us.map(Number::us_as_ns)
    }
}

/// The period: `days` up to now, or whatever lies between `from_us` and `to_us`.
pub(super) struct Period {
    from_ns: i64,
    to_ns: i64,
    /// The period was given as a number of days up to now. Such days are UTC days.
    is_recent: bool,
}

impl Period {
    pub(super) fn of(query: &PeriodQuery, now_ns: i64) -> Result<Self, Problem> {
        let days @ 1..=DAYS_MAX = query.days.map_or(30, |days| days.0) else {
            return Err(Problem::bad_parameter("days", "between 1 and 3660"));
        };
        let to_ns = query.to_us.map_or(now_ns, Number::us_as_ns);
        let from_ns = query.from_us.map_or(now_ns - (days - 1) * DAY_NS, Number::us_as_ns);
        if from_ns > to_ns || to_ns.saturating_sub(from_ns) > DAYS_MAX * DAY_NS {
            return Err(Problem::bad_parameter("from_us", "before to_us, by at most ten years"));
        }
        Ok(Self { from_ns, to_ns, is_recent: query.from_us.is_none() })
    }

    /// Whether the period consists of whole UTC days, or ends now.
    pub(super) fn is_whole_days(&self, now_ns: i64) -> bool {
        let is_start = |ns: i64| ns.rem_euclid(DAY_NS) == 0;
        let ends = self.to_ns >= now_ns || is_start(self.to_ns.saturating_add(1_000));
        ends && (self.is_recent || is_start(self.from_ns))
    }

    /// From and to, nanoseconds since the epoch.
    pub(super) fn bounds(&self) -> (i64, i64) {
        (self.from_ns, self.to_ns)
    }

    /// The edges of columns of UTC days. If the period has more than `most` days, each column has several days.
    pub(super) fn edges(&self, now_ns: i64, most: i64) -> Vec<i64> {
        let (first, last) = self.in_units(DAY_NS);
        let days = last - first + 1;
        let widths = [1, 7, 28, 91];
        let width = widths.into_iter().find(|width| days <= width * most).unwrap_or(91);
        let columns = (days + width - 1) / width;
        let mut edges: Vec<i64> =
            (0..=columns).map(|column| (first + column * width) * DAY_NS).collect();
        // If the period begins or ends within a day, so does its first or last column.
        if !self.is_whole_days(now_ns) {
            if let Some(begin) = edges.first_mut() {
                *begin = self.from_ns;
            }
            if let Some(end) = edges.last_mut() {
                *end = self.to_ns.saturating_add(1);
            }
        }
        edges
    }

    /// The filter with this period.
    pub(super) fn within(&self, filter: LineFilter) -> LineFilter {
        LineFilter { from_ns: Some(self.from_ns), to_ns: Some(self.to_ns), ..filter }
    }

    pub(super) fn in_units(&self, unit_ns: i64) -> (i64, i64) {
        (self.from_ns.div_euclid(unit_ns), self.to_ns.div_euclid(unit_ns))
    }
}

/// The requested group, and the filter words.
#[derive(Clone)]
struct Asked {
    group: &'static str,
    filter: LineFilter,
}

impl Asked {
    /// The name that the filter words select, if they select nothing else. In that case the answer can be read from
    /// stored sums. A project given as a whole path is not such a name.
    fn own_name(&self) -> Option<Option<String>> {
        let LineFilter { tool, kind, model, project, .. } = self.filter.clone();
        let name = match self.group {
            "tool" => tool.clone(),
            "model" => model.clone(),
            "kind" => kind.map(|kind| kind.as_str().to_owned()),
            _ => project.clone().filter(|name| !name.contains(['/', '\\'])),
        };
        let mut alone = LineFilter::default();
        match self.group {
            "tool" => alone.tool = tool,
            "model" => alone.model = model,
            "kind" => alone.kind = kind,
            _ => alone.project.clone_from(&name),
        }
        // `none` is not the name of a row.
        let is_name = name.as_deref().is_none_or(|name| !name.eq_ignore_ascii_case(NONE));
        (alone == self.filter && is_name).then_some(name)
    }

    /// Link to the sessions behind a row: those with its name and the same filter words.
    fn sessions(&self, name: &str) -> String {
        let mut url = format!("/sessions?{}={}", self.group, super::escape(name));
        let LineFilter { tool, kind, model, project, failed, branch, tag, .. } = &self.filter;
        let kind = kind.map(LineKind::as_str);
        let outcome = self.filter.outcome.map(OutcomeFilter::as_str);
        let words = [
            ("tool", tool.as_deref()),
            ("kind", kind),
            ("model", model.as_deref()),
            ("project", project.as_deref()),
            ("status", failed.then_some("error")),
            ("branch", branch.as_deref()),
            ("outcome", outcome),
            ("tag", tag.as_deref()),
            ("starred", self.filter.starred.then_some(YES)),
        ];
        for (word, value) in words.into_iter().filter(|(word, _)| *word != self.group) {
            if let Some(value) = value {
                url += &format!("&{word}={}", super::escape(value));
            }
        }
        url
    }
}

/// The error if too many spans or turns would have to be counted one by one.
pub(super) fn too_many(what: &str) -> Problem {
    let detail = format!(
        "there are no sums for these filters, and more than {COUNTED_MAX} {what} of the period would have to be counted one by \
         one: choose a shorter period or a project, or whole UTC days with no filter but the group's own"
    );
    Problem::bad_parameter("from_us", detail)
}

pub(super) async fn latency(
    State(app): State<Arc<App>>,
    Params(group): Params<Group>,
    Params(narrow): Params<Narrow>,
    Params(period): Params<PeriodQuery>,
) -> Answer<Latency> {
    let group = group.word();
    let now_ns = app.clock.now_ns();
    let period = Period::of(&period, now_ns)?;
    let (first, last) = period.in_units(DAY_NS);
    let asked = Asked { group, filter: narrow.filter() };
    let own = asked.own_name().filter(|_| period.is_whole_days(now_ns));
    let (filter, has_words) = (period.within(asked.filter.clone()), !asked.filter.is_empty());
    let (from_us, to_us) = match own {
        Some(_) => (first * (DAY_NS / 1_000), (last + 1) * (DAY_NS / 1_000)),
        None => (period.from_ns / 1_000, period.to_ns / 1_000),
    };
    let (rows, older) = read(&app, move |source| {
        let rows = match own {
            Some(own) => {
                let mut rows = source.latency(group, (first, last))?;
                let is_own =
                    |name: &str| own.as_ref().is_none_or(|own| name.eq_ignore_ascii_case(own));
                rows.retain(|row| is_own(&row.name));
                Some(rows)
            }
            None => source.latency_of(group, &filter)?,
        };
        // Older figures are looked up only if there are none in the period.
        let is_empty = rows.as_ref().is_some_and(Vec::is_empty) && !has_words;
        let older = if is_empty { source.older(group, first)? } else { None };
        Ok((rows, older))
    })
    .await?;
    let older = older.map(|(day, n)| Older { n, last_us: day * (DAY_NS / 1_000) });
    let rows = rows.ok_or_else(|| too_many("spans"))?;
    let items: Vec<_> = rows.into_iter().map(|row| LatencyItem::new(&asked, row)).collect();
    let days = last - first + 1;
    let url = format!("/latency?group={group}");
    json(Latency { group, days, from_us, to_us, items, older, url })
}

/// How often which durations occurred, over time.
#[derive(Serialize, JsonSchema)]
pub(super) struct Heatmap {
    group: &'static str,
    name: Option<String>,
    from_us: i64,
    step_us: i64,
    columns: i64,
    /// Lower limit of each row, as the logarithm to base two of microseconds.
    buckets: Vec<u32>,
    /// Index of the column, index of the row, and number of calls.
    counts: Vec<(i64, usize, u64)>,
    max: u64,
    url: String,
}

pub(super) async fn heatmap(
    State(app): State<Arc<App>>,
    Params(group): Params<Group>,
    Params(Name { name }): Params<Name>,
    Params(narrow): Params<Narrow>,
    Params(period): Params<PeriodQuery>,
) -> Answer<Heatmap> {
    let group = group.word();
    let period = Period::of(&period, app.clock.now_ns())?;
    let asked = Asked { group, filter: narrow.filter() };
    let (mut first, last) = period.in_units(HOUR_NS);
    let step = step(last - first + 1);
    // Columns of a day or more consist of whole days.
    let daily = step >= DAY_HOURS;
    if daily {
        first = first.div_euclid(DAY_HOURS) * DAY_HOURS;
    }
    let hours = last - first + 1;
    let wanted = name.clone();
    // Sums are stored for each name as it was sent. Filter words ignore case.
    let days = (first.div_euclid(DAY_HOURS), last.div_euclid(DAY_HOURS));
    let own = asked.own_name().filter(|own| own.is_none() || wanted.is_none());
    let filter = period.within(asked.filter);
    let cells = read(&app, move |source| match own {
        None => source.heat_of(group, wanted.as_deref(), &filter, daily),
        Some(None) => source.heat(group, wanted.as_deref(), (first, last), daily).map(Some),
        Some(Some(own)) => {
            let mut cells = Vec::new();
            for row in source.latency(group, days)? {
                if row.name.eq_ignore_ascii_case(&own) {
                    cells.extend(source.heat(group, Some(&row.name), (first, last), daily)?);
                }
            }
            Ok(Some(cells))
        }
    });
    let cells = cells.await?.ok_or_else(|| too_many("spans"))?;
    let (buckets, counts) = grid(&cells, first, step);
    json(Heatmap {
        url: format!("/latency?group={group}"),
        group,
        name,
        from_us: first * (HOUR_NS / 1_000),
        step_us: step * (HOUR_NS / 1_000),
        columns: (hours + step - 1) / step,
        max: counts.iter().map(|(_, _, count)| *count).max().unwrap_or(0),
        buckets,
        counts,
    })
}

/// Hours per column: the smallest usual step that gives at most [`COLUMNS_MAX`] columns.
fn step(hours: i64) -> i64 {
    let steps = [1, 2, 3, 6, 12, 24, 48, 168, 336, 672];
    steps.into_iter().find(|step| hours <= step * COLUMNS_MAX).unwrap_or(2_688)
}

type Grid = (Vec<u32>, Vec<(i64, usize, u64)>);

/// The rows from the first to the last row with calls, and their cells.
fn grid(cells: &[HeatCell], first: i64, step: i64) -> Grid {
    let low = cells.iter().map(|cell| cell.bucket).min().unwrap_or(0);
    let high = cells.iter().map(|cell| cell.bucket).max().unwrap_or(0);
    let mut sums: BTreeMap<(i64, usize), u64> = BTreeMap::new();
    for cell in cells {
        let column = (cell.hour - first).div_euclid(step);
        *sums.entry((column, (cell.bucket - low) as usize)).or_default() += cell.count;
    }
    let buckets = if cells.is_empty() { Vec::new() } else { (low..=high).collect() };
    (buckets, sums.into_iter().map(|((column, row), count)| (column, row, count)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_never_too_many_and_hold_everything() {
        for hours in [1, 24, 200, 201, 720, 8_760, 87_840] {
            assert!((hours + step(hours) - 1) / step(hours) <= COLUMNS_MAX, "{hours}");
        }
        let cell = |hour, bucket, count| HeatCell { hour, bucket, count };
        let cells = [cell(100, 10, 1), cell(101, 10, 2), cell(102, 12, 5)];
        let (buckets, counts) = grid(&cells, 100, 2);
        assert_eq!(buckets, [10, 11, 12]);
        assert_eq!(counts, [(0, 0, 3), (1, 2, 5)]);
        assert_eq!(grid(&[], 0, 1), (vec![], vec![]));
    }
}
