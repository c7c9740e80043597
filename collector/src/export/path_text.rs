//! Applies the policy for paths to text: arguments, results, prompts, answers, error texts.
//!
//! At `relative`, paths in the workspace become relative, and a home directory becomes `~`. Other paths tell nothing
//! about a person and stay, because commands must remain readable. At `hash` and `off`, everything that looks like a
//! path is replaced. A bare file name in running text looks like any word, so it stays.

use hookspan_core::content::Content;
use serde_json::Value;

use super::hashed::hashed_path;
use crate::config::destination::PathPolicy;

/// JSON members that contain a path, as the editors spell them.
pub(super) const KEYS: [&str; 20] = [
    "agent_transcript_path",
    "agentTranscriptPath",
    "cwd",
    "directory",
    "file",
    "file_path",
    "filePath",
    "filename",
    "files",
    "notebook_path",
    "path",
    "paths",
    "relative_path",
    "target_directory",
    "target_file",
    "target_notebook",
    "transcript_path",
    "transcriptPath",
    "working_directory",
    "workspace_roots",
];

/// The replacement of a path at `off`.
const OFF: &str = "[path]";
/// Maximum depth of JSON documents inside strings of other documents.
const NESTED: usize = 3;

/// The policy, and the workspace to which paths become relative.
#[derive(Clone, Copy)]
pub(super) struct Paths<'a> {
    pub(super) policy: PathPolicy,
    pub(super) workspace: Option<&'a str>,
}

impl Paths<'_> {
    /// Applies the policy to a content.
    pub(super) fn content(self, content: &mut Content) {
        let withholds = matches!(self.policy, PathPolicy::Hash | PathPolicy::Off);
        if content.json
            && withholds
            && let Ok(mut document) = serde_json::from_str::<Value>(&content.text)
        {
            self.document(None, &mut document, NESTED);
            content.text = document.to_string();
            return;
        }
        self.in_place(&mut content.text);
    }

    /// Applies the policy to running text, which may be JSON at any depth of escaping.
    pub(super) fn in_place(self, text: &mut String) {
        let replaced = match self.policy {
            PathPolicy::Full => None,
            PathPolicy::Relative => self.relative(text),
            PathPolicy::Hash | PathPolicy::Off => self.withheld(text),
        };
        if let Some(replaced) = replaced {
            *text = replaced;
        }
    }

    fn document(self, key: Option<&str>, value: &mut Value, depth: usize) {
        match value {
            Value::String(text) if key.is_some_and(|key| KEYS.contains(&key)) => {
                *text = self.stand_in(text);
            }
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(mut inner) if depth > 0 && (inner.is_object() || inner.is_array()) => {
                    self.document(None, &mut inner, depth - 1);
                    *text = inner.to_string();
                }
                _ => self.in_place(text),
            },
            Value::Array(items) => {
                items.iter_mut().for_each(|item| self.document(key, item, depth));
            }
            Value::Object(map) => {
                let members = std::mem::take(map).into_iter().map(|(mut key, mut value)| {
                    self.document(Some(&key), &mut value, depth);
                    self.in_place(&mut key);
                    (key, value)
                });
                *map = members.collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn stand_in(self, path: &str) -> String {
        if self.policy == PathPolicy::Hash { hashed_path(path) } else { OFF.to_owned() }
    }

    /// Replaces everything that looks like a path.
    fn withheld(self, text: &str) -> Option<String> {
        let mut out = String::new();
        let (mut copied, mut at) = (0, 0);
        while let Some(next) = text.get(at..)?.chars().next() {
            let length = path_at(text, at);
            if length == 0 {
                at += next.len_utf8();
                continue;
            }
            out.push_str(&text[copied..at]);
            out.push_str(&self.stand_in(&text[at..at + length]));
            at += length;
            copied = at;
        }
        (copied > 0).then(|| out + &text[copied..])
    }

    /// Makes paths in the workspace relative, and removes the names of home directories.
    fn relative(self, text: &str) -> Option<String> {
        let mut shown: Option<String> = None;
        for root in self.roots() {
            shown = without_root(shown.as_deref().unwrap_or(text), &root).or(shown);
        }
        if let Some(slug) = self.slug() {
            shown = without_slug(shown.as_deref().unwrap_or(text), &slug).or(shown);
        }
        for folder in HOMES {
            shown = without_homes(shown.as_deref().unwrap_or(text), folder).or(shown);
        }
        shown
    }

    /// The spellings of the workspace's path in texts: plain, escaped for JSON, and with the other separator.
    fn roots(self) -> Vec<String> {
        let root = self.workspace.unwrap_or_default().trim_end_matches(['/', '\\']);
        if root.len() < 3 {
            return Vec::new();
        }
        let mut roots = vec![root.to_owned()];
        if root.contains('\\') {
            roots.push(root.replace('\\', "\\\\"));
            roots.push(root.replace('\\', "/"));
        }
        roots
    }

    /// The name of the folder in which Cursor keeps data of the workspace: the workspace's path with hyphens.
    fn slug(self) -> Option<String> {
        let root = self.workspace?.trim_matches(['/', '\\']);
        let slug = root.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        (slug.len() > 2 && slug.contains('-')).then_some(slug)
    }
}

/// `text` without `root` in front of paths. `root` alone becomes `.`.
fn without_root(text: &str, root: &str) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices(root) {
        let end = at + root.len();
        let rest = &text[end..];
        if at < copied || !begins(text, at) || rest.starts_with(is_name) {
            continue;
        }
        out.push_str(&text[copied..at]);
        let separator = rest.len() - rest.trim_start_matches(['/', '\\']).len();
        // A backslash that belongs to a line break in JSON is not a separator.
        let is_path = rest.starts_with('/') || (separator > 0 && root.contains('\\'));
        copied = if is_path && rest[separator..].starts_with(is_name) {
            end + separator
        } else {
            out.push('.');
            end
        };
    }
    (copied > 0).then(|| out + &text[copied..])
}

