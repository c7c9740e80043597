//! Recognises a file by its beginning: it contains recorded hooks, or something else, which is described in a sentence.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::records::{Item, Kind, Records};
use super::times::Time;
use crate::text;

/// Columns of a line that are shown.
const SHOWN: usize = 60;

/// How to read a file that can be imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// A log: the hooks are surrounded by lines of text.
    pub(super) log: bool,
}

/// What is known by its first bytes.
const MAGIC: [(&[u8], &str); 17] = [
    (b"PK\x03\x04", "a ZIP archive: unpack it and import the files in it"),
    (b"BZh", "compressed with bzip2: unpack it first (`bunzip2 -c FILE | hookspan import -`)"),
    (b"\xfd7zXZ\0", "compressed with xz: unpack it first (`xz -dc FILE | hookspan import -`)"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it and import the files in it"),
    (
        b"\x04\x22\x4d\x18",
        "compressed with lz4: unpack it first (`lz4 -dc FILE | hookspan import -`)",
    ),
    (b"\x1f\x8b", "compressed twice: unpack it once (`gunzip -c FILE | hookspan import -`)"),
    (b"\x28\xb5\x2f\xfd", "compressed twice: unpack it once (`zstd -dc FILE | hookspan import -`)"),
    (
        b"SQLite format 3\0",
        "a SQLite database: hookspan imports recorded hooks. From another hookspan, use its `hookspan export --all --format jsonl`",
    ),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"\xcf\xfa\xed\xfe", "a program"),
    (b"\xca\xfe\xba\xbe", "a program"),
    (b"\x89PNG", "a picture"),
    (b"%PDF", "a PDF document"),
    (b"\xff\xfe\0\0", "UTF-32 text: save it as UTF-8"),
    (
        b"<!DOCTYPE html",
        "an HTML page: import what it was made from (`hookspan export --format jsonl`)",
    ),
    (b"<?xml", "an XML document"),
];

/// JSON documents that are not hooks. Each row has the keys that such a document contains, and its name for the user.
const FOREIGN: [(&[&str], &str); 11] = [
    (
        &["resourceSpans"],
        "OTLP traces: hookspan writes these and does not read them; send them to a receiver instead",
    ),
    (&["resourceLogs"], "OTLP logs, not recorded hooks"),
    (&["resourceMetrics"], "OTLP metrics, not recorded hooks"),
    (
        &["traceEvents"],
        "a Chrome trace: import the raw log it was made from (`hookspan export --format jsonl`)",
    ),
    (
        &["version", "hooks"],
        "Cursor's hooks.json, the configuration; import the log that its scripts write",
    ),
    (
        &["uuid", "parentUuid", "message"],
        "a transcript of Claude Code: it has no hooks; record them with `hookspan install`",
    ),
    (
        &["type", "sessionId", "uuid", "timestamp"],
        "a transcript of Claude Code: it has no hooks; record them with `hookspan install`",
    ),
    (
        &["type", "leafUuid"],
        "a transcript of Claude Code: it has no hooks; record them with `hookspan install`",
    ),
    (
        &["role", "message"],
        "a transcript of Cursor: it has neither times nor ids; record hooks with `hookspan install`",
    ),
    (&["role", "content"], "a chat transcript, not recorded hooks"),
    (&["nodes", "edges"], "a graph, not recorded hooks"),
];

/// Keys of hook programs' answers. An object with only these keys is an answer, not a hook.
const ANSWER: [&str; 12] = [
    "permission",
    "continue",
    "user_message",
    "agent_message",
    "userMessage",
    "agentMessage",
    "followup_message",
    "additional_context",
    "updated_input",
    "updated_mcp_tool_output",
    "env",
    "decision",
];

/// What a file is instead of recorded hooks, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotHooks {
    /// The file begins like a file of another kind.
    #[error("it is {0}")]
    Kind(&'static str),
    /// Most of its objects have the keys of something else.
    #[error("it looks like {0}")]
    LooksLike(&'static str),
    /// The file contains NUL bytes.
    #[error("line {line} contains NUL bytes: it is a binary file")]
    Binary {
        /// The first such line.
        line: usize,
    },
    /// Most of the file is text that is not JSON.
    #[error(
        "{kind}line {line} is not JSON (\"{shown}\"), and so is most of the file; hookspan reads JSON Lines of recorded \
         hooks, and the logs of scripts that write each hook as JSON"
    )]
    Text {
        /// What the text looks like.
        kind: &'static str,
        /// The first such line.
        line: u64,
        /// Its beginning, made visible.
        shown: String,
    },
}

/// Recognises a file by its beginning. `whole` means that the beginning is the whole file.
///
/// # Errors
/// What the file is instead of recorded hooks, and what to do.
pub(super) fn judge(sample: &[u8], whole: bool) -> Result<Form, NotHooks> {
    if let Some((_, what)) = MAGIC.iter().find(|(magic, _)| starts_with(sample, magic)) {
        return Err(NotHooks::Kind(what));
    }
    if sample.get(257..262) == Some(b"ustar") {
        return Err(NotHooks::Kind("a tar archive: unpack it and import the files in it"));
    }
    if let Some(at) = sample.iter().position(|byte| *byte == 0) {
        let line = 1 + sample.iter().take(at).filter(|byte| **byte == b'\n').count();
        return Err(NotHooks::Binary { line });
    }
    let mut seen = Seen::default();
    let mut records = Records::new(sample);
    // Reading from memory does not fail.
    while let Ok(Some(item)) = records.next() {
        seen.add(&item, whole);
    }
    seen.judge()
}

