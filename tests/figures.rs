//! Checks the figures for single inputs: inputs that were once handled wrongly, and inputs of other programs and
//! machines.

use std::collections::BTreeMap;
use std::fs;

use rusqlite::Connection;
use serde_json::{Value, json};

use e2e_support::binaries::project;
use e2e_support::collector::Collector;
use e2e_support::mcp::Server;
use e2e_support::oracle::check::Differences;
use e2e_support::oracle::emit::{Hook, Ways, hooks};
use e2e_support::oracle::run::lines;
use e2e_support::oracle::tables::{compare, tables};
use e2e_support::oracle::truth::story;
use e2e_support::world::World;

/// 2026-06-09T10:00:00Z, milliseconds since 1970.
const TEN: u64 = 1_780_999_200_000;

/// A hook of Cursor, `at` milliseconds after ten o'clock.
fn hook(at: i64, name: &str, own: Value) -> Hook {
    let mut body = json!({
        "hook_event_name": name, "conversation_id": "c1", "session_id": "c1", "generation_id": "g1",
        "model": "gpt-5.5", "cursor_version": "3.18.25", "workspace_roots": ["/w/app"],
    });
    if let (Some(body), Value::Object(own)) = (body.as_object_mut(), own) {
        body.extend(own);
    }
    Hook { at: TEN.checked_add_signed(at).unwrap(), body }
}

/// A turn from 0 to 60 s around `inside`.
fn turn(inside: Vec<Hook>) -> Vec<Hook> {
    let mut all = vec![hook(0, "beforeSubmitPrompt", json!({"prompt": "go"}))];
    all.extend(inside);
    all.push(hook(60_000, "stop", json!({"status": "completed"})));
    all
}

fn import(world: &World, hooks: &[Hook]) {
    let file = world.scratch("hooks.jsonl");
    fs::write(&file, lines(hooks)).unwrap();
    world.ok(&["import", file.to_str().unwrap()]);
}

/// The rows of `stats` by name, for all time.
fn stats(world: &World, group: &str) -> BTreeMap<String, Value> {
    let rows = world.json(&["stats", "--group", group, "--days", "3660", "--json"]);
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| (row["name"].as_str().unwrap().to_owned(), row.clone())).collect()
}

fn only_session(world: &World) -> Value {
    let sessions = world.json(&["sessions", "--json"]);
    assert_eq!(sessions.as_array().map(Vec::len), Some(1), "{sessions:#}");
    sessions[0].clone()
}

#[test]
fn a_child_of_no_known_parent_counts_the_same_everywhere_and_says_so() {
    let world = World::new();
    let stream = "collector/core/tests/streams/subagent-parallel-ambiguous.jsonl";
    world.ok(&["import", project().join(stream).to_str().unwrap()]);
    let session = only_session(&world);
    let counts = |one: &Value, names: [&str; 4]| names.map(|name| one[name].clone());
    let wanted = [json!(1), json!(2), json!(2), json!(0)];
    assert_eq!(counts(&session, ["generations", "tool_calls", "subagents", "errors"]), wanted);
    let shown = world.ok(&["show", "last"]);
    assert_eq!(shown.matches("subagent, parent unknown").count(), 2, "{shown}");
    assert_eq!(world.json(&["show", "last", "--json"])["turns"][0]["tool_calls"], 2);
    assert_eq!(stats(&world, "tool")["Read"]["n"], 2);
    let mut server = Server::greeted(&world);
    let told = server.call("show_session", &json!({"session": "last"}));
    let told = &told["structuredContent"]["session"];
    assert_eq!(counts(told, ["turns", "calls", "subagents", "errors"]), wanted);
    assert_eq!(server.end(), Some(0));
    let collector = Collector::start(&world);
    let id = session["id"].as_str().unwrap();
    let one = collector.get(&format!("sessions/{id}")).unwrap();
    assert_eq!(counts(&one, ["turns", "calls", "subagents", "errors"]), wanted);
    let turns = collector.get(&format!("sessions/{id}/turns")).unwrap();
    assert_eq!((&turns["items"][0]["calls"], &turns["items"][0]["errors"]), (&json!(2), &json!(0)));
    let rows = collector.get(&format!("sessions/{id}/spans?format=rows&limit=100")).unwrap();
    let labels = rows["items"].as_array().unwrap().iter().map(|row| row["label"].clone());
    assert_eq!(labels.filter(|label| label == "subagent, parent unknown").count(), 2, "{rows:#}");
}

