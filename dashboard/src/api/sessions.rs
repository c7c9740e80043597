//! Sessions and their turns.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::State;
use hookspan_core::price::{Estimate, Prices, Usage};
use hookspan_core::{Parts, SessionParts, SessionState, SessionSummary, TurnSummary};
use hookspan_view::Source;
use hookspan_view::facet;
use hookspan_view::item::{MarkItem, OutcomeItem, RepositoryItem, TokenCounts};
use hookspan_view::line::LineKind;
use hookspan_view::outcome::OutcomeFilter;
use hookspan_view::source::{LineFilter, SessionFilter, SessionSort};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::{Params, Route};
use super::query::{Number, OneOf, Paging, Status, Yes, words};
use super::{Answer, Page, cursor, json, read, session_url};
use crate::App;
use crate::problem::Problem;

/// A session as shown in lists, in the stream and on the session's page.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionItem {
    /// Id of the root conversation.
    id: String,
    /// running, tool_open, your_turn, done, errored, stale
    state: &'static str,
    /// Name of the workspace's folder.
    project: Option<String>,
    workspace: Option<String>,
    model: Option<String>,
    /// Where the session ran: ide, cli, ...
    source: &'static str,
    cursor_version: Option<String>,
    first_prompt: Option<String>,
    last_error: Option<String>,
    turns: u64,
    calls: u64,
    subagents: u64,
    errors: u64,
    errored_turns: u64,
    /// Time in turns.
    active_us: i64,
    /// From the first hook to the last.
    wall_us: i64,
    tokens: Option<TokenCounts>,
    /// Null if no repository was seen.
    repository: Option<RepositoryItem>,
    outcome: OutcomeItem,
    start_us: i64,
    last_us: i64,
    end_us: Option<i64>,
    url: String,
}

/// What the tokens would cost by the price table in the configuration. An estimate, not a bill.
#[derive(Serialize, JsonSchema)]
pub(super) struct CostItem {
    estimated: f64,
    currency: String,
    /// Tokens without a price, which are not in `estimated`.
    unpriced_tokens: u64,
}

impl CostItem {
    pub(super) fn of(prices: &Prices, estimate: Option<Estimate>) -> Option<Self> {
        let Estimate { amount, unpriced_tokens } = estimate?;
        // Rounded to millionths, which is finer than any price list.
        let estimated = (amount * 1e6).round() / 1e6;
        Some(Self { estimated, currency: prices.currency.clone(), unpriced_tokens })
    }
}

impl CostItem {
    /// The estimated amount.
    pub(super) fn amount(&self) -> f64 {
        self.estimated
    }

    /// Estimates the cost of tokens by model.
    pub(super) fn sum(prices: &Prices, used: &[(Option<String>, Usage)]) -> Option<Self> {
        let costs =
            used.iter().filter_map(|(model, usage)| prices.estimate(model.as_deref(), *usage));
        Self::of(prices, costs.reduce(Estimate::plus))
    }
}

impl From<SessionSummary> for SessionItem {
    fn from(session: SessionSummary) -> Self {
        let owned = |text: Option<Arc<str>>| text.map(|text| text.to_string());
        Self {
            outcome: OutcomeItem::of(&session),
            id: session.root.to_string(),
            state: session.state.as_str(),
            project: session.workspace.as_deref().and_then(project),
            workspace: owned(session.workspace),
            model: owned(session.model),
            source: session.surface,
            cursor_version: owned(session.cursor_version),
            first_prompt: session.first_prompt,
            last_error: session.last_error,
            turns: session.generations,
            calls: session.tool_calls,
            subagents: session.subagents,
            errors: session.errors,
            errored_turns: session.errored_turns,
            active_us: session.active_ns / 1_000,
            wall_us: session.last_at.since(session.started_at) / 1_000,
            tokens: session.tokens.map(TokenCounts::from),
            repository: session.repository.map(RepositoryItem::from),
            start_us: session.started_at.as_us(),
            last_us: session.last_at.as_us(),
            end_us: session.ended_at.map(|at| at.as_us()),
            url: session_url(&session.root),
        }
    }
}

