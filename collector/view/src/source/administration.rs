//! The collector itself: retention, privacy, installation, files, and the few changes that a page may request.

use crate::Result;
use crate::health::Health;
use crate::source::marks::{FilterPage, MarkChange, Marked, SavedFilter};

/// Questions about the collector itself. Every call is short (it runs on a thread for blocking work) and bounded by its
/// arguments.
pub trait Administration {
    /// What is kept, and for how long.
    fn privacy(&self) -> Result<Privacy>;
    /// What remains to be done until hooks arrive.
    fn install(&self) -> Result<Vec<InstallStep>>;
    /// Other places where a span can be viewed: a name, and a URL with `{trace_id}`, `{span_id}` and `{start_ms}`.
    fn links(&self) -> Vec<(String, String)>;
    /// A session as a file; `None` if there is no such session. `format` and `content` are words from [`FILE_FORMATS`]
    /// and [`FILE_CONTENTS`].
    fn file(&self, root: &str, format: &str, content: &str) -> Result<Option<Vec<u8>>>;
    /// A text without its secrets, for users to copy from a page.
    fn redacted(&self, text: &str) -> String;
    /// What a destination would get of the session `root`, or of the last session without `root`, as OTLP/JSON. Nothing
    /// is sent. `None` if there is no such destination or session.
    fn preview(&self, destination: &str, root: Option<&str>) -> Result<Option<Vec<u8>>>;
    /// The audit log: who came in, what was deleted, and what was exported.
    fn audit(&self) -> Result<Audit>;
    /// How hookspan itself is doing.
    fn health(&self) -> Result<Health>;
    /// The figures of `/metrics`, in the text format of Prometheus.
    fn exposition(&self) -> Result<String>;
}

/// The changes that a page may request. The one writer carries them out.
pub trait Control: Send + Sync + 'static {
    /// Makes a paused or waiting destination try again. Returns false if no destination has that name.
    fn retry(&self, destination: &str) -> Result<bool>;
    /// Deletes everything that is stored of the sessions with these roots: rows, texts, hooks, requests that wait to be
    /// sent. When this returns, no file contains any of it.
    fn delete(&self, roots: &[String]) -> Result<Deleted>;
    /// Changes the marks of a session, all of `changes` or none.
    fn mark(&self, root: &str, changes: &[MarkChange]) -> Result<Marked>;
    /// Keeps a filter, in place of one of the same name. Returns false if the page has as many as it may have.
    fn save_filter(&self, filter: &SavedFilter) -> Result<bool>;
    /// Removes a kept filter. Returns false if there is none of that name.
    fn forget_filter(&self, page: FilterPage, name: &str) -> Result<bool>;
}

/// The result of a deletion.
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
    /// Number of bytes of their payloads, as received.
    pub bytes: u64,
    /// Number of damaged databases that were moved aside. Nobody knows whose hooks they contain, so a deletion leaves
    /// them alone.
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

/// How much content a file contains.
pub const FILE_CONTENTS: [&str; 3] = ["off", "metadata", "full"];

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privacy {
    /// Kinds of content: name, what is kept locally, and the most that leaves the machine.
    pub classes: Vec<PrivacyClass>,
    /// Days after which sessions are deleted; `None` if they are kept.
    pub retention_days: Option<u64>,
    /// Number of secrets that were redacted in the search index.
    pub redacted: u64,
    /// Whether texts can be searched.
    pub search: bool,
    /// Names of the destinations that are configured.
    pub destinations: Vec<String>,
}

/// The audit log. Times are seconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Time, what happened, and details in words, the oldest first.
    pub entries: Vec<(i64, String, String)>,
    /// Number of older entries that were removed to make room.
    pub dropped: u64,
    /// Kinds of refused requests, each with its count and the time of the last one.
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
