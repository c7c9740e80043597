//! `hookspan config`: check, show, example.

use std::process::ExitCode;

use super::{Global, output};

/// Check, show or write an example of the configuration
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check the configuration file
    #[command(
        after_help = "Examples:\n  hookspan config check\n  hookspan config check --config ./config.toml"
    )]
    Check,
    /// Print what holds: defaults, file and environment together
    #[command(after_help = "Examples:\n  hookspan config show\n  hookspan config show --json")]
    Show {
        /// Print JSON instead of TOML
        #[arg(long)]
        json: bool,
    },
    /// Print an example with every key, its meaning and its default
    #[command(after_help = "Examples:\n  hookspan config example > ~/.config/hookspan/config.toml")]
    Example,
}

/// Runs the command.
///
/// # Errors
/// The configuration is not valid.
pub fn run(_global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Check | Command::Show { .. } | Command::Example => {
            Err(output::not_available("config"))
        }
    }
}
