//! `hookspan doctor`: every link of the chain, and what to do.

use std::process::ExitCode;

use super::{Global, output};

/// Check configuration, hooks, hook program, collector and destinations, and say what to do
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  hookspan doctor\n  hookspan doctor --json")]
pub struct Args {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command. Exit code 1 when something needs doing.
///
/// # Errors
/// The findings cannot be printed.
pub fn run(_global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let _ = args.json;
    Err(output::not_available("doctor"))
}
