//! Tests `hookspan mcp` as an agent's host uses it: JSON-RPC, one message per line, over standard input and output.

use serde_json::json;

use e2e_support::fixture::Fixture;
use e2e_support::mcp::Server;
use e2e_support::world::World;

#[test]
fn an_agent_asks_about_a_session_over_the_protocol() {
    let world = World::new();
    let fixture = Fixture::own().settle_in(&world);
    world.ok(&["import", fixture.path.to_str().unwrap()]);
    let mut server = Server::start(&world);

    let hello = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let greeting = server.ask("initialize", &hello);
    assert_eq!(greeting["serverInfo"]["name"], "hookspan", "{greeting:#}");
    assert!(greeting["capabilities"]["tools"].is_object(), "{greeting:#}");
    server.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));

    let listed = server.ask("tools/list", &json!({}));
    let names: Vec<_> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    let expected = ["list_sessions", "show_session", "errors", "search", "where_did_time_go"];
    assert_eq!(names, expected);

    let root = fixture.text("root");
    let sessions = server.call("list_sessions", &json!({"limit": 5}));
    assert_eq!(sessions["structuredContent"]["items"][0]["id"], root, "{sessions:#}");
    let shown = server.call("show_session", &json!({"session": root}));
    let turns = shown["structuredContent"]["turns"].as_array().map_or(0, Vec::len);
    assert!(turns > 0, "{shown:#}");
    let wrong = server.call("show_session", &json!({"session": "nobody"}));
    assert_eq!(wrong["isError"], true, "{wrong:#}");

    assert_eq!(server.end(), Some(0));
}
