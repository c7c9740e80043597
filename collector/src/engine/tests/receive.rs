//! Received spans find the session and the call that they belong to, whatever arrives first.

use hookspan_core::{SpanId, TraceId};

use super::*;
use crate::store::received::{Incoming, Limits, ReceivedSpan, Taken, read};

const LIMITS: Limits = Limits { session_spans: 1_000, day_spans: 10_000, day_bytes: 1 << 20 };
const ROOT: &str = "session-a";
const TURN: &str = "a1";
const CALL: &str = "toolu_1";

fn call() -> SpanId {
    SpanId::derive(ROOT, TURN, "tool", CALL)
}

/// A prompt and a shell call that runs.
fn hooks() -> Vec<Arrival> {
    let call =
        json!({"tool_name": "Shell", "tool_use_id": CALL, "tool_input": {"command": "make"}});
    vec![
        event(0, ROOT, TURN, "beforeSubmitPrompt", &json!({"prompt": "build it"})),
        event(1, ROOT, TURN, "preToolUse", &call),
    ]
}

fn second_call() -> Vec<Arrival> {
    let call = json!({"tool_name": "Shell", "tool_use_id": "toolu_2", "tool_input": {"command": "make b"}});
    vec![event(2, ROOT, TURN, "preToolUse", &call)]
}

fn take(engine: &mut Engine, arrivals: &[Arrival]) {
    let horizon = Horizon::At(Timestamp(START + SECOND));
    engine.take(Batch { arrivals: arrivals.to_vec(), horizon, ..Batch::default() }).unwrap();
}

fn span(number: u8) -> ReceivedSpan {
    ReceivedSpan {
        trace: [9; 16],
        id: [number; 8],
        name: format!("step {number}"),
        service: "build".to_owned(),
        start_ns: START + 2 * SECOND + i64::from(number),
        end_ns: START + 3 * SECOND,
        attributes: "{}".to_owned(),
        ..ReceivedSpan::default()
    }
}

fn receive_at(engine: &mut Engine, spans: Vec<ReceivedSpan>, second: i64) -> Taken {
    let incoming = Incoming { spans, ..Incoming::default() };
    engine.receive(&incoming, LIMITS, Timestamp(START + second * SECOND)).unwrap()
}

fn receive(engine: &mut Engine, spans: Vec<ReceivedSpan>) -> Taken {
    receive_at(engine, spans, 5)
}

/// What belongs to the session, one per line: name, how it was joined, and whether it stands below the call.
fn shown(world: &World) -> String {
    let db = Connection::open(&world.path).unwrap();
    let all = read::of_session(&db, ROOT, 100).unwrap();
    let line = |placed: &hookspan_view::received::Placed| {
        let how = placed.span.joined.map_or("-", |joined| joined.as_str());
        let below = if placed.below == Some(call()) { " below the call" } else { "" };
        format!("{}{} {how}{below}\n", "  ".repeat(placed.depth), placed.span.name)
    };
    all.spans.iter().map(line).collect()
}

fn apart(world: &World) -> u64 {
    read::apart(&Connection::open(&world.path).unwrap(), 10).unwrap().total
}

/// Spans of a build that got the call's trace context.
fn nested() -> Vec<ReceivedSpan> {
    let trace = TraceId::derive("generation", ROOT, TURN).0;
    let top = ReceivedSpan { trace, parent: Some(call().0), ..span(1) };
    vec![ReceivedSpan { trace, parent: Some([1; 8]), ..span(2) }, top]
}

const NESTED: &str = "step 1 traceparent below the call\n  step 2 traceparent below the call\n";

#[test]
fn a_trace_of_ours_nests_below_the_call_whose_context_it_got() {
    let world = World::new();
    let mut engine = world.engine();
    take(&mut engine, &hooks());
    let taken = receive(&mut engine, nested());
    assert_eq!((taken.stored, taken.unjoined), (2, false));
    assert_eq!(shown(&world), NESTED);
    // A span that hookspan exported comes back. It is not stored as a span of another program.
    let own = ReceivedSpan { id: call().0, ..nested().remove(0) };
    let taken = receive(&mut engine, vec![own]);
    assert_eq!((taken.own, taken.stored), (1, 0));
    assert_eq!(shown(&world), NESTED);
}

