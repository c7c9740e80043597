//! A source that is a list of spans, and invented stories to fill it.

#[cfg(test)]
pub mod client;
mod control;
mod files;
#[cfg(test)]
pub mod page;
mod statistics;
pub mod story;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use hookspan_core::price::Usage;
use hookspan_core::{SessionSummary, Span, SpanId, SpanKind, Timestamp, TraceId, TurnSummary};
use hookspan_dashboard::Clock;
use hookspan_view::Result;
use hookspan_view::changes::Notice;
use hookspan_view::facet;
use hookspan_view::health::{Arrival, DestinationHealth, Health, JournalHealth, MetricsHealth};
use hookspan_view::line::{Line, LineKind, Outcome};
use hookspan_view::received::AllReceived;
use hookspan_view::source::{
    Administration, Audit, Failure, FilterPage, Found, Hit, InstallStep, LineFilter, Lines, Marks,
    Position, Privacy, PrivacyClass, Query, SavedFilter, Search, SessionFilter, SessionMarks,
    Sessions, Spans,
};
use tokio::sync::broadcast;

pub use control::OneDestination;

/// One stored span.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Revision that wrote it.
    pub rev: u64,
    /// The span.
    pub span: Span,
    /// What its content adds to the label.
    pub detail: Option<String>,
}

/// The data for everything that a dashboard can read.
#[derive(Debug, Default)]
pub struct Data {
    /// Newest revision.
    pub rev: u64,
    /// Newest activity first.
    pub sessions: Vec<SessionSummary>,
    /// By root.
    pub turns: BTreeMap<String, Vec<TurnSummary>>,
    /// Row is index + 1.
    pub spans: Vec<Stored>,
    /// By seq.
    pub bodies: BTreeMap<u64, Vec<u8>>,
    /// The current time.
    pub now_ns: i64,
}

/// See the module.
#[derive(Debug)]
pub struct ListSource {
    data: Mutex<Data>,
    changes: broadcast::Sender<Notice>,
}

impl ListSource {
    /// A source of `data`.
    #[must_use]
    pub fn new(mut data: Data) -> Self {
        data.sessions.sort_by_key(|session| core::cmp::Reverse(session.last_at));
        Self { data: Mutex::new(data), changes: broadcast::channel(64).0 }
    }

    /// Changes the data, and tells listeners that `root` changed.
    pub fn change(&self, root: &str, change: impl FnOnce(&mut Data)) {
        let mut data = self.data.lock().unwrap();
        data.rev += 1;
        change(&mut data);
        let notice = Notice { rev: data.rev, sessions: vec![(root.to_owned(), 1)] };
        drop(data);
        drop(self.changes.send(notice));
    }

    /// The current time.
    pub fn data_now(&self) -> i64 {
        self.data().now_ns
    }

    /// The clock of [`Data::now_ns`].
    pub fn clock(self: &Arc<Self>) -> Clock {
        let source = Arc::clone(self);
        Clock::new(move || source.data_now())
    }

    /// The channel to which [`Self::change`] sends notices.
    pub fn changes(&self) -> broadcast::Sender<Notice> {
        self.changes.clone()
    }

    fn data(&self) -> std::sync::MutexGuard<'_, Data> {
        self.data.lock().unwrap()
    }
}

impl Data {
    fn row(index: usize) -> i64 {
        i64::try_from(index).unwrap() + 1
    }

    fn index(&self, id: SpanId) -> Option<usize> {
        self.spans.iter().position(|stored| stored.span.id == id)
    }

    /// The line above a span: its parent or, for a turn, the segment in which it started.
    fn above(rows: &BTreeMap<SpanId, i64>, segments: &[&Span], span: &Span) -> Option<i64> {
        if let Some(parent) = span.parent {
            return rows.get(&parent).copied();
        }
        if span.kind != SpanKind::Generation {
            return None;
        }
        let began = |other: &&&Span| other.root == span.root && other.start <= span.start;
        let found = segments.iter().filter(began).max_by_key(|other| other.start)?;
        rows.get(&found.id).copied()
    }