#[test]
fn a_failed_subagent_is_one_error_everywhere() {
    let world = World::new();
    let stream = "collector/core/tests/streams/subagent-without-child.jsonl";
    world.ok(&["import", project().join(stream).to_str().unwrap()]);
    let session = only_session(&world);
    assert_eq!(session["errors"], 1, "{session:#}");
    assert_eq!(world.json(&["show", "last", "--json"])["turns"][0]["errors"], 1);
    let errors = |group: &str| -> u64 {
        stats(&world, group).values().filter_map(|row| row["errors"].as_u64()).sum()
    };
    assert_eq!((errors("kind"), errors("tool")), (1, 0));
    let otlp = world.ok(&["export", "--all", "--format", "otlp-json", "--content", "off"]);
    let sums: Vec<_> = otlp.split("\"hookspan.session.errors\"").skip(1).collect();
    assert!(!sums.is_empty());
    for sum in sums {
        assert!(sum.starts_with(",\"value\":{\"intValue\":\"1\"}"), "{}", &sum[..60]);
    }
    // The call's own status stays: who looks at this span must see that it did not succeed.
    assert_eq!(otlp.matches("\"subagent_error\"").count(), 2);
    let collector = Collector::start(&world);
    let id = session["id"].as_str().unwrap();
    assert_eq!(collector.get(&format!("sessions/{id}")).unwrap()["errors"], 1);
    let groups = collector.get("errors").unwrap();
    assert_eq!((&groups["failures"], &groups["items"][0]["kind"]), (&json!(1), &json!("subagent")));
    assert_eq!(groups["items"].as_array().map(Vec::len), Some(1), "{groups:#}");
    let rows = collector.get(&format!("sessions/{id}/spans?format=rows")).unwrap();
    let failed: Vec<_> =
        rows["items"].as_array().unwrap().iter().filter(|row| row["status"] == "error").collect();
    let repeats = failed.iter().filter(|row| row["flags"].as_u64().unwrap() & 16 != 0);
    assert_eq!((failed.len(), repeats.count()), (2, 1), "{rows:#}");
}

#[test]
fn an_import_gives_the_same_in_whatever_parts_it_comes() {
    // Sessions that overlap, with delegations. An import makes a batch of 1,000 hooks.
    let mut all: Vec<Hook> =
        (0..90).flat_map(|seed| hooks(&story(seed, 1), Ways::default())).collect();
    all.sort_by_key(|hook| hook.at);
    assert!(all.len() > 2_500, "{}", all.len());
    let told = |part: usize| {
        let world = World::new();
        for part in all.chunks(part) {
            import(&world, part);
        }
        let sessions = world.json(&["sessions", "--json"]);
        assert!(sessions.as_array().unwrap().iter().any(|one| one["subagents"] != 0));
        let mut shown = vec![sessions];
        for group in ["tool", "model", "kind", "project"] {
            shown.push(world.json(&["stats", "--group", group, "--days", "3660", "--json"]));
        }
        // The tables tell whose child each conversation is, and below which call.
        (shown, tables(&world.state().join("hookspan.db")))
    };
    let (shown, whole) = told(all.len());
    for part in [400, 999, 1_000, 1_001, 2_500] {
        let (shown_in_parts, in_parts) = told(part);
        let mut found = Differences::default();
        compare(&format!("{part} hooks at a time"), &in_parts, &whole, &mut found);
        assert!(found.0.is_empty(), "{}", found.0.join("\n"));
        assert_eq!(shown_in_parts, shown, "{part} hooks at a time");
    }
}

