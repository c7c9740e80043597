//! `hookspan statusline`: one line for a status bar or a prompt.
//!
//! A status bar runs the command every few seconds and has no room for error messages. So the command answers at once
//! or prints nothing. The line contains names of tools, programs, projects and branches, but no arguments and no
//! prompts. Characters that tmux or a shell would interpret are replaced.

use std::io::{self, IsTerminal as _, Read as _};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use hookspan_core::{SessionState, SessionSummary, Timestamp};
use hookspan_view::health::JournalHealth;
use hookspan_view::line::Line;
use hookspan_view::source::{LineFilter, SessionFilter, Sessions as _, Spans as _};
use hookspan_view::{facet, outcome};
use serde::Deserialize;

use super::Global;
use super::output::print;
use super::sessions::{mark, state_word};
use crate::clock;
use crate::dirs::Lock;
use crate::source::StoreSource;
use crate::text;

/// Maximum number of bytes read from standard input.
const INPUT_MAX: u64 = 256 * 1024;
/// If nothing comes on standard input for this long, it is ignored.
const INPUT_WAIT: Duration = Duration::from_millis(20);
/// Sessions without a hook for this long are not counted.
const RECENT_NS: i64 = 12 * 3_600 * 1_000_000_000;
/// Maximum number of sessions that are read.
const SESSIONS_MAX: usize = 200;
/// Maximum width of a name in columns.
const NAME_COLUMNS: usize = 24;

/// Print one line about running agents, for tmux, a prompt or Claude Code's status line
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Prints nothing, and succeeds, where no collector runs. If standard input is the JSON that Claude Code gives its status \
                  line, the line is about that session, else about all.\n\nExamples:\n  hookspan statusline\n\n  \
                  tmux (~/.tmux.conf):\n    set -g status-right '#(hookspan statusline)'\n    set -g status-interval 5\n\n  \
                  bash (~/.bashrc):\n    PS1='$(hookspan statusline </dev/null) \\w \\$ '\n\n  \
                  Claude Code (~/.claude/settings.json):\n    {\"statusLine\": {\"type\": \"command\", \"command\": \"hookspan statusline\"}}"
)]
pub(crate) struct Args {}

/// The part of the JSON from Claude Code that names the session on the screen.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    session_id: String,
}

/// Runs the command. It never fails: what cannot be read is not shown.
pub(crate) fn run(global: &Global, _: Args) -> ExitCode {
    let dir = &global.state;
    if !dir.lock_file().exists() || !Lock::is_held(dir) || !dir.database().exists() {
        return ExitCode::SUCCESS;
    }
    let asked = asked();
    let source = StoreSource::new(&dir.database(), Box::new(JournalHealth::default), []);
    if let Some(line) = line(&source, &asked, clock::now()).filter(|line| !line.is_empty()) {
        drop(print(&(line + "\n")));
    }
    ExitCode::SUCCESS
}

/// The request on standard input. Empty if standard input is a terminal, sends nothing in time, or is not such JSON.
fn asked() -> Asked {
    if io::stdin().is_terminal() {
        return Asked::default();
    }
    let (send, receive) = mpsc::sync_channel(1);
    // The thread may outlive this wait; it ends with the process.
    std::thread::spawn(move || {
        let mut input = Vec::new();
        let whole = io::stdin().lock().take(INPUT_MAX).read_to_end(&mut input).is_ok();
        drop(send.send(Some(input).filter(|_| whole)));
    });
    let input = receive.recv_timeout(INPUT_WAIT).ok().flatten().unwrap_or_default();
    serde_json::from_slice(&input).unwrap_or_default()
}

fn line(source: &StoreSource, asked: &Asked, now: Timestamp) -> Option<String> {
    if !asked.session_id.is_empty()
        && let Some(session) = source.session(&asked.session_id).ok()?
    {
        let call = source.open_call(&session.root).ok().flatten();
        return Some(of_one(&session, call.as_ref(), now));
    }
    let spans = LineFilter { from_ns: Some(now.0 - RECENT_NS), ..LineFilter::default() };
    let filter = SessionFilter { spans, ..SessionFilter::default() };
    let recent = source.sessions(&filter, None, SESSIONS_MAX).ok()?;
    let newest = recent.iter().find(|session| is_busy(session));
    let call = newest.and_then(|session| source.open_call(&session.root).ok().flatten());
    Some(of_all(&recent, newest, call.as_ref(), now))
}

