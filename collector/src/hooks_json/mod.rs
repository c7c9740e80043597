//! Edits hooks.json without changing a byte that is not ours.
//!
//! The file belongs to the user. It may contain comments, trailing commas, any indentation and line breaks, a byte
//! order mark, and other programs' hooks. So the text is never printed from a parsed value. [`document`] finds
//! positions in the text. [`edit`] makes or undoes small insertions there, one at a time, and parses the text again
//! after each.
//!
//! ```text
//! bytes --file::read--> text --edit::install / edit::uninstall--> text --file::write--> bytes
//! ```
//!
//! [`audit`] inspects a file without changing it, for `doctor` and `status`.

pub(crate) mod audit;
pub(crate) mod document;
pub(crate) mod edit;
pub(crate) mod entry;
pub(crate) mod events;
mod attributes;
pub(crate) mod file;
pub(crate) mod git;
pub(crate) mod line;
pub(crate) mod plan;
pub(crate) mod recognise;
pub(crate) mod own_entries;
pub(crate) mod record;
pub(crate) mod scope;
pub(crate) mod summary;
pub(crate) mod version;

#[cfg(test)]
mod tests;

pub(crate) use document::Broken;
pub use entry::Entry;
pub use events::Events;
pub(crate) use plan::Plan;
pub(crate) use scope::Scope;
