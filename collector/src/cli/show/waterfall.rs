//! Draws the turns of a session and everything in them. Each turn has its own time scale, because on a common scale the
//! pauses between turns would leave no room for the rest.

use std::collections::BTreeMap;

use hookspan_core::price::Prices;
use hookspan_core::{SessionParts, SessionSummary, Timestamp, Tokens, TurnSummary};
use hookspan_view::line::{Line, LineKind, Outcome};
use hookspan_view::received::AllReceived;
use hookspan_view::source::SessionMarks;
use hookspan_view::{facet, outcome};
use unicode_width::UnicodeWidthStr as _;

use super::received;
use crate::cli::calendar::Calendar;
use crate::cli::cost;
use crate::cli::output::Paint;
use crate::cli::sessions::{marks_word, state_word};
use crate::text::{self, counted};

/// Maximum indentation. Deeper lines are not indented further, so that there is room for their text.
const DEPTH_MAX: usize = 8;
const DURATION_COLUMNS: usize = 6;

/// The session as text of at most `columns` columns. It contains no terminal sequences except `paint`'s colours.
pub(super) fn draw(
    (session, marks): (&SessionSummary, &SessionMarks),
    turns: &[TurnSummary],
    lines: &[Line],
    all: &AllReceived,
    prices: &Prices,
    (columns, paint): (usize, Paint),
) -> String {
    let calendar = Calendar::of_this_machine();
    let received = received::Lines::new(all);
    let columns = columns.min(160);
    let mut page = Page { tree: tree(lines), received, columns, paint, out: String::new() };
    page.heading(session, &calendar);
    // What programs tell of their tokens follows what hooks tell, and names its source.
    received::usage(all).iter().for_each(|line| page.line(&format!("tokens {line}")));
    page.repository(session);
    page.outcome(session);
    page.marks(marks);
    if let Some(estimate) = prices.of_turns(turns) {
        page.line(&format!("estimated cost, not a bill: {}", cost::words(prices, estimate)));
    }
    page.parts(&SessionParts::of(session, turns));
    let outside: Vec<&Line> =
        roots(lines).into_iter().flat_map(|root| page.outside(root)).collect();
    for turn in turns {
        if let Some(line) = lines.iter().find(|line| line.id == turn.span) {
            let cost = prices.of_turn(turn).map(|estimate| cost::words(prices, estimate));
            page.turn(turn, cost, line);
        }
    }
    if !outside.is_empty() {
        page.out += &format!("\n{}\n", paint.bold("Outside any turn"));
        for line in outside {
            page.block(line);
        }
    }
    let rest = page.received.elsewhere(|id| lines.iter().any(|line| line.id == id));
    if !rest.is_empty() {
        page.out += &format!("\n{}\n", paint.bold("Received, below no call"));
        page.received_lines(&rest, 0);
    }
    page.out
}

struct Page<'a> {
    tree: BTreeMap<i64, Vec<&'a Line>>,
    received: received::Lines<'a>,
    columns: usize,
    paint: Paint,
    out: String,
}

/// The period of time that the bars of a turn show.
#[derive(Clone, Copy)]
struct Scale {
    from: Timestamp,
    length: i64,
}

impl<'a> Page<'a> {
    fn heading(&mut self, session: &SessionSummary, calendar: &Calendar) {
        let paint = self.paint;
        let wide = self.columns;
        let end = session.ended_at.unwrap_or(session.last_at);
        let facts = [
            Some(calendar.stamp(session.started_at)),
            Some(text::duration(end.since(session.started_at))),
            Some(counted(session.generations, "turn")),
            Some(counted(session.tool_calls, "call")),
            (session.subagents > 0).then(|| counted(session.subagents, "subagent")),
            (session.errors > 0).then(|| counted(session.errors, "error")),
        ];
        let project = session.workspace.as_deref().and_then(facet::project);
        let place = [
            project.as_deref(),
            session.model.as_deref(),
            (session.surface != "unknown").then_some(session.surface),
            session.cursor_version.as_deref(),
        ];
        let state = state_word(session.state);
        let id = text::visible(&session.root, wide.saturating_sub(state.len() + 2));
        self.out += &format!("{}  {}\n", paint.bold(&id), paint.cyan(state));
        let place: Vec<&str> = place.into_iter().flatten().collect();
        self.line(&place.join("  "));
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        self.line(&facts.join(", "));
        if let Some(tokens) = session.tokens {
            let told = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
            self.line(&format!(
                "tokens: {} in ({} cache read, {} cache write), {} out",
                told(tokens.input),
                told(tokens.cache_read),
                told(tokens.cache_write),
                told(tokens.output)
            ));
        }
    }

