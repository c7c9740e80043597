//! Handles a damaged database. Moves it aside as a whole, starts a new one, and copies every readable hook of the raw
//! log by ranges of numbers. Each body is checked by its checksum. Nothing is deleted.
//!
//! The folder `damaged-TIME` keeps the three files. At the end, `salvaged.json` records the result. Copying can be
//! interrupted at any point, because hooks that are already stored are recognised by their id.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use hookspan_core::{Hook, HookSource, Timestamp};
use rusqlite::{Connection, ErrorCode, OpenFlags, Params};
use serde::{Deserialize, Serialize};

use super::codec::Unpacker;
use super::examine;
use super::write::{
    Arrival, HOOK_COLUMNS, HOOK_COLUMNS_ALONE, HOOK_TABLES, HOOK_TABLES_ALONE, Preparer, hook,
};
use crate::dirs::{StateDir, open_private, write_private};

/// Approximate number of hooks in a batch.
const ROWS: usize = 1_000;
/// Number of hook numbers read at a time. It limits by how much large hooks can exceed [`BYTES`].
const STEP: i64 = 50;
/// Approximate size of a batch in bytes.
const BYTES: usize = 8 << 20;
/// If the file does not tell its highest number, this many numbers after the last readable hook are tried one by one.
const BEYOND: i64 = 100_000;
/// After this many numbers without a readable hook, only both ends of a range are tried. A damaged inner page hides all
/// hooks of a range.
const SILENCE: i64 = 2_000;
const REPORT: &str = "salvaged.json";
const PREFIX: &str = "damaged-";

/// The result of salvaging a damaged database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Number of hooks copied to the new database.
    pub(crate) hooks: u64,
    /// Upper bound of the hooks that could not be read, since some numbers may never have been used. `None` if the file
    /// does not tell its highest number.
    pub(crate) lost: Option<u64>,
}

/// A damaged database that was moved aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Aside {
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// The result of salvaging it, once that is known.
    pub(crate) report: Option<Report>,
}

