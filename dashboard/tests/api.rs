//! Tests the answers: their fields, cursors, problems, payloads.

mod periods; // errors, latency and time over a period
mod sessions; // lists of sessions, one session, two compared
mod spans; // rows, payloads, edits, the critical path

use serde_json::{Value, json};

use crate::support::client::World;

#[tokio::test]
async fn metrics_are_text_for_who_may_read_the_api() {
    let answer = World::locked().get("/metrics").await;
    assert_eq!(answer.status.as_u16(), 200);
    assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert!(answer.body.ends_with(b"up 1\n"));
}

#[tokio::test]
async fn bad_parameters_are_named() {
    let world = World::locked();
    for (target, param) in [
        ("/api/v1/sessions?limit=0", "limit"),
        ("/api/v1/sessions?limit=501", "limit"),
        ("/api/v1/sessions?limit=x", "limit"),
        ("/api/v1/sessions?state=sleepy", "state"),
        ("/api/v1/sessions?status=ok", "status"),
        ("/api/v1/sessions?sort=mood", "sort"),
        ("/api/v1/sessions?order=up", "order"),
        ("/api/v1/sessions?kind=person", "kind"),
        ("/api/v1/search?q=kind:person", "kind"),
        ("/api/v1/search?q=from:yesterday", "from"),
        ("/api/v1/sessions?min_us=long", "min_us"),
        ("/api/v1/spans?status=ok", "status"),
        ("/api/v1/sessions?cursor=zz", "cursor"),
        ("/api/v1/sessions?cursor='%20OR%201=1", "cursor"),
        ("/api/v1/sessions/0176a3f0-live/spans?format=xml", "format"),
        ("/api/v1/sessions/0176a3f0-live/spans?since=x", "since"),
        ("/api/v1/latency?group=person", "group"),
        ("/api/v1/latency?days=0", "days"),
        ("/api/v1/latency?kind=person", "kind"),
        ("/api/v1/latency?days=3000&model=m", "from_us"),
        ("/api/v1/latency/heatmap?status=ok", "status"),
        ("/api/v1/time?tool=Shell", "tool"),
        ("/api/v1/time?kind=shell", "kind"),
        ("/api/v1/spans/2/payload/prompt?offset=-1", "offset"),
    ] {
        let answer = world.get(target).await;
        assert_eq!(answer.status.as_u16(), 400, "{target}");
        assert_eq!(answer.header("content-type"), "application/problem+json");
        assert_eq!(answer.json()["param"], param, "{target}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_a_problem_with_a_hint() {
    let world = World::locked();
    for target in [
        "/api/v1/sessions/nobody",
        "/api/v1/sessions/nobody/turns",
        "/api/v1/sessions/nobody/spans",
        "/api/v1/spans/999999",
        "/api/v1/spans/0",
        "/api/v1/spans/ffffffffffffffff",
        "/api/v1/spans/x",
        "/api/v1/spans/2/payload/nothing",
        "/api/v1/spans/2/payload/__proto__",
        "/api/v1/traces/0123",
        "/api/v1/traces/ffffffffffffffffffffffffffffffff",
    ] {
        let answer = world.get(target).await;
        assert_eq!(answer.status.as_u16(), 404, "{target}");
        assert!(answer.json()["hint"].as_str().unwrap().contains("GET /api/v1"), "{target}");
    }
}

#[tokio::test]
async fn a_hit_says_in_which_session_and_turn_it_is() {
    let world = World::locked();
    let found = world.get("/api/v1/search?q=cargo").await.json();
    let hits = found["items"].as_array().unwrap();
    assert!(!hits.is_empty());
    for hit in hits {
        let session = hit["session"].as_str().unwrap();
        let of = world.get(&format!("/api/v1/sessions/{session}")).await.json();
        assert_eq!((&hit["project"], &hit["title"]), (&of["project"], &of["first_prompt"]));
    }
    assert!(hits.iter().any(|hit| hit["turn"].is_u64()), "{hits:?}");
}

#[tokio::test]
async fn overview_lists_what_needs_a_person_apart_from_turns_that_ended() {
    let world = World::locked();
    let overview = world.get("/api/v1/overview").await.json();
    let kinds = |list: &str| -> Vec<String> {
        let list = overview[list].as_array().unwrap();
        assert!(list.is_sorted_by_key(|need| need["since_us"].as_i64().unwrap()));
        list.iter().map(|need| need["kind"].as_str().unwrap().to_owned()).collect()
    };
    // An open call alone does not need a person.
    assert_eq!(
        (kinds("needs"), kinds("ended")),
        (vec!["failed".into()], vec!["turn_ended".into()])
    );
    assert_eq!(overview["running"].as_array().unwrap().len(), 1);
    let now = world.get("/api/v1/now").await.json();
    assert_eq!(now["counts"], json!({"need_you": 1, "turn_ended": 1}), "the same numbers");
}

#[tokio::test]
async fn now_says_what_each_agent_does_and_claims_no_alarm_without_enough_runs() {
    let world = World::locked();
    let now = world.get("/api/v1/now").await.json();
    let agents = now["agents"].as_array().unwrap();
    let live = agents.iter().find(|one| one["session"]["id"] == "0176a3f0-live").unwrap();
    assert_eq!((&live["status"], &live["alarm"]), (&json!("running"), &json!(false)));
    assert!(live["reason"].as_str().unwrap().contains("too few"), "{live}");
    let call = &live["call"];
    assert!(call["url"].as_str().unwrap().starts_with("/s/0176a3f0-live#"), "{call}");
    assert_eq!((&call["p50_us"], &call["p95_us"]), (&Value::Null, &Value::Null));
    let lanes = live["strip"]["lanes"].as_array().unwrap();
    assert!(lanes.iter().all(|lane| lane["busy"].as_array().unwrap().len() == 60), "{lanes:?}");
    assert_eq!(now["more"], false);
}

#[tokio::test]
async fn a_destination_is_woken_by_name_only() {
    let world = World::locked();
    let post = |name: &'static str| {
        let headers = [
            ("host", "127.0.0.1:4329"),
            ("authorization", "Bearer correct-horse-battery-staple"),
            ("content-type", "application/json"),
        ];
        let target = format!("/api/v1/exporters/{name}/retry");
        let world = &world;
        async move { world.send("POST", &target, &headers, "{}").await.status.as_u16() }
    };
    assert_eq!(post("datadog").await, 200);
    assert_eq!(post("nobody").await, 404);
}

#[tokio::test]
async fn search_marks_words_and_pages() {
    let world = World::locked();
    let page = world.get("/api/v1/search?q=cargo%20TEST&limit=3").await.json();
    for hit in page["items"].as_array().unwrap() {
        let units: Vec<u16> = hit["text"].as_str().unwrap().encode_utf16().collect();
        let words = hit["marks"].as_array().unwrap().iter().map(|mark| {
            let at = |n: usize| usize::try_from(mark[n].as_u64().unwrap()).unwrap();
            String::from_utf16(&units[at(0)..at(1)]).unwrap().to_lowercase()
        });
        assert_eq!(words.collect::<Vec<_>>(), ["cargo", "test"]);
        assert_eq!(hit["url"], hit["span"]["url"]);
    }
    assert_eq!(page["items"].as_array().unwrap().len(), 3);
    let next = page["next"].as_str().unwrap();
    let rest = world.get(&format!("/api/v1/search?q=cargo%20test&limit=3&cursor={next}")).await;
    assert_ne!(rest.json()["items"][0]["span"]["row"], page["items"][2]["span"]["row"]);
    let nothing = world.get("/api/v1/search?q=").await.json();
    assert_eq!((&nothing["items"], &nothing["total"]), (&json!([]), &json!(0)));
}

#[tokio::test]
async fn a_journal_is_behind_by_what_nobody_has_read_and_not_by_what_is_kept_for_a_checkpoint() {
    let world = World::locked();
    let health = world.get("/api/v1/health").await.json();
    let oldest = 1_700_000_000_000_000_i64;
    let spool = json!({"segments": 1, "bytes": 65_536, "behind": 407, "oldest_us": oldest});
    assert_eq!(health["spool"], spool);
    assert_eq!(health["queue"], json!({"len": 2, "cap": 4_096}));
}
