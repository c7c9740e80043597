//! One of our entries: `{ "command": "exec /path/hookspan-shim EVENT", "timeout": 10 }`.

use std::path::Path;

pub(crate) use super::recognise::words;
use super::recognise::{Form, recognise};

/// Timeout in seconds: much longer than the shim's own deadline, and short enough for a person who waits.
pub(crate) const TIMEOUT_SECONDS: u64 = 10;

/// File name of the hook program. Our entries are recognised by it, no matter in which folder the program is.
pub(crate) const PROGRAM: &str = if cfg!(windows) { "hookspan-shim.exe" } else { "hookspan-shim" };

/// Why a path cannot be used in a hook command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitPath {
    /// The path is not Unicode, which JSON requires.
    #[error("{0}: the path is not Unicode")]
    NotUnicode(String),
    /// The path contains a line break or another control character.
    #[error(
        "{0}: a hook command cannot hold a line break or another control character; \
         choose another state directory with --dir DIR"
    )]
    Control(String),
    /// The path contains a character that has a meaning in the Windows shell.
    #[error("{0}: choose a state directory without spaces and special characters, with --dir DIR")]
    Sign(String),
}

/// The common parts of an installation's commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    prefix: String,
}

impl Entry {
    /// Commands that run `program`. They contain `--dir` if hooks would not find the state directory by themselves.
    ///
    /// `exec` replaces the shell that Cursor starts. It is a word of the shell, so `with_exec` is for POSIX systems on
    /// which hooks are started through a shell.
    ///
    /// # Errors
    ///
    /// [`UnfitPath`] if one of the paths cannot be used in a hook command.
    pub fn new(program: &Path, dir: Option<&Path>, with_exec: bool) -> Result<Self, UnfitPath> {
        let mut prefix = if with_exec { "exec ".to_owned() } else { String::new() };
        prefix.push_str(&word(program)?);
        if let Some(dir) = dir {
            prefix.push_str(" --dir ");
            prefix.push_str(&word(dir)?);
        }
        Ok(Self { prefix })
    }

    /// The command line for `event`.
    #[must_use]
    pub fn command(&self, event: &str) -> String {
        format!("{} {event}", self.prefix)
    }

    /// The entry for `event`, as text for hooks.json.
    #[must_use]
    pub fn json(&self, event: &str) -> String {
        let command = serde_json::Value::String(self.command(event));
        format!(r#"{{ "command": {command}, "timeout": {TIMEOUT_SECONDS} }}"#)
    }
}

/// A path as one word of a command line. It is quoted only if necessary, because some hosts do not run a quoted
/// program.
fn word(path: &Path) -> Result<String, UnfitPath> {
    let text = path.to_str().ok_or_else(|| UnfitPath::NotUnicode(path.display().to_string()))?;
    if text.contains(char::is_control) {
        return Err(UnfitPath::Control(text.escape_debug().to_string()));
    }
    if cfg!(windows) {
        return match text.contains([' ', '&', '(', ')', '\'', '"', '%', '^', '`', '$', ';']) {
            true => Err(UnfitPath::Sign(text.to_owned())),
            false => Ok(text.to_owned()),
        };
    }
    let bare = |c: char| c.is_alphanumeric() || "/._-+@:,=%".contains(c);
    if !text.is_empty() && text.chars().all(bare) {
        return Ok(text.to_owned());
    }
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

/// Whether a command has the form that `install` writes: the hook program, at most after `exec`.
#[must_use]
pub(crate) fn is_ours(command: &str) -> bool {
    recognise(command).is_some_and(|found| found.form == Form::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_command_is_one_absolute_path_and_the_event() {
        #[track_caller]
        fn check(program: &str, dir: Option<&str>, with_exec: bool, expected: &str) {
            let entry = Entry::new(Path::new(program), dir.map(Path::new), with_exec).unwrap();
            assert_eq!(entry.command("stop"), expected);
            assert!(is_ours(&entry.command("stop")));
        }
        check("/s/hookspan-shim", None, true, "exec /s/hookspan-shim stop");
        check("/s/hookspan-shim", None, false, "/s/hookspan-shim stop");
        check("/s/hookspan-shim", Some("/d"), true, "exec /s/hookspan-shim --dir /d stop");
        check("/a b/hookspan-shim", None, true, "exec '/a b/hookspan-shim' stop");
        check("/it's/hookspan-shim", None, true, r"exec '/it'\''s/hookspan-shim' stop");
        check("/ü/hookspan-shim", None, true, "exec /ü/hookspan-shim stop");
        check("/$(x)/hookspan-shim", None, true, "exec '/$(x)/hookspan-shim' stop");
        assert!(Entry::new(Path::new("/a\nb/hookspan-shim"), None, true).is_err());
    }
}
