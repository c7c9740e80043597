//! Percentiles per tool, model, kind or project, and how often which durations occurred over time.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use hookspan_view::filter::{NONE, YES};
use hookspan_view::line::LineKind;
use hookspan_view::outcome::OutcomeFilter;
use hookspan_view::source::{HeatCell, LatencyRow, LineFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::Params;
use super::period::{self, DAY_NS, Period, PeriodQuery, too_many};
use super::query::{Narrow, OneOf, Words, words};
use super::{Answer, json, read};
use crate::App;
use crate::problem::Problem;

const HOUR_NS: i64 = 3_600_000_000_000;
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
    /// lengths of the columns from from_us on, in minutes: 1440*29,1380 are 29 days and one of 23 hours; else whole
    /// hours or UTC days
    columns: Option<String>,
}

/// Percentiles of a period.
#[derive(Serialize, JsonSchema)]
pub(super) struct Latency {
    group: &'static str,
    /// UTC days that the period touches.
    days: i64,
    /// What was counted. It begins and ends with UTC days, although a part of one was asked for, where that part has
    /// too many spans to be counted one by one.
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
    let own = asked.own_name();
    let (filter, has_words) = (period.within(asked.filter.clone()), !asked.filter.is_empty());
    let bounds = period.spans(now_ns);
    let days_ns = (first * DAY_NS, (last + 1) * DAY_NS - 1);
    let (found, older) = read(&app, move |source| {
        let found = match own {
            Some(own) => {
                let mut bounds = bounds;
                let rows = match source.latency_between(group, bounds)? {
                    Some(rows) => rows,
                    None => {
                        bounds = days_ns;
                        source.latency(group, (first, last))?
                    }
                };
                let is_own =
                    |name: &str| own.as_ref().is_none_or(|own| name.eq_ignore_ascii_case(own));
                Some((rows.into_iter().filter(|row| is_own(&row.name)).collect(), bounds))
            }
            None => source.latency_of(group, &filter)?.map(|rows| (rows, period.bounds())),
        };
        // Older figures are looked up only if there are none in the period.
        let is_empty = found.as_ref().is_some_and(|(rows, _)| rows.is_empty()) && !has_words;
        let older = if is_empty { source.older(group, first)? } else { None };
        Ok((found, older))
    })
    .await?;
    let older = older.map(|(day, n)| Older { n, last_us: day * (DAY_NS / 1_000) });
    let (rows, bounds): (Vec<LatencyRow>, _) = found.ok_or_else(|| too_many("spans"))?;
    let items: Vec<_> = rows.into_iter().map(|row| LatencyItem::new(&asked, row)).collect();
    let days = last - first + 1;
    let url = format!("/latency?group={group}");
    let (from_us, to_us) =
        (bounds.0.div_euclid(1_000), bounds.1.saturating_add(1).div_euclid(1_000));
    json(Latency { group, days, from_us, to_us, items, older, url })
}

/// How often which durations occurred, over time.
#[derive(Serialize, JsonSchema)]
pub(super) struct Heatmap {
    group: &'static str,
    name: Option<String>,
    from_us: i64,
    /// Of the first column.
    step_us: i64,
    /// The begin of each column, and the end of the last one.
    edges_us: Vec<i64>,
    columns: usize,
    /// Lower limit of each row, as the logarithm to base two of microseconds.
    buckets: Vec<u32>,
    /// Column, row, calls.
    counts: Vec<(usize, usize, u64)>,
    max: u64,
    url: String,
}

pub(super) async fn heatmap(
    State(app): State<Arc<App>>,
    Params(group): Params<Group>,
    Params(Name { name, columns }): Params<Name>,
    Params(narrow): Params<Narrow>,
    Params(query): Params<PeriodQuery>,
) -> Answer<Heatmap> {
    let group = group.word();
    let period = Period::of(&query, app.clock.now_ns())?;
    let asked = Asked { group, filter: narrow.filter() };
    let edges = match (columns, query.begin_ns()) {
        (Some(columns), Some(from_ns)) => hours(&period::asked(&columns, from_ns)?),
        (Some(_), None) => {
            return Err(Problem::bad_parameter("from_us", "where the first of the columns begins"));
        }
        (None, _) => even(period.in_units(HOUR_NS)),
    };
    let (first, last) =
        (edges.first().copied().unwrap_or(0), edges.last().map_or(0, |end| end - 1));
    // If every column consists of whole UTC days, the stored sums of days are enough.
    let daily = edges.iter().all(|hour| hour % DAY_HOURS == 0);
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
    let (buckets, counts) = grid(&cells, &edges);
    let us = |hour: i64| hour * (HOUR_NS / 1_000);
    json(Heatmap {
        url: format!("/latency?group={group}"),
        group,
        name,
        from_us: us(first),
        step_us: us(edges.get(1).map_or(1, |second| second - first)),
        edges_us: edges.iter().copied().map(us).collect(),
        columns: edges.len().saturating_sub(1),
        max: counts.iter().map(|(_, _, count)| *count).max().unwrap_or(0),
        buckets,
        counts,
    })
}

