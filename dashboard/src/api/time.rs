//! Where the time went, by day and project.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use hookspan_view::source::{DayTime, LineFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::Params;
use super::latency::{DAY_NS, Period, PeriodQuery, too_many};
use super::query::{OneOf, Status};
use super::sessions::PartItem;
use super::{Answer, json, read};
use crate::App;
use crate::problem::Problem;

const DAY_US: i64 = DAY_NS / 1_000;
/// Maximum number of columns. Longer periods have wider columns.
const COLUMNS_MAX: i64 = 62;

/// Where the time of finished turns went.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TimeAnswer")]
pub(super) struct Times {
    from_us: i64,
    to_us: i64,
    /// Of one column.
    step_us: i64,
    project: Option<String>,
    total: Sums,
    /// Every column of the period, in order.
    days: Vec<Column>,
    /// Projects, most active first. All projects are listed, even if one was requested.
    items: Vec<Project>,
    url: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TimeColumn")]
struct Column {
    from_us: i64,
    #[serde(flatten)]
    sums: Sums,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ProjectTime")]
struct Project {
    /// Null if Cursor named no workspace.
    project: Option<String>,
    #[serde(flatten)]
    sums: Sums,
    url: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TimeSums")]
struct Sums {
    turns: u64,
    calls: u64,
    errors: u64,
    active_us: i64,
    parts: PartItem,
    /// Over the turns that reported them; null if none did.
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

impl From<DayTime> for Sums {
    fn from(sum: DayTime) -> Self {
        Self {
            turns: sum.turns,
            calls: sum.calls,
            errors: sum.errors,
            active_us: sum.active_ns / 1_000,
            parts: sum.parts.into(),
            input_tokens: sum.input,
            output_tokens: sum.output,
        }
    }
}

fn add(sum: &mut DayTime, more: &DayTime) {
    let DayTime { turns, calls, errors, active_ns, parts, input, output, .. } = more;
    sum.turns += turns;
    sum.calls += calls;
    sum.errors += errors;
    sum.active_ns += active_ns;
    let plus = |one: Option<u64>, more: &Option<u64>| match (one, *more) {
        (Some(one), Some(more)) => Some(one.saturating_add(more)),
        (one, more) => one.or(more),
    };
    sum.input = plus(sum.input, input);
    sum.output = plus(sum.output, output);
    sum.parts += *parts;
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Wanted {
    /// name of a project, or the whole path of its folder
    project: Option<String>,
    /// name of the model of the turn
    model: Option<String>,
    /// only turns that failed
    status: Option<OneOf<Status>>,
    #[schemars(skip)]
    tool: Option<String>,
    #[schemars(skip)]
    kind: Option<String>,
}

impl Wanted {
    /// The filter, if it is one of turns.
    fn filter(&self) -> Result<LineFilter, Problem> {
        for (word, value) in [("tool", &self.tool), ("kind", &self.kind)] {
            if value.is_some() {
                let detail = "this endpoint counts whole turns, and a turn has calls of many tools and kinds: use `latency` with this filter";
                return Err(Problem::bad_parameter(word, detail));
            }
        }
        let (project, model) = (self.project.clone(), self.model.clone());
        Ok(LineFilter { project, model, failed: self.status.is_some(), ..LineFilter::default() })
    }
}

pub(super) async fn time(
    State(app): State<Arc<App>>,
    Params(wanted): Params<Wanted>,
    Params(period): Params<PeriodQuery>,
) -> Answer<Times> {
    let filter = wanted.filter()?;
    let now_ns = app.clock.now_ns();
    let period = Period::of(&period, now_ns)?;
    let (first, last) = period.in_units(DAY_NS);
    let is_path = wanted.project.as_ref().is_some_and(|name| name.contains(['/', '\\']));
    let has_sums = filter.model.is_none() && !filter.failed && !is_path;
    if has_sums && period.is_whole_days(now_ns) {
        let rows = read(&app, move |source| source.times((first, last))).await?;
        return json(times(rows, (first, last), wanted.project));
    }
    // All projects are listed, even if one is requested.
    let of_all = LineFilter { project: filter.project.clone().filter(|_| is_path), ..filter };
    let rest = beside(&of_all);
    let of_all = period.within(of_all);
    let rows = read(&app, move |source| source.times_of(&of_all)).await?;
    let rows = rows.ok_or_else(|| too_many("turns"))?;
    // If a path was requested, all rows belong to it.
    let name = wanted.project.clone().filter(|_| !is_path);
    let mut answer = Times { project: wanted.project, ..times(rows, (first, last), name) };
    for item in &mut answer.items {
        item.url += if item.url.contains('?') { "&" } else { "?" };
        item.url += &rest;
    }
    json(answer)
}

/// The filter words other than the project, as a query.
fn beside(filter: &LineFilter) -> String {
    let model = filter.model.as_deref().map(|model| format!("model={}", super::escape(model)));
    let status = filter.failed.then(|| "status=error".to_owned());
    model.into_iter().chain(status).collect::<Vec<_>>().join("&")
}

fn times(rows: Vec<DayTime>, (first, last): (i64, i64), wanted: Option<String>) -> Times {
    let step = step(last - first + 1);
    let columns = (last - first + step) / step;
    let mut total = DayTime::default();
    let mut days = vec![DayTime::default(); usize::try_from(columns).unwrap_or(0)];
    let mut projects: BTreeMap<Option<String>, DayTime> = BTreeMap::new();
    for row in &rows {
        add(projects.entry(row.project.clone()).or_default(), row);
        let named = |wanted: &String| {
            row.project.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
        };
        if !wanted.as_ref().is_none_or(named) {
            continue;
        }
        add(&mut total, row);
        let column = usize::try_from((row.day - first) / step).ok();
        if let Some(day) = column.and_then(|column| days.get_mut(column)) {
            add(day, row);
        }
    }
    let project = |(project, sum): (Option<String>, DayTime)| Project {
        url: match &project {
            Some(name) => format!("/sessions?project={}", super::escape(name)),
            None => "/sessions".to_owned(),
        },
        project,
        sums: sum.into(),
    };
    let mut items: Vec<_> = projects.into_iter().map(project).collect();
    items.sort_by_key(|item| core::cmp::Reverse(item.sums.active_us));
    let from_us = first * DAY_US;
    let column = |(n, sum): (i64, DayTime)| Column {
        from_us: from_us + n * step * DAY_US,
        sums: sum.into(),
    };
    Times {
        from_us,
        to_us: (last + 1) * DAY_US,
        step_us: step * DAY_US,
        project: wanted,
        total: total.into(),
        days: (0..).zip(days).map(column).collect(),
        items,
        url: "/time",
    }
}

/// Days of one column.
fn step(days: i64) -> i64 {
    [1, 7, 28, 91].into_iter().find(|step| days <= step * COLUMNS_MAX).unwrap_or(91)
}

#[cfg(test)]
mod tests {
    use hookspan_core::Parts;

    use super::*;

    fn row(day: i64, project: Option<&str>, thinking: i64, other: i64) -> DayTime {
        let parts = Parts { thinking, other, ..Parts::default() };
        let active_ns = thinking + other;
        let project = project.map(str::to_owned);
        DayTime { day, project, turns: 1, active_ns, parts, ..DayTime::default() }
    }

    #[test]
    fn every_turn_is_in_one_column_and_one_project() {
        let rows = || {
            vec![
                row(9, Some("api"), 1_000, 2_000),
                row(10, Some("web"), 0, 9_000),
                row(10, None, 0, 1_000),
            ]
        };
        let all = times(rows(), (8, 10), None);
        assert_eq!((all.total.turns, all.total.active_us, all.days.len()), (3, 13, 3));
        assert_eq!(all.days.iter().map(|day| day.sums.turns).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(
            all.items.iter().map(|one| one.project.as_deref()).collect::<Vec<_>>(),
            [Some("web"), Some("api"), None]
        );
        let one = times(rows(), (8, 10), Some("api".to_owned()));
        assert_eq!((one.total.active_us, one.total.parts.thinking_us, one.items.len()), (3, 1, 3));
    }

    #[test]
    fn a_long_period_has_wider_columns_and_loses_no_day() {
        let rows = (0..3_660).map(|day| row(day, Some("api"), 0, 1_000)).collect();
        let all = times(rows, (0, 3_659), None);
        assert!(all.days.len() <= 62, "{}", all.days.len());
        assert_eq!(all.days.iter().map(|day| day.sums.turns).sum::<u64>(), 3_660);
    }
}
