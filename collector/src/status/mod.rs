//! The state of recording, from the state directory, the store and the running collector. Reading it changes nothing.

mod health;

use std::collections::BTreeMap;
use std::io::ErrorKind::{NotADirectory, PermissionDenied};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

pub(crate) use health::{Problem, Queue, is_code_used, login_code, wake};

use crate::clock;
use crate::config::policy::Policy;
use crate::config::{Global, destination};
use crate::dirs::{Lock, ServeInfo, StateDir, is_our_directory};
use crate::hooks_json::record::places;
use crate::hooks_json::{Scope, audit};
use crate::journal::survey::Survey;
use crate::journal::{Position, losses, survey};
use crate::notify::{Ledger, Way, WayState};
use crate::store::open::{self, OpenError};
use crate::store::{cli as queries, export, read, salvage};

/// Number of attempts to open a database that is being moved, before the last attempt.
const MOVED_TRIES: usize = 5;
/// Time between two of these attempts. Moving takes a few milliseconds.
const MOVED_WAIT: Duration = Duration::from_millis(100);

/// What `status --json` prints.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Status {
    /// Whether a collector runs for this state directory.
    pub running: bool,
    /// Its process.
    pub pid: Option<u32>,
    /// Its version.
    pub version: Option<String>,
    /// The dashboard's address, without signing in (`hookspan open` signs in). `None` if it listens on no address.
    pub dashboard_url: Option<String>,
    /// Where OTLP is received: an address, or `unix:PATH`. `None` if nothing is received.
    pub receive: Option<String>,
    /// What is in the journal.
    pub journal: Journal,
    /// How far the journal was committed, in the store's format.
    pub position: Option<String>,
    /// Number of hooks in the journal that are not in the database yet. An estimate if [`Journal::estimated`].
    pub backlog: u64,
    /// How long the oldest of them has been waiting, milliseconds.
    pub oldest_unread_ms: Option<i64>,
    /// Why the database accepts no hooks at the moment, or that the collector does not answer.
    pub trouble: Option<String>,
    /// Whether a collector runs and does not answer. `trouble` then says why.
    #[serde(skip)]
    pub no_answer: bool,
    /// Queue of batches between the journal's reader and the database, while a collector runs. A full queue slows
    /// reading down.
    pub queue: Option<Queue>,
    /// Damaged databases that were moved aside, and how many of their hooks were saved.
    pub damaged: Vec<String>,
    /// Hooks of a damaged database are being saved.
    pub salvaging: bool,
    /// Hooks that could not be stored anywhere, by reason.
    pub losses: BTreeMap<String, u64>,
    /// Hooks that were stored and could not be parsed.
    pub malformed: u64,
    /// Every counter of the store.
    pub counters: BTreeMap<String, u64>,
    /// When the newest stored hook was received, nanoseconds since the epoch.
    pub last_hook_ns: Option<i64>,
    /// Bytes of the database and its write-ahead log, which holds the newest rows.
    pub database_bytes: u64,
    /// Whether the stored sessions and spans were derived with older rules. `hookspan rebuild` derives them again.
    pub older_rules: bool,
    /// Where traces go.
    pub destinations: Vec<Destination>,
    /// What the policy of this machine rules. Empty without one.
    pub policy: Vec<String>,
    /// How each way of telling a person about agents did.
    pub notices: BTreeMap<Way, WayState>,
    /// Notices that were not told, because there were too many.
    pub notices_dropped: u64,
    /// Each hooks.json that runs hookspan. Files of this machine and of this user come first.
    pub installed: Vec<Installed>,
}

/// A hooks.json that runs hookspan.
#[derive(Debug, Serialize)]
pub(crate) struct Installed {
    /// user, project, enterprise.
    pub scope: Scope,
    /// The file.
    pub file: PathBuf,
    /// How many events run hookspan.
    pub events: usize,
}

/// The journal on disk.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Journal {
    /// Bytes of all segments.
    pub bytes: u64,
    /// Records that begin in them.
    pub records: u64,
    /// Files.
    pub segments: u64,
    /// Records that are not stored yet and wait in the run-time directory, because the state directory did not accept
    /// them.
    pub spilled: u64,
    /// Bytes of the files there.
    pub spilled_bytes: u64,
    /// The journal is too large to be counted. The numbers of records and of the backlog are estimates from a part of
    /// it.
    pub estimated: bool,
    /// The journal is at its bound: hooks are counted and not kept.
    pub stopped: bool,
    /// Operations on the journal that fail at the moment. The collector tries them again.
    pub problems: Vec<Problem>,
}

