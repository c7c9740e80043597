//! `hookspan serve`: runs collector and dashboard in the foreground.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;

use super::{Global, output};
use crate::config::listen::Place;
use crate::config::{Misuse, destination};
use crate::export::{Reread, metrics};
use crate::notify::Notifier;
use crate::serve::Started;
use crate::telemetry::{self, Telemetry};

/// Maximum time for sending the last of hookspan's own traces.
const GOODBYE: Duration = Duration::from_millis(300);

/// Run the collector and the dashboard in the foreground
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan serve\n  hookspan serve --listen 127.0.0.1:8080\n  hookspan serve --listen 127.0.0.1:4329 --listen unix:/run/user/1000/hookspan.sock\n  hookspan serve --allow-host build.lan:443"
)]
pub(crate) struct Args {
    /// How to listen.
    #[command(flatten)]
    pub options: Options,
}

/// Where to listen. `serve` and `up` share these flags, which override the configuration.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Address and port of the dashboard, or unix:PATH for a socket that only your account can use; repeatable
    /// [default: 127.0.0.1:4329]
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<Place>,
    /// Let every local account read without signing in; only for loopback addresses
    #[arg(long)]
    pub no_token: bool,
    /// Allow an address that other machines can reach, without TLS
    #[arg(long)]
    pub insecure: bool,
    /// A further NAME:PORT that a browser may use for the dashboard; repeatable
    #[arg(long, value_name = "NAME:PORT")]
    pub allow_host: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// The collector cannot start.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let mut config = global.config()?;
    let Options { listen, no_token, insecure, allow_host } = args.options;
    if !listen.is_empty() {
        config.dashboard.listen = listen;
    }
    config.dashboard.token &= !no_token;
    config.dashboard.insecure |= insecure;
    config.dashboard.allow_hosts.extend(allow_host);
    let telemetry = telemetry::init(&global.env).map_err(|error| Misuse(format!("{error:#}")))?;
    // Before the collector gives up the right to start programs.
    let mut notifier = match config.notify.is_off() {
        true => None,
        false => {
            Some(Notifier::start(global).context("cannot start the process that sends notices")?)
        }
    };
    let ended = crate::serve::run(&global.state, &config, &global.env, reread(global), |started| {
        metrics::observe(&global.state.database());
        if let Some(Err(error)) = notifier.as_mut().map(Notifier::begin) {
            tracing::warn!(%error, "notify.not_started");
        }
        say(global, started)
    });
    drop(notifier);
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

/// Prints the address on the first line, for people and scripts. On a terminal the address signs one browser in.
/// Elsewhere it does not, because it may end up in a log that others read.
pub(super) fn say(global: &Global, started: &Started<'_>) -> anyhow::Result<()> {
    let address = match started.signed_in().filter(|_| output::is_terminal()) {
        Some(address) => {
            output::note(&format!(
                "This address signs in one browser and is valid for a minute. `{}` makes another one.",
                global.command("open")
            ));
            address
        }
        None => started.place.clone(),
    };
    output::print(&format!("{address}\n"))
}

/// Ends hookspan's own telemetry. Does not wait long for a receiver that does not answer.
fn shut_down(telemetry: Telemetry) {
    let (done, ended) = crossbeam_channel::bounded(1);
    std::thread::spawn(move || {
        telemetry.shutdown();
        // The receiver may have stopped waiting.
        let _sent = done.send(());
    });
    // The result of the wait does not matter: in both cases the program ends now.
    let _ended = ended.recv_timeout(GOODBYE);
}
