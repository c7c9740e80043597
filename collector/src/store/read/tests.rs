use std::sync::Arc;

use hookspan_core::{
    Attribute, Change, Class, End, EndReason, Parts, SessionState, Span, SpanKey, SpanKind, Status,
    Timestamp, Tokens, Value,
};
use hookspan_view::line::{Line, LineKind};
use hookspan_view::source::{DayTime, HeatCell, LatencyRow, LineFilter, WantedFiles};
use rusqlite::Connection;

use super::*;
use crate::store::bodies::body;
use crate::store::open::Readers;
use crate::store::prune::Selection;
use crate::store::sample;
use crate::store::write::{Changes, Store};

fn stored(changes: impl IntoIterator<Item = Change>) -> (tempfile::TempDir, Store, Readers) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hookspan.db");
    let mut store = Store::open(&path).unwrap();
    write(&mut store, changes);
    (dir, store, Readers::new(path))
}

fn write(store: &mut Store, changes: impl IntoIterator<Item = Change>) {
    let mut batch = Changes::default();
    changes.into_iter().for_each(|change| batch.push(change));
    store.transaction(|open| open.changes(&batch)).unwrap();
}

fn session_at(root: &str, last_ns: i64) -> Change {
    let mut session = sample::session(root);
    session.last_at = Timestamp(last_ns);
    Change::Session(Box::new(session))
}

fn roots(readers: &Readers, filter: &SessionFilter, before: Option<(i64, String)>) -> Vec<String> {
    let read = |db: &Connection| sessions(db, filter, before.as_ref(), 2);
    readers.with(read).unwrap().into_iter().map(|session| session.root.to_string()).collect()
}

#[test]
fn pages_of_sessions_neither_repeat_nor_skip_at_equal_times() {
    let (_dir, _store, readers) =
        stored([session_at("a", 5), session_at("b", 5), session_at("c", 5), session_at("d", 9)]);
    let all = SessionFilter::default();
    assert_eq!(roots(&readers, &all, None), ["d", "c"]);
    assert_eq!(roots(&readers, &all, Some((5, "c".to_owned()))), ["b", "a"]);
    assert_eq!(roots(&readers, &all, Some((5, "a".to_owned()))), Vec::<String>::new());
}

#[test]
fn sessions_since_a_time_are_found_by_the_index_on_their_last_activity() {
    let (_dir, _store, readers) =
        stored([session_at("a", 5), session_at("b", 7), session_at("c", 9), session_at("d", 4)]);
    let since = |from_ns| {
        let spans = LineFilter { from_ns: Some(from_ns), ..LineFilter::default() };
        roots(&readers, &SessionFilter { spans, ..Default::default() }, None)
    };
    assert_eq!(since(7), ["c", "b"]);
    assert_eq!(since(8), ["c"]);
    assert_eq!(since(10), Vec::<String>::new());
}

#[test]
fn filters_take_text_as_text() {
    let (_dir, _store, readers) = stored([session_at("a", 5), session_at("b%'", 6)]);
    let text = |text: &str| SessionFilter { text: Some(text.to_owned()), ..Default::default() };
    assert_eq!(roots(&readers, &text("%'"), None), ["b%'"]);
    assert_eq!(roots(&readers, &text("' OR 1=1 --"), None), Vec::<String>::new());
    let state = |state| SessionFilter { state: Some(state), ..Default::default() };
    assert_eq!(roots(&readers, &state(SessionState::ToolOpen), None).len(), 2);
    assert_eq!(roots(&readers, &state(SessionState::Done), None).len(), 0);
    let project = |name: &str| {
        let spans = LineFilter { project: Some(name.to_owned()), ..LineFilter::default() };
        roots(&readers, &SessionFilter { spans, ..Default::default() }, None).len()
    };
    let found = ["project", "Project", "/home/dev/project", "proj", "dev/project"].map(project);
    assert_eq!(found, [2, 2, 2, 0, 0]);
}

fn generation(root: &str, start: i64) -> Span {
    let mut span = sample::span(root, "x");
    span.id = SpanId::derive(root, "g1", "generation", "");
    (span.kind, span.parent, span.start) = (SpanKind::Generation, None, Timestamp(start));
    span
}

