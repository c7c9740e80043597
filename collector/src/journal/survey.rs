//! What lies in the journal, looked at without touching it: for `status` and `doctor`, with and without a collector.

use std::fs::File;
use std::io;

use hookspan_shim::record::Metadata;

use super::segment::{self, Segment};
use super::{Counters, Position, files, record_id};
use crate::clock;
use crate::dirs::StateDir;

/// Unread records that are named; the rest is only counted.
const NAMED_MAX: usize = 10_000;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Files.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records that begin in them.
    pub records: u64,
    /// Of these, those at or after the position. The position may be some way behind what is committed.
    pub after_position: u64,
    /// Ids of the first ten thousand of these, to look up in the store.
    pub ids: Vec<[u8; 16]>,
}

/// Reads every segment once.
///
/// # Errors
/// A file cannot be read. A missing state directory is an empty journal.
pub fn survey(dir: &StateDir, position: &Position) -> io::Result<Survey> {
    let mut survey = Survey::default();
    let sealed = match files::segments(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(survey),
        sealed => sealed?,
    };
    for path in sealed.into_iter().map(|(_, path)| path).chain([dir.journal()]) {
        match File::open(&path) {
            Ok(file) => survey.add(file, position)?,
            // The collector may take a segment away, or there is none yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(survey)
}

impl Survey {
    fn add(&mut self, file: File, position: &Position) -> io::Result<()> {
        self.segments += 1;
        self.bytes += file.metadata()?.len();
        let known = segment::fingerprint(&file)?;
        let from = known.map_or(0, |fingerprint| position.offset_in(fingerprint));
        let mut segment = Segment::new(file, 0);
        let mut counters = Counters::default();
        let now = clock::instant();
        while segment.read(now, &mut counters, |frame| {
            if frame.header.seq == 0 {
                self.records += 1;
                let metadata = frame.payload.get(..frame.header.meta_bytes.into());
                let stamp = metadata.and_then(Metadata::decode).map(|metadata| metadata.stamp);
                if let (true, Some(stamp)) = (frame.at >= from, stamp) {
                    self.after_position += 1;
                    if self.ids.len() < NAMED_MAX {
                        self.ids.push(record_id(stamp.wall_ns, frame.header.id));
                    }
                }
            }
            true
        })? {}
        Ok(())
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
}
