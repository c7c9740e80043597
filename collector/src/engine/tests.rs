//! Tests the engine with a real database: no matter what happens, the resulting tables are the same.

use std::path::PathBuf;

use crossbeam_channel::{bounded, never};
use hookspan_core::{Hook, HookSource};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::*;
use crate::clock;
use crate::store::write::Arrival;
use crate::store::write::Preparer;

mod rebuild;
mod recall;
mod receive;
mod refusals;
mod tables;

use tables::{assert_same, rows, tables};

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_780_000_000 * SECOND;

struct World {
    _temp: tempfile::TempDir,
    path: PathBuf,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("hookspan.db");
        Self { _temp: temp, path }
    }

    fn engine(&self) -> Engine {
        self.engine_with(hookspan_core::Config::default())
    }

    fn engine_with(&self, config: hookspan_core::Config) -> Engine {
        let store = Store::open(&self.path).unwrap();
        let mut engine = Engine::new(store, config, Signals::default(), never());
        engine.restore().unwrap();
        engine.catch_up(|_, _| {}).unwrap();
        engine
    }
}

fn event(second: i64, conversation: &str, generation: &str, name: &str, own: &Value) -> Arrival {
    let mut body = json!({
        "hook_event_name": name, "conversation_id": conversation, "generation_id": generation,
        "model": "model-x", "cursor_version": "3.7.19", "workspace_roots": ["/home/dev/project"],
    });
    for (key, value) in own.as_object().unwrap() {
        body[key] = value.clone();
    }
    let hook = Hook {
        observed_at: Timestamp(START + second * SECOND),
        source: HookSource::Import,
        body: body.to_string().into_bytes(),
        ..Hook::default()
    };
    let mut id = [0; 16];
    id[..8].copy_from_slice(&hook.observed_at.0.to_be_bytes());
    Preparer::default().prepare(id, 0, hook)
}

/// Two sessions side by side, with calls that succeed and fail, a subagent with its own conversation, an unknown event
/// and a broken one. The second session continues after a day.
fn stream() -> Vec<Arrival> {
    let (a, b, child) = ("session-a", "session-b", "child-of-a");
    let call =
        |id: &str| json!({"tool_name": "Read", "tool_use_id": id, "tool_input": {"path": "/x"}});
    let done = |id: &str| {
        let mut done = call(id);
        done["duration"] = json!(850.25);
        done["never_seen_before"] = json!(1);
        done["tool_output"] = json!("{\"ok\": true}");
        done
    };
    let mut events = vec![
        event(0, a, "a1", "beforeSubmitPrompt", &json!({"prompt": "do it"})),
        event(1, b, "b1", "beforeSubmitPrompt", &json!({"prompt": "and this"})),
        event(2, a, "a1", "preToolUse", &call("t1")),
        event(3, a, "a1", "postToolUse", &done("t1")),
        event(4, b, "b1", "preToolUse", &call("t2")),
        event(
            5,
            b,
            "b1",
            "postToolUseFailure",
            &json!({"tool_name": "Read", "tool_use_id": "t2",
            "error_message": "no such file", "failure_type": "error"}),
        ),
        event(
            6,
            a,
            "a1",
            "subagentStart",
            &json!({"subagent_id": "s1", "tool_call_id": "s1",
            "subagent_type": "explore", "task": "look around", "parent_conversation_id": a}),
        ),
        event(8, child, "c1", "preToolUse", &call("t3")),
        event(9, child, "c1", "postToolUse", &done("t3")),
        event(10, "", "", "noSuchEvent", &json!({})),
        event(
            12,
            a,
            "a1",
            "subagentStop",
            &json!({"subagent_id": "s1", "tool_call_id": "s1",
            "subagent_type": "explore", "status": "completed", "duration_ms": 5_000,
            "parent_conversation_id": a}),
        ),
        event(
            13,
            a,
            "a1",
            "afterAgentResponse",
            &json!({"text": "done", "input_tokens": 10,
            "output_tokens": 3, "cache_read_tokens": 2, "cache_write_tokens": 1}),
        ),
        event(14, a, "a1", "stop", &json!({"status": "completed"})),
        event(86_400, b, "b2", "beforeSubmitPrompt", &json!({"prompt": "again"})),
        event(86_401, b, "b2", "preToolUse", &call("t4")),
        event(86_402, b, "b2", "postToolUse", &done("t4")),
        event(86_403, b, "b2", "stop", &json!({"status": "completed"})),
    ];
    let mut broken = event(11, a, "a1", "stop", &json!({}));
    let hook = Hook { body: b"{\"broken".to_vec(), ..broken.hook.clone() };
    broken = Preparer::default().prepare(broken.id, 0, hook);
    events.insert(10, broken);
    events
}

/// Takes `arrivals` in batches of `size`. After each batch, time passes up to its last hook.
fn play(engine: &mut Engine, arrivals: &[Arrival], size: usize) {
    for batch in arrivals.chunks(size) {
        let last = batch.last().unwrap().hook.observed_at;
        let horizon = Horizon::At(last);
        engine.take(Batch { arrivals: batch.to_vec(), horizon, ..Batch::default() }).unwrap();
    }
}