/// The project of a workspace.
pub(super) fn project(workspace: &str) -> Option<String> {
    facet::project(workspace).map(Cow::into_owned)
}

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Params(paging): Params<Paging>,
    Params(query): Params<SessionQuery>,
) -> Answer<Page<Priced>> {
    let filter = SessionFilter::from(query);
    let (limit, before) = (paging.limit(), paging.position()?);
    let sort = filter.sort;
    let found = read(&app, move |source| {
        let Page { items, next } = page(source.sessions(&filter, before, limit + 1)?, limit, sort);
        let roots: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
        let mut marks = source.marks(&roots)?;
        let priced = items.into_iter().map(|item| {
            let cost = cost_of(source, &item.id)?;
            let marks = marks.remove(&item.id).unwrap_or_default().into();
            Ok(Priced { item, cost, marks })
        });
        Ok(Page { items: priced.collect::<hookspan_view::Result<Vec<_>>>()?, next })
    });
    json(found.await?)
}

/// A session in the list.
#[derive(Serialize, JsonSchema)]
pub(super) struct Priced {
    #[serde(flatten)]
    item: SessionItem,
    /// Null without a price table, or if no turn reported tokens.
    cost: Option<CostItem>,
    marks: MarkItem,
}

pub(super) fn cost_of(source: &dyn Source, root: &str) -> hookspan_view::Result<Option<CostItem>> {
    let prices = source.prices();
    let used = if prices.is_empty() { Vec::new() } else { source.usage_of(root)? };
    Ok(CostItem::sum(prices, &used))
}

words! {
    /// Direction of an order.
    Order { Descending = "desc", Ascending = "asc" }
}

/// Filters and order of the list.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SessionQuery {
    /// the order, largest or newest first; `last` unless given
    sort: Option<OneOf<SessionSort>>,
    /// `asc`: the smallest or oldest first
    order: Option<OneOf<Order>>,
    /// what the session does now
    state: Option<OneOf<SessionState>>,
    /// name of a project, the whole path of its folder, or `none`
    project: Option<String>,
    /// name of the model of one of its turns, or `none`
    model: Option<String>,
    /// its branch at the end, or `none`
    branch: Option<String>,
    /// what came of it
    outcome: Option<OneOf<OutcomeFilter>>,
    /// one of its tags, or `none`
    tag: Option<String>,
    /// only with a star
    starred: Option<OneOf<Yes>>,
    /// only with failures; with a tool or a kind, with such a failure
    status: Option<OneOf<Status>>,
    /// part of the first prompt, the workspace or the id
    q: Option<String>,
    /// with a call of this tool
    tool: Option<String>,
    /// with a span of this kind
    kind: Option<OneOf<LineKind>>,
    /// with a span that took at least
    min_us: Option<Number>,
    /// something happened at or after
    from_us: Option<Number>,
    /// began at or before
    to_us: Option<Number>,
}

impl From<SessionQuery> for SessionFilter {
    fn from(query: SessionQuery) -> Self {
        Self {
            state: query.state.map(|state| state.0),
            text: query.q,
            spans: LineFilter {
                project: query.project,
                model: query.model,
                tool: query.tool,
                kind: query.kind.map(|kind| kind.0),
                failed: query.status.is_some(),
                branch: query.branch,
                outcome: query.outcome.map(|outcome| outcome.0),
                tag: query.tag,
                starred: query.starred.is_some(),
                min_ns: query.min_us.map(Number::us_as_ns),
                from_ns: query.from_us.map(Number::us_as_ns),
                to_ns: query.to_us.map(Number::us_as_ns),
                ..LineFilter::default()
            },
            completions: false,
            sort: query.sort.map_or(SessionSort::Last, |sort| sort.0),
            ascending: query.order.is_some_and(|order| order.0 == Order::Ascending),
        }
    }
}

fn page(mut sessions: Vec<SessionSummary>, limit: usize, sort: SessionSort) -> Page<SessionItem> {
    let more = sessions.len() > limit;
    sessions.truncate(limit);
    let last = sessions.last().filter(|_| more);
    let next = last.map(|session| cursor::encode(sort.key(session), &session.root));
    Page { items: sessions.into_iter().map(SessionItem::from).collect(), next }
}

/// A session on its own page.
#[derive(Serialize, JsonSchema)]
pub(super) struct SessionDetail {
    #[serde(flatten)]
    item: SessionItem,
    /// Null without a price table, or if no turn reported tokens.
    cost: Option<CostItem>,
    marks: MarkItem,
    parts: SessionPartItem,
}

