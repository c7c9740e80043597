//! Draws the current state as lines of a terminal.

use hookspan_core::SessionState;
use hookspan_view::facet;
use hookspan_view::now::{Counts, Status};

use super::look::{Agent, Now};
use crate::cli::output::Paint;
use crate::cli::sessions::mark;
use crate::text;

/// Number of lines per running agent.
const CARD: usize = 3;
/// Columns of a project's name.
const PROJECT_COLUMNS: usize = 16;

/// At most `rows` lines of at most `columns` columns. The last row is left free for the cursor.
pub(super) fn frame(now: &Now, columns: usize, rows: usize, paint: Paint) -> Vec<String> {
    let mut lines = vec![heading(now, columns, paint)];
    if !now.collector {
        let words =
            format!("No collector is running, so this is not up to date. `{}` starts one.", now.up);
        lines.push(paint.yellow(&text::visible(&words, columns)));
    }
    if now.running.is_empty() {
        lines.push(paint.dim("No agent runs."));
    }
    let room = rows.saturating_sub(lines.len() + 2);
    let cards = now.running.len().min((room / CARD).max(1));
    for agent in now.running.iter().take(cards) {
        lines.extend(card(agent, now, columns, paint).into_iter().filter(|line| !line.is_empty()));
    }
    let left = room.saturating_sub(cards * CARD + 1);
    let waiting = now.waiting.len().min(left);
    for agent in now.waiting.iter().take(waiting) {
        lines.push(waits(agent, now, columns, paint));
    }
    let more = (now.running.len() - cards) + (now.waiting.len() - waiting);
    if more > 0 {
        lines.push(
            paint.dim(&text::visible(&format!("and {more} more: `hookspan sessions`"), columns)),
        );
    }
    lines.truncate(rows.saturating_sub(1).max(1));
    lines
}

fn heading(now: &Now, columns: usize, paint: Paint) -> String {
    let all = now.running.iter().chain(&now.waiting);
    let (need, ended) = Counts::of(all.map(|agent| agent.status)).words();
    let mut words = format!("{}  {} running  {need}", now.clock, now.running.len());
    if let Some(ended) = ended {
        words += "  ";
        words += &ended;
    }
    paint.bold(&text::visible(&words, columns))
}

/// The lines for one agent: state, project, turn and its age, branch and reason; the call with its usual time; the last
/// words.
fn card(agent: &Agent, now: &Now, columns: usize, paint: Paint) -> [String; CARD] {
    let session = &agent.session;
    let branch = session.repository.as_ref().and_then(|seen| seen.branch.as_deref());
    let age = agent.turn_start.map_or_else(String::new, |start| text::age(now.at.since(start)));
    let said = [
        mark(session.state).to_owned(),
        text::visible(&project(agent), PROJECT_COLUMNS),
        format!("turn {}", session.generations),
        age,
        branch.map(|branch| text::visible(branch, PROJECT_COLUMNS)).unwrap_or_default(),
    ];
    let said: Vec<String> = said.into_iter().filter(|text| !text.is_empty()).collect();
    let why = if agent.status == Status::Running { "" } else { agent.status.words() };
    let why_mark = if agent.status.alarms() { '▲' } else { '·' };
    let room = columns.saturating_sub(why.len() + 3);
    let head = text::cell(&said.join("  "), room);
    let head = if session.state == SessionState::ToolOpen { paint.green(&head) } else { head };
    let why =
        if why.is_empty() { String::new() } else { paint.yellow(&format!(" {why_mark} {why}")) };
    let words = agent.words.as_deref().unwrap_or_default();
    let words = match words {
        "" => String::new(),
        words => paint.dim(&text::visible(&format!("  “{words}”"), columns)),
    };
    [format!("{head}{why}").trim_end().to_owned(), doing(agent, now, columns), words]
}

/// The open call with its age and the usual duration of such calls. Between two calls: the time since the last hook.
fn doing(agent: &Agent, now: &Now, columns: usize) -> String {
    let Some((line, call)) = &agent.call else {
        let quiet = text::age(now.at.since(agent.session.last_at));
        return text::visible(&format!("  thinking, or the model answers  {quiet}"), columns);
    };
    let ns =
        |us: Option<u64>| us.map(|us| i64::try_from(us.saturating_mul(1_000)).unwrap_or(i64::MAX));
    let usual = ns(call.usual.p50_us).zip(ns(call.usual.p95_us));
    let usual = usual.map_or_else(String::new, |(half, most)| {
        format!("  usually {}, 95 % within {}", text::duration(half), text::duration(most))
    });
    let age = text::age(now.at.since(call.start));
    let tail = format!("  {age}{usual}");
    let tail = if tail.len() + 24 > columns { format!("  {age}") } else { tail };
    let label = text::visible(&line.label, columns.saturating_sub(tail.chars().count() + 2));
    format!("  {label}{tail}")
}

