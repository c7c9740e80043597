//! Tests what happens to spans that a receiver refuses, and to destinations that cannot be used.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;

use super::sink::{Answer, Sink, eventually, names};
use super::*;
use crate::store::export::StartAt;

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_takes_nothing_is_paused_with_its_queue() {
    let world = World::with_spans(10);
    let sink = Sink::start(&[Answer::Ok], |_| Answer::Http(400, None)).await;
    let _exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    world.drained().await;
    world.settle(40);
    let row = || world.row("test");
    eventually(|| row().state == "paused", || format!("{:?}", row())).await;
    let requests = sink.seen().len();
    world.settle(10);
    eventually(|| row().queued == 50, || format!("{:?}", row())).await;
    assert!(row().lost.is_empty() && row().advice.is_some(), "{:?}", row());
    assert_eq!(sink.seen().len(), requests, "a paused destination is left alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lone_trace_that_is_refused_is_lost_only_after_another_was_accepted() {
    let world = World::with_spans(10);
    let rule = |request: &_| {
        let bad = names(request).contains(&"s13".to_owned());
        if bad { Answer::Http(400, None) } else { Answer::Ok }
    };
    let sink = Sink::start(&[], rule).await;
    let _exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    world.drained().await;
    world.settle(10);
    let row = || world.row("test");
    eventually(|| row().state == "retry", || format!("{:?}", row())).await;
    assert_eq!((row().queued, row().lost.len(), row().delivered), (10, 0, 10));
    world.settle(10);
    world.drained().await;
    assert_eq!((row().delivered, row().lost), (20, vec![("rejected".to_owned(), 10)]));
    let loss = row().last_loss.unwrap();
    assert_eq!(loss.detail, "HTTP 400: no");
    assert!(row().is_losing(clock::now()) && !loss.advice().is_empty());
    assert!(!row().is_losing(clock::now().plus(2 * DAY_NS)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_size_that_was_refused_is_remembered() {
    let world = World::new();
    let fat = |span: &mut Span| {
        span.attributes = vec![hookspan_core::Attribute {
            key: "key".into(),
            value: hookspan_core::Value::Str("x".repeat(2_000).into()),
            class: hookspan_core::Class::Plain,
        }];
    };
    world.settle_with(512, fat);
    let rule = |request: &ExportTraceServiceRequest| {
        if request.encoded_len() > 400_000 { Answer::Http(413, None) } else { Answer::Ok }
    };
    let sink = Sink::start(&[], rule).await;
    let exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    world.drained().await;
    let refused =
        || sink.seen().iter().filter(|seen| matches!(seen.answer, Answer::Http(413, _))).count();
    let (first, sent) = (refused(), sink.seen().len());
    assert!(first > 0);
    // The collector still knows the maximum size after a restart.
    exporters.shutdown().await;
    let _again = world.export(vec![destination(&sink, "http/protobuf", "")]);
    world.settle_with(512, fat);
    world.drained().await;
    assert_eq!(refused(), first, "no request of that size was sent again");
    assert!(sink.seen().len() > sent + 1);
    assert_eq!(sink.taken(), world.all());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_pauses_and_resumes_a_destination() {
    let world = World::with_spans(5);
    let sink = Sink::answering(&[]).await;
    let exporters = world.export(vec![destination(&sink, "grpc", "")]);
    world.drained().await;
    assert!(tables::set_stopped(&world.database, "test", true).unwrap());
    assert!(!tables::set_stopped(&world.database, "other", true).unwrap());
    world.settle(5);
    let row = || world.row("test");
    assert!(exporters.retry("test"));
    eventually(|| row().queued == 5, || format!("{:?}", row())).await;
    assert_eq!((row().state.as_str(), row().stopped, sink.seen().len()), ("paused", true, 1));
    tables::set_stopped(&world.database, "test", false).unwrap();
    assert!(exporters.retry("test"));
    world.drained().await;
    assert_eq!(sink.taken(), world.all());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_whose_variable_is_not_set_is_paused_and_the_others_run() {
    let world = World::with_spans(5);
    let sink = Sink::answering(&[]).await;
    let missing = destination(&sink, "grpc", "headers = { x-key = 'env:ABSENT' }");
    let missing = Destination { name: "missing".to_owned(), ..missing };
    let broken = Destination { name: "broken".to_owned(), ..destination(&sink, "grpc", "") };
    let mut broken = broken;
    broken.connection.endpoint = "https://127.0.0.1:1".to_owned();
    broken.connection.certificate = Some(b"-----BEGIN CERTIFICATE-----\nx\n".to_vec());
    let exporters = world.export(vec![missing, broken, destination(&sink, "grpc", "")]);
    world.drained().await;
    assert_eq!(sink.taken(), world.all());
    for (name, why) in [("missing", "ABSENT is not set"), ("broken", "certificate")] {
        let row = world.row(name);
        assert_eq!((row.state.as_str(), row.queued), ("paused", 5), "{row:?}");
        assert!(row.last_error.unwrap().contains(why) && row.advice.is_some());
    }
    exporters.shutdown().await;
    let there = destination(&sink, "grpc", "headers = { x-key = 'env:KEY' }");
    let there = Destination { name: "missing".to_owned(), ..there };
    let _again = world.export(vec![there]);
    let row = || world.row("missing");
    eventually(|| row().queued == 0, || format!("{:?}", row())).await;
    assert_eq!((row().state.as_str(), row().delivered), ("ok", 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_there_later_needs_no_restart() {
    let world = World::with_spans(5);
    let sink = Sink::answering(&[]).await;
    let token = world.database.with_file_name("token");
    let port = sink.port;
    let file = token.display().to_string();
    let read = move || {
        let headers = format!("headers = {{ x-key = 'file:{file}' }}");
        at(&format!("http://127.0.0.1:{port}"), "http/protobuf", &headers)
    };
    let first = read();
    let exporters = world.export_rereading(vec![first], Reread::new(move |_| Some(read())));
    let row = || world.row("test");
    assert_eq!((row().state.as_str(), row().queued), ("paused", 5));
    assert!(row().advice.unwrap().contains("destinations resume test"), "{:?}", row());
    assert!(exporters.retry("test"));
    std::fs::write(&token, "secret").unwrap();
    let sent = || {
        // A destination that was notified while it was checking is notified again.
        let _known = exporters.retry("test");
        row().queued == 0
    };
    eventually(sent, || format!("{:?}", row())).await;
    assert_eq!((row().state.as_str(), sink.taken()), ("ok", world.all()));
    assert_eq!(row().last_error, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_receiver_said_about_a_session_goes_with_it() {
    let world = World::with_spans(3);
    let sink = Sink::start(&[], |_| Answer::Http(400, None)).await;
    let _exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    let row = || world.row("test");
    eventually(|| row().state == "paused", || format!("{:?}", row())).await;
    assert_eq!(row().last_error.as_deref(), Some("HTTP 400: no"));
    let what = crate::store::prune::Selection::sessions(&["c1".to_owned()]);
    world.store.lock().unwrap().delete(&what).unwrap();
    assert_eq!(row().last_error.as_deref(), Some(tables::ANSWER_DELETED));
    assert!(row().advice.is_some() && row().state == "paused");
    // An answer that arrives after its session was deleted.
    let mut store = tables::ExportStore::open(&world.database, "test", "x", StartAt::Head).unwrap();
    let setback = tables::Setback {
        state: tables::DestinationState::Retry,
        not_before: Timestamp(0),
        attempts: 2,
        error: "HTTP 400: s1 is wrong".to_owned(),
        advice: String::new(),
    };
    store.set_back(1, &setback).unwrap();
    assert_eq!(row().last_error.as_deref(), Some(tables::ANSWER_DELETED));
}
