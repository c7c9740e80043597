//! The least a correct hook can do: read standard input to its end, answer, exit. What the benchmark measures the hook
//! program against.

#![cfg_attr(freestanding, no_std, no_main)]
#![cfg_attr(freestanding, expect(unsafe_code, reason = "the entry of a program without runtime"))]

#[cfg(freestanding)]
hookspan_shim::entry!(drain_and_exit);

#[cfg(freestanding)]
unsafe extern "C" fn drain_and_exit(_: *const usize, scratch: *mut u8) -> ! {
    // SAFETY: the entry reserves more than this.
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
