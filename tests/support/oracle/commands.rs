//! What the commands must answer for stories: `sessions`, `show`, `stats`, `export`; and the search.

use std::collections::BTreeMap;

use serde_json::Value;

use super::check::{Check, Differences, number, text};
use super::truth::{Session, Story, Turn};
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
    let mut wanted: BTreeMap<String, [i64; 2]> = BTreeMap::new();
    for call in all.iter().flat_map(|session| session.all_calls()) {
        let sum = wanted.entry(call.tool.name().to_owned()).or_default();
        *sum = [sum[0] + 1, sum[1] + i64::from(call.failed)];
    }
    let stats = world.json(&["stats", "--group", "tool", "--days", "3660", "--json"]);
    let mut got: BTreeMap<String, [i64; 2]> = BTreeMap::new();
    for row in stats.as_array().into_iter().flatten() {
        got.insert(text(&row["name"]), [number(&row["count"]), number(&row["errors"])]);
    }
    // Delegating calls are calls of a tool, which `stats` counts and sessions do not.
    got.remove("Task");
    found.equal("stats --json", &got, &wanted);
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
    let failed = |span: &&Value| !span["error_type"].is_null();
    let spans = shown["spans"].as_array().cloned().unwrap_or_default();
    let errors = spans.iter().filter(failed).count() as u64;
    found.equal("failed spans of show --json", &errors, &session.errors());
    let agents = |turn: &Turn| turn.agents.len();
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
}

impl Check<'_> {
    /// Each prompt is found by its word, and by none of the words of another.
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
