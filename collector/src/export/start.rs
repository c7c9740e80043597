//! Starts a destination's exporter: opens the store, makes the client, and waits until everything needed is available.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookspan_core::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

use super::client::Client;
use super::metrics::Metrics;
use super::plan::Plan;
use super::worker::{Isolation, Worker, stopped};
use super::{Settings, series};
use crate::clock;
use crate::config::destination::{Backfill, Destination};
use crate::store::export::{self as tables, DestinationState, ExportStore, Setback, StartAt};
use crate::store::open::OpenError;

pub(super) const DAY_NS: i64 = 86_400_000_000_000;
/// Wait between two attempts to open the database.
const STORE_WAIT: Duration = Duration::from_secs(1);

/// Reads the settings of a destination again, from the configuration file and the files that it refers to. By default nothing
/// is read again.
#[derive(Clone, Default)]
pub(crate) struct Reread(Option<Arc<Read>>);

/// Returns the settings of the destination with this name.
type Read = dyn Fn(&str) -> Option<Destination> + Send + Sync;

impl Reread {
    /// Reads settings with `read`. It gets the name of a destination and returns its settings, or `None` if the
    /// destination no longer exists or cannot be read.
    #[must_use]
    pub(crate) fn new(read: impl Fn(&str) -> Option<Destination> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(read)))
    }

    fn read(&self, name: &str) -> Option<Destination> {
        self.0.as_ref().and_then(|read| read(name))
    }
}

impl std::fmt::Debug for Reread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Reread").field(&self.0.is_some()).finish()
    }
}

/// Everything that a destination's exporter starts from.
pub(super) struct Start {
    pub(super) database: PathBuf,
    pub(super) destination: Arc<Destination>,
    pub(super) settings: Settings,
    pub(super) retry: Arc<Notify>,
    pub(super) retry_metrics: Arc<Notify>,
    pub(super) wake: watch::Receiver<u64>,
    pub(super) shutdown: watch::Receiver<bool>,
}

/// Result of a start.
pub(super) enum Begun {
    /// The exporter can run.
    Ready(Box<Worker>),
    /// The destination cannot be used, and the reason was recorded.
    Unready,
}

impl Start {
    /// Waits until everything needed is available, and then runs the worker until the end.
    pub(super) async fn supervise(mut self, mut begun: Result<Begun, OpenError>) {
        let mut is_told = false;
        loop {
            let (wait, unready) = match begun {
                Ok(Begun::Ready(worker)) => {
                    let metrics = series::spawn(
                        self.database,
                        self.destination,
                        self.settings,
                        self.retry_metrics,
                        self.shutdown,
                    );
                    tokio::join!(worker.run(), metrics);
                    return;
                }
                Ok(Begun::Unready) => (self.settings.timing.poll, true),
                Err(error) => {
                    if !std::mem::replace(&mut is_told, true) {
                        let destination = &*self.destination.name;
                        tracing::warn!(destination, %error, "its exporter cannot start; trying again");
                    }
                    report(&self.settings, &error);
                    (STORE_WAIT, false)
                }
            };
            let mut shutdown = self.shutdown.clone();
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.retry.notified() => {}
                () = stopped(&mut shutdown) => return,
            }
            let again = tokio::task::spawn_blocking(move || {
                if unready {
                    self.read_again();
                }
                let begun = self.begin();
                (self, begun)
            });
            // An error means that the runtime, and this task with it, is shutting down.
            let Ok(done) = again.await else { return };
            (self, begun) = done;
        }
    }

    fn read_again(&mut self) {
        if let Some(destination) = self.settings.reread.read(&self.destination.name) {
            self.destination = Arc::new(destination);
        }
    }

    /// The destination's worker, if the destination can be used.
    pub(super) fn begin(&self) -> Result<Begun, OpenError> {
        let mut store = self.store()?;
        let client = match (
            &self.destination.unready,
            Client::new(&self.destination.connection, self.destination.signal),
        ) {
            (None, Ok(client)) => client,
            (Some(problem), _) => return self.pause(&mut store, problem),
            (None, Err(error)) => return self.pause(&mut store, &error.to_string()),
        };
        Ok(Begun::Ready(Box::new(Worker {
            name: self.destination.name.clone(),
            client: Arc::new(client),
            destination: Arc::clone(&self.destination),
            store: Arc::new(Mutex::new(store)),
            plan: Arc::new(Plan::of(&self.destination, &self.settings)),
            timing: self.settings.timing,
            suspicion: self.settings.suspicion.clone(),
            wake: self.wake.clone(),
            retry: Arc::clone(&self.retry),
            shutdown: self.shutdown.clone(),
            metrics: Metrics::new(),
            gathering: None,
            isolation: Isolation::default(),
        })))
    }

    fn store(&self) -> Result<ExportStore, OpenError> {
        let start = match self.destination.backfill {
            Backfill::None => StartAt::Head,
            Backfill::Day => StartAt::Since(clock::now().plus(-DAY_NS)),
            Backfill::All => StartAt::Beginning,
        };
        let Destination { name, .. } = &*self.destination;
        ExportStore::open(&self.database, name, &self.destination.identity(), start)
    }

    fn pause(&self, store: &mut ExportStore, problem: &str) -> Result<Begun, OpenError> {
        let destination = self.destination.name.as_str();
        tracing::warn!(destination, problem, "paused; its spans wait, the other destinations run");
        let setback = Setback {
            state: DestinationState::Paused,
            not_before: Timestamp(0),
            attempts: 0,
            error: problem.to_owned(),
            advice: advice(destination, problem),
        };
        let failed = |source| OpenError::Sqlite { path: self.database.clone(), source };
        store.pause(&setback).map_err(failed)?;
        Ok(Begun::Unready)
    }
}

/// The environment of a process does not change, so a restart is needed.
fn advice(name: &str, problem: &str) -> String {
    let again = format!(
        "The collector reads it again every half minute, or at once with `hookspan destinations resume {name}`"
    );
    if problem.contains("the variable ") {
        format!(
            "Set the variable where the collector starts and restart it, or write file:PATH instead of env:NAME. {again}."
        )
    } else {
        format!("Correct that. {again}.")
    }
}

/// Marks destinations that are no longer configured as off. Deletes the metrics position of destinations that no longer
/// get metrics. If the database cannot be opened yet, this is done later.
pub(super) fn switch_off_others(
    runtime: &Handle,
    database: &Path,
    (names, with_metrics): (Vec<String>, Vec<String>),
    settings: &Settings,
    mut shutdown: watch::Receiver<bool>,
) {
    let (database, settings) = (database.to_owned(), settings.clone());
    let switch = move || {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let with_metrics: Vec<&str> = with_metrics.iter().map(String::as_str).collect();
        let switched = tables::switch_off_others(&database, &names)
            .and_then(|()| tables::keep_points(&database, &with_metrics));
        switched.inspect_err(|error| report(&settings, error))
    };
    let Err(error) = switch() else { return };
    tracing::warn!(%error, "the destinations that left the configuration are not marked yet; trying again");
    let switch = Arc::new(switch);
    runtime.spawn(async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(STORE_WAIT) => {}
                () = stopped(&mut shutdown) => return,
            }
            let switch = Arc::clone(&switch);
            if let Ok(Ok(())) = tokio::task::spawn_blocking(move || switch()).await {
                return;
            }
        }
    });
}

fn report(settings: &Settings, error: &OpenError) {
    if let OpenError::Suspected { source, .. } | OpenError::Sqlite { source, .. } = error {
        settings.suspicion.report(source);
    }
}
