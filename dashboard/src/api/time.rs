//! Where the time of finished turns went, and what they cost: by column of a period, by project and by model.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use hookspan_core::price::{Estimate, Prices};
use hookspan_view::filter::NONE;
use hookspan_view::outcome::OutcomeFilter;
use hookspan_view::source::{DayTime, LineFilter, Spent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::Params;
use super::period::{Period, PeriodQuery, asked, too_many};
use super::query::{OneOf, Status, Yes, words};
use super::sessions::{CostItem, PartItem};
use super::{Answer, json, read};
use crate::App;
use crate::problem::Problem;

/// Maximum number of columns if the request does not list them. A longer period gets wider columns.
const COLUMNS_MAX: i64 = 62;
/// Names that have a share of their own in a column.
const SHARES_MAX: usize = 8;
/// Sums are kept for quarters of an hour.
const QUARTER_NS: i64 = 900_000_000_000;

/// Where the time of finished turns went.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TimeAnswer")]
pub(super) struct Times {
    from_us: i64,
    to_us: i64,
    /// Length of the first column.
    step_us: i64,
    project: Option<String>,
    model: Option<String>,
    total: Sums,
    /// Every column of the period, in order.
    days: Vec<Column>,
    /// Projects, most active first. All projects are listed, even if one was requested.
    items: Vec<Project>,
    /// Models, most active first. All models are listed, even if one was requested.
    models: Vec<Model>,
    url: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TimeColumn")]
struct Column {
    from_us: i64,
    to_us: i64,
    #[serde(flatten)]
    sums: Sums,
    /// Shares by project or by model, as requested: the first eight of the list, then one share for all others.
    shares: Vec<Share>,
}

/// The part of a column that belongs to one project or model.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TimeShare")]
struct Share {
    /// Index in `items` or `models`. Null for the share of all others.
    of: Option<usize>,
    active_us: i64,
    turns: u64,
    /// Input and output tokens together. Null if no turn reported tokens.
    tokens: Option<u64>,
    /// Estimated cost of the tokens that have a price. Null without prices, or if no turn reported tokens.
    cost: Option<f64>,
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
#[schemars(rename = "ModelTime")]
struct Model {
    /// Null if no model was reported.
    model: Option<String>,
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
    /// Input tokens that were read from the cache.
    cached_tokens: Option<u64>,
    /// Null without a price table, or when no turn reported tokens.
    cost: Option<CostItem>,
}

/// Sums while rows are added.
#[derive(Clone, Default)]
struct Sum {
    time: DayTime,
    cached: u64,
    cost: Option<Estimate>,
}

impl Sum {
    fn add(&mut self, more: &Spent, cost: Option<Estimate>) {
        let DayTime { turns, calls, errors, active_ns, parts, input, output, .. } = &more.time;
        let sum = &mut self.time;
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
        self.cached = self.cached.saturating_add(more.usage.cache_read);
        self.cost = [self.cost, cost].into_iter().flatten().reduce(Estimate::plus);
    }

    fn tokens(&self) -> Option<u64> {
        match (self.time.input, self.time.output) {
            (None, None) => None,
            (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
        }
    }

    fn item(&self, prices: &Prices) -> Sums {
        let sum = &self.time;
        Sums {
            turns: sum.turns,
            calls: sum.calls,
            errors: sum.errors,
            active_us: sum.active_ns / 1_000,
            parts: sum.parts.into(),
            input_tokens: sum.input,
            output_tokens: sum.output,
            cached_tokens: sum.input.map(|_| self.cached),
            cost: CostItem::of(prices, self.cost),
        }
    }

    fn share(&self, of: Option<usize>, prices: &Prices) -> Share {
        Share {
            of,
            active_us: self.time.active_ns / 1_000,
            turns: self.time.turns,
            tokens: self.tokens(),
            cost: CostItem::of(prices, self.cost).map(|cost| cost.amount()),
        }
    }
}

words! {
    /// What a column is divided by.
    By { Project = "project", Model = "model", None = "none" }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Wanted {
    /// name of a project, the whole path of its folder, or `none`
    project: Option<String>,
    /// name of the model of the turn, or `none`
    model: Option<String>,
    /// only turns that failed
    status: Option<OneOf<Status>>,
    /// branch of its session at the end, or `none`
    branch: Option<String>,
    /// what came of its session
    outcome: Option<OneOf<OutcomeFilter>>,
    /// tag of its session, or `none`
    tag: Option<String>,
    /// only of sessions with a star
    starred: Option<OneOf<Yes>>,
    /// whether `shares` are by project or by model; none unless given
    by: Option<OneOf<By>>,
    /// lengths of the columns in minutes, starting at from_us: 1440*29,1380 means 29 columns of a day and one of 23
    /// hours; UTC days unless given
    columns: Option<String>,
    #[schemars(skip)]
    tool: Option<String>,
    #[schemars(skip)]
    kind: Option<String>,
}

impl Wanted {
    /// The filter. Fails if the request filters by something that a turn does not have.
    fn filter(&self) -> Result<LineFilter, Problem> {
        for (word, value) in [("tool", &self.tool), ("kind", &self.kind)] {
            if value.is_some() {
                let detail = "this endpoint counts whole turns, and a turn has calls of many tools and kinds: use `latency` with this filter";
                return Err(Problem::bad_parameter(word, detail));
            }
        }
        let (project, model) = (self.project.clone(), self.model.clone());
        Ok(LineFilter {
            project,
            model,
            failed: self.status.is_some(),
            branch: self.branch.clone(),
            outcome: self.outcome.map(|outcome| outcome.0),
            tag: self.tag.clone(),
            starred: self.starred.is_some(),
            ..LineFilter::default()
        })
    }
}

pub(super) async fn time(
    State(app): State<Arc<App>>,
    Params(wanted): Params<Wanted>,
    Params(period): Params<PeriodQuery>,
) -> Answer<Times> {
    let filter = wanted.filter()?;
    let now_ns = app.clock.now_ns();
    let from_ns = period.begin_ns();
    let period = Period::of(&period, now_ns)?;
    let edges = match (&wanted.columns, from_ns) {
        (Some(columns), Some(from_ns)) => asked(columns, from_ns)?,
        (Some(_), None) => {
            return Err(Problem::bad_parameter(
                "from_us",
                "`columns` needs `from_us`: the time at which the first column begins",
            ));
        }
        (None, _) => period.edges(now_ns, COLUMNS_MAX),
    };
    let is_path = wanted.project.as_ref().is_some_and(|name| name.contains(['/', '\\']));
    // Sums are kept by project and model alone.
    let others = LineFilter { project: None, model: None, ..filter.clone() };
    let has_sums = others.is_empty() && !is_path && edges.iter().all(|edge| edge % QUARTER_NS == 0);
    let by = wanted.by.map_or(By::None, |by| by.0);
    // A path is used as a filter when rows are read. So all rows belong to the requested project.
    let name = wanted.project.clone().filter(|_| !is_path);
    let counted = LineFilter { project: filter.project.clone().filter(|_| is_path), ..filter };
    let answer = read(&app, move |source| {
        let spent = match has_sums {
            true => Some(source.spent(&edges)?),
            // The lists contain all projects and models, so the requested one is not used as a filter here.
            false => source.spent_of(&edges, &LineFilter { model: None, ..counted.clone() })?,
        };
        let asked = Asked { project: name, model: counted.model.clone(), by };
        Ok(spent.map(|rows| asked.answer(&rows, &edges, source.prices(), &beside(&counted))))
    });
    let answer = answer.await?.ok_or_else(|| too_many("turns"))?;
    json(Times { project: wanted.project, ..answer })
}

/// The filter words other than the project, as a query.
fn beside(filter: &LineFilter) -> String {
    let model = filter.model.as_deref().map(|model| format!("model={}", super::escape(model)));
    let status = filter.failed.then(|| "status=error".to_owned());
    model.into_iter().chain(status).collect::<Vec<_>>().join("&")
}

/// The parts of the request that shape the answer.
struct Asked {
    project: Option<String>,
    model: Option<String>,
    by: By,
}

fn is(wanted: Option<&String>, name: Option<&String>) -> bool {
    wanted.is_none_or(|wanted| match name.filter(|name| !name.is_empty()) {
        _ if wanted.eq_ignore_ascii_case(NONE) => name.is_none_or(String::is_empty),
        Some(name) => name.eq_ignore_ascii_case(wanted),
        None => false,
    })
}

impl Asked {
    fn answer(&self, rows: &[Spent], edges: &[i64], prices: &Prices, beside: &str) -> Times {
        let mut total = Sum::default();
        let mut days = vec![Sum::default(); edges.len().saturating_sub(1)];
        let mut projects: BTreeMap<Option<&String>, Sum> = BTreeMap::new();
        let mut models: BTreeMap<Option<&String>, Sum> = BTreeMap::new();
        for row in rows {
            let reported = row.time.input.is_some() || row.time.output.is_some();
            let cost = prices.estimate(row.model.as_deref(), row.usage).filter(|_| reported);
            let (project, model) = (row.time.project.as_ref(), row.model.as_ref());
            let fits = (is(self.project.as_ref(), project), is(self.model.as_ref(), model));
            if fits.1 {
                projects.entry(project).or_default().add(row, cost);
            }
            if fits.0 {
                models.entry(model).or_default().add(row, cost);
            }
            if fits == (true, true) {
                total.add(row, cost);
                if let Some(day) = column(row).and_then(|column| days.get_mut(column)) {
                    day.add(row, cost);
                }
            }
        }
        let (projects, models) = (by_activity(projects), by_activity(models));
        let list = match self.by {
            By::Project => Some(&projects),
            By::Model => Some(&models),
            By::None => None,
        };
        let shares = match list {
            Some(list) => self.shares(rows, days.len(), prices, list),
            None => days.iter().map(|_| Vec::new()).collect(),
        };
        let pairs = edges.windows(2).zip(days).zip(shares);
        let column = |((edges, sum), shares): ((&[i64], Sum), Vec<Share>)| Column {
            from_us: edges.first().map_or(0, |edge| edge / 1_000),
            to_us: edges.last().map_or(0, |edge| edge / 1_000),
            sums: sum.item(prices),
            shares,
        };
        let days: Vec<Column> = pairs.map(column).collect();
        Times {
            from_us: edges.first().map_or(0, |edge| edge / 1_000),
            to_us: edges.last().map_or(0, |edge| edge / 1_000),
            step_us: days.first().map_or(0, |day| day.to_us - day.from_us),
            project: None,
            model: self.model.clone(),
            total: total.item(prices),
            days,
            items: projects.iter().map(|line| project_row(line, prices, beside)).collect(),
            models: models.iter().map(|line| model_row(line, prices)).collect(),
            url: "/time",
        }
    }

    /// The shares of each column, for the projects or models of `list`.
    fn shares(
        &self,
        rows: &[Spent],
        columns: usize,
        prices: &Prices,
        list: &[(Option<&String>, Sum)],
    ) -> Vec<Vec<Share>> {
        let named = list.iter().take(SHARES_MAX).enumerate();
        let places: BTreeMap<Option<&String>, usize> =
            named.map(|(place, (name, _))| (*name, place)).collect();
        let mut sums = vec![BTreeMap::<usize, Sum>::new(); columns];
        for row in rows {
            let (project, model) = (row.time.project.as_ref(), row.model.as_ref());
            if !is(self.project.as_ref(), project) || !is(self.model.as_ref(), model) {
                continue;
            }
            let reported = row.time.input.is_some() || row.time.output.is_some();
            let cost = prices.estimate(row.model.as_deref(), row.usage).filter(|_| reported);
            let name = if self.by == By::Project { project } else { model };
            let place = places.get(&name).copied().unwrap_or(SHARES_MAX);
            if let Some(sums) = column(row).and_then(|column| sums.get_mut(column)) {
                sums.entry(place).or_default().add(row, cost);
            }
        }
        let shares = |sums: BTreeMap<usize, Sum>| {
            let of = |place: usize| Some(place).filter(|place| *place < SHARES_MAX);
            sums.into_iter().map(|(place, sum)| sum.share(of(place), prices)).collect()
        };
        sums.into_iter().map(shares).collect()
    }
}

fn column(row: &Spent) -> Option<usize> {
    usize::try_from(row.time.day).ok()
}

fn by_activity(sums: BTreeMap<Option<&String>, Sum>) -> Vec<(Option<&String>, Sum)> {
    let mut list: Vec<_> = sums.into_iter().collect();
    list.sort_by_key(|(_, sum)| core::cmp::Reverse(sum.time.active_ns));
    list
}

fn project_row((name, sum): &(Option<&String>, Sum), prices: &Prices, beside: &str) -> Project {
    Project {
        project: name.map(String::from),
        sums: sum.item(prices),
        url: sessions_url("project", *name, beside),
    }
}

fn model_row((name, sum): &(Option<&String>, Sum), prices: &Prices) -> Model {
    Model {
        model: name.map(String::from),
        sums: sum.item(prices),
        url: sessions_url("model", *name, ""),
    }
}

/// URL of the list of a row's sessions.
fn sessions_url(word: &str, name: Option<&String>, beside: &str) -> String {
    let own = format!("/sessions?{word}={}", super::escape(name.map_or(NONE, String::as_str)));
    [own.as_str(), beside].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use hookspan_core::Parts;

    use super::*;
    use crate::api::period::DAY_NS;

    fn row(day: i64, project: Option<&str>, model: Option<&str>, other: i64) -> Spent {
        let parts = Parts { other, ..Parts::default() };
        let project = project.map(str::to_owned);
        let time =
            DayTime { day, project, turns: 1, active_ns: other, parts, ..DayTime::default() };
        Spent { time, model: model.map(str::to_owned), ..Spent::default() }
    }

    fn edges(days: i64) -> Vec<i64> {
        (0..=days).map(|day| day * DAY_NS).collect()
    }

    #[test]
    fn every_turn_is_in_one_column_one_project_and_one_model() {
        let rows = [
            row(1, Some("api"), Some("m"), 3_000),
            row(2, Some("web"), None, 9_000),
            row(2, None, Some("m"), 1_000),
        ];
        let ask = |project: Option<&str>, model: Option<&str>, by| {
            let (project, model) = (project.map(str::to_owned), model.map(str::to_owned));
            Asked { project, model, by }.answer(&rows, &edges(3), &Prices::default(), "")
        };
        let all = ask(None, None, By::Model);
        assert_eq!((all.total.turns, all.total.active_us, all.days.len()), (3, 13, 3));
        assert_eq!(all.days.iter().map(|day| day.sums.turns).collect::<Vec<_>>(), [0, 1, 2]);
        let names: Vec<_> = all.items.iter().map(|one| one.project.as_deref()).collect();
        assert_eq!(names, [Some("web"), Some("api"), None]);
        let shares: Vec<_> = all.days[2].shares.iter().map(|one| (one.of, one.active_us)).collect();
        assert_eq!(shares, [(Some(0), 9), (Some(1), 1)], "no model is a name, too");
        let one = ask(Some("API"), None, By::None);
        assert_eq!((one.total.active_us, one.items.len(), one.models.len()), (3, 3, 1));
        assert_eq!(all.items[2].url, "/sessions?project=none");
        let one = ask(Some("none"), None, By::None);
        assert_eq!((one.total.active_us, one.items.len(), one.models.len()), (1, 3, 1));
        let one = ask(None, Some("m"), By::Project);
        assert_eq!((one.total.active_us, one.items.len(), one.models.len()), (4, 2, 2));
    }

    #[test]
    fn more_names_than_colours_share_the_last_place_and_none_is_lost() {
        let rows: Vec<_> = (0..20).map(|n| row(0, Some(&format!("p{n}")), None, 1_000)).collect();
        let asked = Asked { project: None, model: None, by: By::Project };
        let answer = asked.answer(&rows, &edges(1), &Prices::default(), "");
        let shares = &answer.days[0].shares;
        assert_eq!((shares.len(), shares[SHARES_MAX].of), (SHARES_MAX + 1, None));
        assert_eq!(shares.iter().map(|one| one.active_us).sum::<i64>(), 20);
    }
}
