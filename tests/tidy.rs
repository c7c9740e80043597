//! Rules about the source itself, so that no reviewer has to remember them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use e2e_support::binaries;
use e2e_support::fixture::fixtures;
use e2e_support::world::World;

#[test]
fn crates_depend_on_each_other_only_along_the_arrows() {
    let ours = [
        "hookspan",
        "hookspan-checks",
        "hookspan-core",
        "hookspan-dashboard",
        "hookspan-redact",
        "hookspan-shim",
        "hookspan-view",
        "e2e",
    ];
    let arrows = dependencies(|name| ours.contains(&name));
    let expected = [
        ("e2e", vec![]),
        (
            "hookspan",
            vec![
                "hookspan-core",
                "hookspan-dashboard",
                "hookspan-redact",
                "hookspan-shim",
                "hookspan-view",
            ],
        ),
        ("hookspan-checks", vec!["hookspan", "hookspan-core", "hookspan-shim"]),
        ("hookspan-core", vec![]),
        ("hookspan-dashboard", vec!["hookspan-core", "hookspan-view"]),
        ("hookspan-redact", vec![]),
        ("hookspan-shim", vec![]),
        ("hookspan-view", vec!["hookspan-core"]),
    ];
    assert_eq!(arrows, owned(&expected));
}

#[test]
fn the_core_and_the_shim_need_next_to_nothing() {
    let all = dependencies(|_| true);
    let core = ["memchr", "serde", "serde_json", "sha2", "simdutf8", "smol_str"];
    assert_eq!(all["hookspan-core"], core);
    assert_eq!(all["hookspan-shim"], ["rustix"]);
}

#[test]
fn the_core_touches_nothing_outside_itself() {
    let banned = [
        "std::fs",
        "std::net",
        "std::env",
        "std::thread",
        "std::process",
        "std::io",
        "SystemTime",
        "Instant",
        "HashMap",
        "HashSet",
        "RandomState",
        "DefaultHasher",
        "println!",
        "unsafe",
    ];
    check_absent(&rust_files("collector/core/src"), &banned, &[]);
}

/// Durations that decide something are in one file, with their reasons.
#[test]
fn durations_of_the_core_live_in_one_file_alone() {
    let banned = ["000_000", "_NS: i64", "_MS: f64", "* 1_000", "e9"];
    check_absent(
        &rust_files("collector/core/src"),
        &banned,
        &["collector/core/src/model/tolerance.rs"],
    );
}

#[test]
fn only_what_serves_pages_knows_the_web_crate() {
    let serving = ["collector/src/access.rs", "collector/src/cli/mcp/", "collector/src/serve/"];
    check_absent(&rust_files("collector/src"), &["hookspan_dashboard"], &serving);
}

#[test]
fn the_view_reads_no_clock_and_speaks_neither_sql_nor_http() {
    let banned =
        ["std::fs", "std::net", "std::env", "SystemTime", "Instant", "axum", "SELECT ", "tokio"];
    check_absent(&rust_files("collector/view/src"), &banned, &[]);
}

#[test]
fn sql_lives_in_the_store_alone() {
    let banned =
        ["SELECT ", "INSERT INTO", "UPDATE ", "DELETE FROM", "PRAGMA ", "rusqlite::params"];
    let mut files = rust_files("collector/src");
    files.extend(rust_files("dashboard/src"));
    check_absent(&files, &banned, &["collector/src/store/"]);
}

#[test]
fn the_environment_is_read_in_the_configuration_alone() {
    let banned = ["env::var", "env::vars", "env::args", "env::set_var", "env::home_dir"];
    let mut files = rust_files("collector/src");
    files.extend(rust_files("dashboard/src"));
    check_absent(&files, &banned, &["collector/src/config/"]);
}

#[test]
fn the_clock_is_read_in_one_file_alone() {
    let banned = ["SystemTime::now", "Instant::now", "UNIX_EPOCH.elapsed"];
    let mut files = rust_files("collector/src");
    files.extend(rust_files("dashboard/src"));
    check_absent(&files, &banned, &["collector/src/clock.rs"]);
}

