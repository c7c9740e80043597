//! Harness of the end-to-end tests. It uses only the programs' outside and knows nothing of their inside.
//!
//! Reading order: [`binaries`] builds what is tested. [`world`] is an empty machine for it. [`fixture`] is what Cursor
//! would send. [`player`] sends it with one shim process per event. [`collector`] is a running `hookspan serve`.
//! [`spans`] reads the result. [`receivers`] are OTLP backends of others. [`verify`] compares the result with the
//! fixture's numbers. [`ledger`] is the truth that a crash test compares with. [`wait`] replaces every sleep.
//! [`machine`] has what a campaign needs of the machine. [`campaign`] has the long runs whose small versions are tests.
//! [`journal`] makes a load for which processes would be too slow. [`mcp`] asks as an agent does. [`oracle`] decides
//! what is true before a hook is written.

#![expect(
    clippy::unwrap_used,
    reason = "support code of tests: a panic with the value is the failure report"
)]

pub mod wait;
pub mod binaries;
pub mod world;
pub mod fixture;
pub mod player;
pub mod collector;
pub mod spans;
pub mod swallow;
pub mod verify;
pub mod ledger;
pub mod receivers;
pub mod skip;
pub mod random;
pub mod machine;
pub mod campaign;
pub mod journal;
pub mod mcp;
pub mod oracle;