fn segment(root: &str, key: &str, start: i64) -> Span {
    let mut span = sample::span(root, "x");
    span.id = SpanId::derive(root, "", "session", key);
    (span.kind, span.parent, span.start) = (SpanKind::Session, None, Timestamp(start));
    span.conversation = root.into();
    span
}

fn of_session(readers: &Readers, since: Option<u64>) -> Vec<Line> {
    let found = readers.with(|db| lines::of_session(db, "r", since, 100)).unwrap();
    found.into_iter().map(|found| found.line).collect()
}

#[test]
fn a_turn_hangs_under_the_segment_it_started_in_and_a_call_under_its_turn() {
    let spans = [
        segment("r", "0", 10),
        segment("r", "1", 1_000),
        generation("r", 1_500),
        sample::span("r", "call"),
    ];
    let (_dir, _store, readers) = stored(spans.map(|span| Change::Span(Box::new(span))));
    let found = of_session(&readers, None);
    let row = |id| found.iter().find(|line| line.id == id).unwrap().row;
    let second = row(SpanId::derive("r", "", "session", "1"));
    let turn = found.iter().find(|line| line.kind == LineKind::Turn).unwrap();
    let call =
        found.iter().find(|line| line.parent.is_some() && line.kind != LineKind::Turn).unwrap();
    assert_eq!(turn.parent, Some(second));
    assert_eq!(call.parent, Some(turn.row));
    assert_eq!(readers.with(|db| span_count(db, "r")).unwrap(), 4);
}

#[test]
fn a_delta_holds_what_was_written_since() {
    let (_dir, mut store, readers) = stored([Change::Span(Box::new(sample::span("r", "a")))]);
    let at = readers.with(position).unwrap();
    write(&mut store, [Change::Span(Box::new(sample::span("r", "b")))]);
    let found = of_session(&readers, Some(at.rev));
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0],
        Line { row: found[0].row, ..Line::new(1, None, &sample::span("r", "b"), None) }
    );
    assert_eq!(of_session(&readers, Some(at.rev + 1)).len(), 0);
}

#[test]
fn failures_durations_and_percentiles_are_read() {
    let call = |key: &str| {
        let mut span = sample::span("r", key);
        span.name = "execute_tool Shell cargo".to_owned();
        span.plain_name = "execute_tool Shell".into();
        let tool = span.attributes.iter_mut().find(|said| said.key == "gen_ai.tool.name");
        tool.unwrap().value = Value::Str("Shell".into());
        span
    };
    let kind = LineKind::of(&call("a")).as_str();
    let spans = ["a", "b"].map(|key| Change::Span(Box::new(call(key))));
    let (_dir, _store, readers) = stored(spans);
    let all = LineFilter::default();
    let failures = readers.with(|db| lines::failures(db, &all, 10)).unwrap();
    assert_eq!(failures.len(), 2);
    assert_eq!((&*failures[0].root, &*failures[0].message), ("r", "exit code 101"));
    let none = LineFilter { tool: Some("Read".to_owned()), ..LineFilter::default() };
    assert!(readers.with(|db| lines::failures(db, &none, 10)).unwrap().is_empty());
    let shell = LineFilter { tool: Some("shell".to_owned()), ..LineFilter::default() };
    assert_eq!(readers.with(|db| lines::failures(db, &shell, 10)).unwrap().len(), 2);
    let hour = sample::span("r", "a").start.0.div_euclid(3_600_000_000_000);
    let cells = readers.with(|db| heat(db, "kind", Some(kind), (hour, hour), false)).unwrap();
    assert_eq!(cells, [HeatCell { hour, bucket: 19, count: 2 }]);
    assert!(
        readers.with(|db| heat(db, "kind", Some("x"), (hour, hour), false)).unwrap().is_empty()
    );
    let day = sample::span("r", "a").start.0.div_euclid(86_400_000_000_000);
    let rows = readers.with(|db| latency(db, "kind", (day, day))).unwrap();
    assert_eq!((rows[0].name.as_str(), rows[0].count, rows[0].errors), (kind, 2, 2));
    let p50 = rows[0].p50_us.unwrap();
    assert!((990_000..=1_010_000).contains(&p50), "{p50}");
    assert!(readers.with(|db| latency(db, "kind", (day + 1, day + 9))).unwrap().is_empty());
}

