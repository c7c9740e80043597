//! A running `hookspan serve`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::wait::{SOON, eventually};
use crate::world::World;

/// A debug build reads a long journal slowly.
const PATIENCE: Duration = Duration::from_secs(120);

/// The collector of one [`World`]. When dropped, it is stopped as a person would do it (SIGTERM).
#[derive(Debug)]
pub struct Collector<'a> {
    world: &'a World,
    child: Child,
    /// `http://127.0.0.1:PORT`, without a trailing slash.
    pub url: String,
    /// The credential for the API: the key that the owner's commands use, or a token made for this test.
    pub token: String,
}

impl<'a> Collector<'a> {
    /// Starts it on a free port and waits for its address.
    #[track_caller]
    #[must_use]
    pub fn start(world: &'a World) -> Self {
        Self::start_with(world, &[])
    }

    /// The same with more arguments.
    #[track_caller]
    #[must_use]
    pub fn start_with(world: &'a World, arguments: &[&str]) -> Self {
        Self::watch(world, spawn(world, "serve", arguments))
    }

    /// The same with `hookspan up`, which installs first.
    #[track_caller]
    #[must_use]
    pub fn up(world: &'a World, arguments: &[&str]) -> Self {
        Self::watch(world, spawn(world, "up", arguments))
    }

    /// The same, started by another program with arguments: `strace`, `prlimit`, `faketime` ...
    #[track_caller]
    #[must_use]
    pub fn start_below(world: &'a World, wrapper: &[&str]) -> Self {
        Self::watch(world, spawn_below(world, wrapper, "serve", &[]))
    }

    #[track_caller]
    fn watch(world: &'a World, mut child: Child) -> Self {
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        // `serve` prints the address first. `up` may have printed something about the installation before.
        let address = loop {
            let mut line = String::new();
            if stdout.read_line(&mut line).unwrap() == 0 {
                let status = child.wait().unwrap();
                panic!("no address from the collector, {status}: {said:?}\n{}", log(world));
            }
            said.push_str(&line);
            if let Some(address) = line.split_whitespace().find(|word| word.starts_with("http://"))
            {
                break address.to_owned();
            }
        };
        // Keep reading: a full pipe would stop the collector.
        thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        let (url, fragment) = address.split_once('#').unwrap_or((&address, ""));
        let url = url.strip_suffix("/login").unwrap_or(url).trim_end_matches('/').to_owned();
        // An output that is not a terminal gets no code, because it may be a log. An earlier release printed its one
        // token here.
        assert!(fragment.is_empty() || fragment.starts_with("t="), "{address}");
        let token = match fragment.strip_prefix("t=") {
            Some(token) => token.to_owned(),
            None => token_of(world),
        };
        Self { world, child, url, token }
    }