    fn lines(&self, wanted: impl Fn(&Stored) -> bool) -> Vec<Line> {
        let rows: BTreeMap<_, _> = self
            .spans
            .iter()
            .enumerate()
            .map(|(i, stored)| (stored.span.id, Self::row(i)))
            .collect();
        let spans = self.spans.iter().map(|stored| &stored.span);
        let segments: Vec<_> = spans.filter(|span| span.kind == SpanKind::Session).collect();
        let line = |(index, stored): (usize, &Stored)| {
            let above = Self::above(&rows, &segments, &stored.span);
            Line::new(Self::row(index), above, &stored.span, stored.detail.as_deref())
        };
        let mut lines: Vec<_> =
            self.spans.iter().enumerate().filter(|(_, stored)| wanted(stored)).map(line).collect();
        lines.sort_by_key(|line| (line.start, line.row));
        lines
    }
}

fn holds(filter: &SessionFilter, session: &SessionSummary) -> bool {
    let has = |text: Option<&str>, part: &Option<String>| {
        part.as_deref().is_none_or(|part| text.is_some_and(|text| text.contains(part)))
    };
    filter.state.is_none_or(|state| session.state == state)
        && is_of(session.workspace.as_deref(), filter.spans.project.as_deref())
        && is(session.model.as_deref(), filter.spans.model.as_deref())
        && (has(session.first_prompt.as_deref(), &filter.text)
            || has(Some(&session.root), &filter.text))
        && (!filter.spans.failed || session.errors > 0)
        && filter.spans.from_ns.is_none_or(|from| session.last_at.0 >= from)
        && filter.spans.to_ns.is_none_or(|to| session.started_at.0 <= to)
}

fn is(text: Option<&str>, wanted: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| text.is_some_and(|text| text.eq_ignore_ascii_case(wanted)))
}

fn is_of(workspace: Option<&str>, wanted: Option<&str>) -> bool {
    let name = workspace.and_then(facet::project);
    is(name.as_deref(), wanted) || workspace == wanted
}

impl Sessions for ListSource {
    fn position(&self) -> Result<Position> {
        Ok(Position { epoch: "e1".to_owned(), rev: self.data().rev })
    }

    fn changed(&self, since: u64, limit: usize) -> Result<Vec<SessionSummary>> {
        let data = self.data();
        let roots: Vec<_> =
            data.spans.iter().filter(|s| s.rev > since).map(|s| &s.span.root).collect();
        let changed = data.sessions.iter().filter(|session| roots.contains(&&session.root));
        Ok(changed.take(limit).cloned().collect())
    }

    fn sessions(
        &self,
        filter: &SessionFilter,
        before: Option<(i64, String)>,
        limit: usize,
    ) -> Result<Vec<SessionSummary>> {
        let older = |session: &&SessionSummary| {
            before.as_ref().is_none_or(|cursor| filter.is_after(session, cursor))
        };
        let fits = |session: &&SessionSummary| {
            let LineFilter { tool, kind, failed, min_ns, .. } = filter.spans.clone();
            let asked = tool.is_some() || kind.is_some() || min_ns.is_some();
            let session = Some(session.root.to_string());
            let lines = LineFilter { session, tool, kind, failed, min_ns, ..LineFilter::default() };
            !asked || !self.matching(&lines, None, 1).unwrap().is_empty()
        };
        let sessions = self.data().sessions.clone();
        let found = sessions.iter().filter(|session| holds(filter, session)).filter(older);
        let mut found: Vec<_> = found.filter(fits).cloned().collect();
        found.sort_by_key(|one| core::cmp::Reverse((filter.sort.key(one), one.root.clone())));
        if filter.ascending {
            found.reverse();
        }
        found.truncate(limit);
        Ok(found)
    }

