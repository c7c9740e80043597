//! The command line.
//!
//! One file per command, with `Args` for clap and `run`. Exit codes: 0 for success, 1 for failure (or if `doctor` found
//! something), 2 if the command line or the configuration is wrong.

pub(crate) mod up;
pub(crate) mod serve;
pub(crate) mod open;
pub(crate) mod token;
pub(crate) mod audit;
pub(crate) mod install;
pub(crate) mod uninstall;
pub(crate) mod doctor;
pub(crate) mod status;
pub(crate) mod sessions;
pub(crate) mod show;
pub(crate) mod mark;
pub(crate) mod stats;
pub(crate) mod digest;
pub(crate) mod statusline;
pub(crate) mod watch;
pub(crate) mod tail;
pub(crate) mod demo;
pub(crate) mod mcp;
pub(crate) mod import;
pub(crate) mod export;
pub(crate) mod rebuild;
pub(crate) mod backup;
pub(crate) mod prune;
pub(crate) mod config;
pub(crate) mod destinations;
mod advice;
mod blank;
mod calendar;
mod consent;
mod cost;
mod narrow;
mod notify;
mod purge;
pub(crate) mod output;
pub(crate) mod service;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{Environment, Global};

/// Traces of what Cursor's agent does: sessions, turns, tool calls and subagents as OpenTelemetry spans.
#[derive(Debug, Parser)]
#[command(
    name = "hookspan",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Start here:\n  hookspan up            install the hooks, start the collector, print the dashboard's address\n  \
                  hookspan doctor        check every link of the chain and say what to do\n  \
                  hookspan uninstall     undo it all"
)]
pub(crate) struct Cli {
    /// State directory: journal, database, hook program
    /// [default: $HOOKSPAN_DIR, else $XDG_STATE_HOME/hookspan, else ~/.local/state/hookspan]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    dir: Option<PathBuf>,
    /// Configuration file [default: $XDG_CONFIG_HOME/hookspan/config.toml]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Args),
    Serve(serve::Args),
    Open(open::Args),
    Token(token::Args),
    Audit(audit::Args),
    Install(install::Args),
    Uninstall(uninstall::Args),
    Doctor(doctor::Args),
    Status(status::Args),
    Sessions(sessions::Args),
    Show(show::Args),
    Mark(mark::Args),
    Tail(tail::Args),
    Stats(stats::Args),
    Digest(digest::Args),
    Watch(watch::Args),
    Statusline(statusline::Args),
    Notify(notify::Args),
    Demo(demo::Args),
    Mcp(mcp::Args),
    Import(import::Args),
    Export(export::Args),
    Rebuild(rebuild::Args),
    Backup(backup::Args),
    Prune(prune::Args),
    Config(config::Args),
    Destinations(destinations::Args),
}

/// Runs the command line.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let global = match Global::new(Environment::read(), cli.dir, cli.config) {
        Ok(global) => global,
        Err(error) => return output::failure(&error, str::to_owned),
    };
    run(cli.command, &global)
        .unwrap_or_else(|error| output::failure(&error, |text| advice::fitted(&global, text)))
}

fn run(command: Command, global: &Global) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(args) => up::run(global, args),
        Command::Serve(args) => serve::run(global, args),
        Command::Open(args) => open::run(global, args),
        Command::Token(args) => token::run(global, args),
        Command::Audit(args) => audit::run(global, args),
        Command::Install(args) => install::run(global, args),
        Command::Uninstall(args) => uninstall::run(global, args),
        Command::Doctor(args) => doctor::run(global, args),
        Command::Status(args) => status::run(global, args),
        Command::Sessions(args) => sessions::run(global, args),
        Command::Show(args) => show::run(global, args),
        Command::Mark(args) => mark::run(global, args),
        Command::Tail(args) => tail::run(global, args),
        Command::Stats(args) => stats::run(global, args),
        Command::Digest(args) => digest::run(global, args),
        Command::Watch(args) => watch::run(global, args),
        Command::Statusline(args) => Ok(statusline::run(global, args)),
        Command::Notify(args) => notify::run(global, args),
        Command::Demo(args) => demo::run(global, args),
        Command::Mcp(args) => mcp::run(global, args),
        Command::Import(args) => import::run(global, args),
        Command::Export(args) => export::run(global, args),
        Command::Rebuild(args) => rebuild::run(global, args),
        Command::Backup(args) => backup::run(global, args),
        Command::Prune(args) => prune::run(global, args),
        Command::Config(args) => config::run(global, args),
        Command::Destinations(args) => destinations::run(global, args),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_and_a_description() {
        fn check(command: &clap::Command) {
            if command.has_subcommands() {
                command.get_subcommands().for_each(check);
                return;
            }
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} has no description");
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("hookspan ") && after.contains(name), "{name}: no example");
        }
        check(&Cli::command());
    }
}
