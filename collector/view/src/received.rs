//! What other programs sent over OTLP, and its place in a session.

use std::collections::{BTreeMap, BTreeSet};

use hookspan_core::{SpanId, TraceId};

/// A received span, or a log record that is kept like one. Texts come from other programs and must never be used as markup.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// Trace id, as sent. For a log record outside of any trace, the id is made from its session's id.
    pub trace: TraceId,
    /// Span id, as sent. For a log record, the id is made from its content.
    pub id: SpanId,
    /// The span above it, as sent.
    pub parent: Option<SpanId>,
    /// It is a log record.
    pub is_record: bool,
    /// Its name.
    pub name: String,
    /// `service.name` of the sender.
    pub service: String,
    /// Start in nanoseconds since the epoch, by the sender's clock.
    pub start_ns: i64,
    /// End.
    pub end_ns: i64,
    /// Its status is an error.
    pub failed: bool,
    /// What went wrong, as sent.
    pub message: Option<String>,
    /// A JSON object.
    pub attributes: String,
    /// Number of attributes that were dropped or shortened.
    pub cut: u32,
    /// How its session is known; `None` if the session is unknown.
    pub joined: Option<Joined>,
    /// The shell call that it belongs to, if time and directory prove it ([`Joined::Inferred`]).
    pub call: Option<SpanId>,
    /// The model that it names.
    pub model: Option<String>,
    /// Input tokens, both cache parts included.
    pub input: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
}

/// How the session of a received span is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// hookspan made its trace.
    Traceparent,
    /// An attribute names the session.
    SessionId,
    /// Exactly one shell call ran all the time in that directory or a folder above it.
    Inferred,
}

impl Joined {
    /// The word in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Traceparent => "traceparent",
            Self::SessionId => "session_id",
            Self::Inferred => "inferred",
        }
    }

    /// The words for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Traceparent => "by trace context",
            Self::SessionId => "by session id",
            Self::Inferred => "inferred from time and directory",
        }
    }
}

/// A received span in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The span of hookspan that it is shown below; `None` if only its session is known.
    pub below: Option<SpanId>,
    /// Number of received spans above it, up to that span of hookspan.
    pub depth: usize,
    /// The span.
    pub span: Received,
}

/// Tokens and cost that one program reported for one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToldUsage {
    /// `service.name` of the program.
    pub service: String,
    /// The model, if one was named.
    pub model: Option<String>,
    /// What reported them: `counter`, `record` or `span`.
    pub source: &'static str,
    /// Input tokens, both cache parts included.
    pub input: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
    /// Part of the input that came from the cache.
    pub cache_read: Option<u64>,
    /// Part of the input that was written to the cache.
    pub cache_write: Option<u64>,
    /// US dollars, as the program estimates.
    pub cost: Option<f64>,
    /// Number of requests to the model; `None` if only counters reported them.
    pub requests: Option<u64>,
}

/// Everything received that belongs to a session, or to none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllReceived {
    /// Spans, each after the one above it.
    pub spans: Vec<Placed>,
    /// Number of all spans; more than `spans` has if a limit cut them off.
    pub total: u64,
    /// Tokens and cost. Each program's come from one source only.
    pub usage: Vec<ToldUsage>,
}

/// Chooses one source for each program, because several sources report the same requests: counters, else log records,
/// else spans.
#[must_use]
pub fn choose(mut told: Vec<ToldUsage>) -> Vec<ToldUsage> {
    let rank = |source: &str| ["counter", "record", "span"].iter().position(|one| *one == source);
    let mut best: BTreeMap<String, Option<usize>> = BTreeMap::new();
    for one in &told {
        let rank = rank(one.source);
        let known = best.entry(one.service.clone()).or_insert(rank);
        *known = (*known).min(rank);
    }
    // Counters do not count requests. Another source of the program may, so its number is used.
    let mut requests: BTreeMap<(String, Option<String>), u64> = BTreeMap::new();
    for one in &told {
        let sum = requests.entry((one.service.clone(), one.model.clone())).or_default();
        *sum = (*sum).max(one.requests.unwrap_or(0));
    }
    told.retain(|one| best.get(&one.service) == Some(&rank(one.source)));
    for one in &mut told {
        let known = requests.get(&(one.service.clone(), one.model.clone())).copied();
        one.requests = known.filter(|count| *count > 0);
    }
    told
}