    fn session(&self, root: &str) -> Result<Option<SessionSummary>> {
        Ok(self.data().sessions.iter().find(|session| &*session.root == root).cloned())
    }

    fn turns(&self, root: &str) -> Result<Vec<TurnSummary>> {
        Ok(self.data().turns.get(root).cloned().unwrap_or_default())
    }

    fn usage_of(&self, root: &str) -> Result<Vec<(Option<String>, Usage)>> {
        let used = self.turns(root)?.into_iter().filter_map(|turn| {
            Some((turn.model.as_deref().map(str::to_owned), turn.tokens?.into()))
        });
        Ok(used.collect())
    }
}

impl Marks for ListSource {
    fn marks(&self, roots: &[&str]) -> Result<HashMap<String, SessionMarks>> {
        let marks = |root: &&str| {
            let marks =
                SessionMarks { starred: true, tags: vec!["later".to_owned()], note: String::new() };
            ((*root).to_owned(), marks)
        };
        Ok(roots.iter().take(1).map(marks).collect())
    }

    fn saved_filters(&self) -> Result<Vec<SavedFilter>> {
        Ok(vec![SavedFilter::new(FilterPage::Files, "mine", "q=a").unwrap()])
    }
}

impl Spans for ListSource {
    fn received(&self, _: Option<&str>, _: usize) -> Result<AllReceived> {
        Ok(AllReceived::default())
    }

    fn lines(&self, root: &str, since: Option<u64>, limit: usize) -> Result<Lines> {
        let data = self.data();
        let of_root = |stored: &Stored| &*stored.span.root == root;
        let total = data.spans.iter().filter(|stored| of_root(stored)).count();
        let mut lines =
            data.lines(|stored| of_root(stored) && since.is_none_or(|since| stored.rev > since));
        lines.truncate(limit);
        Ok(Lines { lines, total: total as u64, rev: data.rev })
    }

    fn span_of(&self, root: &str, id: SpanId) -> Result<Option<(i64, Span)>> {
        Ok(self.span(id)?.filter(|(_, span)| &*span.root == root))
    }

    fn span(&self, id: SpanId) -> Result<Option<(i64, Span)>> {
        let data = self.data();
        Ok(data.index(id).map(|index| (Data::row(index), data.spans[index].span.clone())))
    }

    fn span_row(&self, row: i64) -> Result<Option<(i64, Span)>> {
        let index = usize::try_from(row - 1).ok();
        Ok(index.and_then(|index| self.data().spans.get(index).map(|s| (row, s.span.clone()))))
    }

    fn spans_of(&self, root: &str, kinds: &[LineKind], limit: usize) -> Result<Vec<(i64, Span)>> {
        let data = self.data();
        let wanted = |(_, stored): &(usize, &Stored)| {
            &*stored.span.root == root && kinds.contains(&LineKind::of(&stored.span))
        };
        let spans = data.spans.iter().enumerate().filter(wanted).take(limit);
        Ok(spans.map(|(index, stored)| (Data::row(index), stored.span.clone())).collect())
    }

    fn trace(&self, trace: TraceId) -> Result<Option<(String, SpanId)>> {
        let data = self.data();
        let found = data.spans.iter().find(|stored| stored.span.trace == trace);
        Ok(found.map(|stored| (stored.span.root.to_string(), stored.span.id)))
    }

    fn latest(&self, before: Option<i64>, limit: usize) -> Result<Vec<(String, Line)>> {
        let data = self.data();
        let mut lines = data.lines(|_| true);
        lines.retain(|line| before.is_none_or(|before| line.row < before));
        lines.sort_by_key(|line| core::cmp::Reverse(line.row));
        lines.truncate(limit);
        let root =
            |line: &Line| data.spans[usize::try_from(line.row - 1).unwrap()].span.root.to_string();
        Ok(lines.into_iter().map(|line| (root(&line), line)).collect())
    }

