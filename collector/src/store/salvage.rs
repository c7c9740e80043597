//! Handles a damaged database: moves it aside as a whole, starts a new one, and copies every readable hook of the raw log, by
//! ranges of numbers, each body checked by its checksum. Nothing is deleted.
//!
//! The folder `damaged-TIME` keeps the three files. At the end, `salvaged.json` records the result. Copying can be interrupted
//! at any point: hooks that are stored already are recognised by id.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hookspan_core::{Hook, HookSource, Timestamp};
use rusqlite::{Connection, OpenFlags, Params};
use serde::{Deserialize, Serialize};

use super::codec::Unpacker;
use super::write::{
    Arrival, HOOK_COLUMNS, HOOK_COLUMNS_ALONE, HOOK_TABLES, HOOK_TABLES_ALONE, Preparer, hook,
};
use crate::dirs::{StateDir, open_private, write_private};

/// Hooks of a batch, about.
const ROWS: usize = 1_000;
/// Hook numbers read at a time. It limits how far large hooks can exceed [`BYTES`].
const STEP: i64 = 50;
/// Bytes of a batch, about.
const BYTES: usize = 8 << 20;
/// Hook numbers tried one by one behind the last readable hook, if the file does not tell its highest number.
const BEYOND: i64 = 100_000;
/// After this many numbers without a hook, only both ends of a range are tried: a damaged inner page hides all of them.
const SILENCE: i64 = 2_000;
const REPORT: &str = "salvaged.json";
const PREFIX: &str = "damaged-";

/// Result of salvaging a damaged database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Hooks copied.
    pub hooks: u64,
    /// Upper bound of hooks that could not be read (some numbers may never have been given). `None` if the file does not tell
    /// its highest number.
    pub lost: Option<u64>,
}

/// A damaged database that was moved aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Aside {
    /// Its folder.
    pub folder: PathBuf,
    /// Its result, once salvaging has ended.
    pub report: Option<Report>,
}

impl Aside {
    /// When the database was moved aside, nanoseconds since the epoch. Every hook in it is older. `None` if hookspan did not
    /// make the folder.
    #[must_use]
    pub(crate) fn moved_ns(&self) -> Option<i64> {
        self.name().strip_prefix(PREFIX)?.parse().ok()
    }

    /// The folder's name in the state directory.
    #[must_use]
    pub(crate) fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Bytes of its files.
    #[must_use]
    pub(crate) fn bytes(&self) -> u64 {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum()
    }
}

impl std::fmt::Display for Aside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.name();
        match self.report {
            None => write!(f, "{name}: a damaged database; what can be read of it is being saved"),
            Some(Report { hooks, lost: Some(lost) }) => {
                write!(
                    f,
                    "{name}: a damaged database; {hooks} hooks were saved, at most {lost} lost"
                )
            }
            Some(Report { hooks, lost: None }) => write!(
                f,
                "{name}: a damaged database; {hooks} hooks were saved, and it does not say how many it held; what the journal \
                 still had was read again"
            ),
        }
    }
}

/// Moves the database and its log aside. No process may have it open.
///
/// # Errors
/// Returns the file system's error. The next start tries again.
pub(crate) fn set_aside(dir: &StateDir, now: Timestamp) -> io::Result<PathBuf> {
    let folder = dir.root().join(format!("{PREFIX}{}", now.0));
    private_folder(&folder)?;
    // Move the log first: without its log a database is merely older, but a log without its database is useless.
    for suffix in ["-wal", "-shm", ""] {
        let mut name = dir.database().into_os_string();
        name.push(suffix);
        let from = PathBuf::from(name);
        let to = folder.join(from.file_name().unwrap_or_default());
        match fs::rename(&from, to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done?,
        }
    }
    if cfg!(unix) {
        fs::File::open(dir.root())?.sync_all()?;
    }
    Ok(folder)
}

/// Every database that was moved aside, oldest first.
#[must_use]
pub(crate) fn aside(dir: &StateDir) -> Vec<Aside> {
    let entries = fs::read_dir(dir.root()).into_iter().flatten().flatten();
    let mut found: Vec<Aside> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| {
            let folder = entry.path();
            let report = report(&folder.join(REPORT));
            Aside { folder, report }
        })
        .collect();
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    found
}

/// Damaged databases that were moved aside before a time and are salvaged.
#[must_use]
pub(crate) fn older_than(dir: &StateDir, before_ns: i64) -> Vec<Aside> {
    let is_old = |aside: &Aside| aside.moved_ns().is_some_and(|moved| moved < before_ns);
    aside(dir).into_iter().filter(|aside| aside.report.is_some() && is_old(aside)).collect()
}

/// Deletes a damaged database.
///
/// # Errors
/// As the file system says.
pub(crate) fn remove(aside: &Aside) -> io::Result<()> {
    fs::remove_dir_all(&aside.folder)
}

