//! What the API must answer for a story.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::truth::{Call, DAY_MS, Session, Story, Tool, Turn};
use crate::collector::Collector;

/// Differences between what is answered and what is true, as lines to read.
#[derive(Debug, Default)]
pub struct Differences(pub Vec<String>);

impl Differences {
    /// Notes a difference.
    pub fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, got: &T, wanted: &T) {
        if got != wanted {
            self.0.push(format!("{what}: {got:?}, and it is {wanted:?}"));
        }
    }

    /// Notes a number that differs from the true one by more than `slack`.
    pub fn near(&mut self, what: &str, got: i64, wanted: i64, slack: i64) {
        if (got - wanted).abs() > slack {
            self.0.push(format!("{what}: {got}, and it is {wanted} (within {slack})"));
        }
    }
}

/// Lengths of the spans of one name, as they are.
#[derive(Debug, Default)]
pub struct Lengths {
    n: i64,
    errors: i64,
    unknown: i64,
    /// Microseconds.
    known: Vec<i64>,
}

impl Lengths {
    /// Adds a span; `us` is `None` if no hook reports its duration.
    pub fn add(&mut self, us: Option<u64>, failed: bool) {
        self.n += 1;
        self.errors += i64::from(failed);
        self.unknown += i64::from(us.is_none());
        self.known.extend(us.map(|us| us as i64));
    }

    /// Compares with a row of percentiles. Each duration must be right within `slack`, and percentiles to a thousandth.
    pub fn compare(mut self, what: &str, row: &Value, slack: i64, found: &mut Differences) {
        let n = number(row.get("n").unwrap_or(&row["count"]));
        let counts = (n, number(&row["errors"]), number(&row["unknown"]));
        found.equal(what, &counts, &(self.n, self.errors, self.unknown));
        self.known.sort_unstable();
        let Some(longest) = self.known.last() else {
            let lengths = ["total_us", "p50_us", "p99_us", "max_us"].map(|name| row[name].clone());
            return found.equal(what, &lengths, &[(); 4].map(|()| Value::Null));
        };
        let total: i64 = self.known.iter().sum();
        let all = slack * self.known.len() as i64;
        found.near(&format!("{what} total"), number(&row["total_us"]), total, all);
        let near = |us: i64| slack + us / 999;
        found.near(&format!("{what} max"), number(&row["max_us"]), *longest, near(*longest));
        let p50 = self.known[(self.known.len() - 1) / 2];
        found.near(&format!("{what} p50"), number(&row["p50_us"]), p50, near(p50));
    }
}

/// Asks the API about a story.
#[derive(Debug)]
pub struct Check<'a> {
    /// Who is asked.
    pub collector: &'a Collector<'a>,
    /// What is true.
    pub story: &'a Story,
    /// Maximum difference of times, in microseconds.
    pub slack_us: i64,
    /// What differs.
    pub found: Differences,
}

/// A number of an answer; -1 where there is none.
#[must_use]
pub fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(-1)
}

/// A text of an answer.
#[must_use]
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn items(value: &Value) -> Vec<Value> {
    value["items"].as_array().cloned().unwrap_or_default()
}

fn tokens(value: &Value) -> Option<[u64; 4]> {
    let part = |name: &str| value[name].as_u64().unwrap_or(u64::MAX);
    value.is_object().then(|| ["input", "output", "cache_read", "cache_write"].map(part))
}

