//! Tests the export of metrics with a receiver that decodes them and can misbehave.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, ExponentialHistogramDataPoint, Metric, NumberDataPoint, metric::Data,
    number_data_point::Value as Number,
};

use super::sink::Seen;
use super::*;

/// The interval is one hour, so that metrics are sent only when the test asks for them.
const ON: &str = "metrics = true\nmetrics_interval = '1h'";

fn metrics(seen: &Seen) -> Vec<Metric> {
    let request = ExportMetricsServiceRequest::decode(&*seen.body).unwrap();
    assert_eq!(request.resource_metrics.len(), 1);
    request.resource_metrics[0].scope_metrics[0].metrics.clone()
}

fn tools(seen: &Seen) -> Option<(ExponentialHistogramDataPoint, i32)> {
    let all = metrics(seen);
    let metric = all.into_iter().find(|metric| metric.name == "gen_ai.execute_tool.duration")?;
    let Some(Data::ExponentialHistogram(all)) = metric.data else { panic!("{metric:?}") };
    assert_eq!(all.data_points.len(), 1);
    Some((all.data_points[0].clone(), all.aggregation_temporality))
}

fn sum(seen: &Seen, name: &str) -> Vec<NumberDataPoint> {
    let found = metrics(seen).into_iter().find(|metric| metric.name == name);
    match found.and_then(|metric| metric.data) {
        Some(Data::Sum(sum)) => sum.data_points,
        Some(Data::Gauge(gauge)) => gauge.data_points,
        _ => Vec::new(),
    }
}

/// Asks for metrics until `count` requests of them were answered and recorded.
async fn reported(exporters: &Exporters, world: &World, sink: &Sink, count: usize) {
    assert!(exporters.retry("test"));
    let row = || world.row("test").metrics.unwrap_or_default();
    eventually(|| sink.metrics().len() >= count, || format!("{:?}", row())).await;
    let answered = || {
        let db = reader(&world.database).unwrap();
        let sql = "SELECT body IS NULL OR last_error IS NOT NULL FROM export_points";
        db.query_row(sql, [], |row| row.get::<_, bool>(0)).unwrap()
    };
    eventually(answered, || format!("{:?}", row())).await;
}

/// Starts exporters, and waits until their position is at the end of the queue.
async fn started(world: &World, destination: Destination) -> Exporters {
    let exporters = world.export(vec![destination]);
    eventually(|| world.row_of("test").is_some_and(|row| row.metrics.is_some()), String::new).await;
    exporters
}

impl World {
    fn row_of(&self, name: &str) -> Option<tables::DestinationRow> {
        let rows = tables::destinations(&reader(&self.database).unwrap()).unwrap();
        rows.into_iter().find(|row| row.name == name)
    }
}

async fn each_span_is_counted_once(protocol: &str) {
    let world = World::with_spans(7);
    let sink = Sink::answering(&[]).await;
    let more = format!("{ON}\nmetrics_temporality = 'delta'\ncompression = 'gzip'");
    let exporters = started(&world, destination(&sink, protocol, &more)).await;
    world.settle(20);
    world.drained().await;
    reported(&exporters, &world, &sink, 1).await;
    world.settle(5);
    world.drained().await;
    reported(&exporters, &world, &sink, 2).await;
    let seen = sink.metrics();
    let (first, temporality) = tools(&seen[0]).unwrap();
    assert_eq!(temporality, AggregationTemporality::Delta as i32);
    assert_eq!(first.count, 20, "seven spans were there before anybody asked");
    let (second, _) = tools(&seen[1]).unwrap();
    assert_eq!(second.count, 5);
    assert_eq!(first.time_unix_nano, second.start_time_unix_nano, "no gap and no overlap");
    assert!(first.start_time_unix_nano < first.time_unix_nano);
    let exemplar = &first.exemplars[0];
    let sent: Vec<_> = sink.seen().iter().flat_map(|seen| ids(&seen.body)).collect();
    assert!(sent.contains(&(exemplar.trace_id.clone(), exemplar.span_id.clone())));
    let backlog = sum(&seen[0], "hookspan.export.backlog");
    assert_eq!(backlog[0].value, Some(Number::AsInt(0)));
    let row = world.row("test").metrics.unwrap();
    assert_eq!((row.state.as_str(), row.lost, row.left_out), ("ok", 0, 0));
    assert!(row.delivered > 0 && row.last_ok_ns.is_some());
    exporters.shutdown().await;
}

