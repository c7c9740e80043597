//! End-to-end tests: they drive the real programs from outside. A rule is tested at the lowest level at which it can
//! fail. The tests here show that the parts work together.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic with the value is the failure report"
)]

/// The whole way of one session: shim, journal, store and every way out; and the same by `import` and after `rebuild`.
mod happy_path;
/// Hooks happen while no collector runs.
mod offline;
/// Hooks while the state directory is missing or belongs to another user, or while the disk is full before the first
/// start.
mod no_directory;
/// SIGKILL at any moment neither loses nor doubles anything, and the harness would notice if it did.
mod crash;
/// Small versions of the campaigns: kills, failing system calls, full disks, power cuts.
mod campaigns;
/// Every figure is right, and the same wherever it is shown. An independent model decides what is true.
mod oracle;
/// A collector is told to end while it starts.
mod signals;
/// Databases that were moved aside are salvaged although reads fail, and can be deleted while a collector runs.
mod damaged;
/// Figures for single inputs that were once handled wrongly, or that other programs send.
mod figures;
/// The repository of a workspace, as Git changes it during turns.
mod repository;
/// The outcome of sessions, the digest, and what runs now, in a terminal.
mod terminal;
/// Notices about agents, by a command and a webhook; and none where nobody asked for them.
mod notify;
/// The collector sleeps while nothing happens.
#[cfg(target_os = "linux")]
mod idle;
/// Input that is broken or too large, and files that are in the way.
mod bad_input;
/// `install` and `uninstall` are exact inverses, and do not touch the entries of others.
mod install;
/// What `install` writes works where Cursor runs it.
mod installed;
/// `doctor` reports each problem once and changes nothing. The exit code of `status` tells whether everything is
/// recorded and sent.
mod doctor;
/// OTLP backends of others receive the same spans.
mod export;
/// OTLP of other programs is received, kept and refused.
mod receive;
/// The pages in a real browser.
mod dashboard;
/// Who may use the dashboard, who may not, and what a refused attempt costs.
mod door;
/// Another account of the same machine tries to get in.
#[cfg(target_os = "linux")]
mod second_account;
/// The rights that the collector gives up, and that it works without them.
#[cfg(target_os = "linux")]
mod sandbox;
/// Deleted data is in no file any more, and exported files are harmless.
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
/// No dependency has a known fault.
mod advisories;
/// Which rooms and files may know which.
mod imports;
