//! Tests the way of evidence from Cursor's database to the tree of spans.

use crossbeam_channel::{Receiver, bounded, never};
use hookspan_core::{Span, SpanId, Timestamp};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::*;
use crate::engine::{Engine, Horizon, Signals};
use crate::store::read;
use crate::store::write::Store;

const START: i64 = 1_780_000_000_000_000_000;

struct World {
    temp: tempfile::TempDir,
    engine: Engine,
    readers: Readers,
    questions: Receiver<Question>,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("hookspan.db");
        let (ask, questions) = bounded(64);
        let signals = Signals { questions: Some(ask), ..Signals::default() };
        let store = Store::open(&path).unwrap();
        let mut engine = Engine::new(store, hookspan_core::Config::default(), signals, never());
        engine.restore().unwrap();
        Self { temp, engine, readers: Readers::new(path), questions }
    }

    fn cursor(&self) -> (CursorStore, Connection) {
        let path = self.temp.path().join("state.vscdb");
        let db = Connection::open(&path).unwrap();
        db.execute_batch(
            "CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, value TEXT);
             CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB);",
        )
        .unwrap();
        (CursorStore::new(path), db)
    }

    fn take(&mut self, arrivals: Vec<Arrival>) {
        self.engine.take(Batch { arrivals, ..Batch::default() }).unwrap();
    }

    /// Answers all open questions. Returns what was counted.
    fn answer(&mut self, cursor: &mut CursorStore) -> Vec<(&'static str, u64)> {
        let mut counted = Vec::new();
        while let Ok(question) = self.questions.try_recv() {
            let found = answer(&self.readers, Some(cursor), &question);
            counted.extend(found.counts);
            self.take(found.arrivals);
        }
        counted
    }

    fn spans(&self) -> Vec<Span> {
        let spans = self.readers.with(|db| read::spans(db, "root", 1_000)).unwrap();
        spans.into_iter().map(|(_, span)| span).collect()
    }

    /// Call, link and source of each subagent, and the paths read below it.
    fn subagents(&self) -> Vec<(String, String, String, Vec<String>)> {
        let spans = self.spans();
        let text = |span: &Span, key: &str| {
            let value = span.attributes.iter().find(|a| a.key == key).map(|a| &a.value);
            match value {
                Some(hookspan_core::Value::Str(text)) => text.to_string(),
                _ => String::new(),
            }
        };
        let below = |id: SpanId| {
            spans.iter().filter(move |span| span.parent == Some(id)).map(|s| text(s, "file.path"))
        };
        let agents = spans.iter().filter(|span| text(span, "hookspan.kind") == "subagent");
        let mut agents: Vec<_> = agents
            .map(|span| {
                (
                    text(span, "cursor.subagent.id"),
                    text(span, "hookspan.subagent.link"),
                    text(span, "hookspan.subagent.link_source"),
                    below(span.id).collect(),
                )
            })
            .collect();
        agents.sort();
        agents
    }
}

fn hook(millis: i64, conversation: &str, generation: &str, name: &str, own: &Value) -> Arrival {
    let mut body = json!({
        "hook_event_name": name, "conversation_id": conversation, "generation_id": generation,
        "model": "model-x", "cursor_version": "3.7.19", "workspace_roots": ["/w"], "transcript_path": null,
    });
    for (key, value) in own.as_object().unwrap() {
        body[key] = value.clone();
    }
    let hook = Hook {
        observed_at: Timestamp(START + millis * 1_000_000),
        source: HookSource::Import,
        body: body.to_string().into_bytes(),
        ..Hook::default()
    };
    let digest = Sha256::digest(&hook.body);
    Preparer::default().prepare(std::array::from_fn(|at| digest[at]), 0, hook)
}

/// Two subagents at once with the same task. No hook tells which child belongs to which call.
fn two_children() -> Vec<Arrival> {
    let call = |id: &str| {
        json!({"tool_name": "Subagent", "tool_use_id": id,
               "tool_input": {"prompt": "look", "subagent_type": "explore"}})
    };
    let agent = |id: &str| {
        json!({"subagent_id": id, "tool_call_id": id, "subagent_type": "explore", "task": "look",
               "parent_conversation_id": "root", "status": "completed", "duration_ms": 900})
    };
    let read = |id: &str| {
        json!({"tool_name": "Read", "tool_use_id": id, "tool_input": {"file_path": format!("/w/{id}")},
               "tool_output": "{}", "duration": 1.0})
    };
    vec![
        hook(0, "root", "g1", "beforeSubmitPrompt", &json!({"prompt": "go"})),
        hook(100, "root", "g1", "preToolUse", &call("call_1\nfc_1")),
        hook(101, "root", "g1", "preToolUse", &call("call_2")),
        hook(110, "root", "root", "subagentStart", &agent("call_1\nfc_1")),
        hook(111, "root", "root", "subagentStart", &agent("call_2")),
        hook(500, "child-a", "ga", "postToolUse", &read("a")),
        hook(510, "child-b", "gb", "postToolUse", &read("b")),
        hook(1_000, "root", "root", "subagentStop", &agent("call_1\nfc_1")),
        hook(1_001, "root", "root", "subagentStop", &agent("call_2")),
        hook(1_100, "root", "g1", "stop", &json!({"status": "completed"})),
    ]
}

