//! The same program on std: for macOS, Windows and other Unix systems, and for every build except the shipped one.
//!
//! std cannot wait for standard input with a timeout. So one thread reads it, and another writes the answer.

mod files;

use std::collections::hash_map::RandomState;
use std::env;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use self::files::{File, State};
use crate::program::{self, FRAME_BYTES, Invocation, LARGE_FRAME_BYTES, Place, Read, System};
use crate::reply::Verdict;
use crate::scan::Scan;

/// Runs the program with this process's arguments, environment and standard streams, and exits with code 0.
pub fn main() {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let (dir, rest) = match arguments.as_slice() {
        [flag, dir, rest @ ..] if flag == "--dir" => (Some(dir.clone()), rest),
        rest => (None, rest),
    };
    let argument = rest.last().map_or(Vec::new(), |name| name.as_encoded_bytes().to_vec());
    answer_after_panic(argument.clone());
    keep(dir, &argument);
    process::exit(0);
}

/// Makes the program answer and exit with code 0 after a panic, without a panic message.
fn answer_after_panic(argument: Vec<u8>) {
    std::panic::set_hook(Box::new(move |_| {
        let reply = Verdict::of(Scan::default(), &argument, true).reply();
        let _ = io::stdout().write_all(reply);
        process::exit(0);
    }));
}

#[cfg(target_os = "linux")]
fn keep(dir: Option<OsString>, argument: &[u8]) {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    use crate::linux;

    let started = linux::clocks();
    let variables: Vec<Vec<u8>> = env::vars_os()
        .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
        .collect();
    let dir = dir.map_or(Vec::new(), OsStringExt::into_vec);
    let mut environment =
        linux::Environment { dir: &dir, argument, ..linux::Environment::default() };
    for variable in &variables {
        environment.take(variable);
    }
    let mut scratch = vec![0; linux::SCRATCH_BYTES];
    linux::start(&environment, started, process::id(), random_id(), &mut scratch);
}

#[cfg(not(target_os = "linux"))]
fn keep(dir: Option<OsString>, argument: &[u8]) {
    keep_portably(dir, argument, io::stdin(), io::stdout());
}

/// Runs the program on std alone. `dir` replaces the state directory of the environment.
pub fn keep_portably(
    dir: Option<OsString>,
    argument: &[u8],
    stdin: impl io::Read + Send + 'static,
    stdout: impl Write + Send + 'static,
) {
    keep_in(State::find(dir), argument, stdin, stdout);
}

fn keep_in(
    state: Option<State>,
    argument: &[u8],
    stdin: impl io::Read + Send + 'static,
    stdout: impl Write + Send + 'static,
) {
    let mut system = Portable::new(state, stdin, stdout);
    let variable =
        |name| env::var_os(name).map_or(Vec::new(), |value| value.as_encoded_bytes().to_vec());
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let invocation = Invocation {
        wall_ns: u64::try_from(wall.as_nanos()).unwrap_or_default(),
        // The record has no boot time, because other processes do not share this clock.
        boottime_ns: 0,
        pid: process::id(),
        id: random_id(),
        argument,
        cursor_version: &variable("CURSOR_VERSION"),
        project_dir: &variable("CURSOR_PROJECT_DIR"),
        transcript_path: &variable("CURSOR_TRANSCRIPT_PATH"),
        code_remote: &variable("CURSOR_CODE_REMOTE"),
        pwd: &variable("PWD"),
    };
    program::run(&mut system, &invocation, &mut vec![0; FRAME_BYTES]);
}

/// 64 random bits, taken from the seed of std's hash maps.
fn random_id() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The operating system, used through std.
struct Portable<W> {
    /// `None` if nothing tells where the state directory is.
    state: Option<State>,
    started: Instant,
    chunks: Receiver<Vec<u8>>,
    /// The part of the last chunk that has not been handed out.
    pending: Vec<u8>,
    stdout: Option<W>,
}

impl<W> Portable<W> {
    fn new(state: Option<State>, mut stdin: impl io::Read + Send + 'static, stdout: W) -> Self {
        // Bounded, so that an endless input does not fill the memory.
        let (sender, chunks) = sync_channel(4);
        thread::spawn(move || {
            let mut chunk = vec![0; 64 << 10];
            loop {
                match stdin.read(&mut chunk) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => return,
                    Ok(count) => {
                        let bytes = chunk.get(..count).unwrap_or_default().to_vec();
                        if sender.send(bytes).is_err() {
                            return;
                        }
                    }
                }
            }
        });
        Self { state, started: Instant::now(), chunks, pending: Vec::new(), stdout: Some(stdout) }
    }

    fn hand_out(&mut self, into: &mut [u8]) -> Read {
        let count = self.pending.len().min(into.len());
        for (place, byte) in into.iter_mut().zip(self.pending.drain(..count)) {
            *place = byte;
        }
        Read::Bytes(count)
    }
}