#[test]
fn totals_count_turns_of_the_day_only() {
    let mut turn = sample::turn("r");
    turn.tokens = Some(Tokens {
        input: Some(10),
        output: Some(2),
        cache_read: Some(3),
        cache_write: Some(1),
    });
    let old = sample::turn("old");
    let (_dir, _store, readers) = stored([
        session_at("r", 9),
        session_at("old", 0),
        Change::Turn(Box::new(turn.clone())),
        Change::Turn(Box::new(old)),
    ]);
    let sums = readers.with(|db| totals(db, 1)).unwrap();
    let expected = Totals { turns: 1, active_ns: 7, errors: 1, tokens: turn.tokens };
    assert_eq!(sums, expected);
    assert_eq!(readers.with(|db| totals(db, 100)).unwrap(), Totals::default());
}

#[test]
fn the_columns_of_a_line_say_what_the_whole_span_says() {
    let (_dir, _store, readers) = stored([Change::Span(Box::new(sample::span("r", "a")))]);
    let whole = readers.with(|db| spans(db, "r", 10)).unwrap();
    let (row, span) = &whole[0];
    assert_eq!(of_session(&readers, None), [Line::new(*row, None, span, None)]);
}

#[test]
fn every_order_of_sessions_pages_by_the_key_the_cursor_holds() {
    let changes: Vec<_> = (0..7_i64)
        .map(|n| {
            let mut session = sample::session(&format!("s{n}"));
            session.last_at = Timestamp(n);
            session.started_at = Timestamp(-n);
            session.errors = n.cast_unsigned() % 3;
            session.tool_calls = n.cast_unsigned() % 2;
            session.active_ns = n * n;
            session.tokens = (n % 2 == 0)
                .then(|| Tokens { input: Some(n.cast_unsigned()), ..Tokens::default() });
            Change::Session(Box::new(session))
        })
        .collect();
    let (_dir, _store, readers) = stored(changes);
    for (sort, ascending) in
        SessionSort::ALL.into_iter().flat_map(|sort| [(sort, false), (sort, true)])
    {
        let filter = SessionFilter { sort, ascending, ..SessionFilter::default() };
        let (mut before, mut seen) = (None, Vec::new());
        loop {
            let page = readers.with(|db| sessions(db, &filter, before.as_ref(), 2)).unwrap();
            let Some(last) = page.last() else { break };
            before = Some((sort.key(last), last.root.to_string()));
            seen.extend(page.iter().map(|one| (sort.key(one), one.root.to_string())));
        }
        assert_eq!(seen.len(), 7, "{sort:?}");
        let right = |a, b| if ascending { a < b } else { a > b };
        assert!(seen.is_sorted_by(right), "{sort:?} {ascending}: {seen:?}");
    }
}

#[test]
fn sessions_are_found_by_what_their_spans_are() {
    let (_dir, _store, readers) = stored([
        session_at("r", 5),
        session_at("q", 6),
        Change::Span(Box::new(sample::span("r", "a"))),
    ]);
    let second = 1_000_000_000;
    let by = |kind, min_ns| SessionFilter {
        spans: LineFilter { kind: Some(kind), min_ns: Some(min_ns), ..LineFilter::default() },
        ..SessionFilter::default()
    };
    let kind = LineKind::of(&sample::span("r", "a"));
    assert_eq!(roots(&readers, &by(kind, second), None), ["r"]);
    assert!(roots(&readers, &by(kind, second + 1), None).is_empty());
    assert!(roots(&readers, &by(LineKind::Tab, 0), None).is_empty());
}

