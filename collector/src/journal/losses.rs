//! Hooks that a shim could not store anywhere: the disk was full, the journal was at its bound, or the directory was
//! not writable.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind::{NotADirectory, PermissionDenied};
use std::io::{self, Write as _};
use std::path::Path;

use hookspan_shim::losses::{LOSS_BYTES, LOSSES_MAX_BYTES, Loss};

use super::run_time::spare_losses;
use crate::dirs::StateDir;
use crate::disk;

/// Losses since the state directory was made, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Number of lost hooks. A lower bound if [`Losses::saturated`].
    pub total: u64,
    /// Hooks lost by reason: `journal_full`, `disk_full`, `read_only`, `permission` (also: the directory or the file belongs to
    /// another user), `no_directory`, `write_cut_short`, `file_size_limit`, `damaged` (an entry that cannot be read) or
    /// `errno_N`.
    pub by_reason: BTreeMap<String, u64>,
    /// The file has reached its maximum size, so further losses are not counted.
    pub saturated: bool,
    /// Bytes of body lost with them.
    pub bytes: u64,
}

/// Reads the losses that shims have counted, in the state directory and in the run-time directory. A missing file means
/// no loss. The collector copies losses into the state directory (see `gather`), so a loss found in both files counts
/// once.
///
/// # Errors
/// The file in the state directory exists but cannot be read.
pub(crate) fn read(dir: &StateDir) -> io::Result<Losses> {
    let mut losses = Losses::default();
    let own = entries(&dir.losses())?;
    losses.saturated = own.len() * LOSS_BYTES >= LOSSES_MAX_BYTES as usize;
    own.iter().for_each(|entry| losses.add(entry));
    for entry in spare_entries(dir, &own) {
        losses.add(&entry);
    }
    Ok(losses)
}

/// Total size of all loss files. It changes whenever a loss is added.
///
/// # Errors
/// A file's metadata cannot be read.
pub(crate) fn bytes(dir: &StateDir) -> io::Result<u64> {
    let files = spare_losses(dir).into_iter().chain([dir.losses()]);
    let lengths = files.map(|path| Ok(disk::look_at(&path)?.map_or(0, |found| found.len())));
    lengths.sum()
}

/// Copies losses from the run-time directory, which is emptied when the machine restarts, into the state directory.
/// Losses that are already there are skipped, so repeating this is harmless.
///
/// # Errors
/// The file in the state directory cannot be read or written.
pub(super) fn gather(dir: &StateDir) -> io::Result<()> {
    let own = entries(&dir.losses())?;
    let new = spare_entries(dir, &own).concat();
    if !new.is_empty() {
        let mut file = disk::create(&dir.losses())?;
        file.write_all(&new)?;
    }
    Ok(())
}

type Entry = [u8; LOSS_BYTES];

fn entries(path: &Path) -> io::Result<Vec<Entry>> {
    match disk::read(path) {
        // If the directory is missing or belongs to another user, it contains no file of ours.
        Err(error) if matches!(error.kind(), NotADirectory | PermissionDenied) => Ok(Vec::new()),
        found => Ok(found?.unwrap_or_default().as_chunks::<LOSS_BYTES>().0.to_vec()),
    }
}

/// Losses in the run-time directory that are not in `known`, each once.
fn spare_entries(dir: &StateDir, known: &[Entry]) -> Vec<Entry> {
    let files = spare_losses(dir);
    if files.is_empty() {
        return Vec::new();
    }
    let mut seen: BTreeSet<Entry> = known.iter().copied().collect();
    // A file that cannot be read now is tried again with the next batch.
    let found = files.iter().flat_map(|path| entries(path).unwrap_or_default());
    found.filter(|entry| seen.insert(*entry)).collect()
}

impl Losses {
    fn add(&mut self, entry: &Entry) {
        let loss = Loss::decode(entry);
        self.total += 1;
        self.bytes += loss.map_or(0, |loss| loss.bytes.into());
        let reason = loss.map_or_else(|| "damaged".to_owned(), |loss| reason(loss.errno));
        *self.by_reason.entry(reason).or_default() += 1;
    }
}

/// Names an error number. The numbers are the same on every Linux, and on all other Unix systems except one.
fn reason(errno: u32) -> String {
    match errno {
        0 => "write_cut_short".to_owned(),
        1 | 13 => "permission".to_owned(),
        2 | 20 => "no_directory".to_owned(),
        27 => "file_size_limit".to_owned(),
        28 | 122 => "disk_full".to_owned(),
        30 => "read_only".to_owned(),
        40 => "journal_full".to_owned(),
        other => format!("errno_{other}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn losses_are_counted_by_reason() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path());
        assert_eq!(read(&dir).unwrap(), Losses::default());
        let loss = |errno| Loss { wall_ns: 1, id: 2, errno, bytes: 10 }.encode();
        let mut file = [loss(28), loss(28), loss(40), loss(5)].concat();
        file.extend_from_slice(&[7; 32]);
        file.extend_from_slice(b"a torn one");
        fs::write(dir.losses(), file).unwrap();
        let losses = read(&dir).unwrap();
        assert_eq!((losses.total, losses.bytes, losses.saturated), (5, 40, false));
        let expected = [("damaged", 1), ("disk_full", 2), ("errno_5", 1), ("journal_full", 1)];
        assert_eq!(losses.by_reason, expected.map(|(name, n)| (name.to_owned(), n)).into());
    }

    #[test]
    #[cfg(unix)]
    fn losses_of_the_run_time_directory_count_once_and_outlive_it() {
        let temp = tempfile::tempdir().unwrap();
        let run = temp.path().join("run");
        let places = crate::dirs::Places {
            xdg_runtime_dir: Some(run.clone()),
            ..crate::dirs::Places::default()
        };
        let dir = StateDir::resolve(Some(&temp.path().join("state")), &places).unwrap();
        let loss = |id, errno| Loss { wall_ns: 1, id, errno, bytes: 10 }.encode();
        let id = hookspan_shim::fallback::place_id(dir.root().as_os_str().as_encoded_bytes(), b"");
        fs::create_dir_all(run.join("hookspan")).unwrap();
        let spare = run.join(format!("hookspan/losses-{:x}", id.unwrap()));
        fs::write(&spare, [loss(1, 13), loss(2, 13)].concat()).unwrap();
        // The state directory does not exist.
        assert_eq!(read(&dir).unwrap().by_reason["permission"], 2);

        dir.prepare().unwrap();
        super::super::write::open(&dir.losses()).unwrap().write_all(&loss(3, 28)).unwrap();
        let expected = [("disk_full", 1), ("permission", 2)].map(|(name, n)| (name.to_owned(), n));
        for _ in 0..2 {
            assert_eq!(read(&dir).unwrap().by_reason, expected.clone().into());
            gather(&dir).unwrap();
        }
        assert_eq!(fs::metadata(dir.losses()).unwrap().len(), 3 * 32);
        fs::remove_dir_all(&run).unwrap();
        assert_eq!(read(&dir).unwrap().by_reason, expected.into());
    }
}
