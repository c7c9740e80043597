//! The program Cursor starts for every hook: `hookspan-shim [--dir DIR] EVENT`.
//!
//! In profile `shim` on Linux it has no runtime at all, because libc's start-up alone costs several times what the
//! program does. Everywhere else the same logic runs behind std.

#![cfg_attr(all(freestanding, not(test)), no_std, no_main)]

#[cfg(all(freestanding, not(test)))]
hookspan_shim::entry!(hookspan_shim::linux::enter);

#[cfg(not(freestanding))]
fn main() {
    hookspan_shim::portable::main();
}
