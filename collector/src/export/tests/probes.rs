//! Tests what `hookspan destinations` does with working and with faulty receivers.

use hookspan_core::Timestamp;

use super::sink::{Answer, Sink, eventually};
use super::{DAY_NS, World, at, clock, destination, reader, tables};
use crate::config::destination::Destination;
use crate::export::Settings;
use crate::export::probe::{self, Step};
use crate::export::replay::{self, Replayed};
use crate::store::export::StartAt;

async fn probed(destination: Destination) -> Vec<Step> {
    tokio::task::spawn_blocking(move || probe::probe(&destination)).await.unwrap()
}

/// Checks the last step, and its advice or its finding.
async fn ends(destination: Destination, step: &str, ok: bool, words: &str) {
    let what = format!("{destination:?}");
    let steps = probed(destination).await;
    let last = steps.last().unwrap();
    assert_eq!((last.step, last.ok), (step, ok), "{what}: {steps:#?}");
    let told = format!("{} {}", last.what, last.advice.as_deref().unwrap_or_default());
    assert!(told.contains(words), "{what}: {told}");
    assert!(steps[..steps.len() - 1].iter().all(|step| step.ok), "{steps:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_tells_where_the_way_ends_and_what_to_change() {
    let page = |status, kind, body| Answer::Page(status, kind, None, body);
    let missing = page(422, "application/json", "{\"detail\":\"Field required\"}");
    let empty = page(400, "application/json", "{\"detail\":\"no spans found\"}");
    for (protocol, answer, ok, words) in [
        ("http/protobuf", Answer::Ok, true, "accepted"),
        ("grpc", Answer::Ok, true, "accepted"),
        ("http/protobuf", page(200, "text/html", "<title>UI</title>"), false, "4318"),
        ("http/protobuf", Answer::Http(401, None), false, "Check the key"),
        ("http/protobuf", Answer::Http(404, None), false, "/v1/traces"),
        ("http/protobuf", missing, false, "missing header"),
        ("http/protobuf", empty, true, "takes no empty export"),
        ("http/protobuf", Answer::Http(503, None), false, "503"),
        ("grpc", Answer::grpc(tonic::Code::Unauthenticated), false, "Check the key"),
        ("grpc", Answer::grpc(tonic::Code::Unimplemented), false, "4317"),
        ("grpc", page(200, "text/html", "<title>UI</title>"), false, "4317"),
    ] {
        let sink = Sink::answering(&[answer]).await;
        ends(destination(&sink, protocol, ""), "export", ok, words).await;
        assert_eq!(sink.seen().len(), 1);
        assert!(sink.seen()[0].body.is_empty(), "a probe sends no span");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_ends_where_nothing_answers() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let nobody = at(&format!("http://127.0.0.1:{port}"), "grpc", "");
    ends(nobody, "connection", false, "receiver runs").await;
    let nowhere = at("http://no-such-host.invalid:4317", "grpc", "");
    ends(nowhere, "name", false, "host name").await;
    let sink = Sink::answering(&[]).await;
    let plain = at(&format!("https://127.0.0.1:{}", sink.port), "grpc", "");
    ends(plain, "tls", false, "Write http://").await;
    let unset = destination(&sink, "grpc", "headers = { x-key = 'env:ABSENT' }");
    ends(unset, "configuration", false, "ABSENT is not set").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_has_spans_sent_again_and_a_destination_forgotten() {
    let world = World::with_spans(30);
    let sink = Sink::answering(&[]).await;
    let exporters = world.export(vec![destination(&sink, "grpc", "")]);
    world.drained().await;
    let again = |start| tables::replay(&world.database, "test", start).unwrap();
    assert_eq!(tables::replay(&world.database, "other", StartAt::Beginning).unwrap(), None);
    assert_eq!(again(StartAt::Since(clock::now().plus(DAY_NS))), Some(0));
    assert_eq!(again(StartAt::Beginning), Some(30));
    assert!(exporters.retry("test"));
    let row = || world.row("test");
    eventually(|| row().delivered == 60, || format!("{:?}", row())).await;
    assert_eq!(sink.taken(), [world.all(), world.all()].concat());
    let all = (Timestamp(0), clock::now());
    let before = (Timestamp(0), Timestamp(1));
    let period = |of| {
        let to = destination(&sink, "grpc", "");
        replay::period(&world.database, &to, &Settings::default(), of).unwrap()
    };
    assert_eq!(period(before), Replayed::Spans(0));
    assert_eq!(period(all), Replayed::Spans(30));
    assert!(exporters.retry("test"));
    eventually(|| row().delivered == 90, || format!("{:?}", row())).await;
    assert_eq!(sink.taken().len(), 90);
    assert_eq!(row().queued, 0, "the position stayed");
    assert!(row().lost.is_empty());
    exporters.shutdown().await;
    assert!(tables::remove(&world.database, "test").unwrap());
    assert!(!tables::remove(&world.database, "test").unwrap());
    assert!(tables::destinations(&reader(&world.database).unwrap()).unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_tries_metrics_where_they_are_wanted() {
    for (protocol, answer, ok, words) in [
        ("http/protobuf", Answer::Ok, true, "metrics"),
        ("grpc", Answer::Ok, true, "metrics"),
        ("http/protobuf", Answer::Http(404, None), false, "metrics = false"),
        ("grpc", Answer::grpc(tonic::Code::Unimplemented), false, "metrics = false"),
        ("http/protobuf", Answer::Http(401, None), false, "Check the key"),
    ] {
        let sink = Sink::answering(&[]).await;
        sink.answer_metrics(&[answer]);
        ends(destination(&sink, protocol, "metrics = true"), "metrics", ok, words).await;
        assert_eq!((sink.seen().len(), sink.metrics().len()), (1, 1));
    }
}