impl Aside {
    /// When the database was moved aside, in nanoseconds since the epoch. Every hook in it is older. `None` if hookspan
    /// did not create the folder.
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
            None => write!(f, "{name}: a damaged database; its readable hooks are being saved"),
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
    // The log is moved first. A database without its log is merely older, but a log without its database is useless.
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

/// Damaged databases that were moved aside before a time and whose hooks were copied.
#[must_use]
pub(crate) fn older_than(dir: &StateDir, before_ns: i64) -> Vec<Aside> {
    let is_old = |aside: &Aside| aside.moved_ns().is_some_and(|moved| moved < before_ns);
    aside(dir).into_iter().filter(|aside| aside.report.is_some() && is_old(aside)).collect()
}

/// Deletes a damaged database.
///
/// # Errors
///
/// Returns the file system's error. A database that is already gone is not an error, because retention and a person may
/// delete the same one.
pub(crate) fn remove(aside: &Aside) -> io::Result<()> {
    match fs::remove_dir_all(&aside.folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn report(path: &Path) -> Option<Report> {
    let file = open_private(path).ok()?;
    serde_json::from_reader(io::Read::take(file, 4_096)).ok()
}

type Found = ([u8; 16], u8, Hook);

/// Why reading a damaged database stopped before its end. The hooks that were read are stored.
#[derive(Debug, thiserror::Error)]
#[error("a damaged database cannot be read now, and is read again later: {0}")]
pub(crate) struct Unfinished(String);

/// Reads a damaged database to its end.
///
/// A hook counts as lost only if its number could not be read twice, on two connections, and if afterwards every byte
/// of the files could be read. SQLite reports damage and a failed read in the same way; see [`super::examine`].
pub(crate) struct Salvage {
    folder: PathBuf,
    db: Option<Connection>,
    preparer: Preparer,
    unpacker: Unpacker,
    /// The columns and tables to read. They depend on the age of the database.
    wanted: String,
    /// The highest number, if the file tells it, and the number up to which the first pass reads.
    end: Option<i64>,
    first_end: i64,
    /// Numbers to read, the next range last.
    rest: Vec<Range<i64>>,
    /// Numbers that could not be read, in order.
    failed: Vec<Range<i64>>,
    /// Whether this is the second pass, over numbers that failed at first.
    again: bool,
    /// An error that may pass and does not mean damage.
    passing: Option<String>,
    /// While reads fail: how many numbers have passed since the last hook that could be read.
    silence: i64,
    report: Report,
}

impl std::fmt::Debug for Salvage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Salvage").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Salvage {
    /// Opens what was moved to `folder`.
    #[must_use]
    pub(crate) fn open(folder: &Path) -> Self {
        let mut salvage = Self {
            folder: folder.to_owned(),
            db: None,
            preparer: Preparer::default(),
            unpacker: Unpacker::default(),
            wanted: String::new(),
            end: None,
            first_end: 0,
            rest: Vec::new(),
            failed: Vec::new(),
            again: false,
            passing: None,
            silence: 0,
            report: Report::default(),
        };
        if let Some(db) = salvage.connect() {
            salvage.look(&db);
            salvage.first_end = salvage.end.unwrap_or(BEYOND);
            salvage.rest.push(0..salvage.first_end);
            salvage.db = Some(db);
        }
        salvage
    }

    /// Finds the highest number, and in which form bodies are stored.
    fn look(&mut self, db: &Connection) {
        let mut last = |table: &str| {
            let sql = format!("SELECT max(seq) FROM {table}");
            let last = db.query_row(&sql, [], |row| row.get::<_, Option<i64>>(0));
            last.unwrap_or_else(|error| self.note(&error))
        };
        self.end = last("raw_hook").max(last("payload"));
        let packs = "SELECT count(*) FROM pragma_table_info('raw_hook') WHERE name = 'body_start'";
        let packs = db.query_row(packs, [], |row| row.get::<_, i64>(0));
        // Without the position in the pack, the body of another hook would be read.
        let (columns, tables) = match packs.unwrap_or_else(|error| self.note(&error).unwrap_or(1)) {
            0 => (HOOK_COLUMNS_ALONE, HOOK_TABLES_ALONE),
            _ => (HOOK_COLUMNS, HOOK_TABLES),
        };
        self.wanted = format!("SELECT {columns}, h.id, h.flags FROM {tables}");
    }

    fn path(&self) -> PathBuf {
        self.folder.join("hookspan.db")
    }

    fn connect(&mut self) -> Option<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        match fs::symlink_metadata(self.path()) {
            Ok(_) => Connection::open_with_flags(self.path(), flags)
                .map_err(|error| self.note::<()>(&error))
                .ok(),
            // Only the log was moved here.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                self.passing = Some(error.to_string());
                None
            }
        }
    }

    /// Records an error after which a second attempt may succeed.
    fn note<T>(&mut self, error: &rusqlite::Error) -> Option<T> {
        if may_pass(error) {
            self.passing.get_or_insert_with(|| error.to_string());
        }
        None
    }

