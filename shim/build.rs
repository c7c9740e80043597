//! Decides whether this is the shipped build. On Linux, profile `shim` links without libc and without std.
//!
//! Cargo tells a build script only from which profile a custom profile inherits. So the name of the profile is read
//! from the output folder: `<target>[/<triple>]/shim/build/<package>/out`.

use std::env;
use std::path::{Component, Path};

/// All arguments that the linker needs besides the linker script. GNU ld and lld understand them.
const FREESTANDING_LINK_ARGS: [&str; 6] =
    ["-nostartfiles", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none", "-Wl,-z,norelro"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=freestanding.ld");
    println!("cargo::rustc-check-cfg=cfg(freestanding)");
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    let linux = is("CARGO_CFG_TARGET_OS", "linux");
    let known = is("CARGO_CFG_TARGET_ARCH", "x86_64") || is("CARGO_CFG_TARGET_ARCH", "aarch64");
    let out = env::var_os("OUT_DIR").unwrap_or_default();
    if linux && known && profile_folder(Path::new(&out)) == Some("shim") {
        println!("cargo::rustc-cfg=freestanding");
        let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        let script = format!("-Wl,-T,{package}/freestanding.ld");
        for argument in FREESTANDING_LINK_ARGS.into_iter().chain([script.as_str()]) {
            println!("cargo::rustc-link-arg-bins={argument}");
            println!("cargo::rustc-link-arg-examples={argument}");
        }
    }
}

/// The component of the path before the last `build`.
fn profile_folder(out: &Path) -> Option<&str> {
    let names: Vec<Option<&str>> = out
        .components()
        .map(|component| match component {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let build = names.iter().rposition(|name| *name == Some("build"))?;
    names.get(build.checked_sub(1)?).copied().flatten()
}
