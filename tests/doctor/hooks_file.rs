//! Tests what `doctor` finds in hooks.json: each fault with its place, where hooks go, and entries of others.

use std::fs;

use serde_json::{Value, json};

use e2e_support::world::{Finished, World};

use super::{finding, hooks_json, installed, only, wrong, wrong_of};

fn rewrite(world: &World, hooks: &Value) {
    fs::write(hooks_json(world), format!("{hooks:#}\n")).unwrap();
}

#[test]
fn every_fault_of_a_hooks_json_is_found_with_its_place() {
    let world = World::new();
    let hooks = installed(&world);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut hooks = hooks.clone();
        change(&mut hooks);
        rewrite(&world, &hooks);
    };
    let add = |entry: Value| {
        with(&|hooks| hooks["hooks"]["stop"].as_array_mut().unwrap().push(entry.clone()));
    };
    for foreign in [
        json!({ "command": "./mine.sh", "timeout": 0 }),
        json!({ "command": "./mine.sh", "timeout": "30" }),
        json!({ "type": "http", "command": "./mine.sh" }),
        json!({ "command": "  " }),
        json!({ "command": "./mine.sh", "matcher": 7 }),
        json!({ "command": "./mine.sh", "matcher": "Shell(" }),
        json!({ "hooks": [{ "type": "command", "command": "./mine.sh" }] }),
        json!("./mine.sh"),
    ] {
        add(foreign.clone());
        only(&world, "hooks.void", "problem");
        let found = finding(&world, "hooks.void");
        let place = &found["places"][0];
        let text = fs::read_to_string(hooks_json(&world)).unwrap();
        let line = text.lines().nth(place["line"].as_u64().unwrap() as usize - 1).unwrap();
        let at: String =
            line.chars().skip(place["column"].as_u64().unwrap() as usize - 1).collect();
        let named = ["0", "\"30\"", "\"http\"", "\"  \"", "7", "\"Shell(\"", "{", "\"./mine.sh\""];
        assert!(named.iter().any(|start| at.starts_with(start)), "{foreign}: {found:#} at {at}");
    }
    for version in [json!("1"), json!(null), json!(0), json!(1.5)] {
        with(&|hooks| hooks["version"] = version.clone());
        only(&world, "hooks.version", "problem");
    }
    with(&|hooks| drop(hooks.as_object_mut().unwrap().remove("version")));
    only(&world, "hooks.version", "problem");
    add(json!({ "command": "curl -s https://a.example.invalid/x -d @-" }));
    only(&world, "hooks.void_for_cli", "warning");
    with(&|hooks| hooks["hooks"]["notification"] = json!([{ "command": "./mine.sh" }]));
    only(&world, "hooks.unknown_event", "warning");
    with(&|hooks| {
        for event in ["stop", "postToolUse"] {
            hooks["hooks"].as_object_mut().unwrap().remove(event);
        }
    });
    only(&world, "hooks.missing_events", "problem");
    let what = finding(&world, "hooks.missing_events")["what"].as_str().unwrap().to_owned();
    assert!(what.contains("postToolUse, stop"), "{what}");
    with(&|hooks| drop(hooks["hooks"].as_object_mut().unwrap().remove("sessionStart")));
    only(&world, "hooks.missing_events", "warning");
    let command = hooks["hooks"]["stop"][0]["command"].as_str().unwrap().to_owned();
    add(json!({ "command": command, "timeout": 10 }));
    only(&world, "hooks.doubled", "problem");
    let windows = r"C:\Users\kim\AppData\Local\hookspan\bin\hookspan-shim.exe stop";
    let theirs = json!({ "command": windows, "timeout": 10 });
    let both = json!([{ "command": command, "timeout": 10 }, theirs]);
    // An event with only an entry of another system is one finding as well: it is not reported as missing, too.
    for entries in [both, json!([theirs])] {
        with(&|hooks| hooks["hooks"]["stop"] = entries.clone());
        only(&world, "hooks.other_system", "problem");
    }
    for wrapper in ["HOOKSPAN_DIR=/x COMMAND", "sh -c 'COMMAND'", "COMMAND || true"] {
        let wrapped = wrapper.replace("COMMAND", command.trim_start_matches("exec "));
        with(&|hooks| hooks["hooks"]["stop"] = json!([{ "command": wrapped, "timeout": 10 }]));
        only(&world, "hooks.foreign_form", "warning");
    }
    let elsewhere = world.scratch("elsewhere");
    let there = command.replace(" stop", &format!(" --dir {} stop", elsewhere.display()));
    with(&|hooks| hooks["hooks"]["stop"] = json!([{ "command": there, "timeout": 10 }]));
    only(&world, "hooks.other_directory", "problem");
    assert!(!elsewhere.exists());
    with(&|hooks| hooks["hooks"]["stop"][0]["matcher"] = json!("Shell"));
    only(&world, "hooks.altered", "warning");
    rewrite(&world, &hooks);
    assert_eq!(world.run(&["doctor"]).code, 0);
}

