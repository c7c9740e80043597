//! Output of the commands: standard output, errors, colours, questions.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

use crate::audit::AuditError;
use crate::config::{Environment, Misuse};
use crate::store::open;
use crate::text::escaped_json;

/// Writes `text` to standard output. A closed pipe (`| head`) is not an error.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes `value` as indented JSON and a newline. On a terminal, hidden characters are written as escapes.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(value)? + "\n";
    print(&if io::stdout().is_terminal() { escaped_json(&json) } else { json.into() })
}

/// Writes a line to standard error: progress and advice, never data. Errors are ignored, because no channel is left to report them.
pub(crate) fn note(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}

/// Tells the user if an action is missing from the audit log. The action itself was done.
pub(crate) fn audited(kept: Result<(), AuditError>) {
    if let Err(error) = kept {
        note(&format!("not in the audit log: {error}"));
    }
}

/// Prints an error with its causes. Returns the exit code. `fitted` completes the commands in its advice.
#[must_use]
pub(crate) fn failure(error: &anyhow::Error, fitted: impl Fn(&str) -> String) -> ExitCode {
    note(&fitted(&format!("error: {}", described(error))));
    if open::is_suspected_below(error) {
        note(&fitted(
            "hookspan.db is damaged or cannot be read. The collector (`hookspan serve`) finds out which: it moves a damaged database \
             aside and saves what can be read, and it waits for one that cannot be read. Meanwhile hooks are still kept",
        ));
    }
    ExitCode::from(if error.chain().any(|cause| cause.is::<Misuse>()) { 2 } else { 1 })
}

/// An error and its causes. A cause is left out if the text before it already ends with the same words.
fn described(error: &anyhow::Error) -> String {
    open::causes(error).fold(String::new(), |told, cause| match cause {
        cause if told.is_empty() => cause,
        cause if told.contains(&cause) => told,
        cause => format!("{told}: {cause}"),
    })
}

/// Whether a question can be asked: standard input and standard error are a terminal.
#[must_use]
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether standard output is a terminal. Output to a terminal is read by a person and is not kept in a log.
#[must_use]
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Asks on standard error; only `y` and `yes` count as consent.
///
/// # Errors
/// Standard input cannot be read.
pub(crate) fn ask(question: &str) -> anyhow::Result<bool> {
    drop(write!(io::stderr().lock(), "{question} [y/N] "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Asks for a line on standard error; an empty answer is `default`.
///
/// # Errors
/// Standard input cannot be read.
pub(crate) fn ask_for(question: &str, default: &str) -> anyhow::Result<String> {
    let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    drop(write!(io::stderr().lock(), "{question}{shown}: "));
    let mut answer = String::new();
    if io::stdin().lock().read_line(&mut answer)? == 0 {
        anyhow::bail!("standard input ended before the answer");
    }
    let answer = answer.trim();
    Ok(if answer.is_empty() { default.to_owned() } else { answer.to_owned() })
}

/// Width of standard output in columns: the terminal's, or 80 without a terminal.
#[must_use]
pub(crate) fn columns() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0).max(40))
}

/// Height of standard output in rows: the terminal's, or 24 without a terminal.
#[must_use]
pub(crate) fn rows() -> usize {
    terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0).max(3))
}

/// Colours, or none: `NO_COLOR`, `TERM=dumb` and anything that is not a terminal turn them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// For standard output.
    #[must_use]
    pub(crate) fn stdout(env: &Environment) -> Self {
        Self { on: Self::wanted(env) && io::stdout().is_terminal() }
    }

    /// For standard error.
    #[must_use]
    pub(crate) fn stderr(env: &Environment) -> Self {
        Self { on: Self::wanted(env) && io::stderr().is_terminal() }
    }

    /// No colours.
    #[cfg(test)]
    pub(crate) const fn plain() -> Self {
        Self { on: false }
    }

    fn wanted(env: &Environment) -> bool {
        env.var("NO_COLOR").is_none() && env.var("TERM") != Some("dumb")
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Headings.
    #[must_use]
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// What matters less.
    #[must_use]
    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Failures, and removed lines.
    #[must_use]
    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Success, and added lines.
    #[must_use]
    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// What deserves a look.
    #[must_use]
    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// Names of things.
    #[must_use]
    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }
}
