//! The fault table: each fault of a receiver, and the resulting state of the destination. In no row is a span lost,
//! whether or not the receiver accepted something before. Once the receiver works again, everything arrives.

use std::sync::{Arc, Mutex};

use tonic::Code;

use super::sink::{Answer, Sink, eventually};
use super::{Exporters, World, at, destination};

/// Six traces.
const SPANS: u64 = 52;

const HTTP: &str = "http/protobuf";
const GRPC: &str = "grpc";

/// A receiver whose answer the test can change.
async fn changeable(answer: Answer) -> (Sink, Arc<Mutex<Answer>>) {
    let mind = Arc::new(Mutex::new(answer));
    let rule = Arc::clone(&mind);
    (Sink::start(&[], move |_| rule.lock().unwrap().clone()).await, mind)
}

/// Checks one row: `first` is the state when the receiver never accepted anything, `after` when it did.
async fn row(protocol: &str, answer: &Answer, first: &str, after: &str) {
    for (is_first, expected) in [(true, first), (false, after)] {
        let what = format!("{protocol} {answer:?}, first batch: {is_first}");
        let world = World::new();
        let (sink, mind) = changeable(Answer::Ok).await;
        let exporters = world.export(vec![destination(&sink, protocol, "timeout_ms = 2000")]);
        if !is_first {
            world.settle(10);
            world.drained().await;
        }
        *mind.lock().unwrap() = answer.clone();
        world.settle(SPANS);
        let state = || {
            let row = world.row("test");
            (row.state.clone(), row.lost.clone(), row.queued, row.last_error)
        };
        eventually(|| state().0 == expected, || format!("{what}: {:?}", state())).await;
        let (_, lost, queued, error) = state();
        assert_eq!((lost.len(), queued), (0, SPANS), "{what}");
        let error = error.unwrap_or_default();
        assert!(!error.is_empty() && error.chars().count() <= 300, "{what}: {error}");
        if expected == "paused" {
            assert!(world.row("test").advice.is_some(), "{what}: {error}");
        }
        *mind.lock().unwrap() = Answer::Ok;
        recovers(&world, &exporters, &what).await;
        exporters.shutdown().await;
    }
}

