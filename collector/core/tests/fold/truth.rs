//! The truth about a stream, from the file beside it or from its generator, and the difference between a store and that
//! truth.
//!
//! ```text
//! why: what the input does not tell
//! cursor.session 0..3048
//! invoke_agent cursor 0..3048 tokens=100/60/20/7
//! execute_tool Read 1082.86..1084 id=call_1
//! ```
//!
//! Times are milliseconds since the first hook, or `?` if nothing in the input tells them. Tokens are input, cache
//! read, cache write and output of the turn.

use std::collections::{BTreeMap, BTreeSet};

use hookspan_core::{Hook, Span, SpanId, SpanKind, Timestamp, Tokens, Value};

use crate::support::Store;

/// A time counts as right if it differs by at most this.
const TOLERANCE_NS: i64 = 1_000_000;

/// One span that should exist.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fact {
    pub(crate) name: String,
    /// Id of the call, subagent or generation, written with escapes. It distinguishes facts that are otherwise equal.
    pub(crate) id: Option<String>,
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) tokens: Option<Tokens>,
    /// Index of the parent's fact.
    pub(crate) parent: Option<usize>,
}

/// All spans that should exist, parents before children.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Truth {
    pub(crate) facts: Vec<Fact>,
    /// What cannot be learnt from the input, if anything.
    pub(crate) why: Option<String>,
}

/// How far a store is from the truth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Score {
    pub(crate) expected: usize,
    pub(crate) spans: usize,
    /// Facts without a span, and spans without a fact.
    pub(crate) missing: Vec<String>,
    pub(crate) extra: Vec<String>,
    /// Spans whose parent is not stored.
    pub(crate) orphans: usize,
    pub(crate) wrong_parents: Vec<String>,
    pub(crate) wrong_durations: Vec<String>,
    /// Number of times that cannot be learnt from the input.
    pub(crate) untold: usize,
    /// Tokens too many or too few, in rows and on the spans that carry token counts.
    pub(crate) token_error: u64,
}

impl Score {
    pub(crate) fn is_right(&self) -> bool {
        self.missing.is_empty()
            && self.extra.is_empty()
            && self.orphans == 0
            && self.wrong_parents.is_empty()
            && self.wrong_durations.is_empty()
            && self.token_error == 0
    }
}

impl Truth {
    /// Reads the text form. Time 0 is the time of the first of `hooks`.
    pub(crate) fn parse(text: &str, hooks: &[Hook]) -> Self {
        let zero = hooks.iter().map(|hook| hook.observed_at.0).min().unwrap_or_default();
        let mut truth = Self::default();
        let mut above: Vec<usize> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if let Some(why) = line.strip_prefix("why: ") {
                truth.why = Some(why.to_owned());
                continue;
            }
            let depth = (line.len() - line.trim_start().len()) / 2;
            let mut fact = fact(line, zero);
            above.truncate(depth);
            fact.parent = above.last().copied();
            above.push(truth.facts.len());
            truth.facts.push(fact);
        }
        truth
    }
}

fn fact(line: &str, zero: i64) -> Fact {
    let mut fact = Fact::default();
    let mut name: Vec<&str> = Vec::new();
    for word in line.split_whitespace() {
        let time = |text: &str| text.parse::<f64>().ok().map(|ms| zero + (ms * 1e6).round() as i64);
        if let Some(id) = word.strip_prefix("id=") {
            fact.id = Some(id.to_owned());
        } else if let Some(list) = word.strip_prefix("tokens=") {
            // `-` where nobody says.
            let said = |count: &str| (count != "-").then(|| count.parse::<u64>().unwrap());
            let counts: Vec<Option<u64>> = list.split('/').map(said).collect();
            let [input, cache_read, cache_write, output] = counts[..] else { panic!("{line}") };
            fact.tokens = Some(Tokens { input, output, cache_read, cache_write });
        } else if let Some((start, end)) = word.split_once("..") {
            (fact.start, fact.end) = (time(start), time(end));
        } else {
            name.push(word);
        }
    }
    fact.name = name.join(" ");
    fact
}

fn text<'a>(span: &'a Span, key: &str) -> Option<&'a str> {
    span.attributes.iter().find(|attribute| attribute.key == key).and_then(|a| match &a.value {
        Value::Str(text) => Some(text.as_str()),
        _ => None,
    })
}

