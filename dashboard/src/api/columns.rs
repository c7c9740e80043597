//! The waterfall as columns: about 28 bytes per span instead of 220.

use std::collections::BTreeMap;

use hookspan_view::line::{Line, Outcome};
use hookspan_view::source::Lines;
use schemars::JsonSchema;
use serde::Serialize;

/// Spans as columns: all spans of a session, each parent before its children, or (a delta) the changed spans with the
/// rows of their parents.
#[derive(Serialize, Debug, Default, PartialEq, JsonSchema)]
pub(super) struct Columns {
    /// Version of this form.
    v: u8,
    /// Pass this number as `since` to get later changes.
    rev: u64,
    /// Number of lines in this answer.
    n: usize,
    /// Number of lines in the session.
    total: u64,
    t0_us: i64,
    /// Kinds, to which `kind` points.
    kinds: Vec<&'static str>,
    /// Texts, to which `label` points.
    strs: Vec<String>,
    /// Store rows, each as the difference to the previous one.
    row: Vec<i64>,
    label: Vec<usize>,
    kind: Vec<usize>,
    /// Distance to the parent in this answer; 0 for a root. Empty in a delta.
    up: Vec<usize>,
    /// Store row of the parent; 0 for a root. Only in a delta.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parent: Vec<i64>,
    /// Microseconds since `t0_us`, each as the difference to the previous one.
    start_us: Vec<i64>,
    /// -1 while it runs.
    dur_us: Vec<i64>,
    status: Vec<u8>,
    /// Sums of 1 inferred start, 2 inferred end, 4 cut (of a turn: hooks were left out), 8 has content, 16 tentative link
    /// (of a call: repeats the failure of its subagent), 32 late, 64 unknown duration, 128 asks a person.
    flags: Vec<u8>,
    /// Index and derived waiting time in microseconds, for each line that waited.
    wait: Vec<(usize, i64)>,
    /// The subagent that `focus` asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) focus: Option<Focus>,
}

/// The subagent that the answer is limited to.
#[derive(Serialize, Debug, PartialEq, JsonSchema)]
pub(super) struct Focus {
    pub(super) row: i64,
    pub(super) id: String,
    pub(super) label: String,
    /// Null when it is not stored.
    pub(super) task: Option<String>,
    pub(super) result: Option<String>,
    /// Null if the focus is not a subagent.
    pub(super) link: Option<Link>,
    pub(super) calls: usize,
    pub(super) errors: usize,
    pub(super) start_us: i64,
    pub(super) dur_us: Option<i64>,
}

#[derive(Serialize, Debug, PartialEq, JsonSchema)]
pub(super) struct Link {
    /// The evidence by which the parent was found.
    pub(super) source: Option<String>,
    /// exact, transcript, tentative, ambiguous, or unknown.
    pub(super) confidence: String,
}

/// The whole session.
pub(super) fn whole(lines: Lines) -> Columns {
    let order = pre_order(&lines.lines);
    let mut at = vec![0; lines.lines.len()];
    for (position, &index) in order.iter().enumerate() {
        at[index] = position;
    }
    let parents = parents(&lines.lines);
    let up = |index: usize| parents[index].map_or(0, |parent| at[index].saturating_sub(at[parent]));
    let up = order.iter().map(|&index| up(index)).collect();
    Columns { up, ..columns(order.iter().map(|&index| &lines.lines[index]), &lines) }
}

/// What changed.
pub(super) fn delta(lines: Lines) -> Columns {
    let parent = lines.lines.iter().map(|line| line.parent.unwrap_or(0)).collect();
    Columns { parent, ..columns(lines.lines.iter(), &lines) }
}

fn columns<'a>(ordered: impl Iterator<Item = &'a Line>, lines: &Lines) -> Columns {
    let t0_us = lines.lines.iter().map(|line| line.start.as_us()).min().unwrap_or(0);
    let mut strs = Table::default();
    let mut kinds = Table::default();
    let mut out = Columns { v: 1, rev: lines.rev, total: lines.total, t0_us, ..Default::default() };
    let (mut last_row, mut last_us) = (0, t0_us);
    for (index, line) in ordered.enumerate() {
        let start_us = line.start.as_us();
        out.row.push(line.row - last_row);
        out.start_us.push(start_us - last_us);
        (last_row, last_us) = (line.row, start_us);
        out.label.push(strs.index(&line.label));
        out.kind.push(kinds.index(&line.kind.as_str()));
        out.dur_us.push(line.end.map_or(-1, |end| (end.as_us() - start_us).max(0)));
        out.status.push(line.outcome as u8);
        out.flags.push(line.flags);
        if line.wait_us > 0 {
            out.wait.push((index, line.wait_us));
        }
    }
    out.n = out.row.len();
    out.strs = strs.values;
    out.kinds = kinds.values;
    out
}

struct Table<T> {
    values: Vec<T>,
    known: BTreeMap<T, usize>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { values: Vec::new(), known: BTreeMap::new() }
    }
}

impl<T: Ord + Clone> Table<T> {
    fn index(&mut self, value: &T) -> usize {
        if let Some(&index) = self.known.get(value) {
            return index;
        }
        let index = self.values.len();
        self.values.push(value.clone());
        self.known.insert(value.clone(), index);
        index
    }
}

