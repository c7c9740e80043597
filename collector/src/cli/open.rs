//! `hookspan open`: the dashboard in the browser, signed in.

use std::process::ExitCode;

use super::{Global, output};

/// Open the dashboard in the browser, signed in
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  hookspan open\n  hookspan open --print")]
pub struct Args {
    /// Print the address instead of starting a browser
    #[arg(long)]
    print: bool,
}

/// Runs the command.
///
/// # Errors
/// No collector runs, or no browser can be started.
pub fn run(_global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let _ = args.print;
    Err(output::not_available("open"))
}
