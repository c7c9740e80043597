//! Two destinations are down for a day of hooks. One may keep all spans, the other a limited number. In the end the
//! second one must get the newest spans, in order and once each, and the others must be counted as lost.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::Report;
use crate::collector::{self, Collector};
use crate::journal::{JournalWriter, now};
use crate::receivers::{Receiver, free_ports};
use crate::wait::eventually;
use crate::world::World;

const DAY_NS: u64 = 86_400_000_000_000;
/// Tool calls in a turn. Its prompt and its stop are further hooks.
const CALLS: u64 = 6;
const HOOKS_OF_TURN: u64 = 2 + 2 * CALLS;
/// Number of parts of the day. The collector is killed after each.
const PARTS: u64 = 4;
/// Spans of a request.
const REQUEST: u64 = 512;
/// Maximum wait, with jitter, before a destination that was down is tried again.
const LONGEST_WAIT: Duration = Duration::from_secs(360);

/// Runs a day with about this number of hooks. One destination keeps about a third of their spans.
pub fn run(hooks: u64) -> Result<Report, String> {
    // At least enough turns for the limit to matter.
    let turns = (hooks / HOOKS_OF_TURN).max(REQUEST / CALLS);
    // Each turn is a span, and each call is one.
    let bound = turns * (1 + CALLS) / 3;
    let ports: [u16; 2] = free_ports();
    let world = World::new();
    world.write_config(&config(ports, bound));
    let start = now() - DAY_NS;
    let mut journal = JournalWriter::new(world.state().join("journal"));
    for part in 0..PARTS {
        let collector = Collector::start(&world);
        for turn in turns * part / PARTS..turns * (part + 1) / PARTS {
            write_turn(&mut journal, turn, start + DAY_NS / turns * turn);
        }
        journal.flush().unwrap();
        collector.drained(Duration::from_secs(600));
        collector.kill();
    }
    let collector = Collector::start(&world);
    let settled = settled(&world, turns);
    they_wait(&world, settled.len() as u64, bound);

    let keeps_all = Receiver::test_agent_at(ports[0])?;
    let keeps_some = Receiver::test_agent_at(ports[1])?;
    for name in ["all", "some"] {
        collector.post(&format!("exporters/{name}/retry"), &Value::Null).unwrap();
    }
    eventually("nothing waits any more", Duration::from_secs(600), || {
        let [all, some] = destinations(&world);
        if all["pending"] == 0 && some["pending"] == 0 {
            return Ok(());
        }
        Err(format!("{all:#} {some:#}\n{}", collector::log(&world)))
    });
    let [all, some] = destinations(&world);
    assert_eq!(all["lost"], serde_json::json!({}));
    let lost = some["lost"]["overflow"].as_u64().unwrap();
    assert_eq!(some["lost"], serde_json::json!({ "overflow": lost }));
    in_order(&keeps_all, &settled);
    in_order(&keeps_some, &settled[lost as usize..]);
    let kept = settled.len() as u64 - lost;
    assert!(kept >= bound, "{kept} of {bound} that may wait arrived");
    Ok(format!(
        "{} hooks of a day, {} kills, {} spans: a destination without a bound got all of them, one that keeps {bound} got the \
         newest {kept}, {lost} counted; in order, each once",
        turns * HOOKS_OF_TURN,
        PARTS,
        settled.len(),
    ))
}

fn config([all, some]: [u16; 2], bound: u64) -> String {
    let destination = |name: &str, port: u16, bound: u64| {
        format!(
            "[[destination]]\nname = \"{name}\"\nendpoint = \"http://127.0.0.1:{port}\"\n\
             protocol = \"http/protobuf\"\nbackfill = \"all\"\nbacklog_max_spans = {bound}\n"
        )
    };
    format!(
        "[trace]\nsession_idle = \"5s\"\ngeneration_idle = \"2s\"\n{}{}",
        destination("all", all, 100_000_000),
        destination("some", some, bound)
    )
}

