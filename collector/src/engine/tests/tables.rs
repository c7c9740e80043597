//! The derived tables as values that can be compared.

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

/// Tables that are derived from the raw log, without what may differ: row keys and revisions.
const DERIVED: [&str; 9] = [
    "SELECT hex(s.id), r.text, c.text, tool, generation, hex(trace), hex(parent), kind, name, plain_name, workspace,
            cursor_version, start_ns, end_ns, end_reason, error_type, error_message, detail, label, subject_seq,
            class, flags, wait_us, (SELECT project || ' ' || path FROM file WHERE id = s.file), added, removed, s.row IN (SELECT span FROM settled),
            s.row IN (SELECT span FROM unsettled WHERE root = s.root)
     FROM span s JOIN name r ON r.id = s.root JOIN name c ON c.id = s.conversation ORDER BY 1",
    "SELECT r.text, project, state, started_ns, last_ns, ended_ns, workspace, model, surface, cursor_version, first_prompt,
            last_error, generations, tool_calls, subagents, errors, errored_turns, active_ns, input, output,
            cache_read, cache_write
     FROM session s JOIN name r ON r.id = s.root ORDER BY 1",
    "SELECT r.text, hex(span), generation, hex(trace), number, started_ns, ended_ns, end_reason, prompt, model, status,
            tool_calls, errors, input, output, cache_read, cache_write, parts
     FROM turn t JOIN name r ON r.id = t.root ORDER BY 1, 2",
    "SELECT dimension, days, day, name, count, errors, total_us, hex(sketch) FROM histogram ORDER BY 1, 2, 3, 4",
    "SELECT dimension, name, hours, hour, hex(counts) FROM heat ORDER BY 1, 2, 3, 4",
    "SELECT * FROM turn_time ORDER BY width, quarter, project, model",
    "SELECT r.text, class, tool, longest_ns, failed_ns FROM reach x JOIN name r ON r.id = x.root ORDER BY 1, 2, 3",
    "SELECT project, path FROM file ORDER BY 1, 2",
    "SELECT c.text, r.text, held FROM conversation k JOIN name c ON c.id = k.id JOIN name r ON r.id = k.root ORDER BY 1",
];

pub(super) fn tables(path: &Path) -> Vec<Vec<Value>> {
    let db = Connection::open(path).unwrap();
    DERIVED.iter().map(|sql| rows(&db, sql)).collect()
}

pub(super) fn rows(db: &Connection, sql: &str) -> Vec<Value> {
    use rusqlite::types::ValueRef;
    let mut statement = db.prepare(sql).unwrap();
    let columns = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut found = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let value = |at| match row.get_ref(at).unwrap() {
            ValueRef::Integer(number) => json!(number),
            ValueRef::Text(text) => json!(std::str::from_utf8(text).unwrap()),
            _ => Value::Null,
        };
        found.push((0..columns).map(value).collect());
    }
    found
}

/// Fails with the cells that differ, and only those: whole tables would hide them.
#[track_caller]
pub(super) fn assert_same(left: &[Vec<Value>], right: &[Vec<Value>], when: &str) {
    let found = differences(left, right);
    assert!(left == right, "{when}:\n{}", found.join("\n"));
}

fn differences(left: &[Vec<Value>], right: &[Vec<Value>]) -> Vec<String> {
    let mut found = Vec::new();
    for (table, (left, right)) in left.iter().zip(right).enumerate() {
        let only = |of: &[Value], without: &[Value]| -> Vec<Value> {
            of.iter().filter(|row| !without.contains(row)).cloned().collect()
        };
        let (gone, new) = (only(left, right), only(right, left));
        for row in &gone {
            let Some(twin) = new.iter().find(|twin| twin[0] == row[0]) else {
                found.push(format!("table {table}: only left: {row}"));
                continue;
            };
            let cells = row.as_array().unwrap().iter().zip(twin.as_array().unwrap());
            for (column, (a, b)) in cells.enumerate().filter(|(_, (a, b))| a != b) {
                found.push(format!("table {table}, {}, column {column}:\n  {a}\n  {b}", row[0]));
            }
        }
        let unknown = |row: &&Value| gone.iter().all(|twin| twin[0] != row[0]);
        found.extend(
            new.iter().filter(unknown).map(|row| format!("table {table}: only right: {row}")),
        );
    }
    found
}
