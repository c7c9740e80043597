//! Parses the command line that `install` writes. It is strict: any other text belongs to somebody else.

use std::path::{Path, PathBuf};

use super::entry::{self, Entry};

/// The parts of a command line in exactly the form that [`Entry`] writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Whether it begins with `exec`.
    pub exec: bool,
    /// The hook program.
    pub program: PathBuf,
    /// The state directory, if the line names one.
    pub dir: Option<PathBuf>,
    /// The event, which is the last argument.
    pub event: String,
}

impl Line {
    /// Parses `command`. Returns `None` unless [`Entry`] would write the same text from the parts. So the text means
    /// nothing to a shell but these words.
    #[must_use]
    pub(crate) fn read(command: &str) -> Option<Self> {
        let words = entry::words(command);
        let (exec, rest) = match words.as_slice() {
            [first, rest @ ..] if first == "exec" => (true, rest),
            all => (false, all),
        };
        let (program, dir, event) = match rest {
            [program, event] => (program, None, event),
            [program, flag, dir, event] if flag == "--dir" => (program, Some(dir), event),
            _ => return None,
        };
        let line = Self {
            exec,
            program: program.into(),
            dir: dir.map(PathBuf::from),
            event: event.to_owned(),
        };
        let plain = event.chars().all(|c| c.is_ascii_alphanumeric()) && !event.is_empty();
        let ours = plain && line.program.is_absolute() && entry::is_ours(command);
        (ours && line.write()? == command).then_some(line)
    }

    /// The same command line for another state directory.
    #[must_use]
    pub(crate) fn with_dir(&self, dir: &Path) -> Self {
        Self { dir: Some(dir.to_path_buf()), ..self.clone() }
    }

    /// The command line made of these parts, quoted for a shell. `None` if a path cannot be used in a command line.
    #[must_use]
    pub(crate) fn write(&self) -> Option<String> {
        let entry = Entry::new(&self.program, self.dir.as_deref(), self.exec).ok()?;
        Some(entry.command(&self.event))
    }

    /// The arguments of the program.
    #[must_use]
    pub(crate) fn arguments(&self) -> Vec<&std::ffi::OsStr> {
        let dir = self.dir.iter().flat_map(|dir| ["--dir".as_ref(), dir.as_os_str()]);
        dir.chain([self.event.as_ref()]).collect()
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn what_install_writes_reads_back() {
        for (program, dir) in [
            ("/s/hookspan-shim", None),
            ("/s/hookspan-shim", Some("/d")),
            ("/a b/hookspan-shim", Some("/it's d")),
            ("/$(x)/hookspan-shim", None),
        ] {
            for exec in [true, false] {
                let entry = Entry::new(Path::new(program), dir.map(Path::new), exec).unwrap();
                let line = Line::read(&entry.command("stop")).unwrap();
                let expected = Line {
                    exec,
                    program: program.into(),
                    dir: dir.map(PathBuf::from),
                    event: "stop".into(),
                };
                assert_eq!(line, expected);
            }
        }
    }

    #[test]
    fn every_other_text_is_refused() {
        for command in [
            ".cursor/hookspan-shim ; id > /tmp/x",
            "/s/hookspan-shim stop; id",
            "/s/hookspan-shim stop && id",
            "/s/hookspan-shim $(id)",
            "/s/hookspan-shim `id`",
            "/s/hookspan-shim \"$(id)\"",
            "/s/hookspan-shim stop > /tmp/x",
            "/s/hookspan-shim --dir $HOME stop",
            "/s/hookspan-shim --dir '/d' stop",
            "/s/hookspan-shim  stop",
            "/s/hookspan-shim stop ",
            "/s/hookspan-shim stop\nid",
            "/s/hookspan-shim",
            "/s/hookspan-shim ''",
            "hookspan-shim stop",
            "./hookspan-shim stop",
            "~/bin/hookspan-shim stop",
            "/s/$(id)/hookspan-shim stop",
            "HOOKSPAN_DIR=/d /s/hookspan-shim stop",
            "sh -c 'exec /s/hookspan-shim stop'",
            "exec exec /s/hookspan-shim stop",
            "/s/other stop",
            r"C:\s\hookspan-shim.exe stop",
            "",
        ] {
            assert_eq!(Line::read(command), None, "{command}");
        }
    }
}
