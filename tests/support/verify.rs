//! Compares hookspan's result for a stream with the numbers beside the stream.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::collector::Collector;
use crate::fixture::Fixture;
use crate::spans::{self, Span};
use crate::wait::pause;
use crate::world::World;

/// Checks everything that a stream promises in every way out of a store: the session list and the OTLP export. Returns
/// the spans.
#[track_caller]
pub fn session_is_right(world: &World, fixture: &Fixture) -> Vec<Span> {
    list_is_right(world, fixture);
    let spans = exported(world);
    spans_are_right(&spans, fixture);
    spans
}

/// The spans of `export --all`.
#[track_caller]
#[must_use]
pub fn exported(world: &World) -> Vec<Span> {
    spans::from_otlp_json(&otlp_json(world))
}

/// `export --all --format otlp-json`.
#[track_caller]
#[must_use]
pub fn otlp_json(world: &World) -> String {
    world.ok(&["export", "--all", "--format", "otlp-json", "--content", "full"])
}

/// Checks that both lists have the same spans, in the same traces and below the same parents.
#[track_caller]
pub fn places_are_equal(left: &[Span], right: &[Span]) {
    let places = |spans: &[Span]| spans.iter().map(Span::place).collect::<BTreeSet<_>>();
    let (left, right) = (places(left), places(right));
    let (only_left, only_right): (Vec<_>, Vec<_>) =
        (left.difference(&right).collect(), right.difference(&left).collect());
    assert!(
        only_left.is_empty() && only_right.is_empty(),
        "(trace, id, parent, name)\nonly left: {only_left:#?}\nonly right: {only_right:#?}"
    );
}

/// Checks that both contain the same complete spans. On failure, prints only the spans that differ.
#[track_caller]
pub fn spans_are_equal(left: &[Span], right: &[Span]) {
    let only = |of: &[Span], other: &[Span]| -> Vec<Span> {
        of.iter().filter(|span| !other.contains(span)).cloned().collect()
    };
    let (only_left, only_right) = (only(left, right), only(right, left));
    assert!(
        only_left.is_empty() && only_right.is_empty(),
        "only left: {only_left:#?}\nonly right: {only_right:#?}"
    );
    assert_eq!(left.len(), right.len(), "a span twice");
}

/// The bodies in the raw log, in order.
#[track_caller]
#[must_use]
pub fn raw_bodies(world: &World) -> Vec<Vec<u8>> {
    let log = world.ok(&["export", "--all", "--format", "jsonl", "--content", "full"]);
    log.lines().map(raw_body).collect()
}

/// Writes the whole raw log to a file that `import` reads. Returns the file's path.
#[track_caller]
#[must_use]
pub fn export_log(world: &World) -> std::path::PathBuf {
    let log = world.scratch("log.jsonl");
    let output = log.to_str().unwrap();
    world.ok(&["export", "--all", "--format", "jsonl", "--content", "full", "--output", output]);
    log
}

