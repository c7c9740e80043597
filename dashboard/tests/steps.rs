//! Tests the texts of a conversation: what is cut, what is left out, and what a copy must not contain.

use serde_json::{Value, json};

use crate::support::client::World;
use crate::support::story::SECRET;

/// The texts of rows, as a conversation shows them.
async fn steps(world: &World, session: &str, rows: &[i64], more: &str) -> Value {
    let rows: Vec<String> = rows.iter().map(i64::to_string).collect();
    let target = format!("/api/v1/sessions/{session}/steps?rows={}{more}", rows.join(","));
    world.get(&target).await.json()
}

#[tokio::test]
async fn the_texts_of_rows_are_cut_and_a_failure_is_read_from_its_first_error() {
    let world = World::locked();
    let output = format!("{}error: no such file\n{}", "compiling\n".repeat(100), "x\n".repeat(100));
    let body = json!({"hook_event_name": "postToolUse", "tool_name": "Shell", "prompt": "p".repeat(40_000),
        "tool_input": {"command": "make"}, "tool_output": output});
    world.source.change("0176a3f0-flaky", |data| {
        for stored in &data.spans {
            for content in &stored.span.contents {
                data.bodies.insert(content.hook, body.to_string().into_bytes());
            }
        }
    });
    let path = "/api/v1/spans?session=0176a3f0-flaky&kind=shell&status=error&limit=1";
    let failed = world.get(path).await.json()["items"][0]["row"].as_i64().unwrap();
    let of_another = world.get("/api/v1/spans?session=0176a3f0-live&limit=1").await.json();
    let of_another = of_another["items"][0]["row"].as_i64().unwrap();
    let answer = steps(&world, "0176a3f0-flaky", &[2, failed, of_another, 999_999], "").await;
    let items = answer["items"].as_array().unwrap();
    assert_eq!(items.len(), 2, "rows of other sessions and unknown ones are left out");
    assert_eq!(answer["left"], json!([]));
    let prompt = &items[0]["texts"][0];
    assert_eq!((&prompt["part"], &prompt["bytes"]), (&json!("prompt"), &json!(40_000)));
    assert_eq!((prompt["text"].as_str().unwrap().len(), &prompt["cut"]), (16_384, &json!(true)));
    let output = items[1]["texts"].as_array().unwrap().iter().find(|text| text["part"] == "output");
    let output = output.unwrap();
    assert_eq!((&output["before"], &output["lines"]), (&json!(99), &json!(201)));
    let shown = output["text"].as_str().unwrap();
    assert!(shown.starts_with("compiling\nerror: no such file\n"), "{shown}");
    assert_eq!(shown.lines().count(), 40);
    let prompts = vec![2; 64];
    let many = steps(&world, "0176a3f0-flaky", &prompts, "").await;
    let (items, left) = (many["items"].as_array().unwrap(), many["left"].as_array().unwrap());
    assert_eq!((items.len(), left.len()), (32, 32), "an answer has half a megabyte");
    let none = world.get("/api/v1/sessions/nobody/steps?rows=1").await;
    assert_eq!(none.status, 404);
}

#[tokio::test]
async fn a_copy_has_no_secrets_and_an_edit_has_its_lines() {
    let world = World::locked();
    let row = async |kind: &str| {
        let path = format!("/api/v1/spans?session=0176a3f0-flaky&kind={kind}&limit=50");
        let lines = world.get(&path).await.json();
        let lines = lines["items"].as_array().unwrap();
        lines.iter().find(|line| line["status"] == "ok").unwrap()["row"].as_i64().unwrap()
    };
    let rows = [row("response").await, row("edits").await];
    for (more, secret) in [("", true), ("&purpose=copy", false)] {
        let answer = steps(&world, "0176a3f0-flaky", &rows, more).await;
        assert_eq!(answer.to_string().contains(SECRET), secret, "{more}");
        let edit = &answer["items"][1];
        assert_eq!(edit["texts"], json!([]), "an edit is its difference");
        let lines = edit["edit"]["hunks"][0]["lines"].as_array().unwrap();
        let ops: String = lines.iter().map(|line| line["op"].as_str().unwrap()).collect();
        assert_eq!(ops, " + ");
    }
}
