//! Checks the database, and databases that were moved aside.

use std::path::Path;

use super::Finding;
use crate::config::Global;
use crate::status::Status;
use crate::store::damage;
use crate::store::examine::{self, Ending, Verdict};
use crate::store::open::OpenError;
use crate::store::{cli as queries, open};
use crate::text;

/// Maximum size of a database that is checked. Checking a larger one takes too long for a person who waits.
const CHECKED_MAX_BYTES: u64 = 256 << 20;

/// Whether the database is sound, and what the collector reports about it.
pub(super) fn examine(global: &Global, status: &Status) -> Vec<Finding> {
    let mut findings: Vec<Finding> = check(global, status).into_iter().collect();
    if let Some(trouble) = &status.trouble {
        let what = text::visible(trouble, 200);
        let id = if status.no_answer { "collector.no_answer" } else { "database.trouble" };
        findings.push(
            Finding::problem(id, what, "read what the collector writes to standard error")
                .meaning("hooks wait in the journal until the database accepts them"),
        );
    }
    if status.older_rules {
        let what =
            "the stored sessions were derived by an earlier version with older rules".to_owned();
        let stop = if status.running { "stop the collector, then " } else { "" };
        findings.push(
            Finding::warning("database.rules", what, format!("{stop}run `hookspan rebuild`"))
                .meaning("this version would compute other figures from the same hooks"),
        );
    }
    findings.extend(status.damaged.iter().map(|aside| {
        let remedy = "keep the folder for a repair by hand, or delete it";
        Finding::warning("database.aside", aside.clone(), remedy)
            .meaning("it was damaged, and recording continued in a new database")
    }));
    findings
}

fn check(global: &Global, status: &Status) -> Option<Finding> {
    let path = global.state.database();
    if !path.exists() {
        return None;
    }
    let shown = path.display();
    let size = text::bytes(status.database_bytes);
    if status.database_bytes > CHECKED_MAX_BYTES {
        return Some(Finding::ok(
            "database.unchecked",
            format!("{shown}: {size}, too large to check here"),
        ));
    }
    let opened = if status.running { open::reader(&path) } else { open::still_reader(&path) };
    let database = match opened {
        Ok(database) => database,
        Err(OpenError::Missing(_)) => return None,
        Err(OpenError::Older { .. }) => {
            return Some(Finding::ok(
                "database.older",
                format!("{shown}: {size}, of an older version; the next start updates it"),
            ));
        }
        Err(error @ OpenError::Newer { .. }) => {
            return Some(Finding::problem(
                "database.newer",
                error.to_string(),
                "install the newer hookspan",
            ));
        }
        Err(error) if error.is_suspected() => return Some(examined(&path, &size)),
        Err(error) => return Some(unreadable(&error.to_string())),
    };
    Some(match queries::quick_check(&database) {
        Ok(None) => Finding::ok("database.sound", format!("{shown}: {size}, sound")),
        Ok(Some(_)) => examined(&path, &size),
        Err(error) if damage::is_suspected(&error) => examined(&path, &size),
        Err(error) => unreadable(&format!("{shown}: {error}")),
    })
}

/// SQLite reports damage. A failed read looks the same, so the file is examined.
fn examined(path: &Path, size: &str) -> Finding {
    let shown = path.display().to_string();
    match examine::examine(path, &Ending::default(), || std::thread::sleep(examine::WAIT)) {
        Verdict::Damaged(fault) => damaged(&shown, &fault),
        Verdict::Unreadable(problem) => unreadable(&format!("{shown} cannot be read: {problem}")),
        Verdict::Sound => Finding::warning(
            "database.reread",
            format!("{shown}: {size}, sound, but a read failed at first"),
            "check the system's log for disk errors",
        ),
    }
}

fn unreadable(problem: &str) -> Finding {
    Finding::problem(
        "database.unreadable",
        text::visible(problem, 200),
        "check the file, its permissions, and the system's log for disk errors; the collector then continues by itself",
    )
    .meaning("the database is not moved; hooks wait in the journal until it accepts them")
}

fn damaged(shown: &str, fault: &str) -> Finding {
    Finding::problem(
        "database.damaged",
        format!("{shown} is damaged: {}", text::visible(fault, 120)),
        "restart the collector: it moves the file aside and copies all hooks that can be read",
    )
    .meaning("hooks wait in the journal")
}
