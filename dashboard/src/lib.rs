//! The local dashboard: an axum router over a [`Source`] (reads) and a [`Control`] (the few things a page may ask for).
//!
//! No SQL, no clock, no writes of its own. Security is one layer around the whole router; pages and assets hold no data,
//! everything else is behind the token.

pub mod source;

pub use source::{Control, Source};
