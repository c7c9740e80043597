//! The built program, a state directory, and a strict reader of what was stored.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hookspan_shim::frame::{Decoded, HEADER_BYTES, Header, LAST};
use hookspan_shim::record::{Metadata, Stamp};

/// Folder with the programs in the shipped profile.
static SHIPPED: LazyLock<PathBuf> = LazyLock::new(|| {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--profile", "shim", "-p", "hookspan-shim"])
        .args(["--bins", "--examples", "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status();
    assert!(built.unwrap().success(), "cargo build --profile shim -p hookspan-shim");
    target.join("shim")
});

/// The shipped program, or another build of it: for example one with a sanitizer.
pub(crate) fn program() -> PathBuf {
    let other = std::env::var_os("HOOKSPAN_TEST_SHIM");
    other.map_or_else(|| SHIPPED.join("hookspan-shim"), PathBuf::from)
}

/// Copies the program by a process of its own. If this process wrote the copy, a child that another test starts
/// meanwhile could inherit the open file, and the copy could not be run ("Text file busy").
pub(crate) fn copy_program(to: &Path) {
    let status = Command::new("cp").arg(program()).arg(to).status().unwrap();
    assert!(status.success(), "cp to {}: {status}", to.display());
}

/// The program that only exits.
pub(crate) fn floor() -> PathBuf {
    SHIPPED.join("examples/floor")
}

/// The program that reads its input to the end and answers.
pub(crate) fn drain() -> PathBuf {
    SHIPPED.join("examples/drain")
}

/// A folder that is removed when the value is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        Self::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// A folder that every account can reach. The target folder may be in a home that is closed to others.
    #[cfg(unix)]
    pub(crate) fn for_everyone() -> Self {
        let folder = Self::below(&std::env::temp_dir());
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&folder.0, open).unwrap();
        folder
    }

    fn below(parent: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("shim-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The records of the journal.
    pub(crate) fn records(&self) -> Vec<Kept> {
        records(&self.join("journal"))
    }

    /// The only record of the journal.
    #[track_caller]
    pub(crate) fn record(&self) -> Kept {
        let mut records = self.records();
        assert_eq!(records.len(), 1);
        records.remove(0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A record as it was stored.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) stamp: Stamp,
    pub(crate) texts: Vec<(u8, String)>,
    pub(crate) flags: u8,
    pub(crate) frames: u32,
    pub(crate) body: Vec<u8>,
}

/// Reads a segment of complete frames, in which the frames of a record follow each other.
#[track_caller]
pub(crate) fn records(path: &Path) -> Vec<Kept> {
    let bytes = fs::read(path).unwrap();
    let mut rest = bytes.as_slice();
    let mut records = Vec::new();
    let mut open = Kept::default();
    while !rest.is_empty() {
        let Decoded::Header(header) = Header::decode(rest.first_chunk().unwrap()) else {
            panic!("no header where one must be");
        };
        let (payload, after) = rest[HEADER_BYTES..].split_at(header.len as usize);
        assert!(header.matches(payload), "checksum");
        assert_eq!(header.seq, open.frames, "frames in order");
        rest = after;
        if header.seq == 0 {
            let metadata = Metadata::decode(&payload[..header.meta_bytes.into()]).unwrap();
            open.stamp = metadata.stamp;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            open.texts = metadata.texts().map(|found| (found.tag, text(found.bytes))).collect();
        }
        open.frames += 1;
        open.body.extend_from_slice(&payload[header.meta_bytes.into()..]);
        if header.flags & LAST != 0 {
            open.flags = header.flags & !LAST;
            records.push(std::mem::take(&mut open));
        }
    }
    assert_eq!(open.frames, 0, "a record without its end");
    records
}

/// The result of a run.
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) took: Duration,
}

/// The program with `--dir` and an event, an empty environment, and pipes.
pub(crate) fn command(folder: &Folder, event: &str) -> Command {
    let mut command = Command::new(program());
    command.arg("--dir").arg(folder.path()).arg(event).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Feeds a body and closes standard input.
#[track_caller]
pub(crate) fn run(folder: &Folder, event: &str, body: &[u8]) -> Ran {
    feed(command(folder, event), body)
}

#[track_caller]
pub(crate) fn feed(mut command: Command, body: &[u8]) -> Ran {
    let start = Instant::now();
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take();
    if let Some(mut stdin) = stdin {
        stdin.write_all(body).unwrap();
    }
    wait(child, start)
}

#[track_caller]
pub(crate) fn wait(child: Child, start: Instant) -> Ran {
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "nothing on standard error");
    let stdout = String::from_utf8(output.stdout).unwrap();
    Ran { status: output.status, stdout, took: start.elapsed() }
}

/// Exit code 0 and this answer.
#[track_caller]
pub(crate) fn check(ran: &Ran, answer: &str) {
    assert_eq!(ran.status.code(), Some(0), "{:?}", ran.status);
    assert_eq!(ran.stdout, answer);
}

pub(crate) const ALLOW: &str = "{\"permission\":\"allow\"}\n";
pub(crate) const CONTINUE: &str = "{\"continue\":true}\n";
pub(crate) const NEUTRAL: &str = "{}\n";

/// A body like Cursor's.
pub(crate) fn cursor_body(name: &str) -> Vec<u8> {
    format!(r#"{{"conversation_id":"c-1","generation_id":"g","hook_event_name":"{name}"}}"#)
        .into_bytes()
}

/// Prints why a test checks nothing. On a build server no test may be skipped, so it fails there.
#[track_caller]
pub(crate) fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// A file system that is unmounted when the value is dropped.
pub(crate) struct Mount(pub(crate) PathBuf);

impl Mount {
    pub(crate) fn tmpfs(path: &Path, options: &str) -> Option<Self> {
        fs::create_dir(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then(|| Self(path.to_path_buf()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
