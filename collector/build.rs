//! Builds the hook program in its own profile and passes it to `src/shim_binary.rs`, so that a user installs only one
//! binary.
//!
//! This starts cargo within cargo. The inner one has its own target directory below `OUT_DIR`, because the outer one
//! holds the lock of its target directory.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sources of the shim. Its tests and benchmarks are left out, so that changing them rebuilds nothing here.
const SOURCES: [&str; 4] = ["src", "build.rs", "freestanding.ld", "Cargo.toml"];

/// Variables of the outer build, above all flags and wrappers. Coverage or lints must not reach a program that is
/// linked without libc.
const OUTER_VARIABLES: [&str; 8] = [
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_RUSTFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_TARGET",
    "CARGO_BUILD_TARGET_DIR",
    "CARGO_TARGET_DIR",
];

fn main() -> Result<(), Box<dyn Error>> {
    // Read at run time and not at compile time: several clones may share a target directory, and cargo reuses this
    // build script.
    let package = env::var_os("CARGO_MANIFEST_DIR").ok_or("CARGO_MANIFEST_DIR is not set")?;
    let workspace = Path::new(&package).join("..");
    println!("cargo::rerun-if-changed=build.rs");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", workspace.join("shim").join(source).display());
    }
    let target = env::var("TARGET")?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let target_dir = out.join("shim-target");
    build(&workspace, &target, &target_dir)?;

    let name = if target.contains("windows") { "hookspan-shim.exe" } else { "hookspan-shim" };
    let built = target_dir.join(&target).join("shim").join(name);
    let embedded = out.join("hookspan-shim");
    fs::copy(&built, &embedded).map_err(|error| format!("{}: {error}", built.display()))?;
    println!("cargo::rustc-env=HOOKSPAN_SHIM_BINARY={}", embedded.display());
    Ok(())
}

fn build(workspace: &Path, target: &str, target_dir: &Path) -> Result<(), Box<dyn Error>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        // The outer build has already downloaded and locked everything.
        .args(["rustc", "--frozen", "--quiet", "--profile", "shim", "--package", "hookspan-shim"])
        .args(["--bin", "hookspan-shim", "--target", target])
        .arg("--target-dir")
        .arg(target_dir)
        .arg("--manifest-path")
        .arg(workspace.join("Cargo.toml"));
    if target.ends_with("musl") {
        // Otherwise rustc would add the start-up files of its own musl, which define another `_start`.
        command.args(["--", "-C", "link-self-contained=no"]);
    }
    for variable in OUTER_VARIABLES {
        command.env_remove(variable);
    }
    let status = command.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("building the shim failed: {status}").into())
    }
}
