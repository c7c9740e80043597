//! Recognises hook commands that run the hook program, in any form.
//!
//! `install` writes one form: `[exec] /absolute/hookspan-shim [--dir DIR] EVENT`. People also write others: a variable in
//! front, `sh -c '…'`, `env`, a group as in Claude's settings, or an entry of another system that shares the file. If hookspan
//! recognised only its own form, it would add a second entry, and every event would be recorded twice.

/// Maximum depth to which `sh -c "sh -c …"` is followed.
const MAX_DEPTH: usize = 4;

/// Programs that run another program named in their arguments.
const RUNNERS: [&str; 12] = [
    "env", "command", "nohup", "nice", "ionice", "timeout", "setsid", "stdbuf", "time", "sudo",
    "doas", "start",
];

/// Programs that run a script given as one argument.
const SHELLS: [&str; 12] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "ash",
    "fish",
    "busybox",
    "powershell",
    "pwsh",
    "cmd",
    "wsl",
];

/// Programs that only print or inspect their arguments.
const READERS: [&str; 12] =
    ["echo", "printf", "cat", "ls", "tee", "test", "[", "true", "rm", "cp", "mv", "stat"];

/// An operating system, as far as paths tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux, WSL included.
    Linux,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
}

impl System {
    /// The system that this program runs on.
    pub const HERE: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::Mac
    } else {
        Self::Linux
    };

    /// The system's name for a person.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Mac => "macOS",
            Self::Windows => "Windows",
        }
    }

    /// The system that a program's path belongs to; `None` if it may be this one.
    fn other(program: &str, here: Self) -> Option<Self> {
        let found = if is_windows_path(program) {
            Self::Windows
        } else if program.starts_with("/Users/")
            && program.contains("/Library/Application Support/")
        {
            Self::Mac
        } else if program.starts_with("/home/")
            || (here == Self::Windows && program.starts_with(['/', '~']))
        {
            Self::Linux
        } else {
            return None;
        };
        (found != here).then_some(found)
    }
}

/// How a command runs the hook program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Directly, or after `exec` or `&`: the form that `install` writes and keeps up to date.
    Plain,
    /// Through something else: a variable, a shell, a runner, a pipe. A person must have written it on purpose.
    Wrapped,
    /// On another system. This system can neither run nor repair the command.
    Elsewhere(System),
}

/// A command that runs the hook program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// The hook program, as it is named.
    pub program: String,
    /// The state directory that the command names by `--dir` or `HOOKSPAN_DIR=`.
    pub dir: Option<String>,
    /// The event that the command names.
    pub event: Option<String>,
    /// How it runs.
    pub form: Form,
}

/// Parses a command of hooks.json, if it runs the hook program.
#[must_use]
pub(crate) fn recognise(command: &str) -> Option<Recognised> {
    recognise_on(command, System::HERE)
}

fn recognise_on(command: &str, here: System) -> Option<Recognised> {
    let mut found = script(command, MAX_DEPTH)?;
    let started = simple_commands(command).into_iter().filter_map(|words| words.into_iter().next());
    let by_windows = here != System::Windows && started.into_iter().any(|p| is_windows_path(&p));
    let by_windows = by_windows.then_some(System::Windows);
    if let Some(system) = System::other(&found.program, here).or(by_windows) {
        found.form = Form::Elsewhere(system);
    }
    Some(found)
}

/// The first simple command of a script that runs the hook program.
fn script(text: &str, depth: usize) -> Option<Recognised> {
    let commands = simple_commands(text);
    let alone = commands.len() == 1;
    let mut found = commands.iter().find_map(|words| simple(words, depth))?;
    if !alone {
        found.form = Form::Wrapped;
    }
    Some(found)
}

/// A simple command: assignments, then a program with arguments.
fn simple(words: &[String], depth: usize) -> Option<Recognised> {
    let assigned = words.iter().take_while(|word| is_assignment(word)).count();
    let dir = words.iter().take(assigned).find_map(|word| word.strip_prefix("HOOKSPAN_DIR="));
    let rest = words.get(assigned..).unwrap_or_default();
    let execs = rest.iter().take_while(|word| *word == "exec").count();
    let rest = rest.get(execs..).unwrap_or_default();
    let mut found = program(rest, depth)?;
    if assigned > 0 {
        found.form = Form::Wrapped;
        found.dir = found.dir.or_else(|| dir.map(str::to_owned));
    }
    Some(found)
}

