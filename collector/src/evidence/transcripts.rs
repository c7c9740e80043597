//! Uses transcript folders as evidence: read-only and bounded.
//!
//! Cursor keeps a child's transcript at `<folder of the parent's transcript>/subagents/<child>.jsonl`. Its first row is
//! the task. Nothing of a transcript is stored.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use hookspan_core::event::{Confidence, Evidence, LinkSource};
use hookspan_core::sessions::Question;
use serde::Deserialize;

use super::usable;
use crate::dirs::open_private;
use crate::store::delegations;
use crate::store::open::Readers;

/// Maximum number of bytes read of a transcript's first row.
const MOST_BYTES: u64 = 1 << 20;

/// A delegating call, and the task that it gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) call: String,
    text: String,
}

/// What the transcripts in the parent's folder tell about the candidates.
pub(super) fn look<'a>(question: &Question, tasks: impl FnOnce() -> &'a [Task]) -> Vec<Evidence> {
    let Some(folder) = folder(&question.transcript_path) else { return Vec::new() };
    let mut transcripts = Vec::new();
    for child in &question.candidates {
        if let Some(path) = transcript(&folder, child)
            && let Ok(row) = first_row(&path)
        {
            transcripts.push((child, query(&row)));
        }
    }
    if transcripts.is_empty() {
        return Vec::new();
    }
    let tasks = tasks();
    transcripts
        .into_iter()
        .map(|(child, query)| Evidence {
            child: child.to_string(),
            parent: question.parent.to_string(),
            call: query.and_then(|query| call(tasks, &query)),
            confidence: Confidence::Transcript,
            source: LinkSource::TranscriptFolder,
        })
        .collect()
}

/// The folder for transcripts of the children of the conversation with this transcript. The path comes from a payload,
/// so only an absolute path without `..` is used.
fn folder(transcript_path: &str) -> Option<PathBuf> {
    let path = Path::new(transcript_path);
    let straight = path.components().all(|part| {
        matches!(part, Component::Prefix(_) | Component::RootDir | Component::Normal(_))
    });
    if !path.is_absolute() || !straight || path.extension().is_none_or(|kind| kind != "jsonl") {
        return None;
    }
    Some(path.parent()?.join("subagents"))
}

fn transcript(folder: &Path, child: &str) -> Option<PathBuf> {
    usable(child).then(|| folder.join(format!("{child}.jsonl")))
}

/// The first line of a regular file.
fn first_row(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = open_private(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        bytes.truncate(end);
    }
    Ok(bytes)
}

#[derive(Deserialize)]
struct Row {
    role: String,
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Content,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: String,
}

/// The user's words in the first row, without the text that Cursor puts around them.
fn query(row: &[u8]) -> Option<String> {
    let row: Row = serde_json::from_slice(row).ok()?;
    if row.role != "user" {
        return None;
    }
    let text = match row.message.content {
        Content::Text(text) => text,
        Content::Parts(parts) => parts.into_iter().map(|part| part.text).collect(),
    };
    let (_, inner) = text.split_once("<user_query>")?;
    let (inner, _) = inner.rsplit_once("</user_query>")?;
    Some(inner.trim().to_owned())
}

/// The only call that gave exactly this task.
fn call(tasks: &[Task], query: &str) -> Option<String> {
    let mut equal = tasks.iter().filter(|task| task.text.trim() == query).map(|task| &task.call);
    let first = equal.next()?;
    // Two calls with the same task do not prove which of them started the child.
    equal.all(|other| other == first).then(|| first.clone())
}