#[test]
fn sessions_are_found_by_the_longest_call_of_a_tool_settled_or_not() {
    const SECOND: i64 = 1_000_000_000;
    let call = |root: &str, key: &str, tool: &str, seconds: i64, settled| {
        let mut span = sample::span(root, key);
        let name = span.attributes.iter_mut().find(|one| one.key == "gen_ai.tool.name").unwrap();
        name.value = Value::Str(tool.into());
        let end = Timestamp(span.start.0 + seconds * SECOND);
        span.end = span.end.map(|was| End { at: end, ..was });
        span.settled = settled;
        Change::Span(Box::new(span))
    };
    let (_dir, mut store, readers) = stored([
        session_at("quick", 5),
        session_at("slow", 6),
        session_at("live", 7),
        call("quick", "a", "Shell", 1, true),
        call("slow", "b", "Shell", 2, true),
        call("slow", "c", "Shell", 9, true),
        call("slow", "d", "db_query", 1, true),
        call("live", "e", "Shell", 20, false),
    ]);
    let by = |tool: &str, seconds: i64| {
        let (tool, min_ns) = (Some(tool.to_owned()), Some(seconds * SECOND));
        let spans = LineFilter { tool, min_ns, ..LineFilter::default() };
        roots(&readers, &SessionFilter { spans, ..SessionFilter::default() }, None)
    };
    assert_eq!(by("shell", 2), ["live", "slow"]);
    assert_eq!(by("Shell", 10), ["live"]);
    assert_eq!(by("DB_query", 0), ["slow"]);
    assert!(by("She", 0).is_empty());
    // The span settles. Then the child turns out to belong to another session, and its calls move there.
    write(&mut store, [Change::Settle(SpanKey::of(&sample::span("live", "e")))]);
    assert_eq!(by("Shell", 20), ["live"]);
    write(&mut store, [Change::Bind { conversation: "live".into(), root: "quick".into() }]);
    assert_eq!(by("Shell", 20), ["quick"]);
    store.delete(&Selection::sessions(&["slow".to_owned()])).unwrap();
    assert!(by("db_query", 0).is_empty());
}

#[test]
fn spans_of_all_sessions_are_found_by_what_they_are_and_page() {
    let session = |root: &str| {
        let mut session = sample::session(root);
        let at = sample::span(root, "a").start;
        (session.started_at, session.last_at) = (at, at.plus(5_000_000_000));
        Change::Session(Box::new(session))
    };
    let span = |root: &str, key: &str| Change::Span(Box::new(sample::span(root, key)));
    let (_dir, _store, readers) =
        stored([session("r"), session("q"), span("r", "a"), span("r", "b"), span("q", "c")]);
    let all = LineFilter { failed: true, ..LineFilter::default() };
    let page = |before| readers.with(|db| lines::matching(db, &all, before, 2)).unwrap();
    let first = page(None);
    assert_eq!(first.len(), 2);
    let last = &first[1].1.line;
    assert_eq!(page(Some((last.start.0, last.row))).len(), 1);
    let q = LineFilter { session: Some("q".to_owned()), ..LineFilter::default() };
    assert_eq!(readers.with(|db| lines::matching(db, &q, None, 9)).unwrap().len(), 1);
    let long = LineFilter { max_ns: Some(1_000), ..LineFilter::default() };
    assert!(readers.with(|db| lines::matching(db, &long, None, 9)).unwrap().is_empty());
}