/// Times as hours since the epoch. Counts are stored by whole UTC hours. In a zone whose days do not begin at a whole
/// UTC hour, a column begins up to 45 minutes early; the answer has the actual edges.
fn hours(edges: &[i64]) -> Vec<i64> {
    let mut hours: Vec<i64> = edges.iter().map(|edge| edge.div_euclid(HOUR_NS)).collect();
    hours.dedup();
    if let [only] = hours[..] {
        hours.push(only + 1);
    }
    hours
}

/// The edges of columns of equal width, which hold these hours. Columns of a day or more consist of whole UTC days.
fn even((mut first, last): (i64, i64)) -> Vec<i64> {
    let step = step(last - first + 1);
    if step >= DAY_HOURS {
        first = first.div_euclid(DAY_HOURS) * DAY_HOURS;
    }
    let columns = (last - first + step) / step;
    (0..=columns).map(|column| first + column * step).collect()
}

/// Hours per column: the smallest usual step that gives at most [`COLUMNS_MAX`] columns.
fn step(hours: i64) -> i64 {
    let steps = [1, 2, 3, 6, 12, 24, 48, 168, 336, 672];
    steps.into_iter().find(|step| hours <= step * COLUMNS_MAX).unwrap_or(2_688)
}

type Grid = (Vec<u32>, Vec<(usize, usize, u64)>);

/// The rows from the first used one to the last, and their cells.
fn grid(cells: &[HeatCell], edges: &[i64]) -> Grid {
    let last = edges.last().copied().unwrap_or(i64::MIN);
    let column = |hour: i64| edges.partition_point(|edge| *edge <= hour).checked_sub(1);
    let cells: Vec<_> = cells.iter().filter(|cell| cell.hour < last).collect();
    let low = cells.iter().map(|cell| cell.bucket).min().unwrap_or(0);
    let high = cells.iter().map(|cell| cell.bucket).max().unwrap_or(0);
    let mut sums: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for cell in &cells {
        if let Some(column) = column(cell.hour) {
            *sums.entry((column, (cell.bucket - low) as usize)).or_default() += cell.count;
        }
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
            let edges = even((100, 99 + hours));
            assert!(edges.len() as i64 <= COLUMNS_MAX + 2, "{hours}");
            assert!(edges[0] <= 100 && edges.last().unwrap() >= &(100 + hours), "{hours}");
        }
        let cell = |hour, bucket, count| HeatCell { hour, bucket, count };
        let cells = [cell(100, 10, 1), cell(101, 10, 2), cell(102, 12, 5)];
        let (buckets, counts) = grid(&cells, &[100, 102, 104]);
        assert_eq!(buckets, [10, 11, 12]);
        assert_eq!(counts, [(0, 0, 3), (1, 2, 5)]);
        assert_eq!(grid(&[], &[0, 1]), (vec![], vec![]));
    }

    #[test]
    fn columns_of_a_zone_may_have_any_length_and_begin_at_whole_hours() {
        const MINUTE_NS: i64 = 60_000_000_000;
        let cell = |hour, count| HeatCell { hour, bucket: 3, count };
        // Days of 24, 23 and 24 hours; the first begins at two o'clock.
        let edges = hours(&[120, 1_560, 2_940, 4_380].map(|minute| minute * MINUTE_NS));
        assert_eq!(edges, [2, 26, 49, 73]);
        let cells = [
            cell(1, 9),
            cell(2, 1),
            cell(25, 2),
            cell(26, 4),
            cell(48, 8),
            cell(49, 16),
            cell(73, 9),
        ];
        assert_eq!(grid(&cells, &edges).1, [(0, 0, 3), (1, 0, 12), (2, 0, 16)]);
        assert_eq!(hours(&[330, 1_770].map(|minute| minute * MINUTE_NS)), [5, 29]);
        assert_eq!(hours(&[30, 45].map(|minute| minute * MINUTE_NS)), [0, 1]);
    }
}
