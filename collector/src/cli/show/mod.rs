//! `hookspan show`: one session as a waterfall in the terminal.

mod json;
mod received;
mod waterfall;

use std::process::ExitCode;

use anyhow::Context as _;
use hookspan_view::health::JournalHealth;
use hookspan_view::source::Spans as _;

use super::Global;
use super::blank::Blank;
use super::cost;
use super::output::{self, Paint, print, print_json};
use super::sessions::Session;
use crate::source::StoreSource;
use crate::store::{cli as queries, marks, open, read};
use crate::text;

/// Maximum number of lines shown of a session. A longer one is for the dashboard.
const LINES_MAX: usize = 20_000;

/// Show one session: its turns, tool calls and subagents on a time line
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan show d95a19cf\n  hookspan show last --redact\n  hookspan show last --json"
)]
pub(crate) struct Args {
    /// Session id, the beginning of an id, or `last`
    #[arg(value_name = "ID")]
    id: String,
    /// Print the session with its turns and spans as JSON
    #[arg(long)]
    json: bool,
    /// Redact secrets, as in an export
    #[arg(long)]
    redact: bool,
}

/// Runs the command.
///
/// # Errors
/// There is no such session, or the database cannot be read.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let database = open::reader(&global.state.database())?;
    let root = find(&database, &args.id)?;
    let unreadable = "cannot read the database";
    let session = read::session(&database, &root).context(unreadable)?;
    let mut session = session.with_context(|| format!("session {root} is gone"))?;
    let mut turns = read::turns(&database, &root).context(unreadable)?;
    let config = global.config()?;
    let prices = config.prices;
    let blank = Blank::new(args.redact, &global.state, &config.redact)?;
    // Redacts before anything is cut to the terminal's width, because half a secret matches no rule.
    blank.session(&mut session);
    let mut marks = marks::of(&database, &root).context(unreadable)?;
    blank.marks(&mut marks);
    turns.iter_mut().for_each(|turn| blank.turn(turn));
    let source = StoreSource::new(&global.state.database(), Box::new(JournalHealth::default), []);
    let all = source.received(Some(&root), LINES_MAX);
    let mut all = all.map_err(|error| anyhow::anyhow!("{unreadable}: {}", error.0))?;
    received::redact(&mut all, &blank);
    if args.json {
        let spans = read::spans(&database, &root, usize::MAX).context(unreadable)?;
        let spans = spans.into_iter().map(|(_, span)| span).collect();
        let marked = Session::from(session.clone()).marked(marks);
        let mut shown =
            serde_json::to_value(json::Shown::new(marked, &session, turns, spans, all, &prices))?;
        blank.json(&mut shown);
        print_json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    let lines = source.lines(&root, None, LINES_MAX);
    let mut lines = lines.map_err(|error| anyhow::anyhow!("{unreadable}: {}", error.0))?;
    lines.lines.iter_mut().for_each(|line| blank.label(&mut line.label));
    let wide = (output::columns(), Paint::stdout(&global.env));
    let mut shown = waterfall::draw((&session, &marks), &turns, &lines.lines, &all, &prices, wide);
    if !prices.is_empty() {
        shown += &cost::source(&config.price_lists);
    }
    if lines.total > lines.lines.len() as u64 {
        shown += &format!("… {} of {} lines\n", lines.lines.len(), lines.total);
    }
    print(&shown)?;
    Ok(ExitCode::SUCCESS)
}

/// The session that `id` names.
///
/// # Errors
///
/// No session or several sessions match.
pub(crate) fn find(database: &rusqlite::Connection, id: &str) -> anyhow::Result<String> {
    if id == "last" {
        return queries::last_root(database)?.context("nothing recorded yet");
    }
    let mut roots = queries::roots(database, id, 6)?;
    if let Some(exact) = roots.iter().position(|root| root == id) {
        return Ok(roots.swap_remove(exact));
    }
    match roots.as_slice() {
        [] => anyhow::bail!("no session `{}`: see `hookspan sessions`", text::visible(id, 60)),
        [root] => Ok(root.clone()),
        several => anyhow::bail!(
            "`{}` is the beginning of several sessions: {}",
            text::visible(id, 60),
            several.iter().map(|root| text::visible(root, 60)).collect::<Vec<_>>().join(", ")
        ),
    }
}
