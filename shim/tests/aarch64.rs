//! Tests the program built for another processor, in an emulator. If the tools for that are missing, the test says so
//! and checks nothing, even on a build server: building hookspan does not need them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::support::{ALLOW, Folder, check, cursor_body, feed};

const TARGET: &str = "aarch64-unknown-linux-musl";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";

fn is_there(program: &str) -> bool {
    let version = Command::new(program).arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// What is missing, or `None`.
fn missing() -> Option<String> {
    if let Some(tool) = [LINKER, EMULATOR].into_iter().find(|tool| !is_there(tool)) {
        return Some(tool.to_owned());
    }
    let output =
        Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let folder = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let core = folder.is_ok_and(|folder| Path::new(&folder).is_dir());
    (!core).then(|| format!("rustup target add {TARGET}"))
}

/// The program for that processor, built once. `None` if it cannot be built; the reason is printed to standard error.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| match missing() {
        Some(missing) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: aarch64: {missing}");
            None
        }
        None => Some(build()),
    });
    program.as_deref()
}

fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let built = Command::new(env!("CARGO"))
        .args(["rustc", "--quiet", "--locked", "--profile", "shim", "-p", "hookspan-shim"])
        .args(["--bin", "hookspan-shim", "--target", TARGET, "--target-dir"])
        .arg(target)
        .args(["--", "-C", "link-self-contained=no"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", LINKER)
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status();
    assert!(built.unwrap().success());
    target.join(TARGET).join("shim/hookspan-shim")
}

#[test]
fn built_for_aarch64_it_keeps_and_answers() {
    let Some(program) = program() else { return };
    let folder = Folder::new();
    let large = format!("{{\"conversation_id\":\"{}\"}}", "x".repeat(300_000));
    for body in [cursor_body("preToolUse"), large.into_bytes()] {
        let mut command = Command::new(EMULATOR);
        command.arg(program).arg("--dir").arg(folder.path()).arg("preToolUse");
        command.env_clear().env("CURSOR_VERSION", "3.18.25").env("PWD", "/w");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        check(&feed(command, &body), ALLOW);
        let record = folder.records().pop().unwrap();
        assert!(record.body == body);
        let texts = [(1, "preToolUse"), (2, "3.18.25"), (6, "/w")];
        assert_eq!(record.texts, texts.map(|(tag, text)| (tag, text.to_owned())));
        assert_eq!(record.stamp.host, 1);
    }
}

/// Runs the other tests of this folder once more, with that program.
#[test]
fn built_for_aarch64_it_does_what_the_native_program_does() {
    let Some(program) = program() else { return };
    let folder = Folder::new();
    let wrapper = folder.join("emulated");
    let script = format!("#!/bin/sh\nexec {EMULATOR} '{}' \"$@\"\n", program.display());
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["replies::", "stdin::", "stdout::", "places::"])
        // The emulator uses descriptors of its own, and the shell that starts it sets PWD.
        .args(["--skip", "no_descriptors_left", "--skip", "cursor_in_the_environment"])
        .args(["--skip", "everything_known_about_the_run"])
        // Another account may be unable to read the script or the program that it starts.
        .args(["--skip", "without_rights"])
        .env("HOOKSPAN_TEST_SHIM", &wrapper)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(again.status.success(), "{said}");
    let passed = said.rsplit_once(" passed").and_then(|(before, _)| before.rsplit_once(". "));
    let passed: u32 = passed.and_then(|(_, number)| number.parse().ok()).unwrap();
    assert!(passed > 25, "{said}");
}
