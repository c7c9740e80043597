//! Tests what terminals show: the outcome of a session, `digest`, `watch` and `statusline`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use e2e_support::binaries::project;
use e2e_support::collector::Collector;
use e2e_support::world::World;

/// A session of 2026-06-09 with two test runs, an edit, a commit and a pull request.
fn with_a_session() -> World {
    let world = World::new();
    let stream = project().join("collector/core/tests/streams/what-came-of-it.jsonl");
    world.ok(&["import", stream.to_str().unwrap()]);
    world
}

/// The output for `input`. Nothing may be printed to standard error.
fn statusline(world: &World, input: &str) -> String {
    let mut command: Command = world.command(&world.hookspan());
    command.arg("statusline").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program may have ended already.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_outcome_is_the_same_in_every_place() {
    let world = with_a_session();
    let expected = json!({
        "words": ["tests_passed", "pull_request", "committed"],
        "edits": 1, "tests_passed": 1, "tests_failed": 1,
        "pull_request": "https://git.example/acme/app/pull/17",
    });
    assert_eq!(world.json(&["sessions", "--json"])[0]["outcome"], expected);
    assert_eq!(world.json(&["show", "root-1", "--json"])["outcome"], expected);
    let shown = world.ok(&["show", "root-1"]);
    assert!(
        shown.contains("outcome: tests passed, PR #17, committed 2b2b2b2, 1 edit, 2 test runs"),
        "{shown}"
    );
    world.ok(&["rebuild"]);
    let collector = Collector::start(&world);
    assert_eq!(collector.get("sessions/root-1").unwrap()["outcome"], expected);
    assert_eq!(collector.get("sessions").unwrap()["items"][0]["outcome"], expected);
}

#[test]
fn a_digest_has_the_figures_of_the_api_and_of_stats() {
    let world = with_a_session();
    let day = world.json(&["digest", "--date", "2026-06-09", "--format", "json"]);
    let week = world.json(&["digest", "--week", "--date", "2026-06-12", "--format", "json"]);
    assert_eq!((&week["from"], &week["total"]), (&json!("2026-06-06"), &day["total"]));
    let project = &day["items"][0];
    assert_eq!(project["project"], "app");
    let wanted = json!([1, 1, 5, 1, 1, 1, 1, 1, 1, null]);
    let members = [
        "sessions",
        "turns",
        "calls",
        "errors",
        "edits",
        "tests_passed",
        "tests_failed",
        "commits",
        "pull_requests",
        "input_tokens",
    ];
    assert_eq!(Value::from_iter(members.map(|name| project[name].clone())), wanted);

    let collector = Collector::start(&world);
    let from_us = 1_780_963_200_000_000_u64;
    let period = format!("from_us={from_us}&to_us={}", from_us + 86_399_000_000);
    let digest = collector.get(&format!("digest?{period}")).unwrap();
    for name in members {
        assert_eq!(digest["total"][name], day["total"][name], "{name}");
        assert_eq!(digest["items"][0][name], project[name], "{name}");
    }
    let time = collector.get(&format!("time?{period}")).unwrap();
    for name in ["turns", "calls", "errors", "active_us", "input_tokens", "output_tokens"] {
        assert_eq!(digest["total"][name], time["total"][name], "{name}");
    }
    assert_eq!(digest["total"]["wait_us"], time["total"]["parts"]["wait_us"]);
    assert!(collector.get("digest?days=32").is_err());
    let turns = world.json(&[
        "stats",
        "--group",
        "kind",
        "--from",
        "2026-06-09",
        "--to",
        "2026-06-09",
        "--json",
    ]);
    let turns = turns.as_array().unwrap().iter().find(|row| row["name"] == "turn").unwrap();
    assert_eq!(turns["n"], day["total"]["turns"]);
    let markdown = world.ok(&["digest", "--date", "2026-06-09", "--format", "markdown"]);
    assert!(
        markdown.starts_with("## What was done on 2026-06-09\n\n1 session, 1 turn, 6.0s active"),
        "{markdown}"
    );
    assert!(world.ok(&["digest", "--date", "2026-06-08"]).is_empty());
}

#[test]
fn a_status_line_says_nothing_where_no_collector_runs_and_never_fails() {
    let empty = World::new();
    assert_eq!(statusline(&empty, ""), "");
    assert!(!empty.state().exists(), "it makes no state directory");
    let world = with_a_session();
    assert_eq!(statusline(&world, "{\"session_id\":\"root-1\"}"), "");
    let collector = Collector::start(&world);
    let of_one = statusline(&world, "{\"session_id\":\"root-1\",\"cwd\":\"/w/app\"}");
    assert_eq!(of_one, "– stale  1 turn  1 error  tests passed  PR #17  committed 2b2b2b2\n");
    for input in ["", "{\"session_id\":\"unknown\"}", "not JSON", "{\"session_id\":"] {
        assert_eq!(statusline(&world, input), "", "nothing happened lately: {input}");
    }
    drop(collector);
}

#[test]
fn watch_prints_one_picture_where_there_is_no_terminal() {
    let world = with_a_session();
    let shown = world.ok(&["watch"]);
    assert!(shown.contains("0 running  nothing needs you"), "{shown}");
    assert!(shown.contains("No collector is running") && !shown.contains('\x1b'), "{shown}");
}
