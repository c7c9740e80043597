//! `hookspan`: see `hookspan --help`.

use std::process::ExitCode;

/// Hooks are read in one thread and folded in another, so memory is allocated in one thread and freed in another,
/// thousands of times per second. The system's allocator is slow at that and fragments memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    hookspan::main()
}