/// Lets all deadlines pass.
fn finish(engine: &mut Engine) {
    engine.pass(Timestamp(START + 10 * 86_400 * SECOND)).unwrap();
    assert_eq!(engine.due(Timestamp(START)), None);
}

fn reference() -> Vec<Vec<Value>> {
    let world = World::new();
    let mut engine = world.engine();
    play(&mut engine, &stream(), 1_000);
    finish(&mut engine);
    drop(engine);
    let tables = tables(&world.path);
    let sizes: Vec<_> = tables.iter().map(Vec::len).collect();
    assert!(sizes.iter().all(|size| *size > 0), "{sizes:?}");
    tables
}

#[test]
fn how_hooks_are_cut_into_batches_does_not_show() {
    let reference = reference();
    for size in [1, 2, 5] {
        let world = World::new();
        let mut engine = world.engine();
        play(&mut engine, &stream(), size);
        finish(&mut engine);
        assert_eq!(tables(&world.path), reference, "batches of {size}");
    }
}

#[test]
fn a_restart_after_any_hook_equals_none() {
    let reference = reference();
    for at in 1..stream().len() {
        let world = World::new();
        let (before, after) = (&stream()[..at], &stream()[at..]);
        play(&mut world.engine(), before, 3);
        let mut engine = world.engine();
        play(&mut engine, after, 3);
        finish(&mut engine);
        for (table, wanted) in tables(&world.path).iter().zip(&reference) {
            assert_eq!(table, wanted, "restart after {at}");
        }
    }
}

#[test]
fn hooks_that_come_again_change_nothing() {
    let reference = reference();
    let world = World::new();
    let mut engine = world.engine();
    let all = stream();
    play(&mut engine, &all[..9], 4);
    // After a crash the journal is read again from the last position.
    play(&mut engine, &all[2..], 5);
    finish(&mut engine);
    let again = engine.take(Batch { arrivals: all.clone(), ..Batch::default() }).unwrap();
    assert_eq!((again.counts.new, again.counts.malformed), (0, 0));
    assert_eq!(again.counts.duplicate, all.len() as u64);
    assert_eq!(tables(&world.path), reference);
}

/// If a settled row changes, the sums that contain it change, too. All tables of a live and a rebuilt store are equal.
#[test]
fn time_that_passes_in_the_middle_of_a_turn_does_not_show_in_the_sums() {
    let reference = reference();
    for at in 1..stream().len() {
        let world = World::new();
        let mut engine = world.engine();
        let (before, after) = (&stream()[..at], &stream()[at..]);
        play(&mut engine, before, 1_000);
        finish(&mut engine);
        play(&mut engine, after, 1_000);
        finish(&mut engine);
        let live = tables(&world.path);
        assert_same(&live, &reference, &format!("everything settled after {at}"));
    }
}

/// Hooks arrive in parts of any size, with all time passing after some of them. Then a session is deleted. A rebuild of
/// the rest gives the same tables.
#[test]
fn sums_are_those_of_the_rows_however_the_hooks_came() {
    let mut random = 1_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % below
    };
    for round in 0..12 {
        let world = World::new();
        let mut engine = world.engine();
        let mut rest = stream();
        while !rest.is_empty() {
            let part: Vec<_> = rest.drain(..1 + next(rest.len().min(6))).collect();
            play(&mut engine, &part, 1 + next(4));
            if next(3) == 0 {
                finish(&mut engine);
            }
        }
        finish(&mut engine);
        let gone = ["session-a", "session-b", "nobody"][round % 3].to_owned();
        engine.delete(&Selection::sessions(&[gone]), Duration::from_secs(5)).unwrap();
        let live = tables(&world.path);
        engine.store().start_rebuild("again").unwrap();
        drop(engine);
        finish(&mut world.engine());
        assert_same(&live, &tables(&world.path), &format!("round {round}"));
    }
}

#[test]
fn listeners_hear_what_was_committed() {
    let world = World::new();
    let mut engine = world.engine();
    let mut notices = engine.signals.notices.subscribe();
    let settled = engine.signals.settled.subscribe();
    play(&mut engine, &stream()[..3], 3);
    let notice = notices.try_recv().unwrap();
    let roots: Vec<_> = notice.sessions.iter().map(|(root, _)| root.as_str()).collect();
    assert_eq!(roots, ["session-a", "session-b"]);
    assert!(!settled.has_changed().unwrap());
    play(&mut engine, &stream()[3..], 100);
    finish(&mut engine);
    assert!(settled.has_changed().unwrap());
}

