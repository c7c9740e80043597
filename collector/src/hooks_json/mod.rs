//! Editing hooks.json without changing a byte that is not ours.
//!
//! The file belongs to the person: it may hold comments, trailing commas, any indentation and line ending, a byte order
//! mark, and other programs' hooks. So nothing is ever printed from a parsed value. [`document`] finds places in the text,
//! and [`edit`] makes or takes back small insertions there, one at a time, parsing again after each.
//!
//! ```text
//! bytes --file::read--> text --edit::install / edit::uninstall--> text --file::write--> bytes
//! ```
//!
//! [`audit`] looks through a file without changing it, for `doctor` and `status`.

pub mod audit;
pub mod document;
pub mod edit;
pub mod entry;
pub mod events;
mod attributes;
pub mod file;
pub mod git;
pub mod line;
pub mod plan;
pub mod recognise;
pub mod own_entries;
pub mod record;
pub mod scope;
pub mod summary;
pub mod version;

#[cfg(test)]
mod tests;

pub use document::Broken;
pub use entry::Entry;
pub use events::Events;
pub use plan::Plan;
pub use scope::Scope;
