//! What the commands must answer for stories: `sessions`, `show`, `stats`, `export`; and the search.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::check::{Check, Differences, Lengths, number, text};
use super::truth::{Call, Session, Story, Tool, Turn};
use crate::mcp::Server;
use crate::world::World;

/// Compares `hookspan sessions --json` and `stats --json` with all stories of a world.
pub fn of_world(world: &World, stories: &[Story], found: &mut Differences) {
    let listed = world.json(&["sessions", "--json"]);
    let listed: BTreeMap<String, Value> = listed
        .as_array()
        .into_iter()
        .flatten()
        .map(|item| (text(&item["id"]), item.clone()))
        .collect();
    let all: Vec<&Session> = stories.iter().flat_map(|story| &story.sessions).collect();
    found.equal("sessions --json", &listed.len(), &all.len());
    for session in &all {
        let Some(item) = listed.get(&session.id) else {
            found.0.push(format!("sessions --json: no {}", session.id));
            continue;
        };
        let got = ["generations", "tool_calls", "errors"].map(|name| number(&item[name]));
        let wanted = [
            session.turns.len() as i64,
            session.all_calls().count() as i64,
            session.errors() as i64,
        ];
        found.equal(&format!("sessions --json {}", session.id), &got, &wanted);
    }
    stats(world, &["--days", "3660"], all.iter().flat_map(|session| session.all_calls()), found);
    for story in stories.iter().take(3) {
        for session in &story.sessions {
            narrowed(world, story, session.project(), found);
        }
    }
}

/// Checks the filter words as flags of `stats` and `sessions`, and in `prune --dry-run`.
fn narrowed(world: &World, story: &Story, project: &str, found: &mut Differences) {
    let of_project = || story.sessions.iter().filter(|session| session.project() == project);
    let calls = || of_project().flat_map(Session::all_calls);
    stats(world, &["--from", "2026-01-01", "--project", project], calls(), found);
    let failed = calls().filter(|call| call.failed);
    stats(
        world,
        &["--from", "2026-01-01", "--project", project, "--status", "error"],
        failed,
        found,
    );
    for tool in Tool::ALL {
        let words = ["--project", project, "--tool", tool.name()];
        let of_tool = calls().filter(|call| call.tool == tool);
        stats(world, &[&["--from", "2026-01-01"][..], &words].concat(), of_tool, found);
        let with = of_project().filter(|one| one.all_calls().any(|call| call.tool == tool)).count();
        let what = words.join(" ");
        let listed = world.json(&[&["sessions", "--json"][..], &words].concat());
        let listed = listed.as_array().map_or(0, Vec::len);
        found.equal(&format!("sessions {what}"), &listed, &with);
        let pruned = world.json(&[&["prune", "--dry-run", "--json"][..], &words].concat());
        found.equal(&format!("prune {what}"), &number(&pruned["sessions"]), &(with as i64));
    }
}

/// Compares `hookspan stats --json`, narrowed down by `words`, with calls.
fn stats<'c>(
    world: &World,
    words: &[&str],
    calls: impl Iterator<Item = &'c Call>,
    found: &mut Differences,
) {
    let mut wanted: BTreeMap<String, Lengths> = BTreeMap::new();
    for call in calls {
        let us = (!call.untold).then_some(call.duration * 1_000);
        wanted.entry(call.tool.name().to_owned()).or_default().add(us, call.failed);
    }
    let what = words.join(" ");
    let answer = world.json(&[&["stats", "--group", "tool", "--json"][..], words].concat());
    for row in answer.as_array().into_iter().flatten() {
        let name = text(&row["name"]);
        match wanted.remove(&name) {
            Some(lengths) => lengths.compare(&format!("stats {what} {name}"), row, 2, found),
            // Delegating calls are calls of a tool. `stats` counts them, sessions do not.
            None if name == "Task" => {}
            None => found.0.push(format!("stats {what}: there is no {name}")),
        }
    }
    for name in wanted.into_keys() {
        found.0.push(format!("stats {what} {name}: nothing"));
    }
}

