//! SQLite: the only home of SQL, with `migrations/`.
//!
//! One connection writes ([`open::writer`], owned by the engine); any number of short readers look on ([`open::Readers`]).
//! [`rows`] is the one place that knows how a core value lies in a row. [`cursor`] alone reads another program's database.

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
pub(crate) mod open;
pub(crate) mod prune;
pub(crate) mod read;
pub(crate) mod rows;
pub(crate) mod salvage;
pub(crate) mod search;
pub(crate) mod whole;
pub(crate) mod write;

#[cfg(test)]
pub(crate) mod sample;