    /// An address that signs one browser in, once.
    #[track_caller]
    #[must_use]
    pub fn login(&self) -> String {
        self.world.ok(&["open", "--print"]).trim().to_owned()
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Whether the process still lives.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// The most memory it has had, KiB.
    #[must_use]
    pub fn peak_memory_kib(&self) -> u64 {
        let pid = self.pid().as_raw_nonzero();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
        line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// Waits until the process, which was told to end elsewhere, has released the state directory.
    #[track_caller]
    pub fn gone(&self) {
        eventually("the collector ends", SOON, || {
            let running = self.world.json(&["status", "--json"])["running"].clone();
            if running == false { Ok(()) } else { Err(log(self.world)) }
        });
    }

    /// Waits until nothing is left in the journal.
    #[track_caller]
    pub fn drained(&self, patience: Duration) {
        eventually("the journal is stored", patience, || {
            let status = self.world.json(&["status", "--json"]);
            if status["backlog"] == 0 {
                return Ok(());
            }
            Err(format!("{status:#}\n{}\n{}", self.world.describe(), log(self.world)))
        });
    }

    /// Asks the API; `path` starts after `/api/v1/`.
    pub fn get(&self, path: &str) -> Result<Value, String> {
        let text = self.get_text(&format!("{}/api/v1/{path}", self.url))?;
        serde_json::from_str(&text).map_err(|error| format!("{path}: {error}: {text}"))
    }

    /// A GET of any address with the token.
    pub fn get_text(&self, url: &str) -> Result<String, String> {
        ureq::get(url)
            .header("authorization", format!("Bearer {}", self.token))
            .config()
            .timeout_global(Some(Duration::from_secs(10)))
            .build()
            .call()
            .and_then(|mut answer| answer.body_mut().read_to_string())
            .map_err(|error| format!("GET {url}: {error}"))
    }

    /// Posts to the API; `path` starts after `/api/v1/`.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        let text = ureq::post(&format!("{}/api/v1/{path}", self.url))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .config()
            .timeout_global(Some(PATIENCE))
            .build()
            .send(&body.to_string())
            .and_then(|mut answer| answer.body_mut().read_to_string())
            .map_err(|error| format!("POST {path}: {error}"))?;
        serde_json::from_str(&text).map_err(|error| format!("{path}: {error}: {text}"))
    }

    /// Waits until `hooks` hooks are committed: nothing is left in the journal, and the raw log, as `export --format
    /// jsonl` gives it, has that many lines.
    #[track_caller]
    pub fn committed(&self, hooks: usize) {
        let world = self.world;
        eventually(&format!("{hooks} hooks committed"), PATIENCE, || {
            let status = world.json(&["status", "--json"]);
            if status["backlog"] != 0 {
                return Err(format!("{status:#}\n{}\n{}", world.describe(), log(world)));
            }
            match world
                .ok(&["export", "--all", "--format", "jsonl", "--content", "full"])
                .lines()
                .count()
            {
                stored if stored >= hooks => Ok(()),
                stored => Err(format!("{stored} stored, {status:#}\n{}", log(world))),
            }
        });
    }

    /// SIGKILL, now.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM; returns the exit status and how long it took.
    #[track_caller]
    pub fn stop(mut self) -> (ExitStatus, Duration) {
        self.terminate()
    }

    #[track_caller]
    fn terminate(&mut self) -> (ExitStatus, Duration) {
        let started = Instant::now();
        kill_process(self.pid(), Signal::TERM).unwrap();
        let status = eventually("serve ends after SIGTERM", SOON, || {
            self.child.try_wait().unwrap().ok_or_else(|| log(self.world))
        });
        (status, started.elapsed())
    }
}

impl Drop for Collector<'_> {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_some() {
            return;
        }
        if thread::panicking() {
            // The test has already failed. The log helps more than another panic.
            eprintln!("{}\n{}", log(self.world), self.world.describe());
            self.child.kill().unwrap();
            self.child.wait().unwrap();
            return;
        }
        self.terminate();
    }
}

/// Starts `hookspan serve` or `up` on a free port without waiting for anything, for kills during the start.
#[must_use]
pub fn spawn(world: &World, command: &str, arguments: &[&str]) -> Child {
    spawn_below(world, &[], command, arguments)
}

/// The same below another program.
#[must_use]
pub fn spawn_below(world: &World, wrapper: &[&str], command: &str, arguments: &[&str]) -> Child {
    let log = File::options().create(true).append(true).open(log_path(world)).unwrap();
    let hookspan = world.hookspan();
    let mut program: Command = match wrapper {
        [] => world.command(&hookspan),
        [first, rest @ ..] => {
            let mut outer = world.command(std::path::Path::new(first));
            outer.args(rest).arg(&hookspan);
            outer
        }
    };
    program.args([command, "--listen", "127.0.0.1:0"]).args(arguments);
    program.stdout(Stdio::piped()).stderr(log).spawn().unwrap()
}

/// What the collectors of this world wrote to standard error.
#[must_use]
pub fn log(world: &World) -> String {
    let mut text = String::new();
    if let Ok(mut file) = File::open(log_path(world)) {
        file.read_to_string(&mut text).unwrap();
    }
    format!("collector's standard error:\n{text}")
}

fn log_path(world: &World) -> std::path::PathBuf {
    world.scratch("serve.log")
}

/// The key in `serve.json`, which the owner's commands use. If the state directory is elsewhere, that file is not
/// found, and a token is created instead.
fn token_of(world: &World) -> String {
    let info = std::fs::read(world.state().join("serve.json")).unwrap_or_default();
    let info: Value = serde_json::from_slice(&info).unwrap_or_default();
    match info["key"].as_str() {
        Some(key) => key.to_owned(),
        None => world.ok(&["token", "create", "e2e"]).trim().to_owned(),
    }
}