fn program(words: &[String], depth: usize) -> Option<Recognised> {
    let (first, arguments) = words.split_first()?;
    let name = file_name(first);
    if is_shim(&name) {
        return Some(direct(first, arguments));
    }
    let depth = depth.checked_sub(1)?;
    let found = if RUNNERS.contains(&name.as_str()) {
        let options = arguments.iter().take_while(|word| word.starts_with('-')).count();
        simple(arguments.get(options..).unwrap_or_default(), depth)
    } else if SHELLS.contains(&name.as_str()) {
        named(arguments).or_else(|| arguments.iter().find_map(|word| script(word, depth)))
    } else if READERS.contains(&name.as_str()) {
        None
    } else {
        named(arguments)
    };
    found.map(|found| Recognised { form: Form::Wrapped, ..found })
}

/// Finds the hook program among the arguments of an unknown program, if an event follows it.
fn named(arguments: &[String]) -> Option<Recognised> {
    let at = arguments.iter().position(|word| is_shim(&file_name(word)))?;
    let found = direct(arguments.get(at)?, arguments.get(at + 1..).unwrap_or_default());
    found.event.is_some().then_some(found)
}

fn direct(program: &str, arguments: &[String]) -> Recognised {
    let at = arguments.iter().position(|word| word == "--dir");
    let dir = at.and_then(|at| arguments.get(at + 1)).cloned();
    let is_event = |word: &&String| {
        !word.is_empty()
            && word.chars().all(|c| c.is_ascii_alphabetic())
            && Some(*word) != dir.as_ref()
    };
    Recognised {
        program: program.to_owned(),
        event: arguments.iter().find(is_event).cloned(),
        dir,
        form: Form::Plain,
    }
}

fn is_shim(name: &str) -> bool {
    name == "hookspan-shim"
}

/// The last part of a path in lower case, without `.exe`.
fn file_name(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    name.strip_suffix(".exe").map(str::to_owned).unwrap_or(name)
}

fn is_windows_path(program: &str) -> bool {
    let mut bytes = program.bytes();
    let drive = bytes.next().is_some_and(|b| b.is_ascii_alphabetic()) && bytes.next() == Some(b':');
    let separated = program.contains('\\') && !program.contains('/');
    drive || separated || program.to_ascii_lowercase().ends_with(".exe")
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// The words of a command line, with quotes removed.
#[must_use]
pub(crate) fn words(command: &str) -> Vec<String> {
    simple_commands(command).concat()
}

/// The simple commands of a script as words, with quotes removed. It understands what people write into hooks.json;
/// substitutions and here-documents stay as they are.
fn simple_commands(text: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut previous = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some('"'), '\\') if matches!(next, Some('"' | '$' | '`')) => {
                word.get_or_insert_default().extend(chars.next());
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            // A backslash before a letter or digit separates the folders of a Windows path.
            (None, '\\') if next.is_some_and(|next| next != '\\' && !next.is_alphanumeric()) => {
                word.get_or_insert_default().extend(chars.next());
            }
            // `2>&1` is one word.
            (None, ';' | '|' | '&' | '\n' | '(' | ')') if !matches!(previous, '>' | '<') => {
                end_word(&mut commands, &mut word);
                commands.push(Vec::new());
            }
            (None, _) if c.is_whitespace() => end_word(&mut commands, &mut word),
            _ => word.get_or_insert_default().push(c),
        }
        previous = c;
    }
    end_word(&mut commands, &mut word);
    commands.retain(|words| !words.is_empty());
    commands
}

