//! OTLP of other programs is stored, survives crashes, and is refused where it must be.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e_support::collector::Collector;
use e2e_support::wait::{SOON, eventually};
use e2e_support::world::World;
use e2e_support::{binaries, machine, player, skip};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

/// A world whose collector receives on a free port.
fn receiving() -> World {
    let world = World::new();
    world.write_config("[receive]\nenabled = true\nlisten = \"127.0.0.1:0\"\n");
    world
}

/// Where the running collector receives.
#[track_caller]
fn address(world: &World) -> SocketAddr {
    let status = world.json(&["status", "--json"]);
    status["receive"].as_str().unwrap_or_else(|| panic!("{status:#}")).parse().unwrap()
}

fn token(world: &World) -> String {
    world.ok(&["token", "create", "build", "--receive"]).trim().to_owned()
}

/// One span of a session, as JSON.
fn span(session: &str, id: &str, name: &str) -> Value {
    json!({"resourceSpans": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "build"}}]},
        "scopeSpans": [{"scope": {"name": "cargo"}, "spans": [{
            "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": id, "name": name,
            "startTimeUnixNano": "1780000000000000000", "endTimeUnixNano": "1780000001000000000",
            "attributes": [{"key": "session.id", "value": {"stringValue": session}}],
        }]}],
    }]})
}

/// Sends JSON; returns the status, or 0 if the connection breaks.
fn send(at: SocketAddr, token: &str, body: &Value) -> u16 {
    let answer = ureq::post(&format!("http://{at}/v1/traces"))
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .config()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(20)))
        .build()
        .send(body.to_string());
    answer.map_or(0, |answer| answer.status().as_u16())
}

