//! Runs programs in the environment of a Cursor that was started from the desktop.
//!
//! No shell start-up file was read in such an environment: `PATH` is short, and `HOOKSPAN_DIR`, `XDG_STATE_HOME` and
//! other variables of the caller's shell are not set.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::clock;
use crate::config::{Environment, Global};

/// Maximum time for a program: 5 s. A hook takes about a millisecond, and a person waits for the result.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum size of an answer that is read. A hook's answer is a few bytes.
const ANSWER_MAX_BYTES: u64 = 64 << 10;
/// How often a running program is checked.
const LOOK: Duration = Duration::from_micros(200);

/// Variables of a desktop session, apart from `HOME` and `PATH`.
const SESSION: [&str; 12] = [
    "USER",
    "LOGNAME",
    "LANG",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_TYPE",
    "XDG_CURRENT_DESKTOP",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    // Windows has no home without these.
    "SystemRoot",
    "USERPROFILE",
    "LOCALAPPDATA",
    "APPDATA",
];

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ran {
    /// Exit code; -1 if a signal ended the program, `None` if the program did not end in time.
    pub code: Option<i32>,
    pub stdout: String,
    pub took: Duration,
}

/// The environment of a desktop session as a value, for resolving paths as a hook would.
pub(super) fn environment(global: &Global) -> Environment {
    let kept = |name: &str| Some((name.to_owned(), global.env.var(name)?.to_owned()));
    let mut variables: Vec<(String, String)> = SESSION.into_iter().filter_map(kept).collect();
    if let Some(home) = global.env.home().and_then(|home| home.to_str()) {
        variables.push(("HOME".to_owned(), home.to_owned()));
    }
    let pairs: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Environment::of(&pairs, global.env.current_dir())
}

/// A program in that environment. If `home` is given, it replaces the home folder.
pub(super) fn command(global: &Global, program: &Path, home: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    for name in SESSION {
        if let Some(value) = global.env.var(name) {
            command.env(name, value);
        }
    }
    if let Some(home) = home.or(global.env.home().map(std::path::PathBuf::as_path)) {
        command.env("HOME", home);
    }
    if let Some(home) = home {
        // If nothing can be stored below `home`, it must not be stored elsewhere.
        command.env("XDG_RUNTIME_DIR", home).env("LOCALAPPDATA", home);
    }
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    // Set in the same way as Cursor sets it for every hook.
    command.env("CURSOR_VERSION", "0.0.0");
    command
}

/// Runs the program to its end with `input` on its standard input.
///
/// # Errors
/// It cannot be started.
pub(super) fn run<A: AsRef<OsStr>>(
    mut command: Command,
    arguments: impl IntoIterator<Item = A>,
    input: &str,
) -> io::Result<Ran> {
    let started = clock::instant();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // If a program does not read its input, its answer is wrong, and that is reported.
        let _written = stdin.write_all(input.as_bytes());
    }
    let code = wait(&mut child, started)?;
    let took = clock::instant().duration_since(started);
    let mut stdout = Vec::new();
    if let (Some(out), Some(_)) = (child.stdout.take(), code) {
        out.take(ANSWER_MAX_BYTES).read_to_end(&mut stdout)?;
    }
    Ok(Ran { code, stdout: String::from_utf8_lossy(&stdout).into_owned(), took })
}

fn wait(child: &mut Child, started: Instant) -> io::Result<Option<i32>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.code().unwrap_or(-1)));
        }
        if clock::instant().duration_since(started) > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}
