//! The running collector: lock, threads, shutdown.
//!
//! ```text
//! ingest thread --bounded channel--> engine thread --commit--> exporters and dashboard (tokio)
//!                                      ^-- evidence thread
//! ```
//!
//! Everything ends in the order in which data flows: reading first, then evidence, then the engine with what it still has,
//! while exporters and open pages are told to stop. What is not done by then is done after the next start.

mod threads;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hookspan_dashboard::source::{JournalHealth, SourceError};
use hookspan_dashboard::{Control, Settings};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::cli::output::Misuse;
use crate::clock;
use crate::config::{Config, Environment, destination};
use crate::dirs::{Lock, ServeInfo, StateDir, Token};
use crate::export::resource::{ResourceBase, host_name};
use crate::export::{self, Exporters};
use crate::source::StoreSource;
use threads::Threads;

/// How long open connections and exporters get once the collector is told to stop.
const GOODBYE: Duration = Duration::from_millis(600);

/// Runs the collector until it is told to stop. `ready` is given the address for the owner's browser once it listens.
///
/// # Errors
/// The collector cannot start; the text says what to do.
pub fn run(
    dir: &StateDir,
    config: &Config,
    env: &Environment,
    ready: impl FnOnce(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let dashboard = &config.dashboard;
    if !dashboard.token && !dashboard.listen.ip().is_loopback() {
        return Err(Misuse(format!(
            "without a token the dashboard listens on this machine only, not on {}: leave out --no-token, or use \
             --listen 127.0.0.1:{}",
            dashboard.listen,
            dashboard.listen.port()
        ))
        .into());
    }
    let destinations = destination::all(config, env).map_err(|error| Misuse(error.to_string()))?;
    let settings = export_settings(env)?;

    dir.prepare()?;
    let lock = Lock::acquire(dir)?;
    let listener = listen(dashboard.listen)?;
    let address = listener.local_addr()?;
    let token = Token::load_or_create(dir)?;
    let threads = Threads::start(dir, config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("hookspan")
        .enable_all()
        .build()?;
    let hosts: Vec<_> =
        destinations.iter().map(|one| (one.name.clone(), one.endpoint_host())).collect();
    let wake = threads.signals.settled.subscribe();
    let exporters =
        export::spawn(runtime.handle(), &dir.database(), destinations, &settings, &wake)?;
    let exporters = Arc::new(exporters);

    let (close, closing) = watch::channel(false);
    let router = hookspan_dashboard::router(
        Arc::new(StoreSource::new(
            &dir.database(),
            threads.signals.notices.clone(),
            journal_health(&threads),
            hosts,
        )),
        Arc::new(Retry(Arc::clone(&exporters))),
        Settings {
            token_sha256: dashboard.token.then(|| token.sha256()),
            port: address.port(),
            allow_hosts: dashboard.allow_hosts.clone(),
            closing: closing.clone(),
        },
    )
    .map_err(|error| Misuse(error.0))?;

    let info = ServeInfo {
        pid: std::process::id(),
        address: Some(address.to_string()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_ns: clock::now().0,
        token_required: dashboard.token,
    };
    info.write(dir)?;
    ready(&info.url(Some(&token)).unwrap_or_default())?;
    let served = runtime.block_on(serve(listener, router, &close, closing));

    ServeInfo::remove(dir);
    finish(runtime, &exporters, threads);
    drop(lock);
    served
}

fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "cannot listen on {address}: another program uses that port; stop it, or choose another port with \
             --listen {}:0",
            address.ip()
        ),
        _ => anyhow::anyhow!("cannot listen on {address}: {error}; choose another address with --listen"),
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn export_settings(env: &Environment) -> anyhow::Result<export::Settings> {
    let flag = |name| env.var(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    Ok(export::Settings {
        resource: ResourceBase::from_env(env, host_name()).map_err(Misuse)?,
        hide_inputs: flag("OPENINFERENCE_HIDE_INPUTS"),
        hide_outputs: flag("OPENINFERENCE_HIDE_OUTPUTS"),
        ..export::Settings::default()
    })
}

fn journal_health(threads: &Threads) -> crate::source::AskJournal {
    let usage = threads.usage();
    Box::new(move || {
        let usage = *usage.lock().unwrap_or_else(PoisonError::into_inner);
        JournalHealth {
            segments: usage.segments,
            bytes: usage.bytes,
            behind_bytes: usage.pending_bytes,
        }
    })
}

/// What a page may ask for.
struct Retry(Arc<Exporters>);

impl Control for Retry {
    fn retry(&self, destination: &str) -> Result<bool, SourceError> {
        Ok(self.0.retry(destination))
    }
}

/// Serves pages until a signal arrives.
async fn serve(
    listener: TcpListener,
    router: axum::Router,
    close: &watch::Sender<bool>,
    mut closing: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let server = axum::serve(listener, router).with_graceful_shutdown(async move {
        // A sender that is gone means the same as one that says so.
        let _closed = closing.wait_for(|closed| *closed).await;
    });
    let mut server = tokio::spawn(server.into_future());
    tokio::select! {
        ended = &mut server => ended??,
        asked = stop_signal() => asked?,
    }
    close.send_replace(true);
    // Pages that are still loading are cut off: the browser asks again.
    drop(tokio::time::timeout(GOODBYE / 2, &mut server).await);
    server.abort();
    Ok(())
}

#[cfg(unix)]
async fn stop_signal() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

#[cfg(not(unix))]
async fn stop_signal() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}

fn finish(runtime: Runtime, exporters: &Exporters, threads: Threads) {
    let threads = std::thread::spawn(move || threads.stop());
    runtime.block_on(async {
        drop(tokio::time::timeout(GOODBYE, exporters.shutdown()).await);
    });
    if threads.join().is_err() {
        tracing::error!("a thread of the collector had failed");
    }
    runtime.shutdown_background();
}
