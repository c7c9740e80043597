//! `hookspan import`: recorded hooks from files, by the same path as live ones.

use std::path::PathBuf;
use std::process::ExitCode;

use super::{Global, output};

/// Read recorded hooks (JSON Lines) into the store
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan import hooks.jsonl\n  cat hooks.jsonl | hookspan import -\n  hookspan import --json *.jsonl"
)]
pub struct Args {
    /// Files to read; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Print the counts as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// A file cannot be read, or the store cannot be written.
pub fn run(_global: &Global, _args: Args) -> anyhow::Result<ExitCode> {
    Err(output::not_available("import"))
}
