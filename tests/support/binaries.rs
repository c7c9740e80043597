//! The programs under test, built once per test run.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

static HOOKSPAN: LazyLock<PathBuf> = LazyLock::new(|| {
    // A campaign may test an existing build, which must not change under it.
    if let Some(built) = env::var_os("HOOKSPAN_E2E_BINARY") {
        return built.into();
    }
    build(&["--package", "hookspan", "--bin", "hookspan"])
        .join(format!("hookspan{}", env::consts::EXE_SUFFIX))
});

/// `hookspan`, in the profile of the running test. `CARGO_BIN_EXE_hookspan` is not set in another package, so the first
/// caller builds the program. If it is current, cargo does nothing.
#[must_use]
pub fn hookspan() -> &'static Path {
    &HOOKSPAN
}

static FOR_EVERYONE: LazyLock<PathBuf> = LazyLock::new(|| {
    // The folder is named like a world's folder, so that the next run removes it.
    let folder = env::temp_dir().join(format!("hookspan-e2e-{}-program", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("hookspan");
    fs::copy(hookspan(), &copy).unwrap();
    for path in [&folder, &copy] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    copy
});

/// A copy of `hookspan` that every account may run. The target folder may be in a home that is closed to others.
#[must_use]
pub fn hookspan_for_everyone() -> &'static Path {
    &FOR_EVERYONE
}

/// The dashboard with invented sessions.
#[must_use]
pub fn dashboard_example() -> PathBuf {
    build(&["--package", "hookspan-dashboard", "--example", "demo"])
        .join(format!("examples/demo{}", env::consts::EXE_SUFFIX))
}

static PROJECT: LazyLock<PathBuf> = LazyLock::new(|| match env::var_os("HOOKSPAN_E2E_PROJECT") {
    Some(copy) => copy.into(),
    None => Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned(),
});

/// The project's root folder: `HOOKSPAN_E2E_PROJECT`, which is set if another user runs the tests and cannot read the
/// folder in which they were built; otherwise that folder.
#[must_use]
pub fn project() -> &'static Path {
    &PROJECT
}

/// Builds what `arguments` name in the profile of the running test, and returns that profile's folder.
fn build(arguments: &[&str]) -> PathBuf {
    let profile = profile_folder();
    let target = profile.parent().unwrap();
    let name = match profile.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        other => other,
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet", "--profile", name])
        .args(arguments)
        .arg("--target-dir")
        .arg(target)
        .current_dir(project());
    for (variable, _) in env::vars_os() {
        if is_of_this_test(&variable.to_string_lossy()) {
            command.env_remove(variable);
        }
    }
    let status = command.status().unwrap();
    assert!(status.success(), "cargo could not build {arguments:?}");
    profile
}

/// Variables that cargo sets for a running test. Build scripts of dependencies watch some of them. If they were passed
/// on, half the tree would be built again, now and at the next `cargo build` outside.
fn is_of_this_test(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| variable.starts_with(prefix))
}

/// `target/debug`, or another profile's folder. Tests are in `deps/` and examples in `examples/` below it.
fn profile_folder() -> PathBuf {
    env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}
