//! Checks of Cursor's own files: its hook log and its database of composers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Finding;
use crate::config::{Evidence, Global, paths};
use crate::store::cursor::Database;

const LOG_MAX_BYTES: u64 = 4 << 20;
const LOGS_MAX: usize = 8;

/// Cursor notes in its log when a command cannot be started. The lines contain commands and payloads, so they are only
/// counted.
pub(super) fn log(global: &Global) -> Option<Finding> {
    let logs = newest_logs(&paths::cursor_folder(&global.env)?.join("logs"));
    let newest = logs.first()?;
    let failed: usize = logs.iter().map(|log| failures(log)).sum();
    Some(if failed == 0 {
        Finding::ok("cursor.log", format!("{}: no failed hook of hookspan", newest.display()))
    } else {
        Finding::warning(
            "cursor.failed_hooks",
            format!("{failed} lines of Cursor's hook log report a failed hookspan-shim"),
            format!(
                "read {}; if `exec` is the problem, run `hookspan install --no-exec`",
                newest.display()
            ),
        )
    })
}

/// `LAUNCH/WINDOW/output_*/cursor.hooks*.log`, newest first. The names begin with a time, so sorting by name sorts by
/// time.
fn newest_logs(folder: &Path) -> Vec<PathBuf> {
    let list = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths.reverse();
        paths
    };
    let named = |path: &PathBuf, start: &str| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
    };
    let launches = list(folder).into_iter().take(LOGS_MAX);
    let windows = launches.flat_map(|launch| list(&launch));
    let outputs = windows.flat_map(|window| list(&window)).filter(|path| named(path, "output_"));
    let logs = outputs.flat_map(|output| list(&output)).filter(|path| named(path, "cursor.hooks"));
    logs.take(LOGS_MAX).collect()
}

fn failures(log: &Path) -> usize {
    let small = std::fs::metadata(log).is_ok_and(|meta| meta.len() <= LOG_MAX_BYTES);
    let bytes = if small { std::fs::read(log).unwrap_or_default() } else { Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let signs = ["enoent", "not found", "e2big", "timed out", "exit code: 1", "exited with code 1"];
    text.lines()
        .filter(|line| line.contains("hookspan-shim"))
        .map(str::to_ascii_lowercase)
        .filter(|line| signs.iter().any(|sign| line.contains(sign)))
        .count()
}

/// Whether Cursor's own database can name the parents of subagents.
pub(super) fn store(evidence: &Evidence, counters: &BTreeMap<String, u64>) -> Finding {
    let Some(path) = evidence.file() else {
        return Finding::ok(
            "cursor.store",
            "its database is not read, because evidence.cursor_store = false",
        );
    };
    let shown = path.display();
    if !path.is_file() {
        let what = format!("{shown}: not found; only hooks and transcripts link subagents");
        return Finding::ok("cursor.store", what);
    }
    let tables = match Database::open(&path) {
        Ok(database) => database.tables(),
        Err(error) => {
            let what = format!("{shown}: cannot be read: {error}");
            let remedy = "nothing is lost: hooks and transcripts still link subagents";
            return Finding::warning("cursor.store_unreadable", what, remedy);
        }
    };
    let known = [
        (tables.headers, "composerHeaders"),
        (tables.values, "cursorDiskKV"),
        (tables.items, "ItemTable"),
    ];
    let names: Vec<&str> =
        known.iter().filter(|(there, _)| *there).map(|(_, name)| *name).collect();
    if names.is_empty() {
        let what = format!("{shown}: has a form that hookspan does not know");
        return Finding::warning(
            "cursor.store_unknown",
            what,
            "a newer hookspan may read it; nothing is lost",
        );
    }
    let count = |key: &str| counters.get(key).copied().unwrap_or_default();
    Finding::ok(
        "cursor.store",
        format!(
            "{shown}: readable ({}); answered {} questions about subagents, failed {} times",
            names.join(", "),
            count("evidence_store"),
            count("evidence_store_failed"),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn cursors_database_is_judged_by_what_can_be_read_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.vscdb");
        let counters = BTreeMap::from([("evidence_store".to_owned(), 3)]);
        let mut evidence = Evidence { cursor_store_path: path.clone(), ..Evidence::default() };
        let judge = |evidence: &Evidence| {
            let found = store(evidence, &counters);
            (found.severity, found.what.replace(&path.display().to_string(), "FILE"))
        };
        let ok = |what: &str| (Severity::Ok, what.to_owned());
        let expected = ok("FILE: not found; only hooks and transcripts link subagents");
        assert_eq!(judge(&evidence), expected);
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch("CREATE TABLE other (x)").unwrap();
        assert_eq!(judge(&evidence).0, Severity::Warning);
        db.execute_batch("CREATE TABLE ItemTable (key TEXT, value BLOB)").unwrap();
        let expected =
            ok("FILE: readable (ItemTable); answered 3 questions about subagents, failed 0 times");
        assert_eq!(judge(&evidence), expected);
        drop(db);
        std::fs::write(&path, [b'x'; 4_096]).unwrap();
        assert_eq!(judge(&evidence).0, Severity::Warning);
        evidence.cursor_store = false;
        let expected = ok("its database is not read, because evidence.cursor_store = false");
        assert_eq!(judge(&evidence), expected);
    }

    #[test]
    fn failed_starts_are_counted_in_cursors_log() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("20260609T155300/window1/output_20260609T155301");
        std::fs::create_dir_all(&output).unwrap();
        let log = output.join("cursor.hooks.workspaceId-1.log");
        std::fs::write(
            &log,
            "ran exec /s/hookspan-shim stop\nexec /s/hookspan-shim stop: ENOENT\n./other.sh: ENOENT\n",
        )
        .unwrap();
        std::fs::write(output.join("main.log"), "hookspan-shim ENOENT\n").unwrap();
        assert_eq!(newest_logs(folder.path()), std::slice::from_ref(&log));
        assert_eq!(failures(&log), 1);
    }
}
