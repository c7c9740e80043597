//! Rules about dependencies: they must be used, freely licensed, from the registry, and not need a newer compiler than
//! our oldest.
//!
//! `advisories` checks for known faults.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

use e2e_support::binaries;

/// Licences of libraries that an Apache-2.0 program may use. They only require their notices to be kept.
const LICENCES: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Dependencies that no line of code names, and their purpose.
const NAMELESS: [(&str, &str); 0] = [];

/// Number of lines per file that begin unsafe code. All of it is in the hook program, and clippy requires an argument
/// beside each block.
const UNSAFE: [(&str, usize); 3] = [
    ("shim/examples/drain.rs", 1),
    ("shim/src/linux/calls.rs", 12),
    ("shim/src/linux/entry.rs", 20),
];

#[test]
fn every_dependency_is_named_by_the_code_that_it_is_for() {
    let metadata = metadata(&["--no-deps"]);
    let mut unused = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = dependency["rename"].as_str().unwrap_or(text(&dependency["name"]));
            let used = code_of(package, dependency["kind"].as_str())
                .iter()
                .any(|code| names(code, &name.replace('-', "_")));
            if !used && !NAMELESS.iter().any(|(nameless, _)| *nameless == name) {
                unused.push(format!("{}: {name}", text(&package["name"])));
            }
        }
    }
    assert!(unused.is_empty(), "nothing uses\n{}", unused.join("\n"));
}

/// The source files that may use a dependency of `kind`. A normal dependency: the library and the programs. A
/// dev-dependency: those, the tests and the examples. A build dependency: `build.rs`.
fn code_of(package: &Value, kind: Option<&str>) -> Vec<String> {
    let mut files = BTreeSet::new();
    for target in package["targets"].as_array().unwrap() {
        let target_kind = text(&target["kind"][0]);
        let wanted = match kind {
            Some("build") => target_kind == "custom-build",
            Some(_) => target_kind != "custom-build",
            None => ["lib", "bin"].contains(&target_kind),
        };
        let root = Path::new(text(&target["src_path"]));
        if !wanted {
            continue;
        }
        files.insert(root.to_owned());
        if target_kind != "custom-build" {
            rust_files(root.parent().unwrap(), &mut files);
        }
    }
    files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// Whether code outside comments has the word, as a path's first segment or after `use`.
fn names(code: &str, name: &str) -> bool {
    code.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| {
        line.match_indices(name).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + name.len()..]);
            let starts = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
            starts && (after.starts_with("::") || before.trim_end().ends_with("use"))
        })
    })
}

#[test]
fn every_dependency_has_a_licence_that_asks_for_no_more_than_its_notice() {
    for package in packages() {
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(permitted(licence), "{} is licensed under {licence}", text(&package["name"]));
    }
}

/// Whether [`LICENCES`] satisfies an SPDX expression. Older packages write `/` for OR.
fn permitted(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let mut rest = expression.replace('(', " ( ").replace(')', " ) ");
    // The innermost parentheses are resolved first: each is replaced by a licence with the same verdict.
    while let Some(close) = rest.find(')') {
        let Some(open) = rest[..close].rfind('(') else { return false };
        let inside = if permitted(&rest[open + 1..close]) { "MIT" } else { "none" };
        rest.replace_range(open..=close, inside);
    }
    rest.split(" OR ").any(|choice| {
        choice
            .split(" AND ")
            .all(|one| LICENCES.contains(&&*one.split_whitespace().collect::<Vec<_>>().join(" ")))
    })
}

#[test]
fn licence_expressions_are_read_as_spdx_has_them() {
    for (expression, free) in [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(MIT OR GPL-3.0) AND ISC", true),
        ("(GPL-3.0 AND MIT) OR (ISC AND (Zlib OR none))", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("GPL-2.0 WITH Classpath-exception-2.0", false),
        ("MIT)", false),
        ("none", false),
        ("", false),
    ] {
        assert_eq!(permitted(expression), free, "{expression}");
    }
}

#[test]
fn no_dependency_needs_a_newer_compiler_than_we_promise() {
    let version = |text: &str| -> Vec<u32> {
        text.split('.').filter_map(|part| part.parse().ok()).take(2).collect()
    };
    let packages = packages();
    let own = packages.iter().find(|package| package["name"] == "hookspan").unwrap();
    let promised = text(&own["rust_version"]);
    for package in &packages {
        let needed = package["rust_version"].as_str().unwrap_or("1.0");
        let name = text(&package["name"]);
        assert!(version(needed) <= version(promised), "{name} needs Rust {needed}");
    }
    let pinned = fs::read_to_string(binaries::project().join("rust-toolchain.toml")).unwrap();
    let pinned = pinned.lines().find_map(|line| line.strip_prefix("channel = ")).unwrap();
    assert!(version(pinned.trim_matches('"')) >= version(promised), "{pinned}");
}

#[test]
fn every_dependency_comes_from_the_registry() {
    for package in packages() {
        let Some(source) = package["source"].as_str() else { continue };
        assert!(source.starts_with("registry+"), "{} is from {source}", text(&package["name"]));
    }
}

#[test]
fn unsafe_stands_where_it_is_argued_and_nowhere_else() {
    let mut files = BTreeSet::new();
    rust_files(binaries::project(), &mut files);
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(binaries::project()).unwrap().to_str().unwrap().to_owned();
        let code = fs::read_to_string(&file).unwrap();
        let lines = code.lines().filter(|line| {
            let code = line.split("//").next().unwrap();
            let words = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe("];
            words.iter().any(|word| code.contains(word)) && !code.contains('"')
        });
        match lines.count() {
            0 => {}
            count => found.push((name, count)),
        }
    }
    let expected: Vec<_> = UNSAFE.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
    assert_eq!(found, expected, "argue it in the file, and change the table");
}

/// Every package that is built for this system, ours included.
fn packages() -> Vec<Value> {
    let host = Command::new("rustc").arg("-vV").output().unwrap();
    let host = String::from_utf8(host.stdout).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    metadata(&["--filter-platform", host])["packages"].as_array().cloned().unwrap()
}

/// What cargo knows of all packages, for every platform. A new machine has only the packages of its own platform: the
/// others are fetched once.
fn metadata(arguments: &[&str]) -> Value {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ask = |network: &[&str]| {
        let mut command = Command::new(&cargo);
        command.args(["metadata", "--format-version", "1", "--locked"]).args(network);
        command.args(arguments).current_dir(binaries::project()).output().unwrap()
    };
    let mut output = ask(&["--offline"]);
    if !output.status.success() {
        output = ask(&[]);
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Rust files below a folder: no build output, no installed packages, nothing hidden.
fn rust_files(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !["target", "node_modules"].contains(&name) && !name.starts_with('.') {
                rust_files(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.insert(path);
        }
    }
}