/// `text` with the folder's name replaced by the word `workspace`.
fn without_slug(text: &str, slug: &str) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices(slug) {
        let is_whole =
            !text[..at].ends_with(is_name) && !text[at + slug.len()..].starts_with(is_name);
        if is_whole {
            out.push_str(&text[copied..at]);
            out.push_str("workspace");
            copied = at + slug.len();
        }
    }
    (copied > 0).then(|| out + &text[copied..])
}

/// Folders that contain home directories. The last ones are escaped for JSON, once and twice.
const HOMES: [&str; 6] =
    ["/home/", "/Users/", ":/Users/", ":\\Users\\", ":\\\\Users\\\\", ":\\\\\\\\Users\\\\\\\\"];

/// `text` with `folder` and the name after it replaced by `~`.
fn without_homes(text: &str, folder: &str) -> Option<String> {
    let mut out = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices(folder) {
        let from = at + folder.len();
        // The drive letter before the colon belongs to the path.
        let is_drive = folder.starts_with(':');
        let start = if is_drive { at.saturating_sub(1) } else { at };
        let is_letter = text.as_bytes().get(start).is_some_and(u8::is_ascii_alphabetic);
        let name = text[from..].find(|c: char| !is_name(c)).unwrap_or(text.len() - from);
        let starts_here = start >= copied && (!is_drive || is_letter) && begins(text, start);
        if name == 0 || !starts_here {
            continue;
        }
        out.push_str(&text[copied..start]);
        out.push('~');
        copied = from + name;
    }
    (copied > 0).then(|| out + &text[copied..])
}

/// The length of the path that begins at `at`; 0 if no path begins there.
fn path_at(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let first = rest.as_bytes()[0];
    if !(first == b'/'
        || first == b'~'
        || first == b'\\'
        || first >= 0x80
        || is_name(first as char))
        || !begins(text, at)
    {
        return 0;
    }
    let drive = first.is_ascii_alphabetic()
        && rest.as_bytes().get(1) == Some(&b':')
        && rest.as_bytes().get(2).is_some_and(|b| matches!(b, b'/' | b'\\'));
    let share = rest.trim_start_matches('\\');
    let share = rest.len() - share.len() >= 2 && share.starts_with(is_name) && share.contains('\\');
    let (head, separators): (usize, &[char]) = match (drive, share) {
        (true, _) => (2, &['/', '\\']),
        (_, true) => (0, &['/', '\\']),
        _ => (0, &['/']),
    };
    let in_path = |c: char| is_name(c) || separators.contains(&c);
    let run = rest[head..].find(|c: char| !in_path(c)).unwrap_or(rest.len() - head) + head;
    let path = rest[..run].trim_end_matches('.');
    let is_tag = first == b'/' && text[..at].ends_with('<');
    // `//` begins a comment or the rest of a URL, and a single separator is a division.
    let has_name = path[head..].contains(is_name);
    let is_plain = drive
        || share
        || (path.contains('/') && !path.starts_with("//") && !rest[run..].starts_with("://"));
    let is_number = path.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'/' | b'.'));
    if has_name && is_plain && !is_tag && !is_number { path.len() } else { 0 }
}

