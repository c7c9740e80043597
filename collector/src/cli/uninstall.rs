//! `hookspan uninstall`: the exact inverse of `install`.

use std::process::ExitCode;

use super::install::Scope;
use super::{Global, output};

/// Take hookspan's entries out of hooks.json again and remove the hook program
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan uninstall --dry-run\n  hookspan uninstall\n  hookspan uninstall --purge"
)]
pub struct Args {
    /// Whose hooks.json
    #[arg(long, value_enum, default_value_t = Scope::User)]
    scope: Scope,
    /// Show the change and make none
    #[arg(long)]
    dry_run: bool,
    /// Change the files without asking
    #[arg(long, short = 'y')]
    yes: bool,
    /// Also delete the recorded data: journal, database, token
    #[arg(long)]
    purge: bool,
}

/// Runs the command.
///
/// # Errors
/// A file cannot be read or written, or hooks.json is broken.
pub fn run(_global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let _ = (args.scope, args.dry_run, args.yes, args.purge);
    Err(output::not_available("uninstall"))
}