    /// The branch and commit at the start, and those at the end.
    fn repository(&mut self, session: &SessionSummary) {
        let Some(seen) = session.repository.as_deref() else { return };
        let from = state(seen.from_branch.as_deref(), seen.from_commit.as_deref());
        let to = state(seen.branch.as_deref(), seen.commit.as_deref());
        let way = if from == to || from.is_empty() { to } else { format!("{from} → {to}") };
        let commits = match seen.commits.len() as u64 {
            0 => String::new(),
            count => counted(count, "commit"),
        };
        let url = seen.url.as_deref().unwrap_or_default().to_owned();
        let said: Vec<String> =
            [url, way, commits].into_iter().filter(|text| !text.is_empty()).collect();
        self.line(&format!("git: {}", said.join("  ")));
    }

    /// The outcome of the session.
    fn outcome(&mut self, session: &SessionSummary) {
        let work = &session.work;
        let tests = work.tests_passed + work.tests_failed;
        let mut said = outcome::words(session);
        said.extend((work.edits > 0).then(|| counted(work.edits, "edit")));
        said.extend((tests > 0).then(|| counted(tests, "test run")));
        if !said.is_empty() {
            self.line(&format!("outcome: {}", said.join(", ")));
        }
        if let Some(address) = work.pull_request.as_deref() {
            self.line(&format!("pull request: {address}"));
        }
    }

    /// What the time was used for, the largest part first.
    fn parts(&mut self, parts: &SessionParts) {
        let mut named: Vec<(&str, i64)> = parts.turns.named().to_vec();
        named.push(("idle", parts.idle));
        named.retain(|(_, ns)| *ns > 0);
        named.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let shown: Vec<String> =
            named.iter().map(|(name, ns)| format!("{name} {}", text::duration(*ns))).collect();
        if !shown.is_empty() {
            self.line(&format!("time: {}", shown.join(", ")));
        }
    }

    /// The star, the tags and the note.
    fn marks(&mut self, marks: &SessionMarks) {
        self.line(marks_word(marks).trim_end());
        for (number, line) in marks.note.lines().enumerate() {
            self.line(&format!("{}{line}", if number == 0 { "note: " } else { "      " }));
        }
    }

    fn line(&mut self, line: &str) {
        if !line.is_empty() {
            self.out += &text::visible(line, self.columns);
            self.out += "\n";
        }
    }

    fn turn(&mut self, turn: &TurnSummary, cost: Option<String>, line: &'a Line) {
        let mut right = vec![match (turn.length_ns(), turn.ended_at) {
            (Some(length), _) => text::duration(length),
            (None, None) => "running".to_owned(),
            (None, Some(_)) => "?".to_owned(),
        }];
        if let Some(Tokens { input, output, .. }) = turn.tokens
            && (input.is_some() || output.is_some())
        {
            let told = |count: Option<u64>| count.map_or("?".to_owned(), text::count);
            right.push(format!("{} in {} out", told(input), told(output)));
        }
        right.extend(cost);
        let commits = turn.repository.as_ref().map_or(0, |seen| seen.commits.len() as u64);
        right.extend((commits > 0).then(|| counted(commits, "commit")));
        match turn.status.as_deref() {
            None | Some("completed") => {}
            Some(status) => right.push(text::visible(status, 12)),
        }
        let right = right.join("  ");
        let number = format!("{:>2} ", turn.index);
        let room = self.columns.saturating_sub(number.len() + right.width() + 2);
        let prompt = turn.prompt.as_deref().unwrap_or(&line.label);
        let prompt = text::cell(prompt, room);
        self.out += &format!(
            "\n{}{}  {}\n",
            self.paint.bold(&number),
            self.paint.bold(&prompt),
            self.paint.dim(&right)
        );
        let children = self.tree.remove(&line.row).unwrap_or_default();
        let scale = self.scale(line, &children);
        for child in children {
            self.walk(child, 0, scale);
        }
    }

