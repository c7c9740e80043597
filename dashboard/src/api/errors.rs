//! Groups failures that look alike.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use hookspan_view::line::LineKind;
use hookspan_view::outcome::OutcomeFilter;
use hookspan_view::source::{Failure, LineFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::Params;
use super::query::{Number, OneOf, Paging, Status, Yes};
use super::{Answer, cursor, json, read, session_url};
use crate::App;
use crate::fingerprint::fingerprint;
use crate::problem::Problem;

/// Maximum number of failures that are read, newest first.
const FAILURES_MAX: usize = 2_000;
/// Maximum number of failures named per group, the newest ones.
const RECENT_MAX: usize = 10;

/// Groups of failures that look alike.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ErrorGroups")]
pub(super) struct Errors {
    items: Vec<ErrorItem>,
    next: Option<String>,
    /// Number of failures in all groups, including those on other pages.
    failures: usize,
    /// There are older failures that were not read.
    more: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ErrorGroup")]
struct ErrorItem {
    fingerprint: String,
    kind: &'static str,
    count: usize,
    sessions: usize,
    first_us: i64,
    last_us: i64,
    sample: String,
    sample_name: String,
    message: String,
    recent: Vec<Recent>,
    url: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RecentError")]
struct Recent {
    id: String,
    session: String,
    at_us: i64,
    label: String,
    url: String,
}

/// Filters of the list.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ErrorQuery {
    /// id of a session
    session: Option<String>,
    /// name of a project, or the whole path of its folder
    project: Option<String>,
    /// name of the model of its turn
    model: Option<String>,
    /// name of a tool
    tool: Option<String>,
    /// what it is drawn as
    kind: Option<OneOf<LineKind>>,
    /// `error` is accepted and changes nothing: only failures are listed
    #[serde(rename = "status")]
    _status: Option<OneOf<Status>>,
    /// branch of its session at the end, or `none`
    branch: Option<String>,
    /// what came of its session
    outcome: Option<OneOf<OutcomeFilter>>,
    /// tag of its session, or `none`
    tag: Option<String>,
    /// only of sessions with a star
    starred: Option<OneOf<Yes>>,
    /// began at or after
    from_us: Option<Number>,
    /// began at or before
    to_us: Option<Number>,
}

impl From<ErrorQuery> for LineFilter {
    fn from(query: ErrorQuery) -> Self {
        Self {
            session: query.session,
            project: query.project,
            model: query.model,
            tool: query.tool,
            kind: query.kind.map(|kind| kind.0),
            failed: true,
            branch: query.branch,
            outcome: query.outcome.map(|outcome| outcome.0),
            tag: query.tag,
            starred: query.starred.is_some(),
            from_ns: query.from_us.map(Number::us_as_ns),
            to_ns: query.to_us.map(Number::us_as_ns),
            ..Self::default()
        }
    }
}

pub(super) async fn errors(
    State(app): State<Arc<App>>,
    Params(paging): Params<Paging>,
    Params(query): Params<ErrorQuery>,
) -> Answer<Errors> {
    let limit = paging.limit();
    let after = paging.cursor().map(place_of).transpose()?;
    let filter = LineFilter::from(query);
    let failures = read(&app, move |source| source.failures(&filter, FAILURES_MAX)).await?;
    let mut items = groups(&failures);
    if let Some(after) = after {
        items.retain(|item| item.place() > after);
    }
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(ErrorItem::cursor);
    json(Errors { items, next, failures: failures.len(), more: failures.len() == FAILURES_MAX })
}

/// The position of a group in the list. Greater ones come later.
type Place = (core::cmp::Reverse<i64>, core::cmp::Reverse<i64>, String);

impl ErrorItem {
    fn count(&self) -> i64 {
        i64::try_from(self.count).unwrap_or(i64::MAX)
    }

    fn place(&self) -> Place {
        let (count, last) = (self.count(), self.last_us);
        (core::cmp::Reverse(count), core::cmp::Reverse(last), self.fingerprint.clone())
    }

    fn cursor(&self) -> String {
        cursor::encode(self.count(), &format!("{}:{}", self.last_us, self.fingerprint))
    }
}

/// The position that is written in [`ErrorItem::cursor`].
fn place_of(text: &str) -> Result<Place, Problem> {
    let (count, rest) = cursor::decode(text)?;
    let (last, fingerprint) = rest.split_once(':').ok_or_else(Problem::bad_cursor)?;
    let last = last.parse().map_err(|_| Problem::bad_cursor())?;
    Ok((core::cmp::Reverse(count), core::cmp::Reverse(last), fingerprint.to_owned()))
}

/// The groups, most frequent first. Failures are given newest first, so the first one of a group is its sample.
fn groups(failures: &[Failure]) -> Vec<ErrorItem> {
    let mut by_print: BTreeMap<String, Vec<&Failure>> = BTreeMap::new();
    for failure in failures {
        let print = fingerprint(&failure.line.label, &failure.message, failure.path.as_deref());
        by_print.entry(print).or_default().push(failure);
    }
    let mut items: Vec<_> = by_print.into_iter().filter_map(item).collect();
    items.sort_by_cached_key(ErrorItem::place);
    items
}

fn item((fingerprint, failures): (String, Vec<&Failure>)) -> Option<ErrorItem> {
    let (sample, oldest) = (failures.first()?, failures.last()?);
    let sessions: BTreeSet<&str> = failures.iter().map(|failure| &*failure.root).collect();
    let recent = |failure: &&Failure| Recent {
        id: failure.line.id.to_string(),
        session: failure.root.clone(),
        at_us: failure.line.start.as_us(),
        label: failure.line.label.clone(),
        url: url(failure),
    };
    Some(ErrorItem {
        fingerprint,
        kind: sample.line.kind.as_str(),
        count: failures.len(),
        sessions: sessions.len(),
        first_us: oldest.line.start.as_us(),
        last_us: sample.line.start.as_us(),
        sample: sample.line.id.to_string(),
        sample_name: sample.line.label.clone(),
        message: sample.message.clone(),
        recent: failures.iter().take(RECENT_MAX).map(recent).collect(),
        url: url(sample),
    })
}

fn url(failure: &Failure) -> String {
    format!("{}#{}", session_url(&failure.root), failure.line.id)
}