/// Asks the destination to send until everything has arrived, as a person would. Nothing may be lost.
async fn recovers(world: &World, exporters: &Exporters, what: &str) {
    let row = || world.row("test");
    eventually(|| exporters.retry("test") && row().queued == 0, || format!("{what}: {:?}", row()))
        .await;
    let delivered = world.all().len() as u64;
    let found = (row().state, row().delivered, row().lost);
    assert_eq!(found, ("ok".to_owned(), delivered, Vec::new()), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_http_answer_loses_a_span() {
    let page = |status, kind, body| Answer::Page(status, kind, None, body);
    let to = |status, place| Answer::Page(status, "text/html", Some(("location", place)), "moved");
    let json = "application/json";
    let all_refused = "{\"partialSuccess\":{\"rejectedSpans\":\"9999\",\"errorMessage\":\"no\"}}";
    let rows = [
        (to(301, "https://127.0.0.1/v1/traces"), "paused", "paused"),
        (to(302, "/login"), "paused", "paused"),
        (to(307, "http://[::1]/"), "paused", "paused"),
        (to(308, ""), "paused", "paused"),
        (page(200, "text/html", "<title>Jaeger UI</title>"), "paused", "paused"),
        (page(200, json, "{\"error\":\"no such project\"}"), "paused", "paused"),
        (page(200, json, all_refused), "paused", "retry"),
        (Answer::Partial(9_999), "paused", "retry"),
        (page(400, "text/html", "<html>blocked</html>"), "paused", "paused"),
        (page(422, json, "{\"detail\":\"Field required\"}"), "paused", "paused"),
        (Answer::Http(400, None), "paused", "paused"),
        (Answer::Http(401, None), "paused", "paused"),
        (Answer::Http(403, None), "paused", "paused"),
        (Answer::Http(404, None), "paused", "paused"),
        (Answer::Http(405, None), "paused", "paused"),
        (Answer::Http(408, None), "retry", "retry"),
        (Answer::Http(413, None), "paused", "paused"),
        (Answer::Http(415, None), "paused", "paused"),
        (Answer::Http(429, Some("3600")), "retry", "retry"),
        (Answer::Http(500, None), "paused", "paused"),
        (Answer::Http(502, None), "retry", "retry"),
        (Answer::Http(503, None), "retry", "retry"),
        (Answer::Http(504, None), "retry", "retry"),
        (Answer::Endless, "paused", "paused"),
        (Answer::Headers(2 << 20), "retry", "retry"),
    ];
    for (answer, first, after) in rows {
        row(HTTP, &answer, first, after).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_grpc_answer_loses_a_span() {
    let rows = [
        (Code::Cancelled, "retry"),
        (Code::Unknown, "paused"),
        (Code::InvalidArgument, "paused"),
        (Code::DeadlineExceeded, "retry"),
        (Code::NotFound, "paused"),
        (Code::AlreadyExists, "paused"),
        (Code::PermissionDenied, "paused"),
        (Code::ResourceExhausted, "retry"),
        (Code::FailedPrecondition, "paused"),
        (Code::Aborted, "retry"),
        (Code::OutOfRange, "paused"),
        (Code::Unimplemented, "paused"),
        (Code::Internal, "paused"),
        (Code::Unavailable, "retry"),
        (Code::DataLoss, "retry"),
        (Code::Unauthenticated, "paused"),
    ];
    for (code, state) in rows {
        row(GRPC, &Answer::grpc(code), state, state).await;
    }
    row(GRPC, &Answer::GrpcAtOnce(Code::Unavailable, "no"), "retry", "retry").await;
    row(GRPC, &Answer::GrpcAtOnce(Code::Unimplemented, "unknown service"), "paused", "paused")
        .await;
    row(GRPC, &Answer::GRPC_TOO_LARGE, "paused", "paused").await;
    row(GRPC, &Answer::Partial(9_999), "paused", "retry").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_no_grpc_loses_no_span() {
    let page = |status, kind, body| Answer::Page(status, kind, None, body);
    let moved = Answer::Page(302, "text/html", Some(("location", "https://127.0.0.1/")), "moved");
    let rows = [
        (page(200, "text/html", "<title>Grafana</title>"), "paused"),
        (page(200, "application/json", "{}"), "paused"),
        (page(204, "text/plain", ""), "paused"),
        (moved, "paused"),
        (Answer::Http(400, None), "paused"),
        (Answer::Http(401, None), "paused"),
        (Answer::Http(404, None), "paused"),
        (Answer::Http(429, None), "retry"),
        (Answer::Http(500, None), "retry"),
        (Answer::Http(503, None), "retry"),
        (Answer::GrpcBroken, "retry"),
        (Answer::GrpcEndless, "retry"),
        (Answer::Endless, "paused"),
        (Answer::Headers(256 << 10), "retry"),
    ];
    for (answer, state) in rows {
        row(GRPC, &answer, state, state).await;
    }
}

/// The behaviour of a port that speaks something else, or nothing.
enum Port {
    /// Accepts, waits for the first bytes, closes.
    Closes,
    /// Sends these bytes no matter what it receives, and closes.
    Says(&'static [u8]),
}

async fn port(port: Port) -> u16 {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let number = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut buffer = [0; 65_536];
            // The other side may have closed the connection; these tests provoke that.
            drop(socket.read(&mut buffer).await);
            if let Port::Says(bytes) = port {
                drop(socket.write_all(bytes).await);
                drop(socket.shutdown().await);
                drop(socket.read(&mut buffer).await);
            }
        }
    });
    number
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_speaks_something_else_loses_no_span_and_is_told_by_name() {
    // The first frame of an HTTP/2 server.
    let settings = b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00";
    // The alert `protocol_version`, which a TLS server sends to a client that does not speak TLS.
    let alert = b"\x15\x03\x01\x00\x02\x02\x46";
    let bad_request = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab";
    let rows = [
        (HTTP, "http", Port::Closes, "retry", "port forwarder"),
        (GRPC, "http", Port::Closes, "retry", "port forwarder"),
        (HTTP, "http", Port::Says(half), "retry", "port forwarder"),
        (HTTP, "http", Port::Says(settings), "paused", "usually 4318"),
        (HTTP, "http", Port::Says(alert), "paused", "write https://"),
        (GRPC, "http", Port::Says(bad_request), "paused", "http/protobuf"),
        (GRPC, "http", Port::Says(alert), "paused", "write https://"),
        (HTTP, "https", Port::Says(bad_request), "paused", "write http://127.0.0.1"),
        (GRPC, "https", Port::Says(bad_request), "paused", "write http://127.0.0.1"),
        (HTTP, "https", Port::Closes, "retry", "port forwarder"),
        (GRPC, "https", Port::Closes, "retry", "port forwarder"),
    ];
    for (index, (protocol, scheme, kind, state, advice)) in rows.into_iter().enumerate() {
        let world = World::with_spans(SPANS);
        let endpoint = format!("{scheme}://127.0.0.1:{}", port(kind).await);
        let exporters = world.export(vec![at(&endpoint, protocol, "")]);
        let row = || world.row("test");
        let told = || row().advice.is_some_and(|text| text.to_lowercase().contains(advice));
        eventually(
            || row().state == state && told(),
            || format!("row {index}, {protocol} {scheme}: {:?}", row()),
        )
        .await;
        assert_eq!((row().queued, row().lost.len()), (SPANS, 0), "row {index}");
        exporters.shutdown().await;
    }
}

/// gzip is the default for addresses other than loopback. `::ffff:127.0.0.1` is this machine, but the configuration
/// does not count it as loopback.
#[tokio::test(flavor = "multi_thread")]
async fn gzip_is_sent_and_read_by_both_protocols() {
    for protocol in [HTTP, GRPC] {
        for (host, compression, expected) in [
            ("127.0.0.1", "", false),
            ("127.0.0.1", "compression = 'gzip'", true),
            ("[::ffff:127.0.0.1]", "", true),
            ("[::ffff:127.0.0.1]", "compression = 'none'", false),
        ] {
            let world = World::with_spans(SPANS);
            let sink = Sink::answering(&[Answer::Partial(2)]).await;
            let endpoint = format!("http://{host}:{}", sink.port);
            let exporters = world.export(vec![at(&endpoint, protocol, compression)]);
            world.drained().await;
            let what = format!("{protocol} {host} {compression}");
            let seen = sink.seen();
            assert_eq!((seen.len(), seen[0].gzip), (1, expected), "{what}");
            assert_eq!(sink.taken(), world.all(), "{what}");
            let row = world.row("test");
            assert_eq!(
                (row.delivered, row.lost),
                (SPANS - 2, vec![("partial".to_owned(), 2)]),
                "{what}"
            );
            exporters.shutdown().await;
        }
    }
}
