//! Completes the commands in messages, so that they work when copied. A command gets `--dir` if it would not find the
//! state directory without it.

use clap::CommandFactory;

use super::{Cli, Global};

/// The text with `--dir` in each `hookspan COMMAND`, unless the command finds the state directory without it.
#[must_use]
pub(super) fn fitted(global: &Global, text: &str) -> String {
    let prefix = global.command("");
    if prefix == "hookspan " {
        return text.to_owned();
    }
    let cli = Cli::command();
    let names: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    let mut parts = text.split("hookspan ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let word = part.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
        // Characters directly before it make another word: `my-hookspan up`, `/opt/hookspan up`.
        let begins = !out.ends_with(|c: char| c.is_alphanumeric() || "-_/".contains(c));
        out.push_str(if begins && names.contains(&word) { &prefix } else { "hookspan " });
        out.push_str(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::Environment;

    #[track_caller]
    fn check(flag: Option<&str>, text: &str, expected: &str) {
        let env = Environment::of(&[("HOME", "/home/u")], "/w");
        let global = Global::new(env, flag.map(PathBuf::from), None).unwrap();
        assert_eq!(fitted(&global, text), expected);
    }

    #[test]
    fn each_command_in_an_advice_names_the_directory() {
        check(
            Some("/s p"),
            "start it with `hookspan up`, or hookspan serve.",
            "start it with `hookspan --dir '/s p' up`, or hookspan --dir '/s p' serve.",
        );
    }

    #[test]
    fn an_advice_stays_where_the_directory_is_found_without_a_flag() {
        check(None, "start it with `hookspan up`", "start it with `hookspan up`");
    }

    #[test]
    fn what_is_no_command_stays() {
        for text in [
            "a newer hookspan may read it",
            "`hookspan --dir /t doctor` looks there",
            "/opt/hookspan up",
            "hookspan upwards",
            "update hookspan ",
        ] {
            check(Some("/s"), text, text);
        }
    }
}