    fn matching(
        &self,
        filter: &LineFilter,
        before: Option<(i64, i64)>,
        limit: usize,
    ) -> Result<Vec<(String, Line)>> {
        let mut lines = self.latest(None, usize::MAX)?;
        let data = self.data();
        lines.retain(|(root, line)| {
            let session = data.sessions.iter().find(|session| *session.root == **root);
            let span = &data.spans[usize::try_from(line.row - 1).unwrap()].span;
            let ns = line.end.map(|end| end.since(line.start));
            filter.session.as_ref().is_none_or(|wanted| wanted == root)
                && is_of(
                    session.and_then(|one| one.workspace.as_deref()),
                    filter.project.as_deref(),
                )
                && is(session.and_then(|one| one.model.as_deref()), filter.model.as_deref())
                && is(facet::tool(span).as_deref(), filter.tool.as_deref())
                && filter.kind.is_none_or(|kind| kind == line.kind)
                && (!filter.failed || line.outcome == Outcome::Error)
                && filter.min_ns.is_none_or(|min| ns.is_some_and(|ns| ns >= min))
                && filter.max_ns.is_none_or(|max| ns.is_some_and(|ns| ns < max))
                && filter.from_ns.is_none_or(|from| line.start.0 >= from)
                && filter.to_ns.is_none_or(|to| line.start.0 <= to)
                && before.is_none_or(|before| (line.start.0, line.row) < before)
        });
        lines.sort_by_key(|(_, line)| core::cmp::Reverse((line.start, line.row)));
        lines.truncate(limit);
        Ok(lines)
    }

    fn open_call(&self, root: &str) -> Result<Option<Line>> {
        let open = |stored: &Stored| {
            &*stored.span.root == root
                && stored.span.kind == SpanKind::Tool
                && stored.span.end.is_none()
        };
        Ok(self.data().lines(open).pop())
    }

    fn failures(&self, filter: &LineFilter, limit: usize) -> Result<Vec<Failure>> {
        let filter = LineFilter { failed: true, ..filter.clone() };
        let lines = self.matching(&filter, None, limit)?;
        let failure = |(root, line): (String, Line)| {
            let index = usize::try_from(line.row - 1).unwrap();
            let status = self.data().spans[index].span.status.clone();
            let hookspan_core::Status::Error { message, .. } = status else { unreachable!() };
            Failure { root, line, message, path: None }
        };
        Ok(lines.into_iter().map(failure).collect())
    }

    fn body(&self, seq: u64) -> Result<Option<Vec<u8>>> {
        Ok(self.data().bodies.get(&seq).cloned())
    }

    fn exports(&self, _row: i64) -> Result<Vec<(String, String)>> {
        Ok(vec![("jaeger".to_owned(), "sent".to_owned())])
    }
}

impl Search for ListSource {
    fn search(&self, query: &Query, before: Option<i64>, limit: usize) -> Result<Found> {
        // Searches labels directly and answers as an index would.
        let mut hits = Vec::new();
        for (root, line) in self.matching(&query.filter, None, usize::MAX)? {
            let lower = line.label.to_lowercase();
            let found = query.terms.iter().map(|term| lower.find(&term.to_lowercase()));
            let Some(found) = found.collect::<Option<Vec<_>>>() else { continue };
            if before.is_some_and(|before| line.row >= before) {
                continue;
            }
            let units = |text: &str| u32::try_from(text.encode_utf16().count()).unwrap();
            let marks = found.iter().zip(&query.terms).map(|(at, term)| {
                let start = units(&line.label[..*at]);
                (start, start + units(term))
            });
            let (marks, text) = (marks.collect(), line.label.clone());
            hits.push(Hit { root, line, field: "input".to_owned(), text, marks });
        }
        hits.sort_by_key(|hit| core::cmp::Reverse(hit.line.row));
        let total = Some(hits.len() as u64);
        let next = hits.get(limit).map(|_| hits[limit - 1].line.row);
        hits.truncate(limit);
        Ok(Found { hits, next, total, total_is_more: false, lag: 0 })
    }
}

