//! Reads a single file of frames as a [`super::Follower`] reads a segment, without following names.
//!
//! For copies of segments, and for tests that try to break the reading.

use std::fs::File;
use std::io;

use super::assemble::Assembler;
use super::segment::Segment;
use super::{Counters, Record};
use crate::clock;

/// Reads records from a file that may still grow.
#[derive(Debug)]
pub struct Reader {
    segment: Segment,
    assembler: Assembler,
    counters: Counters,
}

impl Reader {
    /// Reads `file` from its beginning.
    #[must_use]
    pub fn new(file: File) -> Self {
        let (assembler, counters) = (Assembler::default(), Counters::default());
        Self { segment: Segment::new(file, 0), assembler, counters }
    }

    /// The records that became complete since the last call.
    ///
    /// # Errors
    ///
    /// The file cannot be read. Damaged content is not an error.
    pub fn read(&mut self) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        let now = clock::instant();
        let Self { segment, assembler, counters } = self;
        let mut torn = Counters::default();
        while segment.read(now, &mut torn, |frame| {
            assembler.take(0, frame, now, counters, &mut records);
            true
        })? {}
        counters.torn += torn.torn;
        counters.newer += torn.newer;
        Ok(records)
    }

    /// The rest, once no process writes to the file any more: unfinished records, marked [`super::FLAG_TRUNCATED`], and
    /// the counts of damage.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn finish(mut self) -> io::Result<(Vec<Record>, Counters)> {
        self.segment.no_writers = true;
        let mut records = self.read()?;
        self.assembler.give_up_on(0, &mut self.counters, &mut records);
        Ok((records, self.counters))
    }
}
