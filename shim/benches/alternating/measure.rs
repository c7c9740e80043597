//! Runs programs in turns and measures their times.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{self, PipeWriter, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Rounds that are not counted.
const WARM_UP: usize = 20;

/// A folder for state and scripts. It is removed when the value is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Result<Self> {
        let path = env::temp_dir().join(format!("hookspan-bench-{}", std::process::id()));
        // Other users must not be able to enter it. Otherwise the collector refuses the folder.
        let mut private = fs::DirBuilder::new();
        private.recursive(true).mode(0o700).create(path.join("state"))?;
        Ok(Self(path))
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.join("state")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What is run for a hook.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) name: String,
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    /// A program with the same arguments and input as the hook program.
    pub(crate) fn like_ours(name: &str, program: &Path, folder: &Folder) -> Self {
        let arguments = vec!["--dir".into(), folder.state().into(), "preToolUse".into()];
        Self { name: name.to_owned(), program: program.to_path_buf(), arguments }
    }

    pub(crate) fn new(name: &str, program: &Path, arguments: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            program: program.to_path_buf(),
            arguments: arguments.iter().map(OsString::from).collect(),
        }
    }
}

/// Builds the floor, the drain and the hook program in the shipped profile.
pub(crate) fn ours(folder: &Folder) -> Result<Vec<Program>> {
    let built = build(&["--profile", "shim", "-p", "hookspan-shim", "--bins", "--examples"])?;
    let at = |name: &str, path| Program::like_ours(name, &built.join("shim").join(path), folder);
    Ok(vec![
        at("floor", "examples/floor"),
        at("drain", "examples/drain"),
        at("shim", "hookspan-shim"),
    ])
}

/// Runs cargo with these arguments. Returns the target folder.
pub(crate) fn build(what: &[&str]) -> Result<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().ok_or("no target folder")?;
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet"])
        .args(what)
        .arg("--target-dir")
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()?;
    if !status.success() {
        return Err(format!("cargo build {} failed", what.join(" ")).into());
    }
    Ok(target.to_path_buf())
}

/// What standard input is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Channel {
    /// What Node gives a child.
    Socket,
    Pipe,
}

/// Source text in a hook's payload, with an escape every sixty bytes.
pub(crate) fn body(size: usize) -> Vec<u8> {
    let mut body = br#"{"conversation_id":"5e1f","generation_id":"77aa","content":""#.to_vec();
    let end = br#"","hook_event_name":"preToolUse"}"#;
    let line = br"    let value = compute(&input, 42).unwrap_or_default();\n";
    while body.len() + line.len() + end.len() <= size {
        body.extend_from_slice(line);
    }
    body.resize(size.saturating_sub(end.len()), b' ');
    body.extend_from_slice(end);
    body
}

/// For each program, the microseconds of every round.
pub(crate) struct Times(Vec<Vec<f64>>);

impl Times {
    pub(crate) fn median(&self, program: usize) -> f64 {
        quantile(self.of(program), 0.5)
    }

    /// Median of the rounds' ratios.
    pub(crate) fn ratio(&self, program: usize, base: usize) -> f64 {
        let pairs = self.of(program).iter().zip(self.of(base));
        let ratios: Vec<f64> = pairs.map(|(ours, base)| ours / base).collect();
        quantile(&ratios, 0.5)
    }

    pub(crate) fn tail_ratio(&self, program: usize, base: usize) -> f64 {
        self.tail(program) / self.tail(base)
    }

    /// The 99th percentile.
    pub(crate) fn tail(&self, program: usize) -> f64 {
        quantile(self.of(program), 0.99)
    }

    fn of(&self, program: usize) -> &[f64] {
        self.0.get(program).map_or(&[], Vec::as_slice)
    }
}

/// Runs every program once per round. Calls `between` before every hundredth round. The time of `between` is not
/// measured.
pub(crate) fn measure(
    rounds: usize,
    programs: &[Program],
    body: &[u8],
    channel: Channel,
    mut between: impl FnMut() -> Result<()>,
) -> Result<Times> {
    let mut times = Times(vec![Vec::with_capacity(rounds); programs.len()]);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut order: Vec<usize> = (0..programs.len()).collect();
    for round in 0..rounds + WARM_UP {
        if round % 100 == 0 {
            between()?;
        }
        random.shuffle(&mut order);
        for index in &order {
            let (Some(program), Some(row)) = (programs.get(*index), times.0.get_mut(*index)) else {
                continue;
            };
            let took = once(program, body, channel)?;
            if round >= WARM_UP {
                row.push(took);
            }
        }
    }
    Ok(times)
}

/// One run, in microseconds.
fn once(program: &Program, body: &[u8], channel: Channel) -> Result<f64> {
    let mut command = Command::new(&program.program);
    command.args(&program.arguments).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", "/nowhere");
    command.stdout(Stdio::piped());
    let mut input = Input::new(channel, &mut command)?;
    let start = Instant::now();
    let mut child = command.spawn()?;
    // Closes this process's copy of the child's end of the pipe. Otherwise a write would not fail when the child stops
    // reading.
    drop(command);
    input.feed(body)?;
    drop(input);
    let status = child.wait()?;
    let took = start.elapsed();
    if !status.success() {
        return Err(format!("{}: {status}", program.name).into());
    }
    Ok(took.as_secs_f64() * 1e6)
}

enum Input {
    Socket(UnixStream),
    Pipe(PipeWriter),
}

impl Input {
    fn new(channel: Channel, command: &mut Command) -> Result<Self> {
        Ok(match channel {
            Channel::Socket => {
                let (ours, theirs) = UnixStream::pair()?;
                command.stdin(OwnedFd::from(theirs));
                Self::Socket(ours)
            }
            Channel::Pipe => {
                let (theirs, ours) = io::pipe()?;
                command.stdin(theirs);
                Self::Pipe(ours)
            }
        })
    }

    /// Writes everything. A child that ends without reading causes no error: the smallest program of the comparison
    /// does so.
    fn feed(&mut self, body: &[u8]) -> Result<()> {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};

        let written = match self {
            Self::Socket(socket) => socket.write_all(body),
            Self::Pipe(pipe) => pipe.write_all(body),
        };
        match written {
            Err(error) if matches!(error.kind(), BrokenPipe | ConnectionReset) => Ok(()),
            other => Ok(other?),
        }
    }
}

fn quantile(values: &[f64], at: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = (sorted.len().saturating_sub(1)) as f64 * at;
    sorted.get(index.round() as usize).copied().unwrap_or(f64::NAN)
}

/// A small random generator. It only has to prevent a regular order of the programs.
struct Random(u64);

impl Random {
    fn shuffle(&mut self, order: &mut [usize]) {
        for place in (1..order.len()).rev() {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            order.swap(place, (self.0 % (place as u64 + 1)) as usize);
        }
    }
}
