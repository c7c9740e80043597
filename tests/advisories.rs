//! Checks for known faults of dependencies with a dated copy of the RustSec database's entries. The database itself is
//! on the network. `.ci/run` also runs `cargo audit`, if both are installed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use e2e_support::binaries;

type Version = [u64; 3];

/// The numbers of a version. Text after a hyphen or plus is ignored.
fn version(text: &str) -> Version {
    let plain = text.trim().split(['-', '+']).next().unwrap();
    let mut parts = plain.split('.').map(|part| part.parse().unwrap());
    [(); 3].map(|()| parts.next().unwrap_or(0))
}

/// Whether a version meets a requirement such as `>= 0.22.4, < 0.23.0`.
fn meets(own: Version, requirement: &str) -> bool {
    requirement.split(',').map(str::trim).all(|one| {
        let at = one.find(|c: char| c.is_ascii_digit()).unwrap();
        let (operator, limit) = (one[..at].trim(), version(&one[at..]));
        match operator {
            ">=" => own >= limit,
            ">" => own > limit,
            "<=" => own <= limit,
            "<" => own < limit,
            "=" => own == limit,
            "^" | "" => own >= limit && own < after(limit),
            other => panic!("{other}"),
        }
    })
}

/// The first version that a caret requirement excludes.
fn after([major, minor, patch]: Version) -> Version {
    match (major, minor) {
        (0, 0) => [0, 0, patch + 1],
        (0, _) => [0, minor + 1, 0],
        _ => [major + 1, 0, 0],
    }
}

/// Versions of each package from the registry in `Cargo.lock`.
fn locked() -> BTreeMap<String, BTreeSet<Version>> {
    let lock = fs::read_to_string(binaries::project().join("Cargo.lock")).unwrap();
    let mut found: BTreeMap<String, BTreeSet<Version>> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1).filter(|one| one.contains("\nsource = ")) {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim_matches('"').to_owned()
        };
        found.entry(field("name = \"")).or_default().insert(version(&field("version = \"")));
    }
    found
}

#[test]
fn no_locked_version_has_an_advisory_of_the_dated_copy() {
    let copy = binaries::project().join("tests/fixtures/advisories.txt");
    let copy = fs::read_to_string(copy).unwrap();
    let locked = locked();
    let (mut hits, mut read) = (Vec::new(), 0);
    for line in copy.lines().filter(|line| line.contains(" | ") && !line.starts_with('#')) {
        let [package, id, safe] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        read += 1;
        for own in locked.get(package).into_iter().flatten() {
            if !safe.split(';').any(|requirement| meets(*own, requirement)) {
                hits.push(format!("{package} {own:?}: {id}, safe are {safe}"));
            }
        }
    }
    assert!(read >= 80, "{read}");
    assert!(hits.is_empty(), "{hits:#?}");
    let checked: BTreeSet<&str> = copy
        .lines()
        .filter_map(|line| line.strip_prefix("checked "))
        .flat_map(str::split_whitespace)
        .collect();
    let newer: Vec<_> = locked.keys().filter(|name| !checked.contains(name.as_str())).collect();
    eprintln!("{read} advisories, {}; not looked up: {newer:?}", copy.lines().next().unwrap());
}

#[test]
fn requirements_are_read_as_cargo_reads_them() {
    for (own, requirement, expected) in [
        ("0.22.5", ">= 0.22.4, < 0.23.0", true),
        ("0.23.0", ">= 0.22.4, < 0.23.0", false),
        ("0.3.25", "^0.3.24", true),
        ("0.4.1", "^0.3.24", false),
        ("0.25.4", "0.25.4", true),
        ("0.26.0", "0.25.4", false),
        ("1.2.3-alpha.1", ">= 1.2.3", true),
        ("2.0.0", "^1.1.1", false),
    ] {
        assert_eq!(meets(version(own), requirement), expected, "{own} {requirement}");
    }
}
