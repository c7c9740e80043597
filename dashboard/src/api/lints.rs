//! Findings: patterns that cost time and that an agent could be told to avoid, each with the spans that show it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use hookspan_core::{SpanId, TurnSummary};
use hookspan_view::line::{Line, LineKind, Outcome};
use schemars::JsonSchema;
use serde::Serialize;

use super::extract::Route;
use super::{Answer, Page, json, read, session_url};
use crate::App;
use crate::problem::Problem;

/// Maximum number of lines that are searched.
const LINES_MAX: usize = 100_000;
/// Maximum number of spans that are named as evidence of one finding.
const EVIDENCE_MAX: usize = 20;
/// A finding if the same command fails this often.
const FAILING_MIN: usize = 3;
/// A finding if the same file is edited this often in one turn.
const CHURN_MIN: usize = 5;
/// A finding if the same file is read this often without an edit in between.
const REREAD_MIN: usize = 4;
/// A finding if a call waited this long.
const WAIT_MIN_US: i64 = 60_000_000;
/// A finding if the short waits in one turn add up to this much.
const SHORT_WAIT_MAX_US: i64 = 5_000_000;
const SHORT_WAITS_MIN_US: i64 = 30_000_000;

#[derive(Serialize, Debug, JsonSchema)]
pub(super) struct Lint {
    kind: &'static str,
    title: String,
    explanation: &'static str,
    count: usize,
    /// The cost in time, as far as it is known.
    cost_us: i64,
    turn: Option<u64>,
    evidence: Vec<Evidence>,
    url: String,
}

#[derive(Serialize, Debug, JsonSchema)]
struct Evidence {
    row: i64,
    id: String,
    label: String,
    at_us: i64,
    url: String,
}

pub(super) async fn lints(
    State(app): State<Arc<App>>,
    Route(root): Route<String>,
) -> Answer<Page<Lint>> {
    let session = root.clone();
    let found = read(&app, move |source| {
        if source.session(&root)?.is_none() {
            return Ok(None);
        }
        Ok(Some((source.turns(&root)?, source.lines(&root, None, LINES_MAX)?.lines)))
    });
    let (turns, lines) = found.await?.ok_or_else(|| Problem::not_found("session"))?;
    json(Page { items: find(&session, &turns, &lines), next: None })
}

/// All findings, the most expensive first.
pub(super) fn find(session: &str, turns: &[TurnSummary], lines: &[Line]) -> Vec<Lint> {
    let finder = Finder { session, turns: turn_of(turns, lines), lines };
    let mut lints = finder.failing_commands();
    lints.extend(finder.churn());
    lints.extend(finder.rereads());
    lints.extend(finder.long_waits());
    lints.extend(finder.hook_cost());
    lints.sort_by_key(|lint| core::cmp::Reverse((lint.cost_us, lint.count)));
    lints
}

struct Finder<'a> {
    session: &'a str,
    /// Turn by row.
    turns: BTreeMap<i64, u64>,
    lines: &'a [Line],
}

/// The number of the turn that contains each line, at any depth.
fn turn_of(turns: &[TurnSummary], lines: &[Line]) -> BTreeMap<i64, u64> {
    let numbers: BTreeMap<SpanId, u64> = turns.iter().map(|turn| (turn.span, turn.index)).collect();
    let parents: BTreeMap<i64, Option<i64>> =
        lines.iter().map(|line| (line.row, line.parent)).collect();
    let own: BTreeMap<i64, u64> =
        lines.iter().filter_map(|line| Some((line.row, *numbers.get(&line.id)?))).collect();
    let find = |mut row: i64| {
        for _ in 0..64 {
            if let Some(turn) = own.get(&row) {
                return Some(*turn);
            }
            row = (*parents.get(&row)?)?;
        }
        None
    };
    lines.iter().filter_map(|line| Some((line.row, find(line.row)?))).collect()
}

