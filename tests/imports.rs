//! Checks who may know whom: reads the paths that each file names, and compares them with the table in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use e2e_support::binaries;

/// Our crates whose rooms are in the table: the name there, and the folder.
const CRATES: [(&str, &str); 5] = [
    ("shim", "shim/src"),
    ("core", "collector/core/src"),
    ("view", "collector/view/src"),
    ("dashboard", "dashboard/src"),
    ("collector", "collector/src"),
];

/// A module, and the modules of the same crate that it names. Both are paths below `src`, without `.rs` and `/mod.rs`.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn rooms_know_only_what_the_table_says() {
    let mut actual = BTreeMap::new();
    for (name, folder) in CRATES {
        actual.extend(rooms(name, &imports(folder)));
    }
    let written = table();
    let wrong: Vec<_> = actual
        .iter()
        .filter(|(room, knows)| written.get(*room) != Some(knows))
        .map(|(room, knows)| format!("| {room} | {} |", words(knows)))
        .chain(written.keys().filter(|room| !actual.contains_key(*room)).map(|room| {
            format!("{room} is in the table, but it imports nothing of its crate or does not exist")
        }))
        .collect();
    assert_eq!(wrong.join("\n"), "", "the table in ARCHITECTURE.md is not current");
}

#[test]
fn no_room_and_no_file_imports_in_a_circle() {
    let mut circles = Vec::new();
    for (name, folder) in CRATES {
        let files = imports(folder);
        circles.extend(circle(&files).map(|circle| format!("{name}: {}", circle.join(" -> "))));
        let rooms = rooms(name, &files);
        circles.extend(circle(&rooms).map(|circle| format!("rooms: {}", circle.join(" -> "))));
    }
    assert_eq!(circles.join("\n"), "");
}