    /// The next readable hooks, with the time up to which they reach. `None` at the end.
    pub(crate) fn read_on(&mut self) -> Option<(Vec<Arrival>, Option<Timestamp>)> {
        let mut db = self.db.take()?;
        let (mut bytes, mut last) = (0, None);
        while self.preparer.waiting() < ROWS && bytes < BYTES {
            let Some(range) = self.rest.pop() else {
                if self.again || (self.failed.is_empty() && self.end.is_some()) {
                    break;
                }
                // After a failed read, the pages that the connection has cached cannot be trusted either.
                (self.again, self.silence, self.passing) = (true, 0, None);
                db = self.connect()?;
                self.look(&db);
                self.rest = self.failed_numbers();
                continue;
            };
            let step = range.start..range.end.min(range.start + STEP);
            if step.end < range.end {
                self.rest.push(step.end..range.end);
            }
            for (id, flags, hook) in self.read_step(&db, step) {
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

    fn read_step(&mut self, db: &Connection, step: Range<i64>) -> Vec<Found> {
        match self.read(db, step.start, step.end) {
            Ok(found) => {
                self.silence = 0;
                found
            }
            Err(_) => self.one_by_one(db, step),
        }
    }

    /// Reads a range with damage one hook at a time, so that everything around the damage is kept.
    fn one_by_one(&mut self, db: &Connection, step: Range<i64>) -> Vec<Found> {
        let ends = [step.start, step.end - 1];
        if self.silence >= SILENCE && ends.iter().all(|&seq| self.read_one(db, seq + 1).is_err()) {
            self.silence += step.end - step.start;
            self.fail(step);
            return Vec::new();
        }
        let mut found = Vec::new();
        for seq in step {
            match self.read_one(db, seq + 1) {
                Ok(one) => {
                    self.silence = if one.is_empty() { self.silence + 1 } else { 0 };
                    found.extend(one);
                }
                Err(error) => {
                    self.note::<()>(&error);
                    self.silence += 1;
                    self.fail(seq..seq + 1);
                }
            }
        }
        found
    }

    /// The numbers to read in the second pass, the next range last.
    fn failed_numbers(&mut self) -> Vec<Range<i64>> {
        let end = self.end.unwrap_or(self.first_end);
        let mut failed = std::mem::take(&mut self.failed);
        failed.push(self.first_end..end);
        failed.iter_mut().for_each(|numbers| numbers.end = numbers.end.min(end));
        failed.retain(|numbers| !numbers.is_empty());
        failed.reverse();
        failed
    }

    fn fail(&mut self, numbers: Range<i64>) {
        match self.failed.last_mut() {
            Some(last) if last.end == numbers.start => last.end = numbers.end,
            _ => self.failed.push(numbers),
        }
    }

    /// Hooks with numbers above `after`, up to `until`. Returns an error if one of them cannot be read.
    fn read(&mut self, db: &Connection, after: i64, until: i64) -> rusqlite::Result<Vec<Found>> {
        self.select(db, "h.seq > ?1 AND h.seq <= ?2 ORDER BY h.seq", (after, until))
    }

    /// The hook with this number. Its neighbours, which may lie on a damaged page, are not read.
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

    /// Writes the report, so that the database is not read again. If `is_ended` becomes true, this stops early.
    ///
    /// # Errors
    ///
    /// Returns [`Unfinished`] if something could not be read for another reason than damage, or if the report cannot be
    /// written.
    pub(crate) fn finish(mut self, is_ended: &dyn Fn() -> bool) -> Result<Report, Unfinished> {
        if let Some(error) = self.passing.take() {
            return Err(Unfinished(error));
        }
        let failed: i64 = self.failed.iter().map(|numbers| numbers.end - numbers.start).sum();
        if failed > 0 || self.end.is_none() {
            examine::read_apart(&self.path(), is_ended)
                .map_err(|error| Unfinished(error.to_string()))?;
        }
        self.report.lost = self.end.map(|_| failed.unsigned_abs());
        let text =
            serde_json::to_vec(&self.report).map_err(|error| Unfinished(error.to_string()))?;
        write_private(&self.folder.join(REPORT), &text)
            .map_err(|error| Unfinished(error.to_string()))?;
        Ok(self.report)
    }
}

/// Whether a read that failed with `error` may succeed later. Damage is distinguished by reading the bytes of the file.
fn may_pass(error: &rusqlite::Error) -> bool {
    use ErrorCode as Code;
    matches!(
        error.sqlite_error_code(),
        Some(
            Code::SystemIoFailure
                | Code::CannotOpen
                | Code::OutOfMemory
                | Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::OperationInterrupted
                | Code::PermissionDenied
                | Code::ReadOnly
                | Code::FileLockingProtocolFailed
        )
    )
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
        let report = salvage.finish(&|| false).unwrap();
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
        for page in (pages / 2..pages).step_by(13) {
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
    fn one_that_cannot_be_opened_now_is_not_given_up() {
        let (_temp, dir) = filled(300);
        let folder = set_aside(&dir, Timestamp(7)).unwrap();
        let (path, away) = (folder.join("hookspan.db"), folder.join("away"));
        fs::rename(&path, &away).unwrap();
        fs::create_dir(&path).unwrap();
        let mut salvage = Salvage::open(&folder);
        assert!(salvage.read_on().is_none());
        let refused = salvage.finish(&|| false).unwrap_err().to_string();
        assert!(refused.contains("read again later"), "{refused}");
        assert_eq!(aside(&dir)[0].report, None);
        fs::remove_dir(&path).unwrap();
        fs::rename(away, path).unwrap();
        let mut salvage = Salvage::open(&folder);
        while salvage.read_on().is_some() {}
        assert_eq!(salvage.finish(&|| false).unwrap(), Report { hooks: 300, lost: Some(0) });
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
