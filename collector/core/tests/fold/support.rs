//! Plays streams of hooks into the fold, and keeps what a store would keep.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hookspan_core::{
    Change, Config, Event, Hook, HookSource, Reader, Replay, SessionSummary, Sessions, Span,
    SpanId, SpanKey, Status, Timestamp, TurnSummary, Value,
};

/// What a store holds after applying changes in order.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) spans: BTreeMap<SpanId, Span>,
    pub(crate) sessions: BTreeMap<String, SessionSummary>,
    pub(crate) turns: BTreeMap<(String, String), TurnSummary>,
    pub(crate) roots: BTreeMap<String, String>,
    pub(crate) asked: Vec<String>,
    pub(crate) forgotten: Vec<String>,
    /// Number of changes received, for tests of how much is reported.
    pub(crate) changes: usize,
}

impl Store {
    /// Receives all changes that the fold reports.
    pub(crate) fn drain(&mut self, sessions: &mut Sessions) {
        while let Some(change) = sessions.poll_change() {
            self.apply(change);
        }
    }

    pub(crate) fn apply(&mut self, change: Change) {
        self.changes += 1;
        match change {
            Change::Span(mut span) => {
                // As in a real store, a settled span keeps its place in the export queue. Everything else is replaced.
                let old = self.spans.get(&span.id);
                span.settled |= old.is_some_and(|old| old.settled && old.end == span.end);
                self.spans.insert(span.id, *span);
            }
            Change::Settle(SpanKey { id, .. }) => {
                // After a restart, a span may be reported as settled once more.
                self.spans.get_mut(&id).expect("only what was told settles").settled = true;
            }
            Change::Withdraw(SpanKey { id, .. }) => {
                self.spans.remove(&id);
                self.turns.retain(|_, turn| turn.span != id);
            }
            Change::Session(row) => {
                self.sessions.insert(row.root.to_string(), *row);
            }
            Change::Turn(row) => {
                let key = (row.root.to_string(), row.generation.to_string());
                self.turns.insert(key, *row);
            }
            Change::Bind { conversation, root } => {
                if conversation != root {
                    self.sessions.remove(&*conversation);
                    self.turns.retain(|(root, _), _| *root != *conversation);
                }
                self.roots.insert(conversation.to_string(), root.to_string());
            }
            Change::Ask(question) => self.asked.push(question.parent.to_string()),
            Change::Forget(root) => self.forgotten.push(root.to_string()),
        }
    }

    /// Checks that every span's parent exists, and that every ended span has a reason and does not end before it
    /// starts.
    #[track_caller]
    pub(crate) fn check(&self) {
        for span in self.spans.values() {
            if let Some(parent) = span.parent {
                assert!(self.spans.contains_key(&parent), "orphan: {span:#?}");
                let parent = &self.spans[&parent];
                assert_eq!(parent.trace, span.trace, "parent in another trace: {span:#?}");
            }
            if let Some(end) = span.end {
                assert!(end.at >= span.start, "ends before it starts: {span:#?}");
            }
            let has = |key: &str| span.attributes.iter().any(|a| a.key == key);
            assert_eq!(span.status != Status::Unset, has("error.type"), "{span:#?}");
            assert_eq!(span.end.is_some(), has("hookspan.end_reason"), "{span:#?}");
            let sorted =
                span.attributes.windows(2).all(|w| w[0].key.as_bytes() < w[1].key.as_bytes());
            assert!(sorted, "attributes out of order: {span:#?}");
            assert!(span.name.len() <= 128);
        }
    }
}

/// Reads a stream: `{"observed_at": RFC 3339, "event": object or raw text, "argument"?, "evidence"?}` per line.
pub(crate) fn hooks(stream: &str) -> Vec<Hook> {
    let lines = stream.lines().filter(|line| !line.trim().is_empty());
    lines.enumerate().map(|(index, line)| hook(index as u64 + 1, line)).collect()
}

fn hook(seq: u64, line: &str) -> Hook {
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    let body = match &line["event"] {
        serde_json::Value::String(raw) => raw.clone(),
        event => event.to_string(),
    };
    let is_evidence = line["evidence"] == true;
    Hook {
        seq,
        observed_at: time(line["observed_at"].as_str().unwrap()),
        argument: line["argument"].as_str().map(str::to_owned),
        source: if is_evidence { HookSource::Evidence } else { HookSource::Shim },
        body: body.into_bytes(),
        ..Hook::default()
    }
}

/// `2026-06-09T15:53:15.226Z` as nanoseconds.
pub(crate) fn time(text: &str) -> Timestamp {
    let number = |range: std::ops::Range<usize>| text[range].parse::<i64>().unwrap();
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let seconds = number(11..13) * 3_600 + number(14..16) * 60 + number(17..19);
    let fraction = text[19..].trim_end_matches('Z').trim_start_matches('.');
    let nanos: i64 = format!("{fraction:0<9}").parse().unwrap();
    // Days since 1970-01-01, by counting in years that start in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 1
        - 719_468;
    Timestamp((days * 86_400 + seconds) * 1_000_000_000 + nanos)
}