/// If a file operation of the journal did not go through `disk`, no test could make it fail.
#[test]
fn the_journal_reaches_its_files_through_one_module() {
    let banned = [
        "fs::read",
        "fs::write",
        "fs::rename",
        "fs::remove",
        "fs::hard_link",
        "fs::metadata",
        "fs::symlink",
        "File::open",
        "File::create",
        "OpenOptions",
        "create_private",
        ".metadata()",
        ".sync_data(",
    ];
    let mut files = rust_files("collector/src/journal/follower");
    let others = ["files", "reserve", "torn", "segment", "assemble", "sync", "losses"];
    let folder = binaries::project().join("collector/src/journal");
    files.extend(others.map(|name| folder.join(name).with_extension("rs")));
    check_absent(&files, &banned, &["collector/src/journal/follower/deleting.rs"]);
}

#[test]
fn tests_are_run_and_do_not_sleep() {
    let own = ["tests/tidy.rs"];
    let all = rust_files("");
    check_everywhere(&all, &["#[ignore", "#[should_panic", "#[allow(", "todo!(", "dbg!("], &own);
    let tests: Vec<_> = all.into_iter().filter(|file| is_test(file)).collect();
    // This receiver pretends to hang.
    let hangs = "collector/src/export/tests/sink.rs";
    check_everywhere(&tests, &["thread::sleep", "time::sleep("], &[own[0], hangs]);
}

/// Whether a file is below a folder called `tests`.
fn is_test(file: &Path) -> bool {
    let inside = file.strip_prefix(binaries::project()).unwrap();
    inside.components().any(|part| part.as_os_str() == "tests")
}

/// Code cannot match on an error that is only text. Tests and their harness report to a person, so they may use such
/// errors.
#[test]
fn no_error_that_ships_is_a_bare_text() {
    let mut found = Vec::new();
    for file in rust_files("").into_iter().filter(|file| !is_test(file) && !is_example(file)) {
        let code = code(&source(&file));
        let lines = code.lines().filter(|line| has_text_for_error(line));
        found.extend(lines.map(|line| format!("{}: {}", file.display(), line.trim())));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_text_for_an_error_is_seen() {
    for line in
        ["-> Result<(), String> {", "x: Result<Vec<(u8, u8)>, String>,", "type Err = String;"]
    {
        assert!(has_text_for_error(line), "{line}");
    }
    for line in ["Result<BTreeMap<u8, String>, Misuse>", "Option<String>", "io::Result<String>"] {
        assert!(!has_text_for_error(line), "{line}");
    }
}

fn has_text_for_error(line: &str) -> bool {
    let is_text = |(at, start): (usize, &str)| {
        let inside = &line[at + start.len()..];
        let mut depth = 1;
        let end = inside.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        });
        end.is_some_and(|end| inside[..end].ends_with(", String"))
    };
    line.contains("type Err = String") || line.match_indices("Result<").any(is_text)
}

/// Maximum number of lines of a function, including signature and braces.
const MOST_LINES: usize = 60;

#[test]
fn no_function_that_ships_is_long() {
    let shipped = rust_files("").into_iter().filter(|file| !is_test(file) && !is_example(file));
    let mut long = Vec::new();
    for file in shipped {
        let name = file.strip_prefix(binaries::project()).unwrap().to_str().unwrap().to_owned();
        for (function, lines) in functions(&code(&source(&file))) {
            if lines > MOST_LINES {
                long.push(format!("{name}: {function} has {lines} lines"));
            }
        }
    }
    assert!(long.is_empty(), "\n{}", long.join("\n"));
}

#[test]
fn a_function_ends_where_its_brace_closes() {
    let source = "fn a() {\n}\nimpl X {\n    pub(crate) const fn b(\n        x: u8,\n    ) -> u8 {\n        {\n        }\n    }\n}\n\
                  trait Y {\n    fn c();\n}\n";
    let found = functions(source);
    let expected = [("a", 2), ("b", 6), ("c", 1)].map(|(name, lines)| (name.to_owned(), lines));
    assert_eq!(found, expected);
}

