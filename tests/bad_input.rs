//! Tests input that is broken or too large, and files that are in the way.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use e2e_support::collector::{self, Collector};
use e2e_support::fixture::{Body, Fixture};
use e2e_support::player::{self, Reply};
use e2e_support::wait::{SOON, eventually};
use e2e_support::world::World;
use e2e_support::{binaries, verify};

#[test]
fn every_odd_body_is_answered_stored_verbatim_and_counted_if_unreadable() {
    let prompt = event("beforeSubmitPrompt", &json!({"prompt": "hi", "attachments": []}));
    let cases: Vec<(&str, &str, Vec<u8>, bool)> = vec![
        ("empty", "stop", Vec::new(), true),
        ("a byte order mark", "beforeSubmitPrompt", [b"\xef\xbb\xbf", &prompt[..]].concat(), false),
        ("CRLF at the end", "beforeSubmitPrompt", [&prompt[..], b"\r\n"].concat(), false),
        ("cut in the middle", "beforeSubmitPrompt", prompt[..prompt.len() / 2].to_vec(), true),
        ("not JSON", "preToolUse", b"Usage: hook [OPTIONS]".to_vec(), true),
        ("an array", "stop", b"[1,2,3]".to_vec(), true),
        ("an event nobody knows", "afterMoonrise", event("afterMoonrise", &json!({})), false),
        ("a hundred thousand levels", "stop", nested(100_000), false),
        ("text that is not UTF-8", "stop", b"\xff\xfe\xfd".to_vec(), true),
        ("ten megabytes", "postToolUse", large(10_000_000), false),
    ];
    let world = World::new();
    let collector = Collector::start(&world);
    for (name, argument, body, _) in &cases {
        let reply = player::hook(&world, argument, body);
        let right = player::neutral_reply(argument);
        assert_eq!((reply.code, reply.stdout.as_str()), (Some(0), right), "{name}: {reply:?}");
    }
    collector.committed(cases.len());
    let stored = verify::raw_bodies(&world);
    for ((name, _, body, _), stored) in cases.iter().zip(&stored) {
        if std::str::from_utf8(body).is_ok() {
            assert!(stored == body, "{name}: {} bytes stored of {}", stored.len(), body.len());
        }
    }
    let unreadable = cases.iter().filter(|(_, _, _, unreadable)| *unreadable).count();
    assert_eq!(world.json(&["status", "--json"])["malformed"], unreadable);
}

#[test]
fn a_host_that_never_closes_stdin_gets_its_answer_and_the_event_is_kept() {
    let world = World::new();
    let collector = Collector::start(&world);
    let mut child = player::start(&world, "stop");
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(&event("stop", &json!({"status": "completed", "loop_count": 0}))).unwrap();
    stdin.flush().unwrap();
    // `wait` would close the pipe, so the status is polled.
    let status = eventually("the shim gives up waiting", SOON, || {
        child.try_wait().unwrap().ok_or_else(|| "still running".into())
    });
    assert_eq!(status.code(), Some(0));
    collector.committed(1);
}

#[test]
fn half_a_value_on_an_open_stdin_is_given_up_after_five_seconds() {
    let world = World::new();
    let mut child = player::start(&world, "preToolUse");
    child.stdin.as_mut().unwrap().write_all(b"{\"conversation_id\": \"half").unwrap();
    let started = Instant::now();
    let status = eventually("the shim gives up waiting", SOON, || {
        child.try_wait().unwrap().ok_or_else(|| "still running".into())
    });
    assert_eq!(status.code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(9), "{:?}", started.elapsed());
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert_eq!(answer, player::neutral_reply("preToolUse"));
}

#[test]
fn the_shim_answers_when_it_cannot_write_anywhere() {
    let world = World::new();
    world.shim();
    let body = event("preToolUse", &json!({"tool_name": "Shell", "tool_input": {"command": "ls"}}));
    let shim = world.scratch("shim");
    fs::copy(world.shim(), &shim).unwrap();
    for broken in ["missing", "a file"] {
        let state = world.scratch(broken);
        if broken == "a file" {
            fs::write(&state, "").unwrap();
        }
        let mut child = world
            .command(&shim)
            .arg("--dir")
            .arg(&state)
            .arg("preToolUse")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        player::feed(&mut child, &body);
        let reply = Reply::from(child.wait_with_output().unwrap());
        let right = Reply {
            code: Some(0),
            stdout: player::neutral_reply("preToolUse").into(),
            stderr: String::new(),
        };
        assert_eq!(reply, right, "state directory: {broken}");
    }
}

#[test]
fn a_closed_stdout_does_not_harm_the_shim() {
    let world = World::new();
    let mut child = player::start(&world, "stop");
    drop(child.stdout.take());
    player::feed(&mut child, &event("stop", &json!({"status": "completed"})));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let collector = Collector::start(&world);
    collector.committed(1);
}

#[test]
fn a_port_in_use_is_named() {
    let world = World::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let finished = world.run(&["serve", "--listen", &address]);
    assert_ne!(finished.code, 0);
    assert!(finished.stderr.contains(&address), "{finished:#?}");
    assert!(finished.stderr.contains("--listen"), "it does not say what to do: {finished:#?}");
}

