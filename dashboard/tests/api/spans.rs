use serde_json::{Value, json};

use crate::support::client::World;

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