impl Check<'_> {
    /// Everything that the API says.
    pub fn all(&mut self) {
        for project in self.projects() {
            self.project(&project);
        }
        for session in &self.story.sessions {
            self.session(session);
        }
        self.latency();
        self.heat();
        self.time();
        self.filters();
        for project in self.projects() {
            self.narrowed(&project);
        }
    }

    /// An answer. If there is none, returns null and notes a difference.
    pub fn get(&mut self, path: &str) -> Value {
        match self.collector.get(path) {
            Ok(answer) => answer,
            Err(error) => {
                self.found.0.push(format!("GET {path}: {error}"));
                Value::Null
            }
        }
    }

    fn projects(&self) -> BTreeSet<String> {
        self.story.sessions.iter().map(|session| session.project().to_owned()).collect()
    }

    fn of_project<'s>(&'s self, project: &'s str) -> impl Iterator<Item = &'s Session> {
        self.story.sessions.iter().filter(move |session| session.project() == project)
    }

    fn turns(&self) -> impl Iterator<Item = (&Session, &Turn)> {
        let all = self.story.sessions.iter();
        all.flat_map(|session| session.turns.iter().map(move |turn| (session, turn)))
    }

    fn calls(&self) -> impl Iterator<Item = &Call> {
        self.story.sessions.iter().flat_map(Session::all_calls)
    }

    fn project(&mut self, project: &str) {
        let wanted: BTreeSet<String> =
            self.of_project(project).map(|session| session.id.clone()).collect();
        let errors: u64 = self.of_project(project).map(Session::errors).sum();
        let list = self.get(&format!("sessions?project={project}&limit=500"));
        let got: BTreeSet<String> = items(&list).iter().map(|item| text(&item["id"])).collect();
        self.found.equal(&format!("sessions of {project}"), &got, &wanted);
        for item in items(&list) {
            let sessions = self.story.sessions.clone();
            if let Some(session) = sessions.iter().find(|one| one.id == text(&item["id"])) {
                self.summary("list", &item, session);
            }
        }
        let groups = self.get(&format!("errors?project={project}&limit=500"));
        let what = format!("errors of {project}");
        self.found.equal(&what, &number(&groups["failures"]), &(errors as i64));
        let sum: i64 = items(&groups).iter().map(|group| number(&group["count"])).sum();
        self.found.equal(&format!("{what} in groups"), &sum, &(errors as i64));
    }

    fn summary(&mut self, place: &str, item: &Value, session: &Session) {
        let what = |name: &str| format!("{place} {} {name}", &session.id);
        let agents: usize = session.turns.iter().map(|turn| turn.all_agents().count()).sum();
        let errored = session.turns.iter().filter(|turn| turn.errors() > 0).count();
        let active: u64 = session.turns.iter().map(|turn| turn.end - turn.start).sum();
        for (name, wanted) in [
            ("turns", session.turns.len()),
            ("calls", session.all_calls().count()),
            ("subagents", agents),
            ("errors", session.errors() as usize),
            ("errored_turns", errored),
        ] {
            self.found.equal(&what(name), &number(&item[name]), &(wanted as i64));
        }
        let slack = self.slack_us * session.turns.len() as i64;
        self.found.near(&what("active"), number(&item["active_us"]), active as i64 * 1_000, slack);
        self.found.equal(&what("tokens"), &tokens(&item["tokens"]), &session.tokens());
        self.found.equal(&what("project"), &text(&item["project"]), &session.project().to_owned());
        let last = session.turns.last().map(|turn| turn.model.clone()).unwrap_or_default();
        self.found.equal(&what("model"), &text(&item["model"]), &last);
        self.outcome(&format!("{place} {} outcome", &session.id), &item["outcome"], session);
    }

    fn session(&mut self, session: &Session) {
        let one = self.get(&format!("sessions/{}", session.id));
        self.summary("session", &one, session);
        let turns = items(&self.get(&format!("sessions/{}/turns", session.id)));
        self.found.equal(&format!("turns of {}", session.id), &turns.len(), &session.turns.len());
        for (turn, item) in session.turns.iter().zip(&turns) {
            self.turn(turn, item);
        }
        self.lines(session);
        self.edits(session);
    }

    fn turn(&mut self, turn: &Turn, item: &Value) {
        let what = |name: &str| format!("turn {} {name}", turn.generation);
        self.found.equal(&what("id"), &text(&item["generation"]), &turn.generation);
        let calls = turn.all_calls().count() as i64;
        self.found.equal(&what("calls"), &number(&item["calls"]), &calls);
        self.found.equal(&what("errors"), &number(&item["errors"]), &(turn.errors() as i64));
        self.found.equal(&what("model"), &text(&item["model"]), &turn.model);
        self.found.equal(&what("status"), &text(&item["status"]), &turn.status.to_owned());
        self.found.equal(&what("tokens"), &tokens(&item["tokens"]), &turn.tokens);
        let length = (turn.end - turn.start) as i64 * 1_000;
        self.found.near(&what("length"), number(&item["dur_us"]), length, self.slack_us);
        let parts = item["parts"].as_object().cloned().unwrap_or_default();
        let sum: i64 = parts.values().map(number).sum();
        self.found.near(&what("parts"), sum, number(&item["dur_us"]), 10);
    }

    fn lines(&mut self, session: &Session) {
        let rows = self.get(&format!("sessions/{}/spans?format=rows&limit=500", session.id));
        let mut got: BTreeMap<String, i64> = BTreeMap::new();
        for row in items(&rows) {
            *got.entry(text(&row["kind"])).or_default() += 1;
        }
        let mut wanted: BTreeMap<String, i64> = BTreeMap::new();
        let mut add = |kind: &str| *wanted.entry(kind.to_owned()).or_default() += 1;
        session
            .turns
            .iter()
            .for_each(|_| ["turn", "response"].map(&mut add).into_iter().for_each(drop));
        session.all_calls().for_each(|call| add(call.tool.kind()));
        let agents = session.turns.iter().flat_map(Turn::all_agents);
        let agents = agents.map(|_| add("subagent")).count() as i64;
        got.remove("session");
        // The child of one of two equal delegations is shown as a line of its own.
        let alike = session.turns.iter().filter(|turn| turn.alike).flat_map(Turn::all_agents);
        if let Some(lines) = got.get_mut("subagent") {
            *lines = agents.max(*lines - alike.count() as i64).min(*lines);
        }
        // The delegating call is shown as a line beside its subagent, and does not count as a call.
        if agents > 0 {
            let got_tools = got.entry("tools".to_owned()).or_default();
            *got_tools -= agents;
            got.retain(|_, count| *count != 0);
        }
        self.found.equal(&format!("lines of {}", session.id), &got, &wanted);
    }

    fn edits(&mut self, session: &Session) {
        let files = items(&self.get(&format!("sessions/{}/edits", session.id)));
        let mut wanted: BTreeMap<String, (i64, i64, BTreeSet<u64>)> = BTreeMap::new();
        for (turn, number) in session.turns.iter().zip(1..) {
            for call in turn.all_calls().filter(|call| call.edit.is_some()) {
                let sum = wanted.entry(call.path()).or_default();
                let (added, removed) = call.lines();
                *sum = (sum.0 + added, sum.1 + removed, std::mem::take(&mut sum.2));
                sum.2.insert(number);
            }
        }
        let mut got = BTreeMap::new();
        for file in &files {
            let turns: BTreeSet<u64> =
                file["turns"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
            let sums = (number(&file["added"]), number(&file["removed"]), turns);
            got.insert(text(&file["path"]), sums);
            let spans = file["spans"].as_array().cloned().unwrap_or_default();
            for span in spans {
                self.diff(&span);
            }
        }
        self.found.equal(&format!("edits of {}", session.id), &got, &wanted);
    }

    fn diff(&mut self, span: &Value) {
        let id = text(&span["id"]);
        let diff = self.get(&format!("spans/{id}/diff"));
        let count = |op: &str| {
            let hunks = diff["hunks"].as_array().into_iter().flatten();
            let lines = hunks.flat_map(|hunk| hunk["lines"].as_array().into_iter().flatten());
            lines.filter(|line| line["op"] == op).count() as i64
        };
        let shown = (count("+"), count("-"));
        let listed = (number(&span["added"]), number(&span["removed"]));
        let said = (number(&diff["added"]), number(&diff["removed"]));
        self.found.equal(&format!("diff of {id}"), &said, &listed);
        self.found.equal(&format!("lines of the diff of {id}"), &shown, &listed);
    }

    fn period(&self) -> String {
        let from = self.story.from_ms * 1_000;
        format!("from_us={from}&to_us={}", from + 3 * DAY_MS * 1_000 - 1)
    }

    fn latency(&mut self) {
        let mut wanted: BTreeMap<(&str, String), Lengths> = BTreeMap::new();
        let mut add = |group, name: &str, us: Option<u64>, failed: bool| {
            wanted.entry((group, name.to_owned())).or_default().add(us, failed);
        };
        for call in self.calls() {
            let us = (!call.untold).then_some(call.duration * 1_000);
            add("tool", call.tool.name(), us, call.failed);
            add("kind", call.tool.kind(), us, call.failed);
        }
        for (session, turn) in self.turns() {
            let us = Some((turn.end - turn.start) * 1_000);
            add("model", &turn.model, us, turn.status == "error");
            add("project", session.project(), us, turn.status == "error");
            add("kind", "turn", us, turn.status == "error");
        }
        for group in ["tool", "model", "kind", "project"] {
            let answer = self.get(&format!("latency?group={group}&{}", self.period()));
            let rows = items(&answer);
            for row in &rows {
                let name = text(&row["name"]);
                let key = (group, name.clone());
                let Some(lengths) = wanted.remove(&key) else { continue };
                let what = format!("latency of {group} {name}");
                if (group, name.as_str()) == ("kind", "tools") {
                    continue;
                }
                let slack = if group == "tool" { 2 } else { self.slack_us };
                lengths.compare(&what, row, slack, &mut self.found);
            }
        }
        for (group, name) in wanted.into_keys() {
            self.found.0.push(format!("latency of {group} {name}: nothing"));
        }
    }

    /// A heatmap counts the known lengths: of all calls of a tool, of those that failed, and of those of one project.
    fn heat(&mut self) {
        for tool in Tool::ALL {
            let known = |call: &&Call| call.tool == tool && !call.untold;
            let all = self.calls().filter(known).count();
            self.heat_of(tool, "", all);
            let failed = self.calls().filter(known).filter(|call| call.failed).count();
            self.heat_of(tool, "&status=error", failed);
        }
        for project in self.projects() {
            let known = |call: &&Call| call.tool == Tool::Shell && !call.untold;
            let calls = self.of_project(&project).flat_map(Session::all_calls);
            let count = calls.filter(known).count();
            self.heat_of(Tool::Shell, &format!("&project={project}"), count);
        }
    }

    fn heat_of(&mut self, tool: Tool, words: &str, wanted: usize) {
        let name = tool.name();
        let path = format!("latency/heatmap?group=tool&name={name}{words}&{}", self.period());
        let answer = self.get(&path);
        let cells = answer["counts"].as_array().cloned().unwrap_or_default();
        let got: i64 = cells.iter().map(|cell| number(&cell[2])).sum();
        self.found.equal(&format!("heatmap of {name}{words}"), &got, &(wanted as i64));
    }

    fn time(&mut self) {
        for project in self.projects() {
            let answer = self.get(&format!("time?project={project}&{}", self.period()));
            let turns: Vec<Turn> =
                self.of_project(&project).flat_map(|session| session.turns.clone()).collect();
            let total = &answer["total"];
            let sum = |part: fn(&Turn) -> u64| turns.iter().map(part).sum::<u64>() as i64;
            let tokens = |at: usize| {
                let told = turns.iter().filter_map(|turn| turn.tokens);
                told.map(|tokens| tokens[at] as i64).reduce(|sum, more| sum + more).unwrap_or(-1)
            };
            for (name, wanted) in [
                ("turns", turns.len() as i64),
                ("calls", sum(|turn| turn.all_calls().count() as u64)),
                ("errors", sum(Turn::errors)),
                ("input_tokens", tokens(0)),
                ("output_tokens", tokens(1)),
            ] {
                self.found.equal(
                    &format!("time of {project} {name}"),
                    &number(&total[name]),
                    &wanted,
                );
            }
            let active = sum(|turn| turn.end - turn.start) * 1_000;
            let slack = self.slack_us * turns.len() as i64;
            self.found.near(
                &format!("time of {project}"),
                number(&total["active_us"]),
                active,
                slack,
            );
            let mut wanted: BTreeMap<i64, i64> = BTreeMap::new();
            for turn in &turns {
                *wanted.entry((turn.start / DAY_MS * DAY_MS * 1_000) as i64).or_default() += 1;
            }
            let mut got: BTreeMap<i64, i64> = BTreeMap::new();
            for day in answer["days"].as_array().into_iter().flatten() {
                got.insert(number(&day["from_us"]), number(&day["turns"]));
            }
            got.retain(|_, turns| *turns != 0);
            // A turn close to midnight may be received after midnight.
            let is_near = turns.iter().any(|turn| turn.start % DAY_MS >= DAY_MS - 1_000);
            if !is_near {
                self.found.equal(&format!("days of {project}"), &got, &wanted);
            }
            let parts = total["parts"].as_object().cloned().unwrap_or_default();
            let whole: i64 = parts.values().map(number).sum();
            let what = format!("time of {project} in parts");
            self.found.near(&what, whole, number(&total["active_us"]), 10);
        }
    }

    /// Checks that the filter words mean the same in the list of sessions and in the list of spans.
    fn filters(&mut self) {
        for project in self.projects() {
            let mut asked: Vec<(String, BTreeSet<String>, Option<i64>)> = Vec::new();
            let of = |pick: &dyn Fn(&Session) -> bool| {
                let sessions = self.of_project(&project).filter(|session| pick(session));
                sessions.map(|session| session.id.clone()).collect::<BTreeSet<_>>()
            };
            for tool in Tool::ALL {
                let calls = |session: &Session| {
                    session.all_calls().filter(|call| call.tool == tool).count()
                };
                let count = self.of_project(&project).map(calls).sum::<usize>() as i64;
                asked.push((format!("tool={}", tool.name()), of(&|s| calls(s) > 0), Some(count)));
                let failed = |session: &Session| {
                    session.all_calls().filter(|call| call.tool == tool && call.failed).count()
                };
                let count = self.of_project(&project).map(failed).sum::<usize>() as i64;
                let query = format!("status=error&tool={}", tool.name());
                asked.push((query, of(&|s| failed(s) > 0), Some(count)));
            }
            for kind in ["shell", "mcp", "edits"] {
                let is = |call: &&Call| call.tool.kind() == kind;
                let calls = |session: &Session| session.all_calls().filter(is).count();
                let count = self.of_project(&project).map(calls).sum::<usize>() as i64;
                asked.push((format!("kind={kind}"), of(&|s| calls(s) > 0), Some(count)));
            }
            for model in ["gpt-5.5", "sonnet-5"] {
                let is = |turn: &&Turn| turn.model == model;
                let turns = |session: &Session| session.turns.iter().filter(is).count();
                let count = self.of_project(&project).map(turns).sum::<usize>() as i64;
                let query = format!("model={model}");
                asked.push((query.clone(), of(&|s| turns(s) > 0), None));
                asked.push((format!("{query}&kind=turn"), of(&|s| turns(s) > 0), Some(count)));
            }
            asked.push(("status=error".to_owned(), of(&|s| s.errors() > 0), None));
            for (query, sessions, spans) in asked {
                self.filter(&format!("project={project}&{query}&limit=500"), &sessions, spans);
            }
        }
    }

    fn filter(&mut self, query: &str, sessions: &BTreeSet<String>, spans: Option<i64>) {
        let list = self.get(&format!("sessions?{query}"));
        let got: BTreeSet<String> = items(&list).iter().map(|item| text(&item["id"])).collect();
        self.found.equal(&format!("sessions?{query}"), &got, sessions);
        let Some(spans) = spans else { return };
        let list = self.get(&format!("spans?{query}"));
        self.found.equal(&format!("spans?{query}"), &(items(&list).len() as i64), &spans);
    }

    /// Checks that the filter words mean the same for percentiles and times.
    fn narrowed(&mut self, project: &str) {
        let sessions: Vec<Session> = self.of_project(project).cloned().collect();
        let turns = || sessions.iter().flat_map(|session| &session.turns);
        for tool in [Tool::Shell, Tool::Mcp] {
            let calls = turns().flat_map(Turn::all_calls).filter(|call| call.tool == tool);
            self.percentiles(&format!("project={project}&tool={}", tool.name()), calls);
        }
        let failed = turns().flat_map(Turn::all_calls).filter(|call| call.failed);
        self.percentiles(&format!("project={project}&status=error"), failed);
        let shell = turns().flat_map(Turn::all_calls).filter(|call| call.tool.kind() == "shell");
        self.percentiles(&format!("project={project}&kind=shell"), shell);
        for model in ["gpt-5.5", "sonnet-5"] {
            let of_model = turns().filter(|turn| turn.model == model);
            self.percentiles(
                &format!("project={project}&model={model}"),
                of_model.clone().flat_map(Turn::all_calls),
            );
            self.times(&format!("project={project}&model={model}"), of_model);
        }
        let failed = turns().filter(|turn| turn.status == "error");
        self.times(&format!("project={project}&status=error"), failed);
    }

    fn percentiles<'c>(&mut self, words: &str, calls: impl Iterator<Item = &'c Call>) {
        let mut wanted: BTreeMap<&str, Lengths> = BTreeMap::new();
        for call in calls {
            let us = (!call.untold).then_some(call.duration * 1_000);
            wanted.entry(call.tool.name()).or_default().add(us, call.failed);
        }
        let answer = self.get(&format!("latency?group=tool&{words}&{}", self.period()));
        for row in items(&answer) {
            let name = text(&row["name"]);
            match wanted.remove(name.as_str()) {
                Some(lengths) => {
                    lengths.compare(
                        &format!("latency of {words} {name}"),
                        &row,
                        2,
                        &mut self.found,
                    );
                }
                // Delegating calls are calls of a tool, but the truth about calls does not contain them.
                None if name == "Task" => {}
                None => self.found.0.push(format!("latency of {words}: there is no {name}")),
            }
        }
        for name in wanted.into_keys() {
            self.found.0.push(format!("latency of {words} {name}: nothing"));
        }
    }

    fn times<'t>(&mut self, words: &str, turns: impl Iterator<Item = &'t Turn> + Clone) {
        let answer = self.get(&format!("time?{words}&{}", self.period()));
        let total = &answer["total"];
        let calls: usize = turns.clone().map(|turn| turn.all_calls().count()).sum();
        let errors: u64 = turns.clone().map(Turn::errors).sum();
        let wanted = [turns.count() as i64, calls as i64, errors as i64];
        let got = ["turns", "calls", "errors"].map(|name| number(&total[name]));
        self.found.equal(&format!("time of {words}"), &got, &wanted);
    }
}