#[test]
fn percentiles_of_any_period_are_those_of_its_sorted_durations() {
    const DAY: i64 = 86_400_000_000_000;
    let first = sample::span("r", "a").start.0.div_euclid(DAY);
    let us = |n: i64| 700 + n * n * 1_313 % 90_000_000;
    let spans = (0..900_i64).map(|n| {
        let mut span = sample::span("r", &n.to_string());
        span.start = Timestamp((first + n / 10) * DAY + n * 1_000);
        span.end = span.end.map(|end| End { at: Timestamp(span.start.0 + us(n) * 1_000), ..end });
        Change::Span(Box::new(span))
    });
    let (_dir, _store, readers) = stored(spans);
    // Periods that begin and end at every kind of place in a block of days, with and without whole blocks in between.
    for (from, to) in [(0, 89), (1, 1), (3, 70), (17, 40), (31, 64), (40, 89), (64, 65)] {
        let days = (first + from, first + to);
        let rows = readers.with(|db| latency(db, "kind", days)).unwrap();
        let mut sorted: Vec<i64> = (from * 10..(to + 1) * 10).map(us).collect();
        sorted.sort_unstable();
        let row = &rows[0];
        assert_eq!(row.count, sorted.len() as u64, "{from} to {to}");
        assert_eq!(row.total_us, Some(sorted.iter().sum::<i64>().cast_unsigned()));
        for (share, found) in [
            (0.5, row.p50_us),
            (0.9, row.p90_us),
            (0.95, row.p95_us),
            (0.99, row.p99_us),
            (1.0, row.max_us),
        ] {
            let exact = sorted[(share * sorted.len() as f64).ceil() as usize - 1] as f64;
            let found = found.unwrap();
            let wrong = (found as f64 - exact).abs() / exact;
            assert!(wrong <= 0.001, "{from} to {to}, {share}: {found} is not {exact}");
        }
        let hours = (days.0 * 24, days.1 * 24 + 23);
        for daily in [true, false] {
            let cells = readers.with(|db| heat(db, "kind", None, hours, daily)).unwrap();
            assert_eq!(cells.iter().map(|cell| cell.count).sum::<u64>(), row.count);
        }
    }
    assert_eq!(readers.with(|db| older(db, "kind", first + 2)).unwrap(), Some((first + 1, 20)));
    assert_eq!(readers.with(|db| older(db, "kind", first)).unwrap(), None);
}

#[test]
fn the_time_of_a_turn_counts_once_it_has_settled_and_goes_with_its_session() {
    let turn = |root: &str| {
        let mut span = sample::span(root, "turn");
        span.kind = SpanKind::Generation;
        (span.id, span.conversation) = (sample::turn(root).span, root.into());
        span.workspace = Some("/home/dev/api/".into());
        span
    };
    let open = |root: &str| Span { settled: false, ..turn(root) };
    let told = |root: &str| Change::Turn(Box::new(sample::turn(root)));
    let (_dir, mut store, readers) = stored([Change::Span(Box::new(open("r"))), told("r")]);
    let all = |readers: &Readers| readers.with(|db| times(db, (-1, 1))).unwrap();
    assert_eq!(all(&readers), []);
    // The turn counts once: first with the summary beside it, then by what is stored, and never twice.
    write(&mut store, [Change::Settle(SpanKey::of(&turn("r")))]);
    write(&mut store, [Change::Span(Box::new(turn("s"))), told("s")]);
    write(&mut store, [Change::Span(Box::new(turn("s"))), told("s")]);
    let found = all(&readers);
    let summary = sample::turn("r");
    let one = |turns: u64| DayTime {
        day: 0,
        project: Some("api".to_owned()),
        turns,
        calls: 3 * turns,
        errors: turns,
        active_ns: 7 * turns.cast_signed(),
        parts: Parts {
            thinking: summary.parts.thinking * turns.cast_signed(),
            shell: summary.parts.shell * turns.cast_signed(),
            other: summary.parts.other * turns.cast_signed(),
            ..Parts::default()
        },
        input: None,
        output: None,
    };
    assert_eq!(found, [one(2)]);
    store.delete(&Selection::sessions(&["s".to_owned()])).unwrap();
    assert_eq!(all(&readers), [one(1)]);
    store.delete(&Selection::sessions(&["r".to_owned()])).unwrap();
    assert_eq!(all(&readers), []);
}

/// A call whose length no hook reports.
fn untold(root: &str, key: &str) -> Span {
    let mut span = sample::span(root, key);
    let unknown = Attribute {
        key: std::borrow::Cow::Borrowed("hookspan.duration_unknown"),
        value: Value::Bool(true),
        class: Class::Plain,
    };
    let at = span.attributes.partition_point(|one| *one.key < *unknown.key);
    span.attributes.insert(at, unknown);
    span
}

