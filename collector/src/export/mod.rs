//! Sends settled spans as OTLP. Each destination has a durable position, so that it gets each span once.
//!
//! ```text
//! settled ──plan──▶ otlp (pure) ──▶ export_batch ──client──▶ outcome ──worker──▶ export_position, export_loss
//! ```
//!
//! The table `settled` is the queue, and each destination has its own position in it. A request is stored before its
//! first attempt. So a retry sends the same bytes, even after kill -9 or an upgrade. A destination that catches up
//! has up to four requests in flight while the next ones are encoded; otherwise it has one. For a destination that is
//! down, only these requests and the position are stored; other destinations are not affected.
//! [`crate::store::export`] explains why exporters write to the database themselves.

mod attribute_list;
mod cause;
mod client;
mod encoding;
pub(crate) mod file;
mod flow;
mod hashed;
mod limits;
pub(crate) mod otlp;
pub(crate) mod metrics;
pub(crate) mod outcome;
mod path_text;
mod plan;
pub(crate) mod preview;
mod private_names;
pub(crate) mod probe;
mod record;
pub(crate) mod replay;
mod request;
pub(crate) mod resource;
mod series;
mod sniff;
mod split;
mod start;
mod strict;
pub(crate) mod timing;
mod value;
mod view;
mod wire;
mod worker;

use std::path::Path;
use std::sync::{Arc, Mutex};

use hookspan_core::price::Prices;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

pub(crate) use self::private_names::known_tool;
pub(crate) use self::start::Reread;

use self::resource::{ResourceBase, host_name};
use self::start::Start;
use self::timing::Timing;
use crate::config::destination::Destination;
use crate::config::{Config, Environment, Misuse};
use crate::redaction::Redaction;
use crate::store::damage::Suspicion;
use crate::tls;

/// Settings that all destinations share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Resource of agent spans.
    pub resource: ResourceBase,
    /// `OPENINFERENCE_HIDE_INPUTS`.
    pub hide_inputs: bool,
    /// `OPENINFERENCE_HIDE_OUTPUTS`.
    pub hide_outputs: bool,
    /// Prices of tokens.
    pub prices: Arc<Prices>,
    /// Whether the fold makes a span of each answer.
    pub llm_spans: bool,
    /// Redacts secrets.
    pub redaction: Redaction,
    /// Waits and intervals.
    pub timing: Timing,
    /// Receives SQLite's reports of damage.
    pub suspicion: Suspicion,
    /// Reads the settings of a destination again.
    pub reread: Reread,
}

impl Settings {
    /// The settings from environment and configuration, with this redactor.
    ///
    /// # Errors
    /// Returns [`Misuse`] if a variable cannot be used.
    pub(crate) fn of(
        env: &Environment,
        config: &Config,
        redaction: Redaction,
    ) -> Result<Self, Misuse> {
        let flag = |name| env.var(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        Ok(Self {
            resource: ResourceBase::from_env(env, host_name()).map_err(Misuse::from)?,
            hide_inputs: flag("OPENINFERENCE_HIDE_INPUTS"),
            hide_outputs: flag("OPENINFERENCE_HIDE_OUTPUTS"),
            prices: Arc::new(config.prices.clone()),
            llm_spans: config.core.llm_spans,
            redaction,
            ..Self::default()
        })
    }
}

/// The running exporters.
#[derive(Debug)]
pub(crate) struct Exporters {
    destinations: Vec<Running>,
    shutdown: watch::Sender<bool>,
}

#[derive(Debug)]
struct Running {
    name: String,
    retry: [Arc<Notify>; 2],
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Starts one exporter per destination on `runtime`. `wake` changes whenever spans may have settled.
///
/// If a destination cannot be used now (a variable is not set, a certificate cannot be read), only that destination is
/// paused, and the reason is recorded. Its settings are read again from time to time. Opening the database is tried
/// again until it succeeds.
#[must_use]
pub(crate) fn spawn(
    runtime: &Handle,
    database: &Path,
    destinations: Vec<Destination>,
    settings: &Settings,
    wake: &watch::Receiver<u64>,
) -> Exporters {
    let _inside = runtime.enter();
    tls::install_crypto();
    let (shutdown, stop) = watch::channel(false);
    let names = destinations.iter().map(|one| one.name.clone()).collect();
    let with_metrics = destinations.iter().filter(|one| one.metrics.is_some());
    let with_metrics = with_metrics.map(|one| one.name.clone()).collect();
    start::switch_off_others(runtime, database, (names, with_metrics), settings, stop.clone());
    let mut running = Vec::new();
    for destination in destinations {
        let name = destination.name.clone();
        let retry = [(); 2].map(|()| Arc::new(Notify::new()));
        let [spans, metrics] = retry.clone();
        let start = Start {
            database: database.to_owned(),
            destination: Arc::new(destination),
            settings: settings.clone(),
            retry: spans,
            retry_metrics: metrics,
            wake: wake.clone(),
            shutdown: stop.clone(),
        };
        let begun = start.begin();
        let task = runtime.spawn(start.supervise(begun));
        running.push(Running { name, retry, task: Mutex::new(Some(task)) });
    }
    Exporters { destinations: running, shutdown }
}

impl Exporters {
    /// Makes a destination send its waiting spans and metrics at once. `false` if there is no such destination.
    #[must_use]
    pub(crate) fn retry(&self, destination: &str) -> bool {
        let found = self.destinations.iter().find(|running| running.name == destination);
        if let Some(running) = found {
            running.retry.iter().for_each(|retry| retry.notify_one());
        }
        found.is_some()
    }

    /// Stops all exporters. Requests in flight get half a second. Everything else is sent after the next start.
    pub(crate) async fn shutdown(&self) {
        self.shutdown.send_replace(true);
        for running in &self.destinations {
            let task = running.task.lock().ok().and_then(|mut task| task.take());
            if let Some(task) = task
                && let Err(error) = task.await
            {
                tracing::error!(destination = %running.name, %error, "the exporter had stopped");
            }
        }
    }
}

#[cfg(test)]
mod tests;