impl Administration for ListSource {
    fn exposition(&self) -> Result<String> {
        Ok("# TYPE up gauge\nup 1\n".to_owned())
    }

    fn privacy(&self) -> Result<Privacy> {
        let class =
            PrivacyClass { name: "prompts", stored: "full", indexed: "redacted", exported: "none" };
        Ok(Privacy {
            classes: vec![class],
            retention_days: Some(30),
            redacted: 31,
            search: true,
            destinations: vec!["jaeger".to_owned()],
        })
    }

    fn install(&self) -> Result<Vec<InstallStep>> {
        Ok(vec![InstallStep {
            id: "install",
            state: "ok",
            command: Some("hookspan install".to_owned()),
            hint: "the hooks are in hooks.json".to_owned(),
        }])
    }

    fn links(&self) -> Vec<(String, String)> {
        let template = "http://127.0.0.1:16686/trace/{trace_id}?uiFind={span_id}&t={start_ms}";
        vec![("jaeger".to_owned(), template.to_owned())]
    }

    fn file(&self, root: &str, format: &str, content: &str) -> Result<Option<Vec<u8>>> {
        let session = self.session(root)?;
        Ok(session.map(|_| format!("{root} {format} {content}").into_bytes()))
    }

    fn redacted(&self, text: &str) -> String {
        text.replace(story::SECRET, "[REDACTED]")
    }

    fn audit(&self) -> Result<Audit> {
        Ok(Audit {
            entries: vec![(5, "deleted".to_owned(), "1 session".to_owned())],
            dropped: 2,
            refused: vec![("token".to_owned(), 3, 7)],
        })
    }

    fn preview(&self, destination: &str, root: Option<&str>) -> Result<Option<Vec<u8>>> {
        let known = destination == "jaeger";
        Ok(known.then(|| format!("{destination} {}", root.unwrap_or("last")).into_bytes()))
    }

    fn health(&self) -> Result<Health> {
        Ok(Health {
            journal: JournalHealth {
                segments: 1,
                bytes: 65_536,
                behind_bytes: 65_536,
                unread_bytes: 407,
                read_up_to_ns: Some(1_700_000_000_000_000_000),
                queue: (2, 4_096),
                ..JournalHealth::default()
            },
            counters: vec![("received".to_owned(), 4711), ("malformed".to_owned(), 1)],
            database_bytes: 212_000_000,
            wal_bytes: 4_000_000,
            search_bytes: 61_000_000,
            search_lag: 3,
            arrival: Some(Arrival {
                count: 4711,
                p50_us: 300,
                p99_us: 900,
                max_us: 7_000,
                over_budget: 3,
                hist: vec![(512, 4_000), (1_024, 708), (8_192, 3)],
            }),
            unknown_events: vec![("beforeDreaming".to_owned(), 1)],
            unknown_fields: Vec::new(),
            unknown_values: Vec::new(),
            shim_version: Some("0.1.0".to_owned()),
            destinations: vec![
                DestinationHealth {
                    name: "jaeger".to_owned(),
                    endpoint_host: "127.0.0.1:4317".to_owned(),
                    state: "ok".to_owned(),
                    last_ok: Some(Timestamp(self.data_now() - 2_000_000_000)),
                    delivered: 1204,
                    metrics: Some(MetricsHealth {
                        state: "ok".to_owned(),
                        delivered: 77,
                        ..MetricsHealth::default()
                    }),
                    ..DestinationHealth::default()
                },
                DestinationHealth {
                    name: "datadog".to_owned(),
                    endpoint_host: "otlp.datadoghq.com:443".to_owned(),
                    state: "paused".to_owned(),
                    last_error: Some("401 Unauthorized: check dd-api-key".to_owned()),
                    queued: 312,
                    lost: vec![("expired".to_owned(), 4)],
                    ..DestinationHealth::default()
                },
            ],
            version: "0.1.0".to_owned(),
        })
    }
}
