//! End-to-end tests: the real binaries, driven from outside. A rule is proved at the lowest level where it can fail; what is
//! here proves that the parts are wired together.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic with the value is the failure report"
)]

/// The whole way of one session: shim, journal, store, every way out; the same again by `import` and after `rebuild`.
mod happy_path;
/// The collector is not there while hooks happen.
mod offline;
/// Nor is the state directory, or it is not ours, or the disk is full before the first start.
mod no_directory;
/// SIGKILL at any moment loses nothing and doubles nothing; and the harness would see it.
mod crash;
/// The same and worse, in small versions of the campaigns.
mod campaigns;
/// Every figure is right, and the same wherever it stands: an independent model decides what is true.
mod oracle;
/// A collector is told to end while it starts.
mod signals;
/// Databases that were moved aside are salvaged although reads fail, and can be deleted while a collector runs.
mod damaged;
/// Figures of single inputs that were wrong once, or that other programs send.
mod figures;
/// What came of sessions, the digest, and now in a terminal.
mod terminal;
/// Nothing happens.
#[cfg(target_os = "linux")]
mod idle;
/// What arrives is broken, too large, or in the way.
mod bad_input;
/// `install` and `uninstall` are exact inverses and leave strangers' entries alone.
mod install;
/// What `install` writes works where Cursor runs it.
mod installed;
/// `doctor` sees what is wrong, once, and changes nothing; `status` says by its exit code whether all is recorded and sent.
mod doctor;
/// OTLP backends that nobody here wrote receive the same spans.
mod export;
/// The pages in a real browser.
mod dashboard;
/// Who may use the dashboard, who may not, and what a refused attempt costs.
mod door;
/// The same machine has a second account.
#[cfg(target_os = "linux")]
mod second_account;
/// What the collector gives up, and that it works all the same.
#[cfg(target_os = "linux")]
mod sandbox;
/// What is deleted is in no file any more, and what is exported does nothing.
mod privacy;
/// Deletion by age: `prune` and retention, including hooks without a session.
mod retention;
/// Logs of audit scripts, archives and other layouts are imported; anything else is refused with a reason.
mod import;
/// Secrets stay in the raw log.
mod secrets;
/// An agent asks about its own sessions.
mod mcp;
/// Rules about the source itself.
mod tidy;
/// Rules about what the workspace depends on.
mod dependencies;
/// None of that has a known fault.
mod advisories;
/// Who may know whom among rooms and files.
mod imports;
