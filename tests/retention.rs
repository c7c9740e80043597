//! Tests deletion by age in every way in which it can be started: what it deletes and reports, and that no byte
//! remains.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use e2e_support::collector::Collector;
use e2e_support::player;
use e2e_support::wait::{SOON, eventually};
use e2e_support::world::World;

const SESSION: &str = "0f9e8d7c-6b5a-4948-8372-615f4e3d2c1b";

/// Hooks with a unique word in every place that hookspan stores: names, fields, texts, paths; with and without ids.
fn hooks(root: &str, word: &str) -> Vec<(String, Vec<u8>)> {
    let secret = |place: &str| format!("{word}{place}");
    let hook = |event: &str, own: Value| {
        let mut body = json!({
            "conversation_id": root, "generation_id": format!("1a2b3c4d-5e6f-4708-8192-{}", &root[24..]),
            "model": secret("model"), "hook_event_name": event, "cursor_version": "3.7.19", "session_id": root,
            "workspace_roots": [format!("/home/dev/{}", secret("project"))],
            secret("field"): 1, "user_email": secret("email"),
        });
        body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        (event.to_owned(), body.to_string().into_bytes())
    };
    let call = json!({"tool_name": secret("tool"), "tool_use_id": secret("call"),
                      "tool_input": {"command": secret("command"), "path": format!("/x/{}", secret("path"))}});
    let mut after = call.clone();
    after["tool_output"] = json!(secret("output"));
    after["duration"] = json!(12);
    let unknown = secret("event");
    vec![
        hook("beforeSubmitPrompt", json!({"prompt": secret("prompt"), "attachments": []})),
        hook("preToolUse", call),
        hook("postToolUse", after),
        hook(&unknown, json!({"text": secret("unknown")})),
        hook("afterAgentThought", json!({"text": secret("thought")})),
        hook("afterAgentResponse", json!({"text": secret("response")})),
        hook("stop", json!({"status": "error", "error_message": secret("error"), "loop_count": 0})),
        hook("sessionEnd", json!({"reason": "completed", "final_status": "completed"})),
        // Hooks that belong to no session.
        ("stop".to_owned(), format!("no JSON {}", secret("broken")).into_bytes()),
        (secret("argument"), format!("{{\"cut\": \"{}", secret("cut")).into_bytes()),
        (
            "workspaceOpen".to_owned(),
            json!({"hook_event_name": "workspaceOpen", "cursor_version": "3.7.19",
                   "workspace_roots": [format!("/w/{}", secret("root"))], secret("other"): 1})
            .to_string()
            .into_bytes(),
        ),
    ]
}

fn play(world: &World, root: &str, word: &str) -> usize {
    let hooks = hooks(root, word);
    for (event, body) in &hooks {
        let reply = player::hook(world, event, body);
        assert_eq!(reply.code, Some(0), "{reply:?}");
    }
    hooks.len()
}

/// A piece of each compressed body. The end of a body is contiguous in the file.
fn pieces(world: &World) -> Vec<Vec<u8>> {
    let path = world.state().join("hookspan.db");
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut bodies = db.prepare("SELECT body FROM payload").unwrap();
    let rows = bodies.query_map([], |row| row.get::<_, Vec<u8>>(0)).unwrap();
    let end = |body: Vec<u8>| body[body.len().saturating_sub(24)..].to_vec();
    rows.map(Result::unwrap).map(end).filter(|piece| piece.len() > 12).collect()
}

