//! `hookspan sessions`: what was recorded.

use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context as _;
use hookspan_core::outcome::OutcomeWord;
use hookspan_core::{SessionState, SessionSummary, Timestamp};
use hookspan_view::item::{MarkItem, OutcomeItem, RepositoryItem, TokenCounts};
use hookspan_view::source::{SessionFilter, SessionMarks};
use hookspan_view::{facet, outcome};
use rusqlite::Connection;
use serde::Serialize;

use super::blank::Blank;
use super::calendar::Calendar;
use super::narrow::Narrow;
use super::output::{Paint, columns, note, print, print_json};
use super::{Global, advice};
use crate::clock;
use crate::store::open::{self, OpenError};
use crate::store::{marks, read};
use crate::text;

/// List recorded sessions, newest first
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan sessions\n  hookspan sessions --limit 5\n  hookspan sessions --tool Shell --status error --from 2026-11-01\n  hookspan sessions --starred --outcome left_open\n  hookspan sessions --redact --json"
)]
pub(crate) struct Args {
    /// Maximum number of sessions; 0 for all [default: 20; with --json all sessions]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    /// Redact secrets, as in an export
    #[arg(long)]
    redact: bool,
    #[command(flatten)]
    narrow: Narrow,
}

/// A session in JSON. Times are RFC 3339.
#[derive(Debug, Serialize)]
pub(crate) struct Session {
    id: String,
    state: &'static str,
    started_at: String,
    last_at: String,
    ended_at: Option<String>,
    generations: u64,
    tool_calls: u64,
    subagents: u64,
    errors: u64,
    tokens: TokenCounts,
    workspace: Option<String>,
    model: Option<String>,
    surface: &'static str,
    cursor_version: Option<String>,
    first_prompt: Option<String>,
    last_error: Option<String>,
    active_ms: i64,
    repository: Option<RepositoryItem>,
    outcome: OutcomeItem,
    marks: MarkItem,
}

impl Session {
    /// The session with what people added to it.
    pub(crate) fn marked(self, marks: SessionMarks) -> Self {
        Self { marks: marks.into(), ..self }
    }
}

