//! Checks that must hold for any bytes.
//!
//! Each check takes arbitrary bytes and panics if a promise is broken. The fuzzer (`fuzz/`) searches for such bytes.
//! `cargo test -p hookspan-checks` runs the checks on the inputs in `fuzz/seeds`, which are worth keeping.

#![expect(
    clippy::missing_panics_doc,
    reason = "a panic is how every check here says that a promise is broken"
)]

mod fold;
#[cfg(feature = "collector")]
mod hooks_json;
#[cfg(feature = "collector")]
mod journal;
mod program;
mod record;
mod scanner;

pub use fold::fold;
#[cfg(feature = "collector")]
pub use hooks_json::hooks_json;
#[cfg(feature = "collector")]
pub use journal::journal;
pub use program::program;
pub use record::record;
pub use scanner::scanner;

/// A check.
pub type Check = fn(&[u8]);

/// Every check with its name. The folder in `fuzz/seeds` has the same name.
#[must_use]
pub fn all() -> Vec<(&'static str, Check)> {
    vec![
        ("scanner", scanner as Check),
        ("program", program),
        ("record", record),
        ("fold", fold),
        #[cfg(feature = "collector")]
        ("journal", journal),
        #[cfg(feature = "collector")]
        ("hooks_json", hooks_json),
    ]
}