#[derive(Deserialize)]
struct Delegation {
    task: Option<String>,
    tool_call_id: Option<String>,
    subagent_id: Option<String>,
    tool_use_id: Option<String>,
    tool_input: Option<Arguments>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Arguments {
    Object { prompt: String },
    Other(serde::de::IgnoredAny),
}

/// The tasks that `parent` gave to its subagents, from its hooks.
pub(super) fn tasks(readers: &Readers, parent: &str) -> Vec<Task> {
    let bodies = readers.with(|db| delegations::bodies(db, parent)).unwrap_or_default();
    bodies.iter().filter_map(|body| task(body)).collect()
}

fn task(body: &[u8]) -> Option<Task> {
    let read: Delegation = serde_json::from_slice(body).ok()?;
    let prompt = match read.tool_input {
        Some(Arguments::Object { prompt }) => Some(prompt),
        Some(Arguments::Other(_)) | None => None,
    };
    let ids = [read.tool_call_id, read.subagent_id, read.tool_use_id];
    let call = ids.into_iter().flatten().find(|id| !id.is_empty())?;
    Some(Task { call, text: read.task.or(prompt)? })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn question(temp: &Path, children: &[&str]) -> Question {
        Question {
            parent: "parent".into(),
            transcript_path: temp.join("parent.jsonl").display().to_string(),
            candidates: children.iter().map(|child| (*child).into()).collect(),
        }
    }

    fn row(text: &str) -> String {
        let part = serde_json::json!({"type": "text", "text": text});
        let row = serde_json::json!({"role": "user", "message": {"content": [part]}});
        format!("{row}\n{{\"role\": \"assistant\"}}\n")
    }

    fn task(call: &str, text: &str) -> Task {
        Task { call: call.into(), text: text.into() }
    }

    #[test]
    fn a_transcript_in_the_parents_folder_proves_the_parent_and_its_task_the_call() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("subagents");
        fs::create_dir(&folder).unwrap();
        let text = "<timestamp>now</timestamp>\n<user_query>\nlook at <b>\n\nit\n</user_query>";
        fs::write(folder.join("child-1.jsonl"), row(text)).unwrap();
        fs::write(folder.join("child-2.jsonl"), row("<user_query>twice</user_query>")).unwrap();
        fs::write(folder.join("child-3.jsonl"), "not JSON").unwrap();
        let tasks = vec![
            task("a", "look at <b>\n\nit"),
            task("b", "twice"),
            task("c", "twice"),
            task("a", "x"),
        ];
        let children = ["child-1", "child-2", "child-3", "child-4"];
        let found = look(&question(temp.path(), &children), || &tasks);
        let calls: Vec<_> = found.iter().map(|one| (&*one.child, one.call.as_deref())).collect();
        assert_eq!(calls, [("child-1", Some("a")), ("child-2", None), ("child-3", None)]);
        assert!(found.iter().all(|one| one.parent == "parent"));
    }

    #[test]
    fn a_payload_cannot_lead_anywhere_else() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("subagents");
        fs::create_dir(&folder).unwrap();
        fs::write(temp.path().join("outside.jsonl"), row("<user_query>x</user_query>")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(temp.path().join("outside.jsonl"), folder.join("link.jsonl"))
            .unwrap();
        fs::create_dir(folder.join("folder.jsonl")).unwrap();
        let children = ["../outside", "link", "folder", "", "a/b", "x\0y"];
        assert_eq!(look(&question(temp.path(), &children), || &[]), []);
        for path in ["relative/p.jsonl", "/a/../b/p.jsonl", "/etc/passwd", ""] {
            assert_eq!(super::folder(path), None, "{path}");
        }
    }

    #[test]
    fn tasks_are_read_from_both_layers() {
        let read = |body: &str| super::task(body.as_bytes());
        let start =
            r#"{"task": "do", "tool_call_id": "a\nb", "subagent_id": "s", "tool_input": 5}"#;
        assert_eq!(read(start), Some(task("a\nb", "do")));
        let pre = r#"{"tool_use_id": "u", "tool_input": {"prompt": "do", "x": 1}}"#;
        assert_eq!(read(pre), Some(task("u", "do")));
        assert_eq!(read(r#"{"tool_use_id": "u", "tool_input": {"command": "ls"}}"#), None);
        assert_eq!(read("{"), None);
    }
}
