//! Tests the exporters with a real database and a receiver that misbehaves. Each test checks what is kept and what is
//! counted.

mod conformance;
mod dashboards;
mod faults;
mod flow;
mod foreign;
mod logs;
mod points;
mod previews;
mod probes;
mod refusals;
mod sink;
mod tls;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hookspan_core::{Change, End, EndReason, Span, SpanId, Timestamp, TraceId};
use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use self::sink::{Answer, Sink, decode, eventually, names};
use super::start::DAY_NS;
use super::*;
use crate::clock;
use crate::config::destination::{Backfill, DestinationForm};
use crate::config::{Environment, Semconv};
use crate::store::export as tables;
use crate::store::open::reader;
use crate::store::sample;
use crate::store::write::{Changes, Store};

/// A database with settled spans, and the exporters on it.
struct World {
    _temp: tempfile::TempDir,
    database: PathBuf,
    store: Mutex<Store>,
    wake: watch::Sender<u64>,
    settled: AtomicU64,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let database = temp.path().join("hookspan.db");
        let store = Mutex::new(Store::open(&database).unwrap());
        Self {
            _temp: temp,
            database,
            store,
            wake: watch::Sender::new(0),
            settled: AtomicU64::new(0),
        }
    }

    fn with_spans(count: u64) -> Self {
        let world = Self::new();
        world.settle(count);
        world
    }

    /// Settles `count` more spans, named `s0`, `s1` and so on, ten per trace.
    fn settle(&self, count: u64) {
        self.settle_with(count, |_| {});
    }

    fn settle_with(&self, count: u64, change: impl Fn(&mut Span)) {
        let mut changes = Changes::default();
        let first = self.settled.fetch_add(count, Ordering::Relaxed);
        for i in first..first + count {
            let mut span = sample::span("c1", "Shell");
            span.name = format!("s{i}");
            span.id = SpanId::derive("c1", "g1", "tool", &i.to_string());
            span.trace = TraceId::derive("generation", "c1", &(i / 10).to_string());
            span.start = clock::now();
            span.end = Some(End { at: clock::now(), reason: EndReason::Matched });
            change(&mut span);
            changes.push(Change::Span(Box::new(span)));
        }
        self.store.lock().unwrap().transaction(|open| open.changes(&changes)).unwrap();
        self.wake.send_modify(|rev| *rev += 1);
    }

    fn export(&self, destinations: Vec<Destination>) -> Exporters {
        self.export_rereading(destinations, Reread::default())
    }

    fn export_rereading(&self, destinations: Vec<Destination>, reread: Reread) -> Exporters {
        let timing = Timing {
            flush: Duration::from_millis(20),
            backoff: Duration::from_millis(20),
            backoff_max: Duration::from_millis(50),
            probe_first: Duration::from_secs(60),
            probe: Duration::from_secs(60),
            ..Timing::default()
        };
        let settings = Settings { timing, reread, ..Settings::default() };
        let wake = self.wake.subscribe();
        spawn(&Handle::current(), &self.database, destinations, &settings, &wake)
    }

    fn row(&self, name: &str) -> tables::DestinationRow {
        let rows = tables::destinations(&reader(&self.database).unwrap()).unwrap();
        rows.into_iter().find(|row| row.name == name).unwrap()
    }

    fn all(&self) -> Vec<String> {
        (0..self.settled.load(Ordering::Relaxed)).map(|i| format!("s{i}")).collect()
    }

    /// Waits until `test`'s destination has nothing left to send.
    async fn drained(&self) {
        let row = || self.row("test");
        eventually(|| row().queued == 0, || format!("{:?}", row())).await;
    }
}

fn destination(sink: &Sink, protocol: &str, more: &str) -> Destination {
    at(&format!("http://127.0.0.1:{}", sink.port), protocol, more)
}

fn at(endpoint: &str, protocol: &str, more: &str) -> Destination {
    let text = format!(
        "name = 'test'\nendpoint = '{endpoint}'\nprotocol = '{protocol}'\nbackfill = 'all'\n\
         backlog_max_spans = 100000\n{more}"
    );
    let form: DestinationForm = toml::from_str(&text).unwrap();
    form.build(&Environment::of(&[("KEY", "k")], "/"), Semconv::default()).unwrap()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_by_key(|name| name.trim_start_matches('s').parse::<u64>().unwrap());
    names
}

