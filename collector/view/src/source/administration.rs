//! The collector itself: retention, privacy, installation, files; and the few changes that a page may ask for.

use crate::Result;
use crate::health::Health;

/// Questions about the collector itself. Every call is short (it runs on a blocking thread) and bounded by its arguments.
pub trait Administration {
    /// What is kept, and for how long.
    fn privacy(&self) -> Result<Privacy>;
    /// What is left to do until hooks arrive.
    fn install(&self) -> Result<Vec<InstallStep>>;
    /// Where else a span can be looked at: a name, and a URL with `{trace_id}`, `{span_id}` and `{start_ms}`.
    fn links(&self) -> Vec<(String, String)>;
    /// A session as a file; `None` when there is no such session. `format` and `content` are words of [`FILE_FORMATS`] and
    /// [`FILE_CONTENTS`].
    fn file(&self, root: &str, format: &str, content: &str) -> Result<Option<Vec<u8>>>;
    /// A text without its secrets: what a page lets people copy.
    fn redacted(&self, text: &str) -> String;
    /// What a destination would get of a session, or of the last one, as OTLP/JSON and without sending it; `None` when there is no
    /// such destination or session.
    fn preview(&self, destination: &str, root: Option<&str>) -> Result<Option<Vec<u8>>>;
    /// Who came in, what was deleted and what was given away.
    fn audit(&self) -> Result<Audit>;
    /// How hookspan itself is doing.
    fn health(&self) -> Result<Health>;
    /// The figures of `/metrics`, in the text format of Prometheus.
    fn exposition(&self) -> Result<String>;
}

/// The changes that a page may ask for. The one writer carries them out.
pub trait Control: Send + Sync + 'static {
    /// Wakes a paused or waiting destination. False when there is none of that name.
    fn retry(&self, destination: &str) -> Result<bool>;
    /// Deletes everything that is stored of the sessions with these roots: rows, texts, hooks, what waits to be sent. It is
    /// in no file any more when this returns.
    fn delete(&self, roots: &[String]) -> Result<Deleted>;
}

/// What a deletion came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Sessions.
    pub sessions: u64,
    /// Turns.
    pub turns: u64,
    /// Spans.
    pub spans: u64,
    /// Raw hooks.
    pub hooks: u64,
    /// Bytes of their payloads, as they were received.
    pub bytes: u64,
    /// Databases that were moved aside damaged: whose hooks they hold is unknown, so a deletion leaves them alone.
    pub damaged: u64,
}

/// Formats of a session as a file, each with the file's extension and media type.
pub const FILE_FORMATS: [(&str, &str, &str); 5] = [
    ("jsonl", "jsonl", "application/x-ndjson"),
    ("otlp-json", "otlp.json", "application/json"),
    ("otlp-proto", "otlp.pb", "application/x-protobuf"),
    ("chrome-trace", "trace.json", "application/json"),
    ("html", "html", "text/html; charset=utf-8"),
];

/// How much of the content goes into a file.
pub const FILE_CONTENTS: [&str; 3] = ["off", "metadata", "full"];

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privacy {
    /// Kinds of content: name, what is kept locally, what leaves the machine at most.
    pub classes: Vec<PrivacyClass>,
    /// Days after which sessions are deleted; `None`: never.
    pub retention_days: Option<u64>,
    /// Secrets that were blanked in the search index.
    pub redacted: u64,
    /// Whether texts can be searched.
    pub search: bool,
    /// Names of the destinations that are configured.
    pub destinations: Vec<String>,
}

/// The audit log. Times are seconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Time, what happened, and details in words; the oldest first.
    pub entries: Vec<(i64, String, String)>,
    /// Older entries that made room.
    pub dropped: u64,
    /// Who was refused, how often, and when last.
    pub refused: Vec<(String, u64, i64)>,
}

/// One kind of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivacyClass {
    /// prompts, outputs, files ...
    pub name: &'static str,
    /// What the store keeps: none, hash, preview, full.
    pub stored: &'static str,
    /// What the search index keeps: none, redacted.
    pub indexed: &'static str,
    /// The most that any destination gets: none, hash, preview, full.
    pub exported: &'static str,
}

/// One thing to do until hooks arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallStep {
    /// install, restart, first_hook.
    pub id: &'static str,
    /// todo, ok, failed.
    pub state: &'static str,
    /// What to type, if anything.
    pub command: Option<String>,
    /// What it is for, or what went wrong.
    pub hint: String,
}
