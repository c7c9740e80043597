use serde_json::{Value, json};

use crate::support::client::World;
use crate::support::story::HOSTILE;

#[tokio::test]
async fn sessions_come_in_pages_that_add_up() {
    let world = World::locked();
    let mut seen = Vec::new();
    let mut target = "/api/v1/sessions?limit=10".to_owned();
    loop {
        let page = world.get(&target).await.json();
        for item in page["items"].as_array().unwrap() {
            seen.push((item["last_us"].as_i64().unwrap(), item["id"].as_str().unwrap().to_owned()));
        }
        let Some(next) = page["next"].as_str() else { break };
        target = format!("/api/v1/sessions?limit=10&cursor={next}");
    }
    assert_eq!(seen.len(), 64);
    assert!(seen.is_sorted_by(|a, b| a.0 >= b.0));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 64);
}

#[tokio::test]
async fn a_session_says_what_lists_show() {
    let world = World::locked();
    let session = world.get("/api/v1/sessions/0176a3f0-live").await.json();
    for (field, value) in [
        ("id", json!("0176a3f0-live")),
        ("state", json!("tool_open")),
        ("project", json!("api")),
        ("model", json!("composer-2")),
        ("source", json!("ide")),
        ("turns", json!(7)),
        ("end_us", Value::Null),
        ("url", json!("/s/0176a3f0-live")),
    ] {
        assert_eq!(session[field], value, "{field}");
    }
    assert!(session["tokens"]["input"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn sessions_are_listed_in_the_reverse_order_page_by_page() {
    let world = World::locked();
    let mut orders = Vec::new();
    for order in ["desc", "asc"] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let asked = format!("/api/v1/sessions?sort=calls&order={order}&limit=2{cursor}");
            let page = world.get(&asked).await.json();
            let items = page["items"].as_array().unwrap();
            seen.extend(items.iter().map(|one| one["id"].as_str().unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        orders.push(seen);
    }
    assert!(orders[0].len() > 3, "{orders:?}");
    orders[1].reverse();
    assert_eq!(orders[0], orders[1]);
}

#[tokio::test]
async fn hostile_text_is_carried_as_text() {
    let world = World::locked();
    let answer = world.get("/api/v1/sessions/0176a3f0-hostile").await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.json()["first_prompt"], HOSTILE);
    let found = world.get("/api/v1/sessions?q=%3C%2Fscript%3E").await.json();
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn sessions_sort_and_filter_by_their_spans() {
    let world = World::locked();
    let page = world.get("/api/v1/sessions?sort=errors&limit=500").await.json();
    let errors: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|one| one["errors"].as_u64()).collect();
    assert!(errors.is_sorted_by(|a, b| a >= b), "{errors:?}");
    let all = errors.len();
    let some = world.get("/api/v1/sessions?kind=subagent&limit=500").await.json();
    let some = some["items"].as_array().unwrap().len();
    assert!((1..all).contains(&some), "{some} of {all}");
}

#[tokio::test]
async fn two_sessions_and_two_turns_are_put_side_by_side() {
    let world = World::locked();
    let both = world.get("/api/v1/compare?a=0176a3f0-flaky&b=0176a3f0-live").await.json();
    assert_eq!(
        (&both["a"]["turn"], &both["a"]["session"]),
        (&Value::Null, &json!("0176a3f0-flaky"))
    );
    assert!(!both["tools"].as_array().unwrap().is_empty());
    let turns = world.get("/api/v1/compare?a=0176a3f0-flaky:1&b=0176a3f0-flaky:2").await.json();
    assert_eq!((&turns["a"]["turn"], &turns["b"]["turns"]), (&json!(1), &json!(1)));
    let calls = |side: &Value| side["calls"].as_u64().unwrap();
    assert!(calls(&turns["a"]) < calls(&both["a"]));
    let nobody = world.get("/api/v1/compare?a=0176a3f0-flaky:999&b=0176a3f0-live").await;
    assert_eq!(nobody.status.as_u16(), 404);
}

#[tokio::test]
async fn what_tokens_cost_is_an_estimate_that_names_what_it_leaves_out() {
    let world = World::locked();
    let session = world.get("/api/v1/sessions/0176a3f0-live").await.json();
    let turns = world.get("/api/v1/sessions/0176a3f0-live/turns").await.json();
    let mut sum = 0.0;
    let mut unpriced = 0;
    for turn in turns["items"].as_array().unwrap() {
        let (tokens, cost) = (&turn["tokens"], &turn["cost"]);
        if tokens.is_null() {
            assert!(cost.is_null(), "{turn:#}");
            continue;
        }
        // The price table of the tests: 2 per million input tokens, 10 per million output tokens, and no price for
        // cached ones.
        let cached =
            tokens["cache_read"].as_u64().unwrap() + tokens["cache_write"].as_u64().unwrap();
        let input = (tokens["input"].as_u64().unwrap() - cached) as f64;
        let expected = (input * 2.0 + tokens["output"].as_f64().unwrap() * 10.0) / 1e6;
        assert!((cost["estimated"].as_f64().unwrap() - expected).abs() < 1e-5, "{turn:#}");
        assert_eq!(cost["unpriced_tokens"], cached);
        sum += expected;
        unpriced += cached;
    }
    assert!(sum > 0.0);
    assert!((session["cost"]["estimated"].as_f64().unwrap() - sum).abs() < 1e-4);
    assert_eq!(session["cost"]["unpriced_tokens"], unpriced);
    assert_eq!(session["cost"]["currency"], "USD");
    // The list says the same.
    let list = world.get("/api/v1/sessions").await.json();
    let listed = list["items"].as_array().unwrap();
    let listed = listed.iter().find(|one| one["id"] == "0176a3f0-live").unwrap();
    assert!((listed["cost"]["estimated"].as_f64().unwrap() - sum).abs() < 1e-4);
    assert_eq!(listed["cost"]["unpriced_tokens"], unpriced);
}

#[tokio::test]
async fn the_parts_of_a_session_add_up_to_the_whole() {
    let session = World::locked().get("/api/v1/sessions/0176a3f0-flaky").await.json();
    let parts = session["parts"].as_object().unwrap();
    let named = parts.iter().filter(|(name, _)| *name != "whole_us");
    let sum: i64 = named.map(|(_, us)| us.as_i64().unwrap()).sum();
    // Each part is rounded down to whole microseconds.
    assert!((0..=11).contains(&(parts["whole_us"].as_i64().unwrap() - sum)), "{parts:#?}");
}
