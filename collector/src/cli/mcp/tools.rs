//! The tools as they are described to a model: names, descriptions and parameters.

use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};

/// Name, purpose, parameters, and the parameters that are required.
pub(super) type Described =
    (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const SESSION: (&str, &str) = ("session", "A session's id, the beginning of an id, or `last`");
/// Parameters that limit an answer; see `docs/figures.md`.
const PROJECT: (&str, &str) = (
    "project",
    "The project's name, or its whole path; only where the server answers about all projects",
);
const TOOL: (&str, &str) = ("tool", "Only this tool; an MCP tool by its own name");
const KIND: (&str, &str) =
    ("kind", "Only this kind: turn, shell, mcp, edits, tools, subagent, ...");
const MODEL: (&str, &str) = ("model", "Only turns of this model");
const STATUS: (&str, &str) = ("status", "`error`: only what failed");
const FROM: (&str, &str) =
    ("from", "Since this day or time, in UTC: 2026-11-30, 2026-11-30T09:15:00Z");
const TO: (&str, &str) = ("to", "Up to this day (included) or time, in UTC");
const BRANCH: (&str, &str) = ("branch", "Only of sessions that ended on this branch, or `none`");
const OUTCOME: (&str, &str) = (
    "outcome",
    "Only of sessions of which this came: tests_failed, tests_passed, pull_request, committed, left_open, unchanged, none",
);
const TAG: (&str, &str) = ("tag", "Only of sessions that a person gave this tag, or `none`");
const STARRED: (&str, &str) = ("starred", "`yes`: only of sessions that a person gave a star");
const LIMIT_ABOUT: (&str, &str) = ("limit", "Maximum number of items: up to 500, 10 by default");
const CURSOR: (&str, &str) = ("cursor", "`next` from the previous answer");

pub(super) const TOOLS: [Described; 5] = [
    (
        "list_sessions",
        "Recorded sessions, newest first: id, state, project, model, first prompt, turns, calls, errors, time, tokens, \
         the outcome: tests, commits, pull request, and a person's star, tags and note.",
        &[
            PROJECT,
            TOOL,
            KIND,
            MODEL,
            STATUS,
            FROM,
            TO,
            BRANCH,
            OUTCOME,
            TAG,
            STARRED,
            ("state", "running, tool_open, your_turn, done, errored or stale"),
            ("q", "Part of the first prompt, workspace or id"),
            LIMIT_ABOUT,
            CURSOR,
        ],
        &[],
    ),
    (
        "show_session",
        "One session: its turns with prompts, durations, tokens and where their time went, the files it edited, and \
         patterns that cost time. Turns come in pages.",
        &[SESSION, LIMIT_ABOUT, CURSOR],
        &["session"],
    ),
    (
        "errors",
        "Failures in groups that look alike, most frequent first, each with what the newest one said.",
        &[
            SESSION,
            PROJECT,
            TOOL,
            KIND,
            MODEL,
            STATUS,
            FROM,
            TO,
            BRANCH,
            OUTCOME,
            TAG,
            STARRED,
            LIMIT_ABOUT,
            CURSOR,
        ],
        &[],
    ),
    (
        "search",
        "Full-text search over prompts, answers, commands, paths and output (secrets are blanked), newest first.",
        &[
            ("q", "Words and \"phrases\""),
            SESSION,
            PROJECT,
            TOOL,
            KIND,
            MODEL,
            STATUS,
            FROM,
            TO,
            BRANCH,
            OUTCOME,
            TAG,
            STARRED,
            LIMIT_ABOUT,
            CURSOR,
        ],
        &["q"],
    ),
    (
        "where_did_time_go",
        "Of one session: the longest steps on the critical path of its longest turn, and its expensive patterns. Without a \
         session: sums of the project, or durations per tool, model and project where the server answers about all.",
        &[
            SESSION,
            ("days", "Days up to today, 30 by default"),
            PROJECT,
            TOOL,
            KIND,
            MODEL,
            STATUS,
            FROM,
            TO,
            BRANCH,
            OUTCOME,
            TAG,
            STARRED,
            LIMIT_ABOUT,
        ],
        &[],
    ),
];

pub(super) fn tool((name, about, parameters, required): &Described) -> Tool {
    let properties: JsonObject = parameters
        .iter()
        .map(|(name, about)| {
            let kind = if matches!(*name, "limit" | "days") { "integer" } else { "string" };
            ((*name).to_owned(), json!({"type": kind, "description": about}))
        })
        .collect();
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("required".to_owned(), json!(required));
    Tool::new(*name, *about, schema)
}