fn report(path: &Path) -> Option<Report> {
    let file = open_private(path).ok()?;
    serde_json::from_reader(io::Read::take(file, 4_096)).ok()
}

type Found = ([u8; 16], u8, Hook);

/// Reads a damaged database to its end.
pub(crate) struct Salvage {
    folder: PathBuf,
    db: Option<Connection>,
    preparer: Preparer,
    unpacker: Unpacker,
    /// Columns and tables to read, by the age of the database.
    wanted: String,
    next: i64,
    end: i64,
    /// Numbers since the last hook that could be read, while reads fail.
    silence: i64,
    report: Report,
}

impl std::fmt::Debug for Salvage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Salvage").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Salvage {
    /// Opens the database in `folder`. A database that cannot be opened has no readable hook.
    #[must_use]
    pub(crate) fn open(folder: &Path) -> Self {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(folder.join("hookspan.db"), flags).ok();
        let last = |table: &str| {
            let sql = format!("SELECT max(seq) FROM {table}");
            let db = db.as_ref()?;
            db.query_row(&sql, [], |row| row.get::<_, Option<i64>>(0)).ok().flatten()
        };
        let end = last("raw_hook").max(last("payload"));
        let packs = "SELECT 1 FROM pragma_table_info('raw_hook') WHERE name = 'body_start'";
        let has_packs = |db: &Connection| db.query_row(packs, [], |_| Ok(())).is_ok();
        let wanted = if db.as_ref().is_some_and(has_packs) {
            format!("SELECT {HOOK_COLUMNS}, h.id, h.flags FROM {HOOK_TABLES}")
        } else {
            format!("SELECT {HOOK_COLUMNS_ALONE}, h.id, h.flags FROM {HOOK_TABLES_ALONE}")
        };
        let report = Report { hooks: 0, lost: end.map(|_| 0) };
        Self {
            folder: folder.to_owned(),
            db,
            preparer: Preparer::default(),
            unpacker: Unpacker::default(),
            wanted,
            next: 0,
            end: end.unwrap_or(BEYOND),
            silence: 0,
            report,
        }
    }

    /// The next readable hooks, with the time up to which they go; `None` at the end.
    pub(crate) fn read_on(&mut self) -> Option<(Vec<Arrival>, Option<Timestamp>)> {
        let db = self.db.take()?;
        let (mut bytes, mut last) = (0, None);
        while self.preparer.waiting() < ROWS && bytes < BYTES && self.next < self.end {
            let until = (self.next + STEP).min(self.end);
            let found = match self.read(&db, self.next, until) {
                Ok(found) => {
                    self.silence = 0;
                    found
                }
                Err(_) => self.one_by_one(&db, until),
            };
            self.next = until;
            for (id, flags, hook) in found {
                bytes += hook.body.len();
                if hook.source != HookSource::Evidence {
                    last = Some(hook.observed_at);
                }
                self.preparer.add(id, flags, hook);
                self.report.hooks += 1;
            }
        }
        self.db = Some(db);
        let arrivals = self.preparer.finish();
        (!arrivals.is_empty()).then_some((arrivals, last))
    }

    /// This range contains damage: divide it, and keep everything around the damage.
    fn one_by_one(&mut self, db: &Connection, until: i64) -> Vec<Found> {
        let ends = [self.next, until - 1];
        if self.silence >= SILENCE && ends.iter().all(|&seq| self.read_one(db, seq + 1).is_err()) {
            let skipped = until - self.next;
            self.silence += skipped;
            self.lost(skipped.unsigned_abs());
            return Vec::new();
        }
        let mut found = Vec::new();
        for seq in self.next..until {
            match self.read_one(db, seq + 1) {
                Ok(one) => {
                    self.silence = if one.is_empty() { self.silence + 1 } else { 0 };
                    found.extend(one);
                }
                Err(_) => {
                    self.silence += 1;
                    self.lost(1);
                }
            }
        }
        found
    }

    /// Hooks with numbers above `after`, up to `until`. An error if one of them cannot be read.
    fn read(&mut self, db: &Connection, after: i64, until: i64) -> rusqlite::Result<Vec<Found>> {
        self.select(db, "h.seq > ?1 AND h.seq <= ?2 ORDER BY h.seq", (after, until))
    }

    /// The hook with this number, without reading its neighbours, which may lie on a damaged page.
    fn read_one(&mut self, db: &Connection, number: i64) -> rusqlite::Result<Vec<Found>> {
        self.select(db, "h.seq = ?1", (number,))
    }

    fn select(
        &mut self,
        db: &Connection,
        which: &str,
        bounds: impl Params,
    ) -> rusqlite::Result<Vec<Found>> {
        let sql = format!("{} WHERE {which}", self.wanted);
        let unpacker = &mut self.unpacker;
        db.prepare_cached(&sql)?
            .query_map(bounds, |row| Ok((row.get("id")?, row.get("flags")?, hook(row, unpacker)?)))?
            .collect()
    }

    fn lost(&mut self, hooks: u64) {
        self.report.lost = self.report.lost.map(|lost| lost + hooks);
    }

    /// Records the result, so that the database is not read again.
    ///
    /// # Errors
    /// As the file system says.
    pub(crate) fn finish(self) -> io::Result<Report> {
        let text = serde_json::to_vec(&self.report)?;
        write_private(&self.folder.join(REPORT), &text)?;
        Ok(self.report)
    }
}

