//! Checks that a preview shows exactly what a receiver gets.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;

use super::sink::Sink;
use super::*;
use crate::export::preview::{self, Preview};
use crate::store::whole::SessionRow;

const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

fn shown(
    world: &World,
    destination: &Destination,
    settings: &Settings,
) -> (ExportTraceServiceRequest, String, Preview) {
    let sessions = [SessionRow { root: "c1".to_owned(), last: clock::now() }];
    let mut bytes = Vec::new();
    let db = reader(&world.database).unwrap();
    let preview = preview::write(&db, destination, settings, &sessions, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    (serde_json::from_str(&text).unwrap(), text, preview)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_equals_what_the_receiver_gets() {
    let policies = ["", "content = 'off'", "content = 'full'\npaths = 'hash'"];
    let protocols = ["http/protobuf", "grpc"];
    for (more, protocol) in policies.into_iter().flat_map(|more| protocols.map(|one| (more, one))) {
        let world = World::new();
        world.settle_with(12, |span| span.name = format!("curl {TOKEN}"));
        let sink = Sink::answering(&[]).await;
        let destination = destination(&sink, protocol, more);
        let redaction = Redaction::default();
        let settings = Settings { redaction: redaction.clone(), ..Settings::default() };
        let (preview, text, told) = shown(&world, &destination, &settings);
        assert!(sink.seen().is_empty(), "a preview sends nothing");
        assert!(!text.contains(TOKEN), "{text}");
        let marks = text.matches("[redacted:").count() as u64;
        assert_eq!((told.spans, told.redacted.values().sum()), (12, marks), "{told:?}");
        assert!(marks >= 12 || more.contains("off"), "{more}: {told:?}");

        let timing = Timing { flush: Duration::from_millis(20), ..Timing::default() };
        let settings = Settings { timing, redaction, ..Settings::default() };
        let wake = world.wake.subscribe();
        let running =
            spawn(&Handle::current(), &world.database, vec![destination], &settings, &wake);
        world.drained().await;
        running.shutdown().await;
        let bodies: Vec<_> = sink.seen().iter().map(|seen| decode(&seen.body)).collect();
        assert_eq!(by_id(bodies), by_id(vec![preview]), "{more}");
    }
}

/// Sorts the spans of each request by id, so that a preview and a delivery can be compared. A receiver gets spans in
/// the order in which they settled, a preview has them in the order of time.
fn by_id(mut requests: Vec<ExportTraceServiceRequest>) -> Vec<ExportTraceServiceRequest> {
    let lists = requests.iter_mut().flat_map(|one| &mut one.resource_spans);
    for list in lists.flat_map(|one| &mut one.scope_spans) {
        list.spans.sort_by(|a, b| a.span_id.cmp(&b.span_id));
    }
    requests
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_leaves_out_what_would_not_be_sent() {
    let world = World::with_spans(2);
    world.settle_with(1, |span| span.settled = false);
    world.settle_with(1, |span| {
        span.start = Timestamp(5);
        span.end = Some(End { at: Timestamp(6), reason: EndReason::Matched });
    });
    let sink = Sink::answering(&[]).await;
    let of = |more: &str| {
        let (_, _, told) =
            shown(&world, &destination(&sink, "http/protobuf", more), &Settings::default());
        (told.spans, told.left_out)
    };
    assert_eq!(of(""), (3, 0), "what may still change waits");
    assert_eq!(of("max_span_age = '7d'"), (2, 1));
    assert_eq!(of("sample = 0.0"), (0, 3));
}