/// The functions of a formatted source with how many lines each has.
fn functions(source: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let body = line.trim_start();
        let mut words = body.split_whitespace().skip_while(|word| {
            ["const", "async", "unsafe", "extern", "\"C\""].contains(word)
                || word.starts_with("pub")
        });
        if words.next() != Some("fn") {
            continue;
        }
        let name = words.next().unwrap_or_default();
        let name = name.split(['(', '<']).next().unwrap_or_default().to_owned();
        let indent = &line[..line.len() - body.len()];
        // The source is formatted: a body ends with a brace on a line of its own, indented like the function.
        let is_line = line.ends_with('}') || line.ends_with(';');
        let signature =
            lines[at..].iter().take_while(|line| !line.ends_with('{') && !line.ends_with(';'));
        let signature = signature.count() + 1;
        let has_body = lines.get(at + signature - 1).is_some_and(|line| line.ends_with('{'));
        let count = match (is_line, has_body) {
            (true, _) => 1,
            (false, false) => signature,
            (false, true) => {
                let rest = lines[at..].iter();
                rest.take_while(|line| line.strip_prefix(indent) != Some("}")).count() + 1
            }
        };
        found.push((name, count));
    }
    found
}

fn is_example(file: &Path) -> bool {
    let folders = ["examples", "benches", "fuzz_targets"];
    file.components().any(|part| folders.contains(&part.as_os_str().to_str().unwrap_or_default()))
}

#[test]
fn every_member_is_linted() {
    let root = fs::read_to_string(binaries::project().join("Cargo.toml")).unwrap();
    let shared = root.split("[workspace.lints.").skip(1).flat_map(|table| {
        let lines = table.split("\n[").next().unwrap().lines().skip(1);
        lines.filter_map(|line| line.split_once(" = ")).map(|(lint, _)| lint.to_owned())
    });
    let shared: Vec<_> = shared.collect();
    assert!(shared.len() > 5, "{shared:?}");
    for member in members() {
        let text = fs::read_to_string(&member).unwrap();
        if text.contains("[lints]\nworkspace = true") {
            continue;
        }
        // A crate that cannot inherit the lints (`forbid` cannot be relaxed) repeats them all.
        for lint in &shared {
            let own = text.contains("[lints.") && text.contains(&format!("\n{lint} = "));
            assert!(own, "nothing checks {lint} in {}", member.display());
        }
    }
}

#[test]
fn every_test_file_and_every_fixture_is_used() {
    let tests = binaries::project().join("tests");
    let main = fs::read_to_string(tests.join("main.rs")).unwrap();
    for file in top_level(&tests, "rs") {
        let module = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let used = main.contains(&format!("\nmod {module};"))
            || ["main", "bench", "campaign"].contains(&&*module);
        assert!(used, "{} is no module of tests/main.rs", file.display());
    }
    let harness: String = rust_files("tests").iter().map(|file| source(file)).collect();
    for file in top_level(&fixtures(), "json").into_iter().chain(top_level(&fixtures(), "jsonl")) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let by_pattern = name.ends_with(".expected.json");
        assert!(by_pattern || harness.contains(&name), "nobody plays {name}");
    }
}

#[test]
fn every_migration_is_embedded() {
    let migrations = top_level(&binaries::project().join("migrations"), "sql");
    assert!(!migrations.is_empty());
    let store: String = rust_files("collector/src/store").iter().map(|file| source(file)).collect();
    for migration in migrations {
        let name = migration.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(store.contains(&name), "the store does not embed {name}");
        let text = fs::read_to_string(&migration).unwrap();
        assert!(text.starts_with("-- Why"), "{name} does not open with why it exists");
    }
}

#[test]
fn the_example_configuration_is_current() {
    let example = fs::read_to_string(binaries::project().join("config.example.toml")).unwrap();
    let world = World::new();
    assert_eq!(
        world.ok(&["config", "example"]),
        example,
        "write it again: hookspan config example > config.example.toml"
    );
    world.write_config(&example);
    world.ok(&["config", "check"]);
}

#[test]
fn the_repository_speaks_of_itself_alone() {
    let place = binaries::project().to_str().unwrap().to_owned();
    let home = std::env::var("HOME").unwrap_or_default();
    let mut own = vec![place];
    if home.len() > 3 {
        own.push(format!("{home}/"));
    }
    for file in text_files(binaries::project()) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for path in &own {
            // The path must begin there: `/home/dev/root/` is not root's home.
            let named = text.match_indices(path.as_str()).any(|(at, _)| {
                !text[..at].ends_with(|before: char| before.is_ascii_alphanumeric())
            });
            assert!(!named, "{} names {path}", file.display());
        }
    }
}

