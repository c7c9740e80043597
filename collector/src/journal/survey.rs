//! Counts what is in the journal without changing it, for `status` and `doctor`. Works whether or not a collector is
//! running.

use std::fs::File;
use std::io;
use std::io::ErrorKind::{NotADirectory, NotFound, Other, PermissionDenied};
use std::ops::Range;
use std::path::Path;

use hookspan_shim::record::Metadata;

use super::probe::is_probe_frame;
use super::segment::{self, Segment};
use super::{Counters, Position, files, record_id, run_time};
use crate::clock;
use crate::dirs::StateDir;
use crate::disk;

/// Maximum number of unread records whose ids are kept. Further records are only counted.
const NAMED_MAX: usize = 10_000;

/// Maximum number of bytes read of stored records, and the same of unstored ones. Further records are estimated by the
/// mean size.
const READ_MAX_BYTES: u64 = 16 << 20;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Files.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records that begin in them.
    pub records: u64,
    /// Records at or after the position. Some of them may already be committed, because the position may lag behind.
    pub after_position: u64,
    /// How many of these records are in the run-time directory, where shims write if the state directory does not
    /// accept a hook.
    pub spilled: u64,
    /// Bytes of the files there.
    pub spilled_bytes: u64,
    /// Ids of the first ten thousand of these records. The caller looks them up in the store.
    pub ids: Vec<[u8; 16]>,
    /// There was too much to read, so the numbers of records are estimates.
    pub estimated: bool,
}

impl Survey {
    /// When the oldest of these records was written, in nanoseconds since the epoch.
    #[must_use]
    pub(crate) fn oldest_ns(ids: &[[u8; 16]]) -> Option<u64> {
        ids.iter().filter_map(|id| id.first_chunk().copied().map(u64::from_be_bytes)).min()
    }
}

/// Counts records in every segment. It reads a few megabytes at most, so that a large backlog does not slow down a
/// command.
///
/// # Errors
///
/// A file cannot be read. A state directory that is missing, or that we may not read, counts as an empty journal.
pub(crate) fn survey(dir: &StateDir, position: &Position) -> io::Result<Survey> {
    let mut survey = Survey::default();
    let mut left = [READ_MAX_BYTES; 2];
    let sealed = match files::segments(dir) {
        // The state directory is missing, or belongs to another user and is closed to us. In both cases, shims write
        // the hooks elsewhere.
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | PermissionDenied) => None,
        sealed => Some(sealed?),
    };
    let current = sealed.is_some().then(|| files::current(dir));
    let segments = sealed.into_iter().flatten().map(|(_, path)| path).chain(current);
    for path in segments {
        survey.add_file(&path, position, &mut left)?;
    }
    let (records, bytes) = (survey.after_position, survey.bytes);
    for path in run_time::spilled(dir) {
        survey.add_file(&path, position, &mut left)?;
    }
    survey.spilled = survey.after_position - records;
    survey.spilled_bytes = survey.bytes - bytes;
    Ok(survey)
}

impl Survey {
    fn add_file(
        &mut self,
        path: &Path,
        position: &Position,
        left: &mut [u64; 2],
    ) -> io::Result<()> {
        // The collector may have deleted the segment in the meantime. Or there is no segment yet, or a link has its
        // name.
        if disk::regular(path)?.is_none() {
            return Ok(());
        }
        match disk::open(path) {
            Ok(file) => self.add(file, position, left),
            // A file of another user is not trusted. The collector reports such a file by name.
            Err(error) if matches!(error.kind(), NotFound | PermissionDenied | Other) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn add(&mut self, file: File, position: &Position, left: &mut [u64; 2]) -> io::Result<()> {
        self.segments += 1;
        let len = file.metadata()?.len();
        self.bytes += len;
        let known = segment::fingerprint(&file)?;
        let from = known.map_or(0, |fingerprint| position.offset_in(fingerprint)).min(len);
        let [before, after] = left;
        self.records += self.count(file.try_clone()?, 0..from, before, false)?;
        let unread = self.count(file, from..len, after, true)?;
        self.records += unread;
        self.after_position += unread;
        Ok(())
    }

    /// Counts records in a part of a file. At most `left` bytes are read.
    fn count(
        &mut self,
        file: File,
        part: Range<u64>,
        left: &mut u64,
        unread: bool,
    ) -> io::Result<u64> {
        let until = part.end.min(part.start + *left);
        *left -= until - part.start;
        let mut segment = Segment::new(file, part.start);
        // Unlike the collector, the survey does not wait for the rest of an unfinished frame. It counts what follows
        // the frame at once.
        segment.no_writers = true;
        let mut counters = Counters::default();
        let now = clock::instant();
        let mut found = 0;
        while segment.offset() < until
            && segment.read(now, &mut counters, |frame| {
                if frame.at >= until {
                    return false;
                }
                let meta_bytes = frame.header.meta_bytes.into();
                let is_hook = !is_probe_frame(frame.payload, meta_bytes);
                if frame.header.seq == 0 && is_hook {
                    found += 1;
                    let metadata = frame.payload.get(..meta_bytes);
                    let stamp = metadata.and_then(Metadata::decode).map(|metadata| metadata.stamp);
                    if let (true, Some(stamp)) = (unread && self.ids.len() < NAMED_MAX, stamp) {
                        self.ids.push(record_id(stamp.wall_ns, frame.header.id));
                    }
                }
                true
            })?
        {}
        if until == part.end {
            return Ok(found);
        }
        self.estimated = true;
        let read = until - part.start;
        let rest = part.end - until;
        // If nothing of the file was read, assume hooks of ordinary size.
        let mean = read.checked_div(found).unwrap_or(4_096).max(1);
        Ok(found + rest.div_ceil(mean))
    }
}

#[cfg(test)]
mod tests {
    use hookspan_core::hook::HookContext;

    use super::*;
    use crate::journal::write::{NewRecord, append, open};

    #[test]
    fn what_lies_in_the_journal_is_counted_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let dir = StateDir::at(folder.path());
        assert_eq!(survey(&dir, &Position::default()).unwrap(), Survey::default());
        let mut file = open(&dir.journal()).unwrap();
        let mut ids = Vec::new();
        for id in 1..=3 {
            let context = HookContext::default();
            let new = NewRecord {
                wall_ns: 7,
                boottime_ns: 0,
                id,
                argument: "stop",
                context,
                flags: 0,
                body: b"{}",
            };
            ids.push(append(&mut file, &new).unwrap());
        }
        let found = survey(&dir, &Position::default()).unwrap();
        assert_eq!((found.segments, found.records, found.after_position), (1, 3, 3));
        assert_eq!(found.ids, ids);
        assert_eq!(found.bytes, std::fs::metadata(dir.journal()).unwrap().len());
    }

    #[test]
    fn what_follows_a_frame_without_its_end_is_behind() {
        let folder = tempfile::tempdir().unwrap();
        let dir = StateDir::at(folder.path());
        let context = HookContext::default();
        let body = [b'x'; 2_000];
        let new = NewRecord {
            wall_ns: 7,
            boottime_ns: 0,
            id: 1,
            argument: "stop",
            context,
            flags: 0,
            body: &body,
        };
        let mut file = open(&dir.journal()).unwrap();
        append(&mut file, &new).unwrap();
        // A power cut may leave such a file.
        file.set_len(1_000).unwrap();
        let after = append(&mut file, &NewRecord { id: 2, body: b"{}", ..new }).unwrap();
        let found = survey(&dir, &Position::default()).unwrap();
        assert_eq!((found.after_position, found.ids), (1, vec![after]));
    }
}
