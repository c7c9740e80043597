//! Tests the event stream: notices, resuming, limits.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use futures_util::StreamExt as _;
use tokio::time::timeout;
use tower::ServiceExt as _;

use crate::support::client::World;

async fn open(world: &World, after: Option<&str>) -> (u16, BodyDataStream) {
    let mut request = Request::get("/api/v1/stream")
        .header("host", "127.0.0.1:4329")
        .header("authorization", "Bearer correct-horse-battery-staple");
    if let Some(after) = after {
        request = request.header("last-event-id", after);
    }
    let request = request.body(Body::empty()).unwrap();
    let response = world.router.clone().oneshot(request).await.unwrap();
    (response.status().as_u16(), response.into_body().into_data_stream())
}

/// Text up to and including the first event that holds `wanted`.
async fn until(stream: &mut BodyDataStream, wanted: &str) -> String {
    let mut text = String::new();
    let read = async {
        while !text.contains(wanted) {
            let bytes = stream.next().await.expect("the stream goes on").unwrap();
            text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    };
    timeout(Duration::from_secs(10), read).await.unwrap_or_else(|_| panic!("no {wanted}"));
    text
}

#[tokio::test]
async fn a_reader_hears_where_the_store_stands_and_then_what_changes() {
    let world = World::locked();
    let (status, mut stream) = open(&world, None).await;
    assert_eq!(status, 200);
    let hello = until(&mut stream, "event: health").await;
    assert!(hello.starts_with("retry: 2000\nid: e1:1\nevent: hello\n"), "{hello}");
    assert!(!hello.contains("event: session\n"), "{hello}");
    world.source.change("0176a3f0-live", |_| {});
    let text = until(&mut stream, "event: spans").await;
    assert!(text.contains("id: e1:2\nevent: session\n"), "{text}");
    assert!(text.contains(r#""id":"0176a3f0-live""#), "{text}");
    assert!(text.contains(r#"{"changed":1,"rev":2,"session":"0176a3f0-live"}"#), "{text}");
}

#[tokio::test]
async fn a_reader_that_comes_back_hears_each_changed_session_once() {
    let world = World::locked();
    let (_, mut first) = open(&world, None).await;
    until(&mut first, "event: hello").await;
    for _ in 0..3 {
        world.source.change("0176a3f0-live", |_| {});
    }
    until(&mut first, "id: e1:4").await;
    drop(first);
    let (_, mut again) = open(&world, Some("e1:2")).await;
    let text = until(&mut again, "event: health").await;
    assert_eq!(text.matches("event: session\n").count(), 1, "{text}");
    assert!(!text.contains("resync"), "{text}");
    let (_, mut current) = open(&world, Some("e1:4")).await;
    let text = until(&mut current, "event: health").await;
    assert!(!text.contains("event: session\n") && !text.contains("resync"), "{text}");
}

#[tokio::test]
async fn a_reader_of_another_epoch_or_the_future_must_reload() {
    let world = World::locked();
    for after in ["e0:1", "e1:99", "nonsense", ":", "e1:-1"] {
        let (_, mut stream) = open(&world, Some(after)).await;
        let text = until(&mut stream, "event: health").await;
        assert!(text.contains("event: resync\ndata: {\"reason\":\"epoch\"}"), "{after}: {text}");
    }
}

#[tokio::test]
async fn thirty_two_readers_are_served_and_the_next_is_told_to_wait() {
    let world = World::locked();
    let mut streams = Vec::new();
    for _ in 0..32 {
        let (status, stream) = open(&world, None).await;
        assert_eq!(status, 200);
        streams.push(stream);
    }
    assert_eq!(open(&world, None).await.0, 503);
    streams.pop();
    assert_eq!(open(&world, None).await.0, 200);
}

#[tokio::test]
async fn a_slow_reader_is_told_to_reload_and_holds_nothing_up() {
    let world = World::locked();
    let (_, mut slow) = open(&world, None).await;
    until(&mut slow, "event: health").await;
    // More changes at once than the source keeps for the hub.
    for _ in 0..200 {
        world.source.change("0176a3f0-live", |_| {});
    }
    until(&mut slow, "resync").await;
}

#[tokio::test]
async fn streams_end_when_the_collector_stops() {
    let world = World::locked();
    let (_, mut stream) = open(&world, None).await;
    until(&mut stream, "event: health").await;
    world.closing.send(true).unwrap();
    let rest = timeout(Duration::from_secs(10), async { while stream.next().await.is_some() {} });
    rest.await.expect("the stream ends");
}
