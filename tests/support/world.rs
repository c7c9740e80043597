//! An empty machine with its own home, state and environment.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::binaries;
use crate::machine;
use crate::wait::pause;

/// Prefix of a world's folder. The id of the process that made it follows.
const PREFIX: &str = "hookspan-e2e-";
/// How long a killed process may take to disappear. A disk that does not answer can delay it without end.
const KILLED: Duration = Duration::from_secs(2);

/// A temporary home with nothing in it. Programs started in it see none of the variables of the person who runs the
/// tests, above all no `OTEL_*` and no `CURSOR_*`.
#[derive(Debug)]
pub struct World {
    root: TempDir,
    environment: Vec<(String, String)>,
    program: Option<PathBuf>,
    shim: OnceLock<PathBuf>,
    uid: Option<u32>,
}

/// What a finished program left.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl World {
    /// A new, empty one.
    #[must_use]
    pub fn new() -> Self {
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let root = tempfile::Builder::new().prefix(&prefix).tempdir().unwrap();
        for folder in ["home", "run"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root, environment: Vec::new(), program: None, shim: OnceLock::new(), uid: None }
    }

    /// Removes what killed runs have left behind, including their collectors. A long run leaves gigabytes.
    pub fn clear_up() {
        for folder in machine::left_behind(&std::env::temp_dir(), PREFIX) {
            let serving = folder.join("home/.local/state/hookspan/serve.json");
            let serving: Option<Value> =
                fs::read(serving).ok().and_then(|text| serde_json::from_slice(&text).ok());
            let pid = serving.and_then(|found| Pid::from_raw(found["pid"].as_i64()? as i32));
            if let Some(pid) = pid {
                // The collector may have ended long ago, and another process may have its number now. So the
                // environment is compared.
                let home = format!("HOME={}\0", folder.join("home").display());
                let environ = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
                if environ.is_ok_and(|all| String::from_utf8_lossy(&all).contains(&home)) {
                    let _ended = kill_process(pid, Signal::KILL);
                    let (started, number) = (Instant::now(), pid.as_raw_nonzero().to_string());
                    while machine::is_alive(&number) && started.elapsed() < KILLED {
                        pause(Duration::from_millis(2));
                    }
                }
            }
            machine::unmount_below(&folder);
            let _removed = fs::remove_dir_all(folder);
        }
        machine::clear_up();
    }

    /// Sets a variable for every program started from now on.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The world of another account, with its home, run-time directory and programs. Needs root.
    #[must_use]
    pub fn owned_by(mut self, uid: u32) -> Self {
        fs::set_permissions(self.root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for folder in ["home", "run"] {
            chown(self.root.path().join(folder), Some(uid), Some(uid)).unwrap();
        }
        self.uid = Some(uid);
        if uid != 0 && self.program.is_none() {
            self.program = Some(binaries::hookspan_for_everyone().to_owned());
        }
        self
    }

    /// Runs a copy of the hook program that was installed in another world. Nothing is installed in this one.
    pub fn borrow_shim(&mut self, other: &Self) {
        let copy = self.scratch("hookspan-shim");
        fs::copy(other.shim(), &copy).unwrap();
        self.shim = OnceLock::from(copy);
    }

    /// Runs another build of hookspan from now on, such as an earlier release.
    pub fn set_program(&mut self, program: Option<PathBuf>) {
        self.program = program;
    }

    /// The program under test.
    #[must_use]
    pub fn hookspan(&self) -> PathBuf {
        self.program.clone().unwrap_or_else(|| binaries::hookspan().to_owned())
    }

    /// `$HOME`.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Where hookspan keeps its state by default.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.home().join(".local/state/hookspan")
    }

    /// A path in the world that is not in a home.
    #[must_use]
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes the configuration file.
    pub fn write_config(&self, text: &str) -> PathBuf {
        self.write_home(".config/hookspan/config.toml", text)
    }

    /// Writes a file below `$HOME`, with its folders.
    pub fn write_home(&self, path: &str, text: &str) -> PathBuf {
        let path = self.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// A program in this world.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("XDG_RUNTIME_DIR", self.root.path().join("run"))
            .env("NO_COLOR", "1")
            // Days of the terminal are those of the machine. A test that needs another zone sets it.
            .env("TZ", "UTC")
            .current_dir(self.home())
            .stdin(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(uid) = self.uid {
            command.uid(uid).gid(uid);
        }
        command
    }

    /// Runs `hookspan` with these arguments to its end.
    #[must_use]
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Finished {
        Finished::from(self.command(&self.hookspan()).args(arguments).output().unwrap())
    }

    /// Runs `hookspan` and expects success; returns standard output.
    #[track_caller]
    pub fn ok<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        let finished = self.run(arguments);
        assert_eq!(finished.code, 0, "{:?}: {finished:#?}", shown(arguments));
        finished.stdout
    }

    /// Runs `hookspan` and expects success and JSON. `status` and `doctor` exit with 1 to report that something is
    /// wrong; that counts as success here.
    #[track_caller]
    pub fn json<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Value {
        let finished = self.run(arguments);
        let tells = ["status", "doctor"]
            .iter()
            .any(|command| arguments.first().is_some_and(|first| first.as_ref() == *command));
        let fine = finished.code == 0 || (tells && finished.code == 1);
        assert!(fine, "{:?}: {finished:#?}", shown(arguments));
        let text = finished.stdout;
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{:?} gave no JSON: {error}\n{text}", shown(arguments)))
    }

    /// The hook program that `hookspan install` leaves, the one that a user's hooks.json names. Installs it at first
    /// use.
    #[track_caller]
    pub fn shim(&self) -> &Path {
        self.shim.get_or_init(|| {
            self.ok(&["install", "--scope", "user", "--events", "all"]);
            let hooks = fs::read_to_string(self.home().join(".cursor/hooks.json")).unwrap();
            let hooks: Value = serde_json::from_str(&hooks).unwrap();
            let command = hooks["hooks"]["stop"][0]["command"].as_str().unwrap();
            PathBuf::from(first_word(command.trim_start_matches("exec ")))
        })
    }

    /// Installs below another program (`strace`, `prlimit` ...), like [`crate::collector::Collector::start_below`].
    #[track_caller]
    pub fn install_below(&self, wrapper: &[&str]) {
        let mut command = self.command(Path::new(wrapper[0]));
        command.args(&wrapper[1..]).arg(self.hookspan());
        let done = Finished::from(command.args(["install", "--scope", "user"]).output().unwrap());
        assert_eq!(done.code, 0, "{done:#?}");
    }

    /// Installs, and runs a copy of the hook program from now on, because the file system with the state is about to be
    /// broken.
    #[track_caller]
    pub fn copy_shim(&mut self) {
        let copy = self.scratch("hookspan-shim");
        fs::copy(self.shim(), &copy).unwrap();
        self.shim = OnceLock::from(copy);
    }

    /// Describes the world when a test fails: files with sizes, and the end of each log.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut lines = Vec::new();
        list(self.root.path(), self.root.path(), &mut lines);
        lines.join("\n")
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The first word of a command line, as a shell reads it: a path may be quoted.
fn first_word(command: &str) -> String {
    let script = format!("set -- {command}; printf %s \"$1\"");
    let words = Command::new("sh").args(["-c", &script]).output().unwrap();
    String::from_utf8(words.stdout).unwrap()
}

fn shown<S: AsRef<OsStr>>(arguments: &[S]) -> Vec<&OsStr> {
    arguments.iter().map(AsRef::as_ref).collect()
}

fn list(root: &Path, folder: &Path, lines: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            list(root, &path, lines);
            continue;
        }
        let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
        lines.push(format!("  {} {bytes} bytes", path.strip_prefix(root).unwrap().display()));
        if path.extension().is_some_and(|extension| extension == "log") {
            lines.extend(
                fs::read_to_string(&path)
                    .unwrap_or_default()
                    .lines()
                    .rev()
                    .take(20)
                    .map(|line| format!("    {line}")),
            );
        }
    }
}
