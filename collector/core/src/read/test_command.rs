//! Recognises shell commands that run tests, from a list of well-known runners. In doubt a command runs no tests.
//!
//! Only a command that starts one program counts, because the exit code of `cargo test | tail` or `make test || true`
//! is not that of the tests.

use crate::model::tool::TestCodes;
use crate::read::shell;

/// Programs that do nothing but run tests.
const RUNNERS: [&str; 13] = [
    "ava",
    "busted",
    "ctest",
    "gotestsum",
    "jest",
    "mocha",
    "nose2",
    "pest",
    "phpunit",
    "py.test",
    "pytest",
    "rspec",
    "vitest",
];

/// Programs with a subcommand that runs tests, and the first words of that subcommand.
const COMMANDS: [(&str, &[&str]); 35] = [
    ("ansible-test", &["units"]),
    ("bazel", &["test"]),
    ("bazelisk", &["test"]),
    ("bun", &["test", "run test"]),
    ("cabal", &["test"]),
    ("cargo", &["test", "t", "nextest run", "nextest r"]),
    ("composer", &["test", "run test"]),
    ("cypress", &["run"]),
    ("dart", &["test"]),
    ("deno", &["test"]),
    ("dotnet", &["test"]),
    ("flutter", &["test"]),
    ("forge", &["test"]),
    ("go", &["test"]),
    ("hatch", &["test"]),
    ("just", &["test", "tests"]),
    ("lein", &["test"]),
    ("mix", &["test"]),
    ("node", &["--test"]),
    ("npm", &["test", "t", "run test", "run-script test"]),
    ("ng", &["test"]),
    ("nx", &["test", "run-many -t test"]),
    ("php", &["artisan test"]),
    ("playwright", &["test"]),
    ("pnpm", &["test", "t", "run test"]),
    ("python", &["-m pytest", "-m unittest"]),
    ("rails", &["test", "spec"]),
    ("rake", &["test", "spec"]),
    ("sbt", &["test"]),
    ("stack", &["test"]),
    ("swift", &["test"]),
    ("turbo", &["test", "run test"]),
    ("xcodebuild", &["test"]),
    ("yarn", &["test", "run test"]),
    ("zig", &["build test", "test"]),
];

/// Programs that make targets. Any of their arguments may be the target that runs tests.
const MAKERS: [(&str, &[&str]); 6] = [
    ("gmake", &["test", "tests", "check"]),
    ("gradle", &["test", "check"]),
    ("gradlew", &["test", "check"]),
    ("make", &["test", "tests", "check"]),
    ("mvn", &["test", "verify"]),
    ("mvnw", &["test", "verify"]),
];

/// Programs that start another program, with the words in between.
const LAUNCHERS: [(&str, &str); 14] = [
    ("bunx", ""),
    ("bundle", "exec"),
    ("hatch", "run"),
    ("npm", "exec"),
    ("npx", ""),
    ("pdm", "run"),
    ("pipenv", "run"),
    ("pnpm", "exec"),
    ("pnpm", "dlx"),
    ("poetry", "run"),
    ("rye", "run"),
    ("uv", "run"),
    ("uvx", ""),
    ("yarn", "exec"),
];

/// With one of these arguments, a test runner runs no test (`--list`) or never ends (`--watch`).
const NO_RUN: [&str; 18] = [
    "--help",
    "-h",
    "--version",
    "-V",
    "--no-run",
    "--list",
    "-list",
    "--list-tests",
    "--listTests",
    "--collect-only",
    "--co",
    "--dry-run",
    "--show-only",
    "--watch",
    "--watchAll",
    "--compile-only",
    "-DskipTests",
    "-Dmaven.test.skip=true",
];

/// Options that may stand before the subcommand and mean nothing here: first those without a value, then those with
/// one.
const FLAGS: [&str; 16] = [
    "-q",
    "-s",
    "-k",
    "-i",
    "-r",
    "-v",
    "-B",
    "-y",
    "--quiet",
    "--silent",
    "--verbose",
    "--recursive",
    "--if-present",
    "--offline",
    "--no-daemon",
    "--locked",
];
const VALUED: [&str; 10] = [
    "-C",
    "-F",
    "-f",
    "-w",
    "--cwd",
    "--dir",
    "--directory",
    "--filter",
    "--prefix",
    "--workspace",
];

