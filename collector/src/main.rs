//! `hookspan`: see `hookspan --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    hookspan::cli::main()
}
