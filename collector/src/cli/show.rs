//! `hookspan show`: one session as a waterfall in the terminal.

use std::process::ExitCode;

use super::{Global, output};

/// Show one session: its turns, tool calls and subagents on a time line
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan show d95a19cf\n  hookspan show last\n  hookspan show last --json"
)]
pub struct Args {
    /// Session id, the beginning of one, or `last`
    #[arg(value_name = "ID")]
    id: String,
    /// Print the session with its turns and spans as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// There is no such session, or the database cannot be read.
pub fn run(_global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let _ = (args.id, args.json);
    Err(output::not_available("show"))
}