#[test]
fn a_second_collector_is_refused_and_the_first_goes_on() {
    let world = World::new();
    let first = Collector::start(&world);
    let second = world.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_ne!(second.code, 0);
    assert!(second.stderr.contains("running"), "{second:#?}");
    player::play_one(&world, &Fixture::own().bodies[0]);
    first.committed(1);
}

#[test]
fn rebuild_is_refused_while_a_collector_runs() {
    let world = World::new();
    let _collector = Collector::start(&world);
    let finished = world.run(&["rebuild"]);
    assert_ne!(finished.code, 0);
    assert!(finished.stderr.contains("running"), "{finished:#?}");
}

#[test]
fn an_unknown_key_in_the_configuration_is_named_with_its_line() {
    let world = World::new();
    let file = world.write_config("# my settings\n\nflavour = \"vanilla\"\n");
    let file = file.to_str().unwrap();
    for command in [&["config", "check"][..], &["serve", "--listen", "127.0.0.1:0"], &["sessions"]]
    {
        let finished = world.run(command);
        assert_eq!(finished.code, 2, "{command:?}: {finished:#?}");
        for part in ["flavour", file, "3"] {
            assert!(finished.stderr.contains(part), "{command:?} hides {part}: {finished:#?}");
        }
    }
}

#[test]
fn an_unreachable_destination_is_shown_and_blocks_nothing() {
    let world = World::new()
        .with_env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://127.0.0.1:{}", closed_port()))
        .with_env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
    let fixture = Fixture::own().settle_in(&world);
    let collector = Collector::start(&world);
    player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    verify::session_is_right(&world, &fixture);
    let shown = eventually("the failure is shown", SOON, || {
        let status = world.json(&["status", "--json"]);
        let destination = status["destinations"][0].clone();
        let failed = destination["state"] == "retry" && destination["last_error"].is_string();
        if failed {
            Ok(destination)
        } else {
            Err(format!("{status:#}\n{}", collector::log(&world)))
        }
    });
    assert!(shown["pending"].as_u64().unwrap() > 0, "{shown:#}");
    let losses = world.json(&["status", "--json"])["losses"].clone();
    let lost: u64 = losses.as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(lost, 0, "{losses:#}");
}

#[test]
fn a_broken_line_of_an_import_is_counted_and_stops_nothing() {
    let world = World::new();
    let good = String::from_utf8(event("stop", &json!({"status": "completed"}))).unwrap();
    let text = format!(
        "{{\"observed_at\": \"2026-06-10T09:00:00Z\", \"event\": {good}}}\nno JSON\n{good}\n"
    );
    let file = world.write_home("mixed.jsonl", &text);
    let counts = world.json(&["import", "--json", file.to_str().unwrap()]);
    let counts = ["new", "duplicate", "malformed"].map(|key| counts[key].as_u64().unwrap());
    assert_eq!(counts.iter().sum::<u64>(), 3, "new, duplicate, malformed: {counts:?}");
    assert_eq!(counts[2], 1, "new, duplicate, malformed: {counts:?}");
    assert!(verify::raw_bodies(&world).contains(&b"no JSON".to_vec()), "the broken line is gone");
}

#[test]
fn no_payload_text_reaches_the_log() {
    let world = World::new();
    let collector = Collector::start(&world);
    let secret = "hunter2-the-secret-of-the-payload";
    let body = event("beforeSubmitPrompt", &json!({"prompt": secret, "attachments": []}));
    player::play_one(&world, &Body { event: "beforeSubmitPrompt".into(), bytes: body });
    let broken = format!("{{\"broken\": \"{secret}").into_bytes();
    player::play_one(&world, &Body { event: "stop".into(), bytes: broken });
    collector.committed(2);
    drop(collector);
    assert!(!collector::log(&world).contains(secret));
}

#[test]
fn an_unknown_command_line_says_what_is_wrong() {
    let world = World::new();
    for arguments in [&["frobnicate"][..], &["serve", "--listen", "nonsense"], &["export"]] {
        let finished = world.run(arguments);
        assert_eq!(finished.code, 2, "{arguments:?}: {finished:#?}");
        assert!(finished.stdout.is_empty() && !finished.stderr.is_empty(), "{finished:#?}");
    }
    assert!(binaries::hookspan().exists());
}

/// A body with the envelope of a current Cursor.
fn event(name: &str, own: &Value) -> Vec<u8> {
    let mut body = json!({
        "conversation_id": "0f9e8d7c-6b5a-4948-8372-615f4e3d2c1b",
        "generation_id": "1a2b3c4d-5e6f-4708-8192-a3b4c5d6e7f8",
        "model": "default",
        "hook_event_name": name,
        "cursor_version": "3.7.19",
        "workspace_roots": ["/home/dev/src/lighthouse"],
    });
    body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    serde_json::to_vec(&body).unwrap()
}

fn large(bytes: usize) -> Vec<u8> {
    event(
        "postToolUse",
        &json!({"tool_name": "Read", "tool_input": {}, "tool_output": "x".repeat(bytes), "tool_use_id": "big"}),
    )
}

fn nested(levels: usize) -> Vec<u8> {
    let start = String::from_utf8(event("stop", &json!({"status": "completed"}))).unwrap();
    let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    format!("{},\"deep\":{deep}}}", start.strip_suffix('}').unwrap()).into_bytes()
}

/// A port that nobody listens on: it was bound once and released.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
