//! `hookspan install`: the hook program and its entries in hooks.json.

use std::process::ExitCode;

use super::{Global, output};

/// Put the hook program in place and add its entries to Cursor's hooks.json
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan install --dry-run\n  hookspan install --events all\n  hookspan install --scope project --yes\n  hookspan install --service"
)]
pub struct Args {
    #[command(flatten)]
    options: Options,
    /// Show the change and make none
    #[arg(long)]
    dry_run: bool,
    /// Change the files without asking
    #[arg(long, short = 'y')]
    yes: bool,
    /// Also start the collector at login: a systemd user unit on Linux, a launchd agent on macOS
    #[arg(long)]
    service: bool,
}

/// What to install, shared by `install` and `up`.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Options {
    /// Whose hooks.json: ~/.cursor, this project's .cursor, or the machine's
    #[arg(long, value_enum, default_value_t = Scope::User)]
    pub scope: Scope,
    /// Which events to record
    #[arg(long, value_enum, default_value_t = Events::Standard)]
    pub events: Events,
    /// Write the command without `exec`, for a Cursor that starts hooks without a shell
    #[arg(long)]
    pub no_exec: bool,
}

/// `--scope`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scope {
    /// ~/.cursor/hooks.json: every project of yours
    User,
    /// .cursor/hooks.json of the project around the working folder
    Project,
    /// The machine's hooks.json, for all its users
    Enterprise,
}

/// `--events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Events {
    /// Only hooks that cannot block anything
    Minimal,
    /// And the ones that show when things begin
    Standard,
    /// And the specific before* events and Tab
    All,
}

/// Runs the command.
///
/// # Errors
/// A file cannot be read or written, or hooks.json is broken.
pub fn run(_global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let _ = (args.options, args.dry_run, args.yes, args.service);
    Err(output::not_available("install"))
}