#[test]
fn compose_pins_versions_and_listens_on_loopback() {
    let text = fs::read_to_string(binaries::project().join("docker-compose.yml")).unwrap();
    let values = |key: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim);
        lines.filter_map(|line| line.strip_prefix(key)).map(|v| v.trim().to_owned()).collect()
    };
    let images = values("image:");
    assert!(!images.is_empty());
    for image in images {
        let image = image.trim_matches('"');
        let name = image.rsplit('/').next().unwrap();
        let tag = name.split_once(':').map_or("", |(_, tag)| tag);
        assert!(!tag.is_empty() && tag != "latest", "{image} is not pinned");
    }
    for port in values("- ").iter().filter(|value| is_port_mapping(value)) {
        assert!(port.trim_matches('"').starts_with("127.0.0.1:"), "{port} is open to the network");
    }
}

/// `"4318:4318"`, `"127.0.0.1:4318:4318"` and the like.
fn is_port_mapping(value: &str) -> bool {
    let value = value.trim_matches('"');
    value.contains(':') && value.bytes().all(|byte| byte.is_ascii_digit() || b".:".contains(&byte))
}

/// Fails if one of `banned` occurs in the code (not in comments or unit tests) of a file outside `except`.
#[track_caller]
fn check_absent(files: &[PathBuf], banned: &[&str], except: &[&str]) {
    let shipped: Vec<_> = files.iter().filter(|file| !is_test(file)).cloned().collect();
    check(&shipped, banned, except, code);
}

/// The same including unit tests.
#[track_caller]
fn check_everywhere(files: &[PathBuf], banned: &[&str], except: &[&str]) {
    check(files, banned, except, without_comments);
}

#[track_caller]
fn check(files: &[PathBuf], banned: &[&str], except: &[&str], view: fn(&str) -> String) {
    assert!(!files.is_empty(), "nothing to check");
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(binaries::project()).unwrap().to_str().unwrap();
        if except.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        for (number, line) in view(&source(file)).lines().enumerate() {
            for word in banned.iter().filter(|word| line.contains(**word)) {
                found.push(format!("{name}:{}: {word}", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// The part of a file that ships: without comments and without the unit tests at its end.
fn code(source: &str) -> String {
    let end = source.find("#[cfg(test)]\nmod ").unwrap_or(source.len());
    without_comments(&source[..end])
}

fn without_comments(source: &str) -> String {
    let lines = source.lines();
    lines
        .map(|line| if line.trim_start().starts_with("//") { "" } else { line }.to_owned() + "\n")
        .collect()
}

fn source(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

/// Every Rust file below a folder of the project, except modules that are unit tests as a whole.
fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut files = text_files(&binaries::project().join(folder));
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.retain(|file| file.file_name().is_some_and(|name| name != "tests.rs"));
    files
}

/// Every file below `folder` that is part of the project: no build output, no installed packages, nothing hidden but
/// `.ci`.
fn text_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let name = name.to_str().unwrap();
        let skipped = ["target", "node_modules"].contains(&name);
        if skipped || (name.starts_with('.') && name != ".ci") {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            files.extend(text_files(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files.sort();
    files
}

fn top_level(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

fn members() -> Vec<PathBuf> {
    let packages = metadata()["packages"].as_array().cloned().unwrap();
    packages.iter().map(|package| package["manifest_path"].as_str().unwrap().into()).collect()
}

/// The normal dependencies of every member, filtered and sorted: none that only tests or build scripts use.
fn dependencies(keep: impl Fn(&str) -> bool) -> BTreeMap<String, Vec<String>> {
    let packages = metadata()["packages"].as_array().cloned().unwrap();
    let names = |package: &Value| {
        let mut names: Vec<_> = package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|dependency| dependency["kind"].is_null())
            .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
            .filter(|name| keep(name))
            .collect();
        names.sort();
        names.dedup();
        names
    };
    packages
        .iter()
        .map(|package| (package["name"].as_str().unwrap().to_owned(), names(package)))
        .collect()
}

fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(binaries::project())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn owned(expected: &[(&str, Vec<&str>)]) -> BTreeMap<String, Vec<String>> {
    expected
        .iter()
        .map(|(name, needs)| ((*name).to_owned(), needs.iter().map(|n| (*n).to_owned()).collect()))
        .collect()
}
