//! Files that agents read and changed, over all sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use hookspan_core::{SessionSummary, TurnSummary};
use hookspan_view::Source;
use hookspan_view::label::shorten;
use hookspan_view::source::{FileSums, Touch, WantedFiles};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::Params;
use super::period::{Period, PeriodQuery};
use super::query::{OneOf, words};
use super::{Answer, json, read, session_url};
use crate::App;
use crate::problem::Problem;

/// Maximum number of files in one answer.
const FILES_MAX: usize = 200;
/// Maximum number of touches of one file in one answer. The session of each touch is looked up.
const TOUCHES_MAX: usize = 400;
/// Maximum number of other files that are listed with a file.
const BESIDE_MAX: usize = 12;
/// Maximum number of sessions in which other files are looked for.
const SESSIONS_MAX: usize = 40;
/// Maximum length of a session's title in characters.
const TITLE_MAX: usize = 120;

words! {
    /// What files are sorted by, the largest or newest first.
    Order { Last = "last", Edits = "edits", Reads = "reads", Lines = "lines", Errors = "errors", Sessions = "sessions" }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Wanted {
    /// name of a project
    project: Option<String>,
    /// part of the path
    q: Option<String>,
    /// only files touched in this session
    session: Option<String>,
    /// the order, largest or newest first; `last` unless given
    sort: Option<OneOf<Order>>,
}

/// Files that were touched in a period.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FilesAnswer")]
pub(super) struct Files {
    from_us: i64,
    to_us: i64,
    /// At most 200, in the requested order.
    items: Vec<FileItem>,
    /// Number of files that match, including those that are not listed.
    total: usize,
    /// Start of the time that was searched, if the period contains too many touches. Null if the whole period was
    /// searched.
    since_us: Option<i64>,
    url: &'static str,
}

/// What agents did to one file.
#[derive(Serialize, JsonSchema)]
struct FileItem {
    /// Null if the file is outside of every workspace.
    project: Option<String>,
    /// Relative to the workspace; the whole path for a file outside of it.
    path: String,
    reads: u64,
    /// Number of changes and deletions.
    edits: u64,
    /// Lines added by successful edits. Null if no edit reports its lines.
    added: Option<u64>,
    removed: Option<u64>,
    /// Number of failed calls.
    errors: u64,
    sessions: u64,
    last_us: i64,
    url: String,
}

impl From<FileSums> for FileItem {
    fn from(sums: FileSums) -> Self {
        Self {
            url: file_url(sums.project.as_deref(), &sums.path),
            project: sums.project,
            path: sums.path,
            reads: sums.reads,
            edits: sums.edits,
            added: sums.added,
            removed: sums.removed,
            errors: sums.errors,
            sessions: sums.sessions,
            last_us: sums.last_ns / 1_000,
        }
    }
}

/// The page of a file.
pub(super) fn file_url(project: Option<&str>, path: &str) -> String {
    let project = project.map(|name| format!("project={}&", super::escape(name)));
    format!("/file?{}path={}", project.unwrap_or_default(), super::escape(path))
}

pub(super) async fn files(
    State(app): State<Arc<App>>,
    Params(wanted): Params<Wanted>,
    Params(period): Params<PeriodQuery>,
) -> Answer<Files> {
    let period = Period::of(&period, app.clock.now_ns())?.bounds();
    let order = wanted.sort.map_or(Order::Last, |order| order.0);
    let Wanted { project, q, session, .. } = wanted;
    let asked = WantedFiles { period, project, text: q, session };
    let mut found = read(&app, move |source| source.files(&asked)).await?;
    let total = found.files.len();
    found.files.sort_by(|a, b| {
        let place = |one: &FileSums| (key(one, order), one.last_ns);
        place(b).cmp(&place(a)).then_with(|| (&a.project, &a.path).cmp(&(&b.project, &b.path)))
    });
    found.files.truncate(FILES_MAX);
    json(Files {
        from_us: period.0 / 1_000,
        to_us: period.1 / 1_000,
        items: found.files.into_iter().map(FileItem::from).collect(),
        total,
        since_us: found.since.map(|since| since.as_us()),
        url: "/files",
    })
}

fn key(file: &FileSums, order: Order) -> u64 {
    match order {
        Order::Last => u64::try_from(file.last_ns).unwrap_or(0),
        Order::Edits => file.edits,
        Order::Reads => file.reads,
        Order::Lines => file.added.unwrap_or(0).saturating_add(file.removed.unwrap_or(0)),
        Order::Errors => file.errors,
        Order::Sessions => file.sessions,
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Named {
    /// name of the project; leave it out for a file outside of every workspace
    project: Option<String>,
    /// path relative to the workspace, or the whole path
    #[schemars(required)]
    path: Option<String>,
}

/// One file, and who touched it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FileAnswer")]
pub(super) struct File {
    from_us: i64,
    to_us: i64,
    sums: FileItem,
    /// Newest first, at most 400.
    touches: Vec<TouchItem>,
    /// The period contains older touches. The numbers in this answer do not include them.
    more: bool,
    /// Sessions that touched the file, newest first.
    sessions: Vec<FileSession>,
    /// Other files that the same sessions touched. Files touched in most sessions come first.
    beside: Vec<Beside>,
    url: String,
}

/// One call that read, changed or deleted the file.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FileTouch")]
struct TouchItem {
    row: i64,
    id: String,
    session: String,
    /// Number of the turn. Null if the call is not in a turn.
    turn: Option<u64>,
    at_us: i64,
    dur_us: Option<i64>,
    /// read, edit
    what: &'static str,
    added: Option<u64>,
    removed: Option<u64>,
    /// ok, error, open
    status: &'static str,
    url: String,
}

/// What one session did to the file.
#[derive(Serialize, JsonSchema)]
struct FileSession {
    session: String,
    /// First prompt, shortened.
    title: Option<String>,
    branch: Option<String>,
    first_us: i64,
    last_us: i64,
    reads: u64,
    edits: u64,
    added: Option<u64>,
    removed: Option<u64>,
    errors: u64,
    url: String,
}

/// A file that was touched in the same sessions.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FileBeside")]
struct Beside {
    project: Option<String>,
    path: String,
    /// Number of these sessions that touched this file.
    sessions: usize,
    url: String,
}

pub(super) async fn file(
    State(app): State<Arc<App>>,
    Params(named): Params<Named>,
    Params(period): Params<PeriodQuery>,
) -> Answer<File> {
    let period = Period::of(&period, app.clock.now_ns())?.bounds();
    let Some(path) = named.path else {
        return Err(Problem::bad_parameter("path", "the path of a file, as the list has it"));
    };
    let project = named.project;
    json(read(&app, move |source| view(source, project, path, period)).await?)
}

fn view(
    source: &dyn Source,
    project: Option<String>,
    path: String,
    period: (i64, i64),
) -> hookspan_view::Result<File> {
    let of = project.as_deref().unwrap_or_default();
    let mut found = source.touches(of, &path, period, TOUCHES_MAX + 1)?;
    let more = found.len() > TOUCHES_MAX;
    found.truncate(TOUCHES_MAX);
    let mut known: BTreeMap<&str, (Option<SessionSummary>, Vec<TurnSummary>)> = BTreeMap::new();
    let mut sums = FileSums { project: project.clone(), path: path.clone(), ..FileSums::default() };
    let mut order = Vec::new();
    for touch in &found {
        if !known.contains_key(touch.root.as_str()) {
            let session = (source.session(&touch.root)?, source.turns(&touch.root)?);
            drop(known.insert(&touch.root, session));
            order.push(touch.root.as_str());
        }
        add(&mut sums, touch);
    }
    sums.sessions = order.len() as u64;
    let turns = |root: &str| known.get(root).map_or(&[][..], |(_, turns)| turns.as_slice());
    let touches = found.iter().map(|touch| item(touch, turns(&touch.root))).collect();
    let session = |root: &&str| {
        let summary = known.get(root).and_then(|(session, _)| session.as_ref());
        session_item(root, summary, found.iter().filter(|touch| touch.root == **root))
    };
    Ok(File {
        from_us: period.0 / 1_000,
        to_us: period.1 / 1_000,
        touches,
        more,
        sessions: order.iter().map(session).collect(),
        beside: beside(source, &order, (project.as_deref(), &path))?,
        url: file_url(project.as_deref(), &path),
        sums: sums.into(),
    })
}

fn add(sums: &mut FileSums, touch: &Touch) {
    sums.last_ns = sums.last_ns.max(touch.start.0);
    sums.errors += u64::from(touch.failed);
    if !touch.edits {
        sums.reads += 1;
        return;
    }
    sums.edits += 1;
    // A failed edit changed nothing.
    let more = |sum: &mut Option<u64>, lines: Option<u64>| {
        if let Some(lines) = lines.filter(|_| !touch.failed) {
            *sum = Some(sum.unwrap_or(0).saturating_add(lines));
        }
    };
    more(&mut sums.added, touch.added);
    more(&mut sums.removed, touch.removed);
}

fn item(touch: &Touch, turns: &[TurnSummary]) -> TouchItem {
    // The turn with the same trace. If several turns have it, the last one that began before the touch.
    let of_trace = || turns.iter().filter(|turn| turn.trace == touch.trace);
    let before = of_trace().filter(|turn| turn.started_at <= touch.start);
    let turn = before
        .max_by_key(|turn| turn.started_at)
        .or_else(|| of_trace().max_by_key(|turn| turn.started_at));
    TouchItem {
        row: touch.row,
        id: touch.id.to_string(),
        session: touch.root.clone(),
        turn: turn.map(|turn| turn.index),
        at_us: touch.start.as_us(),
        dur_us: touch.length_ns.map(|ns| ns / 1_000),
        what: if touch.edits { "edit" } else { "read" },
        added: touch.added,
        removed: touch.removed,
        status: match (touch.failed, touch.open) {
            (true, _) => "error",
            (false, true) => "open",
            (false, false) => "ok",
        },
        url: format!("{}#{}", session_url(&touch.root), touch.id),
    }
}

fn session_item<'a>(
    root: &str,
    session: Option<&SessionSummary>,
    touches: impl Iterator<Item = &'a Touch>,
) -> FileSession {
    let mut sums = FileSums::default();
    let mut first_ns = i64::MAX;
    for touch in touches {
        first_ns = first_ns.min(touch.start.0);
        add(&mut sums, touch);
    }
    let prompt = session.and_then(|session| session.first_prompt.as_deref());
    let seen = session.and_then(|session| session.repository.as_ref());
    FileSession {
        session: root.to_owned(),
        title: prompt.map(|prompt| shorten(prompt, TITLE_MAX)),
        branch: seen.and_then(|seen| seen.branch.as_deref().map(str::to_owned)),
        first_us: first_ns / 1_000,
        last_us: sums.last_ns / 1_000,
        reads: sums.reads,
        edits: sums.edits,
        added: sums.added,
        removed: sums.removed,
        errors: sums.errors,
        url: session_url(root),
    }
}

/// Other files that the same sessions touched.
fn beside(
    source: &dyn Source,
    sessions: &[&str],
    (project, path): (Option<&str>, &str),
) -> hookspan_view::Result<Vec<Beside>> {
    let mut found: BTreeMap<(Option<String>, String), BTreeSet<&str>> = BTreeMap::new();
    for root in sessions.iter().take(SESSIONS_MAX) {
        let period = (i64::MIN, i64::MAX);
        let session = Some((*root).to_owned());
        let wanted = WantedFiles { period, session, ..WantedFiles::default() };
        for file in source.files(&wanted)?.files {
            if (file.project.as_deref(), file.path.as_str()) != (project, path) {
                found.entry((file.project, file.path)).or_default().insert(root);
            }
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, sessions)| core::cmp::Reverse(sessions.len()));
    found.truncate(BESIDE_MAX);
    let item = |((project, path), sessions): ((Option<String>, String), BTreeSet<&str>)| Beside {
        url: file_url(project.as_deref(), &path),
        sessions: sessions.len(),
        project,
        path,
    };
    Ok(found.into_iter().map(item).collect())
}
