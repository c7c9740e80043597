//! Tests with OTLP backends of other projects.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use e2e_support::collector::{self, Collector};
use e2e_support::fixture::{Body, Fixture};
use e2e_support::receivers::Receiver;
use e2e_support::spans::{self, Span};
use e2e_support::wait::eventually;
use e2e_support::world::World;
use e2e_support::{player, skip, verify};

/// Spans of a turn are sent after two seconds, and those of a session after five.
const SETTLED: Duration = Duration::from_secs(90);

#[test]
fn datadogs_test_agent_receives_the_same_spans_over_http() {
    match Receiver::test_agent() {
        Ok(receiver) => receives_the_same(&receiver, &receiver.http, "http/protobuf"),
        Err(reason) => skip::skip("export to ddapm-test-agent over HTTP", &reason),
    }
}

#[test]
fn datadogs_test_agent_receives_the_same_spans_over_grpc() {
    match Receiver::test_agent() {
        Ok(receiver) => receives_the_same(&receiver, &receiver.grpc, "grpc"),
        Err(reason) => skip::skip("export to ddapm-test-agent over gRPC", &reason),
    }
}

#[test]
fn datadogs_test_agent_receives_metrics_of_the_same_calls() {
    for protocol in ["http/protobuf", "grpc"] {
        match Receiver::test_agent() {
            Ok(receiver) => receives_metrics(&receiver, protocol),
            Err(reason) => return skip::skip("metrics to ddapm-test-agent", &reason),
        }
    }
}

/// Each call of the recording is counted once, over all requests together.
fn receives_metrics(receiver: &Receiver, protocol: &str) {
    let endpoint = if protocol == "grpc" { &receiver.grpc } else { &receiver.http };
    let world = World::new();
    world.write_config(&format!(
        "[[destination]]\nname = \"agent\"\nendpoint = \"{endpoint}\"\nprotocol = \"{protocol}\"\nmetrics = true\n\
         metrics_temporality = \"delta\"\nmetrics_interval = \"1s\"\n"
    ));
    let fixture = ended(Fixture::own().settle_in(&world));
    let collector = Collector::start(&world);
    player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    let spans = received_everything(&world, receiver);
    let kind = |span: &&Span| span.attributes.get("hookspan.kind") == Some(&"tool".into());
    let is_known = |span: &&Span| !span.attributes.contains_key("hookspan.duration_unknown");
    let calls = spans.iter().filter(kind).filter(is_known).count() as u64;
    eventually("every call is counted", SETTLED, || {
        let all = receiver.metrics();
        let points = all
            .iter()
            .filter(|metric| metric["name"] == "gen_ai.execute_tool.duration")
            .flat_map(|metric| metric["exponential_histogram"]["data_points"].as_array().unwrap());
        let counts = points.map(|point| point["count"].as_str().unwrap().parse::<u64>().unwrap());
        match counts.sum::<u64>() {
            count if count == calls && calls > 0 => Ok(()),
            count => Err(format!("{count} of {calls} calls: {all:#?}")),
        }
    });
    let listed = world.json(&["destinations", "list", "--json"]);
    assert_eq!(
        (&listed[0]["metrics"]["state"], &listed[0]["metrics"]["lost"]),
        (&"ok".into(), &0.into())
    );
    world.ok(&["destinations", "test", "agent"]);
}

/// Jaeger accepts traces only. If a destination sends metrics to it, the message says which setting to change.
#[test]
fn jaeger_refuses_metrics_and_says_what_to_change() {
    let receiver = match Receiver::jaeger() {
        Ok(receiver) => receiver,
        Err(reason) => return skip::skip("metrics to Jaeger", &reason),
    };
    for (endpoint, protocol) in [(&receiver.grpc, "grpc"), (&receiver.http, "http/protobuf")] {
        let world = World::new();
        world.write_config(&format!(
            "[[destination]]\nname = \"j\"\nendpoint = \"{endpoint}\"\nprotocol = \"{protocol}\"\nmetrics = true\n"
        ));
        let tested = world.run(&["destinations", "test", "j"]);
        let words: Vec<_> = tested.stdout.split_whitespace().collect();
        let is_told = words.join(" ").contains("set `metrics = false`");
        assert!(tested.code == 1 && is_told, "{tested:?}");
    }
}