fn waits(agent: &Agent, now: &Now, columns: usize, paint: Paint) -> String {
    let session = &agent.session;
    let words = agent.words.as_deref().or(session.last_error.as_deref()).unwrap_or_default();
    let age = text::age(now.at.since(session.last_at));
    let line = format!(
        "{} {}  {} {age}  {words}",
        mark(session.state),
        text::cell(&project(agent), PROJECT_COLUMNS),
        agent.status.words(),
    );
    let line = text::visible(&line, columns);
    if session.state == SessionState::Errored { paint.red(&line) } else { paint.cyan(&line) }
}

fn project(agent: &Agent) -> String {
    let workspace = agent.session.workspace.as_deref();
    workspace.and_then(facet::project).unwrap_or_default().into_owned()
}

#[cfg(test)]
mod tests {
    use hookspan_core::{SpanId, Timestamp};
    use hookspan_view::line::{Line, LineKind, Outcome};
    use hookspan_view::now::{OpenCall, Usual};

    use super::*;
    use crate::store::sample;

    fn open_call(label: String) -> (Line, OpenCall) {
        let line = Line {
            row: 1,
            id: SpanId([0; 8]),
            parent: None,
            kind: LineKind::Shell,
            label,
            start: Timestamp(1),
            end: None,
            outcome: Outcome::Open,
            flags: 0,
            wait_us: 0,
        };
        let usual = Usual { runs: 40, p50_us: Some(4_100_000), p95_us: Some(20_100_000) };
        let (asks, delegates) = (false, false);
        let call = OpenCall { tool: "Shell".to_owned(), asks, delegates, start: line.start, usual };
        (line, call)
    }

    fn agent(state: SessionState) -> Agent {
        let label = format!("Shell cargo test \x1b[2J {}", "long ".repeat(40));
        let mut session = sample::session("root");
        session.state = state;
        Agent {
            session,
            turn_start: Some(Timestamp(1)),
            call: (state == SessionState::ToolOpen).then(|| open_call(label)),
            status: match state {
                SessionState::ToolOpen => Status::ApprovalLikely,
                _ => Status::TurnEnded,
            },
            words: Some("I run the \u{202e}tests now.\x07".to_owned()),
        }
    }

    fn now(agents: usize) -> Now {
        Now {
            at: Timestamp(130_000_000_000),
            clock: "00:02:10".to_owned(),
            collector: true,
            up: "hookspan up".to_owned(),
            running: vec![agent(SessionState::ToolOpen); agents],
            waiting: vec![agent(SessionState::YourTurn); agents],
        }
    }

    #[test]
    fn a_frame_fits_any_terminal_and_obeys_nothing_it_shows() {
        for (columns, rows) in [(40, 10), (80, 24), (140, 50), (40, 3)] {
            for agents in [0, 1, 3, 200] {
                let lines = frame(&now(agents), columns, rows, Paint::plain());
                assert!(lines.len() < rows, "{agents} in {rows}: {}", lines.len());
                for line in &lines {
                    assert!(line.chars().count() <= columns, "{columns}: {line}");
                    assert!(!line.contains(['\x1b', '\x07', '\u{202e}']), "{line:?}");
                }
            }
        }
    }

    #[test]
    fn a_card_tells_the_call_against_its_usual_time_and_why_it_needs_a_person() {
        let lines = frame(&now(1), 120, 24, Paint::plain());
        assert_eq!(lines[0], "00:02:10  1 running  1 needs you  1 turn ended");
        assert!(lines[1].starts_with("◐  project  turn 2  2m09s  fix/a"), "{}", lines[1]);
        assert!(lines[1].ends_with("▲ approval likely"), "{}", lines[1]);
        assert!(lines[2].ends_with("2m09s  usually 4.1s, 95 % within 20.1s"), "{}", lines[2]);
        assert!(lines[4].starts_with("▲ project           turn ended"), "{}", lines[4]);
    }
}
