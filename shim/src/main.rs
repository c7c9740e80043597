//! The program that Cursor starts for every hook: `hookspan-shim [--dir DIR] EVENT`.
//!
//! On Linux, profile `shim` builds it without any runtime, because starting libc alone takes several times as long as
//! the program's work. Everywhere else the same logic runs on std.

#![cfg_attr(all(freestanding, not(test)), no_std, no_main)]

#[cfg(all(freestanding, not(test)))]
hookspan_shim::entry!(hookspan_shim::linux::enter);

#[cfg(not(freestanding))]
fn main() {
    hookspan_shim::portable::main();
}
