//! Makes system calls of a real collector fail: each kind, at each point, once or repeatedly.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{extend, send, settle};
use crate::collector::{self, Collector};
use crate::ledger::Ledger;
use crate::machine;
use crate::player::{self, Reply};
use crate::wait::{eventually, pause};
use crate::world::World;

/// A kind of call: its name for `strace`, how it fails, and the files that it is applied to.
struct Call {
    name: &'static str,
    traced: &'static str,
    errors: &'static [&'static str],
    files: &'static [&'static str],
}

/// Files of the journal. The empty name is the state directory itself.
const JOURNAL: &[&str] = &[
    "",
    "journal",
    "journal.new",
    "journal.link",
    "journal.stop",
    "seg-1",
    "seg-2",
    "seg-3",
    "losses",
];
/// Files of the database.
const DATABASE: &[&str] = &["hookspan.db", "hookspan.db-wal", "hookspan.db-shm"];

const CALLS: &[Call] = &[
    Call {
        name: "openat",
        traced: "?open,openat",
        errors: &["EMFILE", "EACCES", "ENFILE"],
        files: JOURNAL,
    },
    Call {
        name: "rename",
        traced: "?rename,?renameat,renameat2",
        errors: &["EACCES", "ENOSPC"],
        files: JOURNAL,
    },
    Call { name: "link", traced: "?link,linkat", errors: &["ENOSPC", "EMLINK"], files: JOURNAL },
    Call {
        name: "unlink",
        traced: "?unlink,unlinkat",
        errors: &["EACCES", "EBUSY"],
        files: JOURNAL,
    },
    Call { name: "fallocate", traced: "fallocate", errors: &["ENOSPC", "EINTR"], files: JOURNAL },
    Call { name: "fdatasync", traced: "fdatasync", errors: &["EIO", "ENOSPC"], files: JOURNAL },
    Call { name: "fsync", traced: "fsync", errors: &["EIO"], files: JOURNAL },
    Call {
        name: "pread64",
        traced: "pread64",
        errors: &["EIO", "EINTR", "ESTALE"],
        files: JOURNAL,
    },
    Call {
        name: "stat",
        traced: "?fstat,?lstat,?stat,?newfstatat,?statx",
        errors: &["EIO", "ESTALE"],
        files: JOURNAL,
    },
    Call { name: "getdents64", traced: "getdents64", errors: &["EIO"], files: JOURNAL },
    Call { name: "fcntl", traced: "fcntl", errors: &["EAGAIN"], files: JOURNAL },
    Call { name: "db-pwrite64", traced: "pwrite64", errors: &["EIO", "ENOSPC"], files: DATABASE },
    Call { name: "db-pread64", traced: "pread64", errors: &["EIO", "EINTR"], files: DATABASE },
    Call { name: "db-sync", traced: "fsync,fdatasync", errors: &["EIO"], files: DATABASE },
    Call {
        name: "db-openat",
        traced: "?open,openat",
        errors: &["EMFILE", "EACCES"],
        files: DATABASE,
    },
    Call {
        name: "db-stat",
        traced: "?fstat,?stat,?newfstatat,?statx",
        errors: &["EIO", "ESTALE"],
        files: DATABASE,
    },
    Call { name: "db-fcntl", traced: "fcntl", errors: &["ENOLCK", "EIO"], files: DATABASE },
];

/// Which calls of a kind fail. Each thread counts its own.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// That one.
    Once(u64),
    /// Ten from that one on.
    Ten(u64),
    /// Every third call, as long as the collector runs.
    Often,
}

/// Segments of one mebibyte. Forty hooks and some larger ones fill more than one.
const CONFIG: &str = "[journal]\nsegment_bytes = 1048576\n";
/// How long a collector may take to start or to give up. It tries for 10 s to open a database that cannot be opened.
const START: Duration = Duration::from_secs(60);
/// How long the collector may take to store everything once calls work again, and how long it may try if they keep
/// failing.
const PATIENCE: Duration = Duration::from_secs(120);
const GIVEN: Duration = Duration::from_secs(3);
/// How long a collector may take to stop.
const STOP: Duration = Duration::from_secs(20);

/// Tries every kind of call, or one, at this number of points. Returns false if one failed.
#[must_use]
#[expect(clippy::print_stdout, reason = "the figures are the output")]
pub fn run(only: Option<&str>, points: u64, program: Option<&Path>, seed: u64) -> bool {
    let mut right = true;
    for call in CALLS.iter().filter(|call| only.is_none_or(|only| only == call.name)) {
        // The first calls are those of the start. The distance between tried calls grows.
        let points = (0..points).map(|point| 1 + point * (point + 1) / 2);
        let once = points.clone().map(When::Once);
        let all = once.chain(points.step_by(2).map(When::Ten)).chain([When::Often]);
        let mut sum = Sum::default();
        for when in all {
            match catch_unwind(AssertUnwindSafe(|| one(call.name, when, program, seed))) {
                Ok(Ok(tried)) => sum.add(&tried),
                Ok(Err(reason)) => println!("{}: SKIPPED: {reason}", call.name),
                Err(_) => {
                    println!("{}: FAILED, {when:?}, seed {seed}", call.name);
                    right = false;
                }
            }
        }
        println!("{}: {sum}", call.name);
    }
    right
}

/// Result of one run. Every accepted hook is stored once, otherwise the run panics.
#[derive(Debug)]
pub struct Tried {
    /// Calls that failed.
    pub failed: u64,
    /// Whether the collector served. A start that fails is repeated without faults.
    pub served: bool,
    /// Hooks that were accepted.
    pub hooks: u64,
}

