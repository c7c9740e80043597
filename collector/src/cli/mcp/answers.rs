//! Makes the answers of the MCP tools from the API's answers: one project only, redacted, and limited in size.

use std::path::PathBuf;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{self, Request};
use hookspan_view::filter::{Unfit, WORDS};
use hookspan_view::source::LineFilter;
use rmcp::model::JsonObject;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::scope::Scope;
use super::tools::TOOLS;
use super::{Args, PORT, router, shape};
use crate::cli::Global;
use crate::redaction::Redaction;
use crate::store::open;
use crate::store::whole::{self, SessionRow};
use crate::text;

/// Maximum size in bytes of one answer of the API. Larger ones are for the dashboard.
const API_MAX_BYTES: usize = 32 << 20;
/// Number of items in an answer, unless the caller asks for another number.
const LIMIT: usize = 10;
/// Maximum number of characters of a failure's own message.
const CAUSE_CHARS: usize = 400;

/// Answers calls of tools.
pub(super) struct Server {
    router: Router,
    redaction: Redaction,
    scope: Scope,
    database: PathBuf,
}

/// Text for the client, with secrets redacted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RedactedText(pub(super) String);

/// Why a tool gave no answer.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("there is no tool {0:?}")]
    NoSuchTool(String),
    #[error("{0} is missing")]
    Missing(&'static str),
    #[error(
        "this server does not know its project: start it with `hookspan mcp --project DIR`, or with `--all` for every project"
    )]
    NoProject,
    #[error(
        "project: this server answers about {0} alone; `hookspan mcp --all` answers about every project"
    )]
    OtherProject(String),
    #[error("there is no session {0:?}{1}; list_sessions lists them")]
    NoSuchSession(String, &'static str),
    #[error("{0:?} is the beginning of several sessions: {1}")]
    Ambiguous(String, String),
    #[error("the session is too large for this tool; `hookspan open` shows it")]
    TooLong,
    #[error("the store cannot be read: {0}")]
    Store(String),
    #[error("{title}: {detail}")]
    Problem { title: String, detail: String },
    #[error(transparent)]
    Request(#[from] http::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl Server {
    pub(super) fn new(global: &Global, args: &Args) -> anyhow::Result<Self> {
        Ok(Self {
            router: router(global)?,
            redaction: Redaction::load(&global.state, &global.config()?.redact)?,
            scope: Scope::of(global, args),
            database: global.state.database(),
        })
    }

    /// Calls a tool and redacts its answer. A model reads the answer, and so does whoever operates the model.
    pub(super) async fn call(
        &self,
        name: &str,
        arguments: &JsonObject,
    ) -> Result<Value, RedactedText> {
        match self.answer(name, arguments).await {
            Ok(mut answer) => {
                shape::shorten(&mut answer);
                Ok(answer)
            }
            Err(refusal) => {
                let words = self.redaction.text(&refusal.to_string()).into_owned();
                Err(RedactedText(text::spelled(&words).unwrap_or(words)))
            }
        }
    }

    async fn answer(&self, name: &str, arguments: &JsonObject) -> Result<Value, Refusal> {
        let Some((_, _, known, required)) = TOOLS.iter().find(|tool| tool.0 == name) else {
            return Err(Refusal::NoSuchTool(name.to_owned()));
        };
        if let Some(missing) = required.iter().find(|name| !arguments.contains_key(**name)) {
            return Err(Refusal::Missing(missing));
        }
        let session = match arguments.get("session").and_then(Value::as_str) {
            Some(wanted) => Some(self.session(wanted).await?),
            None => None,
        };
        let limit = limit(arguments)?;
        let query = self.query(known, arguments, session.as_deref())?;
        match (name, session) {
            ("list_sessions", _) => self.page("sessions", &query, limit).await,
            ("errors", _) => self.errors(&query, limit).await,
            ("search", _) => self.page("search", &query, limit).await,
            ("show_session", Some(session)) => {
                let from = arguments.get("cursor").and_then(Value::as_str);
                self.show(&session, from, limit).await
            }
            (_, Some(session)) => {
                if let Some(word) = WORDS.into_iter().find(|word| arguments.contains_key(*word)) {
                    return Err(bad(
                        word,
                        "filters have no effect if `session` is given: the tool shows its longest turn",
                    ));
                }
                self.critical_path(&session, limit).await
            }
            (_, None) => self.sums(&query, limit).await,
        }
    }

    /// The id of the session that `wanted` names, if this server may answer about it.
    async fn session(&self, wanted: &str) -> Result<String, Refusal> {
        let place = if matches!(self.scope, Scope::All) { "" } else { " in this project" };
        let nobody = || Refusal::NoSuchSession(wanted.to_owned(), place);
        if wanted == "last" {
            let query = self.query(&[], &JsonObject::new(), None)?;
            let newest = self.get(&format!("/api/v1/sessions?{query}&limit=1")).await?;
            return newest["items"][0]["id"].as_str().map(str::to_owned).ok_or_else(nobody);
        }
        let query = self.query(&[], &JsonObject::new(), None)?;
        let target = format!("/api/v1/sessions?{query}&q={}&limit=50", escape(wanted));
        let listed = self.get(&target).await?;
        let listed = listed["items"].as_array().into_iter().flatten();
        let mut ids: Vec<String> = listed
            .filter_map(|item| item["id"].as_str().filter(|id| id.starts_with(wanted)))
            .map(str::to_owned)
            .collect();
        // The id of a subagent names the session that contains it.
        let rows = if ids.is_empty() { self.beginning_with(wanted)? } else { Vec::new() };
        for row in rows {
            let session = self.get(&format!("/api/v1/sessions/{}", escape(&row.root))).await?;
            if self.scope.holds(session["workspace"].as_str()) {
                ids.push(row.root);
            }
        }
        match ids.as_slice() {
            [] => Err(nobody()),
            [one] => Ok(one.clone()),
            many if many.iter().any(|id| id == wanted) => Ok(wanted.to_owned()),
            many => Err(Refusal::Ambiguous(wanted.to_owned(), many.join(", "))),
        }
    }

    fn beginning_with(&self, wanted: &str) -> Result<Vec<SessionRow>, Refusal> {
        if wanted.is_empty() || !self.database.exists() {
            return Ok(Vec::new());
        }
        let failed = |error: &dyn std::fmt::Display| Refusal::Store(error.to_string());
        let db = open::reader(&self.database).map_err(|error| failed(&error))?;
        whole::sessions(&db, Some(wanted)).map_err(|error| failed(&error))
    }

    /// The known arguments as a query, limited to the project.
    fn query(
        &self,
        known: &[(&str, &str)],
        arguments: &JsonObject,
        session: Option<&str>,
    ) -> Result<String, Refusal> {
        let mut pairs = query(known, arguments)?;
        if let Some(session) = session {
            pairs.push(format!("session={}", escape(session)));
        }
        match &self.scope {
            Scope::Unknown => return Err(Refusal::NoProject),
            Scope::Project(root) if arguments.contains_key("project") => {
                return Err(Refusal::OtherProject(root.clone()));
            }
            scope => {
                pairs.extend(scope.parameter().map(|root| format!("project={}", escape(&root))));
            }
        }
        Ok(pairs.join("&"))
    }

    /// A page of a list. If the answer is too large, the page is requested again with a smaller limit, so that `next`
    /// stays correct.
    async fn page(&self, list: &str, query: &str, mut limit: usize) -> Result<Value, Refusal> {
        loop {
            let mut answer = self.get(&format!("/api/v1/{list}?{query}&limit={limit}")).await?;
            self.clean(&mut answer);
            let bytes = shape::size(&answer);
            if bytes <= shape::ANSWER_MAX_BYTES || limit == 1 {
                return Ok(answer);
            }
            limit = shape::fewer(limit, bytes);
        }
    }

    fn clean(&self, answer: &mut Value) {
        self.redaction.json(answer);
        shape::tidy(answer);
    }

    /// Groups of failures, each with the message from the payload. The message tells more than the kind of failure.
    async fn errors(&self, query: &str, limit: usize) -> Result<Value, Refusal> {
        let mut answer = self.page("errors", query, limit).await?;
        for item in answer["items"].as_array_mut().into_iter().flatten() {
            if let Some(recent) = item["recent"].as_array_mut() {
                recent.truncate(3);
            }
            let sample = item["sample"].as_str().unwrap_or_default();
            if let Some(cause) = self.cause(sample).await? {
                item["message"] = Value::String(cause);
            }
        }
        Ok(answer)
    }

    /// The message in the payload of a failed call: its error, otherwise the end of its output.
    async fn cause(&self, span: &str) -> Result<Option<String>, Refusal> {
        for part in ["error", "output"] {
            let target = format!("/api/v1/spans/{}/payload/{part}", escape(span));
            let mut piece = match self.get(&target).await {
                Ok(piece) => piece,
                // The span has no such part.
                Err(Refusal::Problem { .. }) => continue,
                Err(error) => return Err(error),
            };
            // The whole text is redacted before it is cut, because half a secret matches no rule.
            self.clean(&mut piece);
            let text = piece["text"].as_str().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            let skip = match part {
                "output" => text.chars().count().saturating_sub(CAUSE_CHARS),
                _ => 0,
            };
            return Ok(Some(text.chars().skip(skip).take(CAUSE_CHARS).collect()));
        }
        Ok(None)
    }

    async fn show(
        &self,
        session: &str,
        from: Option<&str>,
        limit: usize,
    ) -> Result<Value, Refusal> {
        let base = format!("/api/v1/sessions/{}", escape(session));
        let first: usize = match from {
            None => 0,
            Some(cursor) => {
                cursor.parse().map_err(|_| bad("cursor", "`next` from the previous answer"))?
            }
        };
        let mut turns = self.get(&format!("{base}/turns")).await?;
        let mut whole = json!({ "session": self.get(&base).await? });
        if first == 0 {
            whole["edits"] = few(self.get(&format!("{base}/edits")).await?, "spans");
            whole["lints"] = few(self.get(&format!("{base}/lints")).await?, "evidence");
        }
        self.clean(&mut whole);
        let turns = turns["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let total = turns.len();
        let page = |limit: usize| turns.iter().skip(first).take(limit).cloned().collect::<Vec<_>>();
        let mut turns = Value::Array(page(limit));
        self.clean(&mut turns);
        let mut turns = turns.as_array_mut().map(std::mem::take).unwrap_or_default();
        loop {
            let end = first + turns.len();
            whole["turns"] = Value::Array(turns.clone());
            whole["next"] = if end < total { json!(end.to_string()) } else { Value::Null };
            let bytes = shape::size(&whole);
            if bytes <= shape::ANSWER_MAX_BYTES || turns.len() <= 1 {
                return Ok(whole);
            }
            turns.truncate(shape::fewer(turns.len(), bytes));
        }
    }

    async fn critical_path(&self, session: &str, limit: usize) -> Result<Value, Refusal> {
        let base = format!("/api/v1/sessions/{}", escape(session));
        let mut path = self.get(&format!("{base}/critical-path")).await?;
        if let Some(steps) = path["steps"].as_array_mut() {
            let us = |step: &Value, key: &str| step[key].as_i64().unwrap_or(0);
            for step in &mut *steps {
                step["dur_us"] = json!(us(step, "to_us") - us(step, "from_us"));
            }
            steps.sort_by_key(|step| core::cmp::Reverse(us(step, "dur_us")));
            steps.truncate(limit.min(20));
            steps.sort_by_key(|step| us(step, "from_us"));
        }
        let lints = few(self.get(&format!("{base}/lints")).await?, "evidence");
        let mut answer = json!({ "critical_path": path, "lints": lints });
        self.clean(&mut answer);
        Ok(answer)
    }

    /// Sums over all sessions of the project, or over all sessions.
    async fn sums(&self, query: &str, limit: usize) -> Result<Value, Refusal> {
        if let Some(name) = self.scope.name() {
            // Sums are stored by the name of the project.
            let words = query.split('&').filter(|pair| !pair.starts_with("project="));
            let words: String = words.flat_map(|pair| ["&", pair]).collect();
            let target = format!("/api/v1/time?project={}{words}", escape(name));
            let mut time = self.get(&target).await?;
            let mut answer = json!({"project": name, "total": time["total"].take()});
            for key in ["from_us", "to_us"] {
                answer[key] = time[key].take();
            }
            self.clean(&mut answer);
            return Ok(answer);
        }
        let mut answer = json!({});
        for group in ["tool", "model", "project"] {
            let mut rows = self.get(&format!("/api/v1/latency?group={group}&{query}")).await?;
            if let Some(items) = rows["items"].as_array_mut() {
                items.truncate(limit.min(LIMIT));
            }
            answer[format!("{group}s")] = rows["items"].take();
        }
        self.clean(&mut answer);
        Ok(answer)
    }

    async fn get(&self, target: &str) -> Result<Value, Refusal> {
        let request =
            Request::get(target).header("host", format!("127.0.0.1:{PORT}")).body(Body::empty())?;
        let answer = match self.router.clone().oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let status = answer.status();
        let body = to_bytes(answer.into_body(), API_MAX_BYTES).await;
        let body: Value = serde_json::from_slice(&body.map_err(|_| Refusal::TooLong)?)?;
        if status.is_success() {
            return Ok(body);
        }
        let field = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        Err(Refusal::Problem { title: field("title"), detail: field("detail") })
    }
}

/// The known arguments as pairs of a query, without those that the server answers itself.
fn query(known: &[(&str, &str)], arguments: &JsonObject) -> Result<Vec<String>, Refusal> {
    let mut pairs = Vec::new();
    for (name, _) in known.iter().filter(|(name, _)| !matches!(*name, "session" | "limit")) {
        let value = match arguments.get(*name) {
            Some(Value::String(text)) if matches!(*name, "from" | "to") => {
                if let Some(us) = microseconds(name, text)? {
                    pairs.push(format!("{name}_us={us}"));
                }
                continue;
            }
            Some(Value::String(text)) => escape(text),
            Some(Value::Number(number)) => number.to_string(),
            _ => continue,
        };
        pairs.push(format!("{name}={value}"));
    }
    Ok(pairs)
}

/// A day or time in the API's form; `None` for an empty text.
fn microseconds(name: &str, text: &str) -> Result<Option<i64>, Refusal> {
    let mut filter = LineFilter::default();
    filter.set(name, text).map_err(|Unfit { wanted, .. }| bad(name, &wanted))?;
    Ok(filter.from_ns.or(filter.to_ns).map(|ns| ns.div_euclid(1_000)))
}

fn limit(arguments: &JsonObject) -> Result<usize, Refusal> {
    let Some(limit) = arguments.get("limit") else { return Ok(LIMIT) };
    let number = limit.as_u64().or_else(|| limit.as_str()?.parse().ok());
    let number = number.filter(|number| (1..=500).contains(number));
    number.and_then(|n| usize::try_from(n).ok()).ok_or_else(|| bad("limit", "between 1 and 500"))
}

fn bad(name: &str, detail: &str) -> Refusal {
    Refusal::Problem { title: format!("bad parameter {name}"), detail: detail.to_owned() }
}

/// The first items of a list, each with few of its example spans, and the number of items.
fn few(mut page: Value, spans: &str) -> Value {
    let Some(items) = page["items"].as_array_mut() else { return json!([]) };
    let total = items.len();
    items.truncate(LIMIT);
    for item in &mut *items {
        if let Some(spans) = item[spans].as_array_mut() {
            spans.truncate(2);
        }
    }
    json!({ "items": items, "total": total })
}

fn escape(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
