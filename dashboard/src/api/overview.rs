//! What needs the user now, what runs, and today's sums.

use std::sync::Arc;

use axum::extract::State;
use hookspan_core::{SessionSummary, Timestamp};
use hookspan_view::Source;
use hookspan_view::item::TokenCounts;
use hookspan_view::now::{self, Attention, Standing, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::Params;
use super::query::Number;
use super::sessions::{CostItem, SessionItem, project};
use super::{Answer, json, read, session_url};
use crate::App;

/// Maximum number of gaps that are listed.
const GAPS_MAX: usize = 20;
const SECOND_NS: i64 = 1_000_000_000;

/// What needs the user now, what runs, and today's sums.
#[derive(Serialize, JsonSchema)]
pub(super) struct Overview {
    now_us: i64,
    /// Sessions that wait until a person acts, oldest first.
    needs: Vec<Need>,
    /// Turns that ended, oldest first. They are less urgent than `needs`, and the badge does not count them.
    ended: Vec<Need>,
    running: Vec<SessionItem>,
    today: Today,
    gaps: Vec<GapItem>,
}

/// A period in which no collector ran. Its hooks were stored later.
#[derive(Serialize, JsonSchema)]
struct GapItem {
    from_us: i64,
    to_us: i64,
    hooks: u64,
    url: String,
}

#[derive(Serialize, JsonSchema)]
struct Need {
    /// approval_likely, question, stalled, failed; in `ended`: turn_ended
    kind: &'static str,
    session: String,
    project: Option<String>,
    turn: u64,
    since_us: i64,
    label: String,
    url: String,
}

#[derive(Serialize, JsonSchema)]
struct Today {
    from_us: i64,
    /// Time inside turns. A running turn counts until now.
    active_us: i64,
    turns: u64,
    errors: u64,
    tokens: Option<TokenCounts>,
    cost: Option<CostItem>,
    /// As in `tokens`; null if no turn reported any.
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Since {
    /// start of the user's day; by default 24 hours ago
    from_us: Option<Number>,
}

pub(super) async fn overview(
    State(app): State<Arc<App>>,
    Params(since): Params<Since>,
) -> Answer<Overview> {
    let from_us = since.from_us.map(|from_us| from_us.0);
    let now_ns = app.clock.now_ns();
    json(read(&app, move |source| view(source, from_us, now_ns)).await?)
}

fn view(source: &dyn Source, from_us: Option<i64>, now_ns: i64) -> hookspan_view::Result<Overview> {
    let (mut needs, mut ended, mut running) = (Vec::new(), Vec::new(), Vec::new());
    let begin_us = begin(from_us, now_ns);
    let mut active_us = 0;
    for one in now::standing(source, Timestamp(now_ns))?.0 {
        match one.verdict.status.attention() {
            Attention::NeedsYou => needs.push(need(&one)),
            Attention::TurnEnded => ended.push(need(&one)),
            Attention::None => {}
        }
        if now::is_open(&one.session) {
            active_us += so_far(source, &one.session, begin_us, now_ns / 1_000)?;
            running.push(SessionItem::from(one.session));
        }
    }
    needs.sort_by_key(|need| need.since_us);
    ended.sort_by_key(|need| need.since_us);
    let mut today = today(source, from_us, now_ns)?;
    today.active_us += active_us;
    let gaps = source.gaps(today.from_us.saturating_mul(1_000), GAPS_MAX)?;
    let gaps = gaps.into_iter().map(|gap| GapItem {
        from_us: gap.from_ns / 1_000,
        to_us: gap.to_ns / 1_000,
        hooks: gap.hooks,
        url: "/health".to_owned(),
    });
    Ok(Overview { now_us: now_ns / 1_000, needs, ended, running, today, gaps: gaps.collect() })
}

/// A session that needs a person, with its most useful text: the call, the failure, or the prompt.
fn need(one: &Standing) -> Need {
    let session = &one.session;
    let line = one.call.as_ref().map(|(line, _)| line);
    let failed = session.last_error.clone().filter(|_| one.verdict.status == Status::Failed);
    let label = line.map(|line| line.label.clone()).or(failed);
    let url = session_url(&session.root);
    Need {
        kind: one.verdict.status.as_str(),
        session: session.root.to_string(),
        project: session.workspace.as_deref().and_then(project),
        turn: session.generations,
        since_us: one.verdict.since.as_us(),
        label: label.or_else(|| session.first_prompt.clone()).unwrap_or_default(),
        url: line.map_or(url.clone(), |line| format!("{url}#{}", line.id)),
    }
}

/// The start of the user's day, otherwise 24 hours ago.
fn begin(from_us: Option<i64>, now_ns: i64) -> i64 {
    from_us.unwrap_or((now_ns - 86_400 * SECOND_NS) / 1_000)
}

/// How much time the open turn of a session has taken since `begin_us`.
fn so_far(
    source: &dyn Source,
    session: &SessionSummary,
    begin_us: i64,
    now_us: i64,
) -> hookspan_view::Result<i64> {
    let turns = source.turns(&session.root)?;
    let open = turns.last().filter(|turn| turn.ended_at.is_none());
    Ok(open.map_or(0, |turn| (now_us - turn.started_at.as_us().max(begin_us)).max(0)))
}

/// Sums since `from_us` (the page knows when the user's day began), or over the last 24 hours.
fn today(source: &dyn Source, from_us: Option<i64>, now_ns: i64) -> hookspan_view::Result<Today> {
    let from_us = begin(from_us, now_ns);
    let totals = source.totals(from_us.saturating_mul(1_000))?;
    let prices = source.prices();
    let used =
        if prices.is_empty() { Vec::new() } else { source.usage(from_us.saturating_mul(1_000))? };
    Ok(Today {
        cost: CostItem::sum(prices, &used),
        from_us,
        active_us: totals.active_ns / 1_000,
        turns: totals.turns,
        errors: totals.errors,
        tokens: totals.tokens.map(TokenCounts::from),
        input_tokens: totals.tokens.and_then(|tokens| tokens.input),
        output_tokens: totals.tokens.and_then(|tokens| tokens.output),
    })
}
