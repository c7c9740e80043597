//! Harness of the end-to-end tests: it knows the binaries' outside and nothing of their inside.
//!
//! Reading order: [`binaries`] builds what is tested, [`world`] is an empty machine for it, [`fixture`] is what Cursor
//! would send, [`player`] sends it through one shim process per event, [`collector`] is a running `hookspan serve`,
//! [`spans`] reads what came out, [`receivers`] are OTLP backends that nobody here wrote, [`verify`] compares it with
//! the numbers of the fixture, [`ledger`] is the truth a
//! crash test compares with, [`wait`] replaces every sleep, [`machine`] is what a campaign needs
//! of the machine, [`campaign`] are the long runs whose small versions are tests, [`journal`]
//! is a load that no processes could make, [`mcp`] asks as an agent does, [`oracle`] decides what is true before a hook is written.

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
