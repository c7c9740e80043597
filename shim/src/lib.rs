//! The hook program's logic, and the formats that the program shares with the readers of its journal.
//!
//! Cursor starts `hookspan-shim` for every hook and waits for it. The program reads the payload, appends it to the
//! journal as [`frame`]s whose first one opens with [`record`] metadata, prints the one [`reply`] that changes nothing,
//! and exits 0. It parses nothing: a [`scan`] over the first frame finds the hook's name and the host. [`program`] is
//! that sequence over any operating system; [`linux`] is Linux without a runtime, [`portable`] is everything else. When
//! the journal cannot be opened, `fallback` decides where the hook goes instead.
//!
//! No allocation, no panic, no dependency at run time: Cursor waits for this code before and after every tool call.

#![cfg_attr(all(freestanding, not(test)), no_std)]

pub mod frame;
pub mod hash;
pub mod record;
pub mod event;
pub mod reply;
pub mod scan;
pub mod losses;
pub mod program;
#[cfg(target_os = "linux")]
mod environment;
#[cfg(unix)]
pub mod fallback;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(unix)]
mod path;
#[cfg(not(freestanding))]
pub mod portable;
