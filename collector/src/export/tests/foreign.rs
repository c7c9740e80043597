//! What others reported about OTLP exporters and receivers, tried on this exporter. Each test names the report.

use super::sink::{Answer, Sink, eventually};
use super::*;

const HTTP: &str = "http/protobuf";

async fn delivered(answers: &[Answer], more: &str) -> (World, Sink, Duration) {
    let world = World::with_spans(5);
    let sink = Sink::answering(answers).await;
    let started = std::time::Instant::now();
    let _exporters = world.export(vec![destination(&sink, HTTP, more)]);
    world.drained().await;
    let took = started.elapsed();
    assert_eq!(world.row("test").delivered, 5, "{answers:?}");
    (world, sink, took)
}

/// opentelemetry-proto #806 and opentelemetry-python #5460: a date is a delay, too; a date that has passed and text
/// that is neither form must not stop the exporter. opentelemetry-go #8383: seconds are seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_delay_in_any_form_is_kept_or_ignored_and_never_stops_the_exporter() {
    for word in [
        "0",
        "nan",
        "-5",
        "1e3",
        "inf",
        "soon",
        "",
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "18446744073709551616",
    ] {
        let (_world, sink, took) = delivered(&[Answer::Http(429, Some(word))], "").await;
        assert_eq!(sink.seen().len(), 2, "{word:?}");
        assert!(took < Duration::from_secs(20), "{word:?} took {took:?}");
    }
    let (_world, sink, _) = delivered(&[Answer::Http(503, Some(" 1 "))], "").await;
    assert!(sink.seen()[1].at - sink.seen()[0].at >= Duration::from_millis(990));
}

/// opentelemetry-go #3432, otel-cli #266 and langwatch #2494: an empty partial success is a success, in whatever
/// spelling. galileo-python #551: in JSON a refusal counts as well.
#[tokio::test(flavor = "multi_thread")]
async fn partial_success_is_read_in_every_spelling() {
    let json = |body| Answer::Page(200, "application/json; charset=utf-8", None, body);
    for body in [
        "{}",
        "{\"partialSuccess\":{}}",
        "{\"partialSuccess\":null}",
        "{\"partialSuccess\":{\"rejectedSpans\":0,\"errorMessage\":\"\"}}",
        "{\"message\":\"Trace received successfully.\",\"partialSuccess\":{\"rejectedSpans\":0,\"errorMessage\":\"\"}}",
        "{\"partial_success\":{\"rejected_spans\":\"0\"}}",
    ] {
        let (world, sink, _) = delivered(&[json(body)], "").await;
        assert_eq!((sink.seen().len(), world.row("test").lost.len()), (1, 0), "{body}");
    }
    for body in [
        "{\"partialSuccess\":{\"rejectedSpans\":\"2\",\"errorMessage\":\"no detector\"}}",
        "{\"partial_success\":{\"rejected_spans\":2}}",
    ] {
        let world = World::with_spans(5);
        let sink = Sink::answering(&[json(body)]).await;
        let _exporters = world.export(vec![destination(&sink, HTTP, "")]);
        world.drained().await;
        let row = world.row("test");
        assert_eq!((row.delivered, row.lost), (3, vec![("partial".to_owned(), 2)]), "{body}");
    }
}

/// hs-opentelemetry #305 and opencensus-java #869: a server that takes leave (GOAWAY) and comes back gets what was
/// waiting.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_leave_and_comes_back_gets_everything() {
    for protocol in ["grpc", HTTP] {
        let world = World::with_spans(5);
        let (first, stop, served) = Sink::stoppable(0).await;
        let _exporters = world.export(vec![destination(&first, protocol, "")]);
        world.drained().await;
        stop.send(()).unwrap();
        let port = first.port;
        // A connection that is still open would take the next spans.
        served.await.unwrap();
        world.settle(5);
        let row = || world.row("test");
        eventually(|| row().state == "retry", || format!("{protocol}: {:?}", row())).await;
        let (second, _stop, _) = Sink::stoppable(port).await;
        world.drained().await;
        assert_eq!(second.taken(), world.all()[5..], "{protocol}");
        assert_eq!((row().delivered, row().lost.len()), (10, 0), "{protocol}");
    }
}

/// apm-server #9036, tokenjam #365: a receiver that cannot read gzip calls the request malformed.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_cannot_read_gzip_is_told_by_the_right_key() {
    let refusal = Answer::Page(400, "text/plain", None, "proto: illegal wireType 7");
    for (compression, expected) in [("gzip", true), ("none", false)] {
        let world = World::with_spans(5);
        let answer = refusal.clone();
        let sink = Sink::start(&[], move |_| answer.clone()).await;
        let more = format!("compression = '{compression}'");
        let _exporters = world.export(vec![destination(&sink, HTTP, &more)]);
        let row = || world.row("test");
        eventually(|| row().state == "paused", || format!("{:?}", row())).await;
        assert_eq!((row().queued, row().lost.len()), (5, 0));
        let advice = row().advice.unwrap();
        assert_eq!(advice.contains("compression = \"none\""), expected, "{advice}");
    }
}

/// New Relic and Logfire (#2242) take spans of the last 24 hours, and say yes to older ones. `max_span_age` counts
/// those instead.
#[tokio::test(flavor = "multi_thread")]
async fn spans_that_a_vendor_would_drop_in_silence_are_counted() {
    let world = World::new();
    let old = |span: &mut Span| {
        span.start = clock::now().plus(-2 * DAY_NS);
        span.end = Some(End { at: clock::now().plus(-2 * DAY_NS), reason: EndReason::Matched });
    };
    world.settle_with(3, old);
    world.settle(2);
    let sink = Sink::answering(&[]).await;
    let _exporters = world.export(vec![destination(&sink, HTTP, "max_span_age = '23h'")]);
    world.drained().await;
    let row = world.row("test");
    assert_eq!((row.delivered, row.lost), (2, vec![("expired".to_owned(), 3)]));
}

/// otel-arrow #1678, telegraf #18822: behind a proxy, gRPC reaches nothing, and nothing says so.
#[test]
fn whoever_sends_grpc_to_another_machine_is_told_about_proxies() {
    let advice =
        |endpoint: &str, protocol: &str| cause::Cause::Timeout.advice(&at(endpoint, protocol, ""));
    assert!(advice("https://otel.example:4317", "grpc").contains("HTTPS_PROXY"));
    assert!(!advice("https://otel.example:4318", HTTP).contains("HTTPS_PROXY"));
    assert!(!advice("http://127.0.0.1:4317", "grpc").contains("HTTPS_PROXY"));
}
