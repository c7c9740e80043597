//! The shipped build of the program, run as a host runs it.
//!
//! Test builds unwind and have a runtime; what Cursor starts has neither. So these tests build profile `shim` once and run
//! what comes out.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "support code of tests fails by panicking"
)]

mod support;

/// What is answered, for which hook and host.
mod replies;
/// Standard input in every state a host leaves it in.
mod stdin;
/// Standard output likewise.
mod stdout;
/// Where hooks are kept, and what happens when they cannot be.
mod places;
/// Where they go when the state directory is missing, closed, full or another user's.
mod fallback;
/// What the program may cost, where a count can say it.
mod gates;
/// The program for another processor.
mod aarch64;