/// One destination.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Destination {
    /// Its name.
    pub name: String,
    /// `ok`, `retry`, `paused` or `off`; `new` before the first attempt.
    pub state: String,
    /// Spans waiting.
    pub pending: u64,
    /// Spans delivered.
    pub delivered: u64,
    /// Spans lost, by reason.
    pub lost: BTreeMap<String, u64>,
    /// The last delivery, microseconds since the epoch.
    pub last_ok_us: Option<i64>,
    /// The last failure in words.
    pub last_error: Option<String>,
    /// What to do about the last failure.
    pub advice: Option<String>,
    /// A person paused it.
    pub stopped: bool,
    /// The receiver has accepted spans.
    pub accepted: bool,
    /// What the policy of this machine changed in its settings.
    pub by_policy: Vec<String>,
    /// Spans were lost during the last day.
    pub losing: bool,
    /// The last loss in words, and what to do about it.
    pub last_loss: Option<String>,
    /// The metrics for this destination, if it gets metrics.
    pub metrics: Option<Metrics>,
}

/// The metrics of one destination.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Metrics {
    /// ok, retry, paused.
    pub state: String,
    /// Points delivered.
    pub delivered: u64,
    /// Points lost.
    pub lost: u64,
    /// Spans that no metric counts, because they ended more than a day before they were read for metrics.
    pub left_out: u64,
    /// The last delivery, microseconds since the epoch.
    pub last_ok_us: Option<i64>,
    /// The last failure in words.
    pub last_error: Option<String>,
    /// What to do about the last failure.
    pub advice: Option<String>,
}

impl From<export::PointsRow> for Metrics {
    fn from(row: export::PointsRow) -> Self {
        Self {
            state: row.state,
            delivered: row.delivered,
            lost: row.lost,
            left_out: row.left_out,
            last_ok_us: row.last_ok_ns.map(|ns| ns / 1_000),
            last_error: row.last_error,
            advice: row.advice,
        }
    }
}

impl Destination {
    /// Whether a person must act: nothing is sent, or spans were lost.
    #[must_use]
    pub(crate) fn is_problem(&self) -> bool {
        self.state == "paused" || self.losing || self.has_no_metrics()
    }

    /// Whether the destination is configured to get metrics and refuses them.
    #[must_use]
    pub(crate) fn has_no_metrics(&self) -> bool {
        self.state != "off" && self.metrics.as_ref().is_some_and(|own| own.state == "paused")
    }
}

impl Destination {
    /// Why the destination does not get all spans; `None` if it does. A receiver that is down for a while is not a
    /// fault, because its spans wait.
    fn fault(&self) -> Option<String> {
        let trouble = match self.state.as_str() {
            "paused" => "is paused",
            _ if self.losing => "loses spans",
            _ => "takes no metrics",
        };
        self.is_problem().then(|| format!("destination {} {trouble}", self.name))
    }
}

/// Whether the configuration file was written after the running collector had read it. If so, a restart would apply the
/// changes.
#[must_use]
pub(crate) fn config_is_newer(global: &Global) -> bool {
    let started = ServeInfo::running(&global.state).map_or(0, |info| info.started_ns);
    let written = global.config_file.as_deref().and_then(|path| {
        let written = std::fs::metadata(path).ok()?.modified().ok()?;
        i64::try_from(written.duration_since(std::time::UNIX_EPOCH).ok()?.as_nanos()).ok()
    });
    // A collector of an earlier version does not tell when it started.
    started > 0 && written.is_some_and(|written| written > started)
}

/// The size of the database file and its write-ahead log.
fn database_bytes(state: &StateDir) -> u64 {
    let mut log = state.database().into_os_string();
    log.push("-wal");
    [state.database(), log.into()]
        .iter()
        .filter_map(|path| std::fs::metadata(path).ok())
        .map(|meta| meta.len())
        .sum()
}

fn installed(global: &Global) -> Vec<Installed> {
    let places = places(&global.env, global.state.root()).into_iter();
    places
        .map(|place| Installed {
            events: audit::events(&place.path),
            scope: place.scope,
            file: place.path,
        })
        .filter(|installed| installed.events > 0)
        .collect()
}

impl Status {
    /// Whether a database exists but nothing could be read from it.
    #[must_use]
    pub(crate) fn is_blind(&self) -> bool {
        self.trouble.is_some() && self.counters.is_empty()
    }

