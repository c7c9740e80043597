//! One file of frames read on its own: what a [`super::Follower`] does with each of its segments, without the rest.
//!
//! For a segment that somebody copied away, and for whoever tries to break the reading.

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

    /// The records that have become complete since the last call.
    ///
    /// # Errors
    /// The file cannot be read. Whatever it contains is no error.
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

    /// The rest, when nobody writes to the file any more: records whose end never came, marked
    /// [`super::FLAG_TRUNCATED`]. With them, what was wrong with the file.
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