fn info(parent: &str, call: &str) -> String {
    json!({"subagentInfo": {"parentComposerId": parent, "toolCallId": call}}).to_string()
}

#[test]
fn what_cursors_database_says_becomes_the_link() {
    let mut world = World::new();
    let (mut cursor, db) = world.cursor();
    let sql = "INSERT INTO composerHeaders VALUES (?1, ?2)";
    db.execute(sql, ("child-a", info("root", "call_2"))).unwrap();
    db.execute(sql, ("child-b", info("root", "call_1\nfc_1"))).unwrap();
    world.take(two_children());
    let unproven = world.subagents();
    assert!(unproven.iter().all(|(_, _, source, _)| source != "store"), "{unproven:?}");
    assert_eq!(world.answer(&mut cursor), [("evidence_store", 2)]);
    let agent = |call: &str, path: &str| {
        (call.to_owned(), "exact".to_owned(), "store".to_owned(), vec![path.to_owned()])
    };
    let expected = [agent("call_1\nfc_1", "/w/b"), agent("call_2", "/w/a")];
    assert_eq!(world.subagents(), expected);

    // The raw log contains the evidence now. Neither a rebuild nor another question needs the database again.
    drop(db);
    std::fs::remove_file(world.temp.path().join("state.vscdb")).unwrap();
    world.engine.store().start_rebuild("again").unwrap();
    let store = Store::open(&world.temp.path().join("hookspan.db")).unwrap();
    let signals = Signals::default();
    world.engine = Engine::new(store, hookspan_core::Config::default(), signals, never());
    world.engine.restore().unwrap();
    world.engine.catch_up(|_, _| {}).unwrap();
    world.engine.take(Batch { horizon: Horizon::End(clock::now()), ..Batch::default() }).unwrap();
    assert_eq!(world.subagents(), expected);
}

#[test]
fn a_parent_that_names_its_children_proves_the_parent_alone() {
    let mut world = World::new();
    let (mut cursor, db) = world.cursor();
    let ids = json!({"subagentComposerIds": ["child-a"]}).to_string();
    db.execute("INSERT INTO cursorDiskKV VALUES ('composerData:root', ?1)", [ids]).unwrap();
    let mut arrivals = two_children();
    arrivals.retain(|arrival| *arrival.reading.conversation != *"child-b");
    world.take(arrivals);
    assert_eq!(world.answer(&mut cursor), [("evidence_store", 1)]);
    // It is not known which of the two calls started the child, so neither is chosen.
    let agents = world.subagents();
    assert!(
        !agents.iter().any(|(call, _, source, _)| source == "store" && call.starts_with("call_")),
        "{agents:?}"
    );
    let held = world.spans().iter().filter(|span| &*span.conversation == "child-a").count();
    assert!(held >= 1, "the child's call is shown, below the turn");
}

#[test]
fn a_call_that_no_hook_told_of_hides_nobody() {
    let mut world = World::new();
    let (mut cursor, db) = world.cursor();
    let sql = "INSERT INTO composerHeaders VALUES (?1, ?2)";
    db.execute(sql, ("child-a", info("root", "call_9"))).unwrap();
    db.execute(sql, ("child-b", info("<script>", "call_2"))).unwrap();
    world.take(two_children());
    assert_eq!(world.answer(&mut cursor), [("evidence_store", 1)]);
    for child in ["child-a", "child-b"] {
        assert!(world.spans().iter().any(|span| &*span.conversation == child), "{child}");
    }
}

#[test]
fn a_locked_or_damaged_database_costs_an_answer_and_is_left_alone_for_a_while() {
    let mut world = World::new();
    let (mut cursor, db) = world.cursor();
    db.execute_batch("BEGIN EXCLUSIVE").unwrap();
    world.take(two_children());
    let counted = world.answer(&mut cursor);
    assert_eq!(counted.first(), Some(&("evidence_store_failed", 1)));
    let question = Question {
        parent: "root".into(),
        transcript_path: String::new(),
        candidates: vec!["child-a".into()],
    };
    let again = answer(&world.readers, Some(&mut cursor), &question);
    assert_eq!(again.counts, [("evidence_store_skipped", 1)]);
    assert!(again.arrivals.is_empty());
}

#[test]
fn questions_come_thirty_a_minute_at_most() {
    let world = World::new();
    let (mut cursor, _db) = world.cursor();
    let question = Question {
        parent: "root".into(),
        transcript_path: String::new(),
        candidates: vec!["nobody".into()],
    };
    let skipped = (0..40).map(|_| answer(&world.readers, Some(&mut cursor), &question).counts);
    assert_eq!(skipped.flatten().count(), 10);
}