impl<W: Write + Send + 'static> System for Portable<W> {
    type File = File;

    fn boottime_ns(&mut self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn read_now(&mut self, into: &mut [u8]) -> Read {
        match self.read_within(into, 0) {
            Read::TimedOut => Read::Nothing,
            read => read,
        }
    }

    fn read_within(&mut self, into: &mut [u8], ms: u64) -> Read {
        if self.pending.is_empty() {
            match self.chunks.recv_timeout(Duration::from_millis(ms)) {
                Ok(chunk) => self.pending = chunk,
                Err(RecvTimeoutError::Timeout) => return Read::TimedOut,
                Err(RecvTimeoutError::Disconnected) => return Read::End,
            }
        }
        self.hand_out(into)
    }

    fn open(&mut self, place: Place) -> Result<File, u32> {
        const NO_SUCH_FILE: u32 = 2;
        self.state.as_ref().ok_or(NO_SUCH_FILE)?.open(place)
    }

    fn append(&mut self, file: &File, bytes: &[u8]) -> Result<usize, u32> {
        files::append(file, bytes)
    }

    fn size(&mut self, file: &File) -> Option<u64> {
        files::size(file)
    }

    fn stop_journal(&mut self, _: &File) {}

    fn large_buffer(&mut self) -> Option<&'static mut [u8]> {
        Some(vec![0; LARGE_FRAME_BYTES].leak())
    }

    fn reply(&mut self, answer: &[u8], until_ns: u64) {
        let Some(mut stdout) = self.stdout.take() else { return };
        let left = Duration::from_nanos(until_ns.saturating_sub(self.boottime_ns()));
        let answer = answer.to_vec();
        let (sender, done) = channel();
        thread::spawn(move || {
            let written = stdout.write_all(&answer).and_then(|()| stdout.flush());
            let _ = sender.send(written.is_ok());
        });
        let _ = done.recv_timeout(left);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Cursor;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::frame::{Decoded, HEADER_BYTES, Header, LAST, NO_EOF};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Runs the program in a temporary folder. Returns its answer, and the flags and body that it stored.
    fn run(name: &str, stdin: impl io::Read + Send + 'static) -> (String, u8, Vec<u8>) {
        let dir = env::temp_dir().join(format!("portable-{}-{name}", process::id()));
        fs::create_dir_all(&dir).unwrap();
        let stdout = Shared::default();
        keep_portably(Some(dir.clone().into()), b"preToolUse", stdin, stdout.clone());
        let journal = fs::read(dir.join("journal")).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        let (mut rest, mut body, mut flags) = (journal.as_slice(), Vec::new(), 0);
        while let Some(bytes) = rest.first_chunk::<HEADER_BYTES>() {
            let Decoded::Header(header) = Header::decode(bytes) else { panic!("no header") };
            let (payload, after) = rest[HEADER_BYTES..].split_at(header.len as usize);
            assert!(header.matches(payload));
            body.extend_from_slice(&payload[header.meta_bytes.into()..]);
            (rest, flags) = (after, header.flags);
        }
        assert_eq!(flags & LAST, LAST);
        let answer = stdout.0.lock().unwrap().clone();
        (String::from_utf8(answer).unwrap(), flags & !LAST, body)
    }

    #[test]
    fn std_alone_keeps_and_answers() {
        let body = br#"{"conversation_id":"c","hook_event_name":"beforeSubmitPrompt"}"#;
        let (answer, flags, kept) = run("small", Cursor::new(body));
        assert_eq!(
            (answer.as_str(), flags, kept.as_slice()),
            ("{\"continue\":true}\n", 0, &body[..])
        );
    }

    /// Runs the program with this state directory and run-time directory.
    #[cfg(unix)]
    fn keep_at(dir: &std::path::Path, run_time_dir: &std::path::Path) {
        let state =
            State { dir: dir.into(), run_time_dir: run_time_dir.into(), ..State::default() };
        let stdout = Shared::default();
        keep_in(Some(state), b"stop", Cursor::new(b"{}"), stdout.clone());
        assert_eq!(stdout.0.lock().unwrap().as_slice(), b"{}\n");
    }

    #[test]
    #[cfg(unix)]
    fn std_alone_makes_the_directory_spills_and_counts() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = env::temp_dir().join(format!("portable-{}-places", process::id()));
        let run = folder.join("run");
        fs::create_dir_all(&run).unwrap();
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let state = folder.join("a/state");
        keep_at(&state, &run);
        keep_at(&state, &run);
        assert_eq!((mode(&state), mode(&state.join("journal"))), (0o700, 0o600));
        let kept = fs::read(state.join("journal")).unwrap();
        assert_eq!(kept.windows(4).filter(|found| *found == crate::frame::MAGIC).count(), 2);
        assert_eq!(fs::read(state.join("losses")).unwrap(), b"");

        // A file has the name of the state directory. In the first run the run-time directory accepts the hook, in the
        // second it does not.
        let file = folder.join("file");
        fs::write(&file, "").unwrap();
        keep_at(&file, &run);
        let named = |prefix: &str| {
            let found = fs::read_dir(run.join("hookspan")).unwrap();
            found.map(|entry| entry.unwrap().path()).find(|path| {
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))
            })
        };
        let spill = named(crate::fallback::SPILL_PREFIX).unwrap();
        assert!(fs::metadata(&spill).unwrap().len() > 40);
        fs::OpenOptions::new().write(true).open(&spill).unwrap().set_len(1 << 30).unwrap();
        keep_at(&file, &run);
        let losses = fs::read(named(crate::fallback::LOSSES_PREFIX).unwrap()).unwrap();
        assert_eq!(losses.len(), crate::losses::LOSS_BYTES);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn std_alone_keeps_a_large_body() {
        let body: Vec<u8> = (0..2_000_000_u32).map(|i| (i ^ (i >> 9)) as u8).collect();
        let (answer, flags, kept) = run("large", Cursor::new(body.clone()));
        assert_eq!((answer.as_str(), flags), ("{\"permission\":\"allow\"}\n", 0));
        assert!(kept == body);
    }

    #[test]
    fn std_alone_leaves_an_input_that_stays_open() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"{}").unwrap();
        let (answer, flags, kept) = run("open", reader);
        drop(writer);
        assert_eq!((answer.as_str(), flags), ("{\"permission\":\"allow\"}\n", NO_EOF));
        assert_eq!(kept, b"{}");
    }
}