const DAY_NS: i64 = 86_400_000_000_000;

/// Folds hooks in the given order, `batch` at a time. Then lets a day pass.
pub(crate) fn fold(config: Config, hooks: &[Hook], batch: usize) -> Store {
    let mut player = Player::new(config);
    for chunk in hooks.chunks(batch.max(1)) {
        player.feed(chunk);
    }
    player.finish()
}

/// Drives the fold like the collector's engine: replays histories when needed, and puts changes into the store.
pub(crate) struct Player {
    config: Config,
    sessions: Sessions,
    pub(crate) store: Store,
    reader: Reader,
    log: Vec<Event>,
}

impl Player {
    pub(crate) fn new(config: Config) -> Self {
        let sessions = Sessions::new(config.clone());
        let (store, reader) = Default::default();
        Self { config, sessions, store, reader, log: Vec::new() }
    }

    /// Handles a batch and stores the changes.
    pub(crate) fn feed(&mut self, batch: &[Hook]) {
        let events: Vec<Event> = batch.iter().map(|hook| self.reader.read(hook)).collect();
        self.take(events);
    }

    /// Handles a batch of events that were read before.
    pub(crate) fn take(&mut self, batch: impl IntoIterator<Item = Event>) {
        for event in batch {
            if !self.sessions.holds(&event.conversation) {
                self.hand_in_history(&event.conversation);
            }
            self.bring_back(&event);
            self.log.push(event.clone());
            self.sessions.handle(event);
        }
        self.store.drain(&mut self.sessions);
    }

    fn hand_in_history(&mut self, conversation: &str) {
        let Some(root) = self.store.roots.get(conversation).cloned() else { return };
        let of_root = |event: &&Event| self.store.roots.get(&*event.conversation) == Some(&root);
        let history: Vec<&Event> = self.log.iter().filter(of_root).collect();
        let is_long = self.sessions.is_long(history.len());
        let mut replay = self.sessions.handle_history();
        for (at, event) in history.iter().enumerate() {
            replay_one(&mut replay, event, &self.log);
            let later = history[at + 1..].iter().map(|event| event.at).min();
            if let Some(later) = later.filter(|_| is_long && at % 8 == 7) {
                replay.handle_deadline(later.plus(-250_000_000));
            }
        }
        replay.finish().into_iter().for_each(|change| self.store.apply(change));
    }

    /// Reloads the hooks of an evicted turn. Changes reported meanwhile are already in the store.
    fn bring_back(&mut self, event: &Event) {
        let missing = self.sessions.poll_missing(event);
        if missing.is_empty() {
            return;
        }
        let log: BTreeMap<u64, &Event> = self.log.iter().map(|event| (event.seq, event)).collect();
        let mut replay = self.sessions.handle_missing(event);
        for old in missing.iter().filter_map(|seq| log.get(seq)) {
            replay.handle((*old).clone());
        }
        replay.finish().into_iter().for_each(|change| self.store.apply(change));
    }

    /// Number of characters of a printout of everything in the fold.
    pub(crate) fn written(&self) -> usize {
        format!("{:?}", self.sessions).len()
    }

    pub(crate) fn held(&self) -> usize {
        self.sessions.held()
    }

    pub(crate) fn reloads(&self) -> u64 {
        self.sessions.reloads()
    }

    pub(crate) fn pass(&mut self, now: Timestamp) {
        self.sessions.handle_deadline(now);
        self.store.drain(&mut self.sessions);
    }

    /// Loses all memory, as in a crash, and reads everything again.
    pub(crate) fn restart(&mut self) {
        self.sessions = Sessions::new(self.config.clone());
        for event in &self.log {
            self.sessions.handle(event.clone());
        }
        self.store.drain(&mut self.sessions);
    }

    pub(crate) fn finish(mut self) -> Store {
        if let Some(last) = self.log.iter().map(|event| event.at).max() {
            self.pass(last.plus(DAY_NS));
        }
        self.store
    }
}

/// Replays an event of a history. If its turn was evicted, reloads the hooks of the turn first.
fn replay_one(replay: &mut Replay<'_>, event: &Event, log: &[Event]) {
    let missing = replay.poll_missing(event);
    if !missing.is_empty() {
        let mut turn = replay.handle_missing(event);
        let log: BTreeMap<u64, &Event> = log.iter().map(|event| (event.seq, event)).collect();
        missing.iter().filter_map(|seq| log.get(seq)).for_each(|old| turn.handle((*old).clone()));
        drop(turn.finish());
    }
    replay.handle(event.clone());
}

