//! What must hold for any bytes at all.
//!
//! Each check takes arbitrary bytes and panics when a promise is broken. The fuzzer (`fuzz/`) looks for such bytes;
//! `cargo test -p hookspan-checks` runs the checks over `fuzz/seeds`, which holds the inputs worth keeping.

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

/// Every check by its name, which is also that of its folder in `fuzz/seeds`.
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
