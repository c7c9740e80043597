//! The program that Cursor starts for every hook: `hookspan-shim [--dir DIR] EVENT`.
//!
//! On Linux, the profile `shim` builds the program without a runtime: starting libc alone would take several times as
//! long as the program's own work. On other systems the same code uses the standard library.

#![cfg_attr(all(freestanding, not(test)), no_std, no_main)]

#[cfg(all(freestanding, not(test)))]
hookspan_shim::entry!(hookspan_shim::linux::enter);

#[cfg(not(freestanding))]
fn main() {
    hookspan_shim::portable::main();
}
