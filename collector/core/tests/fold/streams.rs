//! Checks that every stream in `streams/` gives the tree in the file beside it.

use std::collections::BTreeMap;
use std::path::Path;

use hookspan_core::Config;

use crate::scorecard::lines;
use crate::support::{Player, fold, hooks, render};

/// Names and texts of all streams, by name.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let streams = files.filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    let texts: BTreeMap<String, String> = streams.map(read).collect();
    assert!(!texts.is_empty());
    texts
}

#[test]
fn every_stream_gives_the_tree_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let mut wrong = Vec::new();
    for (name, text) in texts(&folder) {
        let store = fold(Config::default(), &hooks(&text), 1_000);
        store.check();
        let tree = format!("{name}.tree");
        let expected = std::fs::read_to_string(folder.join(&tree)).unwrap_or_default();
        let got = render(&store);
        if got != expected {
            // The result is written outside the repository. Compare it with the expected tree, and move the file by
            // hand.
            std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(tree), &got).unwrap();
            wrong.push(format!("{name}\n--- expected\n{expected}--- got\n{got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_stream_gives_the_same_tree_hook_by_hook() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    for (name, text) in texts(&folder) {
        let (single, whole) = (hooks(&text), hooks(&text));
        let single = fold(Config::default(), &single, 1);
        assert_eq!(render(&single), render(&fold(Config::default(), &whole, 1_000)), "{name}");
    }
}

#[test]
fn every_stream_gives_the_same_tree_while_time_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    for (name, text) in texts(&folder) {
        let hooks = hooks(&text);
        let mut player = Player::new(Config::default());
        for hook in &hooks {
            player.feed(std::slice::from_ref(hook));
            player.pass(hook.observed_at);
        }
        let (live, whole) = (player.finish(), fold(Config::default(), &hooks, 1_000));
        live.check();
        assert_eq!(render(&live), render(&whole), "{name}");
    }
}

#[test]
fn every_stream_is_what_really_happened_or_says_why_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let mut wrong = Vec::new();
    for line in lines(&folder) {
        let told = line.score.is_right() && line.score.untold == 0;
        if told == line.why.is_some() {
            wrong.push(format!("{}: why {:?}, but {:#?}", line.name, line.why, line.score));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_scorecard_is_current() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let written = std::fs::read_to_string(package.join("../../SCORECARD.md")).unwrap_or_default();
    assert!(
        written == crate::scorecard::document(package),
        "write it anew with `cargo run -p hookspan-core --example scorecard`, and read the difference"
    );
}

#[test]
fn every_input_of_other_people_is_what_really_happened() {
    let wrong: Vec<String> = lines(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outside"))
        .into_iter()
        .filter(|line| !line.score.is_right() || (line.score.untold > 0) != line.why.is_some())
        .map(|line| format!("{}: why {:?}, but {:#?}", line.name, line.why, line.score))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_stands_in_the_source_once_and_in_the_scorecard() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let section = crate::rules::section(package);
    for crate::rules::Rule { name, file, with, without } in crate::rules::RULES {
        let source = std::fs::read_to_string(package.join("src").join(file)).unwrap();
        assert_eq!(source.matches(with).count(), 1, "{name}: {with}");
        assert_ne!(with, without, "{name}");
        assert!(section.contains(&format!("| {name} |")), "{name}: run the example `rules`");
    }
}

#[test]
fn the_index_lists_every_stream_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let names: Vec<String> = texts(&folder).into_keys().collect();
    let index = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let listed: Vec<&str> = index
        .lines()
        .filter_map(|line| line.strip_prefix("| `").and_then(|rest| rest.split('`').next()))
        .collect();
    assert_eq!(listed, names);
}

#[test]
fn every_fact_is_shown_by_what_exists_and_every_stream_shows_one() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut unused = texts(&package.join("tests/streams"));
    let known: Vec<String> = unused.keys().cloned().collect();
    let facts = std::fs::read_to_string(package.join("tests/streams/FACTS.md")).unwrap();
    let rows = facts.lines().filter(|line| line.starts_with("| ") && !line.ends_with("shown by |"));
    for row in rows {
        let shown = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let names: Vec<&str> = shown.split(", ").map(|name| name.trim_matches('`')).collect();
        for name in names {
            unused.remove(name);
            let is_test = name.split_once("::").is_some_and(|(file, test)| {
                let file = package.join(format!("tests/fold/{file}.rs"));
                std::fs::read_to_string(file).unwrap().contains(&format!("fn {test}("))
            });
            assert!(is_test || known.iter().any(|stream| stream == name), "{name} in {row}");
        }
    }
    assert_eq!(unused.into_keys().collect::<Vec<_>>(), Vec::<String>::new());
}
