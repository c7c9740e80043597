//! Overwrites chosen pages of the database. The database must be moved aside, readable hooks must be copied, the others
//! counted, and the collector must be ready within two seconds. Only the chosen pages determine which hooks may be
//! lost.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::super::{Report, extend, send};
use crate::collector::{self, Collector};
use crate::ledger::{self, Ledger};
use crate::verify;
use crate::wait::{SOON, eventually};
use crate::world::World;

const PAGE: usize = 4_096;

/// What is overwritten.
#[derive(Clone, Copy, Debug)]
pub(super) enum Page {
    /// The root of a table or index. Every access to it meets the damage.
    Root(&'static str),
    /// A leaf in the middle of a table, with the rows on it.
    Leaf(&'static str),
    /// A page that contains part of one large row of a table.
    Overflow(&'static str),
    /// The page after the file's header. It lists the tables.
    Schema,
    /// The file's header. Without it, the file is not a database.
    Header,
}

/// One case: the pages to overwrite, and whether the journal still has the lost hooks.
#[derive(Debug)]
pub(super) struct Damage {
    /// Pages to overwrite, in addition to the page of [`LOOKED_UP`], whose damage is always noticed.
    pub(super) pages: &'static [Page],
    /// The segments are still there.
    pub(super) journal: bool,
}

/// The index in which every hook is looked up. Damage is noticed only when something reads it. The next hook reads this
/// index.
const LOOKED_UP: Page = Page::Root("sqlite_autoindex_raw_hook_1");

/// An index. Nothing is lost, with or without a journal.
pub(super) const INDEX: Damage = Damage { pages: &[LOOKED_UP], journal: false };
/// A page of the raw log. Its hooks are stored nowhere else.
pub(super) const RAW_LOG: Damage =
    Damage { pages: &[LOOKED_UP, Page::Leaf("raw_hook")], journal: false };
/// A page of bodies, which are stored nowhere else. The damage affects every hook whose body is in one of the page's
/// rows.
pub(super) const BODIES: Damage =
    Damage { pages: &[LOOKED_UP, Page::Leaf("payload")], journal: false };
/// A part of one body, which is stored nowhere else.
pub(super) const LARGE_BODY: Damage =
    Damage { pages: &[LOOKED_UP, Page::Overflow("payload")], journal: false };
/// Pages of the raw log and of bodies. The journal has their hooks.
pub(super) const IN_JOURNAL: Damage = Damage {
    pages: &[LOOKED_UP, Page::Leaf("raw_hook"), Page::Leaf("payload"), Page::Overflow("payload")],
    journal: true,
};
/// What is derived: nothing is lost.
pub(super) const SPANS: Damage = Damage { pages: &[Page::Root("span")], journal: false };
/// Nothing can be read, but the journal has everything.
pub(super) const SCHEMA: Damage = Damage { pages: &[Page::Schema], journal: true };
/// Nothing can be read, and nothing else has the hooks. New hooks must still be stored.
pub(super) const HEADER: Damage = Damage { pages: &[Page::Header], journal: false };

/// Runs one case.
pub(super) fn run(damage: &Damage, seed: u64) -> Result<Report, String> {
    let world = World::new();
    world.shim();
    let collector = Collector::start(&world);
    let mut ledger = send(&world, 200, seed);
    collector.drained(SOON);
    drop(collector);
    let numbers = numbers(&world);
    assert_eq!(numbers.len(), ledger.accepted());
    let covered = overwrite(&world.state().join("hookspan.db"), damage.pages, numbers.len());
    let covered: BTreeSet<u64> = covered.into_iter().map(|place| numbers[place]).collect();
    if !damage.journal {
        forget_journal(&world);
    }
    let started = Instant::now();
    let collector = Collector::start(&world);
    let ready = started.elapsed();
    assert!(ready < Duration::from_secs(2), "start took {ready:?}");
    extend(&mut ledger, &world, 20, seed);
    let shown = moved_aside(&world);
    let doctor = world.run(&["doctor"]);
    assert!(doctor.stdout.contains("damaged"), "{}", doctor.stdout);
    drop(collector);

    let salvaged = numbers.len() - covered.len();
    let said = match damage.pages {
        [Page::Schema | Page::Header] => {
            "0 hooks were saved, and it does not say how many".to_owned()
        }
        _ => format!("{salvaged} hooks were saved, at most {} lost", covered.len()),
    };
    assert!(shown.contains(&said), "{shown}, not: {said}");
    let lost = if damage.journal { BTreeSet::new() } else { covered };
    only_these_are_lost(&world, &ledger, &lost);
    let sound = Connection::open(world.state().join("hookspan.db")).unwrap();
    let check: String = sound.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    Ok(format!(
        "{:?} overwritten, journal {}: moved aside, ready after {ready:.0?}, {salvaged} of {} hooks salvaged, {} lost in the end; \
         of 20 after it 0 lost",
        damage.pages,
        if damage.journal { "there" } else { "gone" },
        numbers.len(),
        lost.len(),
    ))
}

/// The hooks of the raw log by their places in it.
fn numbers(world: &World) -> Vec<u64> {
    let mut numbers = Vec::new();
    verify::each_raw_body(world, |body| numbers.extend(ledger::number(body)));
    numbers
}

/// Removes the segments, as if they had been deleted because they were full and completely stored.
fn forget_journal(world: &World) {
    for entry in fs::read_dir(world.state()).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("journal") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// Overwrites the pages. Returns the places of the hooks that can no longer be read.
fn overwrite(path: &Path, pages: &[Page], hooks: usize) -> BTreeSet<usize> {
    let db = Connection::open(path).unwrap();
    // If the log contained the page too, it would be read from there.
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mut covered = BTreeSet::new();
    let mut wounds: Vec<Range<usize>> = Vec::new();
    for page in pages {
        let half = |number: usize| (number - 1) * PAGE..(number - 1) * PAGE + PAGE / 2;
        match *page {
            Page::Root(name) => wounds.push(half(root(&db, name))),
            Page::Leaf(table) => {
                let leaves = leaves(&db, table);
                let leaf = &leaves[leaves.len() / 2];
                wounds.push(half(leaf.page));
                covered.extend(hooks_of(&db, table, leaf.rows.clone()));
            }
            Page::Overflow(table) => {
                let (page, row) = overflow(&db, table);
                wounds.push(half(page));
                covered.extend(hooks_of(&db, table, row..row + 1));
            }
            Page::Schema => {
                wounds.push(100..PAGE);
                covered.extend(0..hooks);
            }
            Page::Header => {
                wounds.push(0..100);
                covered.extend(0..hooks);
            }
        }
    }
    drop(db);
    let mut bytes = fs::read(path).unwrap();
    wounds.into_iter().for_each(|wound| bytes[wound].fill(0xa5));
    fs::write(path, bytes).unwrap();
    covered
}

/// Places of the hooks that belong to these rows of a table. A row of bodies belongs to several hooks of a
/// conversation.
fn hooks_of(db: &Connection, table: &str, rows: Range<usize>) -> Vec<usize> {
    if table == "raw_hook" {
        return rows.collect();
    }
    let sql = "SELECT place, (SELECT count(*) FROM payload WHERE seq < holder) FROM
                   (SELECT row_number() OVER (ORDER BY seq) - 1 AS place, coalesce(pack, seq) AS holder FROM raw_hook)";
    let mut statement = db.prepare(sql).unwrap();
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let hooks = statement.query_map([], read).unwrap().map(Result::unwrap);
    let inside = hooks.filter(|(_, body)| rows.contains(&(*body as usize)));
    inside.map(|(place, _)| place as usize).collect()
}

fn root(db: &Connection, name: &str) -> usize {
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    db.query_row(sql, [name], |row| row.get::<_, i64>(0)).unwrap() as usize
}

/// A leaf of a table: its path in the tree, its page, and the rows on it, counted from 0.
struct Leaf {
    path: String,
    page: usize,
    rows: Range<usize>,
}

fn leaves(db: &Connection, table: &str) -> Vec<Leaf> {
    let sql = "SELECT path, pageno, ncell FROM dbstat WHERE name = ?1 AND pagetype = 'leaf' ORDER BY path";
    let mut statement = db.prepare(sql).unwrap();
    let mut next = 0;
    let leaves = statement.query_map([table], |row| {
        let cells = row.get::<_, i64>(2)? as usize;
        next += cells;
        Ok(Leaf {
            path: row.get(0)?,
            page: row.get::<_, i64>(1)? as usize,
            rows: next - cells..next,
        })
    });
    let leaves: Vec<_> = leaves.unwrap().map(Result::unwrap).collect();
    assert!(leaves.len() > 2, "{table} is too small to have a middle");
    leaves
}

/// A page of the largest row, and the row's place in the table. Paths read `LEAF/CELL+NUMBER`, in hexadecimal.
fn overflow(db: &Connection, table: &str) -> (usize, usize) {
    let sql = "SELECT path, pageno FROM dbstat WHERE name = ?1 AND pagetype = 'overflow' \
               ORDER BY substr(path, -6) DESC, path";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
    let (path, page) = db.query_row(sql, [table], read).unwrap();
    let (place, _) = path.split_once('+').unwrap();
    let (leaf, cell) = place.rsplit_once('/').unwrap();
    let cell = usize::from_str_radix(cell, 16).unwrap();
    let leaves = leaves(db, table);
    let leaf = leaves.iter().find(|found| found.path.trim_end_matches('/') == leaf).unwrap();
    (page as usize, leaf.rows.start + cell)
}

/// Waits until the damaged database was moved aside and everything was read. Returns what `status` reports about it.
#[track_caller]
fn moved_aside(world: &World) -> String {
    eventually("the damage is noticed and shown", Duration::from_secs(60), || {
        let status = world.json(&["status", "--json"]);
        let busy = status["salvaging"] == true || status["backlog"] != 0;
        match status["damaged"][0].as_str() {
            Some(shown) if !busy => Ok(shown.to_owned()),
            _ => Err(format!("{status:#}\n{}", collector::log(world))),
        }
    })
}

/// Checks that every hook that is not in `lost` is stored once, byte for byte.
#[track_caller]
fn only_these_are_lost(world: &World, ledger: &Ledger, lost: &BTreeSet<u64>) {
    let mut comparison = ledger.comparison();
    verify::each_raw_body(world, |body| comparison.see(body));
    let verdict = comparison.verdict();
    assert_eq!((&verdict.duplicate, &verdict.different), (&Vec::new(), &Vec::new()));
    assert_eq!(&verdict.lost.into_iter().collect::<BTreeSet<_>>(), lost);
}
