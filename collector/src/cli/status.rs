//! `hookspan status`: is it running, and is anything behind or lost.

use std::process::ExitCode;

use super::{Global, output};

/// Show whether the collector runs, how far behind it is, what was lost, and the dashboard's address
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  hookspan status\n  hookspan status --json")]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// The state directory or the database cannot be read.
pub fn run(_global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let _ = args.json;
    Err(output::not_available("status"))
}
