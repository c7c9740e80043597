//! The collector: follows the journal, folds hooks into spans, stores, exports and serves them. Also the command line.
//!
//! Reading order: [`cli`] has the commands, [`serve`] the running collector. [`journal`], [`ingest`], [`engine`] and
//! [`store`] are the way of one event. [`export`] and [`source`] are the two ways out.

#![expect(
    rustdoc::private_intra_doc_links,
    reason = "the modules are private, and their documentation is for those who read the source"
)]

mod access;
mod audit;
mod cli;
mod config;
mod dirs;
mod clock;
mod disk;
mod search;
mod serve;
mod journal;
mod ingest;
mod notify;
mod engine;
mod evidence;
mod git;
mod import;
mod prices;
mod store;
mod source;
mod export;
mod hooks_json;
mod redaction;
mod sandbox;
mod shim_binary;
mod status;
mod doctor;
mod tls;
mod receive;
mod telemetry;
mod text;

pub use cli::main;

/// The items that the fuzz targets, the example `api_latency` and the test of `deploy/` use. All other items are
/// private, so the compiler finds those that nobody uses.
pub mod parts {
    pub use crate::clock::now;
    pub use crate::config::{Config, Dashboard, Environment};
    pub use crate::engine::{Batch, Engine, Horizon, Signals};
    pub use crate::hooks_json::document::Document;
    pub use crate::hooks_json::edit::{Made, install, uninstall};
    pub use crate::hooks_json::own_entries::{Ours, entries};
    pub use crate::hooks_json::recognise::Form;
    pub use crate::hooks_json::{Entry, Events};
    pub use crate::journal::reader::Reader;
    pub use crate::journal::{FLAG_TRUNCATED, Record, record_id};
    pub use crate::redaction::Redaction;
    pub use crate::search::Search;
    pub use crate::source::{Extras, StoreSource};
    pub use crate::store::open::Readers;
    pub use crate::store::write::{Arrival, Preparer, Store};
}
