//! Checks the state directory and the free space around it.

use std::path::Path;

use super::Finding;
use crate::config::Global;
use crate::dirs::DirError;
use crate::text;

/// With less free space, a commit or the next segment of the journal may fail.
const ROOM_LEAST_BYTES: u64 = 64 << 20;
/// With less free space, a day of work may fill the disk.
const ROOM_LOW_BYTES: u64 = 512 << 20;

/// The directory itself, and the free space on its file system.
pub(super) fn examine(global: &Global) -> Vec<Finding> {
    let root = global.state.root();
    let mut findings = vec![directory(global)];
    let existing = root.ancestors().find(|folder| folder.exists());
    findings.extend(existing.and_then(room).map(|bytes| judge_room(root, bytes)));
    findings
}

fn directory(global: &Global) -> Finding {
    let root = global.state.root();
    let shown = root.display();
    match global.state.verify() {
        Ok(()) => match global.state.not_writable() {
            None => Finding::ok("state.fine", shown.to_string()),
            Some(error) => Finding::problem(
                "state.not_writable",
                format!("{shown} cannot be written: {}", text::reason(&error)),
                "make it writable for your account, or use another one with --dir DIR",
            )
            .meaning("hooks are kept in memory until the next start of the computer, or lost"),
        },
        Err(_) if !root.exists() => {
            Finding::warning("state.missing", format!("{shown} does not exist yet"), "hookspan up")
                .meaning("no collector has run for this directory")
        }
        Err(DirError::Unsafe { path, problem, remedy }) => {
            Finding::problem("state.unsafe", format!("{} {problem}", path.display()), remedy)
                .meaning("hookspan does not use a directory that others can read or replace")
        }
        Err(error) => Finding::problem(
            "state.unsafe",
            error.to_string(),
            "make it accessible for your account, or use another one with --dir DIR",
        ),
    }
}

fn judge_room(root: &Path, bytes: u64) -> Finding {
    let what = format!("{} free on the file system of {}", text::bytes(bytes), root.display());
    let remedy = "free some space there, or use another directory with --dir DIR";
    if bytes < ROOM_LEAST_BYTES {
        return Finding::problem("disk.full", what, remedy)
            .meaning("the database cannot grow; hooks are lost when the reserve is used up");
    }
    if bytes < ROOM_LOW_BYTES {
        return Finding::warning("disk.low", what, remedy)
            .meaning("recording stops when it is full");
    }
    Finding::ok("disk.free", what)
}

/// Number of bytes on the file system of `folder` that this account may still use.
#[cfg(unix)]
fn room(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// On other systems the free space is not determined.
#[cfg(not(unix))]
fn room(_folder: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn room_is_judged_by_what_is_left() {
        let judge = |bytes| {
            let found = judge_room(Path::new("/s"), bytes);
            (found.id, found.severity)
        };
        assert_eq!(judge(0), ("disk.full", Severity::Problem));
        assert_eq!(judge(ROOM_LEAST_BYTES), ("disk.low", Severity::Warning));
        assert_eq!(judge(ROOM_LOW_BYTES), ("disk.free", Severity::Ok));
    }
}
