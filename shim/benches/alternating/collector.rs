//! Measures hooks while the collector is in each of its states. The state must not change what a hook costs.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hookspan_shim::frame::{HEADER_BYTES, LAST, seal};
use hookspan_shim::record::{METADATA_MAX, Stamp, encode};

use crate::measure::{Channel, Folder, Result, body, build, measure, ours};

const FLOOR: usize = 0;
const DRAIN: usize = 1;
const SHIM: usize = 2;

/// Records written to the journal before every hundredth round, so that a busy collector stays busy.
const BACKLOG: u64 = 4_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Idle,
    Busy,
    Hung,
    Restarting,
}

pub(crate) fn run(rounds: usize, built: Option<&Path>, folder: &Folder) -> Result<()> {
    let programs = ours(folder)?;
    let collector = match built {
        Some(path) => path.to_path_buf(),
        None => build(&["--release", "-p", "hookspan"])?.join("release/hookspan"),
    };
    let mut out = stdout();
    writeln!(out, "{rounds} rounds, alternated; 4 KiB on a socket; microseconds")?;
    writeln!(out, "| collector | floor | drain | shim | p99 | / floor | / drain |")?;
    writeln!(out, "|---|---|---|---|---|---|---|")?;
    for state in [State::Absent, State::Idle, State::Busy, State::Hung, State::Restarting] {
        let times = with(state, &collector, folder, |folder| {
            let mut next = 0;
            measure(rounds, &programs, &body(4_096), Channel::Socket, || {
                if state == State::Busy {
                    pile_up(&folder.state().join("journal"), &mut next)?;
                }
                Ok(())
            })
        })?;
        writeln!(
            out,
            "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} | {:.2} |",
            format!("{state:?}").to_lowercase(),
            times.median(FLOOR),
            times.median(DRAIN),
            times.median(SHIM),
            times.tail(SHIM),
            times.ratio(SHIM, FLOOR),
            times.ratio(SHIM, DRAIN),
        )?;
    }
    Ok(())
}

/// Calls `what` while the collector is in `state`.
fn with<T>(
    state: State,
    collector: &Path,
    folder: &Folder,
    what: impl FnOnce(&Folder) -> Result<T>,
) -> Result<T> {
    if state == State::Absent {
        return what(folder);
    }
    let mut running = Collector::start(collector, folder)?;
    match state {
        State::Hung => {
            running.signal("-STOP")?;
            let result = what(folder);
            running.signal("-CONT")?;
            result
        }
        State::Restarting => {
            let over = AtomicBool::new(false);
            thread::scope(|scope| {
                let restarts = scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let Ok(next) = running.restart() else { return };
                        running = next;
                        thread::sleep(Duration::from_millis(50));
                    }
                });
                let result = what(folder);
                over.store(true, Ordering::Relaxed);
                let _ = restarts.join();
                result
            })
        }
        _ => what(folder),
    }
}

/// A running collector; killed when dropped.
struct Collector {
    child: Child,
    program: PathBuf,
    state: PathBuf,
}

impl Collector {
    /// Starts the collector and waits for its first line, which says that it serves.
    fn start(program: &Path, folder: &Folder) -> Result<Self> {
        Self::start_in(program, &folder.state())
    }

    fn start_in(program: &Path, state: &Path) -> Result<Self> {
        // The collector runs at normal priority. It must not inherit the priority of the benchmark and compete with the
        // measured programs.
        let mut child = Command::new("chrt")
            .args(["--other", "0"])
            .arg(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--dir"])
            .arg(state)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(state.join("bench.log"))?)
            .spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut line = String::new();
        if stdout.read_line(&mut line)? == 0 {
            let said = std::fs::read_to_string(state.join("bench.log"))?;
            return Err(format!("{} does not serve: {said}", program.display()).into());
        }
        // The output must be read to the end, because a full pipe would stop the collector.
        thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        Ok(Self { child, program: program.to_path_buf(), state: state.to_path_buf() })
    }

    /// Kills the collector and starts a new one.
    fn restart(&mut self) -> std::result::Result<Self, ()> {
        let _ = self.child.kill();
        let _ = self.child.wait();
        Self::start_in(&self.program, &self.state).map_err(|_| ())
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status()?;
        if sent.success() { Ok(()) } else { Err(format!("kill {signal}: {sent}").into()) }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Appends records as shims would. `next` is the number of the first record.
fn pile_up(journal: &Path, next: &mut u64) -> Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(journal)?;
    let body = body(4_096);
    let mut frame = vec![0; HEADER_BYTES + METADATA_MAX];
    for _ in 0..BACKLOG {
        *next += 1;
        frame.resize(HEADER_BYTES + METADATA_MAX, 0);
        let stamp = Stamp { wall_ns: 1_780_000_000_000_000_000 + *next, ..Stamp::default() };
        let place = frame.get_mut(HEADER_BYTES..).unwrap_or_default();
        let meta_bytes = encode(place, &stamp, &[]).ok_or("no room for metadata")?;
        frame.truncate(HEADER_BYTES + usize::from(meta_bytes));
        frame.extend_from_slice(&body);
        seal(&mut frame, *next, 0, meta_bytes, LAST);
        file.write_all(&frame)?;
    }
    Ok(())
}
