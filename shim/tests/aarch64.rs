//! The program for another processor, under an emulator. Where the tools are missing this is said and nothing is tested: they are
//! no part of what building hookspan needs, on a build server either.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{ALLOW, Folder, cursor_body};

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

#[test]
fn built_for_aarch64_it_keeps_and_answers() {
    if let Some(missing) = missing() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: aarch64: {missing}");
        return;
    }
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
    let folder = Folder::new();
    let large = format!("{{\"conversation_id\":\"{}\"}}", "x".repeat(300_000));
    for body in [cursor_body("preToolUse"), large.into_bytes()] {
        let mut child = Command::new(EMULATOR)
            .arg(target.join(TARGET).join("shim/hookspan-shim"))
            .arg("--dir")
            .arg(folder.path())
            .arg("preToolUse")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&body).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), ALLOW);
        assert!(folder.records().pop().unwrap().body == body);
    }
}