/// Compares the MCP server's answers about sessions.
pub fn of_mcp<'s>(
    world: &World,
    sessions: impl Iterator<Item = &'s Session>,
    found: &mut Differences,
) {
    let mut server = Server::greeted(world);
    for session in sessions {
        let answer = server.call("show_session", &json!({"session": session.id}));
        let got = ["turns", "calls", "errors"]
            .map(|name| number(&answer["structuredContent"]["session"][name]));
        let wanted = [
            session.turns.len() as i64,
            session.all_calls().count() as i64,
            session.errors() as i64,
        ];
        found.equal(&format!("mcp {}", session.id), &got, &wanted);
    }
    found.equal("mcp", &server.end(), &Some(0));
}

/// Compares `hookspan show --json` and the files of one session.
pub fn of_session(world: &World, session: &Session, found: &mut Differences) {
    let shown = world.json(&["show", &session.id, "--json"]);
    let turns = shown["turns"].as_array().cloned().unwrap_or_default();
    found.equal("show --json", &turns.len(), &session.turns.len());
    for (turn, item) in session.turns.iter().zip(&turns) {
        let got = [number(&item["tool_calls"]), number(&item["errors"])];
        let wanted = [turn.all_calls().count() as i64, turn.errors() as i64];
        found.equal(&format!("show --json {}", turn.generation), &got, &wanted);
    }
    // A call that delegated repeats the failure of its subagent.
    let repeats = |span: &Value| span["kind"] == "tool" && span["error_type"] == "subagent_error";
    let failed = |span: &&Value| !span["error_type"].is_null() && !repeats(span);
    let spans = shown["spans"].as_array().cloned().unwrap_or_default();
    let errors = spans.iter().filter(failed).count() as u64;
    found.equal("failed spans of show --json", &errors, &session.errors());
    let agents = |turn: &Turn| turn.all_agents().count();
    let calls = session.all_calls().count() + session.turns.iter().map(agents).sum::<usize>();
    let tools = spans.iter().filter(|span| span["kind"] == "tool").count();
    found.equal("calls of show --json", &tools, &calls);
    let otlp = world.json(&["export", "--session", &session.id, "--format", "otlp-json"]);
    let mut exported = 0;
    for resource in otlp["resourceSpans"].as_array().into_iter().flatten() {
        for scope in resource["scopeSpans"].as_array().into_iter().flatten() {
            exported += scope["spans"].as_array().map_or(0, Vec::len);
        }
    }
    found.equal("spans of otlp-json", &exported, &spans.len());
    let chrome = world.json(&["export", "--session", &session.id, "--format", "chrome-trace"]);
    let events = chrome["traceEvents"].as_array().into_iter().flatten();
    let drawn = events.filter(|event| event["ph"] == "X").count();
    found.equal("spans of chrome-trace", &drawn, &spans.len());
    let page = world.ok(&["export", "--session", &session.id, "--format", "html"]);
    found.equal("spans of html", &page.matches("<details>").count(), &spans.len());
    let untold = session.all_calls().filter(|call| call.untold).count();
    found.equal("? of html", &page.matches(r#"<span class="time">?</span>"#).count(), &untold);
    let tools = spans.iter().filter(|span| span["kind"] == "tool");
    let got = tools.filter(|span| span["duration_ns"].is_null()).count();
    found.equal("calls of unknown length in show --json", &got, &untold);
}

impl Check<'_> {
    /// Checks that each prompt is found by its own word, and by no word of another prompt.
    pub fn search(&mut self) {
        let turns: Vec<(String, String, String)> = self
            .story
            .sessions
            .iter()
            .flat_map(|session| {
                let project = session.project().to_owned();
                session
                    .turns
                    .iter()
                    .map(move |turn| (session.id.clone(), turn.word.clone(), project.clone()))
            })
            .collect();
        for (id, word, project) in turns {
            let answer = self.get(&format!("search?q={word}%20project:{project}%20kind:turn"));
            let hits = answer["items"].as_array().cloned().unwrap_or_default();
            let got: Vec<String> = hits.iter().map(|hit| text(&hit["session"])).collect();
            self.found.equal(&format!("search {word}"), &got, &vec![id]);
        }
    }
}
