//! Tests notices about agents. Nothing may be sent unless the configuration asks for it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use e2e_support::collector::Collector;
use e2e_support::player;
use e2e_support::wait::eventually;
use e2e_support::world::World;

const PATIENCE: Duration = Duration::from_secs(60);

/// A turn that ended, as the shim gets it.
fn turn(world: &World, number: u32) {
    // A host once sent the stop of a turn thirteen times (claude-code#9602).
    let stop = || ("stop", json!({"status": "completed"}));
    let prompt = json!({"prompt": "the plan nobody may read"});
    for (event, own) in [("beforeSubmitPrompt", prompt), stop(), stop(), stop()] {
        let mut body = json!({
            "hook_event_name": event, "conversation_id": "c1", "session_id": "c1", "generation_id": format!("g{number}"),
            "model": "gpt-5.5", "cursor_version": "3.18.25", "workspace_roots": ["/w/harbour"],
        });
        body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        assert_eq!(player::hook(world, event, body.to_string().as_bytes()).code, Some(0));
    }
}

/// The objects that the command wrote, one per line.
fn told(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn told_times(file: &Path, times: usize) -> Vec<Value> {
    eventually("a notice", PATIENCE, || match told(file) {
        all if all.len() >= times => Ok(all),
        all => Err(format!("{all:?}")),
    })
}

fn command(world: &World, more: &str) -> std::path::PathBuf {
    let file = world.scratch("told");
    let script = format!("cat >>{0}; echo >>{0}", file.display());
    world.write_config(&format!(
        "[notify.command]\nargv = [\"sh\", \"-c\", \"{script}\"]\nkinds = [\"finished\"]\n{more}"
    ));
    file
}

#[test]
fn nobody_is_told_anything_unless_the_configuration_asks_for_it() {
    let world = World::new();
    let collector = Collector::start(&world);
    turn(&world, 1);
    collector.drained(PATIENCE);
    assert!(!world.state().join("notify.json").exists());
    assert_eq!(world.json(&["status", "--json"])["notices"], json!({}));
    let refused = world.run(&["notify", "test"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("[notify.desktop]"), "{refused:?}");
}

#[test]
fn a_turn_is_told_once_without_content_also_after_a_restart() {
    let world = World::new();
    let file = command(&world, "");
    let collector = Collector::start(&world);
    turn(&world, 1);
    let first = told_times(&file, 1);
    assert_eq!((&first[0]["kind"], &first[0]["session"]), (&json!("finished"), &json!("c1")));
    assert!(first[0]["url"].as_str().unwrap().ends_with("/s/c1"), "{first:?}");
    collector.stop();
    let collector = Collector::start(&world);
    turn(&world, 2);
    // When the notice of the second turn arrives, a second notice of the first turn would have arrived before.
    let all = told_times(&file, 2);
    assert_eq!(all.len(), 2, "{all:?}");
    let text = fs::read_to_string(&file).unwrap();
    let kept = fs::read_to_string(world.state().join("notify.json")).unwrap();
    for secret in ["plan", "harbour"] {
        assert!(!text.contains(secret), "{text}");
        assert!(!kept.contains(secret), "{kept}");
    }
    assert!(!kept.contains("c1"), "a deleted session leaves no id: {kept}");
    assert_eq!(world.json(&["status", "--json"])["notices"]["command"]["sent"], 2);
    collector.stop();
}

#[test]
fn content_goes_where_it_is_asked_for() {
    let world = World::new();
    let file = command(&world, "content = true\n");
    let collector = Collector::start(&world);
    turn(&world, 1);
    let content = told_times(&file, 1)[0]["content"].clone();
    assert_eq!(
        (&content["project"], &content["prompt"]),
        (&json!("harbour"), &json!("the plan nobody may read"))
    );
    drop(collector);
}

/// Answers one request with `status`, and passes its head and body to the test.
fn server(status: &'static str) -> (u16, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let request = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut got = Vec::new();
        let mut piece = [0; 4_096];
        // The body is one JSON object.
        while !got.ends_with(b"}") {
            let n = stream.read(&mut piece).unwrap();
            got.extend_from_slice(&piece[..n]);
            assert!(n > 0, "{}", String::from_utf8_lossy(&got));
        }
        let location = "location: http://127.0.0.1:9/elsewhere\r\n";
        write!(
            stream,
            "HTTP/1.1 {status}\r\n{location}content-length: 0\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        String::from_utf8(got).unwrap()
    });
    (port, request)
}

#[test]
fn a_webhook_gets_the_object_and_a_redirect_is_not_followed() {
    for (status, code, said) in [
        ("204 No Content", 0, "webhook: sent"),
        ("307 Temporary Redirect", 1, "redirects are not followed"),
    ] {
        let world = World::new().with_env("HOOK_KEY", "s3cret");
        let (port, request) = server(status);
        world.write_config(&format!(
            "[notify.webhook]\nurl = \"http://127.0.0.1:{port}/x\"\nheaders = {{ authorization = \"Bearer env:HOOK_KEY\" }}\n"
        ));
        let tried = world.run(&["notify", "test"]);
        let request = request.join().unwrap();
        assert_eq!(tried.code, code, "{tried:?}");
        assert!(tried.stdout.contains(said), "{tried:?}");
        assert!(request.starts_with("POST /x HTTP/1.1\r\n"), "{request}");
        assert!(request.to_lowercase().contains("authorization: bearer s3cret"), "{request}");
        let body: Value = serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!((&body["kind"], body.get("content")), (&json!("waiting"), None));
        // Neither the key nor the address is shown.
        let shown = world.ok(&["config", "show"]);
        assert!(!shown.contains("s3cret") && !shown.contains(&port.to_string()), "{shown}");
    }
}

#[test]
fn a_way_that_fails_is_counted_and_told_by_status_and_doctor() {
    let world = World::new();
    world.write_config("[notify.command]\nargv = [\"/no/such/program\"]\nkinds = [\"finished\"]\n");
    let collector = Collector::start(&world);
    turn(&world, 1);
    let way = eventually("a failure", PATIENCE, || {
        let way = world.json(&["status", "--json"])["notices"]["command"].clone();
        if way["failed"] == 1 { Ok(way) } else { Err(way.to_string()) }
    });
    assert!(way["last_error"].as_str().unwrap().contains("/no/such/program"), "{way}");
    assert!(world.run(&["status"]).stdout.contains("1 failed"));
    let doctor = world.run(&["doctor", "--json"]);
    assert!(doctor.stdout.contains("notices.failing"), "{doctor:?}");
    drop(collector);
}
