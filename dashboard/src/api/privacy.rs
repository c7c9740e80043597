//! What is kept, and deleting it.

use std::sync::Arc;

use axum::extract::State;
use hookspan_view::line::LineKind;
use hookspan_view::outcome::OutcomeFilter;
use hookspan_view::source::{Deleted, LineFilter, SessionFilter, SessionSort};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::{Body, Route};
use super::query::{OneOf, Status, Yes};
use super::{Answer, json, read};
use crate::App;
use crate::problem::Problem;

/// Maximum number of sessions in one purge. If there are more, the answer says so, and the purge must be requested
/// again.
const PURGE_MAX: usize = 10_000;

#[derive(Serialize, JsonSchema)]
struct ClassItem {
    name: &'static str,
    /// What the store keeps.
    mode: &'static str,
    indexed: &'static str,
    exported: &'static str,
}

/// What is stored, where, and for how long.
#[derive(Serialize, JsonSchema)]
pub(super) struct Kept {
    classes: Vec<ClassItem>,
    /// Null: for ever.
    retention_days: Option<u64>,
    /// Number of secrets that were redacted in the search index.
    redacted: u64,
    /// Whether texts can be searched.
    search: bool,
    token_required: bool,
    /// Names of the destinations that are configured.
    destinations: Vec<String>,
    url: &'static str,
}

pub(super) async fn privacy(State(app): State<Arc<App>>) -> Answer<Kept> {
    let privacy = read(&app, |source| source.privacy()).await?;
    let class = |class: hookspan_view::source::PrivacyClass| ClassItem {
        name: class.name,
        mode: class.stored,
        indexed: class.indexed,
        exported: class.exported,
    };
    let classes: Vec<_> = privacy.classes.into_iter().map(class).collect();
    json(Kept {
        classes,
        retention_days: privacy.retention_days,
        redacted: privacy.redacted,
        search: privacy.search,
        token_required: app.guard.door.is_some(),
        destinations: privacy.destinations,
        url: "/privacy",
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Purge {
    /// Sessions whose last activity was before this time.
    before_us: Option<i64>,
    /// Sessions of this project: its name, or the whole path of its folder.
    project: Option<String>,
    /// Sessions with a turn of this model.
    model: Option<String>,
    /// Sessions with a call of this tool.
    tool: Option<String>,
    /// Sessions with a span that is drawn as this kind.
    kind: Option<OneOf<LineKind>>,
    /// Sessions with a failure; with a tool or a kind, with such a failure.
    status: Option<OneOf<Status>>,
    /// Sessions of this branch, or `none`.
    branch: Option<String>,
    /// Sessions of which this came.
    outcome: Option<OneOf<OutcomeFilter>>,
    /// Sessions with this tag, or `none`.
    tag: Option<String>,
    /// Sessions with a star.
    starred: Option<OneOf<Yes>>,
    /// Sessions in which something happened at or after this time.
    from_us: Option<i64>,
    /// Sessions that began at or before.
    to_us: Option<i64>,
    /// Only count; delete nothing.
    #[serde(default)]
    dry_run: bool,
}

impl Purge {
    fn filter(self) -> LineFilter {
        LineFilter {
            project: self.project,
            model: self.model,
            tool: self.tool,
            kind: self.kind.map(|kind| kind.0),
            failed: self.status.is_some(),
            branch: self.branch,
            outcome: self.outcome.map(|outcome| outcome.0),
            tag: self.tag,
            starred: self.starred.is_some(),
            from_ns: self.from_us.map(|us| us.saturating_mul(1_000)),
            to_ns: self.to_us.map(|us| us.saturating_mul(1_000)),
            ..LineFilter::default()
        }
    }
}

/// The result of a purge.
#[derive(Serialize, JsonSchema)]
pub(super) struct Purged {
    dry_run: bool,
    /// Number of sessions that match.
    sessions: usize,
    /// There are more sessions. Send the request again.
    more: bool,
    deleted_sessions: u64,
    deleted_spans: u64,
    deleted_hooks: u64,
    /// Number of damaged databases that were moved aside. A deletion leaves them alone.
    damaged_databases: u64,
    url: &'static str,
}

pub(super) async fn purge(State(app): State<Arc<App>>, Body(purge): Body<Purge>) -> Answer<Purged> {
    let (before_us, dry_run) = (purge.before_us, purge.dry_run);
    let filter = purge.filter();
    if before_us.is_none() && filter.is_empty() {
        return Err(Problem::bad_parameter(
            "before_us",
            "give a time, a project, or another filter",
        ));
    }
    let control = Arc::clone(&app.control);
    let (roots, more, deleted) = read(&app, move |source| {
        let (roots, more) = matching(source, before_us, filter)?;
        let deleted = if dry_run { Deleted::default() } else { control.delete(&roots)? };
        Ok((roots, more, deleted))
    })
    .await?;
    json(Purged {
        dry_run,
        sessions: roots.len(),
        more,
        deleted_sessions: deleted.sessions,
        deleted_spans: deleted.spans,
        deleted_hooks: deleted.hooks,
        damaged_databases: deleted.damaged,
        url: "/privacy",
    })
}

/// Roots of the sessions that a purge selects, and whether there are more than fit into one purge.
fn matching(
    source: &dyn crate::Source,
    before_us: Option<i64>,
    spans: LineFilter,
) -> hookspan_view::Result<(Vec<String>, bool)> {
    let sort = SessionSort::Last;
    let filter = SessionFilter { spans, sort, completions: true, ..SessionFilter::default() };
    // The list is sorted by latest activity, so a time is a position in it.
    let before = before_us.map(|us| (us.saturating_mul(1_000), String::new()));
    let mut sessions = source.sessions(&filter, before, PURGE_MAX + 1)?;
    let more = sessions.len() > PURGE_MAX;
    sessions.truncate(PURGE_MAX);
    Ok((sessions.into_iter().map(|session| session.root.to_string()).collect(), more))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Confirmation {
    /// The id again.
    confirm: String,
}

/// The result of a deletion.
#[derive(Serialize, JsonSchema)]
pub(super) struct DeletedSession {
    deleted_spans: u64,
    deleted_hooks: u64,
    /// Number of damaged databases that were moved aside. A deletion leaves them alone.
    damaged_databases: u64,
    url: &'static str,
}

pub(super) async fn delete(
    State(app): State<Arc<App>>,
    Route(root): Route<String>,
    Body(Confirmation { confirm }): Body<Confirmation>,
) -> Answer<DeletedSession> {
    if confirm != root {
        return Err(Problem::bad_parameter("confirm", "must be the id of the session"));
    }
    let control = Arc::clone(&app.control);
    let deleted = read(&app, move |source| {
        if source.session(&root)?.is_none() {
            return Ok(None);
        }
        control.delete(&[root]).map(Some)
    });
    let deleted = deleted.await?.ok_or_else(|| Problem::not_found("session"))?;
    json(DeletedSession {
        deleted_spans: deleted.spans,
        deleted_hooks: deleted.hooks,
        damaged_databases: deleted.damaged,
        url: "/sessions",
    })
}