#[test]
fn telemetry_that_comes_before_the_hooks_is_joined_when_they_are_there() {
    let world = World::new();
    let mut engine = world.engine();
    assert!(receive(&mut engine, nested()).unjoined);
    assert_eq!((shown(&world), apart(&world)), (String::new(), 2));
    take(&mut engine, &hooks());
    assert!(!receive(&mut engine, Vec::new()).unjoined);
    assert_eq!((shown(&world).as_str(), apart(&world)), (NESTED, 0));
}

#[test]
fn a_session_id_joins_the_whole_trace_and_a_tools_id_names_the_call() {
    let world = World::new();
    let mut engine = world.engine();
    take(&mut engine, &hooks());
    // Only the parent names the session, and a parent is sent after its children.
    let inside = ReceivedSpan { parent: Some([2; 8]), ..span(3) };
    let tool = ReceivedSpan { parent: Some([1; 8]), tool: Some(CALL.to_owned()), ..span(2) };
    assert!(receive(&mut engine, vec![inside, tool]).unjoined);
    let top = ReceivedSpan { session: Some(ROOT.to_owned()), ..span(1) };
    assert!(!receive(&mut engine, vec![top]).unjoined);
    assert_eq!(
        shown(&world),
        "step 1 session_id\nstep 2 session_id below the call\n  step 3 session_id below the call\n"
    );
}

#[test]
fn a_directory_joins_only_while_exactly_one_call_runs_there() {
    let in_directory = |directory: &str| {
        let world = World::new();
        let mut engine = world.engine();
        take(&mut engine, &hooks());
        receive(
            &mut engine,
            vec![ReceivedSpan { directory: Some(directory.to_owned()), ..span(1) }],
        );
        shown(&world)
    };
    let found = "step 1 inferred below the call\n";
    assert_eq!(in_directory("/home/dev/project"), found);
    assert_eq!(in_directory("/home/dev/project/sub"), found);
    assert_eq!(in_directory("/home/dev/project2"), "");
    assert_eq!(in_directory("/home/dev"), "");

    let world = World::new();
    let mut engine = world.engine();
    take(&mut engine, &hooks());
    take(&mut engine, &second_call());
    let here = || Some("/home/dev/project".to_owned());
    receive(&mut engine, vec![ReceivedSpan { directory: here(), ..span(1) }]);
    // Time alone proves no session. A directory with a time that is an hour off does not either.
    receive(&mut engine, vec![ReceivedSpan { trace: [8; 16], ..span(2) }]);
    let skewed = ReceivedSpan {
        trace: [7; 16],
        start_ns: START - 3_600 * SECOND,
        directory: here(),
        ..span(3)
    };
    receive(&mut engine, vec![skewed]);
    assert_eq!((shown(&world), apart(&world)), (String::new(), 3));
}

#[test]
fn what_was_received_goes_with_its_session_and_what_belongs_to_none_after_a_week() {
    let world = World::new();
    let mut engine = world.engine();
    take(&mut engine, &hooks());
    receive(&mut engine, nested());
    receive(&mut engine, vec![ReceivedSpan { trace: [8; 16], ..span(3) }]);
    let day = 86_400;
    receive_at(&mut engine, Vec::new(), 6 * day);
    assert_eq!(apart(&world), 1);
    receive_at(&mut engine, Vec::new(), 8 * day);
    assert_eq!((apart(&world), shown(&world).as_str()), (0, NESTED), "a session's spans stay");
    let what = Selection::sessions(&[ROOT.to_owned()]);
    engine.delete(&what, Duration::from_secs(5)).unwrap();
    let db = Connection::open(&world.path).unwrap();
    let left: i64 =
        db.query_row("SELECT count(*) FROM received_span", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}
