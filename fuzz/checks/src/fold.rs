//! Checks the core with hooks of any content: bodies go in, spans come out.

use std::collections::BTreeMap;

use hookspan_core::content::{self, Field};
use hookspan_core::{
    Change, Config, Hook, Sessions, Span, SpanId, SpanKey, Status, Timestamp, normalise,
};

const START: Timestamp = Timestamp(1_780_000_000_000_000_000);
const DAY_NS: i64 = 86_400_000_000_000;
const FIELDS: [Field; 10] = [
    Field::Prompt,
    Field::Response,
    Field::Thought,
    Field::ToolInput,
    Field::ToolOutput,
    Field::Task,
    Field::Summary,
    Field::Description,
    Field::McpCommand,
    Field::ErrorMessage,
];

/// `data` holds bodies separated by newlines. A body that begins with the digit `d` arrives 10^d milliseconds after the
/// previous one, any other body one millisecond after it. A body that begins with `!` becomes the argument of the next
/// hook.
pub fn fold(data: &[u8]) {
    let hooks = hooks(data);
    for hook in &hooks {
        let event = normalise(hook);
        assert_eq!(normalise(hook), event, "the same hook, another event");
        assert!(event.conversation.len() <= 512 && event.generation.len() <= 512);
        assert!(event.name.len() <= 64, "{}", event.name);
        for field in FIELDS {
            let found = content::extract(field, &hook.body);
            if let Some(found) = found.filter(|found| found.json) {
                let value = serde_json::from_str::<&serde_json::value::RawValue>(&found.text);
                assert!(value.is_ok(), "{field:?} is no JSON: {}", found.text);
            }
        }
    }
    let at_once = play(&hooks, usize::MAX);
    assert_eq!(at_once, play(&hooks, usize::MAX), "the same hooks, other spans");
    check(&at_once);
    check(&play(&hooks, 1));
}

fn hooks(data: &[u8]) -> Vec<Hook> {
    let mut at = START;
    let mut argument = None;
    let mut hooks = Vec::new();
    for line in data.split(|byte| *byte == b'\n') {
        let (step, body) = match line {
            [digit @ b'0'..=b'9', body @ ..] => (10_i64.pow(u32::from(digit - b'0')), body),
            [b'!', name @ ..] => {
                argument = Some(String::from_utf8_lossy(name).into_owned());
                continue;
            }
            body => (1, body),
        };
        at = at.plus(step * 1_000_000);
        hooks.push(Hook {
            seq: hooks.len() as u64 + 1,
            observed_at: at,
            argument: argument.take(),
            body: body.to_vec(),
            ..Hook::default()
        });
    }
    hooks
}

/// What a collector keeps: the spans, the root of each conversation, and the hooks.
#[derive(Default)]
struct Store {
    spans: BTreeMap<SpanId, Span>,
    roots: BTreeMap<String, String>,
    log: Vec<Hook>,
}

/// Folds hooks `batch` at a time, letting time pass between batches. Then lets a day pass.
fn play(hooks: &[Hook], batch: usize) -> BTreeMap<SpanId, Span> {
    let mut sessions = Sessions::new(Config::default());
    let mut store = Store::default();
    let mut last = START;
    for chunk in hooks.chunks(batch.min(hooks.len()).max(1)) {
        for hook in chunk {
            last = hook.observed_at;
            store.feed(&mut sessions, hook);
        }
        store.drain(&mut sessions);
        sessions.handle_deadline(last);
        store.drain(&mut sessions);
    }
    sessions.handle_deadline(last.plus(DAY_NS));
    store.drain(&mut sessions);
    store.spans
}

impl Store {
    /// If the fold has evicted the conversation, its history is replayed first.
    fn feed(&mut self, sessions: &mut Sessions, hook: &Hook) {
        let event = normalise(hook);
        if !sessions.holds(&event.conversation)
            && let Some(root) = self.roots.get(&*event.conversation)
        {
            for old in self.log.iter().map(normalise) {
                if self.roots.get(&*old.conversation) == Some(root) {
                    sessions.handle(old);
                }
            }
        }
        self.log.push(hook.clone());
        sessions.handle(event);
    }

    fn drain(&mut self, sessions: &mut Sessions) {
        while let Some(change) = sessions.poll_change() {
            match change {
                Change::Span(span) => {
                    self.spans.insert(span.id, *span);
                }
                Change::Settle(SpanKey { id, .. }) => {
                    if let Some(span) = self.spans.get_mut(&id) {
                        span.settled = true;
                    }
                }
                Change::Withdraw(SpanKey { id, .. }) => {
                    self.spans.remove(&id);
                }
                Change::Bind { conversation, root } => {
                    self.roots.insert(conversation.to_string(), root.to_string());
                }
                _ => {}
            }
        }
    }
}

/// Checks that there are no orphans, that nothing ends before it starts, and that every ended span has a reason.
fn check(spans: &BTreeMap<SpanId, Span>) {
    for span in spans.values() {
        if let Some(parent) = span.parent {
            let Some(parent) = spans.get(&parent) else { panic!("an orphan: {span:#?}") };
            assert_eq!(parent.trace, span.trace, "parent in another trace: {span:#?}");
        }
        if let Some(end) = span.end {
            assert!(end.at >= span.start, "ends before it starts: {span:#?}");
        }
        let has = |key: &str| span.attributes.iter().any(|attribute| attribute.key == key);
        assert_eq!(span.status != Status::Unset, has("error.type"), "{span:#?}");
        assert_eq!(span.end.is_some(), has("hookspan.end_reason"), "{span:#?}");
        assert!(span.name.len() <= 128, "{}", span.name);
        let mut keys = span.attributes.windows(2);
        let sorted = keys.all(|two| matches!(two, [a, b] if a.key.as_bytes() < b.key.as_bytes()));
        assert!(sorted, "attributes out of order: {span:#?}");
    }
}
