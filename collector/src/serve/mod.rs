//! The running collector: lock, threads, shutdown.
//!
//! ```text
//! ingest thread --bounded channel--> engine thread --commit--> exporters and dashboard (tokio)
//!                                      ^-- evidence thread
//! ```
//!
//! At shutdown, threads end in the order in which data passes through them: first the reader, then evidence, then the
//! engine with its remaining batches. Exporters and open pages are told to stop at the same time. Unfinished work
//! continues after the next start.

mod confine;
mod erase;
mod examiner;
mod http;
mod retention;
mod stop;
mod threads;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use hookspan_dashboard::Settings;
use hookspan_view::SourceError;
use hookspan_view::health::JournalHealth;
use hookspan_view::source::Control;
use hookspan_view::source::{
    Audit, Deleted, FilterPage, InstallStep, MarkChange, Marked, Privacy, PrivacyClass, SavedFilter,
};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::access::{AccessFile, Clock, Door};
use crate::audit::{AuditFile, What};
use crate::clock;
use crate::config::destination::{self, ContentPolicy, Destination};
use crate::config::{Config, Environment, Misuse, paths};
use crate::dirs::{Lock, OwnerKey, ServeInfo, StateDir};
use crate::engine::Restart;
use crate::export::{self, Exporters, Reread, preview};
use crate::hooks_json::plan::{self, Wish};
use crate::hooks_json::{Plan, Scope};
use crate::ingest::Reading;
use crate::receive::Receiver;
use crate::redaction::Redaction;
use crate::sandbox::Held;
use crate::search::Search;
use crate::source::{AskAudit, AskInstall, Extras, NoteExport, StoreSource};
use crate::store::marks;
use crate::store::open::{OpenError, Readers};
use crate::store::prune::Selection;
use erase::Eraser;
use http::{Listeners, Server, Slots, Versions};
use retention::Pruner;
use stop::Stop;
use threads::Threads;

/// How long open connections and exporters may continue after the collector is told to stop.
const GOODBYE: Duration = Duration::from_millis(600);

/// A collector that has begun to listen.
#[derive(Debug)]
pub(crate) struct Started<'a> {
    /// The address for a browser, without a sign-in code, or `unix:PATH`.
    pub place: String,
    door: Option<&'a Door>,
}

impl Started<'_> {
    /// An address that signs one browser in within a minute; `None` if it listens on no port.
    #[must_use]
    pub(crate) fn signed_in(&self) -> Option<String> {
        let address = self.place.strip_suffix('/').filter(|place| place.starts_with("http"))?;
        match self.door.map(Door::code) {
            None => Some(self.place.clone()),
            Some(code) => Some(format!("{address}/login#c={}", code.ok()?)),
        }
    }
}