#[derive(Default)]
struct Sum {
    runs: u64,
    served: u64,
    failed: u64,
    hooks: u64,
}

impl Sum {
    fn add(&mut self, tried: &Tried) {
        self.runs += 1;
        self.served += u64::from(tried.served);
        self.failed += tried.failed;
        self.hooks += tried.hooks;
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { runs, served, failed, hooks } = self;
        write!(
            f,
            "{runs} runs without a loss, {failed} calls failed, {served} collectors served all the same; "
        )?;
        write!(f, "{hooks} hooks, 0 lost, 0 twice")
    }
}

/// Makes one kind of call fail as `when` says, while hooks arrive and the journal rolls. Every accepted hook must be
/// stored once, by this collector or the next one.
///
/// # Errors
/// `strace` is missing.
pub fn one(name: &str, when: When, program: Option<&Path>, seed: u64) -> Result<Tried, String> {
    machine::tool("strace")?;
    let call = CALLS.iter().find(|call| call.name == name).ok_or("no such call")?;
    let mut world = World::new();
    world.write_config(CONFIG);
    world.set_program(program.map(Path::to_owned));
    world.shim();
    if call.files == DATABASE {
        // The first migration is not part of this test: a start that cannot create the database ends.
        drop(Collector::start(&world));
    }
    let mut ledger = send(&world, 20, seed);
    let log = world.scratch("strace.log");
    let from = match when {
        When::Once(point) | When::Ten(point) => point,
        When::Often => 3,
    };
    let error = call.errors[(from as usize) % call.errors.len()];
    let wrapper = wrapper(&world, call, when, error, &log);
    let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
    let mut running = Running::start(&world, &wrapper);
    let served = running.is_some();
    if let Some(running) = &mut running {
        extend(&mut ledger, &world, 120, seed);
        roll(&world, &mut ledger);
        stored_or_held(&world, &ledger, running, matches!(when, When::Often));
    }
    drop(running);
    // A call that fails is no damage.
    let state = fs::read_dir(world.state()).unwrap().flatten();
    let aside: Vec<_> = state
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().starts_with("damaged-"))
        .collect();
    assert!(aside.is_empty(), "{aside:?}\n{}", collector::log(&world));
    let failed = fs::read_to_string(&log).unwrap_or_default().matches("(INJECTED)").count() as u64;
    settle(&world, &ledger);
    Ok(Tried { failed, served, hooks: ledger.accepted() as u64 })
}

fn wrapper(world: &World, call: &Call, when: When, error: &str, log: &Path) -> Vec<String> {
    let when = match when {
        When::Once(point) => point.to_string(),
        When::Ten(point) => format!("{point}..{}", point + 9),
        When::Often => "3+3".to_owned(),
    };
    let mut words =
        ["strace", "-f", "-qq", "-o", log.to_str().unwrap()].map(str::to_owned).to_vec();
    words.extend(["-e".to_owned(), format!("trace={}", call.traced)]);
    words.extend(["-e".to_owned(), format!("inject={}:error={error}:when={when}", call.traced)]);
    for file in call.files {
        let path = if file.is_empty() { world.state() } else { world.state().join(file) };
        words.extend(["-P".to_owned(), path.display().to_string()]);
    }
    words
}

/// Adds larger hooks until the journal is larger than a segment.
fn roll(world: &World, ledger: &mut Ledger) {
    let first = ledger.accepted() as u64;
    for number in first..first + 20 {
        let reply: Reply = player::hook(world, "afterAgentThought", &crate::ledger::mixed(number));
        ledger.enter(number, reply);
    }
}

/// Waits until everything is stored. If calls keep failing, the collector may leave hooks in the journal, and the next
/// one stores them.
fn stored_or_held(world: &World, ledger: &Ledger, running: &mut Running, held: bool) {
    let waited = Instant::now();
    let patience = if held { GIVEN } else { PATIENCE };
    eventually("everything is stored", PATIENCE * 2, || {
        let status = world.run(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap_or_default();
        let done = status["backlog"] == 0 || waited.elapsed() > patience || running.has_ended();
        if done { Ok(()) } else { Err(format!("{} hooks, {status:#}", ledger.accepted())) }
    });
}

/// A collector below `strace`. The collector may have refused to start.
struct Running {
    child: std::process::Child,
}

impl Running {
    /// Waits until the collector serves. Returns `None` if it ended instead, because a start may fail and is then
    /// repeated.
    fn start(world: &World, wrapper: &[&str]) -> Option<Self> {
        let mut child = collector::spawn_below(world, wrapper, "serve", &[]);
        let started = Instant::now();
        while started.elapsed() < START {
            if child.try_wait().unwrap().is_some() {
                return None;
            }
            if world.state().join("serve.json").exists() {
                return Some(Self { child });
            }
            pause(Duration::from_millis(10));
        }
        Some(Self { child })
    }
}

impl Running {
    /// Whether the collector ended by itself. The next one stores the rest.
    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Sends a signal to the collector itself, because a tracer that is killed only detaches from the collector. The
    /// tracer ends after the collector.
    fn signal(&self, signal: Signal) {
        let tracer = self.child.id();
        let path = format!("/proc/{tracer}/task/{tracer}/children");
        let traced = fs::read_to_string(path).unwrap_or_default();
        for pid in
            traced.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        {
            let _may_have_ended = kill_process(pid, signal);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        let asked = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            // A kill loses nothing either.
            if asked.elapsed() > STOP {
                self.signal(Signal::KILL);
            }
            pause(Duration::from_millis(10));
        }
    }
}
