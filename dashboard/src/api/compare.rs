//! Compares two sessions or two turns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use hookspan_core::{Parts, SpanId, Tokens, TurnSummary};
use hookspan_view::Source;
use hookspan_view::item::TokenCounts;
use hookspan_view::line::{Line, LineKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::Params;
use super::sessions::PartItem;
use super::{Answer, json, read, session_url};
use crate::App;
use crate::problem::Problem;

const LINES_MAX: usize = 200_000;

#[derive(Serialize, JsonSchema)]
pub(super) struct Comparison {
    a: Side,
    b: Side,
    /// Every tool that either side used.
    tools: Vec<ToolPair>,
    /// Files that were edited on one side only, and on both.
    files: Files,
}

#[derive(Serialize, JsonSchema)]
struct Side {
    session: String,
    /// Null for a whole session.
    turn: Option<u64>,
    label: String,
    start_us: i64,
    /// Time inside turns.
    active_us: i64,
    turns: usize,
    calls: u64,
    errors: u64,
    tokens: Option<TokenCounts>,
    parts: PartItem,
    url: String,
    #[serde(skip)]
    tools: BTreeMap<String, ToolSum>,
    #[serde(skip)]
    files: BTreeSet<String>,
}

#[derive(Serialize, Clone, Copy, Default, JsonSchema)]
struct ToolSum {
    calls: u64,
    errors: u64,
    /// Sum over the calls whose duration is known; null if there is none.
    dur_us: Option<i64>,
    /// Number of calls whose duration no hook reports, or which still run.
    unknown: u64,
}

#[derive(Serialize, JsonSchema)]
struct ToolPair {
    name: String,
    a: ToolSum,
    b: ToolSum,
}

#[derive(Serialize, JsonSchema)]
struct Files {
    only_a: Vec<String>,
    only_b: Vec<String>,
    both: Vec<String>,
}

/// A session, or one of its turns written as `session:number`.
struct Wanted {
    session: String,
    turn: Option<u64>,
}

/// The two sides of a comparison.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Sides {
    /// a session, or session:number for a turn
    #[schemars(required)]
    a: Option<String>,
    /// a session, or session:number for a turn
    #[schemars(required)]
    b: Option<String>,
}

fn wanted(text: Option<&str>, name: &'static str) -> Result<Wanted, Problem> {
    let text = text.ok_or_else(|| {
        Problem::bad_parameter(name, "the id of a session, or session:number for one turn of it")
    })?;
    Ok(match text.rsplit_once(':').map(|(session, turn)| (session, turn.parse())) {
        Some((session, Ok(turn))) => Wanted { session: session.to_owned(), turn: Some(turn) },
        _ => Wanted { session: text.to_owned(), turn: None },
    })
}

pub(super) async fn compare(
    State(app): State<Arc<App>>,
    Params(asked): Params<Sides>,
) -> Answer<Comparison> {
    let (a, b) = (wanted(asked.a.as_deref(), "a")?, wanted(asked.b.as_deref(), "b")?);
    let sides = read(&app, move |source| Ok((side(source, &a)?, side(source, &b)?)));
    let (Some(a), Some(b)) = sides.await? else {
        return Err(Problem::not_found("session or turn"));
    };
    let names: BTreeSet<&String> = a.tools.keys().chain(b.tools.keys()).collect();
    let of = |side: &Side, name: &String| side.tools.get(name).copied().unwrap_or_default();
    let mut tools: Vec<_> = names
        .into_iter()
        .map(|name| ToolPair { name: name.clone(), a: of(&a, name), b: of(&b, name) })
        .collect();
    tools.sort_by_key(|pair| {
        core::cmp::Reverse(pair.a.dur_us.unwrap_or(0) + pair.b.dur_us.unwrap_or(0))
    });
    let files = Files {
        only_a: a.files.difference(&b.files).cloned().collect(),
        only_b: b.files.difference(&a.files).cloned().collect(),
        both: a.files.intersection(&b.files).cloned().collect(),
    };
    json(Comparison { a, b, tools, files })
}

fn side(source: &dyn Source, wanted: &Wanted) -> hookspan_view::Result<Option<Side>> {
    let Some(session) = source.session(&wanted.session)? else { return Ok(None) };
    let mut turns = source.turns(&wanted.session)?;
    turns.retain(|turn| wanted.turn.is_none_or(|number| number == turn.index));
    if wanted.turn.is_some() && turns.is_empty() {
        return Ok(None);
    }
    let lines = source.lines(&wanted.session, None, LINES_MAX)?.lines;
    let (tools, files) = used(&lines, wanted.turn.map(|_| turns[0].span));
    let label = match wanted.turn {
        Some(_) => turns[0].prompt.clone(),
        None => session.first_prompt.clone(),
    };
    let base = session_url(&wanted.session);
    Ok(Some(Side {
        session: wanted.session.clone(),
        turn: wanted.turn,
        label: label.unwrap_or_default(),
        start_us: turns.first().map_or(session.started_at, |turn| turn.started_at).as_us(),
        active_us: turns.iter().filter_map(|turn| Some(turn.length_ns()? / 1_000)).sum(),
        turns: turns.len(),
        calls: turns.iter().map(|turn| turn.tool_calls).sum(),
        errors: turns.iter().map(|turn| turn.errors).sum(),
        tokens: tokens(&turns).map(TokenCounts::from),
        parts: turns.iter().map(|turn| turn.parts).sum::<Parts>().into(),
        url: match wanted.turn {
            Some(_) => format!("{base}#{}", turns[0].span),
            None => base,
        },
        tools,
        files,
    }))
}

fn tokens(turns: &[TurnSummary]) -> Option<Tokens> {
    turns.iter().filter_map(|turn| turn.tokens).reduce(Tokens::plus)
}

/// The sums of each tool and the edited files, for all lines or for those of one turn.
fn used(lines: &[Line], turn: Option<SpanId>) -> (BTreeMap<String, ToolSum>, BTreeSet<String>) {
    let mut inside: BTreeSet<i64> = BTreeSet::new();
    if let Some(turn) = turn {
        inside.extend(lines.iter().filter(|line| line.id == turn).map(|line| line.row));
        let mut before = 0;
        while inside.len() > before {
            before = inside.len();
            for line in lines {
                if line.parent.is_some_and(|parent| inside.contains(&parent)) {
                    inside.insert(line.row);
                }
            }
        }
    }
    let (mut tools, mut files) = (BTreeMap::new(), BTreeSet::new());
    for line in lines.iter().filter(|line| turn.is_none() || inside.contains(&line.row)) {
        use LineKind::{Edits, Mcp, Shell, Tools};
        if !matches!(line.kind, Tools | Shell | Mcp | Edits) {
            continue;
        }
        let (name, subject) = line.label.split_once(' ').unwrap_or((&line.label, ""));
        let sum: &mut ToolSum = tools.entry(name.to_owned()).or_default();
        sum.calls += 1;
        sum.errors += u64::from(line.is_failure());
        match line.work_ns() {
            Some(ns) => sum.dur_us = Some(sum.dur_us.unwrap_or(0) + ns / 1_000),
            None => sum.unknown += 1,
        }
        if line.kind == Edits && !subject.is_empty() {
            files.insert(subject.to_owned());
        }
    }
    (tools, files)
}
