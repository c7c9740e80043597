//! What waits in the journal and beside it, and what was lost.

use super::Finding;
use crate::config::Global;
use crate::journal::spilled;
use crate::status::Status;
use crate::text;

/// The bound of the journal, hooks in the run-time directory, losses, hooks that are no JSON.
pub(super) fn examine(global: &Global, status: &Status) -> Vec<Finding> {
    let mut findings = Vec::new();
    if status.journal.stopped {
        findings.push(
            Finding::problem(
                "journal.bound",
                "the journal is at its bound",
                "start the collector; while one runs, raise journal.max_bytes",
            )
            .meaning("hooks are counted instead of kept"),
        );
    }
    findings.extend(spill(global));
    findings.extend(losses(status));
    findings
}

/// Hooks that found the state directory closed. They lie in memory and are gone when the computer stops.
fn spill(global: &Global) -> Option<Finding> {
    let size = |path: &std::path::PathBuf| path.metadata().map_or(0, |found| found.len());
    let files: Vec<_> = spilled(&global.state).into_iter().filter(|path| size(path) > 0).collect();
    let first = files.first()?;
    let bytes = text::bytes(files.iter().map(size).sum());
    Some(
        Finding::warning(
            "journal.spilled",
            format!("hooks wait in the run-time directory: {bytes} in {}", first.display()),
            "start the collector, which takes them in: hookspan up",
        )
        .meaning("the state directory could not be written; a restart of the computer loses them"),
    )
}

fn losses(status: &Status) -> Vec<Finding> {
    let found = status.losses.iter().filter(|(_, count)| **count > 0);
    let mut findings: Vec<Finding> = found.map(|(reason, count)| lost(reason, *count)).collect();
    if findings.is_empty() {
        findings.push(Finding::ok("losses.none", "no hooks lost"));
    }
    if status.malformed > 0 {
        let what = format!("{} hooks were not valid JSON (kept raw)", status.malformed);
        findings.push(
            Finding::warning(
                "losses.malformed",
                what,
                "update Cursor; `hookspan export --all --format jsonl` shows them as text",
            )
            .meaning("they are in no session"),
        );
    }
    findings
}

fn lost(reason: &str, count: u64) -> Finding {
    let (id, remedy) = match reason {
        "disk_full" => ("losses.disk_full", "free some space"),
        "journal_full" => {
            ("losses.journal_full", "start the collector; while one runs, raise journal.max_bytes")
        }
        "permission" | "read_only" => ("losses.permission", "make the state directory writable"),
        _ => ("losses.other", "look at the disk that holds the state directory"),
    };
    Finding::warning(id, format!("{count} hooks lost since recording began: {reason}"), remedy)
}