    /// What is wrong, in words: no collector runs, or a destination gets nothing or not everything. If there is any of
    /// these, `status` exits with 1.
    #[must_use]
    pub(crate) fn faults(&self) -> Vec<String> {
        let stopped = (!self.running).then(|| "no collector runs".to_owned());
        let answer = match (self.no_answer, self.trouble.is_some()) {
            (true, _) => Some("the collector does not answer".to_owned()),
            (false, true) => Some("the database cannot be used normally".to_owned()),
            (false, false) => None,
        };
        let destinations = self.destinations.iter().filter_map(Destination::fault);
        stopped.into_iter().chain(answer).chain(destinations).collect()
    }

    /// Reads the state without changing anything, with or without a running collector.
    ///
    /// # Errors
    /// The state directory or the database cannot be read.
    pub(crate) fn read(global: &Global) -> anyhow::Result<Self> {
        let state = &global.state;
        let mut status = Self { running: Lock::is_held(state), ..Self::default() };
        if let Some(info) = ServeInfo::running(state) {
            status.ask_collector(info);
        }
        let closed = status.note_foreign_directory(state);
        let read = if closed { Ok(None) } else { status.read_database(state) };
        let database = status.unless_unreadable(state, read)?.flatten();
        status.database_bytes = database_bytes(state);
        status.read_journal(state, database.as_ref())?;
        for aside in salvage::aside(state) {
            status.salvaging |= aside.report.is_none();
            status.damaged.push(aside.to_string());
        }
        let lost = losses::read(state).context("cannot read the file of lost hooks")?;
        status.losses.extend(lost.by_reason);
        status.installed = installed(global);
        let ledger = Ledger::read(state);
        (status.notices, status.notices_dropped) = (ledger.ways, ledger.dropped);
        status.add_configured(global)?;
        Ok(status)
    }

    /// Adds what only the running collector knows.
    fn ask_collector(&mut self, info: ServeInfo) {
        self.dashboard_url = info.url();
        let socket = || info.receive_socket.as_ref().map(|path| format!("unix:{}", path.display()));
        self.receive = info.receive.clone().or_else(socket);
        match health::ask(&info) {
            Ok(health) => {
                self.trouble = health.trouble;
                self.queue = Some(health.journal.queue);
                self.journal.stopped = health.journal.stopped;
                self.journal.problems = health.journal.problems;
            }
            Err(error) => {
                self.no_answer = true;
                self.trouble = Some(format!("the collector does not answer: {error}"));
            }
        }
        self.pid = Some(info.pid);
        self.version = Some(info.version);
    }

    /// Adds the size of the journal, and how many of its hooks the database does not have.
    fn read_journal(
        &mut self,
        state: &StateDir,
        database: Option<&rusqlite::Connection>,
    ) -> anyhow::Result<()> {
        let position: Position =
            self.position.as_deref().unwrap_or_default().parse().unwrap_or_default();
        let found = survey::survey(state, &position).context("cannot read the journal")?;
        let committed = match database {
            Some(database) => {
                let counted = queries::committed(database, &found.ids).map_err(Into::into);
                self.unless_unreadable(state, counted)?.unwrap_or_default()
            }
            None => 0,
        };
        self.backlog = found.after_position.saturating_sub(committed);
        if self.backlog > 0 {
            let oldest = Survey::oldest_ns(&found.ids).map(u64::cast_signed);
            self.oldest_unread_ms =
                oldest.map(|at| clock::now().0.saturating_sub(at).max(0) / 1_000_000);
        }
        self.journal.bytes = found.bytes;
        self.journal.records = found.records;
        self.journal.segments = found.segments;
        self.journal.spilled = found.spilled;
        self.journal.spilled_bytes = found.spilled_bytes;
        // If the database cannot be read, nobody knows which hooks of the journal are already stored.
        self.journal.estimated = found.estimated || (database.is_none() && self.trouble.is_some());
        self.journal.stopped |= state.journal().is_symlink();
        Ok(())
    }

    /// Reports a state directory of another user as trouble. Returns whether its content is unreadable.
    fn note_foreign_directory(&mut self, state: &StateDir) -> bool {
        let root = state.root();
        let closed = match std::fs::read_dir(root) {
            Ok(_) if is_our_directory(root) => return false,
            Ok(_) => false,
            Err(error) => matches!(error.kind(), NotADirectory | PermissionDenied),
        };
        if closed || root.exists() {
            self.trouble = state.verify().err().map(|error| error.to_string());
        }
        closed
    }

    /// Opens the database; `None` if there is none yet. A collector may be moving a damaged database aside at this
    /// moment. In that case, the next attempt finds the new database.
    fn read_database(&mut self, state: &StateDir) -> anyhow::Result<Option<rusqlite::Connection>> {
        for _ in 0..MOVED_TRIES {
            match self.look_at_database(state) {
                // In the meantime a collector has started and writes.
                Err(_) if !self.running && Lock::is_held(state) => self.running = true,
                Err(error) if open::is_moved_below(&error) => std::thread::sleep(MOVED_WAIT),
                read => return read,
            }
        }
        self.look_at_database(state)
    }