#[test]
fn a_child_that_is_imported_alone_is_in_the_session_that_asked_for_it() {
    let start = json!({"subagent_id": "d1", "subagent_type": "explore", "task": "look", "tool_call_id": "d1"});
    let mut stop = start.clone();
    stop["status"] = json!("completed");
    let task = json!({"tool_name": "Task", "tool_use_id": "d1", "tool_input": {"prompt": "look"}});
    let child = |mut hook: Hook| {
        hook.body["conversation_id"] = json!("e1");
        hook.body["session_id"] = json!("e1");
        hook.body["generation_id"] = json!("f1");
        hook
    };
    let call = shell(2_000, "x", 500, json!({"duration": 400})).map(child);
    let told = |parts: &[&[Hook]]| {
        let world = World::new();
        parts.iter().for_each(|part| import(&world, part));
        let one = only_session(&world);
        assert_eq!(stats(&world, "tool")["Shell"]["n"], 1);
        ["id", "generations", "tool_calls", "subagents"].map(|name| one[name].clone())
    };
    let mut all = turn(vec![
        hook(1_000, "preToolUse", task),
        hook(1_200, "subagentStart", start),
        hook(9_000, "subagentStop", stop),
    ]);
    all.splice(3..3, call);
    let whole = told(&[&all]);
    assert_eq!(whole, [json!("c1"), json!(1), json!(1), json!(1)]);
    // Between two parts, the machine's clock advances by months.
    assert_eq!(told(&[&all[..3], &all[3..5], &all[5..]]), whole);
    assert_eq!(told(&[&all[..3], &all[3..4], &all[4..5], &all[5..]]), whole);
}

#[test]
fn a_path_with_a_space_is_one_path_to_the_groups_of_errors() {
    let read = |at: i64, path: &str| {
        let call =
            json!({"tool_name": "Read", "tool_use_id": path, "tool_input": {"file_path": path}});
        let mut failed = call.clone();
        failed["error_message"] = json!(format!("no such file {path}"));
        failed["failure_type"] = json!("error");
        [hook(at, "preToolUse", call), hook(at + 50, "postToolUseFailure", failed)]
    };
    let world = World::new();
    let inside = [read(100, "/w/app/my notes/a b.rs"), read(300, "/w/app/other dir/c.rs")].concat();
    import(&world, &turn([inside, read(500, "/w/app/d.rs").to_vec()].concat()));
    let collector = Collector::start(&world);
    let groups = collector.get("errors?limit=50").unwrap();
    assert_eq!(groups["items"].as_array().map(Vec::len), Some(1), "{groups:#}");
    assert_eq!(groups["items"][0]["count"], 3);
}