/// The store as text: sessions with their turns, then every trace as a tree.
pub(crate) fn render(store: &Store) -> String {
    let mut text = String::new();
    let zero = store.spans.values().map(|span| span.start).min().unwrap_or_default();
    for row in store.sessions.values() {
        writeln!(
            text,
            "session {} {} surface={} generations={} tool_calls={} subagents={} errors={} tokens={}{}",
            row.root,
            row.state.as_str(),
            row.surface,
            row.generations,
            row.tool_calls,
            row.subagents,
            row.errors,
            tokens(row.tokens),
            outcome(row),
        )
        .unwrap();
        let mut turns: Vec<_> = store.turns.values().filter(|turn| turn.root == row.root).collect();
        turns.sort_by_key(|turn| turn.index);
        for turn in turns {
            writeln!(
                text,
                "  turn {} {} {} model={} status={} tool_calls={} errors={} tokens={}",
                turn.index,
                turn.generation,
                span_of(turn.started_at, turn.ended_at, zero),
                turn.model.as_deref().unwrap_or("-"),
                turn.status.as_deref().unwrap_or("-"),
                turn.tool_calls,
                turn.errors,
                tokens(turn.tokens),
            )
            .unwrap();
        }
    }
    let mut roots: Vec<&Span> = store.spans.values().filter(|span| span.parent.is_none()).collect();
    roots.sort_by_key(|span| (span.start, span.kind, span.id));
    for root in roots {
        tree(store, root, 0, zero, &mut text);
    }
    text
}

/// The outcome of a session. Empty if the calls show nothing except that files may have changed.
fn outcome(row: &SessionSummary) -> String {
    let work = &row.work;
    if work.last_test.is_none() && work.pull_request.is_none() {
        return String::new();
    }
    let words: Vec<&str> = row.outcome().into_iter().map(|word| word.as_str()).collect();
    format!(
        " outcome={} edits={} tests={}+{}",
        words.join(","),
        work.edits,
        work.tests_passed,
        work.tests_failed
    )
}

fn tokens(tokens: Option<hookspan_core::Tokens>) -> String {
    tokens.map_or("-".to_owned(), |t| {
        let counts = [t.input, t.cache_read, t.cache_write, t.output];
        counts.map(|count| count.map_or("-".to_owned(), |count| count.to_string())).join("/")
    })
}

fn span_of(start: Timestamp, end: Option<Timestamp>, zero: Timestamp) -> String {
    let ms = |at: Timestamp| at.since(zero) as f64 / 1e6;
    match end {
        Some(end) => format!("{}..{}", ms(start), ms(end)),
        None => format!("{}..", ms(start)),
    }
}

fn tree(store: &Store, span: &Span, depth: usize, zero: Timestamp, text: &mut String) {
    let indent = "  ".repeat(depth);
    let end = span.end.map(|end| end.at);
    let mut notes: Vec<String> = Vec::new();
    let shown = [
        "hookspan.end_reason",
        "hookspan.timing",
        "hookspan.tool.class",
        "hookspan.tool.outcome",
        "hookspan.wait_ms",
        "hookspan.hook_ms",
        "hookspan.subagent.link",
        "hookspan.late",
        "hookspan.incomplete",
        "hookspan.generation.synthetic",
        "gen_ai.usage.input_tokens",
        "cursor.usage.total_tokens",
        "gen_ai.tool.call.id",
        "file.path",
        "error.type",
    ];
    for key in shown {
        if let Some(attribute) = span.attributes.iter().find(|a| a.key == key) {
            let short = key.rsplit('.').next().unwrap();
            notes.push(format!("{short}={}", value(&attribute.value)));
        }
    }
    let vcs = |a: &&hookspan_core::Attribute| a.key.starts_with("vcs.ref.");
    for attribute in span.attributes.iter().filter(vcs) {
        notes.push(format!("{}={}", &attribute.key[8..], value(&attribute.value)));
    }
    if let Some(made) = span.attributes.iter().find(|a| a.key == "hookspan.vcs.commits") {
        notes.push(format!("commits={}", value(&made.value)));
    }
    if !span.settled {
        notes.push("unsettled".to_owned());
    }
    if !span.links.is_empty() {
        let kinds: Vec<_> = span.links.iter().map(|link| link.kind).collect();
        notes.push(format!("links={}", kinds.join(",")));
    }
    let events: Vec<_> = span.events.iter().map(|event| event.name.as_ref()).collect();
    if !events.is_empty() {
        notes.push(format!("events={}", events.join(",")));
    }
    let name = &span.name;
    writeln!(text, "{indent}{name} {} {}", span_of(span.start, end, zero), notes.join(" "))
        .unwrap();
    let mut children: Vec<&Span> =
        store.spans.values().filter(|child| child.parent == Some(span.id)).collect();
    children.sort_by_key(|child| (child.start, child.kind, child.id));
    for child in children {
        tree(store, child, depth + 1, zero, text);
    }
}

fn value(value: &Value) -> String {
    match value {
        Value::Str(text) => text.escape_debug().to_string(),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::StrList(list) => list.join(","),
    }
}
