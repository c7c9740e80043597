//! Runs the shipped build of the program as a host does.
//!
//! Test builds unwind and have a runtime. The program that Cursor starts has neither. So these tests build profile
//! `shim` once and run the result.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "support code of tests fails by panicking"
)]

mod support;

/// Which answer is given for which hook and host.
mod replies;
/// Standard input in every state in which a host may leave it.
mod stdin;
/// Standard output likewise.
mod stdout;
/// Where hooks are stored, and what happens if they cannot be stored.
mod places;
/// Where hooks are stored if the state directory is missing, closed, full or another user's.
mod fallback;
/// What the program may cost, as far as counts can tell.
mod gates;
/// The program for another processor.
mod aarch64;
