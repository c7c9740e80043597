//! The critical path of a turn: at each moment, the one span that the end was waiting for.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use hookspan_view::line::{Line, LineKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::{Params, Route};
use super::span_ref::SpanRef;
use super::{Answer, json, read, session_url};
use crate::App;
use crate::problem::Problem;

const LINES_MAX: usize = 200_000;
/// Maximum nesting depth of subagents.
const DEPTH_MAX: usize = 32;

/// The path of one turn.
#[derive(Serialize, JsonSchema)]
pub(super) struct CriticalPath {
    /// Id of the turn's span.
    turn: String,
    start_us: i64,
    dur_us: i64,
    /// Time on the path, by kind; `wait` for a call that asks a person.
    by_kind: BTreeMap<&'static str, i64>,
    /// In the order of time. Each step begins where the previous one ends, and together they cover the whole turn.
    steps: Vec<Step>,
    url: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Wanted {
    /// id of a turn's span; the longest turn unless given
    turn: Option<String>,
}

#[derive(Serialize, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename = "CriticalStep")]
struct Step {
    /// Null if no known span ran. The model was working, or something that no hook reports.
    row: Option<i64>,
    id: Option<String>,
    kind: &'static str,
    label: String,
    from_us: i64,
    to_us: i64,
    url: Option<String>,
}

pub(super) async fn critical_path(
    State(app): State<Arc<App>>,
    Route(root): Route<String>,
    Params(wanted): Params<Wanted>,
) -> Answer<CriticalPath> {
    let session = root.clone();
    let wanted = wanted.turn.as_deref().map(SpanRef::parse).transpose()?;
    let found = read(&app, move |source| {
        if source.session(&root)?.is_none() {
            return Ok(None);
        }
        source.lines(&root, None, LINES_MAX).map(|lines| Some(lines.lines))
    });
    let lines = found.await?.ok_or_else(|| Problem::not_found("session"))?;
    let is_wanted = |line: &&Line| match &wanted {
        Some(SpanRef::Id(id)) => line.id == *id,
        Some(SpanRef::Row(row)) => line.row == *row,
        None => line.kind == LineKind::Turn,
    };
    // If no turn is named, the longest one is used.
    let longest =
        lines.iter().filter(is_wanted).max_by_key(|line| end_us(line) - line.start.as_us());
    let turn = longest.ok_or_else(|| Problem::not_found("turn in this session"))?;
    let steps = path(&session, &lines, turn);
    let mut by_kind: BTreeMap<&'static str, i64> = BTreeMap::new();
    for step in &steps {
        *by_kind.entry(step.kind).or_default() += step.to_us - step.from_us;
    }
    json(CriticalPath {
        turn: turn.id.to_string(),
        start_us: turn.start.as_us(),
        dur_us: end_us(turn) - turn.start.as_us(),
        by_kind,
        steps,
        url: format!("{}#{}", session_url(&session), turn.id),
    })
}

fn end_us(line: &Line) -> i64 {
    line.end.map_or(line.start.as_us(), |end| end.as_us()).max(line.start.as_us())
}

/// The critical path in the order of time. Each step begins where the previous one ends, and together they cover the
/// whole turn.
fn path(session: &str, lines: &[Line], turn: &Line) -> Vec<Step> {
    let mut children: BTreeMap<i64, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        if let Some(parent) = line.parent.filter(|parent| *parent != line.row) {
            children.entry(parent).or_default().push(line);
        }
    }
    let mut steps = Vec::new();
    let walk = Walk { session, children: &children };
    walk.back(turn, turn.start.as_us(), end_us(turn), 0, &mut steps);
    steps.reverse();
    steps
}

fn kind(line: &Line) -> &'static str {
    if line.asks_person() { "wait" } else { line.kind.as_str() }
}

struct Walk<'a> {
    session: &'a str,
    children: &'a BTreeMap<i64, Vec<&'a Line>>,
}

impl Walk<'_> {
    /// Goes back from `to` to `from` inside `parent`. At each point in time, the turn waited for the child that ended
    /// last before that point.
    fn back(&self, parent: &Line, from: i64, to: i64, depth: usize, steps: &mut Vec<Step>) {
        let mut below: Vec<&Line> =
            self.children.get(&parent.row).into_iter().flatten().copied().collect();
        below.sort_by_key(|line| (end_us(line), line.start, line.row));
        let mut at = to;
        while let Some(line) = below.pop() {
            let (start, end) = (line.start.as_us().max(from), end_us(line).min(at));
            if end <= start || at <= from {
                continue;
            }
            self.own(parent, end, at, depth, steps);
            let inner = self.children.contains_key(&line.row) && depth < DEPTH_MAX;
            if inner {
                self.back(line, start, end, depth + 1, steps);
            } else {
                self.push(Some(line), start, end, steps);
            }
            at = start;
        }
        self.own(parent, from, at, depth, steps);
    }

    /// Adds the time in which `parent` waited for none of its children.
    fn own(&self, parent: &Line, from: i64, to: i64, depth: usize, steps: &mut Vec<Step>) {
        let line = Some(parent).filter(|_| depth > 0);
        self.push(line, from, to, steps);
    }

    fn push(&self, line: Option<&Line>, from_us: i64, to_us: i64, steps: &mut Vec<Step>) {
        if to_us <= from_us {
            return;
        }
        steps.push(Step {
            row: line.map(|line| line.row),
            id: line.map(|line| line.id.to_string()),
            kind: line.map_or("other", kind),
            label: line.map_or_else(|| "model time".to_owned(), |line| line.label.clone()),
            from_us,
            to_us,
            url: line.map(|line| format!("{}#{}", session_url(self.session), line.id)),
        });
    }
}

#[cfg(test)]
mod tests {
    use hookspan_core::{SpanId, Timestamp};

    use super::*;
    use hookspan_view::line::Outcome;

    fn line(row: i64, parent: i64, from: i64, to: i64) -> Line {
        Line {
            row,
            id: SpanId([0; 8]),
            parent: Some(parent).filter(|row| *row != 0),
            kind: LineKind::Tools,
            label: row.to_string(),
            start: Timestamp(from * 1_000),
            end: Some(Timestamp(to * 1_000)),
            outcome: Outcome::Ok,
            flags: 0,
            wait_us: 0,
        }
    }

    fn steps(lines: &[Line]) -> Vec<(i64, i64, i64)> {
        let path = path("s", lines, &lines[0]);
        path.iter().map(|step| (step.row.unwrap_or(0), step.from_us, step.to_us)).collect()
    }

    #[test]
    fn of_parallel_calls_the_one_that_ends_last_is_on_the_path() {
        let lines = [line(1, 0, 0, 100), line(2, 1, 10, 40), line(3, 1, 20, 80), line(4, 1, 5, 18)];
        assert_eq!(steps(&lines), [(0, 0, 5), (4, 5, 10), (2, 10, 20), (3, 20, 80), (0, 80, 100)]);
    }

    #[test]
    fn a_subagent_is_followed_inside_and_everything_is_covered() {
        let lines = [line(1, 0, 0, 100), line(2, 1, 10, 90), line(3, 2, 20, 60)];
        assert_eq!(
            steps(&lines),
            [(0, 0, 10), (2, 10, 20), (3, 20, 60), (2, 60, 90), (0, 90, 100)]
        );
    }

    #[test]
    fn circles_and_children_outside_their_parent_do_no_harm() {
        let lines = [line(1, 2, 0, 50), line(2, 1, -20, 200), line(3, 3, 1, 2)];
        let covered: i64 = steps(&lines).iter().map(|(_, from, to)| to - from).sum();
        assert_eq!(covered, 50);
    }
}