#[test]
fn an_unknown_length_counts_as_a_call_and_nowhere_as_a_length() {
    let told = |span: Span| Change::Span(Box::new(span));
    let session = |root: &str| Change::Session(Box::new(sample::session(root)));
    let (_dir, mut store, readers) = stored([
        session("r"),
        session("q"),
        told(untold("r", "Shell")),
        told(untold("q", "Shell")),
    ]);
    let day = untold("r", "Shell").start.0.div_euclid(86_400_000_000_000);
    let row = || readers.with(|db| latency(db, "tool", (day, day))).unwrap().remove(0);
    let known = |row: &LatencyRow| [row.total_us, row.p50_us, row.p99_us, row.max_us];
    let longer = |ns: i64| {
        let tool = Some("Shell".to_owned());
        let spans = LineFilter { tool, min_ns: Some(ns), ..LineFilter::default() };
        let lines = readers.with(|db| lines::matching(db, &spans, None, 9)).unwrap().len();
        let filter = SessionFilter { spans, ..SessionFilter::default() };
        (readers.with(|db| sessions(db, &filter, None, 9)).unwrap().len(), lines)
    };
    let cells = || {
        let hours = (day * 24, day * 24 + 23);
        let cells = readers.with(|db| heat(db, "tool", None, hours, false)).unwrap();
        cells.iter().map(|cell| cell.count).sum::<u64>()
    };
    assert_eq!((row().count, row().errors, row().unknown), (2, 2, 2));
    assert_eq!(known(&row()), [None; 4]);
    assert_eq!((longer(0), cells()), ((0, 0), 0));
    // One of the calls turns out to have an end. Then the change is undone.
    write(&mut store, [told(sample::span("r", "Shell"))]);
    assert_eq!((row().count, row().unknown, row().total_us), (2, 1, Some(1_000_000)));
    assert_eq!((longer(0), longer(2_000_000_000), cells()), ((1, 1), (0, 0), 1));
    let failed =
        LineFilter { failed: true, tool: Some("Shell".to_owned()), ..LineFilter::default() };
    let filter = SessionFilter { spans: failed.clone(), ..SessionFilter::default() };
    assert_eq!(readers.with(|db| sessions(db, &filter, None, 9)).unwrap().len(), 2);
    // The same figures, counted one by one.
    let counted = |most| readers.with(|db| latency_of(db, "tool", &failed, most)).unwrap();
    assert_eq!(counted(2), Some(vec![row()]));
    assert_eq!(counted(1), None, "more than may be looked at");
    let cells_of =
        readers.with(|db| heat_of(db, "tool", Some("Shell"), &failed, false, 2)).unwrap();
    assert_eq!(cells_of.map(|cells| cells.iter().map(|cell| cell.count).sum()), Some(cells()));
    write(&mut store, [told(untold("r", "Shell"))]);
    assert_eq!((row().count, row().unknown, known(&row())), (2, 2, [None; 4]));
    assert_eq!((longer(0), cells()), ((0, 0), 0));
}

#[test]
fn tokens_of_a_day_are_unknown_until_a_turn_reports_some() {
    let told = |root: &str, input: Option<u64>| {
        let mut span = sample::span(root, "turn");
        span.kind = SpanKind::Generation;
        let mut turn = sample::turn(root);
        (span.id, span.conversation) = (turn.span, root.into());
        turn.tokens = input.map(|input| Tokens { input: Some(input), ..Tokens::default() });
        let session = Change::Session(Box::new(sample::session(root)));
        [session, Change::Span(Box::new(span)), Change::Turn(Box::new(turn))]
    };
    let (_dir, mut store, readers) = stored(told("r", None));
    let tokens = || {
        let day = readers.with(|db| times(db, (-1, 1))).unwrap().remove(0);
        (day.turns, day.input, day.output)
    };
    assert_eq!(tokens(), (1, None, None));
    write(&mut store, told("s", Some(0)));
    assert_eq!(tokens(), (2, Some(0), None));
    write(&mut store, told("t", Some(7)));
    assert_eq!(tokens(), (3, Some(7), None));
    let day = [0, 86_400_000_000_000];
    let none = LineFilter::default();
    let counted = |most| readers.with(|db| spent_of(db, &day, &none, most)).unwrap();
    assert_eq!(counted(3), Some(readers.with(|db| spent(db, &day)).unwrap()));
    assert_eq!(counted(2), None, "more than may be looked at");
    for root in ["s", "t"] {
        store.delete(&Selection::sessions(&[root.to_owned()])).unwrap();
    }
    assert_eq!(tokens(), (1, None, None));
}

