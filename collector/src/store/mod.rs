//! The SQLite database. SQL occurs only here and in `migrations/`.
//!
//! One connection writes ([`open::writer`], owned by the engine). Any number of short readers read ([`open::Readers`]).
//! Only [`rows`] knows how a core value is stored in a row. Only [`cursor`] reads another program's database.

pub(crate) mod backup;
pub(crate) mod ballast;
pub(crate) mod bodies;
pub(crate) mod cli;
pub(crate) mod codec;
pub(crate) mod cursor;
pub(crate) mod damage;
pub(crate) mod delegations;
pub(crate) mod examine;
pub(crate) mod imports;
pub(crate) mod export;
pub(crate) mod marks;
pub(crate) mod open;
pub(crate) mod prune;
pub(crate) mod read;
pub(crate) mod received;
pub(crate) mod rows;
pub(crate) mod salvage;
pub(crate) mod search;
pub(crate) mod whole;
pub(crate) mod write;

#[cfg(test)]
pub(crate) mod sample;
