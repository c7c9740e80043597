//! Tests a session that is reloaded after its eviction: its history is read again, no matter what happens meanwhile.

use std::path::Path;

use super::*;

/// A session is evicted after an hour and continues after a day, while an old recording is being imported.
fn comes_back(
    world: &World,
    config: &hookspan_core::Config,
    meanwhile: impl FnOnce(&Path),
) -> Vec<Vec<Value>> {
    let mut engine = world.engine_with(config.clone());
    play(&mut engine, &long_session(), 50);
    engine.pass(Timestamp(START + 50_000 * SECOND)).unwrap();
    assert!(!engine.sessions.holds("long"), "it has left");
    meanwhile(&world.path);

    let call = json!({"tool_name": "Read", "tool_use_id": "t", "tool_input": {"path": "/old"}});
    let stop = json!({"status": "completed"});
    let take = |engine: &mut Engine, arrivals: Vec<Arrival>, until: i64| {
        let horizon = Horizon::At(Timestamp(START + until * SECOND));
        engine.take(Batch { arrivals, horizon, ..Batch::default() }).unwrap();
    };
    let old = |second: i64, name: &str, own: &Value| event(second, "old", "o1", name, own);
    let first = vec![
        old(-1_000, "beforeSubmitPrompt", &json!({"prompt": "long ago"})),
        // It settles two seconds later.
        old(-990, "stop", &stop),
        event(86_400, "long", "again", "beforeSubmitPrompt", &json!({"prompt": "again"})),
    ];
    take(&mut engine, first, -990);
    let second = vec![
        event(86_402, "long", "again", "stop", &stop),
        event(86_403, "long", "g7", "postToolUse", &call),
    ];
    take(&mut engine, second, -989);
    finish(&mut engine);
    tables(&world.path)
}

/// While a long history is replayed, time passes only for the session of that history.
#[test]
fn a_long_history_neither_swallows_nor_overtakes_what_another_session_has_to_tell() {
    let all = hookspan_core::Config::default();
    let few = hookspan_core::Config { settled_hooks: 8, ..all.clone() };
    let [short, long] = [all, few].map(|config| comes_back(&World::new(), &config, |_| {}));
    assert_same(&long, &short, "a history read in one go, and one in which time passes");
}

#[test]
fn a_history_that_cannot_be_read_to_its_end_is_read_on_where_it_ended() {
    let all = hookspan_core::Config::default();
    let few = hookspan_core::Config { settled_hooks: 8, ..all.clone() };
    for config in [all, few] {
        let whole = comes_back(&World::new(), &config, |_| {});
        let world = World::new();
        // The column's text is not valid, so SQLite refuses to read these rows until they are repaired.
        let broken =
            "UPDATE raw_hook SET argument = CAST(x'ff' AS TEXT) WHERE seq IN (3, 40, 51, 120)";
        let read = comes_back(&world, &config, |path| {
            let db = Connection::open(path).unwrap();
            db.execute_batch(broken).unwrap();
            std::thread::spawn(move || {
                for seq in [3, 40, 51, 120] {
                    std::thread::park_timeout(Duration::from_millis(100));
                    let repair = "UPDATE raw_hook SET argument = NULL WHERE seq = ?1";
                    db.busy_timeout(Duration::from_secs(10)).unwrap();
                    db.execute(repair, [seq]).unwrap();
                }
            });
        });
        let refused = "SELECT value FROM counter WHERE key = 'store_retries'";
        let refused = rows(&Connection::open(&world.path).unwrap(), refused);
        assert!(refused[0][0].as_u64().unwrap() >= 4, "{refused:?}");
        assert_same(&read, &whole, "read at once, and in five attempts");
    }
}
