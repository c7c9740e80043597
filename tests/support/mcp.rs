//! `hookspan mcp` as a process: JSON-RPC, one message a line, over standard input and output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::world::World;

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    asked: u64,
}

impl Server {
    /// Starts a server that answers about all projects.
    #[must_use]
    pub fn start(world: &World) -> Self {
        let mut command = world.command(&world.hookspan());
        command.args(["mcp", "--all"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout, asked: 0 }
    }

    /// Starts one, and greets it.
    #[must_use]
    pub fn greeted(world: &World) -> Self {
        let mut server = Self::start(world);
        let client = json!({"name": "test", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let _greeting = server.ask("initialize", &hello);
        server.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    /// Sends a message.
    pub fn say(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
        self.stdin.flush().unwrap();
    }

    /// The result of a request.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}));
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(self.asked)));
        answer["result"].clone()
    }

    /// The result of a tool.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Closes the server's input. Returns the server's exit code.
    #[must_use]
    pub fn end(self) -> Option<i32> {
        let Self { mut child, stdin, .. } = self;
        drop(stdin);
        child.wait().unwrap().code()
    }
}
