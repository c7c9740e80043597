//! Sums up what was done in a period, by project.

use std::sync::Arc;

use axum::extract::State;
use hookspan_core::price::Prices;
use hookspan_view::digest::{Digest, Done};
use hookspan_view::source::LineFilter;
use schemars::JsonSchema;
use serde::Serialize;

use super::extract::Params;
use super::period::{DAY_NS, Period, PeriodQuery, too_many};
use super::sessions::CostItem;
use super::{Answer, json, read};
use crate::App;
use crate::problem::Problem;

/// Sums are kept for quarters of an hour.
const QUARTER_NS: i64 = 900_000_000_000;
/// Maximum length of the period, because every turn in it is read.
const DAYS_MAX: i64 = 31;

/// What was done in finished turns that began in the period.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DigestAnswer")]
pub(super) struct Shown {
    from_us: i64,
    to_us: i64,
    total: DigestSums,
    /// Projects, most active first, at most 50.
    items: Vec<DigestProject>,
    /// Number of projects that are counted only in the total.
    more_projects: u64,
}

#[derive(Serialize, JsonSchema)]
struct DigestProject {
    /// Null if Cursor named no workspace.
    project: Option<String>,
    #[serde(flatten)]
    sums: DigestSums,
}

#[derive(Serialize, JsonSchema)]
struct DigestSums {
    sessions: u64,
    turns: u64,
    calls: u64,
    errors: u64,
    active_us: i64,
    wait_us: i64,
    edits: u64,
    tests_passed: u64,
    tests_failed: u64,
    commits: u64,
    pull_requests: u64,
    /// Over the turns that reported them; null if none did.
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    /// Null without a price table, or when no turn reported tokens.
    cost: Option<CostItem>,
}

impl DigestSums {
    fn of(done: &Done, prices: &Prices) -> Self {
        Self {
            sessions: done.sessions,
            turns: done.turns,
            calls: done.calls,
            errors: done.errors,
            active_us: done.active_ns / 1_000,
            wait_us: done.wait_ns / 1_000,
            edits: done.edits,
            tests_passed: done.tests_passed,
            tests_failed: done.tests_failed,
            commits: done.commits,
            pull_requests: done.pull_requests,
            input_tokens: done.input,
            output_tokens: done.output,
            cost: CostItem::of(prices, done.cost),
        }
    }
}

pub(super) async fn digest(
    State(app): State<Arc<App>>,
    Params(period): Params<PeriodQuery>,
) -> Answer<Shown> {
    let now_ns = app.clock.now_ns();
    let (from_ns, last_ns) = Period::of(&period, now_ns)?.spans(now_ns);
    // A day of 25 hours may be among them.
    if last_ns - from_ns > DAYS_MAX * DAY_NS + DAY_NS / 24 {
        return Err(Problem::bad_parameter("days", "between 1 and 31"));
    }
    let edges = [from_ns, last_ns.saturating_add(1)];
    let shown = read(&app, move |source| {
        let prices = source.prices();
        let has_sums = edges.iter().all(|edge| edge % QUARTER_NS == 0);
        let spent = match has_sums {
            true => Some(source.spent(&edges)?),
            false => source.spent_of(&edges, &LineFilter::default())?,
        };
        let Some(spent) = spent else { return Ok(None) };
        let times: Vec<_> = spent.into_iter().map(|one| one.time).collect();
        let digest = Digest::of(&times, source.work((from_ns, last_ns))?, prices);
        let project = |done: &Done| DigestProject {
            project: done.project.clone(),
            sums: DigestSums::of(done, prices),
        };
        Ok(Some(Shown {
            from_us: from_ns / 1_000,
            to_us: edges[1] / 1_000,
            total: DigestSums::of(&digest.total, prices),
            items: digest.projects.iter().map(project).collect(),
            more_projects: digest.more,
        }))
    });
    json(shown.await?.ok_or_else(|| too_many("turns"))?)
}
