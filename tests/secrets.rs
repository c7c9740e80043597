//! Tests planted secrets in the whole pipeline: none leaves the raw log in any way.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use e2e_support::binaries;
use e2e_support::collector::Collector;
use e2e_support::wait::{SOON, eventually};
use e2e_support::world::World;

const ROOT: &str = "3c9d1e70-2b4f-4d61-9a58-7f0e6c2b1a94";

/// A text with a secret, and a piece of the secret that occurs nowhere else in the text.
struct Planted {
    kind: String,
    text: String,
    piece: String,
}

/// The redactor's own corpus, without the secrets that the corpus marks as missed.
fn planted() -> Vec<Planted> {
    let path = binaries::project().join("collector/redact/tests/corpus.txt");
    let corpus = fs::read_to_string(path).unwrap();
    let lines = corpus.lines().filter(|line| line.starts_with('+') && !line.contains("+ missed"));
    let all = lines.filter_map(|line| {
        let (kind, text) = line[2..].split_once(" | ")?;
        let (before, rest) = text.split_once('«')?;
        let (secret, after) = rest.split_once('»')?;
        let word = |c: char| !c.is_ascii_alphanumeric();
        let piece = secret.split(word).max_by_key(|part| part.len())?;
        let alone = piece.len() >= 6 && !before.contains(piece) && !after.contains(piece);
        let text = format!("{before}{secret}{after}").replace('⏎', "\n");
        alone.then(|| Planted { kind: kind.to_owned(), text, piece: piece.to_owned() })
    });
    all.collect()
}

/// Tokens that are recognised without a name beside them, for places that contain a name.
fn tokens(planted: &[Planted]) -> Vec<&Planted> {
    let kinds =
        ["github-ghp", "gitlab-pat", "npm", "huggingface", "anthropic", "vault", "databricks"];
    planted.iter().filter(|one| kinds.contains(&one.kind.as_str())).collect()
}

fn stream(planted: &[Planted]) -> String {
    let corpus = fs::read_to_string(binaries::project().join("collector/redact/tests/corpus.txt"));
    let corpus = corpus.unwrap();
    // A whole token of a kind, for use as a name.
    let token = |kind: &str| {
        let line = corpus.lines().find(|line| line.starts_with(&format!("+ {kind} |"))).unwrap();
        line.split_once('«').unwrap().1.split_once('»').unwrap().0.to_owned()
    };
    let mut lines = String::new();
    let mut second = 0;
    let mut hook = |turn: usize, event: &str, own: Value| {
        let mut body = json!({
            "conversation_id": ROOT, "session_id": ROOT, "hook_event_name": event,
            "generation_id": format!("5d2c7a10-6e8b-4f3d-8b1c-{turn:012}"),
            "model": format!("gpt {}", token("huggingface")), "cursor_version": "3.7.19",
            "workspace_roots": [format!("/home/dev/{}", token("npm"))],
        });
        body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        second += 1;
        let at =
            format!("2026-06-10T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60);
        lines.push_str(&json!({"observed_at": at, "event": body}).to_string());
        lines.push('\n');
    };
    for (turn, chunk) in planted.chunks(8).enumerate() {
        hook(turn, "beforeSubmitPrompt", json!({"prompt": chunk[0].text, "attachments": []}));
        for (number, one) in chunk.iter().enumerate() {
            let call = json!({
                "tool_name": if number == 0 { format!("tool {}", token("github-ghp")) } else { "Shell".to_owned() },
                "tool_use_id": format!("call-{turn}-{number}"),
                "tool_input": {"command": one.text, "file_path": format!("/home/dev/{}/a.rs", token("vault"))},
            });
            hook(turn, "preToolUse", call.clone());
            let mut after = call;
            if number % 2 == 0 {
                after["tool_output"] =
                    json!(json!({"output": one.text, "exitCode": 0}).to_string());
                hook(turn, "postToolUse", after);
            } else {
                after["error_message"] = json!(one.text);
                after["failure_type"] = json!("error");
                hook(turn, "postToolUseFailure", after);
            }
        }
        let mcp = json!({
            "tool_name": format!("read {}", token("gitlab-pat")), "tool_input": chunk[0].text,
            "url": format!("https://{}@mcp.acme.dev/x", token("databricks")), "command": chunk[0].text,
        });
        hook(turn, "beforeMCPExecution", mcp.clone());
        let mut after = mcp;
        after["result_json"] = json!(chunk[0].text);
        hook(turn, "afterMCPExecution", after);
        hook(
            turn,
            "afterFileEdit",
            json!({
                "file_path": format!("/home/dev/{}/b.rs", token("anthropic")),
                "edits": [{"old_string": "", "new_string": chunk[0].text}],
            }),
        );
        hook(turn, "afterAgentThought", json!({"text": chunk[0].text, "duration_ms": 5}));
        hook(turn, "afterAgentResponse", json!({"text": chunk[0].text}));
        hook(turn, "stop", json!({"status": "completed", "loop_count": 0}));
    }
    lines
}

/// Kinds of secrets of which a piece is in `bytes`.
fn left<'a>(planted: &'a [Planted], bytes: &[u8]) -> BTreeSet<&'a str> {
    let text = String::from_utf8_lossy(bytes);
    planted.iter().filter(|one| text.contains(&one.piece)).map(|one| one.kind.as_str()).collect()
}

