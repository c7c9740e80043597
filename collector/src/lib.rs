//! The collector: follows the journal, folds hooks into spans, stores, exports and serves them; and the command line.
//!
//! Reading order: [`cli`] is what a person can ask for; [`serve`] is the running collector; [`journal`], [`ingest`],
//! [`engine`] and [`store`] are the way of one event; [`export`] and [`source`] are the two ways out.

pub mod access;
pub mod cli;
pub mod config;
pub mod dirs;
pub mod clock;
pub mod disk;
pub mod search;
pub mod serve;
pub mod journal;
pub mod ingest;
pub mod engine;
pub mod evidence;
pub mod import;
pub mod store;
pub mod source;
pub mod export;
pub mod hooks_json;
pub mod redaction;
pub mod shim_binary;
pub mod status;
pub mod doctor;
pub mod tls;
pub mod telemetry;
pub mod text;