fn number(span: &Span, key: &str) -> Option<u64> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value {
        Value::Int(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

fn id_of(span: &Span) -> Option<String> {
    let key = match span.kind {
        SpanKind::Generation => "cursor.generation.id",
        SpanKind::Subagent => "cursor.subagent.id",
        _ => "gen_ai.tool.call.id",
    };
    text(span, key).map(|id| id.escape_debug().to_string())
}

/// Nanoseconds between the true times and the times found.
fn distance(fact: &Fact, span: &Span) -> i64 {
    let off = |told: Option<i64>, found: Option<Timestamp>| match (told, found) {
        (Some(told), Some(found)) => found.since(Timestamp(told)).saturating_abs(),
        (Some(_), None) => i64::MAX / 4,
        (None, _) => 0,
    };
    off(fact.start, Some(span.start)).saturating_add(off(fact.end, span.end.map(|end| end.at)))
}

/// Assigns to every fact the span that is most similar to it.
fn matched<'a>(truth: &Truth, store: &'a Store) -> Vec<Option<&'a Span>> {
    let mut free: BTreeSet<SpanId> = store.spans.keys().copied().collect();
    let mut found: Vec<Option<&Span>> = Vec::new();
    for fact in &truth.facts {
        let fits = |span: &&Span| {
            free.contains(&span.id)
                && span.name == fact.name
                && fact.id.as_ref().is_none_or(|id| id_of(span).as_ref() == Some(id))
        };
        // Among equal spans, the one below the right parent.
        let above = fact.parent.and_then(|at| found[at]).map(|parent| parent.id);
        let spans = store.spans.values().filter(fits);
        let span = spans.min_by_key(|span| (distance(fact, span), span.parent != above));
        if let Some(span) = span {
            free.remove(&span.id);
        }
        found.push(span);
    }
    found
}

/// Compares.
pub(crate) fn score(truth: &Truth, store: &Store) -> Score {
    let found = matched(truth, store);
    let taken: BTreeSet<SpanId> = found.iter().flatten().map(|span| span.id).collect();
    let mut score = Score {
        expected: truth.facts.len(),
        spans: store.spans.len(),
        orphans: store
            .spans
            .values()
            .filter(|span| span.parent.is_some_and(|parent| !store.spans.contains_key(&parent)))
            .count(),
        token_error: token_error(truth, store),
        ..Score::default()
    };
    let rest = store.spans.values().filter(|span| !taken.contains(&span.id));
    score.extra = rest.map(|span| span.name.clone()).collect();
    for (fact, span) in truth.facts.iter().zip(&found) {
        let label = format!("{} {}", fact.name, fact.id.as_deref().unwrap_or_default());
        let Some(span) = span else {
            score.missing.push(label);
            continue;
        };
        let mut above = fact.parent;
        while let Some(at) = above.filter(|at| found[*at].is_none()) {
            above = truth.facts[at].parent;
        }
        if above.and_then(|at| found[at]).map(|parent| parent.id) != span.parent {
            score.wrong_parents.push(label.clone());
        }
        score.untold += usize::from(fact.start.is_none()) + usize::from(fact.end.is_none());
        let off = |told: Option<i64>, at: Option<Timestamp>| {
            told.is_some_and(|told| {
                at.is_none_or(|at| at.since(Timestamp(told)).abs() > TOLERANCE_NS)
            })
        };
        if off(fact.start, Some(span.start)) || off(fact.end, span.end.map(|end| end.at)) {
            score.wrong_durations.push(label);
        }
    }
    score
}

fn token_error(truth: &Truth, store: &Store) -> u64 {
    // A missing count is not 0. So for each count, both the sum and how often it was reported are compared.
    let sum = |counts: &mut dyn Iterator<Item = Tokens>| {
        counts.fold([(0_u64, 0_u64); 4], |sum, tokens| {
            let more = [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write];
            std::array::from_fn(|at| match more[at] {
                Some(count) => (sum[at].0 + 1, sum[at].1 + count),
                None => sum[at],
            })
        })
    };
    let told = sum(&mut truth.facts.iter().filter_map(|fact| fact.tokens));
    let rows = sum(&mut store.turns.values().filter_map(|turn| turn.tokens));
    let sessions = sum(&mut store.sessions.values().filter_map(|session| session.tokens));
    let mut carried: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut spans = store.spans.values().filter_map(|span| {
        let count = |key: &str| number(span, key);
        let tokens = Tokens {
            input: count("gen_ai.usage.input_tokens"),
            output: count("gen_ai.usage.output_tokens"),
            cache_read: count("gen_ai.usage.cache_read.input_tokens"),
            cache_write: count("gen_ai.usage.cache_creation.input_tokens"),
        };
        let tokens = tokens.said()?;
        *carried.entry((&span.conversation, &span.generation)).or_default() += 1;
        Some(tokens)
    });
    let spans = sum(&mut spans);
    let off = |got: [(u64, u64); 4], said: bool| -> u64 {
        let apart = |at: usize| {
            let unsaid = said && got[at].0 != told[at].0;
            got[at].1.abs_diff(told[at].1).max(u64::from(unsaid))
        };
        (0..4).map(apart).max().unwrap_or_default()
    };
    assert!(carried.values().all(|count| *count == 1), "usage on more than one span: {carried:?}");
    off(rows, true).max(off(sessions, false)).max(off(spans, true))
}
