//! Streams of hooks: what Cursor sends, and the results that are expected.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::binaries;
use crate::world::World;

/// A recorded (or invented) stream with its expected numbers.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// For messages.
    pub name: String,
    /// The file, JSON Lines of `{observed_at, event}`.
    pub path: PathBuf,
    /// The bodies in order, exactly as the shim must receive them.
    pub bodies: Vec<Body>,
    /// See `fixtures/README.md`.
    pub expected: Value,
    transcripts: Option<PathBuf>,
}

/// What one hook process reads from standard input.
#[derive(Clone, Debug)]
pub struct Body {
    /// The event name for the command line.
    pub event: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Fixture {
    /// The project's own.
    #[must_use]
    pub fn own() -> Self {
        let folder = fixtures();
        Self::read(
            &folder.join("ide-one-subagent.jsonl"),
            &folder.join("ide-one-subagent.expected.json"),
            Some(folder.join("agent-transcripts")),
        )
    }

    /// A real recording, if this machine has one: `$HOOKSPAN_CAPTURE`, or the newest folder of `captures/` beside the
    /// project. `Err` says what was looked for.
    pub fn recorded() -> Result<Self, String> {
        let folder = recorded_folder()?;
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let beside = folder.join("expected.json");
        let expected =
            if beside.exists() { beside } else { fixtures().join(format!("{name}.expected.json")) };
        let transcripts = folder.join("agent-transcripts");
        Ok(Self::read(
            &folder.join("hooks.jsonl"),
            &expected,
            transcripts.exists().then_some(transcripts),
        ))
    }

    fn read(path: &Path, expected: &Path, transcripts: Option<PathBuf>) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let bodies = text.lines().map(Body::from_line).collect();
        let expected = serde_json::from_str(&fs::read_to_string(expected).unwrap()).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        Self { name, path: path.to_owned(), bodies, expected, transcripts }
    }

    /// Moves the stream into `world`. Its transcripts are copied below the world's home and every body names them
    /// there, as if the session had happened on this machine.
    #[must_use]
    pub fn settle_in(&self, world: &World) -> Self {
        let mut moved = self.clone();
        let Some(transcripts) = &self.transcripts else { return moved };
        let there = world.home().join(".cursor/projects/example");
        copy_folder(transcripts, &there.join("agent-transcripts"));
        let from = self.transcript_folder();
        for body in &mut moved.bodies {
            let text = String::from_utf8(body.bytes.clone()).unwrap();
            body.bytes = text.replace(&from, there.to_str().unwrap()).into_bytes();
        }
        let lines: Vec<_> = fs::read_to_string(&self.path)
            .unwrap()
            .lines()
            .map(|line| line.replace(&from, there.to_str().unwrap()))
            .collect();
        moved.path = world.scratch(&self.name);
        fs::write(&moved.path, lines.join("\n") + "\n").unwrap();
        moved
    }

    /// A number of `expected`.
    #[must_use]
    #[track_caller]
    pub fn number(&self, key: &str) -> u64 {
        self.expected[key].as_u64().unwrap_or_else(|| panic!("{}: no expected {key}", self.name))
    }

    /// A text of `expected`.
    #[must_use]
    #[track_caller]
    pub fn text(&self, key: &str) -> &str {
        self.expected[key].as_str().unwrap_or_else(|| panic!("{}: no expected {key}", self.name))
    }

    /// The folder in which the stream expects `agent-transcripts/`.
    fn transcript_folder(&self) -> String {
        let path = self.bodies.iter().find_map(|body| {
            let event: Value = serde_json::from_slice(&body.bytes).unwrap();
            event["transcript_path"].as_str().map(str::to_owned)
        });
        let path = path.unwrap_or_else(|| panic!("{} names no transcript", self.name));
        path.split("/agent-transcripts/").next().unwrap().to_owned()
    }
}

impl Body {
    fn from_line(line: &str) -> Self {
        // The fields stay raw values, so that the shim gets the recorded bytes and not reordered keys.
        let row: BTreeMap<String, Box<RawValue>> = serde_json::from_str(line).unwrap();
        let bytes = row["event"].get().as_bytes().to_vec();
        let event: Value = serde_json::from_slice(&bytes).unwrap();
        Self { event: event["hook_event_name"].as_str().unwrap().to_owned(), bytes }
    }
}

/// The folder of the project's own fixtures.
#[must_use]
pub fn fixtures() -> PathBuf {
    binaries::project().join("tests/fixtures")
}

fn recorded_folder() -> Result<PathBuf, String> {
    if let Some(folder) = std::env::var_os("HOOKSPAN_CAPTURE") {
        return Ok(folder.into());
    }
    let captures = binaries::project().join("../shared/captures");
    let mut folders: Vec<_> = fs::read_dir(captures)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    folders.retain(|folder: &PathBuf| folder.join("hooks.jsonl").exists());
    folders.sort();
    folders.pop().ok_or_else(|| "no recording: HOOKSPAN_CAPTURE is not set".into())
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            // Copies only the content. A read-only recording must not make the copy read-only.
            fs::write(target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}
