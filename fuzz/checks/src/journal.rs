//! Checks the journal's reader with damaged segments made by several writers.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use arbitrary::{Arbitrary, Unstructured};
use hookspan::parts::{FLAG_TRUNCATED, Reader, Record, record_id};
use hookspan_shim::frame::{Decoded, HEADER_BYTES, Header, LAST, MAGIC, VERSION, seal};
use hookspan_shim::hash::xxh64;
use hookspan_shim::record::{METADATA_MAX, Stamp, encode};

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    /// A writer begins. Its body takes this number of frames.
    Begin { body: &'a [u8], frames: u8 },
    /// A writer begins whose body is the journal so far, like a hook about the journal itself.
    BeginWithJournal { frames: u8 },
    /// The writer with this number writes its next frame.
    Write { writer: u8 },
    /// The writer is killed after writing this many bytes of its next frame.
    Die { writer: u8, after: u16 },
    /// Bytes from nowhere.
    Noise(&'a [u8]),
    /// A frame of a later version.
    Newer(&'a [u8]),
    /// The reader looks.
    Look,
}

struct Writer {
    body: Vec<u8>,
    /// The writer's frames that are still to be written, the next one last.
    frames: Vec<Vec<u8>>,
    damaged: bool,
}

#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    writers: Vec<Writer>,
    /// Bodies contain copies of frames. If the frame around a copy is damaged, the copy is read as a frame.
    has_copies: bool,
    /// Every header that a writer has made.
    headers: BTreeSet<Vec<u8>>,
    /// Position of each written frame, and the number of its writer.
    places: Vec<(usize, usize)>,
    /// Frames whose writer was killed: the position of each, and the bytes of the complete frame.
    deaths: Vec<(usize, Vec<u8>)>,
}

/// The first byte chooses what the rest is: raw bytes of a segment, or a script that writes one.
pub fn journal(data: &[u8]) {
    match data.split_first() {
        Some((0..=63, rest)) => raw(rest),
        Some((_, rest)) => {
            let mut steps = Unstructured::new(rest);
            script(std::iter::from_fn(|| {
                if steps.is_empty() { None } else { Step::arbitrary(&mut steps).ok() }
            }));
        }
        None => {}
    }
}

fn raw(bytes: &[u8]) {
    let mut segment = Scratch::new();
    segment.append(bytes);
    let mut reader = Reader::new(segment.reader());
    let Ok(mut records) = reader.read() else { panic!("the file can be read") };
    let Ok((rest, _)) = reader.finish() else { panic!("the file can be read") };
    records.extend(rest);
    let kept: usize = records.iter().map(|record| record.body.len()).sum();
    assert!(kept <= bytes.len(), "more came out than went in");
}

fn script<'a>(steps: impl Iterator<Item = Step<'a>>) {
    let mut segment = Scratch::new();
    let mut reader = Reader::new(segment.reader());
    let mut written = Written::default();
    let mut records = Vec::new();
    let mut shown = 0;
    for step in steps {
        if matches!(step, Step::Look) {
            segment.append(written.bytes.get(shown..).unwrap_or_default());
            shown = written.bytes.len();
            records.extend(reader.read().unwrap_or_default());
        } else {
            written.take(step);
        }
    }
    segment.append(written.bytes.get(shown..).unwrap_or_default());
    let Ok((rest, _)) = reader.finish() else { panic!("the file can be read") };
    records.extend(rest);
    written.check(&records);

    // The result does not depend on the sizes of the reads.
    let mut at_once = Reader::new(segment.reader());
    let mut again = at_once.read().unwrap_or_default();
    again.extend(at_once.finish().map(|(rest, _)| rest).unwrap_or_default());
    let by_id = |records: Vec<Record>| {
        records.into_iter().map(|record| (record.id, record)).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(by_id(records), by_id(again));
}

impl Written {
    fn take(&mut self, step: Step<'_>) {
        match step {
            Step::Begin { body, frames } => self.begin(body.to_vec(), frames),
            Step::BeginWithJournal { frames } => {
                self.has_copies = true;
                let copy = self.bytes.iter().rev().take(20_000).rev().copied().collect();
                self.begin(copy, frames);
            }
            Step::Write { writer } => {
                if let Some(frame) = self.next_frame(writer) {
                    self.places.push((self.bytes.len(), self.place(writer)));
                    self.bytes.extend_from_slice(&frame);
                }
            }
            Step::Die { writer, after } => {
                let Some(frame) = self.next_frame(writer) else { return };
                let cut = usize::from(after) % frame.len();
                let at = self.bytes.len();
                self.bytes.extend_from_slice(frame.get(..cut).unwrap_or_default());
                self.deaths.push((at, frame));
                if let Some(writer) = self.writer(writer) {
                    writer.frames.clear();
                    writer.damaged = true;
                }
            }
            Step::Noise(bytes) => self.bytes.extend_from_slice(bytes),
            Step::Newer(bytes) => self.newer(bytes),
            Step::Look => {}
        }
    }

    fn place(&self, number: u8) -> usize {
        usize::from(number) % self.writers.len().max(1)
    }

    fn writer(&mut self, number: u8) -> Option<&mut Writer> {
        let place = self.place(number);
        self.writers.get_mut(place)
    }

    /// Ids in valid headers that no writer has made. A fuzzer learns to make headers, and a header that it places after
    /// damage is read.
    fn forged(&self) -> BTreeSet<[u8; 16]> {
        let all = self.bytes.windows(HEADER_BYTES).filter(|bytes| bytes.starts_with(&MAGIC));
        all.filter(|bytes| !self.headers.contains(*bytes))
            .filter_map(|bytes| match Header::decode(bytes.first_chunk()?) {
                Decoded::Header(header) => Some(record_id(1, header.id)),
                _ => None,
            })
            .collect()
    }

    /// Writers whose frame begins with exactly the bytes that a killed writer had left to write. The killed writer's
    /// frame is then complete, and their frame is part of it. This happens only if a body is a copy of the journal.
    fn swallowed(&self) -> BTreeSet<usize> {
        let made_whole = self.deaths.iter().filter_map(|(at, frame)| {
            let there = self.bytes.get(*at..at + frame.len())?;
            (there == frame.as_slice()).then_some(*at..at + frame.len())
        });
        made_whole
            .flat_map(|range| self.places.iter().filter(move |(at, _)| range.contains(at)))
            .map(|(_, writer)| *writer)
            .collect()
    }

    fn next_frame(&mut self, number: u8) -> Option<Vec<u8>> {
        self.writer(number)?.frames.pop()
    }

    fn begin(&mut self, body: Vec<u8>, frames: u8) {
        let id = self.writers.len() as u64 + 1;
        let count = usize::from(frames % 5) + 1;
        let piece = body.len().div_ceil(count).max(1);
        let mut pieces: Vec<&[u8]> = body.chunks(piece).collect();
        pieces.resize(count, &[]);
        let mut frames: Vec<Vec<u8>> =
            (0_u32..).zip(pieces).map(|(seq, piece)| frame(id, seq, count, piece)).collect();
        frames.reverse();
        let headers = frames.iter().filter_map(|frame| frame.get(..HEADER_BYTES));
        self.headers.extend(headers.map(<[u8]>::to_vec));
        self.writers.push(Writer { body, frames, damaged: false });
    }

    fn newer(&mut self, bytes: &[u8]) {
        let mut frame = vec![0; HEADER_BYTES];
        frame.extend_from_slice(bytes);
        seal(&mut frame, 0, 0, 0, LAST);
        let [_, _, _, _, version, ..] = frame.as_mut_slice() else { return };
        *version = VERSION + 1;
        let check = xxh64(frame.get(..32).unwrap_or_default(), 0) as u32;
        if let Some(place) = frame.get_mut(32..36) {
            place.copy_from_slice(&check.to_le_bytes());
        }
        self.bytes.extend_from_slice(&frame);
    }

    /// Checks that every complete record is read once, byte for byte, and of any other record at most a beginning.
    fn check(&self, records: &[Record]) {
        let mut times: BTreeMap<[u8; 16], usize> = BTreeMap::new();
        let forged = self.forged();
        for record in records.iter().filter(|record| !forged.contains(&record.id)) {
            *times.entry(record.id).or_default() += 1;
            let writer =
                (0_u64..).zip(&self.writers).find(|(n, _)| record_id(1, n + 1) == record.id);
            let Some((_, writer)) = writer else { panic!("a record from nowhere: {record:?}") };
            if record.flags & FLAG_TRUNCATED != 0 {
                assert!(writer.body.starts_with(&record.body));
            } else {
                assert!(record.body == writer.body);
            }
        }
        let swallowed = self.swallowed();
        for (place, writer) in self.writers.iter().enumerate() {
            let number = place as u64;
            if swallowed.contains(&place) || forged.contains(&record_id(1, number + 1)) {
                continue;
            }
            let times = times.get(&record_id(1, number + 1)).copied().unwrap_or_default();
            let is_whole = writer.frames.is_empty() && !writer.damaged;
            if is_whole && !self.has_copies {
                assert_eq!(times, 1, "writer {number}");
            } else if is_whole {
                assert!(times >= 1, "writer {number}");
            }
        }
    }
}

fn frame(id: u64, seq: u32, count: usize, piece: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; HEADER_BYTES];
    let mut meta_bytes = 0;
    if seq == 0 {
        let mut metadata = vec![0; METADATA_MAX];
        let stamp = Stamp { wall_ns: 1, ..Stamp::default() };
        meta_bytes = encode(&mut metadata, &stamp, &[]).unwrap_or_default();
        frame.extend_from_slice(metadata.get(..meta_bytes.into()).unwrap_or_default());
    }
    frame.extend_from_slice(piece);
    let flags = if seq as usize + 1 == count { LAST } else { 0 };
    seal(&mut frame, id, seq, meta_bytes, flags);
    assert!(frame.starts_with(&MAGIC));
    frame
}

/// A file for one input. It is used again for the next input.
struct Scratch(File);

impl Scratch {
    fn new() -> Self {
        thread_local! {
            static FILE: RefCell<Option<File>> = const { RefCell::new(None) };
        }
        FILE.with_borrow_mut(|kept| {
            // In memory if possible, because the fuzzer makes thousands of files per second.
            let memory = tempfile::tempfile_in("/dev/shm");
            let file = kept.take().map_or_else(|| memory.or_else(|_| tempfile::tempfile()), Ok);
            let Ok(file) = file else { panic!("no place for a temporary file") };
            let emptied = file.set_len(0);
            let copy = file.try_clone();
            let (Ok(()), Ok(copy)) = (emptied, copy) else { panic!("a temporary file") };
            *kept = Some(copy);
            Self(file)
        })
    }

    fn append(&mut self, bytes: &[u8]) {
        let appended = self.0.seek(SeekFrom::End(0)).and_then(|_| self.0.write_all(bytes));
        assert!(appended.is_ok(), "a temporary file takes bytes");
    }

    fn reader(&self) -> File {
        let Ok(file) = self.0.try_clone() else { panic!("a descriptor") };
        file
    }
}
