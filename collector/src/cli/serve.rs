//! `hookspan serve`: collector and dashboard in the foreground.

use std::net::SocketAddr;
use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

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
pub fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let mut config = global.config()?;
    let Options { listen, no_token, allow_host } = args.options;
    config.dashboard.listen = listen.unwrap_or(config.dashboard.listen);
    config.dashboard.token &= !no_token;
    config.dashboard.allow_hosts.extend(allow_host);
    log(global);
    // The first line is for people and for scripts: the address, signed in.
    crate::serve::run(&global.state, &config, &global.env, |url| {
        output::print(&format!("{url}\n"))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Sends the log to standard error, at the level of `HOOKSPAN_LOG`.
fn log(global: &Global) {
    let filter = global.env.var("HOOKSPAN_LOG").unwrap_or("warn,hookspan=info");
    let filter = EnvFilter::builder().parse_lossy(filter);
    // A second subscriber is refused, and then the first one serves.
    let _set = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
}
