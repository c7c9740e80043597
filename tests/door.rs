//! Tests the door of the dashboard: who may enter, who may not, and what a refused attempt costs.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use e2e_support::collector::Collector;
use e2e_support::wait::{SOON, eventually, pause};
use e2e_support::world::World;
use e2e_support::{machine, skip};
use serde_json::json;

fn address(collector: &Collector<'_>) -> SocketAddr {
    collector.url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// Sends text, and reads until the other side closes the connection.
fn talk(mut stream: impl std::io::Read + std::io::Write, text: &str) -> String {
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // If the connection is cut off, the text received before that is judged.
    drop(stream.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

fn request(host: &str, authorization: &str) -> String {
    format!(
        "GET /api/v1/sessions HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{authorization}\r\n"
    )
}

fn knock(socket: &Path) -> Result<(), String> {
    UnixStream::connect(socket).map(drop).map_err(|error| error.to_string())
}

fn as_nobody(program: &str, arguments: &[&str]) -> String {
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", program])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn another_account_gets_nothing_even_with_a_token_that_it_stole() {
    if let Err(reason) = machine::root().and_then(|()| machine::tool("setpriv")) {
        return skip::announce("a second account at the dashboard's port", &reason);
    }
    let world = World::new();
    for folder in ["", "home", "home/.local", "home/.local/state"] {
        let path = world.scratch(folder);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let socket = world.scratch("door");
    let unix = format!("unix:{}", socket.display());
    let collector = Collector::start_with(&world, &["--listen", &unix]);
    let at = address(&collector);
    let bearer = format!("Authorization: Bearer {}\r\n", collector.token);
    let asked = |host: &str, authorization: &str| {
        let text = request(host, authorization).replace("\r\n", "\\r\\n");
        let script =
            format!("exec 3<>/dev/tcp/{}/{} && printf '{text}' >&3 && cat <&3", at.ip(), at.port());
        as_nobody("bash", &["-c", &script])
    };
    for authorization in ["", &bearer] {
        let answer = asked(&at.to_string(), authorization);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(answer.contains("another-account") && answer.contains("allow_uids"), "{answer}");
        assert!(!answer.contains("\"items\""), "{answer}");
    }
    // The owner's own connection is answered for the same request.
    let mine = talk(TcpStream::connect(at).unwrap(), &request(&at.to_string(), &bearer));
    assert!(mine.starts_with("HTTP/1.1 200 "), "{mine}");
    // Neither the socket nor anything in the state directory can be opened.
    let state = world.state();
    for path in [socket.clone(), state.join("serve.json"), state.join("access.json")] {
        let readable = as_nobody("sh", &["-c", &format!("cat '{}' && echo yes", path.display())]);
        assert!(!readable.contains("yes"), "{}", path.display());
    }
    let script = format!(
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect({:?}); print('in')",
        socket.display().to_string()
    );
    assert_eq!(as_nobody("/usr/bin/python3", &["-c", &script]), "");
    drop(collector);

    world.write_config("[dashboard]\nallow_uids = [65534]\n");
    let collector = Collector::start(&world);
    let at = address(&collector);
    let text = request(&at.to_string(), "").replace("\r\n", "\\r\\n");
    let script =
        format!("exec 3<>/dev/tcp/{}/{} && printf '{text}' >&3 && cat <&3", at.ip(), at.port());
    let answer = as_nobody("bash", &["-c", &script]);
    assert!(answer.starts_with("HTTP/1.1 401 "), "a proxy's account may connect: {answer}");
}

#[test]
fn a_thousand_half_open_connections_cost_little_end_and_keep_nobody_out() {
    let world = World::new();
    let collector = Collector::start(&world);
    let memory = || {
        let pid = collector.pid().as_raw_nonzero();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    };
    // Everything needed to serve one page exists before it is counted.
    for path in ["sessions", "health", "overview?from_us=0"] {
        collector.get(path).unwrap();
    }
    let before = memory();
    let started = Instant::now();
    let head = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(15_000));
    let mut open = Vec::new();
    for n in 0..1_000 {
        let Ok(mut stream) = TcpStream::connect(address(&collector)) else { break };
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        // Every second one sends as much as it may without ever completing a request.
        if n % 2 == 0 {
            drop(stream.write_all(head.as_bytes()));
        }
        open.push(stream);
        if n % 100 == 99 {
            collector.get("sessions").unwrap();
        }
    }
    let cost = memory().saturating_sub(before);
    eprintln!("{} half-open connections: {cost} KiB", open.len());
    assert!(cost < 20 * 1_024, "{cost} KiB");
    collector.get("health").unwrap();
    for stream in &mut open {
        let mut rest = Vec::new();
        // Closed or reset: it has ended.
        drop(stream.read_to_end(&mut rest));
        assert!(started.elapsed() < Duration::from_secs(30), "a connection goes on");
    }
    eprintln!("all ended after {:?}", started.elapsed());
    let after = memory().saturating_sub(before);
    assert!(after < 20 * 1_024, "{after} KiB stay");
}

#[test]
#[cfg(target_os = "linux")]
fn connections_leave_descriptors_for_hooks_and_for_the_owner() {
    if let Err(reason) = machine::tool("prlimit") {
        return skip::skip("connections and the limit of descriptors", &reason);
    }
    let world = World::new();
    let collector = Collector::start_below(&world, &["prlimit", "--nofile=256"]);
    let open: Vec<_> =
        (0..600).filter_map(|_| TcpStream::connect(address(&collector)).ok()).collect();
    pause(Duration::from_millis(300));
    let fixture = e2e_support::fixture::Fixture::own().settle_in(&world);
    e2e_support::player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    let pid = collector.pid().as_raw_nonzero();
    let held = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    assert!(held < 200, "{held} descriptors of 256");
    drop(open);
}

#[test]
fn a_slow_body_and_a_head_without_end_are_cut_off() {
    let world = World::new();
    let collector = Collector::start(&world);
    let host = address(&collector);
    let mut slow = TcpStream::connect(host).unwrap();
    let head = format!(
        "POST /api/v1/login HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    );
    let started = Instant::now();
    slow.write_all(head.as_bytes()).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(25))).unwrap();
    let mut answer = [0; 64];
    let read = slow.read(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!((8..20).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());

    let long = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", "x".repeat(40_000));
    let answer = talk(TcpStream::connect(host).unwrap(), &long);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let many: String = (0..100).map(|n| format!("X{n}: y\r\n")).collect();
    let many = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{many}\r\n");
    let answer = talk(TcpStream::connect(host).unwrap(), &many);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[test]
fn other_machines_are_served_without_tls_only_on_demand() {
    let world = World::new();
    for arguments in [
        &["serve", "--listen", "0.0.0.0:0"][..],
        &["up", "--yes", "--listen", "[::]:0"],
        &["demo", "--no-open", "--listen", "0.0.0.0:0"],
    ] {
        let refused = world.run(arguments);
        assert_eq!(refused.code, 2, "{arguments:?}: {refused:#?}");
        for word in ["speaks no TLS", "ssh -L", "--insecure"] {
            assert!(refused.stderr.contains(word), "{arguments:?}: {refused:#?}");
        }
    }
    world.write_config("[dashboard]\nlisten = \"0.0.0.0:4329\"\n");
    let check = world.run(&["config", "check"]);
    assert_eq!(check.code, 2);
    assert!(check.stderr.contains("speaks no TLS"), "{check:#?}");
    world.write_config("[dashboard]\nlisten = \"0.0.0.0:0\"\ninsecure = true\n");
    world.ok(&["config", "check"]);
    for (name, problem) in [("*:80", "`*:80` is not NAME:PORT"), ("a b:80", "`a b:80` is not")] {
        let refused = world.run(&["serve", "--listen", "127.0.0.1:0", "--allow-host", name]);
        assert_eq!(refused.code, 2);
        assert!(refused.stderr.contains(problem), "{refused:#?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn another_loopback_address_answers_to_its_own_name() {
    let world = World::new();
    world.write_config("[dashboard]\nlisten = \"127.0.0.5:0\"\n");
    let mut child = world
        .command(&world.hookspan())
        .arg("serve")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let url = eventually("it listens", SOON, || {
        let url = world.json(&["status", "--json"])["dashboard_url"].clone();
        url.as_str().map(str::to_owned).ok_or_else(|| "no address yet".to_owned())
    });
    assert!(url.starts_with("http://127.0.0.5:"), "{url}");
    let page = ureq::get(&url).call();
    assert!(page.is_ok(), "{page:?}");
    let login = world.ok(&["open", "--print"]);
    assert!(login.starts_with(&format!("{url}login#c=")), "{login}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_unix_socket_serves_commands_and_proxies_and_goes_with_the_collector() {
    let world = World::new();
    let path = world.scratch("door");
    world.write_config(&format!("[dashboard]\nlisten = [\"unix:{}\"]\n", path.display()));
    let serve = || {
        let mut command = world.command(&world.hookspan());
        command.arg("serve").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut child = serve();
    eventually("it listens", SOON, || knock(&path));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let status = eventually("commands ask over the socket", SOON, || {
        let status = world.json(&["status", "--json"]);
        if status["queue"].is_object() { Ok(status) } else { Err(status.to_string()) }
    });
    assert_eq!((&status["trouble"], &status["dashboard_url"]), (&json!(null), &json!(null)));
    let open = world.run(&["open", "--print"]);
    assert!(open.code == 1 && open.stderr.contains("unix:"), "{open:#?}");
    let ask = |host: &str, authorization: &str| {
        talk(UnixStream::connect(&path).unwrap(), &request(host, authorization))
    };
    assert!(ask("localhost", "").starts_with("HTTP/1.1 401 "));
    assert!(ask("evil.example", "").starts_with("HTTP/1.1 421 "));
    let token = world.ok(&["token", "create", "proxy"]);
    let bearer = format!("Authorization: Bearer {}\r\n", token.trim());
    assert!(ask("localhost", &bearer).starts_with("HTTP/1.1 200 "));
    // A killed collector leaves its socket behind, and the next one takes over.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(path.exists());
    let mut child = serve();
    eventually("it serves again", SOON, || {
        let status = world.json(&["status", "--json"]);
        if status["queue"].is_object() { Ok(()) } else { Err(status.to_string()) }
    });
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    child.wait().unwrap();
    assert!(!Path::new(&path).exists());
}

#[test]
fn a_token_is_made_listed_rotated_and_revoked_while_the_collector_runs() {
    let world = World::new();
    let collector = Collector::start(&world);
    let status = |token: &str| {
        let answer = ureq::get(format!("{}/api/v1/sessions", collector.url))
            .header("authorization", format!("Bearer {}", token.trim()))
            .config()
            .http_status_as_error(false)
            .build()
            .call()
            .unwrap();
        answer.status().as_u16()
    };
    let first = world.ok(&["token", "create", "ci"]);
    assert_eq!(status(&first), 200);
    let twice = world.run(&["token", "create", "ci"]);
    assert!(twice.code == 2 && twice.stderr.contains("token rotate"), "{twice:#?}");
    let second = world.ok(&["token", "rotate", "ci"]);
    assert_eq!((status(&first), status(&second)), (401, 200));
    let list = world.json(&["token", "list", "--json"]);
    let names: Vec<_> = list["tokens"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["ci"]);
    let kept = fs::read_to_string(world.state().join("access.json")).unwrap();
    for secret in [&first, &second, &collector.token] {
        assert!(!kept.contains(secret.trim().trim_start_matches("hookspan_")));
    }
    assert_eq!(world.run(&["token", "revoke", "ci"]).code, 0);
    assert_eq!(status(&second), 401);
    assert_eq!(world.run(&["token", "revoke", "ci"]).code, 2);
    // The shared token of earlier versions is not accepted.
    drop(collector);
    let old = "ab".repeat(32);
    fs::write(world.state().join("token"), &old).unwrap();
    let collector = Collector::start(&world);
    let answer = ureq::get(format!("{}/api/v1/sessions", collector.url))
        .header("authorization", format!("Bearer {old}"))
        .call();
    assert!(matches!(answer, Err(ureq::Error::StatusCode(401))), "{answer:?}");
    assert!(!world.state().join("token").exists());
}

#[test]
fn no_code_is_in_arguments_logs_or_what_is_no_terminal() {
    let world = World::new();
    let bin = world.scratch("bin");
    fs::create_dir_all(&bin).unwrap();
    let seen = world.scratch("seen");
    let opener = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > {0}\nstat -c %a \"$1\" >> {0}\ncat \"$1\" >> {0}.page\n",
        seen.display()
    );
    fs::write(bin.join("xdg-open"), opener).unwrap();
    fs::set_permissions(bin.join("xdg-open"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let world = world.with_env("PATH", path);
    let collector = Collector::start(&world);
    // This browser reads the page but never signs in. A browser that may not read the file behaves in the same way.
    let opened = world.run(&["open"]);
    assert!(opened.stderr.contains("open --print"), "{opened:#?}");
    let arguments = fs::read_to_string(&seen).unwrap();
    let page = fs::read_to_string(format!("{}.page", seen.display())).unwrap();
    let code = page.split("#c=").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(code.len(), 32 + 1 + 64, "{page}");
    assert!(arguments.ends_with("\n600\n") && arguments.contains("/open-"), "{arguments}");
    let file = arguments.lines().next().unwrap();
    assert!(!Path::new(file).exists(), "the page goes with the command");
    for (what, text) in [
        ("arguments", arguments.as_str()),
        ("standard output", &opened.stdout),
        ("standard error", &opened.stderr),
        ("the collector's log", &e2e_support::collector::log(&world)),
        ("status", &world.run(&["status"]).stdout),
        ("up", &world.run(&["up", "--yes"]).stdout),
    ] {
        assert!(!text.contains(code) && !text.contains("#c="), "{what}: {text}");
    }
    drop(collector);
}
