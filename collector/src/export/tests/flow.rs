//! Tests several requests in flight: what is sent, what is stored, and what happens when one of them fails.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use super::sink::{Answer, Sink, decode, names};
use super::*;

/// Six full requests and a rest.
const SPANS: u64 = 6 * 512 + 100;

fn is_first_of(
    request: &opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest,
    name: &str,
) -> bool {
    names(request).first().is_some_and(|first| first == name)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_fails_among_others_is_sent_again_alone() {
    let world = World::with_spans(SPANS);
    let failed = Arc::new(AtomicBool::new(false));
    let once = Arc::clone(&failed);
    // The second of the four requests in flight fails once.
    let sink = Sink::start(&[], move |request| {
        let bad = is_first_of(request, "s1024") && !once.swap(true, Ordering::Relaxed);
        if bad { Answer::Http(503, Some("1")) } else { Answer::Ok }
    })
    .await;
    let _exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    world.drained().await;
    assert_eq!(sorted(sink.taken()), world.all(), "each once");
    let tries: Vec<_> =
        sink.seen().into_iter().filter(|seen| is_first_of(&decode(&seen.body), "s1024")).collect();
    assert_eq!(tries.len(), 2);
    assert_eq!(tries[0].body, tries[1].body);
    assert!(
        tries[1].at - tries[0].at >= Duration::from_millis(990),
        "the receiver's delay is kept"
    );
    let row = world.row("test");
    assert_eq!((row.delivered, row.lost.len(), row.state.as_str()), (SPANS, 0, "ok"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_that_is_refused_in_a_backlog_is_isolated() {
    let world = World::with_spans(SPANS);
    let rule = |request: &_| {
        let bad = names(request).contains(&"s1500".to_owned());
        if bad { Answer::Http(400, None) } else { Answer::Ok }
    };
    let sink = Sink::start(&[], rule).await;
    let _exporters = world.export(vec![destination(&sink, "http/protobuf", "")]);
    world.drained().await;
    let row = world.row("test");
    assert_eq!((row.delivered, row.lost), (SPANS - 10, vec![("rejected".to_owned(), 10)]));
    let taken = sink.taken();
    assert_eq!(taken.len(), taken.iter().collect::<BTreeSet<_>>().len(), "nothing came twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_refused_in_part_of_one_request_are_counted() {
    let world = World::with_spans(SPANS);
    let rule =
        |request: &_| if is_first_of(request, "s1024") { Answer::Partial(7) } else { Answer::Ok };
    let sink = Sink::start(&[], rule).await;
    let _exporters = world.export(vec![destination(&sink, "grpc", "")]);
    world.drained().await;
    let row = world.row("test");
    assert_eq!((row.delivered, row.lost), (SPANS - 7, vec![("partial".to_owned(), 7)]));
    assert_eq!(sorted(sink.taken()), world.all());
}
