//! Tests another account of the same machine. It tries to read, to connect, to replay, and to take over port and
//! directories. Its programs run under its user id, which needs root.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use e2e_support::collector::Collector;
use e2e_support::fixture::Fixture;
use e2e_support::wait::{SOON, eventually};
use e2e_support::world::World;
use e2e_support::{machine, player, skip};

const VICTIM: u32 = 4_711;
const ATTACKER: &str = "65534";
/// A Python that every account may start. A Python that a person installed may be in that person's home, which other
/// accounts cannot enter.
const PYTHON: &str = "/usr/bin/python3";

fn attacker(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", ATTACKER, "--regid", ATTACKER, "--clear-groups", program]);
    command.args(arguments).stdin(Stdio::null());
    command
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output = attacker(program, arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn can_be_tried(what: &str) -> bool {
    let missing = machine::root().and_then(|()| machine::tool("setpriv"));
    let missing = missing.and_then(|()| machine::tool(PYTHON));
    missing.inspect_err(|reason| skip::announce(what, reason)).is_ok()
}

/// Everything below a folder.
fn all(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        found.push(path.clone());
        if path.is_dir() {
            all(&path, found);
        }
    }
}

/// A home that others may enter, as many distributions create it, with a session in it.
fn recorded() -> World {
    let world = World::new().owned_by(VICTIM);
    for folder in ["home", "home/.local", "home/.local/state"] {
        let path = world.scratch(folder);
        fs::create_dir_all(&path).unwrap();
        chown(&path, Some(VICTIM), Some(VICTIM)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    world
}

#[test]
fn another_account_reads_no_file_and_changes_none() {
    if !can_be_tried("files and a second account") {
        return;
    }
    let world = recorded();
    world.shim();
    let collector = Collector::start(&world);
    let fixture = Fixture::own().settle_in(&world);
    player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    collector.get("search?q=test").unwrap();
    let exported = world.home().join("out.jsonl");
    let path = exported.to_str().unwrap();
    world.ok(&["export", "--all", "--format", "jsonl", "--content", "full", "-o", path]);
    let mut files = vec![world.state(), exported];
    all(&world.state(), &mut files);
    all(&world.scratch("run"), &mut files);
    for name in ["hookspan.db", "search.db", "serve.json", "redact.key", "audit.json", "journal"] {
        assert!(files.iter().any(|file| file.ends_with(name)), "{name} is not there to be tried");
    }
    let script = "import os, sys\n\
        for path in sys.argv[1:]:\n\
        \x20   for flags in [os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_APPEND]:\n\
        \x20       try: os.open(path, flags); print('OPEN', path)\n\
        \x20       except OSError: pass\n\
        \x20   for change in [os.unlink, os.listdir, lambda p: os.rename(p, p + 'x'), lambda p: os.symlink('/x', p + '/x')]:\n\
        \x20       try: change(path); print('CHANGED', path)\n\
        \x20       except OSError: pass\n";
    let mut arguments = vec!["-c", script];
    arguments.extend(files.iter().map(|file| file.to_str().unwrap()));
    assert_eq!(said(PYTHON, &arguments), "", "of {} files", files.len());
    // Shows that the script can find open files.
    let open = world.scratch("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(said(PYTHON, &["-c", script, open.to_str().unwrap()]).contains("CHANGED"));
    // Memory, environment and descriptors of the collector belong to its owner, too.
    let pid = collector.pid().as_raw_nonzero();
    for what in ["mem", "environ", "fd", "maps"] {
        let path = format!("/proc/{pid}/{what}");
        assert!(!said(PYTHON, &["-c", script, &path]).contains("OPEN"), "{path}");
    }
    assert!(said("sh", &["-c", &format!("kill -9 {pid} && echo yes")]).is_empty());
}

#[test]
fn another_account_connects_and_replays_for_nothing_and_is_counted() {
    if !can_be_tried("connections and a second account") {
        return;
    }
    let world = recorded();
    let collector = Collector::start(&world);
    let host = collector.url.strip_prefix("http://").unwrap();
    let (address, port) = host.split_once(':').unwrap();
    let code = collector.login();
    let (id, _) = code.split_once("#c=").unwrap().1.split_once('.').unwrap();
    let body = format!(r#"{{"id":"{id}","page_nonce":"0123456789abcdef"}}"#);
    let post = format!(
        "POST /api/v1/login/challenge HTTP/1.1\\r\\nHost: {host}\\r\\nContent-Type: application/json\\r\\nContent-Length: {}\\r\\n\
         Connection: close\\r\\n\\r\\n{body}",
        body.len()
    );
    let get = format!(
        "GET /api/v1/sessions HTTP/1.1\\r\\nHost: {host}\\r\\nAuthorization: Bearer {}\\r\\nConnection: close\\r\\n\\r\\n",
        collector.token
    );
    for request in [&get, &post] {
        let script =
            format!("exec 3<>/dev/tcp/{address}/{port} && printf '{request}' >&3 && cat <&3");
        let answer = said("bash", &["-c", &script]);
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains("another-account"),
            "{answer}"
        );
        assert!(!answer.contains("items") && !answer.contains("challenge\":{"), "{answer}");
    }
    // The attempt has not used up the code.
    assert!(world.ok(&["open", "--print"]).contains("#c="));
    collector.stop();
    let refused = world.json(&["audit", "--json"])["refused"]["another account"]["count"].clone();
    assert_eq!(refused, 2, "refused connections are counted, also the last before the end");
}

/// Listens on a port on which a collector has listened, and records what arrives.
fn take_over(port: &str, log: &Path) -> Child {
    let script = "import socket, sys\n\
        s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n\
        s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(); print('up', flush=True)\n\
        s.settimeout(60)\n\
        while True:\n\
        \x20   c, _ = s.accept(); c.settimeout(1)\n\
        \x20   try: data = c.recv(65536)\n\
        \x20   except OSError: data = b''\n\
        \x20   print('GOT', data, flush=True)\n\
        \x20   try: c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\n{}')\n\
        \x20   except OSError: pass\n\
        \x20   c.close()\n";
    let log_file = fs::File::create(log).unwrap();
    let child = attacker(PYTHON, &["-c", script, port]).stdout(log_file).spawn().unwrap();
    eventually("the port is taken over", SOON, || {
        let text = fs::read_to_string(log).unwrap();
        if text.contains("up") { Ok(()) } else { Err(text) }
    });
    child
}

#[test]
fn the_port_of_a_killed_collector_brings_another_account_no_secret() {
    if !can_be_tried("a port taken over by a second account") {
        return;
    }
    let world = recorded();
    let collector = Collector::start(&world);
    let (port, key) =
        (collector.url.rsplit_once(':').unwrap().1.to_owned(), collector.token.clone());
    let token = world.ok(&["token", "create", "ci"]);
    // The collector is killed, so that serve.json still names the port.
    collector.kill();
    let log = world.scratch("attacker.log");
    let mut imposter = take_over(&port, &log);
    for arguments in [
        &["status"][..],
        &["open", "--print"],
        &["doctor"],
        &["sessions"],
        &["token", "list"],
        &["destinations", "resume", "x"],
    ] {
        let done = world.run(arguments);
        assert!(!done.stdout.contains("#c="), "{arguments:?}: {done:?}");
    }
    let listen = format!("127.0.0.1:{port}");
    let refused = world.run(&["serve", "--listen", &listen]);
    assert!(refused.code != 0 && refused.stderr.contains(&port), "{refused:?}");
    imposter.kill().unwrap();
    imposter.wait().unwrap();
    let got = fs::read_to_string(&log).unwrap();
    assert!(!got.contains(&key) && !got.contains(token.trim()), "{got}");
    assert!(!got.contains("GOT"), "no command connects to a port whose collector is gone: {got}");
}

#[test]
fn directories_that_another_account_made_are_refused() {
    if !can_be_tried("directories of a second account") {
        return;
    }
    let world = World::new().owned_by(VICTIM);
    let shared = world.scratch("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let planted = shared.join("state");
    let at = planted.to_str().unwrap();
    let target = world.home().join("precious");
    fs::create_dir(&target).unwrap();
    for script in [
        format!("mkdir -m 777 {at}"),
        format!("rmdir {at}; mkdir -m 777 {at}; : >{at}/journal; chmod 666 {at}/journal"),
        format!("rm -r {at}; ln -s {} {at}", target.display()),
    ] {
        said("sh", &["-c", &script]);
        for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["token", "create", "x"]] {
            let done = world.run(&[&["--dir", at], command].concat());
            assert!(done.code != 0, "{script}: {done:?}");
        }
        let mut found = Vec::new();
        if planted.is_dir() {
            all(&planted, &mut found);
        }
        found.retain(|path| !path.ends_with("journal"));
        assert_eq!(found, Vec::<PathBuf>::new(), "{script}: nothing is written there");
    }
}
