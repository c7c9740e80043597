//! Tests stars, tags, notes and saved filters through the API.

use axum::body::Body;
use serde_json::{Value, json};

use crate::support::client::{Answer, World};

async fn post(world: &World, path: &str, body: &Value) -> Answer {
    let headers = [("host", "127.0.0.1:4329"), ("content-type", "application/json")];
    world.send("POST", &format!("/api/v1/{path}"), &headers, Body::from(body.to_string())).await
}

#[tokio::test]
async fn a_session_gets_a_star_tags_and_a_note_and_bad_ones_are_refused_with_a_reason() {
    let world = World::open();
    let mark = async |root: &str, body: Value| {
        post(&world, &format!("sessions/{root}/marks"), &body).await
    };
    let done =
        mark("a", json!({"starred": true, "add_tags": [" later "], "note": "why\r\nnot"})).await;
    assert_eq!(done.json(), json!({"starred": true, "tags": ["later"], "note": "why\nnot"}));
    let long = "x".repeat(41);
    for (body, part) in [
        (json!({}), "give starred"),
        (json!({"add_tags": ["two words"]}), "one word"),
        (json!({"add_tags": [long]}), "at most 40"),
        (json!({"add_tags": ["none"]}), "other than"),
        (json!({"add_tags": ["\u{202e}x"]}), "control"),
        (json!({"remove_tags": [""]}), "one word"),
        (json!({"add_tags": vec!["t"; 17]}), "at most 16 tags"),
        (json!({"note": "x".repeat(2_001)}), "at most 2000"),
        (json!({"note": "\u{1b}[2J"}), "control"),
        (json!({"stars": 5}), "JSON object"),
    ] {
        let answer = mark("a", body.clone()).await;
        assert_eq!(answer.status.as_u16(), 400, "{body}");
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(part), "{body}: {detail}");
    }
    assert_eq!(mark("nobody", json!({"starred": true})).await.status.as_u16(), 404);
    let full = mark("full", json!({"add_tags": ["t"]})).await;
    assert!(full.json()["detail"].as_str().unwrap().contains("remove one first"));
}

#[tokio::test]
async fn lists_and_sessions_have_their_marks() {
    let world = World::open();
    let list = world.get("/api/v1/sessions").await.json();
    assert_eq!(list["items"][0]["marks"], json!({"starred": true, "tags": ["later"], "note": ""}));
    assert_eq!(list["items"][1]["marks"], json!({"starred": false, "tags": [], "note": ""}));
    let id = list["items"][1]["id"].as_str().unwrap();
    assert_eq!(world.get(&format!("/api/v1/sessions/{id}")).await.json()["marks"]["starred"], true);
}

#[tokio::test]
async fn filters_are_kept_by_name_and_bad_ones_are_refused() {
    let world = World::open();
    let kept = json!({"page": "files", "name": "mine", "query": "q=a", "url": "/files?q=a"});
    assert_eq!(world.get("/api/v1/filters").await.json()["items"], json!([kept]));
    let save = async |body: Value| post(&world, "filters", &body).await.status.as_u16();
    assert_eq!(save(json!({"page": "errors", "name": "shell", "query": "?tool=Shell"})).await, 200);
    for body in [
        json!({"page": "health", "name": "x", "query": "q=a"}),
        json!({"page": "errors", "name": "", "query": "q=a"}),
        json!({"page": "errors", "name": "x", "query": "q=<script>"}),
        json!({"page": "errors", "name": "x"}),
        json!({"page": "errors", "name": "one too many", "query": "q=a"}),
    ] {
        assert_eq!(save(body.clone()).await, 400, "{body}");
    }
    let forget = async |name: &str| {
        post(&world, "filters/delete", &json!({"page": "files", "name": name}))
            .await
            .status
            .as_u16()
    };
    assert_eq!((forget("mine").await, forget("other").await), (200, 404));
}

#[tokio::test]
async fn marks_need_what_every_change_needs() {
    let world = World::locked();
    let body = || Body::from(r#"{"starred": true}"#);
    for path in ["sessions/a/marks", "filters", "filters/delete"] {
        let target = format!("/api/v1/{path}");
        let json = ("content-type", "application/json");
        let host = ("host", "127.0.0.1:4329");
        assert_eq!(world.send("POST", &target, &[host, json], body()).await.status.as_u16(), 401);
        let text = ("content-type", "text/plain");
        assert_eq!(world.send("POST", &target, &[host, text], body()).await.status.as_u16(), 415);
        let evil = ("origin", "http://evil.example");
        let answer = world.send("POST", &target, &[host, json, evil], body()).await;
        assert_eq!(answer.status.as_u16(), 403);
    }
}

#[tokio::test]
async fn words_about_a_session_have_closed_lists_where_they_can() {
    let world = World::open();
    for path in ["sessions", "spans", "errors", "latency", "time"] {
        let ask = async |query: &str| world.get(&format!("/api/v1/{path}?{query}")).await;
        let refused = ask("outcome=won").await;
        assert_eq!(refused.status.as_u16(), 400, "{path}");
        assert!(refused.json()["detail"].as_str().unwrap().contains("one of tests_failed"));
        assert_eq!(ask("starred=no").await.status.as_u16(), 400, "{path}");
        let all = "outcome=none&starred=yes&branch=main&tag=later&project=none&model=none";
        assert_eq!(ask(all).await.status.as_u16(), 200, "{path}");
    }
    let search = world.get("/api/v1/search?q=cargo%20outcome:won").await;
    assert_eq!(search.status.as_u16(), 400);
}