fn world() -> (World, Vec<Planted>) {
    let planted = planted();
    assert!(planted.len() >= 60 && tokens(&planted).len() == 7, "{}", planted.len());
    let world = World::new();
    let file = world.write_home("planted.jsonl", &stream(&planted));
    world.ok(&["import", file.to_str().unwrap()]);
    (world, planted)
}

#[test]
fn no_exported_byte_holds_a_planted_secret() {
    let (world, planted) = world();
    let raw = world.ok(&["export", "--all", "--format", "jsonl", "--content", "full"]);
    assert_eq!(left(&planted, raw.as_bytes()).len(), planted.len(), "the raw log is whole");
    let mut most = 0;
    for format in ["otlp-json", "otlp-proto", "chrome-trace", "html", "jsonl"] {
        for content in ["off", "metadata", "full"] {
            if (format, content) == ("jsonl", "full") {
                continue;
            }
            let out = world.scratch("out");
            let path = out.to_str().unwrap();
            world.ok(&["export", "--all", "--format", format, "--content", content, "-o", path]);
            let left = left(&planted, &fs::read(&out).unwrap());
            eprintln!(
                "{format} {content}: {} of {} planted secrets left {left:?}",
                left.len(),
                planted.len()
            );
            assert!(content == "full" || left.is_empty(), "{format} {content}: {left:?}");
            most = most.max(left.len());
        }
    }
    assert!(most * 100 <= planted.len() * 3, "{most} of {} leave at full", planted.len());
    let open =
        world.ok(&["export", "--all", "--format", "otlp-json", "--content", "full", "--no-redact"]);
    assert!(
        left(&planted, open.as_bytes()).len() > planted.len() / 2,
        "a person asked for secrets"
    );
    let refused =
        world.run(&["export", "--all", "--format", "html", "--content", "off", "--no-redact"]);
    assert_eq!(refused.code, 2, "{refused:?}");
}

