//! `hookspan up`: from nothing to a dashboard.

use std::process::ExitCode;

use super::{Global, install, output, serve};

/// Install the hooks (after asking), start collector and dashboard, print the address
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan up\n  hookspan up --events minimal\n  hookspan up --yes --listen 127.0.0.1:8080"
)]
pub struct Args {
    #[command(flatten)]
    install: install::Options,
    /// Change hooks.json without asking
    #[arg(long, short = 'y')]
    yes: bool,
    #[command(flatten)]
    serve: serve::Options,
}

/// Runs the command.
///
/// # Errors
/// The hooks cannot be installed, or the collector cannot start.
pub fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let _ = (args.install, args.yes);
    output::note("hooks are not installed by this build");
    serve::run(global, serve::Args { options: args.serve })
}
