//! `hookspan`: see `hookspan --help`.

use std::process::ExitCode;

/// A hook is read in one thread and folded in another: what the first takes the second gives back, thousands of times a
/// second. The system's allocator locks and scatters over that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    hookspan::main()
}