#[test]
fn columns_of_any_zone_have_what_a_count_of_each_turn_has() {
    const QUARTER: i64 = 900_000_000_000;
    let mut changes = Vec::new();
    // Turns around midnight of several days, of two projects and three models.
    for n in 0..240_i64 {
        let root = format!("r{n}");
        let start = n * 5 * QUARTER + n * 1_000_000_007;
        let mut turn = sample::turn(&root);
        let mut span = Span { kind: SpanKind::Generation, ..sample::span(&root, "turn") };
        (span.id, span.conversation) = (turn.span, Arc::clone(&span.root));
        span.start = Timestamp(start);
        span.end = Some(End { at: Timestamp(start + n), reason: EndReason::Matched });
        span.settled = true;
        let project = if n % 3 == 0 { "/w/api" } else { "/w/web" };
        span.workspace = Some(project.into());
        turn.started_at = span.start;
        turn.ended_at = span.end.map(|end| end.at);
        turn.model = (n % 4 > 0).then(|| format!("m{}", n % 2).into());
        turn.tokens = (n % 5 > 0).then(|| Tokens {
            input: Some(n.cast_unsigned()),
            output: Some(1),
            cache_read: Some(2),
            cache_write: None,
        });
        let mut session = sample::session(&root);
        session.workspace = Some(project.into());
        (session.started_at, session.last_at) = (span.start, Timestamp(start + n));
        changes.push(Change::Session(Box::new(session)));
        changes.push(Change::Span(Box::new(span)));
        changes.push(Change::Turn(Box::new(turn)));
    }
    let (_dir, _store, readers) = stored(changes);
    // UTC, Berlin with a change of the clock, New York, Kathmandu; a column of several days, and one of an hour.
    for (offset, lengths) in [
        (0, vec![96; 13]),
        (-8, vec![96, 96, 92, 96, 100, 96 * 7]),
        (20, vec![96; 12]),
        (-23, vec![4, 92, 96, 1, 2, 93, 96, 96 * 3]),
    ] {
        let mut edges = vec![offset * QUARTER];
        for length in lengths {
            edges.push(edges.last().unwrap() + length * QUARTER);
        }
        let sums = readers.with(|db| spent(db, &edges)).unwrap();
        let counted = readers.with(|db| spent_of(db, &edges, &LineFilter::default(), 1_000));
        assert_eq!(Some(&sums), counted.unwrap().as_ref(), "{offset}");
        assert!(sums.len() > 10, "{offset}");
    }
}

