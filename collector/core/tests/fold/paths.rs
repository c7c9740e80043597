//! Tests how pages name the file of a call, for every spelling of the file and its root.

use hookspan_core::{Config, Span, SpanKind, path};

use crate::support::{Store, fold, hooks};

fn played(name: &str) -> Store {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let text = std::fs::read_to_string(folder.join(name).with_extension("jsonl")).unwrap();
    fold(Config::default(), &hooks(&text), 1_000)
}

/// For each call with an id: the file as pages show it.
fn shown(store: &Store) -> Vec<(String, String)> {
    let calls = store.spans.values().filter(|span| span.kind == SpanKind::Tool);
    let named = |span: &Span| {
        let id = span.text("gen_ai.tool.call.id")?.to_owned();
        Some((id, span.file_shown()?.into_owned()))
    };
    let mut found: Vec<(String, String)> = calls.filter_map(named).collect();
    found.sort();
    found
}

#[track_caller]
fn check(name: &str, expected: &[(&str, &str)]) {
    let found = shown(&played(name));
    let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(found, expected, "{name}");
}

fn projects(name: &str) -> Vec<String> {
    let store = played(name);
    let rows = store.sessions.values().filter_map(|row| row.workspace.as_deref());
    rows.map(|folder| path::name(folder).to_owned()).collect()
}

#[test]
fn a_file_is_named_below_the_root_of_its_own_hooks() {
    check(
        "windows-roots-and-files",
        &[
            ("r1", "lib/price.ts"),
            ("r2", "lib/sum.ts"),
            ("r3", "d:\\code\\shop-old\\lib\\price.ts"),
            ("r4", "docs/my notes.md"),
        ],
    );
    check(
        "files-of-two-roots",
        &[("r1", "src/main.rs"), ("r2", "src/main.rs"), ("r3", "/w/server-old/src/main.rs")],
    );
    check("roots-move-to-a-worktree", &[("r1", "src/lib.rs"), ("r2", "src/lib.rs")]);
    check("roots-on-other-machines", &[("r1", "src/lib.rs"), ("r2", "a.rs")]);
}

#[test]
fn another_root_than_the_projects_is_named_on_the_call() {
    let store = played("files-of-two-roots");
    let root = |id: &str| {
        let call = store.spans.values().find(|span| span.text("gen_ai.tool.call.id") == Some(id));
        call.unwrap().text("hookspan.file.root").map(str::to_owned)
    };
    assert_eq!(root("r1"), None);
    assert_eq!(root("r2").as_deref(), Some("/w/server"));
    assert_eq!(root("r3"), None);
}

#[test]
fn a_worktree_is_its_repositorys_project_and_named_on_the_turn() {
    assert_eq!(projects("worktree-of-a-repository"), ["shop", "shop"]);
    let store = played("worktree-of-a-repository");
    let turns = store.spans.values().filter(|span| span.kind == SpanKind::Generation);
    let mut worktrees: Vec<Option<&str>> =
        turns.map(|span| span.text("hookspan.worktree")).collect();
    worktrees.sort_unstable();
    assert_eq!(worktrees, [None, Some("k2f")]);
    assert_eq!(projects("roots-move-to-a-worktree"), ["shop"]);
}

#[test]
fn the_name_of_a_host_is_kept_nowhere() {
    let store = played("roots-on-other-machines");
    let text = format!("{:?} {:?}", store.spans, store.sessions);
    assert!(!text.contains("forge07") && !text.contains("7b2f"), "{text}");
    let mut folders: Vec<&str> =
        store.sessions.values().filter_map(|row| row.workspace.as_deref()).collect();
    folders.sort_unstable();
    assert_eq!(folders, ["/srv/shop", "/workspaces/shop"]);
}

#[test]
fn completions_of_one_workspace_are_no_session_of_a_list() {
    let store = played("tab-hooks-of-fresh-ids");
    let surfaces: Vec<&str> = store.sessions.values().map(|row| row.surface).collect();
    assert_eq!(surfaces, ["tab", "tab"]);
    assert!(store.spans.values().all(|span| span.kind == SpanKind::Tab));
}

#[test]
fn every_odd_spelling_from_outside_is_one_path() {
    for spelling in
        ["C:\\c:\\Repos\\shop", "/c:/Repos/shop", "file:///c%3A/Repos/shop", "c:\\Repos\\shop\\"]
    {
        assert_eq!(path::plain(spelling), "c:/Repos/shop", "{spelling}");
    }
    assert_eq!(path::below("/c:/Repos/shop", "C:\\c:\\Repos\\shop\\a.rs").as_deref(), Some("a.rs"));
}
