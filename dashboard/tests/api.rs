//! Tests the answers: their fields, cursors, problems, payloads.

use serde_json::{Value, json};

use crate::support::client::World;
use crate::support::story::HOSTILE;

#[tokio::test]
async fn metrics_are_text_for_who_may_read_the_api() {
    let answer = World::locked().get("/metrics").await;
    assert_eq!(answer.status.as_u16(), 200);
    assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert!(answer.body.ends_with(b"up 1\n"));
}

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
async fn columns_and_rows_say_the_same() {
    let world = World::locked();
    let columns = world.get("/api/v1/sessions/0176a3f0-flaky/spans").await.json();
    let n = usize::try_from(columns["n"].as_u64().unwrap()).unwrap();
    let mut rows = Vec::new();
    let mut target = "/api/v1/sessions/0176a3f0-flaky/spans?format=rows&limit=100".to_owned();
    loop {
        let page = world.get(&target).await.json();
        rows.extend(page["items"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        target =
            format!("/api/v1/sessions/0176a3f0-flaky/spans?format=rows&limit=100&cursor={next}");
    }
    assert_eq!(rows.len(), n);
    let number = |name: &str, i: usize| columns[name][i].as_i64().unwrap();
    let (mut row, mut start, mut stack) = (0, columns["t0_us"].as_i64().unwrap(), Vec::new());
    for i in 0..n {
        row += number("row", i);
        start += number("start_us", i);
        stack.push(row);
        let plain = rows.iter().find(|plain| plain["row"] == row).unwrap();
        let up = usize::try_from(number("up", i)).unwrap();
        let parent = if up == 0 { Value::Null } else { json!(stack[i - up]) };
        assert_eq!(plain["parent"], parent);
        assert_eq!(plain["start_us"], start);
        assert_eq!(plain["label"], columns["strs"][usize::try_from(number("label", i)).unwrap()]);
        assert_eq!(plain["kind"], columns["kinds"][usize::try_from(number("kind", i)).unwrap()]);
    }
}

#[tokio::test]
async fn every_turn_hangs_under_the_session_and_nothing_else_is_a_root() {
    let world = World::locked();
    let columns = world.get("/api/v1/sessions/0176a3f0-flaky/spans").await.json();
    let kinds = columns["kinds"].as_array().unwrap();
    for (up, kind) in
        columns["up"].as_array().unwrap().iter().zip(columns["kind"].as_array().unwrap())
    {
        let kind = &kinds[usize::try_from(kind.as_u64().unwrap()).unwrap()];
        assert_eq!(*up == 0, *kind == "session");
    }
}

#[tokio::test]
async fn a_delta_holds_only_what_changed_and_the_total() {
    let world = World::locked();
    let whole = world.get("/api/v1/sessions/0176a3f0-flaky/spans").await.json();
    let rev = whole["rev"].as_u64().unwrap();
    let since = format!("/api/v1/sessions/0176a3f0-flaky/spans?since={rev}");
    let nothing = world.get(&since).await.json();
    assert_eq!((&nothing["n"], &nothing["total"]), (&json!(0), &whole["n"]));
    world.source.change("0176a3f0-flaky", |data| {
        let rev = data.rev;
        let found = data.spans.iter_mut().find(|one| &*one.span.root == "0176a3f0-flaky");
        found.unwrap().rev = rev;
    });
    let one = world.get(&since).await.json();
    assert_eq!((&one["n"], &one["total"], &one["parent"]), (&json!(1), &whole["n"], &json!([0])));
}

#[tokio::test]
async fn a_span_is_the_same_by_row_and_by_id() {
    let world = World::locked();
    let by_row = world.get("/api/v1/spans/5").await.json();
    let by_id =
        world.get(&format!("/api/v1/spans/{}", by_row["id"].as_str().unwrap())).await.json();
    assert_eq!(by_row, by_id);
    assert_eq!(by_row["path"][0]["kind"], "turn");
    let trace = by_row["trace_id"].as_str().unwrap();
    let found = world.get(&format!("/api/v1/traces/{trace}")).await.json();
    assert_eq!(found["session"], by_row["session"]);
}

#[tokio::test]
async fn a_payload_comes_in_pieces_that_add_up() {
    let world = World::locked();
    let prompt = "aé\u{1F600}".repeat(100_000);
    let body = json!({ "hook_event_name": "beforeSubmitPrompt", "prompt": prompt }).to_string();
    world.source.change("0176a3f0-flaky", |data| {
        drop(data.bodies.insert(1, body.clone().into_bytes()));
    });
    let row = 2;
    let (mut text, mut offset, mut pieces) = (String::new(), 0, 0);
    loop {
        let target = format!("/api/v1/spans/{row}/payload/hook-1?offset={offset}");
        let piece = world.get(&target).await.json();
        let part = piece["text"].as_str().unwrap();
        assert!(part.len() <= 256 * 1024);
        assert_eq!(piece["total"], body.len());
        text.push_str(part);
        pieces += 1;
        let Some(next) = piece["next"].as_u64() else { break };
        offset = next;
    }
    assert_eq!(text, body);
    assert_eq!(pieces, 3);
    for bad in [2_000_000_u64, 42] {
        let target = format!("/api/v1/spans/{row}/payload/hook-1?offset={bad}");
        let inside = body.is_char_boundary(usize::try_from(bad).unwrap().min(body.len() + 1));
        let expected = if inside { 200 } else { 400 };
        assert_eq!(world.get(&target).await.status.as_u16(), expected, "{bad}");
    }
}

#[tokio::test]
async fn content_that_is_not_stored_is_null() {
    let world = World::locked();
    world.source.change("0176a3f0-flaky", |data| data.bodies.clear());
    let detail = world.get("/api/v1/spans/2").await.json();
    assert_eq!(detail["payloads"][0]["redacted"], true);
    let piece = world.get("/api/v1/spans/2/payload/prompt").await.json();
    assert_eq!((&piece["text"], &piece["redacted"]), (&Value::Null, &json!(true)));
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
async fn hostile_text_is_carried_as_text() {
    let world = World::locked();
    let answer = world.get("/api/v1/sessions/0176a3f0-hostile").await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.json()["first_prompt"], HOSTILE);
    let found = world.get("/api/v1/sessions?q=%3C%2Fscript%3E").await.json();
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
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
    // A call that is open is no need by itself.
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
async fn spans_of_all_sessions_take_filters_and_page() {
    let world = World::locked();
    let mut rows = Vec::new();
    let first = "/api/v1/spans?tool=Shell&status=error&limit=5".to_owned();
    let mut target = first.clone();
    loop {
        let page = world.get(&target).await.json();
        for item in page["items"].as_array().unwrap() {
            assert_eq!((&item["kind"], &item["status"]), (&json!("shell"), &json!("error")));
            rows.push((item["start_us"].as_i64().unwrap(), item["row"].as_i64().unwrap()));
        }
        let Some(next) = page["next"].as_str() else { break };
        target = format!("{first}&cursor={next}");
    }
    assert!(rows.len() > 5, "{}", rows.len());
    assert!(rows.is_sorted_by(|a, b| a.0 >= b.0));
    rows.sort_unstable();
    rows.dedup();
    let all = world.get("/api/v1/spans?tool=Shell&status=error&limit=500").await.json();
    assert_eq!(all["items"].as_array().unwrap().len(), rows.len());
    let long = world.get("/api/v1/spans?min_us=2000000&max_us=4000000&limit=500").await.json();
    for item in long["items"].as_array().unwrap() {
        assert!((2_000_000..4_000_000).contains(&item["dur_us"].as_i64().unwrap()));
    }
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
async fn a_subagent_alone_is_its_own_lines_and_what_it_was_asked() {
    let world = World::locked();
    let agents = world.get("/api/v1/spans?kind=subagent&limit=1").await.json();
    let agent = &agents["items"][0];
    let (id, session) = (agent["id"].as_str().unwrap(), agent["session"].as_str().unwrap());
    let whole = world.get(&format!("/api/v1/sessions/{session}/spans")).await.json();
    let alone = world.get(&format!("/api/v1/sessions/{session}/spans?focus={id}")).await.json();
    assert_eq!(alone["focus"]["id"], id);
    assert_eq!(alone["row"][0], agent["row"]);
    assert_eq!(alone["up"][0], 0);
    let (some, all) = (alone["n"].as_u64().unwrap(), whole["n"].as_u64().unwrap());
    assert!(1 < some && some < all, "{some} of {all}");
    assert_eq!(alone["up"].as_array().unwrap().iter().filter(|up| **up == 0).count(), 1);
    assert!(!alone["focus"]["link"]["confidence"].as_str().unwrap().is_empty());
    let nobody = format!("/api/v1/sessions/{session}/spans?focus=ffffffffffffffff");
    assert_eq!(world.get(&nobody).await.status.as_u16(), 404);
}

#[tokio::test]
async fn failures_that_look_alike_are_one_group() {
    let world = World::locked();
    let page = world.get("/api/v1/errors?limit=500").await.json();
    let items = page["items"].as_array().unwrap();
    let failed = world.get("/api/v1/spans?status=error&limit=500").await.json();
    let counted: u64 = items.iter().map(|item| item["count"].as_u64().unwrap()).sum();
    assert_eq!(counted as usize, failed["items"].as_array().unwrap().len());
    assert!(items.len() < counted as usize, "{} groups of {counted}", items.len());
    assert!(items.is_sorted_by_key(|item| core::cmp::Reverse(item["count"].as_u64())));
    for item in items {
        assert!(item["first_us"].as_i64() <= item["last_us"].as_i64());
        assert!(item["recent"][0]["id"] == item["sample"], "{item}");
    }
}

#[tokio::test]
async fn a_critical_path_covers_its_turn() {
    let world = World::locked();
    let path = world.get("/api/v1/sessions/0176a3f0-flaky/critical-path").await.json();
    let steps = path["steps"].as_array().unwrap();
    let us = |value: &Value| value.as_i64().unwrap();
    assert_eq!(us(&steps[0]["from_us"]), us(&path["start_us"]));
    assert!(steps.windows(2).all(|two| two[0]["to_us"] == two[1]["from_us"]));
    let covered: i64 = steps.iter().map(|step| us(&step["to_us"]) - us(&step["from_us"])).sum();
    assert_eq!(covered, us(&path["dur_us"]));
    let by_kind: i64 = path["by_kind"].as_object().unwrap().values().map(us).sum();
    assert_eq!(by_kind, covered);
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
async fn the_heatmap_holds_every_call_of_the_period() {
    let world = World::locked();
    let table = world.get("/api/v1/latency?days=60").await.json();
    let map = world.get("/api/v1/latency/heatmap?days=60").await.json();
    let sum = |items: &Value, key: fn(&Value) -> u64| {
        items.as_array().unwrap().iter().map(key).sum::<u64>()
    };
    let calls = sum(&table["items"], |item| item["n"].as_u64().unwrap());
    assert_eq!(sum(&map["counts"], |cell| cell[2].as_u64().unwrap()), calls);
    assert!(map["columns"].as_i64().unwrap() <= 200);
    assert_eq!(
        map["buckets"].as_array().unwrap().len(),
        1 + sum(&map["counts"], |_| 0) as usize + {
            let rows =
                map["counts"].as_array().unwrap().iter().map(|cell| cell[1].as_u64().unwrap());
            usize::try_from(rows.max().unwrap()).unwrap()
        }
    );
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
async fn edits_add_up_per_file_and_read_as_hunks() {
    let world = World::locked();
    let body = json!({"hook_event_name": "preToolUse", "tool_name": "Write", "tool_use_id": "1",
        "tool_input": {"file_path": "/x", "old_string": "a\nb\n", "new_string": "a\nc\n"}});
    world.source.change("0176a3f0-flaky", |data| {
        for stored in &data.spans {
            for content in &stored.span.contents {
                data.bodies.insert(content.hook, body.to_string().into_bytes());
            }
        }
    });
    let page = world.get("/api/v1/sessions/0176a3f0-flaky/edits").await.json();
    let files = page["items"].as_array().unwrap();
    assert!(!files.is_empty());
    let spans = files.iter().flat_map(|file| file["spans"].as_array().unwrap());
    let edit = spans.clone().next().unwrap();
    let lines = world.get("/api/v1/spans?session=0176a3f0-flaky&kind=edits&limit=500").await.json();
    assert_eq!(spans.count(), lines["items"].as_array().unwrap().len());
    let diff = world.get(&format!("/api/v1/spans/{}/diff", edit["id"].as_str().unwrap())).await;
    let diff = diff.json();
    assert_eq!(
        (&diff["added"], &diff["removed"], &diff["summary"]),
        (&edit["added"], &edit["removed"], &json!(false)),
        "the sums are those of the list"
    );
    assert_eq!(diff["hunks"][0]["lines"][1], json!({"op": "-", "text": "b"}));
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

#[tokio::test]
async fn pages_of_error_groups_neither_repeat_nor_skip() {
    let world = World::locked();
    let all = world.get("/api/v1/errors?limit=500").await.json();
    let groups = all["items"].as_array().unwrap();
    assert!(groups.len() > 2 && all["next"].is_null() && all["more"] == false);
    let sum: u64 = groups.iter().map(|group| group["count"].as_u64().unwrap()).sum();
    assert_eq!(all["failures"], sum);
    let (mut paged, mut target) = (Vec::new(), "/api/v1/errors?limit=1".to_owned());
    loop {
        let page = world.get(&target).await.json();
        paged.extend(page["items"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        target = format!("/api/v1/errors?limit=1&cursor={next}");
    }
    assert_eq!(&paged, groups);
    for cursor in ["zz", "31", "313a61"] {
        let answer = world.get(&format!("/api/v1/errors?cursor={cursor}")).await;
        assert_eq!(answer.status.as_u16(), 400, "{cursor}");
    }
}

#[tokio::test]
async fn time_adds_up_over_days_and_over_projects() {
    let world = World::locked();
    let all = world.get("/api/v1/time?days=3000").await.json();
    let sum = |list: &str| -> i64 {
        let items = all[list].as_array().unwrap().iter();
        items.map(|one| one["active_us"].as_i64().unwrap()).sum()
    };
    let active = all["total"]["active_us"].as_i64().unwrap();
    assert!(active > 0);
    assert_eq!((sum("days"), sum("items")), (active, active));
    let parts = all["total"]["parts"].as_object().unwrap().values();
    let parts: i64 = parts.map(|us| us.as_i64().unwrap()).sum();
    assert!((active - parts).abs() <= 1_000 * all["total"]["turns"].as_i64().unwrap(), "{parts}");
    let first = &all["items"][0];
    let name = first["project"].as_str().unwrap();
    let one = world.get(&format!("/api/v1/time?days=3000&project={name}")).await.json();
    assert_eq!(one["total"]["active_us"], first["active_us"]);
    assert_eq!(world.get("/api/v1/time?days=0").await.status.as_u16(), 400);
}

#[tokio::test]
async fn a_row_of_percentiles_links_to_the_sessions_of_the_same_words() {
    let world = World::locked();
    let rows =
        world.get("/api/v1/latency?days=60&project=api&status=error&kind=shell").await.json();
    let row = &rows["items"][0];
    let name = row["name"].as_str().unwrap().replace(' ', "%20");
    assert_eq!(row["url"], format!("/sessions?tool={name}&kind=shell&project=api&status=error"));
    assert_eq!(world.get("/api/v1/errors?status=error").await.status.as_u16(), 200);
}

#[tokio::test]
async fn an_empty_period_says_that_there_are_older_spans() {
    let world = World::locked();
    let now = world.source.data_now() / 1_000;
    let later =
        format!("from_us={}&to_us={}", now + 40 * 86_400_000_000, now + 50 * 86_400_000_000);
    let empty = world.get(&format!("/api/v1/latency?{later}&group=model")).await.json();
    assert_eq!(empty["items"], json!([]));
    assert!(empty["older"]["n"].as_u64().unwrap() > 0, "{empty}");
    let full = world.get("/api/v1/latency").await.json();
    assert!(!full["items"].as_array().unwrap().is_empty());
    assert!(full["older"].is_null());
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