/// Files in the state directory that contain one of `needles`.
fn places(world: &World, needles: &[Vec<u8>]) -> Vec<String> {
    let mut found = Vec::new();
    for path in files(&world.state()) {
        let Ok(bytes) = fs::read(&path) else { continue };
        // The ballast consists of zeros. It is read once, and not once per needle.
        if bytes.iter().all(|byte| *byte == 0) {
            continue;
        }
        for needle in needles {
            if let Some(at) = bytes.windows(needle.len()).position(|window| window == needle) {
                let around = &bytes[at.saturating_sub(20)..(at + 60).min(bytes.len())];
                found.push(format!(
                    "{} at {at}: {:?}",
                    path.display(),
                    String::from_utf8_lossy(around)
                ));
            }
        }
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

fn indexed(world: &World, word: &str) {
    let path = world.state().join("search.db");
    eventually("it is in the search index", SOON, || {
        let bytes = [fs::read(&path), fs::read(path.with_extension("db-wal"))];
        let holds = |bytes: &Vec<u8>| bytes.windows(word.len()).any(|part| part == word.as_bytes());
        if bytes.iter().flatten().any(holds) { Ok(()) } else { Err("not yet".to_owned()) }
    });
}

#[test]
fn prune_leaves_no_byte_in_any_file_of_anything_that_was_ever_kept() {
    let world = World::new();
    let word = "quokkazanzibar";
    let collector = Collector::start(&world);
    collector.committed(play(&world, SESSION, word));
    indexed(&world, word);
    collector.stop();
    let needles: Vec<_> = [vec![word.as_bytes().to_vec()], pieces(&world)].concat();
    // Remains of a killed import, of a torn write, and of a damaged database.
    let damaged = world.state().join("damaged-1700000000000000000");
    fs::create_dir(&damaged).unwrap();
    for (name, text) in [
        ("imports/00000000000000000001-0000000000000001.part", word),
        ("torn", word),
        ("damaged-1700000000000000000/hookspan.db", word),
        ("damaged-1700000000000000000/salvaged.json", "{\"hooks\":0,\"lost\":0}"),
    ] {
        let path = world.state().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert!(places(&world, &needles).len() > needles.len(), "each is somewhere");

    let asked = world.run(&["prune", "--older-than", "0s"]);
    assert_eq!(asked.code, 1, "{asked:#?}");
    assert!(
        asked.stderr.contains("not a terminal: pass --yes to delete recorded data"),
        "{asked:#?}"
    );
    let plan = world.json(&["prune", "--older-than", "0s", "--dry-run", "--json"]);
    assert!(!places(&world, &needles).is_empty(), "a dry run deletes nothing");
    let done = world.json(&["prune", "--older-than", "0s", "--yes", "--json"]);
    assert_eq!(plan["hooks"], hooks(SESSION, word).len(), "{plan:#}");
    assert_eq!(
        (&plan["sessions"], &plan["turns"], &plan["damaged_databases"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert!(plan["spans"].as_u64() > Some(2) && plan["bytes"].as_u64() > Some(1_000), "{plan:#}");
    let mut expected = plan.clone();
    expected["deleted"] = json!(true);
    assert_eq!(done, expected, "what the dry run says is what the run does");
    assert_eq!(places(&world, &needles), Vec::<String>::new());

    // Starting a collector does not bring it back.
    Collector::start(&world).stop();
    assert_eq!(places(&world, &needles), Vec::<String>::new(), "after the next start");
}

#[test]
fn retention_leaves_no_byte_either_and_keeps_what_is_younger() {
    let world = World::new();
    let (old, new) = ("quokkazanzibar", "walrusvaduz");
    let text: String = hooks(SESSION, old)
        .iter()
        .map(|(event, body)| {
            let body = String::from_utf8_lossy(body).into_owned();
            json!({"observed_at": "2024-01-01T00:00:00Z", "argument": event, "event": body})
                .to_string()
                + "\n"
        })
        .collect();
    let file = world.scratch("old.jsonl");
    fs::write(&file, text).unwrap();
    world.ok(&["import", file.to_str().unwrap()]);
    let collector = Collector::start(&world);
    indexed(&world, old);
    let needles: Vec<_> = [vec![old.as_bytes().to_vec()], pieces(&world)].concat();
    let young = "7a1f0c52-9d3e-4a77-8c15-2e90a4d7f3b1";
    play(&world, young, new);
    collector.committed(2 * hooks(SESSION, old).len());
    collector.stop();
    world.write_config("[retention]\nmax_age = \"30d\"\n");
    let collector = Collector::start(&world);
    eventually("what is old is gone", SOON, || match places(&world, &needles) {
        found if found.is_empty() => Ok(()),
        found => Err(format!("{found:#?}")),
    });
    collector.stop();
    let raw = world.ok(&["export", "--all", "--format", "jsonl", "--content", "full"]);
    assert_eq!(raw.lines().count(), hooks(young, new).len());
    assert_eq!(world.json(&["rebuild", "--json"])["hooks"], hooks(young, new).len());
    assert_eq!(world.ok(&["rebuild"]), format!("Rebuilt from {} hooks\n", hooks(young, new).len()));
}

#[test]
fn a_session_that_is_deleted_takes_the_names_along_that_only_it_brought() {
    let world = World::new();
    let (word, other) = ("quokkazanzibar", "walrusvaduz");
    let kept = "7a1f0c52-9d3e-4a77-8c15-2e90a4d7f3b1";
    let collector = Collector::start(&world);
    let played = play(&world, SESSION, word) + play(&world, kept, other);
    collector.committed(played);
    indexed(&world, word);
    fs::create_dir(world.state().join("damaged-1700000000000000000")).unwrap();
    let body = json!({"confirm": SESSION});
    let answer = collector.post(&format!("sessions/{SESSION}/delete"), &body).unwrap();
    assert_eq!(answer["damaged_databases"], 1, "the answer says what it cannot know: {answer:#}");
    for place in
        ["event", "field", "tool", "model", "project", "command", "output", "thought", "error"]
    {
        let (gone, stays) = (format!("{word}{place}"), format!("{other}{place}"));
        assert_eq!(places(&world, &[gone.into_bytes()]), Vec::<String>::new(), "{place}");
        if matches!(place, "event" | "field") {
            assert!(!places(&world, &[stays.into_bytes()]).is_empty(), "{place} of the other one");
        }
    }
    // Hooks without a session cannot be assigned to the deleted one. They are deleted by age later.
    let raw = world.ok(&["export", "--all", "--format", "jsonl", "--content", "full"]);
    assert!(
        raw.contains(&format!("{word}root")) && !raw.contains(&format!("{word}prompt")),
        "{raw}"
    );
}