#[test]
fn jaeger_receives_the_same_spans_over_http() {
    match Receiver::jaeger() {
        Ok(receiver) => receives_the_same(&receiver, &receiver.http, "http/protobuf"),
        Err(reason) => skip::skip("export to Jaeger over HTTP", &reason),
    }
}

#[test]
fn jaeger_receives_the_same_spans_over_grpc() {
    match Receiver::jaeger() {
        Ok(receiver) => {
            receives_the_same(&receiver, &receiver.grpc, "grpc");
            assert!(receiver.services().contains(&"cursor-agent".to_owned()));
        }
        Err(reason) => skip::skip("export to Jaeger over gRPC", &reason),
    }
}

/// For receivers off loopback, gzip is the default, and grpc-go answers in gzip if it received gzip. Each test uses a
/// new receiver, because spans of the same stream have the same ids.
#[test]
fn jaeger_receives_the_same_spans_by_this_machines_own_name() {
    for (is_grpc, is_away, compression) in [
        (false, true, None),
        (true, true, None),
        (true, true, Some("none")),
        (true, false, Some("gzip")),
        (false, false, Some("gzip")),
    ] {
        let receiver = match Receiver::jaeger() {
            Ok(receiver) => receiver,
            Err(reason) => return skip::skip("export to Jaeger off loopback", &reason),
        };
        let (address, protocol) =
            if is_grpc { (&receiver.grpc, "grpc") } else { (&receiver.http, "http/protobuf") };
        let address = if is_away { Receiver::off_loopback(address) } else { address.clone() };
        receives_compressed(&receiver, &address, protocol, compression);
    }
}

/// The mistakes that people make most often, with a real receiver: nothing is lost, and the probe says what to change.
#[test]
fn mixed_up_ports_lose_nothing_and_are_told_by_name() {
    let receiver = match Receiver::jaeger() {
        Ok(receiver) => receiver,
        Err(reason) => return skip::skip("mixed-up ports of Jaeger", &reason),
    };
    let secure = receiver.grpc.replace("http://", "https://");
    let away = |address: &str| Receiver::off_loopback(address);
    for (endpoint, protocol, advice) in [
        (away(&receiver.grpc), "http/protobuf", "usually 4318"),
        (away(&receiver.http), "grpc", "usually 4317"),
        (receiver.query().to_owned(), "http/protobuf", "Check host"),
        (secure, "grpc", "Write http://"),
    ] {
        let world = exporting_world(&endpoint, protocol);
        let tested = world.run(&["destinations", "test", "env"]);
        assert_eq!(tested.code, 1, "{endpoint}: {tested:#?}");
        let words: Vec<_> = tested.stdout.split_whitespace().collect();
        assert!(words.join(" ").contains(advice), "{endpoint}: {}", tested.stdout);
        waits_without_loss(&world, &endpoint);
    }
    exporting_world(&receiver.grpc, "grpc").ok(&["destinations", "test", "env"]);
    exporting_world(&receiver.http, "http/protobuf").ok(&["destinations", "test", "env"]);
}

fn waits_without_loss(world: &World, endpoint: &str) {
    let fixture = ended(Fixture::own().settle_in(world));
    let _collector = Collector::start(world);
    player::play(world, &fixture);
    eventually("the destination is paused", SETTLED, || {
        let found = world.json(&["destinations", "list", "--json"]);
        let one = &found[0];
        assert_eq!(
            (&one["delivered"], &one["lost"]),
            (&0.into(), &serde_json::json!({})),
            "{endpoint}: {found}"
        );
        let waits = one["pending"].as_u64().unwrap_or_default() > 0;
        if waits && one["state"] == "paused" { Ok(()) } else { Err(format!("{endpoint}: {found}")) }
    });
}

#[test]
fn an_unset_variable_pauses_one_destination_and_the_collector_goes_on() {
    let world = World::new();
    world.write_config(
        "[[destination]]\nname = \"a\"\nendpoint = \"http://127.0.0.1:9\"\n\
         headers = { x-key = \"env:HOOKSPAN_TEST_ABSENT\" }\n",
    );
    let fixture = Fixture::own().settle_in(&world);
    let collector = Collector::start(&world);
    player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    let found = world.json(&["destinations", "list", "--json"]);
    assert_eq!(found[0]["state"], "paused", "{found}");
    let error = found[0]["last_error"].as_str().unwrap();
    assert!(error.contains("config.toml:4:13: headers.x-key"), "{error}");
    assert_eq!(world.run(&["config", "check"]).code, 2);
    assert_eq!(world.run(&["destinations", "test"]).code, 1);
    world.ok(&["destinations", "pause", "a"]);
    world.ok(&["destinations", "resume", "a"]);
    assert_eq!(world.run(&["destinations", "pause", "b"]).code, 2);
}