/// Passes on the bodies in the raw log one after another, because together they may not fit into memory.
#[track_caller]
pub fn each_raw_body(world: &World, mut take: impl FnMut(&[u8])) {
    let mut export = world
        .command(&world.hookspan())
        .args(["export", "--all", "--format", "jsonl", "--content", "full"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(export.stdout.take().unwrap()));
    lines.for_each(|line| take(&raw_body(&line.unwrap())));
    assert!(export.wait().unwrap().success(), "export failed");
}

/// `sessions --json`: one session with the right numbers.
#[track_caller]
pub fn list_is_right(world: &World, fixture: &Fixture) {
    let sessions = world.json(&["sessions", "--json"]);
    let sessions = sessions.as_array().unwrap();
    assert_eq!(sessions.len(), 1, "a child conversation is not a session: {sessions:#?}");
    let session = &sessions[0];
    let shown: Value = ["generations", "tool_calls", "subagents", "errors", "tokens", "workspace"]
        .into_iter()
        .map(|key| (key.to_owned(), session[key].clone()))
        .collect();
    let expected = &fixture.expected;
    assert_eq!(
        shown,
        json!({
            "generations": expected["generations"],
            "tool_calls": expected["tool_calls"],
            "subagents": expected["subagents"],
            "errors": expected["errors"],
            "tokens": expected["tokens"],
            "workspace": expected["workspace"],
        }),
        "{session:#}"
    );
    assert_eq!(session["id"], expected["root"]);
}

/// Checks that there is one tree per turn and nothing else, that the child's calls are below the subagent, that tokens
/// are counted once, and that ids are as defined.
#[track_caller]
pub fn spans_are_right(spans: &[Span], fixture: &Fixture) {
    assert_eq!(spans::orphans(spans), Vec::<&Span>::new(), "spans without their parent");
    let ids: BTreeSet<_> = spans.iter().map(|span| &span.id).collect();
    assert_eq!(ids.len(), spans.len(), "a span id twice");
    assert_eq!(json!(spans::kinds(spans)), fixture.expected["kinds"], "spans per kind");
    tokens_are_counted_once(spans, fixture);
    statuses_are_honest(spans, fixture);
    the_child_hangs_below_its_subagent(spans, fixture);
    ids_are_as_defined(spans, fixture);
}

#[track_caller]
fn tokens_are_counted_once(spans: &[Span], fixture: &Fixture) {
    let sums = json!({
        "input": spans::total(spans, "gen_ai.usage.input_tokens"),
        "output": spans::total(spans, "gen_ai.usage.output_tokens"),
        "cache_read": spans::total(spans, "gen_ai.usage.cache_read.input_tokens"),
        "cache_write": spans::total(spans, "gen_ai.usage.cache_creation.input_tokens"),
    });
    assert_eq!(sums, fixture.expected["tokens"], "sum of gen_ai.usage.* over all spans");
}

#[track_caller]
fn statuses_are_honest(spans: &[Span], fixture: &Fixture) {
    let errors = spans.iter().filter(|span| span.status == 2).count() as u64;
    assert_eq!(errors, fixture.number("errors"), "spans with status ERROR");
    for span in spans {
        assert_ne!(span.status, 1, "status OK is never set: {span:#?}");
        let typed = !span.attribute("error.type").is_empty();
        assert_eq!(typed, span.status == 2, "error.type exactly on errors: {span:#?}");
        assert!(span.end >= span.start, "ends before it starts: {span:#?}");
    }
}

#[track_caller]
fn the_child_hangs_below_its_subagent(spans: &[Span], fixture: &Fixture) {
    let by_id: BTreeMap<_, _> = spans.iter().map(|span| (&span.id, span)).collect();
    let subagents: Vec<_> = spans.iter().filter(|span| span.kind() == "subagent").collect();
    assert_eq!(subagents.len() as u64, fixture.number("subagents"));
    let subagent = subagents[0];
    let delegating = by_id[&subagent.parent];
    assert_eq!(delegating.kind(), "tool", "a subagent hangs below the call that started it");
    let child = fixture.text("child");
    let calls: Vec<_> = spans
        .iter()
        .filter(|span| span.kind() == "tool")
        .filter(|span| span.attribute("cursor.conversation.id") == child)
        .collect();
    assert_eq!(calls.len() as u64, fixture.number("child_tool_calls"));
    for call in calls {
        assert_eq!(call.parent, subagent.id, "{call:#?}");
        assert_eq!(call.trace, subagent.trace, "{call:#?}");
        assert_eq!(call.attribute("session.id"), fixture.text("root"), "{call:#?}");
    }
}

#[track_caller]
fn ids_are_as_defined(spans: &[Span], fixture: &Fixture) {
    let ids: BTreeSet<_> = spans.iter().map(|span| span.id.as_str()).collect();
    for (what, id) in fixture.expected["spans"].as_object().unwrap() {
        assert!(ids.contains(id.as_str().unwrap()), "no span {id} for the {what}");
    }
    let traces: BTreeSet<_> = spans.iter().map(|span| span.trace.as_str()).collect();
    for (turn, trace) in fixture.expected["traces"].as_object().unwrap() {
        assert!(traces.contains(trace.as_str().unwrap()), "no trace {trace} for turn {turn}");
    }
    for span in spans.iter().filter(|span| span.kind() == "generation") {
        let conversation = span.attribute("cursor.conversation.id");
        let generation = span.attribute("cursor.generation.id");
        assert_eq!(span.id, spans::span_id(conversation, generation, "generation", ""));
    }
}

/// Checks the session, its turns and its spans in the dashboard's API.
#[track_caller]
pub fn api_is_right(collector: &Collector<'_>, fixture: &Fixture, spans: &[Span]) {
    let list = collector.get("sessions").unwrap();
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{list:#}");
    assert_eq!(items[0]["id"], fixture.expected["root"]);
    assert_eq!(items[0]["turns"], fixture.expected["generations"]);
    assert_eq!(items[0]["calls"], fixture.expected["tool_calls"]);
    assert_eq!(items[0]["errors"], fixture.expected["errors"]);
    let root = fixture.text("root");
    let turns = collector.get(&format!("sessions/{root}/turns")).unwrap();
    let turns = turns.as_array().or_else(|| turns["items"].as_array()).unwrap();
    assert_eq!(turns.len() as u64, fixture.number("generations"));
    let columns = collector.get(&format!("sessions/{root}/spans")).unwrap();
    assert_eq!(columns["n"].as_u64().unwrap(), spans.len() as u64, "{columns:#}");
}

fn raw_body(line: &str) -> Vec<u8> {
    let row: BTreeMap<String, Box<serde_json::value::RawValue>> =
        serde_json::from_str(line).unwrap();
    // Read as raw text, because a body may be nested deeper than a parser allows.
    let event = row["event"].get();
    match event.strip_prefix('"') {
        Some(_) => serde_json::from_str::<String>(event).unwrap().into_bytes(),
        None => event.as_bytes().to_vec(),
    }
}

/// Checks that a rebuild from the raw log gives the stored spans. Waits until time alone changes nothing more: no span
/// may change for `rest`, which is longer than a session takes to become idle in this world.
#[track_caller]
pub fn rebuild_is_equal(world: &World, rest: Duration) -> String {
    let spans = || world.ok(&["export", "--all", "--format", "otlp-json", "--content", "off"]);
    // Time passes in a rebuild as well, so what is still open now could be idle by then.
    let collector = Collector::start(world);
    let (mut before, mut since) = (spans(), Instant::now());
    let started = since;
    while since.elapsed() < rest {
        assert!(started.elapsed() < Duration::from_secs(300), "the sessions never came to rest");
        pause(Duration::from_millis(500));
        let now = spans();
        if now != before {
            (before, since) = (now, Instant::now());
        }
    }
    drop(collector);
    world.ok(&["rebuild"]);
    let after = spans();
    let parts = || first_difference(&before, &after);
    assert!(after == before, "what is stored is not what the raw log says\n{}", parts());
    after
}

/// The place where two exports begin to differ, with its surroundings.
fn first_difference(left: &str, right: &str) -> String {
    let at = left.bytes().zip(right.bytes()).take_while(|(left, right)| left == right).count();
    let around = |text: &str| {
        let bytes = text.as_bytes().get(at.saturating_sub(600)..).unwrap_or_default();
        String::from_utf8_lossy(&bytes[..bytes.len().min(900)]).into_owned()
    };
    format!("left: {}\nright: {}", around(left), around(right))
}
