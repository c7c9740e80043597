//! Tests rebuilds: from the raw log, interrupted, and after deletions.

use super::*;

#[test]
fn a_rebuild_gives_the_same_tables_and_the_same_export_queue() {
    let reference = reference();
    let world = World::new();
    let mut engine = world.engine();
    play(&mut engine, &stream(), 4);
    finish(&mut engine);
    let queue =
        "SELECT hex(s.id), q.seq FROM settled q JOIN span s ON s.row = q.span ORDER BY q.seq";
    let before = rows(&Connection::open(&world.path).unwrap(), queue);
    engine.store().start_rebuild("again").unwrap();
    drop(engine);
    let mut engine = world.engine();
    finish(&mut engine);
    engine.take(Batch { horizon: Horizon::End(clock::now()), ..Batch::default() }).unwrap();
    assert_eq!(tables(&world.path), reference);
    let db = Connection::open(&world.path).unwrap();
    assert_eq!(rows(&db, queue), before);
    assert_eq!(rows(&db, "SELECT * FROM settled_before"), Vec::<Value>::new());
    assert_eq!(rows(&db, "SELECT value FROM state WHERE key = 'epoch'"), [json!(["again"])]);
    let malformed =
        "SELECT value FROM counter WHERE key IN ('malformed', 'unknown_event') ORDER BY key";
    assert_eq!(rows(&db, malformed), [json!([1]), json!([1])]);
    let contract = "SELECT substr(key, 1, 14), substr(key, instr(key, ' ') + 1), value FROM counter
         WHERE key GLOB 'unknown_*.*' ORDER BY key";
    let new = [
        json!(["unknown_event.", "noSuchEvent", 1]),
        json!(["unknown_field.", "never_seen_before:number", 3]),
    ];
    assert_eq!(rows(&db, contract), new, "counted anew, not twice");
}

#[test]
fn an_interrupted_rebuild_goes_on_where_it_was() {
    let reference = reference();
    let world = World::new();
    let mut engine = world.engine();
    play(&mut engine, &stream(), 4);
    finish(&mut engine);
    engine.store().start_rebuild("again").unwrap();
    let (stop, stopped) = bounded::<()>(0);
    drop(stop);
    let store = Store::open(&world.path).unwrap();
    let mut cut_short =
        Engine::new(store, hookspan_core::Config::default(), Signals::default(), stopped);
    assert!(cut_short.catch_up(|_, _| {}).is_err());
    drop(cut_short);
    let mut engine = world.engine();
    finish(&mut engine);
    assert_eq!(tables(&world.path), reference);
}

#[test]
fn a_rebuild_behind_a_deletion_knows_what_calls_are_about() {
    // The last hook belongs to `b`. After the deletion, the highest used number belongs to no hook.
    rebuilt_behind_a_deletion("a", "Shell make 1");
    rebuilt_behind_a_deletion("b", "Shell make 0");
}

#[track_caller]
fn rebuilt_behind_a_deletion(gone: &str, first: &str) {
    let world = World::new();
    let mut engine = world.engine();
    let shell = |second: i64, conversation: &str| {
        let call = format!("call-{second}");
        let input = json!({"command": format!("make {second}")});
        let own = json!({"tool_name": "Shell", "tool_use_id": call, "tool_input": input});
        event(second, conversation, "g", "preToolUse", &own)
    };
    let hooks = (0..20).map(|second| shell(second, if second % 2 == 0 { "a" } else { "b" }));
    play(&mut engine, &hooks.collect::<Vec<_>>(), 7);
    finish(&mut engine);
    engine.delete(&Selection::sessions(&[gone.to_owned()]), Duration::from_secs(5)).unwrap();
    let labels = "SELECT label FROM span WHERE label LIKE '%make%' AND subject_seq IS NULL ORDER BY start_ns";
    let found = |world: &World| rows(&Connection::open(&world.path).unwrap(), labels);
    let before = found(&world);
    assert_eq!((before.len(), &before[0]), (10, &json!([first])));
    engine.store().start_rebuild("again").unwrap();
    drop(engine);
    finish(&mut world.engine());
    assert_eq!(found(&world), before);
}