impl Finder<'_> {
    fn of_kind(&self, kind: LineKind) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.kind == kind)
    }

    fn lint(
        &self,
        kind: &'static str,
        title: String,
        explanation: &'static str,
        spans: &[&Line],
        cost_us: i64,
    ) -> Lint {
        let base = session_url(self.session);
        let evidence = |line: &&Line| Evidence {
            row: line.row,
            id: line.id.to_string(),
            label: line.label.clone(),
            at_us: line.start.as_us(),
            url: format!("{base}#{}", line.id),
        };
        let first = spans.first();
        Lint {
            kind,
            title,
            explanation,
            count: spans.len(),
            cost_us,
            turn: first.and_then(|line| self.turns.get(&line.row).copied()),
            evidence: spans.iter().take(EVIDENCE_MAX).map(evidence).collect(),
            url: first.map_or_else(|| base.clone(), |line| format!("{base}#{}", line.id)),
        }
    }

    /// The same command failed repeatedly, and did not succeed in between.
    fn failing_commands(&self) -> Vec<Lint> {
        let mut runs: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
        let mut lints = Vec::new();
        let mut end = |label: &str, run: Vec<&Line>| {
            if run.len() >= FAILING_MIN {
                let title = format!("`{label}` failed {} times in a row", run.len());
                let explanation = "The same command failed without a success in between. A look at its output, or another command, might have helped sooner.";
                let cost = run.iter().skip(1).map(|line| duration_us(line)).sum();
                lints.push(self.lint("failing_command", title, explanation, &run, cost));
            }
        };
        for line in self.of_kind(LineKind::Shell) {
            let run = runs.entry(&line.label).or_default();
            match line.outcome {
                Outcome::Error => run.push(line),
                Outcome::Ok => end(&line.label, core::mem::take(run)),
                Outcome::Open | Outcome::Unknown => {}
            }
        }
        for (label, run) in runs {
            end(label, run);
        }
        lints
    }

    fn churn(&self) -> Vec<Lint> {
        let mut edits: BTreeMap<(Option<u64>, &str), Vec<&Line>> = BTreeMap::new();
        for line in self.of_kind(LineKind::Edits) {
            let turn = self.turns.get(&line.row).copied();
            edits.entry((turn, file(&line.label))).or_default().push(line);
        }
        edits.retain(|(_, file), edits| edits.len() >= CHURN_MIN && !file.is_empty());
        let lint = |((_, file), spans): (_, Vec<&Line>)| {
            let title = format!("{file} was edited {} times in one turn", spans.len());
            let explanation = "Many small edits of one file in one turn: often a sign of guessing. One larger edit is cheaper to make and to review.";
            let cost = spans.iter().map(|line| duration_us(line)).sum();
            self.lint("edit_churn", title, explanation, &spans, cost)
        };
        edits.into_iter().map(|((turn, file), spans)| lint(((turn, file), spans))).collect()
    }

    /// A file was read again although nothing had changed it.
    fn rereads(&self) -> Vec<Lint> {
        let mut reads: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
        let mut worst: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
        for line in self.lines {
            let file = file(&line.label);
            if line.kind == LineKind::Edits {
                reads.remove(file);
            } else if line.kind == LineKind::Tools && line.label.starts_with("Read ") {
                let run = reads.entry(file).or_default();
                run.push(line);
                if run.len() > worst.get(file).map_or(0, Vec::len) {
                    worst.insert(file, run.clone());
                }
            }
        }
        worst.retain(|_, run| run.len() >= REREAD_MIN);
        let lint = |(file, spans): (&str, Vec<&Line>)| {
            let title = format!("{file} was read {} times without a change", spans.len());
            let explanation = "The same file was read repeatedly, although nothing had edited it. Each read costs its tokens again. Different line ranges of a long file are counted too.";
            let cost = spans.iter().skip(1).map(|line| duration_us(line)).sum();
            self.lint("reread", title, explanation, &spans, cost)
        };
        worst.into_iter().map(lint).collect()
    }

    fn long_waits(&self) -> Vec<Lint> {
        let mut spans: Vec<_> =
            self.lines.iter().filter(|line| line.wait_us >= WAIT_MIN_US).collect();
        spans.sort_by_key(|line| core::cmp::Reverse(line.wait_us));
        if spans.is_empty() {
            return Vec::new();
        }
        let cost: i64 = spans.iter().map(|line| line.wait_us).sum();
        let title = format!("{} calls waited longer than a minute", spans.len());
        let explanation = "Time between a call being announced and running, derived from its hooks: mostly a question that nobody answered. Commands you always allow belong on Cursor's allow list.";
        vec![self.lint("long_wait", title, explanation, &spans, cost)]
    }

    /// Many short waits: the time that hooks (ours and others') and the editor take around each call.
    fn hook_cost(&self) -> Vec<Lint> {
        let mut by_turn: BTreeMap<Option<u64>, Vec<&Line>> = BTreeMap::new();
        for line in self.lines.iter().filter(|line| (1..SHORT_WAIT_MAX_US).contains(&line.wait_us))
        {
            by_turn.entry(self.turns.get(&line.row).copied()).or_default().push(line);
        }
        let cost = |spans: &[&Line]| spans.iter().map(|line| line.wait_us).sum::<i64>();
        by_turn.retain(|_, spans| cost(spans) >= SHORT_WAITS_MIN_US);
        let lint = |mut spans: Vec<&Line>| {
            let cost = cost(&spans);
            spans.sort_by_key(|line| core::cmp::Reverse(line.wait_us));
            let title =
                format!("{} calls of one turn waited {} s together", spans.len(), cost / 1_000_000);
            let explanation = "Many short waits around calls: hooks of other programs, or quick approvals. `hookspan doctor` lists the hooks that are installed.";
            self.lint("hook_cost", title, explanation, &spans, cost)
        };
        by_turn.into_values().map(lint).collect()
    }
}

