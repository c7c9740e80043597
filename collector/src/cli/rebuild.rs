//! `hookspan rebuild`: everything derived, again, from the raw log.

use std::process::ExitCode;

use super::{Global, output};

/// Derive sessions and spans again from the raw log; the collector must not run
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  hookspan rebuild\n  hookspan rebuild --json")]
pub struct Args {
    /// Print the counts as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// A collector runs, or the store cannot be written.
pub fn run(_global: &Global, _args: Args) -> anyhow::Result<ExitCode> {
    Err(output::not_available("rebuild"))
}
