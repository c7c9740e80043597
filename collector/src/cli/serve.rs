//! `hookspan serve`: collector and dashboard in the foreground.

use std::net::SocketAddr;
use std::process::ExitCode;

use super::{Global, output};

/// Run the collector and the dashboard in the foreground
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan serve\n  hookspan serve --listen 127.0.0.1:8080\n  hookspan serve --listen 0.0.0.0:4329 --allow-host build.lan:4329"
)]
pub struct Args {
    /// How to listen.
    #[command(flatten)]
    pub options: Options,
}

/// How to listen, shared by `serve` and `up`; each one beats the configuration.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct Options {
    /// Address and port of the dashboard [default: 127.0.0.1:4329]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Do not ask for the access token; on loopback only
    #[arg(long)]
    pub no_token: bool,
    /// A further NAME:PORT that a browser may use for the dashboard; repeatable
    #[arg(long, value_name = "NAME:PORT")]
    pub allow_host: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// The collector cannot start.
pub fn run(_global: &Global, _args: Args) -> anyhow::Result<ExitCode> {
    Err(output::not_available("serve"))
}
