//! Settled spans become OTLP and leave, from a durable position, once.
//!
//! ```text
//! settled ──plan──▶ otlp (pure) ──▶ export_batch ──client──▶ outcome ──worker──▶ export_position, export_loss
//! ```
//!
//! The table `settled` is the queue; each destination has its own position in it. A request is stored before its first
//! attempt, so that a repeat, even after kill -9 or an upgrade, is the same to the last byte. One request per destination is
//! in flight, and the next is encoded meanwhile. A destination that is down costs a stored request and its place in the
//! queue, nothing else, and no other destination notices. Why the exporters write to the database themselves is said in
//! [`crate::store::export`].

mod client;
pub mod file;
mod limits;
pub mod otlp;
pub mod outcome;
mod plan;
pub mod resource;
mod split;
pub mod timing;
mod view;
mod worker;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hookspan_core::Timestamp;
use hookspan_view::health::DestinationHealth;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use self::client::Client;
pub use self::client::ClientError;
use self::otlp::Encoding;
use self::plan::Plan;
use self::resource::ResourceBase;
use self::timing::Timing;
use self::worker::{Isolation, Worker};
use crate::clock;
use crate::config::destination::{Backfill, Destination};
use crate::store::export::{self as tables, ExportStore, StartAt};
use crate::store::open::{OpenError, Readers};
use crate::telemetry::Metrics;

const DAY_NS: i64 = 86_400_000_000_000;

/// What all destinations share.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Resource of agent spans.
    pub resource: ResourceBase,
    /// `OPENINFERENCE_HIDE_INPUTS`.
    pub hide_inputs: bool,
    /// `OPENINFERENCE_HIDE_OUTPUTS`.
    pub hide_outputs: bool,
    /// Pace.
    pub timing: Timing,
}

/// Why exporting cannot start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The database.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// A destination's settings make no client.
    #[error("destination {name:?}: {source}")]
    Client {
        /// The destination.
        name: String,
        /// What is wrong.
        source: ClientError,
    },
}

impl SpawnError {
    /// Whether it says that the database itself is damaged.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_damage())
    }
}

/// The running exporters.
#[derive(Debug)]
pub struct Exporters {
    readers: Readers,
    destinations: Vec<Running>,
    shutdown: watch::Sender<bool>,
}

#[derive(Debug)]
struct Running {
    name: String,
    endpoint_host: String,
    retry: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Makes ring the process's cryptography. Call it first in `main`: building a client without it panics.
pub fn install_crypto() {
    // The only failure is that one is installed already, and then all is well.
    drop(rustls::crypto::ring::default_provider().install_default());
}

/// Starts one exporter per destination on `runtime`. `wake` changes whenever spans may have settled.
///
/// # Errors
/// The database cannot be opened, or a destination's certificate is not usable.
pub fn spawn(
    runtime: &Handle,
    database: &Path,
    destinations: Vec<Destination>,
    settings: &Settings,
    wake: &watch::Receiver<u64>,
) -> Result<Exporters, SpawnError> {
    let _inside = runtime.enter();
    install_crypto();
    let names: Vec<&str> = destinations.iter().map(|d| d.name.as_str()).collect();
    tables::switch_off_others(database, &names)?;
    let (shutdown, stop) = watch::channel(false);
    let mut running = Vec::new();
    for destination in destinations {
        let worker = worker(database, &destination, settings, wake, &stop)?;
        running.push(Running {
            name: destination.name.clone(),
            endpoint_host: destination.endpoint_host(),
            retry: Arc::clone(&worker.retry),
            task: Mutex::new(Some(runtime.spawn(worker.run()))),
        });
    }
    let readers = Readers::new(PathBuf::from(database));
    Ok(Exporters { readers, destinations: running, shutdown })
}

fn worker(
    database: &Path,
    destination: &Destination,
    settings: &Settings,
    wake: &watch::Receiver<u64>,
    shutdown: &watch::Receiver<bool>,
) -> Result<Worker, SpawnError> {
    let client = Client::new(&destination.connection)
        .map_err(|source| SpawnError::Client { name: destination.name.clone(), source })?;
    let start = match destination.backfill {
        Backfill::None => StartAt::Head,
        Backfill::Day => StartAt::Since(clock::now().plus(-DAY_NS)),
        Backfill::All => StartAt::Beginning,
    };
    let encoding = Encoding {
        hide_inputs: settings.hide_inputs,
        hide_outputs: settings.hide_outputs,
        ..Encoding::of(destination, settings.resource.clone())
    };
    let plan = Plan {
        encoding,
        sample: destination.sample,
        max_span_age: destination.max_span_age,
        backlog_max_spans: destination.backlog_max_spans,
        request_max_bytes: client.request_max_bytes(),
        flush: settings.timing.flush,
    };
    Ok(Worker {
        name: destination.name.clone(),
        client,
        is_tls_without_client: destination.connection.endpoint.starts_with("https://")
            && destination.connection.client.is_none(),
        store: Arc::new(Mutex::new(ExportStore::open(database, &destination.name, start)?)),
        plan: Arc::new(plan),
        timing: settings.timing,
        wake: wake.clone(),
        retry: Arc::new(Notify::new()),
        shutdown: shutdown.clone(),
        metrics: Metrics::new(),
        gathering: None,
        isolation: Isolation::default(),
    })
}

impl Exporters {
    /// Sends what waits for `destination` at once, whatever it is waiting for. `false` when there is none of that name.
    #[must_use]
    pub fn retry(&self, destination: &str) -> bool {
        let found = self.destinations.iter().find(|running| running.name == destination);
        if let Some(running) = found {
            running.retry.notify_one();
        }
        found.is_some()
    }

    /// How every configured destination is doing. Reads the store; call it where blocking is fine.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn health(&self) -> Result<Vec<DestinationHealth>, OpenError> {
        let rows = self.readers.with(tables::destinations)?;
        let hosts = self.destinations.iter().map(|d| (d.name.as_str(), d.endpoint_host.as_str()));
        Ok(hosts
            .filter_map(|(name, host)| {
                let row = rows.iter().find(|row| row.name == name)?.clone();
                Some(DestinationHealth {
                    name: row.name,
                    endpoint_host: host.to_owned(),
                    state: row.state,
                    last_ok: row.last_ok_ns.map(Timestamp),
                    last_error: row.last_error,
                    queued: row.queued,
                    delivered: row.delivered,
                    lost: row.lost,
                })
            })
            .collect())
    }

    /// Stops all exporters; a request on its way gets half a second. What is left leaves after the next start.
    pub async fn shutdown(&self) {
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
