//! Tests that deleted data is in no file any more, and that exported files are harmless.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use e2e_support::collector::Collector;
use e2e_support::wait::{SOON, eventually};
use e2e_support::world::World;
use e2e_support::{binaries, player};

const DELETED: &str = "0f9e8d7c-6b5a-4948-8372-615f4e3d2c1b";
const KEPT: &str = "7a1f0c52-9d3e-4a77-8c15-2e90a4d7f3b1";
const MARKER: &str = "quokkazanzibar";
const OTHER: &str = "walrusvaduz";
const TAG: &str = "ibexulaanbaatar";
const NOTE: &str = "tapirreykjavik";

#[test]
fn a_deleted_session_is_in_no_byte_of_any_file() {
    // Nobody listens at the destination, so requests stay in the queue.
    let world = World::new();
    world.write_config(
        "[[destination]]\nname = \"nowhere\"\nendpoint = \"http://127.0.0.1:1\"\ncontent = \"full\"\n\
         compression = \"none\"\n",
    );
    let collector = Collector::start(&world);
    for (root, word) in [(DELETED, MARKER), (KEPT, OTHER)] {
        for (event, body) in session(root, word) {
            let reply = player::hook(&world, event, body.to_string().as_bytes());
            assert_eq!(reply.code, Some(0), "{reply:?}");
        }
    }
    collector.committed(2 * session(DELETED, MARKER).len());
    // What a person writes about a session goes with it.
    let marks = json!({"starred": true, "add_tags": [TAG], "note": format!("about {NOTE}")});
    collector.post(&format!("sessions/{DELETED}/marks"), &marks).unwrap();
    collector.post(&format!("sessions/{KEPT}/marks"), &json!({"add_tags": [OTHER]})).unwrap();
    for word in [TAG, NOTE] {
        assert!(!places(&world, &[word.as_bytes().to_vec()]).is_empty(), "{word} is nowhere");
    }
    let needles =
        eventually("it is in the journal, the index, the database and the queue", SOON, || {
            // Bodies are compressed, so pieces of their compressed bytes are searched for.
            let mut needles = vec![MARKER.as_bytes().to_vec(), DELETED.as_bytes().to_vec()];
            needles.extend(blobs(&world, MARKER)?);
            let journal = places(&world, &needles[..1]);
            for file in ["journal", "search.db"] {
                if !journal.iter().any(|path| path.contains(file)) {
                    return Err(format!(
                        "not in {file}, only in {journal:?}\n{}",
                        world.describe()
                    ));
                }
            }
            let missing =
                needles.iter().filter(|needle| places(&world, &[(*needle).clone()]).is_empty());
            match missing.count() {
                0 => Ok(needles),
                some => Err(format!("{some} of {} pieces are nowhere", needles.len())),
            }
        });

    let needles: Vec<Vec<u8>> =
        needles.into_iter().chain([TAG, NOTE].map(|word| word.as_bytes().to_vec())).collect();
    let body = json!({"confirm": DELETED});
    let answer = collector.post(&format!("sessions/{DELETED}/delete"), &body).unwrap();
    assert_eq!(answer["deleted_hooks"], session(DELETED, MARKER).len(), "{answer:#}");
    assert_eq!(places(&world, &needles), Vec::<String>::new(), "right after the answer");
    assert!(!places(&world, &[OTHER.as_bytes().to_vec()]).is_empty(), "the other one has gone too");

    // Neither an orderly end nor the next start may bring it back.
    collector.stop();
    assert_eq!(places(&world, &needles), Vec::<String>::new(), "after the end");
    let collector = Collector::start(&world);
    collector.committed(session(KEPT, OTHER).len());
    let sessions = collector.get("sessions").unwrap();
    let roots: Vec<_> =
        sessions["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
    assert_eq!(roots, [KEPT]);
    assert_eq!(sessions["items"][0]["marks"]["tags"], json!([OTHER]));
    // A rebuild derives sessions again, and keeps what people added.
    collector.stop();
    world.ok(&["rebuild"]);
    let tagged = world.json(&["sessions", "--tag", OTHER, "--json"]);
    assert_eq!(tagged[0]["id"], KEPT, "{tagged:#}");
    let raw = world.ok(&["export", "--all", "--format", "jsonl", "--content", "full"]);
    assert!(raw.contains(OTHER) && !raw.contains(MARKER), "{raw}");
    assert_eq!(places(&world, &needles), Vec::<String>::new(), "after the next start");
}

#[test]
fn hostile_text_is_text_in_the_page_that_is_exported() {
    let world = World::new();
    let collector = Collector::start(&world);
    let texts = hostile();
    let session = session_of(DELETED, &texts);
    for (event, body) in &session {
        let reply = player::hook(&world, event, body.as_bytes());
        assert_eq!(reply.code, Some(0), "{reply:?}");
    }
    collector.committed(session.len());
    let command =
        world.ok(&["export", "--session", DELETED, "--format", "html", "--content", "full"]);
    let address =
        format!("{}/api/v1/sessions/{DELETED}/export?format=html&content=full", collector.url);
    let served = collector.get_text(&address).unwrap();
    for page in [command, served] {
        assert_eq!(foreign_markup(&page), Vec::<String>::new());
        // A part of each text must be on the page. Otherwise the page could be harmless only because the text is
        // missing.
        for number in 0..texts.len() {
            assert!(page.contains(&format!("case{number}:")), "case {number} is not in the page");
        }
        let obeyed = page.chars().find(|c| {
            (c.is_control() && *c != '\n')
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
        });
        assert_eq!(obeyed, None, "a character that something obeys");
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    }
}

/// A turn with a command, from its prompt to the end of its session.
fn session(root: &str, word: &str) -> Vec<(&'static str, Value)> {
    let hook = |event: &'static str, own: Value| {
        let mut body = json!({
            "conversation_id": root, "generation_id": format!("1a2b3c4d-5e6f-4708-8192-{}", &root[24..]),
            "model": "default", "hook_event_name": event, "cursor_version": "3.7.19", "session_id": root,
            "workspace_roots": ["/home/dev/src/lighthouse"],
        });
        body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        (event, body)
    };
    let call = json!({
        "tool_name": "Shell", "tool_use_id": format!("call-{root}"),
        "tool_input": {"command": format!("echo {word}")},
    });
    let mut after = call.clone();
    after["tool_output"] = json!(format!("said {word} and nothing else"));
    after["duration"] = json!(12);
    vec![
        ("beforeSubmitPrompt", json!({"prompt": format!("find {word}"), "attachments": []})),
        ("preToolUse", call),
        ("postToolUse", after),
        ("afterAgentResponse", json!({"text": format!("{word} was found")})),
        ("stop", json!({"status": "completed", "loop_count": 0})),
        ("sessionEnd", json!({"reason": "completed", "final_status": "completed"})),
    ]
    .into_iter()
    .map(|(event, own)| hook(event, own))
    .collect()
}

