//! Compares with the hooks that people use today: scripts that store the payload in a file and answer, or send it to a
//! server.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write, stdout};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

use crate::measure::{Channel, Folder, Program, Result, body, measure, ours};

const FLOOR: usize = 0;
const SHIM: usize = 2;

const SH: &str = r#"cat >> "$1"
echo >> "$1"
echo '{"permission":"allow"}'
"#;

const PYTHON: &str = r#"import json, sys
payload = json.load(sys.stdin)
with open(sys.argv[1], "a") as log:
    log.write(json.dumps(payload) + "\n")
print(json.dumps({"permission": "allow"}))
"#;

const NODE: &str = r#"const fs = require("fs");
const payload = JSON.parse(fs.readFileSync(0, "utf8"));
fs.appendFileSync(process.argv[2], JSON.stringify(payload) + "\n");
console.log(JSON.stringify({ permission: "allow" }));
"#;

/// Uses a tenth of the rounds, because these programs take a hundred times as long.
pub(crate) fn run(rounds: usize, folder: &Folder) -> Result<()> {
    let mut programs = ours(folder)?;
    let mut out = stdout();
    let built = crate::measure::build(&["--profile", "shim", "-p", "hookspan-shim", "--bins"])?;
    let command = format!(
        "exec {} --dir {} preToolUse",
        built.join("shim/hookspan-shim").display(),
        folder.state().display()
    );
    let log = folder.join("log");
    let log_text = log.to_str().ok_or("a temporary folder that is not UTF-8")?;
    let url = serve()?;
    let script = |name: &str, text: &str| -> Result<String> {
        let path = folder.join(name);
        fs::write(&path, text)?;
        Ok(path.to_str().ok_or("a temporary folder that is not UTF-8")?.to_owned())
    };
    let (sh, python, node) =
        (script("hook.sh", SH)?, script("hook.py", PYTHON)?, script("hook.js", NODE)?);
    let today: [(&str, &str, Vec<&str>); 5] = [
        ("shim, by sh -c as hooks.json has it", "sh", vec!["-c", &command]),
        ("sh script: cat >> file", "sh", vec![&sh, log_text]),
        ("curl to a server on this machine", "curl", vec!["-sS", "--data-binary", "@-", &url]),
        ("python3 script: parse, append", "python3", vec![&python, log_text]),
        ("node script: parse, append", "node", vec![&node, log_text]),
    ];
    for (name, program, arguments) in &today {
        match installed(program) {
            Some(path) => programs.push(Program::new(name, &path, arguments)),
            None => writeln!(out, "{program} is not installed")?,
        }
    }
    let rounds = (rounds / 10).max(1);
    let journal = folder.state().join("journal");
    let times = measure(rounds, &programs, &body(4_096), Channel::Socket, || {
        fs::write(&log, b"")?;
        Ok(fs::write(&journal, b"")?)
    })?;
    writeln!(out, "{rounds} rounds, alternated; 4 KiB on a socket; milliseconds")?;
    writeln!(out, "| hook | median | p99 | / floor | / shim |\n|---|---|---|---|---|")?;
    for (index, program) in programs.iter().enumerate() {
        writeln!(
            out,
            "| {} | {:.2} | {:.2} | {:.1} | {:.1} |",
            program.name,
            times.median(index) / 1e3,
            times.tail(index) / 1e3,
            times.ratio(index, FLOOR),
            times.ratio(index, SHIM),
        )?;
    }
    Ok(())
}

fn installed(program: &str) -> Option<PathBuf> {
    let folders = ["/usr/local/bin", "/usr/bin", "/bin"];
    folders.iter().map(|folder| Path::new(folder).join(program)).find(|path| path.is_file())
}

/// Starts a server that receives a payload and answers, as a logging daemon would. Returns its address.
fn serve() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/hook", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that disconnects early does not concern this server.
            let _ = answer(&stream);
        }
    });
    Ok(url)
}

fn answer(stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut stream = stream;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 22\r\nconnection: close\r\n\r\n")?;
    stream.write_all(b"{\"permission\":\"allow\"}")
}
