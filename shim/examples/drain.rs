//! Does the least that a correct hook can do: reads standard input to its end, answers, and exits. The benchmark
//! compares the hook program with it.

#![cfg_attr(freestanding, no_std, no_main)]
#![cfg_attr(freestanding, expect(unsafe_code, reason = "the entry of a program without runtime"))]

#[cfg(freestanding)]
hookspan_shim::entry!(drain_and_exit);

#[cfg(freestanding)]
unsafe extern "C" fn drain_and_exit(_: *const usize, scratch: *mut u8) -> ! {
    // SAFETY: the entry point reserves more memory than this.
    let buffer = unsafe { core::slice::from_raw_parts_mut(scratch, 20 << 10) };
    hookspan_shim::linux::drain(buffer);
    hookspan_shim::linux::exit()
}

#[cfg(not(freestanding))]
fn main() -> std::io::Result<()> {
    use std::io::{Write, copy, sink, stdin, stdout};

    copy(&mut stdin(), &mut sink())?;
    stdout().write_all(b"{}\n")
}
