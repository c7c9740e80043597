//! Checks of the journal: backlog, spilled hooks, losses.

use super::Finding;
use crate::status::Status;
use crate::text;

/// The journal's bound, hooks in the run-time directory, losses, and hooks that are not JSON.
pub(super) fn examine(status: &Status) -> Vec<Finding> {
    let mut findings = Vec::new();
    if status.journal.stopped {
        findings.push(
            Finding::problem(
                "journal.bound",
                "the journal is full",
                "start the collector; if one is running, raise journal.max_bytes",
            )
            .meaning("new hooks are counted and dropped"),
        );
    }
    findings.extend(status.journal.problems.iter().map(|problem| {
        let what = text::visible(&problem.what, 300);
        Finding::problem(
            "journal.problem",
            what,
            "correct this; the collector then continues by itself",
        )
    }));
    findings.extend(spill(status));
    findings.extend(losses(status));
    findings
}

/// Hooks in the run-time directory, which is usually in memory. The state directory did not accept them.
fn spill(status: &Status) -> Option<Finding> {
    let bytes = text::bytes(status.journal.spilled_bytes);
    let hooks = Some(status.journal.spilled).filter(|hooks| *hooks > 0)?;
    Some(
        Finding::warning(
            "journal.spilled",
            format!("{hooks} hooks ({bytes}) wait in the run-time directory"),
            "start the collector with `hookspan up`; it stores them as soon as the state directory can be written",
        )
        .meaning("the state directory could not be written; these hooks are lost if the computer restarts"),
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
            .meaning("they are not part of any session"),
        );
    }
    findings
}

fn lost(reason: &str, count: u64) -> Finding {
    let (id, remedy) = match reason {
        "disk_full" => ("losses.disk_full", "free some space"),
        "journal_full" => (
            "losses.journal_full",
            "start the collector; if one is running, raise journal.max_bytes",
        ),
        "permission" | "read_only" => ("losses.permission", "make the state directory writable"),
        _ => ("losses.other", "check the disk of the state directory"),
    };
    Finding::warning(id, format!("{count} hooks lost since recording began: {reason}"), remedy)
}