#[test]
fn files_are_added_up_by_what_calls_did_to_them() {
    let call = |root: &str, id: u8, path: &str, class: &str, lines: Option<i64>, failed: bool| {
        let mut span = sample::span(root, if class == "edit" { "Write" } else { "Read" });
        span.id = SpanId([id; 8]);
        span.start = Timestamp(i64::from(id) * 1_000);
        span.workspace = Some("/w/api".into());
        span.attributes.clear();
        let mut put = |key: &'static str, value| {
            span.attributes.push(Attribute { key: key.into(), value, class: Class::Plain });
        };
        put("file.path", Value::Str(path.into()));
        put("hookspan.tool.class", Value::Str(class.into()));
        if let Some(lines) = lines {
            put("hookspan.edit.lines_added", Value::Int(lines));
            put("hookspan.edit.lines_removed", Value::Int(1));
        }
        if !failed {
            span.status = Status::Unset;
        }
        Change::Span(Box::new(span))
    };
    let (_dir, mut store, readers) = stored([
        session_at("r", 5),
        session_at("s", 6),
        call("r", 1, "/w/api/src/a.rs", "read", None, false),
        call("r", 2, "/w/api/src/a.rs", "edit", Some(4), false),
        call("s", 3, "/w/api/src/a.rs", "edit", Some(9), true),
        call("s", 4, "/etc/hosts", "read", None, false),
        call("s", 5, "/w/api/src", "search", None, false),
    ]);
    let all = WantedFiles { period: (0, i64::MAX), ..WantedFiles::default() };
    let look = |wanted: &WantedFiles, most| {
        let mut found = readers.with(|db| files(db, wanted, most)).unwrap();
        found.files.sort_by(|a, b| a.path.cmp(&b.path));
        found
    };
    let found = look(&all, 100);
    let names: Vec<_> =
        found.files.iter().map(|one| (one.project.as_deref(), one.path.as_str())).collect();
    assert_eq!(names, [(None, "/etc/hosts"), (Some("api"), "src/a.rs")]);
    let a = &found.files[1];
    assert_eq!((a.reads, a.edits, a.errors, a.sessions), (1, 2, 1, 2));
    assert_eq!((a.added, a.removed), (Some(4), Some(1)), "an edit that failed changed nothing");
    assert_eq!(found.since, None);
    assert_eq!(look(&all, 2).since, Some(Timestamp(3_000)), "the newest two");
    let some = |project: Option<&str>, text: Option<&str>, session: Option<&str>| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let (project, text, session) = (own(project), own(text), own(session));
        look(&WantedFiles { project, text, session, ..all.clone() }, 100).files.len()
    };
    assert_eq!([some(Some("API"), None, None), some(None, Some("HOSTS"), None)], [1, 1]);
    assert_eq!([some(None, None, Some("r")), some(None, None, Some("nobody"))], [1, 0]);
    let of = |path: &str, limit| {
        let found = readers.with(|db| touches(db, ("api", path), (0, i64::MAX), limit)).unwrap();
        found.iter().map(|one| (one.start.0, one.edits, one.failed)).collect::<Vec<_>>()
    };
    assert_eq!(of("src/a.rs", 2), [(3_000, true, true), (2_000, true, false)]);
    // A deleted session takes the names with it that only it used.
    store.delete(&Selection::sessions(&["s".to_owned()])).unwrap();
    assert_eq!(look(&all, 100).files.len(), 1);
    let left = readers.with(|db| {
        db.query_row("SELECT group_concat(path) FROM file", [], |row| row.get::<_, String>(0))
    });
    assert_eq!(left.unwrap(), "src/a.rs");
}

#[test]
fn a_span_is_found_by_its_id_and_a_trace_by_its_root() {
    let bind = |conversation: &str, root: &str| Change::Bind {
        conversation: conversation.into(),
        root: root.into(),
    };
    let call = |root: &str| sample::span(root, "Read");
    let root =
        Span { parent: None, id: SpanId::derive("r-child", "g1", "generation", ""), ..call("r") };
    let (_dir, mut store, readers) = stored([
        bind("r", "r"),
        bind("r-child", "r"),
        Change::Span(Box::new(call("r"))),
        Change::Span(Box::new(root.clone())),
        bind("s-child", "s-child"),
        Change::Span(Box::new(Span { root: "s-child".into(), ..call("s") })),
    ]);
    let alone = |id| readers.with(|db| span(db, id)).unwrap().map(|(row, _)| row);
    let within =
        |root: &str, id| readers.with(|db| span_of(db, root, id)).unwrap().map(|(row, _)| row);
    assert_eq!(
        [alone(call("r").id), alone(root.id), alone(call("s").id)],
        [Some(1), Some(2), Some(3)]
    );
    assert_eq!(alone(SpanId([7; 8])), None);
    assert_eq!(readers.with(|db| span_row(db, 1)).unwrap().unwrap(), (1, call("r")));
    assert_eq!(readers.with(|db| body(db, 7)).unwrap(), None);
    assert_eq!([within("r", call("r").id), within("s-child", call("s").id)], [Some(1), Some(3)]);
    assert_eq!([within("s-child", call("r").id), within("nobody", call("r").id)], [None, None]);
    let found = readers.with(|db| trace(db, root.trace)).unwrap();
    assert_eq!(found, Some(("r".to_owned(), root.id)));
    // The conversation was bound, and then bound to another session.
    write(&mut store, [bind("s-child", "s")]);
    assert_eq!([within("s", call("s").id), within("s-child", call("s").id)], [Some(3), Some(3)]);
}