fn duration_us(line: &Line) -> i64 {
    line.length_ns().map_or(0, |ns| (ns / 1_000).max(0))
}

/// The part of a label after the tool's name.
fn file(label: &str) -> &str {
    label.split_once(' ').map_or("", |(_, file)| file)
}

#[cfg(test)]
mod tests {
    use hookspan_core::Timestamp;

    use super::*;

    fn line(row: i64, kind: LineKind, label: &str, outcome: Outcome) -> Line {
        Line {
            row,
            id: SpanId([u8::try_from(row).unwrap(); 8]),
            parent: None,
            kind,
            label: label.to_owned(),
            start: Timestamp(row * 1_000_000_000),
            end: Some(Timestamp(row * 1_000_000_000 + 2_000_000)),
            outcome,
            flags: 0,
            wait_us: 0,
        }
    }

    fn kinds(lines: &[Line]) -> Vec<(&'static str, usize)> {
        find("s", &[], lines).into_iter().map(|lint| (lint.kind, lint.count)).collect()
    }

    #[test]
    fn a_command_that_fails_three_times_in_a_row_is_named() {
        use Outcome::{Error, Ok};
        let run = |outcomes: &[Outcome]| {
            let shell = |(n, outcome): (usize, &Outcome)| {
                line(i64::try_from(n).unwrap(), LineKind::Shell, "Shell make", *outcome)
            };
            kinds(&outcomes.iter().enumerate().map(shell).collect::<Vec<_>>())
        };
        assert_eq!(run(&[Error, Error, Error]), [("failing_command", 3)]);
        assert_eq!(run(&[Error, Error, Ok, Error, Error]), []);
        assert_eq!(run(&[Error, Error, Error, Error, Ok]), [("failing_command", 4)]);
    }

    #[test]
    fn edits_between_reads_are_a_reason_to_read_again() {
        let read = |row| line(row, LineKind::Tools, "Read a.rs", Outcome::Ok);
        let edit = |row| line(row, LineKind::Edits, "Write a.rs", Outcome::Ok);
        assert_eq!(kinds(&[read(1), read(2), read(3), read(4)]), [("reread", 4)]);
        assert_eq!(kinds(&[read(1), read(2), edit(3), read(4), read(5)]), []);
        let churn: Vec<_> = (1..=5).map(edit).collect();
        assert_eq!(kinds(&churn), [("edit_churn", 5)]);
    }

    #[test]
    fn long_waits_and_many_short_ones_are_told_apart() {
        let waits = |us: i64, n: i64| {
            (1..=n)
                .map(|row| Line { wait_us: us, ..line(row, LineKind::Mcp, "x", Outcome::Ok) })
                .collect::<Vec<_>>()
        };
        assert_eq!(kinds(&waits(61_000_000, 1)), [("long_wait", 1)]);
        assert_eq!(kinds(&waits(4_000_000, 8)), [("hook_cost", 8)]);
        assert_eq!(kinds(&waits(4_000_000, 7)), []);
    }
}