fn ids(body: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let request = decode(body);
    let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    let spans = scopes.flat_map(|scope| &scope.spans);
    spans.map(|span| (span.trace_id.clone(), span.span_id.clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_span_is_counted_once_over_http() {
    each_span_is_counted_once("http/protobuf").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_span_is_counted_once_over_grpc() {
    each_span_is_counted_once("grpc").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_being_asked_for_no_metrics_leave() {
    let world = World::with_spans(3);
    let sink = Sink::answering(&[]).await;
    let exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    world.drained().await;
    assert!(exporters.retry("test"));
    exporters.shutdown().await;
    assert!(sink.metrics().is_empty());
    assert_eq!(world.row("test").metrics, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_since_the_start_grow_and_keep_their_start() {
    let world = World::new();
    let sink = Sink::answering(&[]).await;
    let exporters = started(&world, destination(&sink, "http/protobuf", ON)).await;
    for round in 1..=2 {
        world.settle(4);
        reported(&exporters, &world, &sink, round).await;
    }
    let seen = sink.metrics();
    let [first, second] = [0, 1].map(|at| tools(&seen[at]).unwrap());
    assert_eq!(first.1, AggregationTemporality::Cumulative as i32);
    assert_eq!((first.0.count, second.0.count), (4, 8));
    assert_eq!(first.0.start_time_unix_nano, second.0.start_time_unix_nano);
    exporters.shutdown().await;
}

/// Checks that the values of a failed request arrive later. Differences are sent again with the same bytes; cumulative
/// sums are contained in the next request.
async fn nothing_is_lost_behind(answer: Answer, protocol: &str, temporality: &str) {
    let world = World::new();
    let sink = Sink::answering(&[]).await;
    sink.answer_metrics(std::slice::from_ref(&answer));
    let more = format!("{ON}\nmetrics_temporality = '{temporality}'\ntimeout_ms = 300");
    let exporters = started(&world, destination(&sink, protocol, &more)).await;
    world.settle(4);
    reported(&exporters, &world, &sink, 1).await;
    world.settle(2);
    reported(&exporters, &world, &sink, 2).await;
    reported(&exporters, &world, &sink, 3).await;
    let seen = sink.metrics();
    let delivered = seen.iter().filter(|seen| matches!(seen.answer, Answer::Ok));
    let counts: Vec<_> = delivered.filter_map(tools).map(|(point, _)| point.count).collect();
    if temporality == "delta" {
        assert_eq!(seen[0].body, seen[1].body, "{answer:?}");
        assert_eq!(counts.iter().sum::<u64>(), 6, "{answer:?}: {counts:?}");
    } else {
        assert_eq!(counts.last(), Some(&6), "{answer:?}: {counts:?}");
    }
    let row = world.row("test").metrics.unwrap();
    assert_eq!((row.state.as_str(), row.lost, row.last_error), ("ok", 0, None));
    assert!(world.row("test").lost.is_empty());
    exporters.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_behind_a_failure() {
    let unavailable = Answer::grpc(tonic::Code::Unavailable);
    nothing_is_lost_behind(Answer::Http(503, None), "http/protobuf", "delta").await;
    nothing_is_lost_behind(Answer::Hang, "http/protobuf", "delta").await;
    nothing_is_lost_behind(Answer::Http(401, None), "http/protobuf", "cumulative").await;
    nothing_is_lost_behind(unavailable.clone(), "grpc", "delta").await;
    nothing_is_lost_behind(unavailable, "grpc", "cumulative").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_without_metrics_is_told_by_name_and_its_spans_go_on() {
    for (protocol, answer) in [
        ("http/protobuf", Answer::Http(404, None)),
        ("grpc", Answer::grpc(tonic::Code::Unimplemented)),
    ] {
        let world = World::new();
        let sink = Sink::answering(&[]).await;
        sink.answer_metrics(std::slice::from_ref(&answer));
        let exporters = started(&world, destination(&sink, protocol, ON)).await;
        world.settle(3);
        reported(&exporters, &world, &sink, 1).await;
        world.drained().await;
        let row = world.row("test");
        let metrics = row.metrics.unwrap();
        assert_eq!((row.state.as_str(), metrics.state.as_str()), ("ok", "paused"), "{answer:?}");
        assert!(metrics.advice.unwrap().contains("metrics = false"), "{answer:?}");
        exporters.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_points_are_counted() {
    let world = World::new();
    let sink = Sink::answering(&[]).await;
    sink.answer_metrics(&[Answer::Partial(2), Answer::Http(400, None)]);
    let exporters = started(&world, destination(&sink, "http/protobuf", ON)).await;
    world.settle(1);
    reported(&exporters, &world, &sink, 1).await;
    assert_eq!(world.row("test").metrics.unwrap().lost, 2);
    // The receiver accepts other requests, so the refusal concerns this request only.
    reported(&exporters, &world, &sink, 2).await;
    eventually(|| world.row("test").metrics.unwrap().lost > 2, String::new).await;
    assert_eq!(world.row("test").metrics.unwrap().state, "ok");
    exporters.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_older_than_a_day_is_left_out_and_counted() {
    let world = World::new();
    let sink = Sink::answering(&[]).await;
    let exporters = started(&world, destination(&sink, "http/protobuf", ON)).await;
    world.settle_with(3, |span| {
        span.start = Timestamp(1);
        span.end = Some(End { at: Timestamp(2), reason: EndReason::Matched });
    });
    world.settle(1);
    reported(&exporters, &world, &sink, 1).await;
    let seen = sink.metrics();
    assert_eq!(tools(&seen[0]).unwrap().0.count, 1);
    assert_eq!(world.row("test").metrics.unwrap().left_out, 3);
    exporters.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_sends_the_stored_request_and_goes_on_from_there() {
    let world = World::new();
    let sink = Sink::answering(&[]).await;
    sink.answer_metrics(&[Answer::Http(503, Some("60"))]);
    let more = format!("{ON}\nmetrics_temporality = 'delta'");
    let exporters = started(&world, destination(&sink, "http/protobuf", &more)).await;
    world.settle(4);
    reported(&exporters, &world, &sink, 1).await;
    exporters.shutdown().await;
    world.settle(2);
    let exporters = started(&world, destination(&sink, "http/protobuf", &more)).await;
    reported(&exporters, &world, &sink, 2).await;
    reported(&exporters, &world, &sink, 3).await;
    let seen = sink.metrics();
    assert_eq!(seen[0].body, seen[1].body);
    assert_eq!(tools(&seen[2]).unwrap().0.count, 2);
    exporters.shutdown().await;
    // Without `metrics`, the position in the queue is deleted.
    let exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    eventually(|| world.row("test").metrics.is_none(), String::new).await;
    exporters.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_session_is_in_no_stored_request() {
    let world = World::new();
    let sink = Sink::answering(&[]).await;
    sink.answer_metrics(&[Answer::Page(503, "text/plain", None, "acme_secret_tool is bad")]);
    let more = format!("{ON}\nmetrics_temporality = 'delta'");
    let exporters = started(&world, destination(&sink, "http/protobuf", &more)).await;
    world.settle(3);
    let mut changes = Changes::default();
    changes.push(Change::Session(Box::new(sample::session("gone"))));
    let mut span = sample::span("gone", "acme_secret_tool");
    span.start = clock::now();
    span.end = Some(End { at: clock::now(), reason: EndReason::Matched });
    changes.push(Change::Span(Box::new(span)));
    world.store.lock().unwrap().transaction(|open| open.changes(&changes)).unwrap();
    reported(&exporters, &world, &sink, 1).await;
    exporters.shutdown().await;
    let stored = || {
        let db = reader(&world.database).unwrap();
        let sql = "SELECT body, last_error FROM export_points";
        db.query_row(sql, [], |row| {
            Ok((row.get::<_, Option<Vec<u8>>>(0)?, row.get::<_, Option<String>>(1)?))
        })
        .unwrap()
    };
    let holds = |body: &[u8]| body.windows(16).any(|part| part == b"acme_secret_tool");
    assert!(holds(&stored().0.unwrap()) && stored().1.unwrap().contains("acme_secret_tool"));
    let gone =
        crate::store::prune::Selection { sessions: vec!["gone".into()], ..Default::default() };
    world.store.lock().unwrap().delete(&gone).unwrap();
    assert_eq!(stored(), (None, Some(tables::ANSWER_DELETED.to_owned())));
    let exporters = started(&world, destination(&sink, "http/protobuf", &more)).await;
    reported(&exporters, &world, &sink, 2).await;
    let seen = sink.metrics();
    assert!(!holds(&seen[1].body));
    assert_eq!(tools(&seen[1]).unwrap().0.count, 3, "the others are counted");
    exporters.shutdown().await;
}