/// Arranges spans as a tree, the earliest first. `ours` finds the span of hookspan that a received span itself names:
/// its parent, or the call of its tool. If spans form a circle of parents, one of them is placed as if it had no
/// parent.
#[must_use]
pub fn place(
    spans: Vec<Received>,
    mut ours: impl FnMut(&Received) -> Option<SpanId>,
) -> Vec<Placed> {
    let by_id: BTreeMap<(TraceId, SpanId), usize> =
        spans.iter().enumerate().map(|(at, span)| ((span.trace, span.id), at)).collect();
    let above = |span: &Received| {
        span.parent.filter(|id| *id != span.id).and_then(|id| by_id.get(&(span.trace, id)).copied())
    };
    let mut children: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut roots = Vec::new();
    for (at, span) in spans.iter().enumerate() {
        match above(span) {
            Some(parent) => children.entry(parent).or_default().push(at),
            None => roots.push(at),
        }
    }
    let by_start = |list: &mut Vec<usize>| {
        list.sort_by_key(|at| spans.get(*at).map(|span| (span.start_ns, *at)));
    };
    by_start(&mut roots);
    children.values_mut().for_each(by_start);
    // A circle of parents has no root. Its spans come last.
    let mut rest: Vec<usize> = (0..spans.len()).collect();
    by_start(&mut rest);
    let mut seen = BTreeSet::new();
    let mut order: Vec<(usize, Option<SpanId>, usize)> = Vec::with_capacity(spans.len());
    for first in roots.into_iter().chain(rest) {
        let mut waiting = vec![(first, None, 0)];
        while let Some((at, inherited, depth)) = waiting.pop() {
            let Some(span) = spans.get(at).filter(|_| seen.insert(at)) else { continue };
            let own = ours(span).or(span.call);
            let (below, depth) = match own {
                Some(own) if Some(own) != inherited => (Some(own), 0),
                _ => (inherited, depth),
            };
            order.push((at, below, depth));
            let below_it = children.get(&at).into_iter().flatten().rev();
            waiting.extend(below_it.map(|child| (*child, below, depth + 1)));
        }
    }
    let mut spans: Vec<Option<Received>> = spans.into_iter().map(Some).collect();
    let placed = order.into_iter().filter_map(|(at, below, depth)| {
        Some(Placed { below, depth, span: spans.get_mut(at)?.take()? })
    });
    placed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: u8, parent: Option<u8>, start_ns: i64) -> Received {
        let id_of = |id| SpanId([id; 8]);
        Received {
            trace: TraceId([9; 16]),
            id: id_of(id),
            parent: parent.map(id_of),
            is_record: false,
            name: id.to_string(),
            service: "build".into(),
            start_ns,
            end_ns: start_ns + 1,
            failed: false,
            message: None,
            attributes: "{}".into(),
            cut: 0,
            joined: Some(Joined::Traceparent),
            call: None,
            model: None,
            input: None,
            output: None,
        }
    }

    /// Name, depth, and the span of ours above, one per line.
    fn shown(placed: &[Placed]) -> String {
        let line = |one: &Placed| {
            let below = one.below.map_or("-".to_owned(), |id| id.0[0].to_string());
            format!("{}{} {below}\n", "  ".repeat(one.depth), one.span.name)
        };
        placed.iter().map(line).collect()
    }

    const CALL: u8 = 100;

    fn ours(span: &Received) -> Option<SpanId> {
        span.parent.filter(|id| id.0[0] >= CALL)
    }

    #[test]
    fn spans_nest_below_the_call_that_their_root_names() {
        let spans = vec![
            span(3, Some(2), 5),
            span(2, Some(1), 4),
            span(1, Some(CALL), 1),
            span(4, Some(1), 2),
        ];
        assert_eq!(shown(&place(spans, ours)), "1 100\n  4 100\n  2 100\n    3 100\n");
    }

    #[test]
    fn a_missing_parent_leaves_a_root_and_another_call_begins_anew() {
        let spans = vec![span(1, Some(50), 1), span(2, Some(1), 2), span(3, Some(CALL + 1), 3)];
        assert_eq!(shown(&place(spans, ours)), "1 -\n  2 -\n3 101\n");
        // An agent's own spans: only its tool names a call.
        let tool = |span: &Received| (span.name == "2").then_some(SpanId([CALL; 8]));
        let spans = vec![span(1, None, 1), span(2, Some(1), 2), span(3, Some(2), 3)];
        assert_eq!(shown(&place(spans, tool)), "1 -\n2 100\n  3 100\n");
    }

    #[test]
    fn circles_and_self_parents_lose_no_span_and_end() {
        let spans = vec![span(1, Some(2), 1), span(2, Some(1), 2), span(3, Some(3), 3)];
        let placed = place(spans, ours);
        assert_eq!(placed.len(), 3, "{}", shown(&placed));
        let long: Vec<Received> =
            (1..=255).map(|id| span(id, Some(id - 1), i64::from(id))).collect();
        assert_eq!(place(long, |_| None).last().map(|last| last.depth), Some(254));
    }

    #[test]
    fn each_program_is_believed_from_its_strongest_source_alone() {
        let told = |service: &str, source, input, requests| ToldUsage {
            service: service.into(),
            model: Some("m".into()),
            source,
            input: Some(input),
            requests,
            ..ToldUsage::default()
        };
        let all = vec![
            told("claude-code", "span", 1, Some(3)),
            told("claude-code", "counter", 2, None),
            told("claude-code", "record", 3, Some(4)),
            told("codex_exec", "span", 5, Some(1)),
        ];
        let chosen = choose(all);
        let brief: Vec<_> =
            chosen.iter().map(|one| (one.service.as_str(), one.input, one.requests)).collect();
        assert_eq!(brief, [("claude-code", Some(2), Some(4)), ("codex_exec", Some(5), Some(1))]);
    }
}