fn is_busy(session: &SessionSummary) -> bool {
    matches!(session.state, SessionState::Running | SessionState::ToolOpen)
}

/// Summary of all sessions: how many run, what the newest of these does, and how many wait for a person.
fn of_all(
    recent: &[SessionSummary],
    newest: Option<&SessionSummary>,
    call: Option<&Line>,
    now: Timestamp,
) -> String {
    let in_state = |state| recent.iter().filter(|session| session.state == state).count();
    let busy = recent.iter().filter(|session| is_busy(session)).count();
    let waiting = in_state(SessionState::YourTurn);
    let mut said = Vec::new();
    if busy > 0 {
        said.push(format!("{} {busy} running", mark(SessionState::Running)));
    }
    if let Some(session) = newest {
        said.push(doing(session, call, now));
    }
    if waiting > 0 {
        let turns = text::counted(waiting as u64, "turn");
        said.push(format!("{} {turns} ended", mark(SessionState::YourTurn)));
    }
    said.retain(|text| !text.is_empty());
    said.join("  ")
}

/// Summary of one session: its state, its turn, its current action, and its outcome.
fn of_one(session: &SessionSummary, call: Option<&Line>, now: Timestamp) -> String {
    let branch = session.repository.as_ref().and_then(|seen| seen.branch.as_deref());
    let mut said = vec![
        format!("{} {}", mark(session.state), state_word(session.state)),
        text::counted(session.generations, "turn"),
        if is_busy(session) { doing(session, call, now) } else { String::new() },
        if session.errors > 0 { text::counted(session.errors, "error") } else { String::new() },
        branch.map(name).unwrap_or_default(),
    ];
    said.extend(outcome::words(session));
    said.retain(|text| !text.is_empty());
    said.join("  ")
}

/// `api: Shell cargo 2m10s`
fn doing(session: &SessionSummary, call: Option<&Line>, now: Timestamp) -> String {
    let project = session.workspace.as_deref().and_then(facet::project).unwrap_or_default();
    let project = if project.is_empty() { String::new() } else { format!("{}: ", name(&project)) };
    match call {
        Some(call) => {
            // The first word of a label is the tool. The rest may be an argument.
            let tool = call.label.split_whitespace().next().unwrap_or_default();
            format!("{project}{} {}", name(tool), text::age(now.since(call.start)))
        }
        None => format!("{project}thinking {}", text::age(now.since(session.last_at))),
    }
}

/// A name with plain characters only. `#` and `%` have a meaning in tmux and zsh, `$` and backquotes in shells.
fn name(text: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || " ._-/:@+".contains(c) { c } else { '_' };
    text::visible(text, NAME_COLUMNS).chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_nothing_to_a_shell_or_a_status_bar() {
        assert_eq!(name("a#(reboot)$(x)`y`%{z%}\x1b[2J\n#{q}"), "a__reboot___x__y___z____");
        assert_eq!(name("feature/größe-2"), "feature/größe-2");
    }

    #[test]
    fn input_that_is_not_the_expected_json_asks_for_nothing() {
        for input in ["", "[]", "{", "{\"session_id\": 3}", "\u{0}"] {
            let asked: Asked = serde_json::from_slice(input.as_bytes()).unwrap_or_default();
            assert_eq!(asked.session_id, "");
        }
        let asked: Asked = serde_json::from_str(
            r#"{"session_id":"abc","model":{"id":"m","display_name":"M"},"workspace":{"current_dir":"/w"},"cost":{"total_cost_usd":0.1}}"#,
        )
        .unwrap();
        assert_eq!(asked.session_id, "abc");
    }
}