/// Runs the collector until it is told to stop. `reread` reads the settings again for a destination that could not be used.
/// `ready` is called once the collector listens.
///
/// # Errors
/// The collector cannot start; the text says what to do.
pub(crate) fn run(
    dir: &StateDir,
    config: &Config,
    env: &Environment,
    reread: Reread,
    ready: impl FnOnce(&Started<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let destinations = configured(config, env)?;
    confine::give_up_privileges();
    dir.prepare()?;
    let lock = Lock::acquire(dir)?;
    // The directory exists now, so its key is used from the first start on.
    let redaction = Redaction::load(dir, &config.redact)?;
    let settings = export::Settings { reread, ..export::Settings::of(env, config, redaction)? };
    forget_what_is_old(dir);
    let key = OwnerKey::new().context("the system has no randomness")?;
    let audit = Arc::new(AuditFile::new(dir));
    audit.destinations(&destinations.iter().map(|one| (one.name.clone(), one.gets())).collect());
    let needs_door = config.dashboard.token || config.receive.enabled;
    let door = needs_door.then(|| door(dir, &key, &audit)).transpose()?;
    // Signals are handled before the first socket exists. So whoever ends the collector from here on leaves nothing
    // behind.
    let stop = Stop::listen()?;
    let listeners = Listeners::bind(&config.dashboard)?;
    let receiving = Listeners::receive(&config.receive)?;
    let held = confine::confine(dir, config, env, &destinations);
    let mut ready = Some(ready);
    let one = || One {
        dir,
        lock: &lock,
        config,
        env,
        key: &key,
        door: door.as_ref(),
        audit: &audit,
        held,
        settings: &settings,
        stop: &stop,
    };
    let ended = loop {
        let ended = one().run(&listeners, receiving.as_ref(), &destinations, &mut ready);
        match ended.and_then(|ended| begins_again(ended, dir, &lock)) {
            Ok(None) => {}
            ended => break ended,
        }
    };
    // These files are removed even if the start failed.
    if !lock.is_lost(dir) {
        ServeInfo::remove(dir);
    }
    listeners.remove();
    receiving.iter().for_each(Listeners::remove);
    if matches!(ended, Ok(Some(Ended::AskedEarly))) {
        // A part of the start still works in the state directory. The kernel releases the lock when the process has
        // ended.
        std::mem::forget(lock);
    }
    ended.map(drop)
}

/// Checks where the collector listens, and returns the destinations.
fn configured(config: &Config, env: &Environment) -> anyhow::Result<Vec<Destination>> {
    config.dashboard.check()?;
    config.receive.check(&config.dashboard)?;
    let all = destination::all(config, env).map_err(|error| Misuse(error.to_string()))?;
    for one in &all {
        config.receive.check_destination(&one.name, &one.connection.endpoint)?;
    }
    Ok(all)
}

/// Cleans up after one run with a database. Returns `None` if another run follows.
fn begins_again(ended: Ended, dir: &StateDir, lock: &Lock) -> anyhow::Result<Option<Ended>> {
    // If the whole directory is gone, the collector must not start again in a directory that now belongs to another
    // one.
    let is_replaced = matches!(ended, Ended::Restart(_)) && lock.is_lost(dir);
    match if is_replaced { Ended::Replaced } else { ended } {
        Ended::Replaced => {
            anyhow::bail!(
                "{} was deleted or replaced while this collector used it; hooks wait in the new directory: \
                 start `hookspan serve` again",
                dir.root().display()
            )
        }
        Ended::Restart(Restart::Damaged) => {
            threads::set_aside(dir)?;
            Ok(None)
        }
        Ended::Restart(Restart::FellBack) => {
            tracing::error!(
                "committed hooks are missing in hookspan.db; reading the journal again"
            );
            Ok(None)
        }
        ended => Ok(Some(ended)),
    }
}

fn door(dir: &StateDir, key: &OwnerKey, audit: &Arc<AuditFile>) -> anyhow::Result<Arc<Door>> {
    let vault = Arc::new(AccessFile::new(dir, Arc::clone(audit)));
    let clock = Clock::new(|| clock::now().0);
    let door = Door::new(vault, clock, key.as_str());
    door.map(Arc::new).map_err(|error| anyhow::anyhow!(error))
}

/// Removes the shared token of earlier versions, which no longer works, and files that a killed `hookspan open` left
/// behind. Their codes ended with the collector that made them.
fn forget_what_is_old(dir: &StateDir) {
    if std::fs::remove_file(dir.old_token()).is_ok() {
        tracing::info!(
            "the access token of an earlier version was removed: run `hookspan open`, or `hookspan token create`"
        );
    }
    for entry in std::fs::read_dir(dir.root()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("open-") && name.ends_with(".html") {
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

/// How often to check that the state directory is still the same one. It must be shorter than the minimum age for deleting a
/// segment: otherwise a segment of a new directory could be deleted because the old database has it.
const LOOK_AT_LOCK: Duration = Duration::from_secs(5);

/// Why serving ended.
enum Ended {
    /// The collector was told to stop by a signal.
    Asked,
    /// The same, while the database was being opened.
    AskedEarly,
    /// There is now another state directory at the path.
    Replaced,
    /// The threads that use the database must be started again.
    Restart(Restart),
}

/// Everything that one run with a database needs.
struct One<'a> {
    dir: &'a StateDir,
    lock: &'a Lock,
    config: &'a Config,
    env: &'a Environment,
    key: &'a OwnerKey,
    door: Option<&'a Arc<Door>>,
    audit: &'a Arc<AuditFile>,
    held: Held,
    settings: &'a export::Settings,
    stop: &'a Stop,
}

impl One<'_> {
    fn run(
        self,
        listeners: &Listeners,
        receiving: Option<&Listeners>,
        destinations: &[Destination],
        ready: &mut Option<impl FnOnce(&Started<'_>) -> anyhow::Result<()>>,
    ) -> anyhow::Result<Ended> {
        let Self { dir, lock, config, door, audit, stop, .. } = self;
        let dashboard = &config.dashboard;
        let address = listeners.address()?;
        let (starting, with) = (dir.clone(), config.clone());
        let Some(threads) = stop.or(move || Threads::start(&starting, &with))? else {
            return Ok(Ended::AskedEarly);
        };
        let threads = threads?;
        let restart = threads.signals.restart.subscribe();
        let runtime = runtime()?;
        let exporters = Arc::new(self.exporters(&runtime, &threads, destinations));
        let (close, closing) = watch::channel(false);
        let search = self.search(&threads)?;
        let eraser = || Eraser {
            dir: dir.clone(),
            readers: self.readers(&threads),
            engine: threads.inputs(),
            search: search.handle(),
            audit: Arc::clone(audit),
        };
        let pruner = Pruner::start(eraser(), config.retention)?;
        let controls = Controls { exporters: Arc::clone(&exporters), eraser: eraser() };
        let router = hookspan_dashboard::router(
            Arc::new(self.source(&threads, &search, destinations)),
            Arc::new(controls),
            Settings {
                door: door.filter(|_| dashboard.token).cloned(),
                address,
                allow_hosts: dashboard.allow_hosts.clone(),
                closing: closing.clone(),
                clock: Clock::new(|| clock::now().0),
                changes: threads.signals.notices.clone(),
            },
        )
        .map_err(|error| Misuse(error.to_string()))?;
        self.announce(listeners, receiving, ready)?;
        let servers =
            self.servers((&runtime, &threads), router, (listeners, receiving), closing)?;
        let replaced = wait_for_replacement(lock, dir);
        let ended = runtime.block_on(serve(servers, &close, stop.clone(), restart, replaced));

        if let Some(pruner) = pruner {
            pruner.stop();
        }
        if !lock.is_lost(dir) {
            ServeInfo::remove(dir);
        }
        // Ending the runtime and the threads closes the engine's channel, which ends the engine.
        finish(runtime, &exporters, threads);
        search.stop();
        ended
    }

    /// Read-only connections that also report damage.
    fn readers(&self, threads: &Threads) -> Readers {
        Readers::new(self.dir.database()).reporting(&threads.signals.suspicion)
    }

    fn exporters(
        &self,
        runtime: &Runtime,
        threads: &Threads,
        destinations: &[Destination],
    ) -> Exporters {
        let suspicion = threads.signals.suspicion.clone();
        let settings = export::Settings { suspicion, ..self.settings.clone() };
        let wake = threads.signals.settled.subscribe();
        let database = self.dir.database();
        export::spawn(runtime.handle(), &database, destinations.to_vec(), &settings, &wake)
    }

    /// The dashboard and, if it is wanted, the receiver of OTLP.
    fn servers(
        &self,
        (runtime, threads): (&Runtime, &Threads),
        router: axum::Router,
        (pages, receiving): (&Listeners, Option<&Listeners>),
        closing: watch::Receiver<bool>,
    ) -> anyhow::Result<Servers> {
        let receiving = receiving.map(|at| self.receiving(runtime, threads, at, &closing));
        let uids = &self.config.dashboard.allow_uids;
        let audit = Arc::clone(self.audit);
        let server = Server::new(Versions::One, router, Slots::new(), uids, closing, audit);
        Ok(Servers { pages: (server, pages.again()?), receiving: receiving.transpose()? })
    }

    /// The receiver of OTLP. It also starts what tends it.
    fn receiving(
        &self,
        runtime: &Runtime,
        threads: &Threads,
        listeners: &Listeners,
        closing: &watch::Receiver<bool>,
    ) -> anyhow::Result<(Server, Listeners)> {
        let receive = &self.config.receive;
        let door = self.door.context("senders need a token")?;
        let keep = Box::new(threads.keep(receive));
        let redaction = self.settings.redaction.clone();
        let receiver = Receiver::new(Arc::clone(door), keep, redaction);
        let server = Server::new(
            Versions::OneAndTwo,
            receiver.router(),
            Slots::for_senders(),
            &receive.allow_uids,
            closing.clone(),
            Arc::clone(self.audit),
        );
        runtime.spawn(receiver.tend(closing.clone()));
        Ok((server, listeners.again()?))
    }

    fn search(&self, threads: &Threads) -> io::Result<Search> {
        let (commits, behind) = (threads.commits.clone(), threads.behind());
        let redaction = self.settings.redaction.clone();
        Search::start(self.readers(threads), &self.dir.search(), redaction, commits, behind)
    }

    /// The source of the pages' data.
    fn source(
        &self,
        threads: &Threads,
        search: &Search,
        destinations: &[Destination],
    ) -> StoreSource {
        let Self { dir, config, env, settings, .. } = *self;
        let hosts: Vec<_> =
            destinations.iter().map(|one| (one.name.clone(), one.endpoint_host())).collect();
        let links =
            destinations.iter().filter_map(|one| Some((one.name.clone(), one.link.clone()?)));
        let mut privacy = privacy(destinations.iter().map(|one| one.content));
        privacy.retention_days = retention_days(config.retention.max_age_ns);
        privacy.destinations = destinations.iter().map(|one| one.name.clone()).collect();
        let extras = Extras {
            links: links.collect(),
            privacy,
            install: Some(install_steps(dir, env)),
            resource: settings.resource.clone(),
            redaction: settings.redaction.clone(),
            preview: Some(Box::new(preview::asked(settings.clone(), destinations.to_vec()))),
            prices: config.prices.clone(),
            search_path: Some(dir.search()),
            search: Some(search.handle()),
            shim: plan::program(dir, Scope::User),
            suspicion: threads.signals.suspicion.clone(),
            audit: Some(asked(self.audit)),
            note_export: Some(noting_exports(self.audit)),
        };
        let source = StoreSource::new(&dir.database(), journal_health(threads), hosts);
        source.with(extras)
    }

    /// Writes the collector's address into the state directory. In the first run, also calls `ready`.
    fn announce(
        &self,
        listeners: &Listeners,
        receiving: Option<&Listeners>,
        ready: &mut Option<impl FnOnce(&Started<'_>) -> anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let written = |address: Option<SocketAddr>| address.map(|address| address.to_string());
        let receive = receiving.map(Listeners::address).transpose()?.flatten();
        let info = ServeInfo {
            pid: std::process::id(),
            address: written(listeners.address()?),
            receive: written(receive),
            receive_socket: receiving.and_then(Listeners::socket).map(Path::to_path_buf),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_ns: clock::now().0,
            token_required: self.config.dashboard.token,
            socket: listeners.socket().map(Path::to_path_buf),
            key: self.key.clone(),
            sandbox: self.held.words(),
        };
        info.write(self.dir)?;
        let Some(ready) = ready.take() else { return Ok(()) };
        let socket = || listeners.socket().map(|path| format!("unix:{}", path.display()));
        let place = info.url().or_else(socket).unwrap_or_default();
        ready(&Started { place, door: self.door.map(Arc::as_ref) })
    }
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("hookspan")
        .enable_all()
        .build()
}

fn journal_health(threads: &Threads) -> crate::source::AskJournal {
    let (reading, trouble) = (threads.reading(), threads.signals.trouble.subscribe());
    let unreadable = threads.unreadable();
    Box::new(move || {
        let Reading { usage, queued, queue_bound, read_up_to, problems } =
            reading.lock().unwrap_or_else(PoisonError::into_inner).clone();
        JournalHealth {
            segments: usage.segments,
            bytes: usage.bytes,
            behind_bytes: usage.pending_bytes,
            unread_bytes: usage.unread_bytes,
            read_up_to_ns: read_up_to.map(|at| at.0),
            queue: (queued as u64, queue_bound as u64),
            stopped: usage.stopped,
            problems: problems.iter().map(|one| (one.since.0, one.to_string())).collect(),
            // The examiner's reason is more precise than the engine's.
            trouble: unreadable
                .borrow()
                .as_deref()
                .or(trouble.borrow().as_deref())
                .map(str::to_owned),
        }
    })
}

/// Reads the audit log when a page asks for it.
fn asked(audit: &Arc<AuditFile>) -> AskAudit {
    let audit = Arc::clone(audit);
    Box::new(move || {
        let log = audit.read().map_err(|error| SourceError(error.to_string()))?;
        let entries = log.entries.into_iter().map(|one| (one.at_s, one.what, one.detail));
        let refused = log.refused.into_iter().map(|(what, one)| (what, one.count, one.last_s));
        Ok(Audit { entries: entries.collect(), dropped: log.dropped, refused: refused.collect() })
    })
}

fn noting_exports(audit: &Arc<AuditFile>) -> NoteExport {
    let audit = Arc::clone(audit);
    Box::new(move |detail| audit.note(What::Exported, detail))
}

/// The table of the privacy page: what is stored, and the most that may leave this computer.
fn privacy(contents: impl Iterator<Item = ContentPolicy>) -> Privacy {
    let most = contents.max_by_key(|content| *content as u8);
    let content = if most == Some(ContentPolicy::Full) { "full" } else { "none" };
    let named = match most {
        None | Some(ContentPolicy::Off) => "none",
        Some(_) => "full",
    };
    let class = |name, indexed, exported| PrivacyClass { name, stored: "full", indexed, exported };
    let classes = vec![
        class("prompts and answers", "redacted", content),
        class("thoughts", "redacted", content),
        class("commands and arguments", "redacted", content),
        class("output", "redacted", content),
        class("paths and names", "redacted", named),
        class("sizes, times, tokens", "none", if most.is_some() { "full" } else { "none" }),
    ];
    Privacy { classes, ..Privacy::default() }
}

/// Number of days after which sessions are deleted, at least one; `None` if they are kept.
fn retention_days(max_age_ns: i64) -> Option<u64> {
    const DAY_NS: i64 = 86_400_000_000_000;
    (max_age_ns > 0).then(|| (max_age_ns / DAY_NS).max(1).cast_unsigned())
}

/// Checks whether the hooks are installed when a page asks.
fn install_steps(dir: &StateDir, env: &Environment) -> AskInstall {
    let (dir, env) = (dir.clone(), env.clone());
    let pin_dir = !dir.is_found_from_home(&paths::places(&env));
    Box::new(move || {
        let step = |state, hint: &str| InstallStep {
            id: "install",
            state,
            command: Some("hookspan install".to_owned()),
            hint: hint.to_owned(),
        };
        let wish = Scope::User.path(&env).map(|path| Wish {
            scope: Scope::User,
            path,
            events: None,
            no_exec: false,
            pin_dir,
            git_exclude: false,
        });
        let install = match wish.map(|wish| Plan::install(&dir, &wish)) {
            None => step("failed", "there is no home folder: set HOME"),
            Some(Err(_)) => step("failed", "hooks.json cannot be read: `hookspan doctor` says why"),
            Some(Ok(plan)) if plan.is_done() => step("ok", "the hooks are in hooks.json"),
            Some(Ok(_)) => step("todo", "puts the hooks into Cursor's hooks.json"),
        };
        let restart = InstallStep {
            id: "restart",
            state: "todo",
            command: None,
            hint: "Restart Cursor if nothing arrives: it reads hooks.json when it starts"
                .to_owned(),
        };
        vec![install, restart]
    })
}

/// Changes that a page may request.
struct Controls {
    exporters: Arc<Exporters>,
    eraser: Eraser,
}

impl Control for Controls {
    fn retry(&self, destination: &str) -> Result<bool, SourceError> {
        Ok(self.exporters.retry(destination))
    }

    fn delete(&self, roots: &[String]) -> Result<Deleted, SourceError> {
        let deleted = self.eraser.delete(&Selection::sessions(roots));
        if let Ok(deleted) = &deleted {
            self.eraser.note(deleted, "on a page");
        }
        deleted.map_err(|error| SourceError(error.to_string()))
    }

    fn mark(&self, root: &str, changes: &[MarkChange]) -> Result<Marked, SourceError> {
        marks::change(&self.eraser.dir.database(), root, changes).map_err(unwritten)
    }

    fn save_filter(&self, filter: &SavedFilter) -> Result<bool, SourceError> {
        marks::save(&self.eraser.dir.database(), filter).map_err(unwritten)
    }

    fn forget_filter(&self, page: FilterPage, name: &str) -> Result<bool, SourceError> {
        marks::remove(&self.eraser.dir.database(), page, name).map_err(unwritten)
    }
}

fn unwritten(error: OpenError) -> SourceError {
    SourceError(error.to_string())
}

/// What listens.
struct Servers {
    pages: (Server, Listeners),
    receiving: Option<(Server, Listeners)>,
}

/// Serves pages, and receives OTLP, until a signal arrives.
async fn serve(
    servers: Servers,
    close: &watch::Sender<bool>,
    stop: Stop,
    mut restart: watch::Receiver<Option<Restart>>,
    replaced: impl Future<Output = ()>,
) -> anyhow::Result<Ended> {
    let (pages, listeners) = servers.pages;
    let mut server = tokio::spawn(pages.run(listeners));
    let receiving = servers.receiving.map(|(receiver, at)| tokio::spawn(receiver.run(at)));
    let ended = tokio::select! {
        ended = &mut server => {
            ended??;
            Ended::Asked
        }
        () = stop.asked() => Ended::Asked,
        why = wait_for_restart(&mut restart) => Ended::Restart(why),
        () = replaced => Ended::Replaced,
    };
    close.send_replace(true);
    // Pages that are still loading are cut off. The browser asks again.
    let both = async {
        let _ended = (&mut server).await;
        if let Some(receiving) = &receiving {
            while !receiving.is_finished() {
                tokio::time::sleep(GOODBYE / 20).await;
            }
        }
    };
    drop(tokio::time::timeout(GOODBYE / 2, both).await);
    server.abort();
    if let Some(receiving) = receiving {
        receiving.abort();
    }
    Ok(ended)
}

/// Ends when the state directory was replaced: hooks read from the new one would be committed to a deleted database.
async fn wait_for_replacement(lock: &Lock, dir: &StateDir) {
    while !lock.is_lost(dir) {
        tokio::time::sleep(LOOK_AT_LOCK).await;
    }
}

async fn wait_for_restart(restart: &mut watch::Receiver<Option<Restart>>) -> Restart {
    match restart.wait_for(Option::is_some).await.as_deref().copied() {
        Ok(Some(why)) => why,
        // The engine has ended without a request, so the collector ends soon, too.
        _ => std::future::pending().await,
    }
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