async fn everything_arrives_once_and_in_order(protocol: &str) {
    let world = World::with_spans(1_300);
    let sink = Sink::answering(&[]).await;
    let destination = destination(&sink, protocol, "headers = { x-key = 'env:KEY' }");
    let exporters = world.export(vec![destination]);
    world.drained().await;
    assert_eq!(sink.taken(), world.all());
    let sizes: Vec<_> = sink.seen().iter().map(|seen| names(&decode(&seen.body)).len()).collect();
    assert_eq!(sizes, [512, 512, 276]);
    assert!(sink.seen().iter().all(|seen| seen.key.as_deref() == Some("k")));
    let health = world.row("test").health("h:1".to_owned(), clock::now());
    assert_eq!((health.state.as_str(), health.delivered, health.queued), ("ok", 1_300, 0));
    assert_eq!(health.endpoint_host, "h:1");
    assert!(health.last_ok.is_some() && health.lost.is_empty());
    exporters.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_arrives_once_and_in_order_over_http() {
    everything_arrives_once_and_in_order("http/protobuf").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_arrives_once_and_in_order_over_grpc() {
    everything_arrives_once_and_in_order("grpc").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_settles_later_leaves_later() {
    let world = World::with_spans(1);
    let sink = Sink::answering(&[]).await;
    let _exporters = world.export(vec![destination(&sink, "grpc", "")]);
    world.drained().await;
    world.settle(2);
    world.drained().await;
    assert_eq!(sink.taken(), world.all());
}

async fn a_failure_repeats_the_same_bytes(protocol: &str, answer: Answer, more: &str) {
    let world = World::with_spans(20);
    let sink = Sink::answering(std::slice::from_ref(&answer)).await;
    let _exporters = world.export(vec![destination(&sink, protocol, more)]);
    world.drained().await;
    let seen = sink.seen();
    assert_eq!(seen.len(), 2, "{answer:?}");
    assert_eq!(seen[0].body, seen[1].body, "{answer:?}");
    let row = world.row("test");
    assert_eq!((row.delivered, row.lost.len()), (20, 0), "{answer:?}");
    assert_eq!((row.state.as_str(), row.last_error), ("ok", None), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_server_gets_the_same_bytes_again() {
    a_failure_repeats_the_same_bytes("http/protobuf", Answer::Http(503, None), "").await;
    a_failure_repeats_the_same_bytes("grpc", Answer::grpc(tonic::Code::Unavailable), "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_gets_the_same_bytes_again() {
    for protocol in ["http/protobuf", "grpc"] {
        a_failure_repeats_the_same_bytes(protocol, Answer::Hang, "timeout_ms = 200").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_servers_delay_is_kept() {
    let world = World::with_spans(5);
    let sink = Sink::answering(&[Answer::Http(429, Some("1"))]).await;
    let _exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    world.drained().await;
    let seen = sink.seen();
    let waited = seen[1].at - seen[0].at;
    assert!(waited >= Duration::from_millis(990), "{waited:?}");
    assert_eq!(sink.taken(), world.all());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_in_the_answer_is_a_failure() {
    let world = World::with_spans(5);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let server = tokio::spawn(async move {
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab",
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        ] {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 65_536];
            let _read = socket.read(&mut buffer).await.unwrap();
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let _exporters = world.export(vec![at(&endpoint, "http/protobuf", "")]);
    world.drained().await;
    server.await.unwrap();
    assert_eq!(world.row("test").delivered, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_refuses_of_a_batch_is_counted_and_not_repeated() {
    for protocol in ["http/protobuf", "grpc"] {
        let world = World::with_spans(10);
        let sink = Sink::answering(&[Answer::Partial(3)]).await;
        let _exporters = world.export(vec![destination(&sink, protocol, "")]);
        world.drained().await;
        let row = world.row("test");
        assert_eq!((row.delivered, row.lost), (7, vec![("partial".to_owned(), 3)]));
        assert_eq!(sink.seen().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_too_large_is_halved_until_it_fits() {
    for (protocol, answer) in
        [("http/protobuf", Answer::Http(413, None)), ("grpc", Answer::GRPC_TOO_LARGE)]
    {
        let world = World::with_spans(300);
        let rule = move |request: &_| {
            if names(request).len() > 100 { answer.clone() } else { Answer::Ok }
        };
        let sink = Sink::start(&[], rule).await;
        let _exporters = world.export(vec![destination(&sink, protocol, "")]);
        world.drained().await;
        assert_eq!(sink.taken(), world.all());
        assert!(world.row("test").lost.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lone_span_that_is_too_large_is_lost_and_counted() {
    let world = World::with_spans(20);
    let rule = |request: &_| {
        let bad = names(request).contains(&"s13".to_owned());
        if bad { Answer::Http(413, None) } else { Answer::Ok }
    };
    let sink = Sink::start(&[], rule).await;
    let _exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    world.drained().await;
    let row = world.row("test");
    assert_eq!((row.delivered, row.lost), (19, vec![("too_large".to_owned(), 1)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_that_is_refused_is_isolated_and_the_rest_arrives() {
    for (protocol, answer) in [
        ("http/protobuf", Answer::Http(400, None)),
        ("grpc", Answer::grpc(tonic::Code::InvalidArgument)),
    ] {
        let world = World::with_spans(95);
        let rule = move |request: &_| {
            let bad = names(request).contains(&"s42".to_owned());
            if bad { answer.clone() } else { Answer::Ok }
        };
        let sink = Sink::start(&[], rule).await;
        let _exporters = world.export(vec![destination(&sink, protocol, "")]);
        world.drained().await;
        let row = world.row("test");
        assert_eq!((row.delivered, row.lost), (85, vec![("rejected".to_owned(), 10)]));
        assert_eq!(row.state, "ok");
        let others: Vec<_> = world
            .all()
            .into_iter()
            .filter(|name| !name.starts_with("s4") || name == "s4")
            .collect();
        assert_eq!(sorted(sink.taken()), others);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_pauses_and_keeps_everything_until_asked() {
    for (protocol, answer) in [
        ("http/protobuf", Answer::Http(401, None)),
        ("http/protobuf", Answer::Http(404, None)),
        ("grpc", Answer::grpc(tonic::Code::Unauthenticated)),
        ("grpc", Answer::grpc(tonic::Code::Unimplemented)),
    ] {
        let world = World::with_spans(10);
        let sink = Sink::answering(&[answer]).await;
        let exporters = world.export(vec![destination(&sink, protocol, "")]);
        let row = || world.row("test");
        eventually(|| row().state == "paused", || format!("{:?}", row())).await;
        assert_eq!((row().queued, row().lost.len()), (10, 0));
        assert!(row().last_error.is_some());
        assert!(exporters.retry("test") && !exporters.retry("other"));
        world.drained().await;
        assert_eq!((sink.taken(), row().state.as_str()), (world.all(), "ok"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_repeats_the_stored_bytes_and_loses_nothing() {
    let world = World::with_spans(700);
    let sink = Sink::answering(&[Answer::Ok, Answer::Hang]).await;
    let exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    eventually(|| sink.seen().len() == 2, || "two requests".to_owned()).await;
    // Simulates kill -9: the task disappears during its request, and only the store knows its state.
    for running in &exporters.destinations {
        running.task.lock().unwrap().take().unwrap().abort();
    }
    drop(exporters);
    world.settle(5);
    // Even a change of policy does not change bytes that may have arrived already.
    let _again = world.export(vec![destination(&sink, "http/protobuf", "content = 'off'")]);
    world.drained().await;
    let seen = sink.seen();
    assert_eq!(seen[1].body, seen[2].body);
    assert_eq!(world.row("test").delivered, 705);
    assert!(world.row("test").lost.is_empty());
    let arrived: Vec<_> = seen.iter().skip(2).flat_map(|seen| names(&decode(&seen.body))).collect();
    assert_eq!(arrived.len(), 705 - 512);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_survives_a_restart() {
    let world = World::with_spans(5);
    let sink = Sink::answering(&[Answer::Http(429, Some("3600"))]).await;
    let exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    let row = || world.row("test");
    eventually(|| row().state == "retry", || format!("{:?}", row())).await;
    exporters.shutdown().await;
    let again = world.export(vec![destination(&sink, "http/protobuf", "")]);
    // The second destination shows that the exporters work while the first one waits.
    let other = Destination { name: "other".to_owned(), ..destination(&sink, "http/protobuf", "") };
    again.shutdown().await;
    let _both = world.export(vec![destination(&sink, "http/protobuf", ""), other]);
    eventually(|| sink.seen().len() == 2, || format!("{} requests", sink.seen().len())).await;
    assert_eq!((row().queued, row().state.as_str()), (5, "retry"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_destination_that_hangs_holds_up_no_other() {
    let world = World::with_spans(50);
    let hung = Sink::start(&[], |_| Answer::Hang).await;
    let fine = Sink::answering(&[]).await;
    let other = Destination { name: "other".to_owned(), ..destination(&hung, "grpc", "") };
    let exporters = world.export(vec![other, destination(&fine, "grpc", "")]);
    world.drained().await;
    assert_eq!(fine.taken(), world.all());
    assert_eq!(world.row("other").queued, 50);
    let before = std::time::Instant::now();
    exporters.shutdown().await;
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_beyond_its_bound_loses_the_oldest_and_counts_them() {
    let world = World::with_spans(600);
    let sink = Sink::answering(&[Answer::Http(503, Some("3600"))]).await;
    let limited = destination(&sink, "http/protobuf", "\n");
    let limited = Destination { backlog_max_spans: 100, ..limited };
    let exporters = world.export(vec![limited]);
    let row = || world.row("test");
    // The batch in flight begins with spans beyond the limit. It stays whole because it also contains spans within the
    // limit.
    eventually(|| row().last_error.is_some(), || format!("{:?}", row())).await;
    assert_eq!((row().queued, row().lost), (600, Vec::new()));
    assert!(row().last_error.is_some_and(|error| error.contains("503")));
    world.settle(30);
    assert!(exporters.retry("test"));
    world.drained().await;
    let lost = row().lost;
    assert_eq!(lost, vec![("overflow".to_owned(), 530)]);
    assert_eq!(sink.taken(), world.all()[530..]);
    assert_eq!(row().delivered, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_older_than_a_destination_takes_is_counted_instead_of_sent() {
    const HOUR_NS: i64 = 3_600_000_000_000;
    let world = World::new();
    let old = |span: &mut Span| {
        span.start = clock::now().plus(-2 * HOUR_NS);
        span.end = Some(End { at: clock::now().plus(-HOUR_NS), reason: EndReason::Matched });
    };
    world.settle_with(4, old);
    world.settle(3);
    let sink = Sink::answering(&[]).await;
    let _exporters =
        world.export(vec![destination(&sink, "http/protobuf", "max_span_age = '55m'")]);
    world.drained().await;
    assert_eq!(sink.taken(), world.all()[4..]);
    assert_eq!(world.row("test").lost, vec![("expired".to_owned(), 4)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_history_reaches_a_destination_that_works() {
    let world = World::new();
    let ancient = |span: &mut Span| {
        span.start = Timestamp(1);
        span.end = Some(End { at: Timestamp(2), reason: EndReason::Matched });
    };
    world.settle_with(4, ancient);
    let sink = Sink::answering(&[]).await;
    let _exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    world.drained().await;
    assert_eq!(sink.taken(), world.all());
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_are_whole_conversations() {
    let world = World::new();
    for i in 0..40 {
        world.settle_with(2, |span| span.root = format!("c{i}").into());
    }
    let sink = Sink::answering(&[]).await;
    let _exporters = world.export(vec![destination(&sink, "http/protobuf", "sample = 0.5")]);
    world.drained().await;
    let taken = sink.taken();
    assert!((20..=60).contains(&taken.len()) && taken.len() % 2 == 0, "{taken:?}");
    for pair in taken.chunks(2) {
        let number = |name: &str| name[1..].parse::<u64>().unwrap();
        assert_eq!(number(&pair[0]) / 2, number(&pair[1]) / 2);
    }
    assert!(world.row("test").lost.is_empty(), "what is not sampled is not lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_destination_starts_where_it_is_told() {
    let world = World::with_spans(10);
    let sink = Sink::answering(&[]).await;
    let from = |backfill| Destination { backfill, ..destination(&sink, "http/protobuf", "") };
    let head = Destination { name: "head".to_owned(), ..from(Backfill::None) };
    let day = Destination { name: "day".to_owned(), ..from(Backfill::Day) };
    let _exporters = world.export(vec![head, day, from(Backfill::All)]);
    world.settle(1);
    let total = || -> Vec<(u64, u64)> {
        let rows = ["head", "day", "test"].map(|name| world.row(name));
        rows.iter().map(|row| (row.delivered, row.queued)).collect()
    };
    let expected = [(1, 0), (11, 0), (11, 0)];
    eventually(|| total() == expected, || format!("{:?}", total())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_left_the_configuration_is_off_and_keeps_its_place() {
    let world = World::with_spans(3);
    let sink = Sink::answering(&[]).await;
    let exporters = world.export(vec![destination(&sink, "grpc", "")]);
    world.drained().await;
    exporters.shutdown().await;
    let none = world.export(Vec::new());
    assert_eq!(world.row("test").state, "off");
    none.shutdown().await;
    world.settle(2);
    let _back = world.export(vec![destination(&sink, "grpc", "")]);
    world.drained().await;
    assert_eq!((world.row("test").state.as_str(), sink.taken()), ("ok", world.all()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_never_passes_its_limit_in_bytes() {
    let world = World::new();
    world.settle_with(512, |span| {
        span.attributes = (0..10)
            .map(|i| hookspan_core::Attribute {
                key: format!("key{i}").into(),
                value: hookspan_core::Value::Str("x".repeat(2_000).into()),
                class: hookspan_core::Class::Plain,
            })
            .collect();
    });
    let sink = Sink::answering(&[]).await;
    let _exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    world.drained().await;
    assert_eq!(sink.taken(), world.all());
    let sizes: Vec<_> = sink.seen().iter().map(|seen| seen.body.len()).collect();
    assert!(sizes.len() >= 3 && sizes.iter().all(|size| *size <= 4 << 20), "{sizes:?}");
    assert_eq!(decode(&sink.seen()[0].body).encode_to_vec(), sink.seen()[0].body);
}