#[test]
fn hooks_that_come_twice_under_two_ids_are_counted_and_folded_once() {
    let (once, twice) = (World::new(), World::new());
    let arrivals = stream();
    let copies = |arrivals: &[Arrival]| -> Vec<Arrival> {
        let copy = |arrival: &Arrival| {
            let mut copy = arrival.clone();
            copy.id[0] ^= 0x80;
            copy.hook.observed_at = copy.hook.observed_at.plus(7_000_000);
            copy.event =
                copy.event.map(|event| hookspan_core::Event { at: copy.hook.observed_at, ..event });
            copy
        };
        arrivals.iter().flat_map(|arrival| [arrival.clone(), copy(arrival)]).collect()
    };
    let counted = |world: &World, arrivals: &[Arrival]| {
        let mut engine = world.engine();
        play(&mut engine, arrivals, 7);
        finish(&mut engine);
        drop(engine);
        let db = Connection::open(&world.path).unwrap();
        let counter = "SELECT coalesce(sum(value), 0) FROM counter WHERE key = 'duplicate_content'";
        let calls = "SELECT sum(tool_calls), sum(input), sum(generations) FROM session";
        (rows(&db, counter)[0][0].as_u64().unwrap(), rows(&db, calls))
    };
    let (before, of_once) = counted(&once, &arrivals);
    let (after, of_twice) = counted(&twice, &copies(&arrivals));
    assert_eq!(after - before, arrivals.len() as u64);
    assert_eq!(of_once, of_twice);
}

#[test]
fn hooks_beyond_the_bound_of_their_session_are_stored_and_counted() {
    let world = World::new();
    let arrivals = stream();
    let config = hookspan_core::Config { session_hooks: 4, ..hookspan_core::Config::default() };
    let mut engine = world.engine_with(config);
    play(&mut engine, &arrivals, 7);
    finish(&mut engine);
    drop(engine);
    let db = Connection::open(&world.path).unwrap();
    let count = |query: &str| rows(&db, query)[0][0].as_u64().unwrap();
    assert_eq!(count("SELECT count(*) FROM raw_hook"), arrivals.len() as u64);
    let left_out = count("SELECT value FROM counter WHERE key = 'session_full'");
    assert!(left_out > 0 && left_out < arrivals.len() as u64, "{left_out}");
}

/// Turns of one session, some time apart, each with a subagent; and late hooks of turns that settled long before.
fn long_session() -> Vec<Arrival> {
    let call =
        |id: &str| json!({"tool_name": "Read", "tool_use_id": id, "tool_input": {"path": "/x"}});
    let agent = |id: &str| json!({"subagent_id": id, "subagent_type": "explore", "task": id});
    let mut events = Vec::new();
    for turn in 0..30 {
        let (at, name, child) = (turn * 20, format!("g{turn}"), format!("child-{turn}"));
        let (of_child, own) = (format!("t{turn}"), format!("s{turn}"));
        events.extend([
            event(at, "long", &name, "beforeSubmitPrompt", &json!({"prompt": "go"})),
            event(at + 1, "long", &name, "subagentStart", &agent(&own)),
            event(at + 2, &child, "cg", "preToolUse", &call(&of_child)),
            event(at + 3, &child, "cg", "postToolUse", &call(&of_child)),
            event(at + 4, "long", &name, "subagentStop", &agent(&own)),
            event(at + 5, "long", "", "beforeReadFile", &json!({"file_path": "/x"})),
            event(
                at + 6,
                "long",
                &name,
                "stop",
                &json!({"status": "completed", "input_tokens": turn, "output_tokens": 1}),
            ),
        ]);
    }
    events.push(event(700, "long", "g3", "postToolUse", &call("late")));
    events.push(event(701, "child-5", "cg", "postToolUse", &call("late, too")));
    events
}

#[test]
fn a_session_whose_settled_turns_leave_memory_gives_the_same_tables_live_restarted_and_rebuilt() {
    let arrivals = long_session();
    // Returns the tables of a store after a restart, the tables after a rebuild, and the number of reloaded turns.
    let live = |config: &hookspan_core::Config, size: usize| {
        let world = World::new();
        let mut engine = world.engine_with(config.clone());
        let (before, after) = arrivals.split_at(101);
        play(&mut engine, before, size);
        let held = engine.sessions.held();
        drop(engine);
        let mut engine = world.engine_with(config.clone());
        play(&mut engine, after, size);
        finish(&mut engine);
        let (lived, reloads) = (tables(&world.path), engine.sessions.reloads());
        engine.store.start_rebuild("another").unwrap();
        drop(engine);
        finish(&mut world.engine_with(config.clone()));
        (lived, tables(&world.path), held, reloads)
    };
    let all = hookspan_core::Config::default();
    let few = hookspan_core::Config { settled_hooks: 8, ..all.clone() };
    for size in [1, 9] {
        let (lived, rebuilt, held, reloads) = live(&all, size);
        assert_eq!((held, reloads), (101, 0));
        let (left, again, held, reloads) = live(&few, size);
        assert!(held < 70 && reloads > 0, "{held} held, {reloads} read again");
        assert_same(&left, &lived, &format!("in batches of {size}"));
        assert_same(&again, &rebuilt, &format!("rebuilt after batches of {size}"));
    }
}