/// Maximum number of launchers that are followed.
const MAX_LAUNCHERS: usize = 3;

/// These runners use some exit codes for "no tests", "wrong usage" and the like. Only the codes listed here report
/// failed tests.
const PYTEST: TestCodes = TestCodes::Only(&[1]);
const NEXTEST: TestCodes = TestCodes::Only(&[100, 101]);

/// The exit codes with which `command` reports failed tests. `None` if it runs no tests, or if its exit code is not
/// that of the tests.
pub(crate) fn test_codes(command: &str) -> Option<TestCodes> {
    // A command that ends with `&` runs in the background: its exit code says only that it was started.
    let waits = !command.trim_end().ends_with('&');
    let (program, words) = shell::program(command).filter(|_| waits)?;
    runner(program, &words)
}

fn runner(program: &str, words: &[&str]) -> Option<TestCodes> {
    if words.iter().any(|word| NO_RUN.contains(word)) {
        return None;
    }
    let (mut program, mut words) = (bare(program), words);
    for _ in 0..MAX_LAUNCHERS {
        words = behind_options(words);
        if runs(program, words) {
            return Some(codes(program, words));
        }
        let (next, rest) = launched(program, words)?;
        (program, words) = (bare(next), rest);
    }
    None
}

fn codes(program: &str, words: &[&str]) -> TestCodes {
    match (program, words.first()) {
        ("pytest" | "py.test" | "python", _) => PYTEST,
        ("cargo", Some(&"nextest")) => NEXTEST,
        _ => TestCodes::Any,
    }
}

fn runs(program: &str, words: &[&str]) -> bool {
    let begins = |command: &&str| {
        let mut wanted = command.split_whitespace();
        let mut given = words.iter();
        wanted.all(|wanted| given.next().is_some_and(|given| fits(given, wanted)))
    };
    let makes = |targets: &[&str]| {
        let skips = words.iter().any(|word| matches!(*word, "-n" | "-x" | "--just-print"));
        !skips && words.iter().any(|word| targets.contains(word))
    };
    let found = |(name, commands): &&(&str, &[&str])| *name == program && !commands.is_empty();
    RUNNERS.contains(&program)
        || COMMANDS.iter().find(found).is_some_and(|(_, all)| all.iter().any(begins))
        || MAKERS.iter().find(found).is_some_and(|(_, targets)| makes(targets))
}

/// Whether `given` is the word `wanted`, or a script with that name and a suffix (`npm run test:unit`).
fn fits(given: &str, wanted: &str) -> bool {
    given == wanted || given.strip_prefix(wanted).is_some_and(|rest| rest.starts_with(':'))
}

/// The program that a launcher starts, and its arguments.
fn launched<'a>(program: &str, words: &'a [&'a str]) -> Option<(&'a str, &'a [&'a str])> {
    let of = LAUNCHERS.iter().filter(|(name, _)| *name == program);
    let rest = of.filter_map(|(_, between)| match (*between, words) {
        ("", words) => Some(words),
        (between, [first, rest @ ..]) if first == &between => Some(rest),
        _ => None,
    });
    let rest = behind_options(rest.into_iter().next()?);
    let rest = rest.strip_prefix(&["--"]).unwrap_or(rest);
    let (first, rest) = rest.split_first()?;
    Some((first.rsplit(['/', '\\']).next().unwrap_or(first), rest))
}