/// Where a session's time went. The parts of its turns and the time between turns add up to `whole_us`, except for the
/// rounding of each.
#[derive(Serialize, JsonSchema)]
struct SessionPartItem {
    #[serde(flatten)]
    turns: PartItem,
    idle_us: i64,
    whole_us: i64,
}

pub(super) async fn one(
    State(app): State<Arc<App>>,
    Route(root): Route<String>,
) -> Answer<SessionDetail> {
    let found = read(&app, move |source| {
        let Some(session) = source.session(&root)? else { return Ok(None) };
        let turns = source.turns(&root)?;
        let prices = source.prices();
        let cost = CostItem::of(prices, prices.of_turns(&turns));
        let marks = source.marks(&[&root])?.remove(&root).unwrap_or_default();
        Ok(Some((session, turns, cost, marks)))
    });
    let (session, turns, cost, marks) =
        found.await?.ok_or_else(|| Problem::not_found("session"))?;
    let SessionParts { turns: parts, idle, whole } = SessionParts::of(&session, &turns);
    json(SessionDetail {
        item: session.into(),
        cost,
        marks: marks.into(),
        parts: SessionPartItem {
            turns: parts.into(),
            idle_us: idle / 1_000,
            whole_us: whole / 1_000,
        },
    })
}

/// A turn: one prompt and everything until its stop.
#[derive(Serialize, JsonSchema)]
pub(super) struct TurnItem {
    id: String,
    trace_id: String,
    generation: String,
    n: u64,
    start_us: i64,
    /// Null while the turn runs (`end_reason` is null), and if no hook reports its duration.
    dur_us: Option<i64>,
    prompt: Option<String>,
    model: Option<String>,
    status: Option<String>,
    end_reason: Option<&'static str>,
    calls: u64,
    errors: u64,
    tokens: Option<TokenCounts>,
    cost: Option<CostItem>,
    /// Null if no repository was seen.
    repository: Option<RepositoryItem>,
    parts: PartItem,
    url: String,
}

/// Where the time of a turn went. The parts add up to the whole.
#[derive(Serialize, JsonSchema)]
pub(super) struct PartItem {
    pub(super) thinking_us: i64,
    responding_us: i64,
    tools_us: i64,
    shell_us: i64,
    mcp_us: i64,
    edits_us: i64,
    subagent_us: i64,
    wait_us: i64,
    hooks_us: i64,
    other_us: i64,
}

impl From<Parts> for PartItem {
    fn from(parts: Parts) -> Self {
        Self {
            thinking_us: parts.thinking / 1_000,
            responding_us: parts.responding / 1_000,
            tools_us: parts.tools / 1_000,
            shell_us: parts.shell / 1_000,
            mcp_us: parts.mcp / 1_000,
            edits_us: parts.edits / 1_000,
            subagent_us: parts.subagent / 1_000,
            wait_us: parts.wait / 1_000,
            hooks_us: parts.hooks / 1_000,
            other_us: parts.other / 1_000,
        }
    }
}

impl TurnItem {
    fn new(turn: TurnSummary, prices: &Prices) -> Self {
        Self {
            cost: CostItem::of(prices, prices.of_turn(&turn)),
            id: turn.span.to_string(),
            trace_id: turn.trace.to_string(),
            generation: turn.generation.to_string(),
            n: turn.index,
            start_us: turn.started_at.as_us(),
            dur_us: turn.length_ns().map(|ns| ns / 1_000),
            prompt: turn.prompt,
            model: turn.model.map(|model| model.to_string()),
            status: turn.status,
            end_reason: turn.end_reason.map(|reason| reason.as_str()),
            calls: turn.tool_calls,
            errors: turn.errors,
            tokens: turn.tokens.map(TokenCounts::from),
            repository: turn.repository.map(RepositoryItem::from),
            parts: turn.parts.into(),
            url: format!("{}#{}", session_url(&turn.root), turn.span),
        }
    }
}

pub(super) async fn turns(
    State(app): State<Arc<App>>,
    Route(root): Route<String>,
) -> Answer<Page<TurnItem>> {
    let turns = read(&app, move |source| {
        if source.session(&root)?.is_none() {
            return Ok(None);
        }
        let prices = source.prices();
        let turns = source.turns(&root)?;
        Ok(Some(turns.into_iter().map(|turn| TurnItem::new(turn, prices)).collect()))
    });
    let turns = turns.await?.ok_or_else(|| Problem::not_found("session"))?;
    json(Page { items: turns, next: None })
}
