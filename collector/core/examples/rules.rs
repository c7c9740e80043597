//! Measures what each rule of matching is worth: how many streams become wrong without it. For each rule, the example
//! copies the package, leaves the rule out, builds the scorecard and compares it. Then it writes that part of
//! `SCORECARD.md`.
//!
//! ```sh
//! cargo run -p hookspan-core --example rules        # a build for each rule
//! ```

#![expect(clippy::unwrap_used, reason = "a rule that cannot be left out is a bug to be seen")]
#![expect(clippy::print_stdout, reason = "progress is for the terminal")]

#[expect(dead_code, reason = "the scorecard keeps what this writes")]
#[path = "../tests/fold/rules.rs"]
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rules::{HEADING, RULES, Rule};

/// Faults by stream, each with a hash of the stream's tree.
type Faults = BTreeMap<String, (u64, u64)>;

fn main() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    let copy = target.join("tmp/rules");
    let outside = outside(package);
    prepare(package, &copy);
    let with_all = measure(&copy, &target);
    println!("{} streams, {} faults with all rules", with_all.len(), total(&with_all));
    let mut text = format!("{HEADING}\n{INTRODUCTION}");
    for rule in RULES {
        leave_out(package, &copy, rule);
        let without = measure(&copy, &target);
        put_back(package, &copy, rule);
        let row = row(rule, &with_all, &without, &outside);
        print!("{row}");
        text.push_str(&row);
    }
    let (worse, all) = (outside.len(), with_all.len());
    write!(
        text,
        "\nMeasured with {all} streams, of which {worse} show what a report from outside tells.\n"
    )
    .unwrap();
    let file = package.join("../../SCORECARD.md");
    let written = std::fs::read_to_string(&file).unwrap();
    let before = written.split_once(HEADING).map_or(&*written, |(before, _)| before);
    std::fs::write(&file, format!("{before}{text}")).unwrap();
}

const INTRODUCTION: &str = "\
How each rule of matching earns its place: the same streams, with that rule left out of the program. A fault is a span that is missing,
extra, an orphan, below a wrong parent or of a wrong length, or a stream with wrong tokens. \"Outside\" counts the streams that show what
a public report or capture tells ([FACTS.md](collector/core/tests/streams/FACTS.md), \"Tried from outside\").

A row of zeros says that the scores of the streams do not need the rule: it decides something that is not scored (waiting, sizes of edits),
or another rule does the same. \"Trees changed\" also counts the streams whose tree says something else without the rule. A rule without any
carries nothing.

Written by `cargo run -p hookspan-core --example rules`, which builds the program once for each rule. A test holds the list of rules
against the source.

| without | streams wrong | faults more | outside wrong | trees changed | for example |
|---|--:|--:|--:|--:|---|
";

fn total(faults: &Faults) -> u64 {
    faults.values().map(|(faults, _)| faults).sum()
}

fn row(rule: &Rule, with_all: &Faults, without: &Faults, outside: &BTreeSet<String>) -> String {
    let more = |name: &String| without[name].0.saturating_sub(with_all[name].0);
    let changed: Vec<&String> =
        with_all.keys().filter(|name| without[*name].1 != with_all[*name].1).collect();
    let worse: Vec<&String> = with_all.keys().filter(|name| more(name) > 0).collect();
    let faults: u64 = worse.iter().map(|name| more(name)).sum();
    let foreign = worse.iter().filter(|name| outside.contains(**name)).count();
    let examples = if worse.is_empty() { &changed } else { &worse };
    let shown: Vec<String> = examples.iter().take(2).map(|name| format!("`{name}`")).collect();
    let Rule { name, .. } = rule;
    let (worse, changed, shown) = (worse.len(), changed.len(), shown.join(", "));
    format!("| {name} | {worse} | {faults} | {foreign} | {changed} | {shown} |\n")
}

/// The streams for facts that come from public sources of others.
fn outside(package: &Path) -> BTreeSet<String> {
    let facts = std::fs::read_to_string(package.join("tests/streams/FACTS.md")).unwrap();
    let (_, table) = facts.split_once("## Tried from outside").unwrap();
    let cells = table.lines().filter_map(|line| line.trim_end_matches(" |").rsplit_once(" | "));
    let names = cells.flat_map(|(_, shown)| shown.split(", "));
    let is_stream = |name: &&str| package.join(format!("tests/streams/{name}.jsonl")).exists();
    names.map(|name| name.trim_matches('`')).filter(is_stream).map(str::to_owned).collect()
}

/// Copies what the scorecard needs into a separate workspace.
fn prepare(package: &Path, copy: &Path) {
    let (root, core) = (package.join("../.."), copy.join("collector/core"));
    for folder in ["src", "tests", "examples"] {
        copy_folder(&package.join(folder), &core.join(folder));
    }
    copy_folder(&root.join("tests/fixtures"), &copy.join("tests/fixtures"));
    for file in ["Cargo.lock", "rust-toolchain.toml"] {
        std::fs::copy(root.join(file), copy.join(file)).unwrap();
    }
    std::fs::copy(package.join("Cargo.toml"), core.join("Cargo.toml")).unwrap();
    let workspace = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let lines = workspace.lines().filter(|line| !line.starts_with("default-members"));
    let only = |line| match str::starts_with(line, "members") {
        true => "members = [\"collector/core\"]",
        false => line,
    };
    let lines: Vec<&str> = lines.map(only).collect();
    std::fs::write(copy.join("Cargo.toml"), lines.join("\n")).unwrap();
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copy = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &copy);
        } else {
            std::fs::copy(&path, &copy).unwrap();
        }
    }
}

fn paths(package: &Path, copy: &Path, rule: &Rule) -> (PathBuf, PathBuf) {
    let file = format!("src/{}", rule.file);
    (package.join(&file), copy.join("collector/core").join(&file))
}

fn leave_out(package: &Path, copy: &Path, rule: &Rule) {
    let (own, other) = paths(package, copy, rule);
    let text = std::fs::read_to_string(own).unwrap();
    assert_eq!(text.matches(rule.with).count(), 1, "{}", rule.name);
    std::fs::write(other, text.replace(rule.with, rule.without)).unwrap();
}

fn put_back(package: &Path, copy: &Path, rule: &Rule) {
    let (own, other) = paths(package, copy, rule);
    let text = std::fs::read_to_string(own).unwrap();
    std::fs::write(other, text).unwrap();
}

/// Builds the copy and runs its scorecard.
fn measure(copy: &Path, target: &Path) -> Faults {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--offline", "-p", "hookspan-core", "--example", "scorecard"]);
    cargo.args(["--", "--faults"]).current_dir(copy);
    let output = cargo.env("CARGO_TARGET_DIR", target).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let fault = |line: &str| {
        let (rest, tree) = line.rsplit_once(' ').unwrap();
        let (name, faults) = rest.split_once(' ').unwrap();
        (name.to_owned(), (faults.parse().unwrap(), tree.parse().unwrap()))
    };
    lines.lines().map(fault).collect()
}