/// Index of each line's parent among the lines.
fn parents(lines: &[Line]) -> Vec<Option<usize>> {
    let mut rows: Vec<_> =
        lines.iter().enumerate().map(|(index, line)| (line.row, index)).collect();
    rows.sort_unstable();
    let find =
        |row: i64| rows.binary_search_by_key(&row, |&(row, _)| row).ok().map(|at| rows[at].1);
    let parent = |(index, line): (usize, &Line)| line.parent.and_then(find).filter(|&p| p != index);
    lines.iter().enumerate().map(parent).collect()
}

/// Parents before children, and siblings in the given order. Lines in a circle come last, so that no line is lost.
fn pre_order(lines: &[Line]) -> Vec<usize> {
    let parents = parents(lines);
    let mut children = vec![Vec::new(); lines.len()];
    let mut stack = Vec::new();
    for index in (0..lines.len()).rev() {
        match parents[index] {
            Some(parent) => children[parent].push(index),
            None => stack.push(index),
        }
    }
    let mut order = Vec::with_capacity(lines.len());
    let mut seen = vec![false; lines.len()];
    let mut visit = |stack: &mut Vec<usize>, order: &mut Vec<usize>| {
        while let Some(index) = stack.pop() {
            if !core::mem::replace(&mut seen[index], true) {
                order.push(index);
                stack.extend(&children[index]);
            }
        }
    };
    visit(&mut stack, &mut order);
    if order.len() < lines.len() {
        let mut rest: Vec<_> = (0..lines.len()).rev().collect();
        visit(&mut rest, &mut order);
    }
    order
}

/// A line as a plain object.
#[derive(Serialize, JsonSchema)]
pub(super) struct LineItem {
    pub(super) row: i64,
    pub(super) id: String,
    pub(super) session: String,
    pub(super) parent: Option<i64>,
    pub(super) kind: &'static str,
    pub(super) label: String,
    pub(super) start_us: i64,
    /// Null while the span runs (`status` is `open`), and if no hook reports its duration.
    pub(super) dur_us: Option<i64>,
    pub(super) wait_us: i64,
    pub(super) status: &'static str,
    pub(super) flags: u8,
    pub(super) url: String,
}

impl LineItem {
    pub(super) fn new(session: &str, line: Line) -> Self {
        let start_us = line.start.as_us();
        let dur_us = line.length_ns().map(|ns| ns / 1_000);
        Self {
            row: line.row,
            id: line.id.to_string(),
            session: session.to_owned(),
            parent: line.parent,
            kind: line.kind.as_str(),
            label: line.label,
            start_us,
            dur_us,
            wait_us: line.wait_us,
            status: Outcome::as_str(line.outcome),
            flags: line.flags,
            url: format!("{}#{}", super::session_url(session), line.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use hookspan_core::{SpanId, Timestamp};

    use super::*;
    use hookspan_view::line::LineKind;

    fn line(row: i64, parent: i64, start_us: i64, label: &str) -> Line {
        Line {
            row,
            id: SpanId([0; 8]),
            parent: Some(parent).filter(|&row| row != 0),
            kind: LineKind::Tools,
            label: label.to_owned(),
            start: Timestamp(start_us * 1_000),
            end: Some(Timestamp((start_us + 5) * 1_000)),
            outcome: Outcome::Ok,
            flags: 0,
            wait_us: 0,
        }
    }

    fn lines(lines: Vec<Line>) -> Lines {
        Lines { total: lines.len() as u64, lines, rev: 7 }
    }

    #[test]
    fn parents_come_before_children_whatever_came_first() {
        let columns = whole(lines(vec![
            line(5, 9, 100, "call"),
            line(9, 0, 100, "turn"),
            line(6, 9, 110, "call"),
            line(12, 0, 200, "turn"),
        ]));
        assert_eq!(columns.row, [9, -4, 1, 6]);
        assert_eq!(columns.up, [0, 1, 2, 0]);
        assert_eq!(columns.start_us, [0, 0, 10, 90]);
        assert_eq!(columns.strs, ["turn", "call"]);
        assert_eq!(columns.label, [0, 1, 1, 0]);
    }

    #[test]
    fn a_circle_and_a_lost_parent_keep_their_lines() {
        let columns = whole(lines(vec![
            line(1, 2, 0, "a"),
            line(2, 1, 1, "b"),
            line(3, 99, 2, "c"),
            line(4, 4, 3, "d"),
        ]));
        assert_eq!(columns.n, 4);
        assert_eq!(columns.row, [3, 1, -3, 1]);
        assert_eq!(columns.up, [0, 0, 0, 1]);
    }

    #[test]
    fn a_delta_names_parents_by_row() {
        let columns = delta(lines(vec![line(5, 9, 100, "call")]));
        assert_eq!((columns.parent, columns.up), (vec![9], vec![]));
        assert_eq!(columns.t0_us, 100);
    }

    #[test]
    fn depth_is_no_recursion() {
        let deep = (1..=100_000).map(|row| line(row, row - 1, row, "x")).collect();
        assert_eq!(whole(lines(deep)).n, 100_000);
    }
}
