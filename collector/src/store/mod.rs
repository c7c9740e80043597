//! SQLite: the only home of SQL, with `migrations/`.
//!
//! One connection writes ([`open::writer`], owned by the engine); any number of short readers look on ([`open::Readers`]).
//! [`rows`] is the one place that knows how a core value lies in a row. [`cursor`] alone reads another program's database.

pub mod backup;
pub mod ballast;
pub mod bodies;
pub mod cli;
pub mod codec;
pub mod cursor;
pub mod damage;
pub mod delegations;
pub mod examine;
pub mod imports;
pub mod export;
pub mod open;
pub mod prune;
pub mod read;
pub mod rows;
pub mod salvage;
pub mod search;
pub mod whole;
pub mod write;

#[cfg(test)]
pub(crate) mod sample;