/// The words after leading options. An unknown option stays in front, so that the next word is not taken for a
/// subcommand.
fn behind_options<'a>(mut words: &'a [&'a str]) -> &'a [&'a str] {
    loop {
        words = match words {
            [valued, _, rest @ ..] if VALUED.contains(valued) => rest,
            [flag, rest @ ..] if is_flag(flag) => rest,
            _ => return words,
        }
    }
}

fn is_flag(word: &str) -> bool {
    let jobs = word.strip_prefix("-j").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    let assigned = word.starts_with("--") && word.contains('=');
    // `cargo +nightly test`
    FLAGS.contains(&word) || jobs || assigned || word.starts_with('+')
}

/// A program's name without the file extension that Windows needs. A Python with a version in its name is `python`.
fn bare(program: &str) -> &str {
    let endings = [".exe", ".cmd", ".bat", ".ps1"];
    let name = endings.iter().find_map(|end| program.strip_suffix(end)).unwrap_or(program);
    let versioned = |b: char| b.is_ascii_digit() || b == '.';
    if name.trim_end_matches(versioned) == "python" { "python" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_runners_run_tests() {
        for command in [
            "cargo test",
            "cargo +nightly test --workspace",
            "cargo nextest run -p core",
            "cd app && RUST_BACKTRACE=1 cargo test -q 2>&1",
            "timeout 600 cargo t",
            "pytest -q tests/test_a.py",
            "python3.12 -m pytest -n 4",
            "uv run pytest",
            "uv run --frozen=x python -m unittest discover",
            "poetry run pytest -x",
            "npm test",
            "npm run test:unit -- --run",
            "npm --prefix web test",
            "npx vitest run",
            "npx -y playwright test",
            "pnpm --filter app test",
            "pnpm exec jest",
            "yarn test",
            "bun test",
            "go test ./...",
            "make -j4 test",
            "make -C build check",
            "./gradlew clean test",
            "mvn -q -B verify",
            "bundle exec rspec spec/a_spec.rb",
            "node --test tests/",
            "dotnet test",
            "'./node_modules/.bin/jest' a",
            ".\\gradlew.bat test",
            "php artisan test",
        ] {
            assert!(test_codes(command).is_some(), "{command}");
        }
    }

    #[test]
    fn what_is_not_surely_a_test_run_is_none() {
        for command in [
            "cargo test --no-run",
            "cargo test -- --list",
            "cargo test | tail -20",
            "cargo test 2>&1 | tee log",
            "cargo test || true",
            "cargo test; echo done",
            "cargo test && cargo clippy",
            "cargo build && cargo test",
            "cargo test &",
            "cargo test > log 2>&1 &",
            "cargo build --test x",
            "cargo testall",
            "echo cargo test",
            "grep -r pytest .",
            "pytest --collect-only",
            "pip install pytest",
            "npm install jest",
            "npm run build",
            "npm --unknown test",
            "npx -p jest-cli jest",
            "jest --watch",
            "make -n test",
            "gradle build -x test",
            "mvn -DskipTests verify",
            "go vet ./...",
            "test -f Cargo.toml",
            "git commit -m 'cargo test'",
            "cat <<EOF\ncargo test\nEOF",
            "bash -c 'cargo test'",
            "ssh host cargo test",
            "docker run x cargo test",
            "tox -e lint",
            "",
        ] {
            assert_eq!(test_codes(command), None, "{command}");
        }
    }

    #[test]
    fn a_code_that_reports_no_failed_test_tells_nothing() {
        for (command, code, expected) in [
            ("cargo test", 0, Some(true)),
            // Tests that do not compile count as failed.
            ("cargo test", 101, Some(false)),
            ("cargo test", 127, None),
            ("cargo test", 137, None),
            ("cargo test", -1, None),
            ("make test", 2, Some(false)),
            // Five tests failed.
            ("npx mocha", 5, Some(false)),
            ("pytest -q", 1, Some(false)),
            // Interrupted, wrong usage, no tests.
            ("pytest -q", 2, None),
            ("uv run pytest", 4, None),
            ("python -m pytest", 5, None),
            ("cargo nextest run", 100, Some(false)),
            ("cargo nextest run", 4, None),
            ("cargo nextest run", 102, None),
        ] {
            let codes = test_codes(command).unwrap();
            assert_eq!(codes.passed(code), expected, "{command}: {code}");
        }
    }
}
