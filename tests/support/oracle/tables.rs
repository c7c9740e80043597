//! Compares the derived tables of two stores row by row. Reads SQLite itself.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::check::Differences;

/// Maximum number of differences printed per table. Further ones are counted.
const PRINTED: usize = 3;

/// Each derived table without the columns that may differ: keys of rows, revisions, places in the raw log and in the
/// export queue.
const DERIVED: [(&str, &str); 9] = [
    (
        "span",
        "SELECT hex(s.id), r.text, c.text, generation, hex(trace), hex(parent), kind, tool, name, plain_name, workspace,
                cursor_version, start_ns, end_ns, end_reason, error_type, error_message, detail, label,
                (SELECT observed_ns FROM raw_hook WHERE seq = subject_seq), class, flags, wait_us,
                s.row IN (SELECT span FROM settled), EXISTS (SELECT 1 FROM unsettled u WHERE u.root = s.root AND u.span = s.row)
         FROM span s JOIN name r ON r.id = s.root JOIN name c ON c.id = s.conversation",
    ),
    (
        "session",
        "SELECT r.text, project, state, started_ns, last_ns, ended_ns, workspace, model, surface, cursor_version,
                first_prompt, last_error, generations, tool_calls, subagents, errors, errored_turns, active_ns, input,
                output, cache_read, cache_write
         FROM session s JOIN name r ON r.id = s.root",
    ),
    (
        "turn",
        "SELECT r.text, hex(span), generation, hex(trace), number, started_ns, ended_ns, end_reason, prompt, model, status,
                tool_calls, errors, input, output, cache_read, cache_write, parts
         FROM turn t JOIN name r ON r.id = t.root",
    ),
    (
        "histogram",
        "SELECT dimension, days, day, name, count, errors, total_us, hex(sketch) FROM histogram
         WHERE dimension <> 'arrival'",
    ),
    ("heat", "SELECT dimension, name, hours, hour, hex(counts) FROM heat"),
    ("turn_time", "SELECT * FROM turn_time"),
    ("file", "SELECT project, path FROM file"),
    (
        "reach",
        "SELECT r.text, class, tool, longest_ns, failed_ns FROM reach x JOIN name r ON r.id = x.root",
    ),
    (
        "conversation",
        "SELECT c.text, r.text FROM conversation k JOIN name c ON c.id = k.id JOIN name r ON r.id = k.root",
    ),
];

/// Rows of the derived tables, by table.
pub type Tables = Vec<(&'static str, BTreeSet<String>)>;

/// All derived tables of a store.
#[must_use]
pub fn tables(database: &Path) -> Tables {
    let db = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    DERIVED.map(|(table, sql)| (table, rows(&db, sql))).into()
}

fn rows(db: &Connection, sql: &str) -> BTreeSet<String> {
    let mut statement = db.prepare(sql).unwrap();
    let columns = statement.column_count();
    let mut found = statement.query([]).unwrap();
    let mut rows = BTreeSet::new();
    while let Some(row) = found.next().unwrap() {
        let cell = |at| match row.get_ref(at).unwrap() {
            ValueRef::Null => "NULL".to_owned(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            ValueRef::Blob(bytes) => format!("{bytes:x?}"),
        };
        let cells: Vec<_> = (0..columns).map(cell).collect();
        rows.insert(cells.join(" | "));
    }
    rows
}

/// Notes each row that only one of the two stores has.
pub fn compare(when: &str, got: &Tables, wanted: &Tables, found: &mut Differences) {
    for ((table, got), (_, wanted)) in got.iter().zip(wanted) {
        for (only, rows) in [("only", got.difference(wanted)), ("lacks", wanted.difference(got))] {
            let rows: Vec<_> = rows.collect();
            let printed = rows.iter().take(PRINTED);
            found.0.extend(printed.map(|row| format!("table {table} {when} {only}: {row}")));
            if rows.len() > PRINTED {
                found.0.push(format!("table {table} {when} {only}: {} rows in all", rows.len()));
            }
        }
    }
}
