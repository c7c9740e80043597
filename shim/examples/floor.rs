//! Does the least that a program can do: exits. The benchmark compares the hook program with it.

#![cfg_attr(freestanding, no_std, no_main)]

#[cfg(freestanding)]
hookspan_shim::entry!(exit_at_once);

#[cfg(freestanding)]
extern "C" fn exit_at_once(_: *const usize, _: *mut u8) -> ! {
    hookspan_shim::linux::exit()
}

#[cfg(not(freestanding))]
fn main() {}