impl From<SessionSummary> for Session {
    fn from(session: SessionSummary) -> Self {
        Self {
            outcome: OutcomeItem::of(&session),
            marks: MarkItem::default(),
            id: session.root.to_string(),
            state: session.state.as_str(),
            started_at: rfc3339(session.started_at),
            last_at: rfc3339(session.last_at),
            ended_at: session.ended_at.map(rfc3339),
            generations: session.generations,
            tool_calls: session.tool_calls,
            subagents: session.subagents,
            errors: session.errors,
            tokens: session.tokens.unwrap_or_default().into(),
            workspace: session.workspace.map(|workspace| workspace.to_string()),
            model: session.model.map(|model| model.to_string()),
            surface: session.surface,
            cursor_version: session.cursor_version.map(|version| version.to_string()),
            first_prompt: session.first_prompt,
            last_error: session.last_error,
            active_ms: session.active_ns / 1_000_000,
            repository: session.repository.map(RepositoryItem::from),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// The database cannot be read.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let filter = SessionFilter {
        spans: args.narrow.filter(&Calendar::of_this_machine())?,
        ..SessionFilter::default()
    };
    let narrowed = !filter.spans.is_empty();
    let default = if args.json { 0 } else { 20 };
    let limit = match args.limit.unwrap_or(default) {
        0 => usize::MAX,
        limit => limit,
    };
    let blank = Blank::new(args.redact, &global.state, &global.config()?.redact)?;
    let mut sessions = match open::reader(&global.state.database()) {
        Err(OpenError::Missing(_)) => Vec::new(),
        database => listed(&database?, &filter, limit).context("cannot read the database")?,
    };
    for (session, marks) in &mut sessions {
        blank.session(session);
        blank.marks(marks);
    }
    if args.json {
        let sessions: Vec<Session> = sessions
            .into_iter()
            .map(|(session, marks)| Session::from(session).marked(marks))
            .collect();
        print_json(&sessions)?;
        return Ok(ExitCode::SUCCESS);
    }
    if sessions.is_empty() && narrowed {
        note(&advice::fitted(global, "no session matches; `hookspan sessions` lists all"));
        return Ok(ExitCode::SUCCESS);
    }
    if sessions.is_empty() {
        note(&advice::fitted(
            global,
            "nothing recorded yet: `hookspan up` starts recording, `hookspan doctor` says what is missing",
        ));
        return Ok(ExitCode::SUCCESS);
    }
    print(&table(&sessions, clock::now(), columns(), Paint::stdout(&global.env)))?;
    if sessions.len() == limit {
        note(&format!("Showing the newest {limit}; use --limit 0 for all"));
    }
    Ok(ExitCode::SUCCESS)
}

/// A session with what people added to it.
type Listed = (SessionSummary, SessionMarks);

fn listed(
    database: &Connection,
    filter: &SessionFilter,
    limit: usize,
) -> rusqlite::Result<Vec<Listed>> {
    let sessions = read::sessions(database, filter, None, limit)?;
    let roots: Vec<&str> = sessions.iter().map(|session| &*session.root).collect();
    let mut marks = marks::all_of(database, &roots)?;
    let mut of = |session: &SessionSummary| marks.remove(&*session.root).unwrap_or_default();
    Ok(sessions
        .into_iter()
        .map(|session| {
            let marks = of(&session);
            (session, marks)
        })
        .collect())
}

/// The star and the tags, as they stand before a prompt.
pub(crate) fn marks_word(marks: &SessionMarks) -> String {
    let star = marks.starred.then(|| "★ ".to_owned());
    star.into_iter().chain(marks.tags.iter().map(|tag| format!("#{tag} "))).collect()
}

/// Minimum width in columns at which the table shows branch and outcome.
const WIDE: usize = 127;
const BRANCH_COLUMNS: usize = 14;
const OUTCOME_COLUMNS: usize = 31;
/// Columns before branch and prompt.
const LEADING_COLUMNS: usize = 65;

/// A table that fits into `columns`, but is never narrower than 80 columns.
fn table(sessions: &[Listed], now: Timestamp, columns: usize, paint: Paint) -> String {
    let wide = columns >= WIDE;
    let extra = if wide { "BRANCH         OUTCOME                         " } else { "" };
    let head = format!(
        "ID       STATE             AGO TURNS CALLS ERR TOKENS PROJECT    {extra}FIRST PROMPT"
    );
    let room = columns.saturating_sub(LEADING_COLUMNS + extra.len()).max(15);
    let mut out = paint.bold(&head) + "\n";
    for (session, marks) in sessions {
        let state =
            text::cell(&format!("{} {}", mark(session.state), state_word(session.state)), 14);
        let state = match session.state {
            SessionState::Running | SessionState::ToolOpen => paint.green(&state),
            SessionState::Errored => paint.red(&state),
            SessionState::YourTurn => paint.cyan(&state),
            SessionState::Done | SessionState::Stale => paint.dim(&state),
        };
        let errors = text::right(&text::count(session.errors), 3);
        let errors = if session.errors > 0 { paint.red(&errors) } else { errors };
        let tokens = session.tokens.and_then(hookspan_core::Tokens::total);
        let tokens = tokens.map_or_else(String::new, text::count);
        let line = format!(
            "{} {state} {} {} {} {errors} {} {} {}{}",
            text::cell(&short(&session.root), 8),
            text::right(&text::age(now.since(session.last_at)), 6),
            text::right(&text::count(session.generations), 5),
            text::right(&text::count(session.tool_calls), 5),
            text::right(&tokens, 6),
            text::cell(
                &session.workspace.as_deref().and_then(facet::project).unwrap_or_default(),
                10
            ),
            if wide { came_of(session, paint) } else { String::new() },
            text::visible(
                &(marks_word(marks) + session.first_prompt.as_deref().unwrap_or_default()),
                room
            ),
        );
        out += line.trim_end();
        out += "\n";
    }
    out
}

/// The branch and the outcome of the session, each in its column.
fn came_of(session: &SessionSummary, paint: Paint) -> String {
    let branch = session.repository.as_ref().and_then(|seen| seen.branch.as_deref());
    let branch = text::cell(branch.unwrap_or_default(), BRANCH_COLUMNS);
    let words = text::cell(&outcome::words(session).join(", "), OUTCOME_COLUMNS);
    let words = match session.outcome().first() {
        Some(OutcomeWord::TestsFailed) => paint.red(&words),
        Some(OutcomeWord::LeftOpen) => paint.yellow(&words),
        _ => words,
    };
    format!("{branch} {words} ")
}

/// The symbol for a state, as on the pages.
pub(crate) fn mark(state: SessionState) -> &'static str {
    match state {
        SessionState::Running => "●",
        SessionState::ToolOpen => "◐",
        SessionState::YourTurn => "▲",
        SessionState::Done => "✓",
        SessionState::Errored => "✕",
        SessionState::Stale => "–",
    }
}

