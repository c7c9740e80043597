//! Finds the program that a shell command starts. Returns no name if there is any doubt.
//!
//! The name leaves the machine as part of a span's name, so an argument or the value of an assignment must never be
//! taken for a program. The hook does not say which shell reads the command. Therefore the part before the name is read
//! only by rules on which sh, bash, zsh, fish, PowerShell and cmd.exe agree ([`lead`]). The part after the name cannot
//! change the name. It is read as bash reads it ([`rest`]), to learn whether the command starts only one program.

/// Whether a word may be shown as a program's name.
mod name;
/// What stands before the name.
mod lead;
/// What stands after the name.
mod rest;

use lead::Lead;

/// Commands that only prepare the shell for the next command. `exit` and `return` stand after `cd x ||`.
const SETUP: [&str; 17] = [
    ".",
    "Push-Location",
    "Set-Location",
    "cd",
    "chdir",
    "exit",
    "export",
    "popd",
    "pushd",
    "return",
    "set",
    "setlocal",
    "setopt",
    "shopt",
    "source",
    "umask",
    "unset",
];

/// Maximum number of nested programs that are followed, as in `sudo env nice make`.
const MAX_WRAPPERS: usize = 8;

/// Maximum number of words behind a program. A command with more words is not examined.
const MAX_WORDS: usize = 64;

/// A command up to its name.
#[derive(Clone, Copy)]
struct Head<'a> {
    /// `None` if the command consists of assignments only, or if its name must not be shown.
    name: Option<&'a str>,
    /// Whether the command only prepares the shell.
    setup: bool,
    /// Where its arguments begin.
    after: Lead<'a>,
}

/// The program of a command that starts one program, after commands such as `cd DIR &&` or `set -e;`.
pub(crate) fn executable(command: &str) -> Option<&str> {
    only(command)?.name
}

/// The program and the words after it, as written, up to a redirection. `None` if there are more than [`MAX_WORDS`].
pub(crate) fn program(command: &str) -> Option<(&str, Vec<&str>)> {
    let head = only(command).filter(|head| !head.setup)?;
    let mut lead = head.after;
    let mut words = Vec::new();
    loop {
        lead.skip_blanks();
        if lead.at_separator() || matches!(lead.rest(), [b'<' | b'>', ..]) {
            return Some((head.name?, words));
        }
        words.push(lead.word().filter(|_| words.len() < MAX_WORDS)?);
    }
}

/// The only program that a command starts. If the command starts no program, its last part that prepares the shell.
/// `None` if the command starts several programs.
fn only(command: &str) -> Option<Head<'_>> {
    let mut lead = Lead::new(command);
    let mut last = None;
    loop {
        lead.skip_empty();
        if lead.at_end() {
            return last;
        }
        let head = head(lead)?;
        if !head.setup {
            return Some(head).filter(|head| rest::is_last(head.after.rest()));
        }
        last = Some(head);
        lead = head.after;
        lead.skip_statement()?;
    }
}

/// Reads assignments, programs that start another program, and the program's name.
fn head(mut lead: Lead<'_>) -> Option<Head<'_>> {
    if let Some(after) = lead.power_shell_assignment() {
        return Some(Head { name: None, setup: true, after });
    }
    lead.skip_call();
    let mut head = simple(lead, true)?;
    for _ in 0..MAX_WRAPPERS {
        // The wrapper's own name is certain. If the program that the wrapper starts is in doubt, the wrapper's name is
        // the result.
        let Some(inner) = head.name.and_then(|name| wrapped(name, head.after)) else { break };
        head = inner;
    }
    Some(head)
}

/// Reads assignments and the name.
fn simple(mut lead: Lead<'_>, assignments: bool) -> Option<Head<'_>> {
    let mut assigned = false;
    loop {
        lead.skip_blanks();
        if assigned && lead.at_separator() {
            return Some(Head { name: None, setup: true, after: lead });
        }
        if !(assignments && lead.skip_assignment()?) {
            break;
        }
        assigned = true;
    }
    let word = lead.command_word()?;
    let base = word.rsplit(['/', '\\']).next()?;
    let setup = SETUP.contains(&base);
    if !setup && !name::is_plain(word, base) {
        return None;
    }
    Some(Head { name: Some(base).filter(|base| *base != "."), setup, after: lead })
}

/// The command that the program `name` starts, if all of the program's options are known.
fn wrapped<'a>(name: &str, mut lead: Lead<'a>) -> Option<Head<'a>> {
    // Options without a value, and options whose next word is the value.
    let (flags, valued): (&[&str], &[&str]) = match name {
        "env" => (&["-i", "-", "--ignore-environment"], &["-u", "--unset", "-C", "--chdir"]),
        "sudo" | "doas" => (&["-E", "-H", "-n", "-S", "-i", "-b"], &["-u", "-g", "-h", "-C"]),
        "nohup" | "setsid" | "builtin" | "noglob" => (&[], &[]),
        // bash takes any other option after `time` for a program.
        "time" => (&["-p"], &[]),
        "exec" => (&["-c", "-l"], &["-a"]),
        "command" => (&["-p"], &[]),
        "nice" => (&[], &["-n", "--adjustment"]),
        "ionice" => (&[], &["-c", "-n"]),
        "stdbuf" => (&["-oL", "-eL", "-o0", "-e0"], &["-o", "-e", "-i"]),
        "timeout" | "gtimeout" => (&["--foreground", "--preserve-status", "-v"], &["-k", "-s"]),
        _ => return None,
    };
    loop {
        lead.skip_blanks();
        if lead.rest().first() != Some(&b'-') {
            break;
        }
        let option = lead.word()?;
        if option == "--" {
            break;
        } else if valued.contains(&option) {
            lead.skip_blanks();
            lead.word()?;
        } else if !flags.contains(&option) {
            return None;
        }
    }
    if matches!(name, "timeout" | "gtimeout") {
        lead.skip_blanks();
        let of_time = |b: u8| b.is_ascii_digit() || b".smhd".contains(&b);
        lead.word().filter(|time| time.bytes().all(of_time))?;
    }
    simple(lead, matches!(name, "env" | "sudo" | "doas" | "time"))
        .filter(|head| head.name.is_some())
}

#[cfg(test)]
mod tests;