fn starts_with(sample: &[u8], magic: &[u8]) -> bool {
    let begins = sample.get(..magic.len()).unwrap_or_default();
    let is_text = magic.starts_with(b"<");
    if is_text { begins.eq_ignore_ascii_case(magic) } else { begins == magic }
}

/// What the beginning of a file contains.
#[derive(Default)]
struct Seen {
    objects: u64,
    json_bytes: usize,
    lines: u64,
    text_bytes: usize,
    /// The first line that is not JSON.
    first: Option<(u64, String)>,
    /// Lines with at least two commas.
    commas: u64,
    foreign: BTreeMap<&'static str, u64>,
    headed: bool,
    log: bool,
}

impl Seen {
    fn add(&mut self, item: &Item<'_>, whole: bool) {
        match item.kind {
            Kind::Object => {
                self.objects += 1;
                self.json_bytes += item.body.len();
                self.log |= !item.prefix.is_empty() || self.headed;
                if let Some(what) = foreign(item.body) {
                    *self.foreign.entry(what).or_default() += 1;
                }
            }
            // The beginning of a long object, or an object that is cut off, counts as JSON, too.
            Kind::Cut | Kind::Unfinished if !whole => self.json_bytes += item.body.len(),
            Kind::Broken | Kind::Unfinished | Kind::Cut if looks_like_json(item.body) => {
                self.json_bytes += item.body.len();
            }
            Kind::Text if is_rule(item.body) => {}
            _ => self.text(item),
        }
        self.headed = item.kind == Kind::Text && time_of(item.body).is_some();
    }

    fn text(&mut self, item: &Item<'_>) {
        self.lines += 1;
        self.text_bytes += item.prefix.len() + item.body.len();
        let line =
            String::from_utf8_lossy(if item.prefix.is_empty() { item.body } else { item.prefix });
        self.commas += u64::from(line.matches([',', ';', '\t']).count() >= 2);
        if self.first.is_none() {
            self.first = Some((item.line, text::visible(&line, SHOWN)));
        }
    }

    fn judge(&self) -> Result<Form, NotHooks> {
        if let Some((what, count)) = self.foreign.iter().max_by_key(|(_, count)| **count)
            && count * 2 > self.objects
        {
            return Err(NotHooks::LooksLike(what));
        }
        if let Some((line, shown)) = &self.first
            && self.text_bytes > self.json_bytes
        {
            let table = self.objects == 0 && self.lines > 1 && self.commas == self.lines;
            return Err(NotHooks::Text {
                kind: if table { "it looks like a table (CSV), and " } else { "" },
                line: *line,
                shown: shown.clone(),
            });
        }
        Ok(Form { log: self.log })
    }
}

/// The time at the beginning of a line of text.
pub(super) fn time_of(line: &[u8]) -> Option<Time> {
    let line = std::str::from_utf8(line.get(..line.len().min(128))?).ok()?;
    Time::before(line).map(|(time, _)| time)
}

/// Whether a line is only a ruler between two records.
pub(super) fn is_rule(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b'-' | b'=' | b'_' | b'*' | b'#' | b'~' | b' '))
}

fn looks_like_json(body: &[u8]) -> bool {
    let inside = body.strip_prefix(b"{").unwrap_or_default().trim_ascii_start();
    matches!(inside, [b'"', next, ..] if next.is_ascii_alphanumeric() || *next == b'_')
}

/// What an object is if it is not a hook, judged by its keys.
fn foreign(object: &[u8]) -> Option<&'static str> {
    let keys: BTreeMap<std::borrow::Cow<'_, str>, &RawValue> =
        serde_json::from_slice(object).ok()?;
    if keys.contains_key("hook_event_name") {
        return None;
    }
    if let (Some(kind), true) = (keys.get("type"), keys.contains_key("payload")) {
        let codex = ["session_meta", "response_item", "event_msg", "turn_context"];
        if codex.contains(&kind.get().trim_matches('"')) {
            return Some(
                "a transcript of Codex: it has no hooks; record them with `hookspan install`",
            );
        }
    }
    FOREIGN
        .iter()
        .find(|(all, _)| all.iter().all(|key| keys.contains_key(*key)))
        .map(|(_, what)| *what)
}

/// Whether an object is the answer of a hook program.
pub(super) fn is_answer(object: &[u8]) -> bool {
    let keys: Result<BTreeMap<std::borrow::Cow<'_, str>, &RawValue>, _> =
        serde_json::from_slice(object);
    keys.is_ok_and(|keys| !keys.is_empty() && keys.keys().all(|key| ANSWER.contains(&&**key)))
}

#[cfg(test)]
mod tests;
