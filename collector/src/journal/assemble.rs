//! Assembles records from frames. Frames of several writers come in any order.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

use hookspan_shim::frame::LAST;

use super::segment::Frame;
use super::{Counters, FLAG_TRUNCATED, Record};

/// Maximum number of open records. A record is open until its last frame has arrived.
const OPEN_MAX: usize = 1_024;
/// Maximum number of bytes of all open records.
const OPEN_MAX_BYTES: usize = 64 << 20;

/// Identifies the segment of a frame. The number never changes.
pub(super) type SegmentId = u64;

/// Records whose last frame has not arrived.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    open: HashMap<u64, Open>,
    /// Ids in the order in which their records were opened. The id of a finished record is dropped once it is at the
    /// front.
    order: VecDeque<(u64, u64)>,
    opened: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Open {
    number: u64,
    since: Instant,
    frames: BTreeMap<u32, Part>,
    /// For each segment with frames of this record: the offset of the first one.
    starts: Vec<(SegmentId, u64)>,
    last: Option<u32>,
    bytes: usize,
}

#[derive(Debug)]
struct Part {
    flags: u8,
    meta_bytes: usize,
    checksum: u64,
    payload: Vec<u8>,
}

impl Assembler {
    /// Takes a frame. Appends to `records` the record that the frame completes, and records that were evicted to make room.
    pub(super) fn take(
        &mut self,
        segment: SegmentId,
        frame: Frame<'_>,
        now: Instant,
        counters: &mut Counters,
        records: &mut Vec<Record>,
    ) {
        let header = frame.header;
        let whole = header.seq == 0 && header.flags & LAST != 0;
        if whole && !self.open.contains_key(&header.id) {
            let (metadata, body) = split(frame.payload, header.meta_bytes.into());
            deliver(
                Record::new(header.id, header.flags, metadata, body.to_vec()),
                counters,
                records,
            );
            return;
        }
        let number = self.opened;
        let open = self.open.entry(header.id).or_insert_with(|| Open {
            number,
            since: now,
            frames: BTreeMap::new(),
            starts: Vec::new(),
            last: None,
            bytes: 0,
        });
        if open.frames.is_empty() {
            self.opened += 1;
            self.order.push_back((header.id, number));
        }
        if open.starts.iter().all(|(known, _)| *known != segment) {
            open.starts.push((segment, frame.at));
        }
        if let Some(known) = open.frames.get(&header.seq) {
            if known.checksum == header.checksum {
                counters.duplicate += 1;
            } else {
                counters.conflicting += 1;
            }
            return;
        }
        open.add(&frame);
        self.bytes += frame.payload.len();
        if open.is_complete() {
            self.close(header.id, 0, counters, records);
        }
        self.keep_bounds(counters, records);
    }

    /// Closes, as truncated, every open record that has frames in this segment. No process can write their last frames
    /// any more.
    pub(super) fn give_up_on(
        &mut self,
        segment: SegmentId,
        counters: &mut Counters,
        records: &mut Vec<Record>,
    ) {
        let touches = |open: &Open| open.starts.iter().any(|(known, _)| *known == segment);
        let mut ids: Vec<(u64, u64)> = self
            .open
            .iter()
            .filter(|(_, open)| touches(open))
            .map(|(id, open)| (open.number, *id))
            .collect();
        ids.sort_unstable();
        for (_, id) in ids {
            counters.truncated += 1;
            self.close(id, FLAG_TRUNCATED, counters, records);
        }
    }

    /// Offset of the oldest frame of an open record in this segment.
    pub(super) fn oldest_in(&self, segment: SegmentId) -> Option<u64> {
        let starts = self.open.values().flat_map(|open| &open.starts);
        starts.filter(|(known, _)| *known == segment).map(|(_, at)| *at).min()
    }

    /// When the oldest open record was opened.
    pub(super) fn oldest_since(&self) -> Option<Instant> {
        self.open.values().map(|open| open.since).min()
    }

    fn keep_bounds(&mut self, counters: &mut Counters, records: &mut Vec<Record>) {
        while self.open.len() > OPEN_MAX || self.bytes > OPEN_MAX_BYTES {
            let Some((id, number)) = self.order.pop_front() else { return };
            if self.open.get(&id).is_some_and(|open| open.number == number) {
                counters.evicted += 1;
                self.close(id, FLAG_TRUNCATED, counters, records);
            }
        }
        while let Some((id, number)) = self.order.front() {
            if self.open.get(id).is_some_and(|open| open.number == *number) {
                break;
            }
            self.order.pop_front();
        }
    }

    fn close(&mut self, id: u64, flags: u8, counters: &mut Counters, records: &mut Vec<Record>) {
        if let Some(open) = self.open.remove(&id) {
            self.bytes -= open.bytes;
            deliver(open.into_record(id, flags), counters, records);
        }
    }
}

fn deliver(record: Option<Record>, counters: &mut Counters, records: &mut Vec<Record>) {
    match record {
        Some(record) => {
            counters.records += 1;
            records.push(record);
        }
        None => counters.headless += 1,
    }
}

impl Open {
    fn add(&mut self, frame: &Frame<'_>) {
        let header = frame.header;
        if header.flags & LAST != 0 {
            self.last = Some(self.last.map_or(header.seq, |last| last.min(header.seq)));
        }
        self.bytes += frame.payload.len();
        let part = Part {
            flags: header.flags,
            meta_bytes: header.meta_bytes.into(),
            checksum: header.checksum,
            payload: frame.payload.to_vec(),
        };
        self.frames.insert(header.seq, part);
    }

    fn is_complete(&self) -> bool {
        let up_to = |last: u32| self.frames.range(..=last).count();
        self.last.is_some_and(|last| up_to(last) as u64 == u64::from(last) + 1)
    }

    /// The bytes received, up to the first gap.
    fn into_record(self, id: u64, mut flags: u8) -> Option<Record> {
        let mut metadata = None;
        let mut body = Vec::with_capacity(self.bytes);
        for (expected, (seq, part)) in (0..).zip(self.frames) {
            if seq != expected || self.last.is_some_and(|last| seq > last) {
                break;
            }
            flags |= part.flags;
            let (front, rest) = split(&part.payload, part.meta_bytes);
            body.extend_from_slice(rest);
            metadata = metadata.or_else(|| Some(front.to_vec()));
        }
        Record::new(id, flags, &metadata?, body)
    }
}

fn split(payload: &[u8], meta_bytes: usize) -> (&[u8], &[u8]) {
    payload.split_at_checked(meta_bytes).unwrap_or((&[], payload))
}