/// A session whose calls contain these texts. Each is given as JSON text, because lone surrogates have no other form.
fn session_of(root: &str, texts: &[String]) -> Vec<(&'static str, String)> {
    let all = session(root, "PLACE");
    let mut hooks = Vec::new();
    for (event, body) in all {
        let body = body.to_string();
        if !matches!(event, "preToolUse" | "postToolUse") {
            hooks.push((event, body));
            continue;
        }
        for (number, text) in texts.iter().enumerate() {
            let own = body.replace("PLACE", &format!("case{number}: {text}"));
            hooks.push((event, own.replace("call-", &format!("call-{number}-"))));
        }
    }
    hooks
}

/// The contents of the JSON strings in the pages' corpus, and texts with which a page could be tricked.
fn hostile() -> Vec<String> {
    let path = binaries::project().join("dashboard/web/tests/corpus/ansi.json");
    let corpus = fs::read_to_string(path).unwrap();
    let inputs = corpus.lines().filter_map(|line| {
        let (_, rest) = line.split_once("\"input\": \"")?;
        Some(rest.split_once("\", \"visible\"")?.0.to_owned())
    });
    let mut texts: Vec<String> = inputs.collect();
    assert!(texts.len() > 20, "the corpus has another form: {texts:?}");
    texts.extend(
        [
            "\\\"><svg onload=alert(3)>",
            "javascript:alert(4)",
            "</script></style></title><b>bold</b>",
            "'><a href='http://evil.example'>",
            "--><!-- ]]>",
            "&lt;script&gt; &#60;",
            "' OR 1=1; DROP TABLE span; --",
        ]
        .map(str::to_owned),
    );
    texts
}

