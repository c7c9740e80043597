//! Every stream in `streams/` gives the tree written beside it.

use std::path::Path;

use hookspan_core::Config;

use crate::scorecard::lines;
use crate::support::{fold, hooks, render};

#[test]
fn every_stream_gives_the_tree_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut streams: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    streams.sort();
    assert!(!streams.is_empty());
    let mut wrong = Vec::new();
    for stream in streams {
        let text = std::fs::read_to_string(&stream).unwrap();
        let store = fold(Config::default(), &hooks(&text), 1_000);
        store.check();
        let tree = stream.with_extension("tree");
        let expected = std::fs::read_to_string(&tree).unwrap_or_default();
        let got = render(&store);
        if got != expected {
            // Left outside the repository, to be read as a diff and moved over the expectation by hand.
            let file = tree.file_name().unwrap();
            std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(file), &got).unwrap();
            let name = stream.file_name().unwrap().to_string_lossy();
            wrong.push(format!("{name}\n--- expected\n{expected}--- got\n{got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
fn the_index_lists_every_stream_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|e| e == "jsonl"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let index = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let listed: Vec<&str> = index
        .lines()
        .filter_map(|line| line.strip_prefix("| `").and_then(|rest| rest.split('`').next()))
        .collect();
    assert_eq!(listed, names);
}