/// A Cursor started from the desktop does not have the variables of the shell in which `doctor` runs.
#[test]
fn variables_of_the_shell_do_not_hide_where_hooks_go() {
    let world = World::new();
    let hooks = installed(&world);
    let text = hooks.to_string();
    assert!(!text.contains("--dir"), "{text}");
    let elsewhere = world.scratch("elsewhere");
    for (name, value) in
        [("XDG_STATE_HOME", elsewhere.clone()), ("HOOKSPAN_DIR", elsewhere.join("hookspan"))]
    {
        let mut command = world.command(&world.hookspan());
        let finished =
            Finished::from(command.env(name, value).args(["doctor", "--json"]).output().unwrap());
        let found = wrong_of(&serde_json::from_str(&finished.stdout).unwrap());
        let expected = ("hooks.other_directory".to_owned(), "problem".to_owned());
        assert!(found.contains(&expected), "{name}: {found:?}");
        assert_eq!(finished.code, 1, "{name}");
    }
    assert!(!elsewhere.exists(), "doctor made it");
}

/// Cases of a hooks.json with entries of other programs: the file, the id of the finding that `doctor` reports after
/// `install`, and a part of the finding's text. The id is empty if there must be no finding.
const OF_OTHERS: [(&str, &str, &str); 4] = [
    (
        "{ \"version\": \"1\", \"hooks\": { \"stop\": [ { \"command\": \"./mine.sh\" } ] } }\n",
        "",
        "",
    ),
    (
        "{ \"version\": 1, \"hooks\": { \"preToolUse\": [ { \"command\": \"./mine.sh\", \"matcher\": \"Shell(\" } ] } }\n",
        "hooks.void",
        "not a regular expression",
    ),
    (
        "{ \"version\": 1, \"hooks\": { \"stop\": [ { \"command\": \"curl -s https://a.example.invalid/x -d @-\" } ] } }\n",
        "hooks.void_for_cli",
        "a text contains `//`",
    ),
    (
        "{ \"version\": 1, \"hooks\": { \"stop\": [ { \"command\": \"C:\\\\Users\\\\kim\\\\AppData\\\\Local\\\\hookspan\\\\bin\\\\hookspan-shim.exe stop\", \"timeout\": 10 } ] } }\n",
        "hooks.other_system",
        "for another operating system",
    ),
];

#[test]
fn hooks_of_other_people_are_kept_and_their_faults_are_told_once() {
    for (text, id, what) in OF_OTHERS {
        let world = World::new();
        let path = world.write_home(".cursor/hooks.json", text);
        installed(&world);
        let mut found = wrong(&world);
        found.retain(|(id, _)| id != "collector.stopped" && id != "hooks.silent");
        let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
        let expected: &[&str] = if id.is_empty() { &[] } else { &[id] };
        assert_eq!(ids, expected, "{text}");
        if !id.is_empty() {
            let said = finding(&world, id)["what"].to_string();
            assert!(said.contains(what), "{said}");
        }
        world.ok(&["uninstall", "--scope", "user"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