    fn look_at_database(
        &mut self,
        state: &StateDir,
    ) -> anyhow::Result<Option<rusqlite::Connection>> {
        // If no process writes, the database can be read without creating files beside it.
        let opened = if self.running {
            open::reader(&state.database())
        } else {
            open::still_reader(&state.database())
        };
        let database = match opened {
            Err(OpenError::Missing(_)) => return Ok(None),
            database => database?,
        };
        self.read_store(&database).context("cannot read the database")?;
        Ok(Some(database))
    }

    /// Reports a database that cannot be read, or that a newer release wrote, as trouble. Everything from other sources
    /// is still shown. The collector's own words take precedence, because the collector knows more.
    fn unless_unreadable<T>(
        &mut self,
        state: &StateDir,
        read: anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        match read {
            Err(error) if open::is_unreadable_below(&error) => {
                let cause = open::causes(&error).last().unwrap_or_default();
                let text = || format!("{} cannot be read: {cause}", state.database().display());
                self.trouble.get_or_insert_with(text);
                Ok(None)
            }
            Err(error) if matches!(error.downcast_ref(), Some(OpenError::Newer { .. })) => {
                self.trouble = Some(error.to_string());
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    fn read_store(&mut self, database: &rusqlite::Connection) -> rusqlite::Result<()> {
        self.position = queries::journal_position(database)?;
        self.counters = read::counters(database)?.into_iter().collect();
        self.malformed = self.counters.get("malformed").copied().unwrap_or(0);
        self.last_hook_ns = queries::last_hook_ns(database)?;
        self.older_rules = queries::has_older_rules(database)?;
        self.destinations = export::destinations(database)?
            .into_iter()
            .map(|row| Destination {
                losing: row.is_losing(clock::now()),
                name: row.name,
                state: row.state,
                pending: row.queued,
                delivered: row.delivered,
                lost: row.lost.into_iter().collect(),
                last_ok_us: row.last_ok_ns.map(|ns| ns / 1_000),
                last_error: row.last_error,
                advice: row.advice,
                stopped: row.stopped,
                accepted: row.has_accepted,
                by_policy: Vec::new(),
                last_loss: row.last_loss.map(|loss| loss.to_string()),
                metrics: row.metrics.map(Metrics::from),
            })
            .collect();
        Ok(())
    }

    fn add_configured(&mut self, global: &Global) -> anyhow::Result<()> {
        let config = global.config()?;
        self.policy = config.policy.as_ref().map(Policy::words).unwrap_or_default();
        let configured = destination::all(&config, &global.env)
            .map_err(|error| crate::config::Misuse(error.to_string()))?;
        for destination in configured {
            let known = self.destinations.iter_mut().find(|one| one.name == destination.name);
            if let Some(known) = known {
                known.by_policy.clone_from(&destination.by_policy);
            }
            if self.destinations.iter().all(|known| known.name != destination.name) {
                self.destinations.push(Destination {
                    name: destination.name,
                    state: "new".to_owned(),
                    last_error: destination.unready,
                    by_policy: destination.by_policy,
                    ..Destination::default()
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(state: &str, losing: bool) -> Destination {
        Destination {
            name: "jaeger".to_owned(),
            state: state.to_owned(),
            losing,
            ..Destination::default()
        }
    }

    #[test]
    fn a_stopped_collector_and_a_destination_that_gets_not_all_are_faults() {
        let faults = |running: bool, state: &str, losing: bool| {
            let destinations = vec![destination(state, losing)];
            Status { running, destinations, ..Status::default() }.faults()
        };
        assert_eq!(faults(true, "ok", false), [""; 0]);
        assert_eq!(faults(true, "new", false), [""; 0]);
        assert_eq!(faults(true, "retry", false), [""; 0], "its spans wait");
        assert_eq!(faults(false, "ok", false), ["no collector runs"]);
        assert_eq!(faults(true, "paused", false), ["destination jaeger is paused"]);
        assert_eq!(faults(true, "ok", true), ["destination jaeger loses spans"]);
        let trouble = Some("the disk is full".to_owned());
        let troubled = Status { running: true, trouble, ..Status::default() }.faults();
        assert_eq!(troubled, ["the database cannot be used normally"]);
        let hung = Status { running: true, no_answer: true, ..Status::default() };
        assert_eq!(hung.faults(), ["the collector does not answer"]);
    }
}