#[test]
fn no_byte_for_a_destination_and_none_of_a_redacted_terminal_holds_a_planted_secret() {
    let (world, planted) = world();
    // Nothing listens there, and a preview sends nothing.
    let destinations = ["off", "metadata", "full"].map(|content| {
        format!(
            "[[destination]]\nname = \"{content}\"\nendpoint = \"http://127.0.0.1:9\"\ncontent = \"{content}\"\n"
        )
    });
    world.write_config(&destinations.join(""));
    for content in ["off", "metadata", "full"] {
        let shown = world.run(&["export", "--to", content, "--dry-run", "--all"]);
        assert_eq!(shown.code, 0, "{shown:#?}");
        assert!(shown.stderr.contains("Nothing was sent"), "{}", shown.stderr);
        let left = left(&planted, shown.stdout.as_bytes());
        eprintln!("destination at {content}: {} of {} left {left:?}", left.len(), planted.len());
        assert!(left.len() * 100 <= planted.len() * 3, "{content}: {left:?}");
        assert!(content == "full" || left.is_empty(), "{content}: {left:?}");
        // At `off`, no text is sent that could contain a secret.
        let least = [("off", 0), ("metadata", 1), ("full", 500)]
            .iter()
            .find(|one| one.0 == content)
            .unwrap()
            .1;
        let marked = shown.stdout.matches("[redacted:").count();
        assert!(marked >= least, "{content}: {marked}");
    }
    for arguments in [
        &["show", ROOT][..],
        &["show", ROOT, "--json"],
        &["tail", "--no-follow", "-n", "500"],
        &["tail", "--no-follow", "-n", "500", "--json"],
        &["sessions", "--json"],
    ] {
        let open = world.ok(arguments);
        let redacted = world.ok(&[arguments, &["--redact"]].concat());
        let (before, after) =
            (left(&planted, open.as_bytes()), left(&planted, redacted.as_bytes()));
        eprintln!(
            "{arguments:?}: {} of {} without --redact, {} with: {after:?}",
            before.len(),
            planted.len(),
            after.len()
        );
        assert!(before.len() > after.len(), "{arguments:?}");
        assert!(after.len() * 100 <= planted.len() * 3, "{arguments:?}: {after:?}");
    }
    let unknown = world.run(&["export", "--to", "nobody", "--dry-run"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("off, metadata, full"), "{unknown:#?}");
    assert_eq!(world.run(&["export", "--to", "off"]).code, 2, "a command sends nothing itself");
}

#[test]
fn neither_pages_files_nor_the_index_hold_a_planted_secret() {
    let (world, planted) = world();
    let collector = Collector::start(&world);
    for content in ["off", "metadata", "full"] {
        let address = format!(
            "{}/api/v1/sessions/{ROOT}/export?format=html&content={content}",
            collector.url
        );
        let page = collector.get_text(&address).unwrap();
        let left = left(&planted, page.as_bytes());
        assert!(left.len() * 100 <= planted.len() * 3, "{content}: {left:?}");
        assert!(content == "full" || left.is_empty(), "{content}: {left:?}");
    }
    // A word from a text that is indexed last. Once it is found, all earlier texts are indexed, too.
    eventually("texts are indexed", SOON * 8, || {
        let found = collector
            .get("search?q=portquery%20OR%20staging")
            .map_err(|error| format!("{error:?}"))?;
        match found["lag"].as_u64() {
            Some(0) => Ok(()),
            lag => Err(format!("lag {lag:?}")),
        }
    });
    collector.stop();
    let index = fs::read(world.state().join("search.db")).unwrap();
    let left = left(&planted, &index);
    assert!(left.len() * 100 <= planted.len() * 3, "{left:?}");
}

#[test]
fn no_answer_to_an_agent_holds_a_planted_secret() {
    let (world, planted) = world();
    let collector = Collector::start(&world);
    // Indexing has the lowest priority. On a machine that is compiling, it takes minutes.
    eventually("texts are indexed", SOON * 8, || {
        let found = collector.get("search?q=curl").map_err(|error| format!("{error:?}"))?;
        let hits = found["items"].as_array().map_or(0, Vec::len);
        if hits > 0 && found["lag"] == 0 { Ok(()) } else { Err(found.to_string()) }
    });
    let mut server = world.command(&world.hookspan());
    let mut child: Child =
        server.args(["mcp", "--all"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    });
    writeln!(
        stdin,
        "{}",
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    )
    .unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .unwrap();
    let calls = [
        ("list_sessions", json!({})),
        ("show_session", json!({"session": ROOT})),
        ("errors", json!({})),
        ("search", json!({"q": "password"})),
        ("search", json!({"q": "curl"})),
        ("search", json!({"q": "token"})),
        ("where_did_time_go", json!({"session": ROOT})),
        ("where_did_time_go", json!({"days": 365})),
        ("show_session", json!({"session": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"})),
    ];
    let mut bytes = 0;
    for (id, (tool, arguments)) in calls.iter().enumerate() {
        let params = json!({"name": tool, "arguments": arguments});
        writeln!(
            stdin,
            "{}",
            json!({"jsonrpc": "2.0", "id": id + 1, "method": "tools/call", "params": params})
        )
        .unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        bytes += line.len();
        assert_eq!(left(&planted, line.as_bytes()), BTreeSet::new(), "{tool} {arguments}: {line}");
    }
    assert!(bytes > 4_000, "the answers are empty");
    drop(stdin);
    child.wait().unwrap();
}
