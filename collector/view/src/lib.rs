//! What the pages, the terminal, the MCP server and the rows that the writer maintains have in common.
//!
//! A reader of the store implements the traits of [`source`], and pages and terminal call them. The writer uses
//! [`mod@line`] and [`subject`] to fill the columns from which lists and waterfalls are read. This crate contains no
//! SQL, no HTTP and no clock.

pub mod line;
pub mod label;
pub mod subject;
pub mod health;
pub mod received;
pub mod source;
pub mod changes;
pub mod facet;
pub mod digest;
pub mod outcome;
pub mod item;
pub mod now;
pub mod filter;
pub mod word;

pub use source::Source;

/// Why a read failed. A page answers 503, and the user may try again. The text never contains payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError(pub String);

/// Result of a read.
pub type Result<T> = core::result::Result<T, SourceError>;
