//! `hookspan serve`: collector and dashboard in the foreground.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use super::{Global, output};
use crate::config::{Misuse, destination};
use crate::export::{Reread, metrics};
use crate::telemetry::{self, Telemetry};

/// How long the last of our own traces may take to leave.
const GOODBYE: Duration = Duration::from_millis(300);

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

/// Where to listen. `serve` and `up` share these flags, which override the configuration.
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
    let telemetry = telemetry::init(&global.env).map_err(|error| Misuse(format!("{error:#}")))?;
    // The first line is for people and for scripts: the address, signed in.
    let ended = crate::serve::run(&global.state, &config, &global.env, reread(global), |url| {
        metrics::observe(&global.state.database());
        output::print(&format!("{url}\n"))
    });
    shut_down(telemetry);
    ended?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a destination again, from the same file and environment.
fn reread(global: &Global) -> Reread {
    let global = global.clone();
    Reread::new(move |name| {
        let all = destination::all(&global.config().ok()?, &global.env).ok()?;
        all.into_iter().find(|one| one.name == name)
    })
}

/// Ends hookspan's own telemetry, without waiting long for a receiver that does not answer.
fn shut_down(telemetry: Telemetry) {
    let (done, ended) = crossbeam_channel::bounded(1);
    std::thread::spawn(move || {
        telemetry.shutdown();
        // Nobody may be waiting any more.
        let _sent = done.send(());
    });
    // Too late is as good as never.
    let _ended = ended.recv_timeout(GOODBYE);
}
