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

mod attribute_list;
mod cause;
mod client;
mod encoding;
pub mod file;
mod limits;
pub mod otlp;
pub mod metrics;
pub mod outcome;
mod plan;
mod private_names;
pub mod probe;
pub mod resource;
mod sniff;
mod split;
pub mod timing;
mod value;
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
use self::metrics::Metrics;
use self::otlp::Encoding;
use self::plan::Plan;
use self::resource::ResourceBase;
use self::timing::Timing;
use self::worker::{Isolation, Worker};
use crate::clock;
use crate::config::destination::{Backfill, Destination};
use crate::redaction::Redaction;
use crate::store::export::{self as tables, DestinationState, ExportStore, Setback, StartAt};
use crate::store::open::{OpenError, Readers};
use crate::tls;

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
    /// Blanks secrets.
    pub redaction: Redaction,
    /// Pace.
    pub timing: Timing,
}

/// Why exporting cannot start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The database.
    #[error(transparent)]
    Store(#[from] OpenError),
}

impl SpawnError {
    /// Whether it says that the database itself is damaged.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        let Self::Store(error) = self;
        error.is_damage()
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

/// Starts one exporter per destination on `runtime`. `wake` changes whenever spans may have settled.
///
/// A destination that cannot be used as things are, because a variable is not set or a certificate cannot be read, is paused
/// and says so; the others run.
///
/// # Errors
/// The database cannot be opened.
pub fn spawn(
    runtime: &Handle,
    database: &Path,
    destinations: Vec<Destination>,
    settings: &Settings,
    wake: &watch::Receiver<u64>,
) -> Result<Exporters, SpawnError> {
    let _inside = runtime.enter();
    tls::install_crypto();
    let names: Vec<&str> = destinations.iter().map(|d| d.name.as_str()).collect();
    tables::switch_off_others(database, &names)?;
    let (shutdown, stop) = watch::channel(false);
    let mut running = Vec::new();
    for destination in destinations {
        let (name, endpoint_host) = (destination.name.clone(), destination.endpoint_host());
        let retry = Arc::new(Notify::new());
        let started = Start { database, destination: Arc::new(destination), settings };
        let worker = started.worker(&retry, wake, &stop)?;
        let task = worker.map(|worker| runtime.spawn(worker.run()));
        running.push(Running { name, endpoint_host, retry, task: Mutex::new(task) });
    }
    let readers = Readers::new(PathBuf::from(database));
    Ok(Exporters { readers, destinations: running, shutdown })
}

/// What a destination starts from.
struct Start<'a> {
    database: &'a Path,
    destination: Arc<Destination>,
    settings: &'a Settings,
}

impl Start<'_> {
    /// The destination's worker; `None` when the destination cannot be used, which is recorded.
    fn worker(
        &self,
        retry: &Arc<Notify>,
        wake: &watch::Receiver<u64>,
        shutdown: &watch::Receiver<bool>,
    ) -> Result<Option<Worker>, SpawnError> {
        let mut store = self.store()?;
        let client = match (&self.destination.unready, Client::new(&self.destination.connection)) {
            (None, Ok(client)) => client,
            (Some(problem), _) => return self.pause(&mut store, problem),
            (None, Err(error)) => return self.pause(&mut store, &error.to_string()),
        };
        Ok(Some(Worker {
            name: self.destination.name.clone(),
            client,
            destination: Arc::clone(&self.destination),
            store: Arc::new(Mutex::new(store)),
            plan: Arc::new(self.plan()),
            timing: self.settings.timing,
            wake: wake.clone(),
            retry: Arc::clone(retry),
            shutdown: shutdown.clone(),
            metrics: Metrics::new(),
            gathering: None,
            isolation: Isolation::default(),
        }))
    }

    fn store(&self) -> Result<ExportStore, OpenError> {
        let start = match self.destination.backfill {
            Backfill::None => StartAt::Head,
            Backfill::Day => StartAt::Since(clock::now().plus(-DAY_NS)),
            Backfill::All => StartAt::Beginning,
        };
        let Destination { name, .. } = &*self.destination;
        ExportStore::open(self.database, name, &self.destination.identity(), start)
    }

    fn plan(&self) -> Plan {
        let (destination, settings) = (&self.destination, self.settings);
        Plan {
            encoding: Encoding {
                hide_inputs: settings.hide_inputs,
                hide_outputs: settings.hide_outputs,
                ..Encoding::of(destination, settings.resource.clone(), &settings.redaction)
            },
            sample: destination.sample,
            max_span_age: destination.max_span_age,
            backlog_max_spans: destination.backlog_max_spans,
            request_max_bytes: client::request_max_bytes(destination.connection.protocol),
            flush: settings.timing.flush,
            probe: settings.timing.probe,
        }
    }

    fn pause(&self, store: &mut ExportStore, problem: &str) -> Result<Option<Worker>, SpawnError> {
        let destination = self.destination.name.as_str();
        tracing::warn!(destination, problem, "paused; its spans wait, the other destinations run");
        let setback = Setback {
            state: DestinationState::Paused,
            not_before: Timestamp(0),
            attempts: 0,
            error: problem.to_owned(),
            advice: "Correct that, then restart the collector.".to_owned(),
        };
        let failed = |source| OpenError::Sqlite { path: self.database.into(), source };
        store.pause(&setback).map_err(failed)?;
        Ok(None)
    }
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
                Some(row.health(host.to_owned(), clock::now()))
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