#[test]
fn a_kill_in_the_middle_of_an_export_loses_nothing_and_repeats_are_equal() {
    match Receiver::test_agent() {
        Ok(receiver) => survives_kills(&receiver),
        Err(reason) => skip::skip("kills during an export", &reason),
    }
}

#[test]
fn content_leaves_only_when_it_is_asked_for() {
    let world = World::new();
    let fixture = Fixture::own().settle_in(&world);
    world.ok(&["import", fixture.path.to_str().unwrap()]);
    let export =
        |content| world.ok(&["export", "--all", "--format", "otlp-json", "--content", content]);
    let (full, metadata, off) = (export("full"), export("metadata"), export("off"));
    for content in ["use a helper", "The lamp is lit", "shines_far", "A helper can read"] {
        assert!(full.contains(content), "full lacks {content:?}");
        assert!(!metadata.contains(content), "metadata holds {content:?}");
        assert!(!off.contains(content), "off holds {content:?}");
    }
    for name in ["src/lamp.rs", "execute_tool Shell cargo"] {
        assert!(metadata.contains(name), "metadata lacks {name:?}");
        assert!(!off.contains(name), "off holds {name:?}");
    }
    for document in [&full, &metadata, &off] {
        assert!(!document.contains("dev@example.com"), "the e-mail address left");
        assert_eq!(spans::from_otlp_json(document).len(), spans::from_otlp_json(&full).len());
    }
}

fn receives_the_same(receiver: &Receiver, endpoint: &str, protocol: &str) {
    receives_compressed(receiver, endpoint, protocol, None);
}

/// The same with this value for compression. `None` means the default for the address.
fn receives_compressed(
    receiver: &Receiver,
    endpoint: &str,
    protocol: &str,
    compression: Option<&str>,
) {
    let mut world = exporting_world(endpoint, protocol);
    if let Some(word) = compression {
        world = world.with_env("OTEL_EXPORTER_OTLP_COMPRESSION", word);
    }
    let fixture = ended(Fixture::own().settle_in(&world));
    let collector = Collector::start(&world);
    player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    let received = received_everything(&world, receiver);
    verify::spans_are_equal(&received, &sent(&world));
    assert_eq!(spans::orphans(&received), Vec::<&Span>::new());
}

/// Kills the collector while turns are being sent, and possibly between the last request and its answer.
fn survives_kills(receiver: &Receiver) {
    let world = exporting_world(&receiver.http, "http/protobuf");
    let fixture = ended(Fixture::own().settle_in(&world));
    for bodies in fixture.bodies.chunks(16) {
        let collector = Collector::start(&world);
        bodies.iter().for_each(|body| player::play_one(&world, body));
        let before = receiver.spans(&[]).len();
        // Waits until something is sent, or until nothing of this part can be sent any more.
        let patience = std::time::Instant::now();
        eventually("an export, or the end of the wait for one", SETTLED, || {
            let moved = receiver.spans(&[]).len() > before;
            if moved || patience.elapsed() > Duration::from_secs(4) {
                Ok(())
            } else {
                Err(String::new())
            }
        });
        collector.kill();
    }
    let _collector = Collector::start(&world);
    let mut received = received_everything(&world, receiver);
    received.dedup();
    verify::spans_are_equal(&received, &sent(&world));
}

/// Waits until every exported span has arrived.
#[track_caller]
fn received_everything(world: &World, receiver: &Receiver) -> Vec<Span> {
    eventually("every span has arrived", SETTLED, || {
        let sent = sent(world);
        let traces: BTreeSet<_> = sent.iter().map(|span| span.trace.clone()).collect();
        let received = receiver.spans(&traces.into_iter().collect::<Vec<_>>());
        let here: BTreeSet<_> = received.iter().map(|span| &span.id).collect();
        let missing: Vec<_> = sent.iter().filter(|span| !here.contains(&span.id)).collect();
        match missing.len() {
            0 if !sent.is_empty() => Ok(received),
            _ => Err(format!(
                "{} of {} missing: {missing:#?}\n{}",
                missing.len(),
                sent.len(),
                collector::log(world)
            )),
        }
    })
}

