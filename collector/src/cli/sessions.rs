//! `hookspan sessions`: what was recorded.

use std::process::ExitCode;

use super::{Global, output};

/// List recorded sessions, newest first
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan sessions\n  hookspan sessions --limit 5\n  hookspan sessions --json"
)]
pub struct Args {
    /// At most this many; 0 for all [default: 20, with --json all]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// The database cannot be read.
pub fn run(_global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let _ = (args.limit, args.json);
    Err(output::not_available("sessions"))
}
