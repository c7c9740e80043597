//! Plays hooks: one real shim process per event, reply and exit code checked.

use std::io::{ErrorKind, Write};
use std::process::{Child, Output, Stdio};

use crate::fixture::{Body, Fixture};
use crate::world::World;

/// What one shim process did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error, which must stay empty.
    pub stderr: String,
}

/// The only answer to each event that neither changes nor blocks anything (by Cursor's documentation of each hook's
/// output).
#[must_use]
pub fn neutral_reply(event: &str) -> &'static str {
    match event {
        "preToolUse"
        | "beforeShellExecution"
        | "beforeMCPExecution"
        | "subagentStart"
        | "beforeReadFile"
        | "beforeTabFileRead" => "{\"permission\":\"allow\"}\n",
        "beforeSubmitPrompt" => "{\"continue\":true}\n",
        _ => "{}\n",
    }
}

/// Plays the whole stream in order and checks every answer. The processes run one after the other, as Cursor waits.
#[track_caller]
pub fn play(world: &World, fixture: &Fixture) {
    for body in &fixture.bodies {
        play_one(world, body);
    }
}

/// Plays one event and checks its answer.
#[track_caller]
pub fn play_one(world: &World, body: &Body) {
    let reply = hook(world, &body.event, &body.bytes);
    let expected =
        Reply { code: Some(0), stdout: neutral_reply(&body.event).into(), stderr: String::new() };
    assert_eq!(reply, expected, "answer to {}", body.event);
}

/// Runs the shim with these bytes on a pipe, which is then closed.
#[must_use]
pub fn hook(world: &World, event: &str, body: &[u8]) -> Reply {
    let mut child = start(world, event);
    feed(&mut child, body);
    Reply::from(child.wait_with_output().unwrap())
}

/// Starts the shim; the caller owns its standard input.
#[must_use]
pub fn start(world: &World, event: &str) -> Child {
    world
        .command(world.shim())
        .arg(event)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Writes the body and closes the pipe. A shim that was killed may have ended; the caller judges by its exit code.
pub fn feed(child: &mut Child, body: &[u8]) {
    let mut stdin = child.stdin.take().unwrap();
    match stdin.write_all(body) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        Err(error) => panic!("writing to the shim: {error}"),
    }
}

impl From<Output> for Reply {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