fn end_word(commands: &mut [Vec<String>], word: &mut Option<String>) {
    if let (Some(word), Some(command)) = (word.take(), commands.last_mut()) {
        command.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, form: Form, program: &str, dir: Option<&str>, event: Option<&str>) {
        let found = recognise_on(command, System::Linux).unwrap_or_else(|| panic!("{command}"));
        let expected = Recognised {
            program: program.to_owned(),
            dir: dir.map(str::to_owned),
            event: event.map(str::to_owned),
            form,
        };
        assert_eq!(found, expected, "{command}");
    }

    #[test]
    fn the_form_of_install_is_plain() {
        let stop = Some("stop");
        check("/x/hookspan-shim stop", Form::Plain, "/x/hookspan-shim", None, stop);
        check("exec /x/hookspan-shim stop", Form::Plain, "/x/hookspan-shim", None, stop);
        check(
            "exec '/it'\\''s x/hookspan-shim' --dir \"/d e\" stop",
            Form::Plain,
            "/it's x/hookspan-shim",
            Some("/d e"),
            stop,
        );
        check("hookspan-shim stop 2>&1", Form::Plain, "hookspan-shim", None, stop);
        check("hookspan-shim", Form::Plain, "hookspan-shim", None, None);
    }

    #[test]
    fn a_wrapper_is_seen_through() {
        let shim = "/x/hookspan-shim";
        let stop = Some("stop");
        for (command, dir) in [
            ("HOOKSPAN_DIR=/d /x/hookspan-shim stop", Some("/d")),
            ("HOOKSPAN_DIR='/d' exec /x/hookspan-shim stop", Some("/d")),
            ("A=1 HOOKSPAN_DIR=/d exec /x/hookspan-shim --dir /e stop", Some("/e")),
            ("env HOOKSPAN_DIR=/d /x/hookspan-shim stop", Some("/d")),
            ("/usr/bin/env -i HOME=/h /x/hookspan-shim stop", None),
            ("sh -c '/x/hookspan-shim stop'", None),
            ("/bin/bash -lc \"exec /x/hookspan-shim stop\"", None),
            ("bash -lc \"HOOKSPAN_DIR=\\\"/d\\\" /x/hookspan-shim stop\"", Some("/d")),
            ("sh -c \"sh -c '/x/hookspan-shim stop'\"", None),
            ("timeout 5 /x/hookspan-shim stop", None),
            ("nice -n 10 timeout -k 1 5s /x/hookspan-shim stop", None),
            ("tee -a /tmp/log | /x/hookspan-shim stop", None),
            ("/x/hookspan-shim stop || true", None),
            ("/x/hookspan-shim stop; echo done", None),
            ("cd /tmp && /x/hookspan-shim stop", None),
            ("/home/u/wrap.sh /x/hookspan-shim stop", None),
            ("bash /x/hookspan-shim stop", None),
            ("sudo -u kim env HOOKSPAN_DIR=/d /x/hookspan-shim stop", None),
            ("env -i HOOKSPAN_DIR=/d /x/hookspan-shim stop", Some("/d")),
        ] {
            check(command, Form::Wrapped, shim, dir, stop);
        }
    }

    #[test]
    fn what_only_mentions_the_program_is_somebody_elses() {
        for command in [
            "",
            "exec",
            "/x/hookspan-shim-wrapper stop",
            "/x/my-hookspan-shim stop",
            "tee /tmp/hookspan-shim",
            "/hookspan-shim/run stop",
            "echo hookspan-shim",
            "echo /x/hookspan-shim stop",
            "A=/x/hookspan-shim ./mine.sh stop",
            "./notify.sh --about hookspan-shim",
        ] {
            assert_eq!(recognise_on(command, System::Linux), None, "{command}");
        }
    }

    #[test]
    fn an_entry_of_another_system_is_told_by_its_path() {
        let windows = r"C:\Users\kim\AppData\Local\hookspan\bin\hookspan-shim.exe";
        let stop = Some("stop");
        let elsewhere = Form::Elsewhere(System::Windows);
        check(&format!("{windows} stop"), elsewhere, windows, None, stop);
        check(&format!("& '{windows}' stop"), elsewhere, windows, None, stop);
        let mounted = "/mnt/c/Users/kim/hookspan/hookspan-shim.exe";
        check(&format!("{mounted} stop"), elsewhere, mounted, None, stop);
        check("wsl.exe -e /h/hookspan-shim stop", elsewhere, "/h/hookspan-shim", None, stop);
        check(r"/a\(b/hookspan-shim stop", Form::Plain, "/a(b/hookspan-shim", None, stop);
        let mac = "/Users/kim/Library/Application Support/hookspan/bin/hookspan-shim";
        check(&format!("exec '{mac}' stop"), Form::Elsewhere(System::Mac), mac, None, stop);

        let on_windows = |command: &str| recognise_on(command, System::Windows).unwrap().form;
        assert_eq!(on_windows(&format!("{windows} stop")), Form::Plain);
        assert_eq!(on_windows(&format!("& '{windows}' stop")), Form::Plain);
        let linux = "exec /home/kim/.local/state/hookspan/bin/hookspan-shim stop";
        assert_eq!(on_windows(linux), Form::Elsewhere(System::Linux));
        assert_eq!(recognise_on(linux, System::Mac).unwrap().form, Form::Elsewhere(System::Linux));
    }

    #[test]
    fn nesting_without_end_is_given_up() {
        let mut command = "/x/hookspan-shim stop".to_owned();
        for _ in 0..64 {
            command = format!("env {command}");
        }
        assert_eq!(recognise(&command), None);
        let many = "nice ".repeat(20_000);
        assert_eq!(recognise(&many), None);
    }
}
