//! Every stream in `streams/` gives the tree written beside it.

use std::path::Path;

use hookspan_core::Config;

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