    /// The lines directly below a segment, without turns. Segments themselves have no lines.
    fn outside(&mut self, root: &'a Line) -> Vec<&'a Line> {
        match root.kind {
            LineKind::Turn => Vec::new(),
            LineKind::Session => {
                let children = self.tree.remove(&root.row).unwrap_or_default();
                children.into_iter().filter(|line| line.kind != LineKind::Turn).collect()
            }
            _ => vec![root],
        }
    }

    fn block(&mut self, line: &'a Line) {
        let scale = self.scale(line, &[]);
        self.walk(line, 0, scale);
    }

    /// From the start of a turn to its end, or, while it runs, to the last known time in it.
    fn scale(&self, line: &Line, children: &[&Line]) -> Scale {
        let mut end = line.end.unwrap_or(line.start);
        let mut pending: Vec<&Line> = children.to_vec();
        while let Some(next) = pending.pop() {
            end = end.max(next.end.unwrap_or(next.start));
            pending.extend(self.tree.get(&next.row).into_iter().flatten());
        }
        Scale { from: line.start, length: end.since(line.start).max(1) }
    }

    fn walk(&mut self, line: &'a Line, depth: usize, scale: Scale) {
        let bar_columns = (self.columns / 3).min(48);
        let room = self.columns.saturating_sub(bar_columns + DURATION_COLUMNS + 6);
        let indent = "  ".repeat(depth.min(DEPTH_MAX));
        let (mark, problem) = match line.outcome {
            Outcome::Ok => (" ", false),
            Outcome::Error => ("✗", true),
            Outcome::Open => ("…", false),
            Outcome::Unknown => ("?", false),
        };
        let label = text::cell(&format!("{indent}{}", line.label), room);
        let time = match (line.length_ns(), line.end) {
            (Some(ns), _) => text::duration(ns),
            (None, Some(_)) => "?".to_owned(),
            (None, None) => String::new(),
        };
        let time = text::right(&time, DURATION_COLUMNS);
        let bar = bar(line, scale, bar_columns);
        let paint = self.paint;
        let (label, bar, mark) = match line.kind {
            _ if problem => (paint.red(&label), paint.red(&bar), paint.red(mark)),
            _ if line.length_ns().is_none() => (label, paint.dim(&bar), mark.to_owned()),
            LineKind::Thinking => (paint.dim(&label), paint.dim(&bar), mark.to_owned()),
            LineKind::Response => (label, paint.cyan(&bar), mark.to_owned()),
            LineKind::Subagent => (paint.bold(&label), paint.yellow(&bar), mark.to_owned()),
            _ => (label, paint.green(&bar), mark.to_owned()),
        };
        self.out += &format!("   {mark} {label}{time} {}\n", bar.trim_end());
        self.received_lines(&self.received.below(line.id), depth + 1);
        for child in self.tree.remove(&line.row).unwrap_or_default() {
            self.walk(child, depth + 1, scale);
        }
    }
}

impl Page<'_> {
    /// Lines of other programs. They have no bar: their clock is not that of the hooks.
    fn received_lines(&mut self, lines: &[(String, String)], depth: usize) {
        let indent = "  ".repeat(depth.min(DEPTH_MAX));
        let room = self.columns.saturating_sub(DURATION_COLUMNS + 6);
        for (label, length) in lines {
            let label = text::visible(&format!("{indent}{label}"), room);
            let line = if length.is_empty() { label } else { format!("{label}  {length}") };
            self.out += &format!("     {}\n", self.paint.dim(&line));
        }
    }
}

/// A bar for the line's time within the period. It has at least one column, of `░` if no hook reports the line's end,
/// and of `▒` while the line runs.
fn bar(line: &Line, scale: Scale, columns: usize) -> String {
    let column = |at: Timestamp| {
        let part = i128::from(at.since(scale.from)) * columns as i128 / i128::from(scale.length);
        usize::try_from(part).unwrap_or(0).min(columns)
    };
    let from = column(line.start).min(columns.saturating_sub(1));
    let to = line.end.map_or(columns, column).max(from + 1);
    let fill = match line.outcome {
        Outcome::Ok | Outcome::Error => "█",
        Outcome::Open => "▒",
        Outcome::Unknown => "░",
    };
    " ".repeat(from) + &fill.repeat(to - from)
}

/// Lines by the row of their parent, in the order of their start.
fn tree(lines: &[Line]) -> BTreeMap<i64, Vec<&Line>> {
    let mut tree: BTreeMap<i64, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        if let Some(parent) = line.parent {
            tree.entry(parent).or_default().push(line);
        }
    }
    for children in tree.values_mut() {
        children.sort_by_key(|line| (line.start, line.row));
    }
    tree
}

/// Lines whose parent is not among the lines.
fn roots(lines: &[Line]) -> Vec<&Line> {
    let rows: std::collections::BTreeSet<i64> = lines.iter().map(|line| line.row).collect();
    lines.iter().filter(|line| line.parent.is_none_or(|parent| !rows.contains(&parent))).collect()
}

/// A branch and the beginning of a commit.
fn state(branch: Option<&str>, commit: Option<&str>) -> String {
    let commit = commit.map(|commit| commit.get(..8).unwrap_or(commit));
    [branch, commit].into_iter().flatten().collect::<Vec<_>>().join(" ")
}