/// Tags and attributes of a page that the exporter does not write.
fn foreign_markup(page: &str) -> Vec<String> {
    let tags = "!DOCTYPE html head meta title style body main header h1 h2 h3 p section article details summary svg text \
                rect span small b dl dt dd";
    let attributes = "html lang charset http-equiv content name viewBox preserveAspectRatio aria-hidden class x y width \
                      height";
    let known = |list: &str, word: &str| list.split(' ').any(|one| one == word);
    let (before, rest) = page.split_once("<style>").unwrap();
    let (_, after) = rest.split_once("</style>").unwrap();
    let mut foreign = Vec::new();
    for piece in [before, after].iter().flat_map(|part| part.split('<').skip(1)) {
        let Some((inside, _)) = piece.split_once('>') else {
            foreign.push(piece.to_owned());
            continue;
        };
        // The values are removed. What remains between quotes are names.
        let names: String = inside.split('"').step_by(2).collect::<Vec<_>>().join(" ");
        let mut names =
            names.trim_start_matches('/').split([' ', '=']).filter(|name| !name.is_empty());
        let tag = names.next().unwrap_or_default();
        if !known(tags, tag) || names.any(|name| !known(attributes, name)) {
            foreign.push(inside.to_owned());
        }
    }
    foreign
}

/// The end of each stored body of the deleted session. Fails if there is no such body, or no stored request that
/// contains `word`, because the test would then prove nothing.
fn blobs(world: &World, word: &str) -> Result<Vec<Vec<u8>>, String> {
    let db = Connection::open_with_flags(
        world.state().join("hookspan.db"),
        OpenFlags::SQLITE_OPEN_READ_ONLY,
    )
    .unwrap();
    let read = |sql: &str, value: &str| -> Vec<Vec<u8>> {
        let mut statement = db.prepare(sql).unwrap();
        let rows = statement.query_map([value], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let bodies = read(
        "SELECT body FROM payload JOIN raw_hook USING (seq) JOIN name ON name.id = conversation WHERE name.text = ?1",
        DELETED,
    );
    let requests =
        read("SELECT body FROM export_batch WHERE instr(body, CAST(?1 AS BLOB)) > 0", word);
    if bodies.is_empty() || requests.is_empty() {
        return Err(format!("{} bodies and {} requests", bodies.len(), requests.len()));
    }
    // The end of a short body is in one page together with its row, and after the headers that all bodies share.
    Ok(bodies.iter().map(|body| body[body.len().saturating_sub(40)..].to_vec()).collect())
}

/// Files in the state directory that contain one of `needles`.
fn places(world: &World, needles: &[Vec<u8>]) -> Vec<String> {
    let mut found = Vec::new();
    for path in files(&world.state()) {
        // A file may disappear while the files are listed.
        let Ok(bytes) = fs::read(&path) else { continue };
        let holds = |needle: &Vec<u8>| bytes.windows(needle.len()).any(|window| window == needle);
        if needles.iter().any(holds) {
            found.push(path.strip_prefix(world.state()).unwrap().display().to_string());
        }
    }
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}