pub(crate) fn state_word(state: SessionState) -> &'static str {
    match state {
        SessionState::Running => "running",
        SessionState::ToolOpen => "tool running",
        SessionState::YourTurn => "your turn",
        SessionState::Done => "done",
        SessionState::Errored => "errored",
        SessionState::Stale => "stale",
    }
}

/// The first characters of an id, enough to identify a session.
pub(crate) fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

/// RFC 3339 in UTC with microseconds.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    let since = Duration::from_micros(u64::try_from(at.as_us()).unwrap_or(0));
    humantime::format_rfc3339_micros(UNIX_EPOCH + since).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> SessionSummary {
        SessionSummary {
            root: "d95a19cf-0000-4000-8000-000000000000".into(),
            state: SessionState::YourTurn,
            started_at: Timestamp(1_781_020_395_226_000_000),
            last_at: Timestamp(1_781_020_562_762_000_000),
            ended_at: None,
            workspace: Some("/home/u/projects/acme-command-line".into()),
            model: Some("gpt-5.5-medium".into()),
            surface: "ide",
            cursor_version: Some("3.7.19".into()),
            first_prompt: Some("Explain \x1b[31mthis\nrepository to me".into()),
            last_error: None,
            generations: 6,
            tool_calls: 37,
            subagents: 1,
            errors: 1,
            errored_turns: 1,
            active_ns: 60_000_000_000,
            tokens: Some(hookspan_core::Tokens {
                input: Some(171_149),
                output: Some(679),
                cache_read: Some(121_017),
                cache_write: Some(25_008),
            }),
            repository: None,
            work: hookspan_core::outcome::Work::default(),
        }
    }

    use hookspan_core::outcome::TestRun;

    #[test]
    fn the_list_fits_eighty_columns_and_hides_escape_sequences() {
        let now = Timestamp(1_781_020_562_762_000_000 + 300_000_000_000);
        let shown = table(&[(session(), SessionMarks::default())], now, 80, Paint::plain());
        assert_eq!(
            shown,
            "ID       STATE             AGO TURNS CALLS ERR TOKENS PROJECT    FIRST PROMPT\n\
             d95a19cf ▲ your turn     5m00s     6    37   1   172k acme-comm… Explain ␛[31mt…\n"
        );
        assert!(shown.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn a_wide_list_tells_branch_and_outcome() {
        let mut session = session();
        session.work.test(TestRun { at: Timestamp(1), passed: false });
        session.repository = Some(Box::new(hookspan_core::repository::Repository {
            branch: Some("fix/\x1b[2Jcart-total".into()),
            commits: vec!["1a2b3c4d5e".into()],
            ..Default::default()
        }));
        let now = Timestamp(1_781_020_562_762_000_000 + 300_000_000_000);
        let marks =
            SessionMarks { starred: true, tags: vec!["later".to_owned()], note: String::new() };
        let shown = table(&[(session, marks)], now, 140, Paint::plain());
        let row = shown.lines().nth(1).unwrap();
        assert!(
            row.contains("fix/␛[2Jcart-… tests failed, committed 1a2b3c4 ★ #later Exp"),
            "{row}"
        );
        assert!(shown.lines().all(|line| line.chars().count() <= 140), "{shown}");
    }

    #[test]
    fn json_has_the_fields_that_scripts_rely_on() {
        let json = serde_json::to_value(Session::from(session())).unwrap();
        assert_eq!(json["started_at"], "2026-06-09T15:53:15.226000Z");
        assert_eq!(json["ended_at"], serde_json::Value::Null);
        assert_eq!(
            json["tokens"],
            serde_json::json!({"input": 171149, "output": 679, "cache_read": 121017, "cache_write": 25008})
        );
        for field in [
            "id",
            "generations",
            "tool_calls",
            "subagents",
            "errors",
            "workspace",
            "model",
            "state",
        ] {
            assert!(!json[field].is_null(), "{field}");
        }
    }
}