#[cfg(unix)]
fn private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    fs::DirBuilder::new().mode(0o700).create(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::write::Store;

    fn filled(hooks: u64) -> (tempfile::TempDir, StateDir) {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("s"));
        dir.prepare().unwrap();
        let mut store = Store::open(&dir.database()).unwrap();
        let mut preparer = Preparer::default();
        store
            .transaction(|open| {
                for number in 1..=hooks {
                    let body = format!("{{\"conversation_id\":\"c\",\"n\":{number}}}").repeat(40);
                    let observed_at = Timestamp(number.cast_signed());
                    let hook = Hook { observed_at, body: body.into_bytes(), ..Hook::default() };
                    let id = u128::from(number).to_be_bytes();
                    open.hook(&preparer.prepare(id, 0, hook))?;
                }
                Ok(())
            })
            .unwrap();
        store.checkpoint().unwrap();
        (temp, dir)
    }

    fn salvage(dir: &StateDir) -> (Vec<[u8; 16]>, Report) {
        let folder = set_aside(dir, Timestamp(7)).unwrap();
        assert!(!dir.database().exists());
        assert_eq!(aside(dir), [Aside { folder: folder.clone(), report: None }]);
        let mut salvage = Salvage::open(&folder);
        let mut ids = Vec::new();
        while let Some((arrivals, _)) = salvage.read_on() {
            ids.extend(arrivals.iter().map(|arrival| arrival.id));
        }
        let report = salvage.finish().unwrap();
        assert_eq!(aside(dir), [Aside { folder, report: Some(report) }]);
        (ids, report)
    }

    #[test]
    fn a_sound_database_is_taken_over_whole() {
        let (_temp, dir) = filled(1_234);
        let (ids, report) = salvage(&dir);
        let all: Vec<_> = (1..=1_234_u128).map(u128::to_be_bytes).collect();
        assert_eq!((ids, report), (all, Report { hooks: 1_234, lost: Some(0) }));
    }

    #[test]
    fn damage_in_the_middle_costs_what_it_covers_and_is_counted() {
        let (_temp, dir) = filled(2_000);
        let mut bytes = fs::read(dir.database()).unwrap();
        let pages = bytes.len() / 4_096;
        for page in (pages / 2..pages).step_by(40) {
            bytes[page * 4_096..][..4_096].fill(0xa5);
        }
        fs::write(dir.database(), bytes).unwrap();
        let (ids, report) = salvage(&dir);
        assert_eq!(ids.len() as u64, report.hooks);
        let lost = report.lost.unwrap();
        assert!(lost > 0 && report.hooks > 1_000, "{report:?}");
        assert!(report.hooks + lost <= 2_000, "{report:?}");
    }

    #[test]
    fn a_page_of_the_raw_log_costs_the_hooks_on_it_and_none_beside_it() {
        let (_temp, dir) = filled(2_000);
        let db = Connection::open(dir.database()).unwrap();
        let leaves: Vec<(usize, u128)> = db
            .prepare("SELECT pageno, ncell FROM dbstat WHERE name = 'raw_hook' AND pagetype = 'leaf' ORDER BY path")
            .unwrap()
            .query_map([], |row| Ok((row.get::<_, i64>(0)? as usize, row.get::<_, i64>(1)? as u128)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        drop(db);
        let middle = leaves.len() / 2;
        let before: u128 = leaves[..middle].iter().map(|(_, cells)| cells).sum();
        let (page, cells) = leaves[middle];
        let mut bytes = fs::read(dir.database()).unwrap();
        bytes[(page - 1) * 4_096..][..4_096].fill(0xa5);
        fs::write(dir.database(), bytes).unwrap();
        let (ids, report) = salvage(&dir);
        let rest = (1..=before).chain(before + cells + 1..=2_000);
        assert_eq!(ids, rest.map(u128::to_be_bytes).collect::<Vec<_>>());
        assert_eq!(report.lost.map(u128::from), Some(cells));
    }

    #[test]
    fn what_is_no_database_at_all_gives_nothing_and_stops_nothing() {
        let (_temp, dir) = filled(10);
        fs::write(dir.database(), vec![0x5a; 40_000]).unwrap();
        let (ids, report) = salvage(&dir);
        assert_eq!((ids, report), (Vec::new(), Report { hooks: 0, lost: None }));
        let told = aside(&dir)[0].to_string();
        assert!(told.contains("does not say how many"), "{told}");
    }
}