/// The names of stored spans.
fn stored(world: &World) -> Vec<String> {
    let path = world.state().join("hookspan.db");
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut names = db.prepare("SELECT name FROM received_span ORDER BY name").unwrap();
    names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn nothing_listens_unless_it_is_asked_for() {
    let world = World::new();
    let collector = Collector::start(&world);
    assert_eq!(world.json(&["status", "--json"])["receive"], Value::Null);
    let pid = collector.pid().as_raw_nonzero();
    let listening = |table: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        let inodes =
            text.lines().skip(1).filter(|line| line.split_whitespace().nth(3) == Some("0A"));
        inodes
            .filter_map(|line| line.split_whitespace().nth(9).map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let inodes = [listening("tcp"), listening("tcp6")].concat();
    // A listener may have several descriptors.
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let links: BTreeSet<String> = links
        .filter_map(|entry| Some(std::fs::read_link(entry.path()).ok()?.to_str()?.to_owned()))
        .filter(|link| inodes.iter().any(|inode| *link == format!("socket:[{inode}]")))
        .collect();
    assert_eq!(links.len(), 1, "the dashboard's port alone");
}

#[test]
fn what_was_accepted_survives_a_kill_and_a_second_sending_changes_nothing() {
    let world = receiving();
    let token = token(&world);
    for round in 0..3 {
        let collector = Collector::start(&world);
        let at = address(&world);
        let name = format!("round {round}");
        assert_eq!(send(at, &token, &span("s", &format!("00f067aa0ba902b{round}"), &name)), 200);
        // The collector is killed, so it cannot finish anything.
        collector.kill();
    }
    let expected = ["round 0", "round 1", "round 2"];
    assert_eq!(stored(&world), expected);
    let _collector = Collector::start(&world);
    assert_eq!(send(address(&world), &token, &span("s", "00f067aa0ba902b1", "again")), 200);
    assert_eq!(stored(&world), expected);
    let status = world.json(&["status", "--json"]);
    assert_eq!(status["counters"]["otlp.duplicate"], 1, "{status:#}");
    let text = world.run(&["status"]).stdout;
    assert!(text.contains("3 spans and 0 points stored"), "{text}");
}

#[test]
fn a_token_that_sends_reads_nothing_and_a_wrong_one_is_counted() {
    let world = receiving();
    let token = token(&world);
    let collector = Collector::start(&world);
    let at = address(&world);
    let read = ureq::get(&format!("{}/api/v1/sessions", collector.url))
        .header("authorization", format!("Bearer {token}"))
        .config()
        .http_status_as_error(false)
        .build()
        .call()
        .unwrap();
    assert_eq!(read.status(), 401);
    assert_eq!(send(at, "hookspan_0", &span("s", "00f067aa0ba902b7", "x")), 401);
    assert_eq!(send(at, &collector.token, &span("s", "00f067aa0ba902b7", "x")), 200);
    // Counts of refused requests are stored with the next request, or a few seconds later.
    assert_eq!(send(at, &token, &span("s", "00f067aa0ba902b7", "x")), 200);
    let metrics = collector.get_text(&format!("{}/metrics", collector.url)).unwrap();
    for line in [
        "hookspan_otlp_total{event=\"requests\"} 3",
        "hookspan_otlp_total{event=\"refused.token\"} 1",
        "hookspan_otlp_total{event=\"stored_spans\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

#[test]
fn a_body_without_an_end_ends() {
    let world = receiving();
    let token = token(&world);
    let _collector = Collector::start(&world);
    let mut stream = TcpStream::connect(address(&world)).unwrap();
    stream.set_write_timeout(Some(SOON)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(65_536));
    // The collector reads 4 MiB at most. Then it answers and closes, so that writing fails at some point.
    let mut sent = 0;
    while sent < 64 << 20 && stream.write_all(chunk.as_bytes()).is_ok() {
        sent += chunk.len();
    }
    assert!(sent < 64 << 20, "{sent} bytes were taken");
    assert_eq!(send(address(&world), &token, &span("s", "00f067aa0ba902b7", "x")), 200);
}

#[test]
fn a_socket_of_the_owner_needs_no_token() {
    let world = World::new();
    let socket = world.scratch("otlp");
    world.write_config(&format!(
        "[receive]\nenabled = true\nlisten = [\"unix:{}\"]\n",
        socket.display()
    ));
    let collector = Collector::start(&world);
    let mut stream = UnixStream::connect(&socket).unwrap();
    let body = span("s", "00f067aa0ba902b7", "near").to_string();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(stored(&world), ["near"]);
    collector.stop();
    assert!(!socket.exists(), "the socket's file goes with the collector");
}

#[test]
fn another_account_is_refused_even_with_the_token() {
    if let Err(reason) = machine::root().and_then(|()| machine::tool("setpriv")) {
        return skip::announce("a second account that sends OTLP", &reason);
    }
    let world = receiving();
    let token = token(&world);
    let _collector = Collector::start(&world);
    let at = address(&world);
    let request = format!(
        "POST /v1/traces HTTP/1.1\\r\\nHost: {at}\\r\\nAuthorization: Bearer {token}\\r\\n\
         Content-Type: application/json\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\n{{}}"
    );
    let script =
        format!("exec 3<>/dev/tcp/{}/{} && printf '{request}' >&3 && cat <&3", at.ip(), at.port());
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "bash", "-c", &script])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(answer.contains("another-account"), "{answer}");
}

#[test]
fn a_destination_that_is_the_receiver_itself_is_refused() {
    let world = World::new();
    world.write_config(
        "[receive]\nenabled = true\n[[destination]]\nname = \"self\"\nendpoint = \"http://localhost:4328\"\n",
    );
    for command in [&["config", "check"][..], &["serve"][..]] {
        let done = world.run(command);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.stderr.contains("destination self is 127.0.0.1:4328"), "{}", done.stderr);
    }
    eventually("nothing was started", SOON, || {
        let running = world.json(&["status", "--json"])["running"].clone();
        if running == false { Ok(()) } else { Err(running.to_string()) }
    });
}

#[test]
fn spans_that_another_collector_exports_arrive_over_grpc_and_are_known_as_ours() {
    let world = receiving();
    let token = token(&world);
    let _collector = Collector::start(&world);
    let sender = World::new().with_env("SENDER_TOKEN", token);
    sender.write_config(&format!(
        "[[destination]]\nname = \"near\"\nendpoint = \"http://{}\"\nprotocol = \"grpc\"\ncompression = \"gzip\"\n\
         backfill = \"all\"\nheaders = {{ authorization = \"Bearer env:SENDER_TOKEN\" }}\n",
        address(&world)
    ));
    let recording = binaries::project().join("tests/fixtures/ide-one-subagent.jsonl");
    sender.ok(&["import", recording.to_str().unwrap()]);
    let _sending = Collector::start(&sender);
    let sent = eventually("every span is delivered", SOON, || {
        let status = sender.json(&["status", "--json"]);
        let one = &status["destinations"][0];
        match (one["state"].as_str(), one["pending"].as_u64(), one["delivered"].as_u64()) {
            (Some("ok"), Some(0), Some(sent)) if sent > 0 => Ok(sent),
            _ => Err(format!("{one:#}")),
        }
    });
    let status = world.json(&["status", "--json"]);
    assert_eq!(status["counters"]["otlp.came_back"], sent, "{status:#}");
    assert_eq!(stored(&world), Vec::<String>::new());
}

/// A session with a shell call that runs.
fn open_call(world: &World) {
    let hook = |event: &str, own: Value| {
        let mut body = json!({
            "conversation_id": SESSION, "generation_id": "g1", "model": "default", "hook_event_name": event,
            "cursor_version": "3.7.19", "session_id": SESSION, "workspace_roots": ["/home/dev/lighthouse"],
        });
        body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        let reply = player::hook(world, event, body.to_string().as_bytes());
        assert_eq!(reply.code, Some(0), "{reply:?}");
    };
    hook("beforeSubmitPrompt", json!({"prompt": "build it", "attachments": []}));
    let call =
        json!({"tool_name": "Shell", "tool_use_id": "call-1", "tool_input": {"command": "make"}});
    hook("preToolUse", call);
}

const SESSION: &str = "0f9e8d7c-6b5a-4948-8372-615f4e3d2c1b";

#[test]
fn a_build_below_a_call_is_shown_there_and_goes_with_the_session() {
    let world = receiving();
    let token = token(&world);
    let collector = Collector::start(&world);
    open_call(&world);
    collector.committed(2);
    let shown = world.json(&["show", SESSION, "--json"]);
    let spans = shown["spans"].as_array().unwrap();
    let call = spans.iter().find(|span| span["kind"] == "tool").unwrap();
    let (trace, above) = (call["trace_id"].as_str().unwrap(), call["span_id"].as_str().unwrap());
    let mut body = span("other", "00f067aa0ba902b7", "quokkabuild");
    let sent = &mut body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    sent["traceId"] = json!(trace);
    sent["parentSpanId"] = json!(above);
    assert_eq!(send(address(&world), &token, &body), 200);

    let text = world.ok(&["show", SESSION]);
    let line =
        text.lines().find(|line| line.contains("quokkabuild")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("build: quokkabuild  received, by trace context"), "{line}");
    let detail = collector.get(&format!("spans/{above}")).unwrap();
    assert_eq!(detail["received"][0]["name"], "quokkabuild", "{detail:#}");
    assert_eq!(detail["received"][0]["joined"], "traceparent");
    let all = collector.get(&format!("sessions/{SESSION}/received")).unwrap();
    assert_eq!((&all["total"], &all["items"][0]["below"]), (&json!(1), &json!(above)), "{all:#}");
    assert_eq!(collector.get("received").unwrap()["total"], 0);

    let answer = collector
        .post(&format!("sessions/{SESSION}/delete"), &json!({"confirm": SESSION}))
        .unwrap();
    assert_eq!(answer["deleted_hooks"], 2, "{answer:#}");
    for entry in std::fs::read_dir(world.state()).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        let holds = bytes.windows(11).any(|window| window == b"quokkabuild");
        assert!(!holds, "{} still has it", entry.path().display());
    }
}