/// Whether a path may begin at `at`. It may not begin inside a word or directly after a separator.
fn begins(text: &str, at: usize) -> bool {
    let before = &text[..at];
    let Some(last) = before.chars().next_back() else { return true };
    if before.ends_with("file://") {
        return true;
    }
    let escaped = matches!(last, 'n' | 'r' | 't') && before[..before.len() - 1].ends_with('\\');
    escaped || !(is_name(last) || matches!(last, '/' | '\\') || before.ends_with("~"))
}

/// Whether `c` is common in file names. A colon, a quote or a bracket may occur in one, but in running text it ends the
/// path.
fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | '@' | '%' | '+' | '#' | '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(policy: PathPolicy, text: &str) -> String {
        let paths = Paths { policy, workspace: Some("/home/anna/src/lighthouse") };
        let mut text = text.to_owned();
        paths.in_place(&mut text);
        text
    }

    #[test]
    fn relative_names_neither_the_workspace_nor_a_home() {
        for (text, expected) in [
            ("cat /home/anna/src/lighthouse/a/b.rs", "cat a/b.rs"),
            ("cd /home/anna/src/lighthouse && ls", "cd . && ls"),
            ("cd \"/home/anna/src/lighthouse/\"", "cd \"./\""),
            ("/home/anna/src/lighthouse2/x", "~/src/lighthouse2/x"),
            ("see /home/anna/.ssh/config", "see ~/.ssh/config"),
            ("{\"output\":\"x\\n/home/anna/y\\n\"}", "{\"output\":\"x\\n~/y\\n\"}"),
            ("/Users/ben.k/Library", "~/Library"),
            ("type C:\\Users\\Ben\\a.txt", "type ~\\a.txt"),
            ("{\"p\":\"C:\\\\Users\\\\Ben\\\\a.txt\"}", "{\"p\":\"~\\\\a.txt\"}"),
            ("file:///home/anna/x", "file://~/x"),
            (
                "/home/anna/.cursor/projects/home-anna-src-lighthouse/t",
                "~/.cursor/projects/workspace/t",
            ),
            ("PATH=/home/anna/bin:/home/ben/bin", "PATH=~/bin:~/bin"),
            ("cat /etc/passwd", "cat /etc/passwd"),
            ("https://acme.dev/home/anna/x", "https://acme.dev/home/anna/x"),
        ] {
            assert_eq!(shown(PathPolicy::Relative, text), expected, "{text}");
        }
    }

    #[test]
    fn off_and_hash_leave_no_path() {
        for (text, expected) in [
            ("cat /etc/passwd src/a.rs", "cat [path] [path]"),
            ("grep -r x ./lib/* > ~/out.txt", "grep -r x [path] > [path]"),
            ("see `src/über/a.rs`.", "see `[path]`."),
            ("at src/a.rs:12:3", "at [path]:12:3"),
            ("copy D:\\work\\x.txt \\\\nas\\share\\y", "copy [path] [path]"),
            ("{\"a\":\"b\\n/etc/x\"}", "{\"a\":\"b\\n[path]\"}"),
            ("https://acme.dev/a/b and 1/2", "https://acme.dev/a/b and 1/2"),
            ("<b>x</b> // comment", "<b>x</b> // comment"),
            ("file:///srv/x", "file://[path]"),
            ("a / b", "a / b"),
        ] {
            assert_eq!(shown(PathPolicy::Off, text), expected, "{text}");
            assert!(!shown(PathPolicy::Hash, text).contains("/etc"), "{text}");
        }
        assert_eq!(shown(PathPolicy::Full, "/etc/passwd"), "/etc/passwd");
    }

    #[test]
    fn a_path_in_arguments_has_the_hash_of_the_attribute() {
        let paths = Paths { policy: PathPolicy::Hash, workspace: None };
        let text =
            r#"{"file_path":"a.rs","n":1,"inner":"{\"path\":\"b.rs\"}","x":{"src/a":[true]}}"#;
        let mut content = Content { text: text.to_owned(), json: true };
        paths.content(&mut content);
        assert!(content.text.contains(&hashed_path("a.rs")), "{content:?}");
        assert!(content.text.contains(&hashed_path("b.rs")), "{content:?}");
        assert!(!content.text.contains("a.rs") && !content.text.contains("src/a"), "{content:?}");
        assert!(serde_json::from_str::<Value>(&content.text).is_ok());
    }

    #[test]
    fn any_text_is_survived_and_takes_linear_time() {
        let hostile = ["/home/", "C:\\Users\\", "~", "\\\\", "/", "é/", "a/b", "\\n/", "home-anna"];
        for policy in [PathPolicy::Relative, PathPolicy::Off, PathPolicy::Hash] {
            for text in hostile {
                let _shown = shown(policy, &text.repeat(20_000));
            }
        }
    }
}