#[test]
fn prune_deletes_what_the_words_choose_and_nothing_else() {
    let world = World::new();
    let sessions = [("c1", "/w/app"), ("c2", "/w/scratch"), ("c3", "/w/app-two")];
    for (id, folder) in sessions {
        let mut all = turn(Vec::new());
        for hook in &mut all {
            hook.body["conversation_id"] = json!(id);
            hook.body["session_id"] = json!(id);
            hook.body["workspace_roots"] = json!([folder]);
        }
        import(&world, &all);
    }
    // This hook belongs to no session, and is kept.
    import(&world, &[Hook { at: TEN, body: json!({"hook_event_name": "workspaceOpen"}) }]);
    let listed = || {
        let sessions = world.json(&["sessions", "--json"]);
        let mut ids: Vec<Value> =
            sessions.as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
        ids.sort_by_key(ToString::to_string);
        ids
    };
    let plan = world.json(&["prune", "--project", "app", "--dry-run", "--json"]);
    assert_eq!((&plan["sessions"], &plan["hooks"]), (&json!(1), &json!(2)), "{plan:#}");
    let none = ["prune", "--project", "app", "--older-than", "36500d", "--yes", "--json"];
    assert_eq!(world.json(&none)["sessions"], 0);
    assert_eq!(listed(), ["c1", "c2", "c3"]);
    let mut gone = world.json(&["prune", "--project", "app", "--yes", "--json"]);
    gone["deleted"] = json!(false);
    assert_eq!(gone, plan, "it deletes what it planned");
    assert_eq!(listed(), ["c2", "c3"]);
    let count = ["prune", "--older-than", "0s", "--dry-run", "--json"];
    assert_eq!(world.json(&count)["hooks"], 5, "a hook of nobody stays");
    let wrong = world.run(&["prune", "--kind", "generation", "--yes"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("--kind: one of session"), "{wrong:#?}");
    let both = world.run(&["prune", "--project", "app", "--damaged", "--yes"]);
    assert_eq!(both.code, 2, "{both:#?}");
}

#[test]
fn a_store_of_older_rules_is_told_once_until_it_is_rebuilt() {
    let world = World::new();
    import(&world, &turn(Vec::new()));
    let said = || {
        let status = world.run(&["status"]).stdout.matches("hookspan rebuild").count();
        let findings = world.json(&["doctor", "--json"]);
        let rules = findings.as_array().unwrap().iter().filter(|one| one["id"] == "database.rules");
        (status, world.json(&["status", "--json"])["older_rules"].clone(), rules.count())
    };
    assert_eq!(said(), (0, json!(false), 0));
    let db = Connection::open(world.state().join("hookspan.db")).unwrap();
    db.execute("UPDATE state SET value = '0' WHERE key = 'rules'", []).unwrap();
    drop(db);
    assert_eq!(said(), (1, json!(true), 1));
    world.ok(&["rebuild"]);
    assert_eq!(said(), (0, json!(false), 0));
}

/// A shell call. Its post hook has the fields `more`; no other field reports a duration.
fn shell(at: i64, id: &str, after: i64, more: Value) -> [Hook; 2] {
    let call = json!({"tool_name": "Shell", "tool_use_id": id, "tool_input": {"command": id}});
    let mut post = call.clone();
    if let (Some(post), Value::Object(more)) = (post.as_object_mut(), more) {
        post.extend(more);
    }
    [hook(at, "preToolUse", call), hook(at + after, "postToolUse", post)]
}

#[test]
fn durations_in_odd_forms_are_lengths_or_unknown_and_never_nonsense() {
    let length = |more: Value| {
        let world = World::new();
        import(&world, &turn(shell(1_000, "x", 2_000, more).to_vec()));
        let row = stats(&world, "tool")["Shell"].clone();
        assert_eq!(row["n"], 1);
        row["total_us"].clone()
    };
    for (more, wanted) in [
        (json!({"duration": 1_500}), json!(1_500_000)),
        (json!({"duration_ms": 1_500}), json!(1_500_000)),
        (json!({"duration": 0.25}), json!(250)),
        // The duration is missing or not a number, so the time between the first and the last hook is used.
        (json!({}), json!(2_000_000)),
        (json!({"duration": null}), json!(2_000_000)),
        (json!({"duration": "soon"}), json!(2_000_000)),
        (json!({"duration": -5}), json!(2_000_000)),
        // The value is longer than the call was open. It has another unit, or means something else.
        (json!({"duration": 1_500_000_000_u64}), json!(2_000_000)),
        (json!({"duration": 1e300}), json!(2_000_000)),
    ] {
        assert_eq!(length(more.clone()), wanted, "{more}");
    }
}

#[test]
fn calls_without_a_post_count_and_have_no_length() {
    // A machine on which every hook after a call timed out: 391 beginnings and no end.
    let world = World::new();
    let pre = |n: i64| shell(100 + 100 * n, &format!("x{n}"), 0, json!({}))[0].clone();
    import(&world, &turn((0..391).map(pre).collect()));
    let row = stats(&world, "tool")["Shell"].clone();
    assert_eq!((&row["n"], &row["unknown"]), (&json!(391), &json!(391)), "{row}");
    assert_eq!(
        (&row["total_us"], &row["p50_us"], &row["max_us"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let shown = world.ok(&["stats", "--days", "3660"]);
    assert!(shown.contains("391      ?      ?"), "{shown}");
    let collector = Collector::start(&world);
    let turns = collector.get("sessions/c1/turns").unwrap();
    let parts = &turns["items"][0]["parts"];
    assert_eq!(
        (&parts["shell_us"], &parts["other_us"]),
        (&json!(0), &json!(60_000_000)),
        "{parts}"
    );
    assert_eq!(collector.get("sessions?tool=Shell&min_us=1").unwrap()["items"], json!([]));
    assert_eq!(collector.get("sessions?tool=Shell").unwrap()["items"][0]["calls"], 391);
}

#[test]
fn tokens_that_hosts_leave_out_are_unknown_and_cached_ones_count_once() {
    let session = |response: Value, stop: Value| {
        let world = World::new();
        let mut all = turn(vec![hook(50_000, "afterAgentResponse", response)]);
        let last = all.last_mut().unwrap();
        if let (Some(body), Value::Object(stop)) = (last.body.as_object_mut(), stop) {
            body.extend(stop);
        }
        import(&world, &all);
        let tokens = only_session(&world)["tokens"].clone();
        let collector = Collector::start(&world);
        let from = TEN * 1_000;
        let day = collector.get(&format!("time?from_us={from}&to_us={}", from + 1)).unwrap();
        let total = &day["total"];
        assert_eq!(
            (&total["input_tokens"], &total["output_tokens"]),
            (&tokens["input"], &tokens["output"])
        );
        ["input", "output", "cache_read", "cache_write"].map(|name| tokens[name].clone())
    };
    let none = Value::Null;
    let text = json!({"text": "done"});
    let with = |more: Value| {
        let mut response = text.clone();
        response.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        response
    };
    // Version 3.3: the response has the counts, the stop has none.
    assert_eq!(
        session(with(json!({"input_tokens": 13_431, "output_tokens": 67})), json!({})),
        [json!(13_431), json!(67), none.clone(), none.clone()]
    );
    // Version 3.8: both have the same counts, which must count once.
    let both = json!({"input_tokens": 17_674, "output_tokens": 220});
    assert_eq!(
        session(with(both.clone()), both),
        [json!(17_674), json!(220), none.clone(), none.clone()]
    );
    // The CLI of June 2026: input includes both cache parts, which must not be added again.
    let cached = json!({"input_tokens": 23_666, "output_tokens": 5, "cache_read_tokens": 23_617, "cache_write_tokens": 47});
    assert_eq!(session(text.clone(), cached), [json!(23_666), json!(5), json!(23_617), json!(47)]);
    // If no hook reports a count it is unknown; a reported 0 is 0.
    assert_eq!(
        session(text.clone(), json!({})),
        [none.clone(), none.clone(), none.clone(), none.clone()]
    );
    assert_eq!(
        session(text, json!({"input_tokens": 0, "output_tokens": 0})),
        [json!(0), json!(0), none.clone(), none]
    );
}

#[test]
fn an_answer_of_a_person_is_no_length_of_a_tool_anywhere() {
    let world = World::new();
    let stream = "collector/core/tests/streams/question-to-a-person.jsonl";
    world.ok(&["import", project().join(stream).to_str().unwrap()]);
    let lengths = |row: &Value| ["n", "total_us", "max_us"].map(|name| row[name].clone());
    let asked = [json!(1), json!(null), json!(null)];
    assert_eq!(lengths(&stats(&world, "tool")["AskQuestion"]), asked);
    let all = stats(&world, "kind")["tools"].clone();
    assert_eq!(
        [&all["n"], &all["unknown"], &all["total_us"]],
        [&json!(2), &json!(1), &json!(3_500)]
    );
    let collector = Collector::start(&world);
    let session = only_session(&world)["id"].as_str().unwrap().to_owned();
    // A word of the filter makes the collector read spans instead of sums.
    // 2026-10-05, the day of the stream.
    let from = 1_791_158_400_000_000_u64;
    let period = format!("from_us={from}&to_us={}", from + 86_400_000_000 - 1);
    for words in ["", "&kind=tools"] {
        let answer = collector.get(&format!("latency?group=tool&{period}{words}")).unwrap();
        let rows = answer["items"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == "AskQuestion").unwrap();
        assert_eq!((&row["n"], &row["total_us"]), (&json!(1), &json!(null)), "{answer:#}");
    }
    let path = collector.get(&format!("sessions/{session}/critical-path")).unwrap();
    let kinds = &path["by_kind"];
    assert!(kinds["wait"].as_i64().unwrap() > 239_000_000, "{path:#}");
    assert!(kinds["tools"].as_i64().unwrap() < 10_000, "{path:#}");
    let shown = world.json(&["show", "last", "--json"]);
    let parts = &shown["turns"][0]["parts_ns"];
    assert!(parts["tools"].as_i64().unwrap_or(0) < 10_000_000, "{shown:#}");
    assert!(parts["wait"].as_i64().unwrap() > 239_000_000_000, "{shown:#}");
}

#[test]
fn a_turn_belongs_to_the_utc_day_it_began_in_whatever_the_time_zone() {
    let world = World::new().with_env("TZ", "America/New_York");
    // In New York the clocks go back at 06:00 UTC of 2026-11-01; and 23:59:30 UTC is another day in Europe.
    let days = [1_793_512_799_000_u64, 1_793_516_399_000, 1_793_577_570_000];
    for (number, start) in days.into_iter().enumerate() {
        let id = format!("c{number}");
        let mut all = turn(shell(1_000, &id, 50_000, json!({"duration": 49_000})).to_vec());
        for hook in &mut all {
            hook.at = hook.at - TEN + start;
            hook.body["conversation_id"] = json!(id);
            hook.body["session_id"] = json!(id);
        }
        import(&world, &all);
    }
    let day = 86_400_000_u64;
    let first = days[0] / day * day * 1_000;
    let collector = Collector::start(&world);
    let period = format!("from_us={first}&to_us={}", first + 2 * day * 1_000 - 1);
    let time = collector.get(&format!("time?{period}")).unwrap();
    let turns = time["days"].as_array().unwrap().iter().map(|day| day["turns"].clone());
    assert_eq!(turns.collect::<Vec<_>>(), [json!(3), json!(0)], "{time:#}");
    assert_eq!(time["total"]["active_us"], 180_000_000);
    let row = collector.get(&format!("latency?group=tool&{period}")).unwrap()["items"][0].clone();
    assert_eq!((&row["n"], &row["total_us"]), (&json!(3), &json!(147_000_000)));
    // `to` includes its whole day and nothing of the next.
    let of = |from: &str, to: &str| {
        let words = ["sessions", "--json", "--from", from, "--to", to];
        world.json(&words).as_array().map(Vec::len)
    };
    assert_eq!(of("2026-11-01", "2026-11-01"), Some(3));
    assert_eq!(of("2026-11-03", "2026-11-03"), Some(0));
}

/// The number of turns in rows of percentiles by kind.
fn count_of_turns(rows: &Value) -> i64 {
    let turns = rows.as_array().unwrap().iter().find(|row| row["name"] == "turn");
    turns.map_or(0, |row| row["n"].as_i64().unwrap())
}

#[test]
fn days_of_the_terminal_and_of_a_period_are_those_of_a_zone() {
    // The clocks of New York go back on 2026-11-01. The last turn begins a second before its midnight, which is 05:00
    // UTC.
    let starts = [1_793_505_599_000_u64, 1_793_516_399_000, 1_793_595_599_000];
    let mut all = Vec::new();
    for (number, start) in starts.into_iter().enumerate() {
        let id = format!("c{number}");
        let mut turn = turn(shell(1_000, &id, 50_000, json!({"duration": 49_000})).to_vec());
        for hook in &mut turn {
            hook.at = hook.at - TEN + start;
            hook.body["conversation_id"] = json!(id);
            hook.body["session_id"] = json!(id);
        }
        all.append(&mut turn);
    }
    // The number of turns on three days; and a period of the middle one, in microseconds.
    for (zone, days, turns, period) in [
        (
            "America/New_York",
            ["2026-10-31", "2026-11-01", "2026-11-02"],
            [1, 2, 0],
            [1_793_505_600, 1_793_595_600],
        ),
        (
            "Asia/Kathmandu",
            ["2026-10-31", "2026-11-01", "2026-11-02"],
            [0, 2, 1],
            [1_793_470_500, 1_793_556_900],
        ),
    ] {
        let world = World::new().with_env("TZ", zone);
        import(&world, &all);
        for (day, turns) in days.into_iter().zip(turns) {
            let digest = world.json(&["digest", "--date", day, "--format", "json"]);
            assert_eq!(digest["total"]["turns"], turns, "{zone} {day}");
            let words = ["stats", "--group", "kind", "--from", day, "--to", day, "--json"];
            let rows = world.json(&words);
            assert_eq!(count_of_turns(&rows), turns, "{zone} {day}");
        }
        let week = world.json(&["digest", "--week", "--date", "2026-11-02", "--format", "json"]);
        assert_eq!(week["total"]["turns"], 3, "{zone}");
        let collector = Collector::start(&world);
        let [from_us, to_us] = period.map(|second: i64| second * 1_000_000);
        let asked = format!("from_us={from_us}&to_us={}", to_us - 1);
        let latency = collector.get(&format!("latency?group=kind&{asked}")).unwrap();
        assert_eq!(count_of_turns(&latency["items"]), turns[1], "{zone}");
        let bounds = (&latency["from_us"], &latency["to_us"]);
        assert_eq!(bounds, (&json!(from_us), &json!(to_us)), "{zone}");
        let digest = collector.get(&format!("digest?{asked}")).unwrap();
        assert_eq!(digest["total"]["turns"], turns[1], "{zone}");
        let minutes = (to_us - from_us) / 60_000_000;
        let heat = collector
            .get(&format!("latency/heatmap?group=tool&{asked}&columns={minutes}"))
            .unwrap();
        assert_eq!(heat["columns"], 1, "{zone}");
    }
}

#[test]
fn a_clock_that_is_set_back_gives_no_negative_figure() {
    let world = World::new();
    let mut inside = shell(1_000, "x", -30_000, json!({"duration": 1_500})).to_vec();
    inside.extend(shell(2_000, "y", -90_000, json!({})));
    import(&world, &turn(inside));
    let row = stats(&world, "tool")["Shell"].clone();
    let us = |name: &str| row[name].as_i64().unwrap_or(0);
    assert!(us("max_us") >= 0 && us("max_us") <= 60_000_000 && us("total_us") >= 0, "{row}");
    let session = only_session(&world);
    assert!(session["active_ms"].as_i64().unwrap() >= 0, "{session:#}");
}

#[test]
fn a_call_of_claude_code_has_the_length_that_its_hook_measured() {
    let world = World::new();
    let claude = |at: i64, name: &str, own: Value| {
        let mut body = json!({
            "hook_event_name": name, "session_id": "s1", "cwd": "/w/app", "permission_mode": "default",
            "transcript_path": "/home/dev/.claude/projects/-w-app/s1.jsonl",
        });
        body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        Hook { at: TEN.checked_add_signed(at).unwrap(), body }
    };
    let bash =
        json!({"tool_name": "Bash", "tool_use_id": "toolu_01", "tool_input": {"command": "make"}});
    let mut post = bash.clone();
    post["duration_ms"] = json!(4_187);
    post["tool_response"] = json!({"stdout": "", "stderr": "", "interrupted": false});
    // A lone post hook without id, input and duration.
    let alone = json!({"tool_name": "Grep", "tool_result": "3 files"});
    import(
        &world,
        &[
            claude(0, "UserPromptSubmit", json!({"prompt": "go"})),
            claude(1_000, "PreToolUse", bash),
            // A person was asked for ten minutes.
            claude(605_000, "PostToolUse", post),
            claude(606_000, "PostToolUse", alone),
            claude(607_000, "Stop", json!({"stop_hook_active": false})),
        ],
    );
    let rows = stats(&world, "tool");
    assert_eq!(rows["Bash"]["total_us"], 4_187_000, "{rows:#?}");
    assert_eq!((&rows["Grep"]["n"], &rows["Grep"]["unknown"]), (&json!(1), &json!(1)));
    assert_eq!(rows["Grep"]["total_us"], Value::Null);
    let session = only_session(&world);
    assert_eq!((&session["tool_calls"], &session["tokens"]["input"]), (&json!(2), &Value::Null));
}