/// A conversation of one turn.
fn write_turn(journal: &mut JournalWriter, turn: u64, at: u64) {
    let mut hook = 0;
    let mut write = |event: &str, more: &str| {
        let body = format!(
            "{{\"conversation_id\":\"00000000-0000-4000-8000-{turn:012}\",\
             \"generation_id\":\"00000000-0000-4000-9000-{turn:012}\",\"hook_event_name\":\"{event}\",{more},\
             \"cursor_version\":\"3.7.19\",\"workspace_roots\":[\"/home/dev/work\"]}}"
        );
        journal.append(at + hook * 20_000_000, event, body.as_bytes()).unwrap();
        hook += 1;
    };
    write("beforeSubmitPrompt", "\"prompt\":\"Tidy the shelf.\",\"attachments\":[]");
    for call in 0..CALLS {
        let call = format!(
            "\"tool_name\":\"Shell\",\"tool_use_id\":\"call-{turn}-{call}\",\"tool_input\":{{\"command\":\"ls {call}\"}}"
        );
        write("preToolUse", &call);
        write("postToolUse", &format!("{call},\"tool_output\":\"shelf\",\"duration\":15"));
    }
    write("stop", "\"status\":\"completed\",\"loop_count\":0");
}

/// The ids of all spans in the order in which they settled, once every turn has.
#[track_caller]
fn settled(world: &World, turns: u64) -> Vec<String> {
    let db = Connection::open_with_flags(
        world.state().join("hookspan.db"),
        OpenFlags::SQLITE_OPEN_READ_ONLY,
    )
    .unwrap();
    let sql = "SELECT lower(hex(s.id)) FROM settled q JOIN span s ON s.row = q.span ORDER BY q.seq";
    let mut find = db.prepare(sql).unwrap();
    let open = "SELECT count(*) FROM unsettled";
    eventually("every span has settled", Duration::from_secs(120), || {
        let open: u64 = db.query_row(open, [], |row| row.get::<_, i64>(0)).unwrap() as u64;
        let ids: Vec<String> =
            find.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        if open == 0 && ids.len() as u64 >= turns * (1 + CALLS) {
            Ok(ids)
        } else {
            Err(format!("{} settled, {open} open", ids.len()))
        }
    })
}

/// Checks that `status` shows both destinations as unreachable, and that the next attempt is near.
#[track_caller]
fn they_wait(world: &World, settled: u64, bound: u64) {
    eventually("both destinations wait", Duration::from_secs(120), || {
        let [all, some] = destinations(world);
        // A request that was already built is kept whole, so the limit may be exceeded by one request.
        let few = some["pending"].as_u64().is_some_and(|pending| pending < bound + REQUEST);
        if all["pending"] == settled && few && all["state"] == "retry" {
            return Ok(());
        }
        Err(format!("{settled} settled: {all:#} {some:#}"))
    });
    let db = Connection::open_with_flags(
        world.state().join("hookspan.db"),
        OpenFlags::SQLITE_OPEN_READ_ONLY,
    )
    .unwrap();
    let sql = "SELECT max(not_before_ns) FROM export_position";
    let next: i64 = db.query_row(sql, [], |row| row.get(0)).unwrap();
    let wait = Duration::from_nanos((next as u64).saturating_sub(now()));
    assert!(wait <= LONGEST_WAIT, "the next attempt is {wait:?} away");
}

fn destinations(world: &World) -> [Value; 2] {
    let status = world.json(&["status", "--json"]);
    let listed = status["destinations"].as_array().cloned().unwrap_or_default();
    ["all", "some"]
        .map(|name| listed.iter().find(|one| one["name"] == name).cloned().unwrap_or_default())
}

/// Checks that exactly these spans came, once each, in this order.
#[track_caller]
fn in_order(receiver: &Receiver, expected: &[String]) {
    let place: BTreeMap<&str, usize> =
        expected.iter().enumerate().map(|(place, id)| (id.as_str(), place)).collect();
    let mut requests: Vec<Vec<usize>> = receiver
        .deliveries()
        .iter()
        .map(|spans| {
            let places = spans.iter().map(|span| place.get(span.id.as_str()).copied());
            places.map(|found| found.expect("a span that was not to come")).collect()
        })
        .collect();
    // The receiver lists the latest request first.
    requests.reverse();
    let came: Vec<usize> = requests.concat();
    let once: Vec<usize> = (0..expected.len()).collect();
    let mut sorted = came.clone();
    sorted.sort_unstable();
    assert!(sorted == once, "{} spans came, {} were to", came.len(), once.len());
    // Within a request, spans of a session stand together. From one request to the next, the order must not go back.
    let ends =
        |request: &Vec<usize>| (request.iter().min().copied(), request.iter().max().copied());
    for pair in requests.windows(2) {
        assert!(ends(&pair[0]).1 < ends(&pair[1]).0, "a request came before an earlier one");
    }
}