/// The spans that a destination with the default content policy must get.
fn sent(world: &World) -> Vec<Span> {
    let arguments = ["export", "--all", "--format", "otlp-json", "--content", "metadata"];
    spans::from_otlp_json(&world.ok(&arguments))
}

fn exporting_world(endpoint: &str, protocol: &str) -> World {
    World::new()
        .with_env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .with_env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
}

/// The stream with a `sessionEnd`, so that the session's own span becomes final as well.
fn ended(mut fixture: Fixture) -> Fixture {
    let root = fixture.text("root");
    let body = format!(
        "{{\"conversation_id\":\"{root}\",\"generation_id\":\"{root}\",\"model\":\"default\",\
         \"reason\":\"completed\",\"duration_ms\":162761,\"is_background_agent\":false,\
         \"final_status\":\"completed\",\"session_id\":\"{root}\",\
         \"hook_event_name\":\"sessionEnd\",\"cursor_version\":\"3.7.19\",\
         \"workspace_roots\":[\"/home/dev/src/lighthouse\"],\"transcript_path\":null}}"
    );
    fixture.bodies.push(Body { event: "sessionEnd".into(), bytes: body.into_bytes() });
    fixture
}

#[test]
fn a_destination_is_added_and_the_file_keeps_its_text() {
    let world = World::new();
    let before = "# mine\n[journal]\nsegment_bytes = 1048576 # small\n";
    let path = world.write_config(before);
    let text = || fs::read_to_string(&path).unwrap();
    let dry = world.ok(&["destinations", "add", "jaeger", "--dry-run"]);
    assert_eq!(
        dry,
        "[[destination]]\nname = \"jaeger\"\npreset = \"jaeger\"\nsemconv = \"genai-1.41-strict\"\n"
    );
    assert_eq!(text(), before);
    world.ok(&["destinations", "add", "jaeger", "--content", "full"]);
    assert!(text().starts_with(before), "{}", text());
    let key = ["--header", "authorization=Bearer env:LAB_TOKEN"];
    let lab = ["destinations", "add", "--endpoint", "https://otel.example.com", "--name", "lab"];
    let said = world.run(&[&lab[..], &key].concat());
    assert!(said.code == 0 && said.stderr.contains("LAB_TOKEN is not set"), "{said:?}");
    let listed = world.json(&["destinations", "list", "--json"]);
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["jaeger", "lab"]);
    let again = world.run(&["destinations", "add", "jaeger"]);
    assert!(
        again.code == 2 && again.stderr.contains("is the name of another destination"),
        "{again:?}"
    );
    // Without a terminal, the command cannot ask for the missing preset.
    let missing = world.run(&["destinations", "add"]);
    assert!(missing.code == 2 && missing.stderr.contains("PRESET"), "{missing:?}");
    assert_eq!(text().matches("[[destination]]").count(), 2);
    let removed = world.ok(&["destinations", "remove", "jaeger"]);
    assert!(removed.contains("jaeger was removed"), "{removed}");
    assert!(text().starts_with(before) && !text().contains("jaeger"), "{}", text());
    world.ok(&["destinations", "remove", "lab"]);
    assert_eq!(text().trim_end(), before.trim_end());
    let unknown = world.run(&["destinations", "remove", "lab"]);
    assert!(
        unknown.code == 2 && unknown.stderr.contains("no destination is called"),
        "{unknown:?}"
    );
}

/// A running collector does not read its configuration again, and people are told.
#[test]
fn a_configuration_that_is_newer_than_the_collector_is_told() {
    let world = World::new();
    let path = world.write_config("[journal]\nsegment_bytes = 1048576\n");
    let told = |world: &World| {
        let listed = world.run(&["destinations", "list"]).stderr.contains("restart it");
        let doctor = world.run(&["doctor", "--json"]).stdout.contains("collector.config_newer");
        (listed, doctor)
    };
    let collector = Collector::start(&world);
    assert_eq!(told(&world), (false, false));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}# changed\n")).unwrap();
    assert_eq!(told(&world), (true, true));
    drop(collector);
    let _collector = Collector::start(&world);
    assert_eq!(told(&world), (false, false));
}
