//! Tests what an attacker stores or requests: it stays text, or is refused.

use axum::body::Body;
use serde_json::{Value, json};

use crate::support::client::{Answer, TOKEN, World};

/// Texts that something might interpret: a browser, a terminal, SQLite, its search index, a JSON reader.
const CORPUS: [&str; 16] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "</script><script>alert(2)</script>",
    "nul\u{0}inside",
    "\u{1b}]8;;http://evil.example\u{7}link\u{1b}]8;;\u{7}",
    "\u{1b}]52;c;aGk=\u{7}",
    "\u{1b}]0;title\u{7}\u{1b}[2J",
    "\u{202e}gnp.exe\u{2066}",
    "zero\u{200b}width\u{feff}",
    "__proto__",
    "'; DROP TABLE session; --",
    "\" OR * NEAR(",
    "a AND NOT b*",
    "../../etc/passwd",
    "%0d%0aSet-Cookie: x=1",
];

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

async fn post(world: &World, target: &str, body: Value) -> Answer {
    let bearer = format!("Bearer {TOKEN}");
    let headers = [
        ("host", "127.0.0.1:4329"),
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    world.send("POST", target, &headers, body.to_string()).await
}

#[tokio::test]
async fn every_parameter_takes_hostile_text_as_text() {
    let world = World::locked();
    for text in CORPUS {
        let text = encoded(text);
        for target in [
            format!("/api/v1/search?q={text}"),
            format!("/api/v1/search?q=%22{text}"),
            format!("/api/v1/sessions?q={text}&project={text}&model={text}&tool={text}"),
            format!("/api/v1/spans?tool={text}&session={text}"),
            format!("/api/v1/errors?project={text}"),
            format!("/api/v1/latency/heatmap?name={text}"),
        ] {
            let answer = world.get(&target).await;
            assert_eq!(answer.status.as_u16(), 200, "{target}: {:?}", answer.body);
            assert_eq!(answer.header("content-type"), "application/json", "{target}");
        }
        for target in [
            format!("/api/v1/sessions/{text}"),
            format!("/api/v1/sessions/{text}/export"),
            format!("/api/v1/sessions/{text}/edits"),
            format!("/api/v1/compare?a={text}&b={text}"),
            format!("/api/v1/spans/{text}/diff"),
            format!("/api/v1/traces/{text}"),
        ] {
            assert_eq!(world.get(&target).await.status.as_u16(), 404, "{target}");
        }
        for target in [
            format!("/api/v1/sessions?cursor={text}"),
            format!("/api/v1/sessions/0176a3f0-flaky/export?format={text}"),
            format!("/api/v1/sessions/0176a3f0-flaky/export?content={text}"),
            format!("/api/v1/latency?group={text}"),
            format!("/api/v1/search?q=x&field={text}"),
        ] {
            let answer = world.get(&target).await;
            assert_eq!(answer.status.as_u16(), 400, "{target}");
            // The request is not quoted: every word of a problem is ours.
            assert!(!answer.body.windows(7).any(|part| part == b"<script"), "{target}");
        }
    }
}

#[tokio::test]
async fn a_stored_name_does_not_get_into_a_header() {
    let world = World::locked();
    let hostile = "a\r\nSet-Cookie: x=1\"; filename=\"evil.html";
    world.source.change("0176a3f0-flaky", |data| {
        data.sessions[0].root = hostile.into();
    });
    let answer = world.get(&format!("/api/v1/sessions/{}/export", encoded(hostile))).await;
    assert_eq!(answer.status.as_u16(), 200);
    assert_eq!(answer.headers.get("set-cookie"), None);
    let name = answer.header("content-disposition");
    assert_eq!(name, "attachment; filename=\"hookspan-aSet-Cookiex1filenameevilhtml.html\"");
    assert!(answer.header("content-security-policy").ends_with("; sandbox"));
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
}

#[tokio::test]
async fn a_preview_is_a_file_that_a_browser_runs_nothing_of() {
    let world = World::locked();
    let shown = world.get("/api/v1/privacy/preview?destination=jaeger").await;
    assert_eq!((shown.status.as_u16(), &shown.body[..]), (200, &b"jaeger last"[..]));
    let name = "attachment; filename=\"hookspan-jaeger.preview.json\"";
    assert_eq!(shown.header("content-disposition"), name);
    assert!(shown.header("content-security-policy").ends_with("; sandbox"));
    for (target, status) in [
        ("/api/v1/privacy/preview", 400),
        ("/api/v1/privacy/preview?destination=nobody%0d%0aSet-Cookie:%20x", 404),
        ("/api/v1/privacy/preview?destination=../../etc", 404),
    ] {
        assert_eq!(world.get(target).await.status.as_u16(), status, "{target}");
    }
}

#[tokio::test]
async fn deleting_needs_a_post_with_the_id_again() {
    let world = World::locked();
    let target = "/api/v1/sessions/0176a3f0-flaky/delete";
    assert_eq!(world.get(target).await.status.as_u16(), 405);
    for (body, param) in [
        (json!({}), "body"),
        (json!({"confirm": "0176a3f0-live"}), "confirm"),
        (json!({"confirm": ""}), "confirm"),
        (json!({"confirm": "0176a3f0-flaky", "more": 1}), "body"),
        (json!("0176a3f0-flaky"), "body"),
    ] {
        let answer = post(&world, target, body.clone()).await;
        assert_eq!(answer.status.as_u16(), 400, "{body}");
        assert_eq!(answer.json()["param"], param, "{body}");
    }
    let done = post(&world, target, json!({"confirm": "0176a3f0-flaky"})).await.json();
    assert_eq!((&done["deleted_spans"], &done["deleted_hooks"]), (&json!(10), &json!(20)));
    let gone = post(&world, "/api/v1/sessions/nobody/delete", json!({"confirm": "nobody"})).await;
    assert_eq!(gone.status.as_u16(), 404);
    let form = [("host", "127.0.0.1:4329"), ("content-type", "text/plain")];
    let foreign = world.send("POST", target, &form, Body::from("{}")).await;
    assert_eq!(foreign.status.as_u16(), 415);
}

#[tokio::test]
async fn a_purge_says_what_it_would_delete_and_never_means_everything() {
    let world = World::locked();
    let target = "/api/v1/privacy/purge";
    assert_eq!(post(&world, target, json!({"dry_run": true})).await.status.as_u16(), 400);
    let all = world.source.data_now() / 1_000;
    let dry = post(&world, target, json!({"before_us": all + 1, "dry_run": true})).await.json();
    assert_eq!((&dry["deleted_sessions"], &dry["dry_run"]), (&json!(0), &json!(true)));
    let sessions = dry["sessions"].as_u64().unwrap();
    assert!(sessions > 10, "{sessions}");
    let none = post(&world, target, json!({"before_us": 0, "dry_run": true})).await.json();
    assert_eq!(none["sessions"], 0);
    // A project is named by the whole name of its folder: `ap` is not `api`.
    let some = post(&world, target, json!({"project": "api", "dry_run": true})).await.json();
    let part = post(&world, target, json!({"project": "ap", "dry_run": true})).await.json();
    assert!((1..sessions).contains(&some["sessions"].as_u64().unwrap()), "{some}");
    assert_eq!(part["sessions"], 0);
    let nobody = json!({"project": "api", "model": "nobody", "dry_run": true});
    assert_eq!(post(&world, target, nobody).await.json()["sessions"], 0);
    let wrong = json!({"project": "api", "kind": "person"});
    assert_eq!(post(&world, target, wrong).await.status.as_u16(), 400);
    let done = post(&world, target, json!({"project": "api"})).await.json();
    assert_eq!(done["deleted_sessions"], some["sessions"]);
}

#[tokio::test]
async fn links_to_elsewhere_hold_ids_and_numbers_only() {
    let world = World::locked();
    let detail = world.get("/api/v1/spans/5").await.json();
    let url = detail["open_in"][0]["url"].as_str().unwrap();
    let (trace, span) = (detail["trace_id"].as_str().unwrap(), detail["id"].as_str().unwrap());
    let ms = detail["start_us"].as_i64().unwrap() / 1_000;
    assert_eq!(url, format!("http://127.0.0.1:16686/trace/{trace}?uiFind={span}&t={ms}"));
}