#[test]
fn a_circle_is_seen() {
    let of = |arrows: &[(&str, &str)]| {
        let mut found = Imports::new();
        for (from, to) in arrows {
            found.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        circle(&found).map(|circle| circle.join(" "))
    };
    assert_eq!(of(&[("a", "b"), ("b", "c")]), None);
    assert_eq!(of(&[("a", "b"), ("b", "c"), ("c", "b")]).as_deref(), Some("b c b"));
}

#[test]
fn paths_are_read_out_of_nested_braces_and_expressions() {
    let text = "use crate::a::{self, b::{C, D as E}, f};\nlet x = crate::g::h(super::i::J);";
    let expected = [
        "crate::a",
        "crate::a::b::C",
        "crate::a::b::D",
        "crate::a::f",
        "crate::g::h",
        "super::i::J",
    ];
    assert_eq!(paths(text), expected);
}

/// The modules that each file below a crate's `src` names. The crate's root may name everything and is left out.
fn imports(folder: &str) -> Imports {
    let src = binaries::project().join(folder);
    let mut sources = BTreeMap::new();
    collect(&src, &src, &mut sources);
    let modules: BTreeSet<String> = sources.keys().cloned().collect();
    let names = |module: &String, text: &String| {
        let found = paths(text).into_iter().filter_map(|path| resolve(module, &path, &modules));
        found.filter(|found| found != module).collect()
    };
    sources.iter().map(|(module, text)| (module.clone(), names(module, text))).collect()
}

/// The top-level folders and files of a crate, each with the others that it names.
fn rooms(name: &str, files: &Imports) -> Imports {
    let room = |module: &str| format!("{name}/{}", module.split('/').next().unwrap());
    let mut rooms = Imports::new();
    for (module, named) in files {
        let own = room(module);
        let others = named.iter().map(|module| room(module)).filter(|other| *other != own);
        rooms.entry(own.clone()).or_default().extend(others);
    }
    rooms
}

/// The table `| room | knows |` of ARCHITECTURE.md.
fn table() -> Imports {
    let text = fs::read_to_string(binaries::project().join("ARCHITECTURE.md")).unwrap();
    let (_, section) = text.split_once("\n## Who may know whom\n").expect("the section exists");
    let section = section.split("\n## ").next().unwrap();
    let mut rooms = Imports::new();
    for row in section.lines().filter(|line| line.starts_with("| ") && line.contains('/')) {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let (room, knows) = (cells.next().unwrap(), cells.next().unwrap());
        let (krate, _) = room.split_once('/').unwrap();
        let knows = knows.split(", ").filter(|word| *word != "nobody");
        rooms.insert(room.to_owned(), knows.map(|word| format!("{krate}/{word}")).collect());
    }
    rooms
}

fn words(knows: &BTreeSet<String>) -> String {
    let words: Vec<_> = knows.iter().map(|room| room.split_once('/').unwrap().1).collect();
    if words.is_empty() { "nobody".to_owned() } else { words.join(", ") }
}

fn collect(src: &Path, folder: &Path, sources: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if name != "tests" {
                collect(src, &path, sources);
            }
        } else if let Some(stem) = name.strip_suffix(".rs") {
            let inside = path.strip_prefix(src).unwrap().with_file_name(stem);
            let module = inside.to_str().unwrap().replace('\\', "/");
            if ["lib", "main", "tests"].contains(&stem) {
                continue;
            }
            let module = module.strip_suffix("/mod").map_or(module.clone(), str::to_owned);
            sources.insert(module, shipped(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// A source without comments and unit tests.
fn shipped(source: &str) -> String {
    let tests = source.find("#[cfg(test)]\nmod ").or_else(|| source.find("#[cfg(all(test, "));
    let end = tests.unwrap_or(source.len());
    let lines = source[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Every path in `text` that begins with `crate::` or `super::`, with nested braces expanded.
fn paths(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            if before.is_none_or(|before| !is_word(before) && before != ':' && before != '$') {
                open(&text[at..], "", &mut found);
            }
        }
    }
    found
}

/// Reads one path from the beginning of `text`, and returns what follows it.
fn open<'a>(text: &'a str, prefix: &str, found: &mut Vec<String>) -> &'a str {
    let end = text.find(|c| !is_word(c) && c != ':').unwrap_or(text.len());
    let (path, mut rest) = text.split_at(end);
    if !path.ends_with("::") || !rest.starts_with('{') {
        let path = if path == "self" { "" } else { path };
        found.push(format!("{prefix}{path}").trim_end_matches(':').to_owned());
        return rest;
    }
    let prefix = format!("{prefix}{path}");
    rest = &rest[1..];
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if rest.is_empty() || rest.starts_with('}') {
            return rest.get(1..).unwrap_or_default();
        }
        let after = open(rest, &prefix, found);
        // Skips `as NAME` and anything else before the next part.
        let skip = after.find([',', '}']).unwrap_or(after.len());
        rest = &after[skip..];
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The module of the crate that a path in `module` names, if it names one.
fn resolve(module: &str, path: &str, modules: &BTreeSet<String>) -> Option<String> {
    let mut parts: Vec<&str> = path.split("::").collect();
    let mut base: Vec<&str> = Vec::new();
    if parts[0] == "super" {
        base = module.split('/').collect();
    }
    while parts.first().is_some_and(|part| ["crate", "super"].contains(part)) {
        base.pop();
        parts.remove(0);
    }
    base.extend(parts);
    (1..=base.len()).rev().map(|len| base[..len].join("/")).find(|name| modules.contains(name))
}

/// One circle, if there is any.
fn circle(arrows: &Imports) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    arrows.keys().find_map(|start| walk(start, arrows, &mut Vec::new(), &mut done))
}

fn walk(
    at: &str,
    arrows: &Imports,
    way: &mut Vec<String>,
    done: &mut BTreeSet<String>,
) -> Option<Vec<String>> {
    if let Some(first) = way.iter().position(|seen| seen == at) {
        let mut circle = way[first..].to_vec();
        circle.push(at.to_owned());
        return Some(circle);
    }
    if !done.insert(at.to_owned()) {
        return None;
    }
    way.push(at.to_owned());
    let next = arrows.get(at).into_iter().flatten();
    let found = next.into_iter().find_map(|next| walk(next, arrows, way, done));
    way.pop();
    found
}
