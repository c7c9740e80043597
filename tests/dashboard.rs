//! The pages in a real browser.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use e2e_support::collector::Collector;
use e2e_support::fixture::Fixture;
use e2e_support::world::World;
use e2e_support::{binaries, player, skip, verify};

#[test]
fn a_played_session_is_on_the_pages_and_grows_while_they_are_open() {
    let chromium = match browser() {
        Ok(chromium) => chromium,
        Err(reason) => return skip::skip("the pages in a browser", &reason),
    };
    let world = World::new();
    let fixture = Fixture::own().settle_in(&world);
    let collector = Collector::start(&world);
    player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    let spans = verify::session_is_right(&world, &fixture);

    let body = world.scratch("later.json");
    fs::write(&body, thought_of(fixture.text("root"))).unwrap();
    let later = json!({
        "shim": world.shim(), "event": "afterAgentThought", "home": world.home(), "body": body,
    });
    let expected = json!({"spans": spans.len(), "errors": fixture.number("errors")});
    let output = Command::new("node")
        .arg(binaries::project().join("tests/browser.mjs"))
        .env("URL", &collector.url)
        .env("LOGIN", collector.login())
        .env("CHROMIUM", chromium)
        .env("EXPECTED", expected.to_string())
        .env("LATER", later.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// Runs the pages' own tests with the played session. Tests that step through rows depend on the example's rows.
#[test]
fn the_pages_own_tests_pass_on_a_played_session() {
    let chromium = match browser() {
        Ok(chromium) => chromium,
        Err(reason) => return skip::skip("the pages' own tests in a browser", &reason),
    };
    let world = World::new();
    let fixture = Fixture::own().settle_in(&world);
    let collector = Collector::start(&world);
    player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    let address = collector.login();
    let any_session = "a new tab|list|ticks|payloads|nodes|tabs|theme|blur|axe";
    pages_own_tests(&chromium, "session.test.mjs", "HOOKSPAN_URL", &address, any_session);
}

/// Attacks a signed-in browser from another page on this machine, and from a program that takes a stopped collector's
/// port.
#[test]
fn what_is_stolen_from_a_signed_in_browser_is_worth_nothing() {
    let chromium = match browser() {
        Ok(chromium) => chromium,
        Err(reason) => return skip::skip("attacks on a signed-in browser", &reason),
    };
    let program = binaries::hookspan();
    pages_own_tests(&chromium, "door.test.mjs", "HOOKSPAN_BIN", program.to_str().unwrap(), ".");
}

/// Runs the pages' own tests with the invented sessions of the dashboard's example. These are longer and contain every
/// odd text.
#[test]
fn the_pages_own_tests_pass_on_the_example() {
    let chromium = match browser() {
        Ok(chromium) => chromium,
        Err(reason) => return skip::skip("the pages' own tests in a browser", &reason),
    };
    let example = binaries::dashboard_example();
    for file in ["session.test.mjs", "conversation.test.mjs"] {
        pages_own_tests(&chromium, file, "HOOKSPAN_DEMO", example.to_str().unwrap(), ".");
    }
}

/// Tests every page and key, from an empty dashboard to twelve tabs across a restart, with recorded, long and hostile
/// sessions.
#[test]
fn the_pages_own_tests_pass_on_a_collector_of_their_own() {
    let chromium = match browser() {
        Ok(chromium) => chromium,
        Err(reason) => {
            return skip::skip("the pages in a browser, from the first hook on", &reason);
        }
    };
    let program = binaries::hookspan();
    for file in ["collector.test.mjs", "pages.test.mjs", "marks.test.mjs"] {
        pages_own_tests(&chromium, file, "HOOKSPAN_BIN", program.to_str().unwrap(), ".");
    }
}

/// A file of browser tests that no test here starts would check nothing.
#[test]
fn every_file_of_browser_tests_is_run() {
    let files = fs::read_dir(ui_tests()).unwrap().map(|entry| entry.unwrap().file_name());
    let names = files.map(|name| name.into_string().unwrap());
    let tests: Vec<String> = names.filter(|name| name.ends_with(".test.mjs")).collect();
    assert!(tests.len() >= 5, "{tests:?}");
    for name in tests {
        assert!(
            include_str!("dashboard.rs").contains(&format!("\"{name}\"")),
            "nothing starts {name}"
        );
    }
}

/// The scripts have no build step, so only the type check finds wrong names in them. The API's types come from its
/// description.
#[test]
fn the_scripts_fit_their_types_and_those_of_the_api() {
    let web = binaries::project().join("dashboard/web");
    if !web.join("node_modules/typescript").exists() {
        return skip::skip("the type check of the pages", "run `npm ci` in dashboard/web");
    }
    for script in ["api-types:check", "check"] {
        let mut npm = Command::new("npm");
        let output = npm.args(["run", "--silent", script]).current_dir(&web).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "npm run {script}:\n{said}{complained}");
    }
}

#[track_caller]
fn pages_own_tests(chromium: &Path, file: &str, variable: &str, value: &str, names: &str) {
    let output = Command::new("node")
        .args(["--test", "--test-name-pattern", names, file])
        .current_dir(ui_tests())
        .env("CHROMIUM", chromium)
        .env("HOOKSPAN_REQUIRE_BROWSER", "1")
        .env(variable, value)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let passed = said.lines().filter(|line| line.starts_with("ok ")).count();
    let skipped = said.lines().filter(|line| line.contains("# SKIP")).count();
    let unasked = said.matches("# SKIP test name does not match").count();
    assert!(passed > 3 && skipped == unasked, "tests of the pages were skipped\n{said}");
}

/// A late hook of the last turn. It makes exactly one more span.
fn thought_of(root: &str) -> String {
    json!({
        "conversation_id": root,
        "generation_id": "5ea0b164-92c8-4357-b4ed-70961c2a3b45",
        "text": "One more thing.",
        "duration_ms": 12,
        "model": "gpt-5.5-medium",
        "session_id": root,
        "hook_event_name": "afterAgentThought",
        "cursor_version": "3.7.19",
        "workspace_roots": ["/home/dev/src/lighthouse"],
    })
    .to_string()
}

/// The browser's path, if browser, Node and packages are installed.
fn browser() -> Result<PathBuf, String> {
    let chromium =
        env::var_os("CHROMIUM").map_or_else(|| "/usr/bin/chromium".into(), PathBuf::from);
    if !chromium.exists() {
        return Err(format!("no {}; set CHROMIUM", chromium.display()));
    }
    if Command::new("node").arg("--version").output().is_err() {
        return Err("no node on PATH".into());
    }
    if !binaries::project().join("dashboard/web/node_modules/playwright-core").exists() {
        return Err("run `npm ci` in dashboard/web".into());
    }
    Ok(chromium)
}

fn ui_tests() -> PathBuf {
    binaries::project().join("dashboard/web/tests/ui")
}
