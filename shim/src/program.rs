//! The program on any operating system: it reads the hook, appends it, and then answers.

use core::mem;

use crate::frame::{self, HEADER_BYTES};
use crate::losses::{LOSS_BYTES, LOSSES_MAX_BYTES, Loss};
use crate::record::{self, METADATA_MAX, Stamp};
use crate::reply::Verdict;
use crate::scan::Scanner;

/// Size of the buffer for the first frames, including the header. A small buffer causes fewer page faults. Even with
/// the longest metadata, 16 KiB of body fit.
pub const FRAME_BYTES: usize = 20 << 10;
/// Size of the buffer for frames after the first `SMALL_FRAMES`.
pub const LARGE_FRAME_BYTES: usize = 64 << 10;
const SMALL_FRAMES: u32 = 4;

/// Maximum number of bytes of a body that are stored, 16 MiB. The rest of the body is read and dropped.
pub const BODY_MAX_BYTES: usize = 16 << 20;
/// Maximum size of the journal, 1 GiB. The journal grows to this size only if no collector reads it.
pub const JOURNAL_MAX_BYTES: u64 = 1 << 30;
/// Maximum size of the spill file, 64 MiB. The run-time directory is usually in memory.
pub const SPILL_MAX_BYTES: u64 = 64 << 20;

const FIRST_BYTE_MS: u64 = 2_000;
const AFTER_COMPLETE_MS: u64 = 50;
const AFTER_BRACE_MS: u64 = 250;
const TOTAL_MS: u64 = 5_000;
/// Number of reads between two readings of the clock, as long as input is available at once.
const READS_PER_LOOK: u32 = 16;

/// Error number of opening a symbolic link that must not be followed. The journal at its bound is such a link.
pub const ELOOP: u32 = 40;

/// What the program needs from the operating system. Only [`System::read_within`] and [`System::reply`] may block, and
/// only as long as the caller allows.
pub trait System {
    /// A file open for appending. The program never closes it, because it exits soon after.
    type File;

    /// `CLOCK_BOOTTIME` or another clock that only goes forward, in nanoseconds.
    fn boottime_ns(&mut self) -> u64;
    /// Reads standard input if it can be done without waiting.
    fn read_now(&mut self, into: &mut [u8]) -> Read;
    /// Reads standard input, waiting up to `ms` for the first byte.
    fn read_within(&mut self, into: &mut [u8], ms: u64) -> Read;
    /// Opens a file for appending, never following a link. A missing file is created with mode 0600, a missing state
    /// directory with mode 0700.
    ///
    /// # Errors
    /// The error number of the operating system. [`ELOOP`] for the journal means that the journal has reached its
    /// bound.
    fn open(&mut self, place: Place) -> Result<Self::File, u32>;
    /// Appends in one write and returns how many bytes went in.
    ///
    /// # Errors
    /// The error number of the operating system.
    fn append(&mut self, file: &Self::File, bytes: &[u8]) -> Result<usize, u32>;
    /// Size of an open file in bytes; `None` if the system does not tell it.
    fn size(&mut self, file: &Self::File) -> Option<u64>;
    /// Replaces the journal with the stop link. The next program that opens the journal then fails at once.
    fn stop_journal(&mut self, journal: &Self::File);
    /// A buffer of [`LARGE_FRAME_BYTES`], or `None` when there is no memory.
    fn large_buffer(&mut self) -> Option<&'static mut [u8]>;
    /// Writes the answer. If the host does not take it, waits until [`System::boottime_ns`] returns `until_ns`.
    fn reply(&mut self, answer: &[u8], until_ns: u64);
}

/// The files that the program writes to, in the order in which it tries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `journal` in the state directory.
    Journal,
    /// A file in the user's run-time directory, used instead of the journal.
    Spill,
    /// `losses` in the state directory.
    Losses,
    /// A file in the user's run-time directory, used instead of `losses`.
    SpareLosses,
}

/// Result of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// So many bytes, at least one.
    Bytes(usize),
    /// This number of bytes, which does not fill the buffer, and the writer has closed its end.
    LastBytes(usize),
    /// End of file, or an error. Nothing more can be read.
    End,
    /// Nothing has come yet; ask again.
    Nothing,
    /// Nothing arrived in the given time.
    TimedOut,
}

/// How the program was started.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// Start time in nanoseconds since the Unix epoch.
    pub wall_ns: u64,
    /// Start time by [`System::boottime_ns`].
    pub boottime_ns: u64,
    /// Process id; 0 if reading it would cost a system call.
    pub pid: u32,
    /// Random id of the record.
    pub id: u64,
    /// The last argument: the event's name.
    pub argument: &'a [u8],
    /// `CURSOR_VERSION`; empty if it is not set. The same holds for the other texts.
    pub cursor_version: &'a [u8],
    /// `CURSOR_PROJECT_DIR`.
    pub project_dir: &'a [u8],
    /// `CURSOR_TRANSCRIPT_PATH`.
    pub transcript_path: &'a [u8],
    /// `CURSOR_CODE_REMOTE`.
    pub code_remote: &'a [u8],
    /// `PWD`.
    pub pwd: &'a [u8],
}

/// Stores one hook and answers it. `buffer` has [`FRAME_BYTES`].
pub fn run<S: System>(system: &mut S, invocation: &Invocation<'_>, buffer: &mut [u8]) {
    let mut run = Run {
        system,
        invocation,
        scanner: Scanner::default(),
        sink: Sink::Unopened,
        seq: 0,
        meta_bytes: 0,
        body_bytes: 0,
        writer_is_gone: false,
        ends_in_brace: false,
        waits: 0,
        reads: 0,
    };
    run.keep(buffer);
    let verdict = run.verdict();
    let answer = verdict.reply();
    if !answer.is_empty() {
        run.system.reply(answer, invocation.boottime_ns.saturating_add(TOTAL_MS * 1_000_000));
    }
}

struct Run<'a, S: System> {
    system: &'a mut S,
    invocation: &'a Invocation<'a>,
    scanner: Scanner,
    sink: Sink<S::File>,
    seq: u32,
    meta_bytes: u16,
    body_bytes: usize,
    writer_is_gone: bool,
    ends_in_brace: bool,
    waits: u32,
    reads: u32,
}

enum Sink<F> {
    Unopened,
    Journal(F),
    /// The error of opening the journal. It is recorded as the reason of the loss if the fallback fails, too.
    Spill {
        file: F,
        errno: u32,
    },
    Lost {
        errno: u32,
    },
}

/// Why reading ended.
enum End {
    Eof,
    TimedOut,
}

impl<S: System> Run<'_, S> {
    fn keep(&mut self, buffer: &mut [u8]) {
        let Some(small) = buffer.get_mut(..FRAME_BYTES) else { return };
        self.meta_bytes = self.write_metadata(small);
        let mut filled = HEADER_BYTES + usize::from(self.meta_bytes);
        let mut end = self.fill(small, &mut filled);
        while end.is_none() && self.seq + 1 < SMALL_FRAMES && self.body_bytes < BODY_MAX_BYTES {
            self.emit(small, filled, 0);
            filled = HEADER_BYTES;
            end = self.fill(small, &mut filled);
        }
        match end {
            Some(end) => self.emit(small, filled, frame::LAST | flags_of(&end)),
            None => {
                self.emit(small, filled, 0);
                let large = self.system.large_buffer();
                self.keep_rest(large.unwrap_or(small));
            }
        }
        self.count_loss();
    }

    /// Stores the rest of a body that did not fit into the first frames.
    fn keep_rest(&mut self, buffer: &mut [u8]) {
        loop {
            let mut filled = HEADER_BYTES;
            if let Some(end) = self.fill(buffer, &mut filled) {
                return self.emit(buffer, filled, frame::LAST | flags_of(&end));
            }
            self.emit(buffer, filled, 0);
            if self.body_bytes >= BODY_MAX_BYTES {
                let flags = self.discard(buffer);
                return self.emit(buffer, HEADER_BYTES, frame::LAST | flags);
            }
        }
    }

    /// Reads until the buffer or the body is full (`None`) or the input ends.
    fn fill(&mut self, buffer: &mut [u8], filled: &mut usize) -> Option<End> {
        loop {
            let room = buffer.get_mut(*filled..).unwrap_or_default();
            let room_bytes = room.len().min(BODY_MAX_BYTES - self.body_bytes);
            let room = room.get_mut(..room_bytes).unwrap_or_default();
            if room.is_empty() {
                return None;
            }
            match self.read(room) {
                Ok(count) => {
                    *filled += count;
                    self.body_bytes += count;
                    self.look_at(buffer.get(..*filled).unwrap_or_default());
                    // The next read would only report the end, so it is left out. That the writer has closed its end is
                    // not enough: a pipe or socket with message boundaries may return less than it holds. The body must
                    // also be a complete value.
                    if self.writer_is_gone && self.seq == 0 && self.scanner.found.complete {
                        return Some(End::Eof);
                    }
                }
                Err(end) => return Some(end),
            }
        }
    }

    /// Reads the rest of the input and drops it. The returned flags tell whether there was any.
    fn discard(&mut self, buffer: &mut [u8]) -> u8 {
        let mut flags = 0;
        let scratch = buffer.get_mut(HEADER_BYTES..).unwrap_or_default();
        loop {
            match self.read(scratch) {
                Ok(_) => flags = frame::CUT,
                Err(end) => return flags | flags_of(&end),
            }
        }
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, End> {
        self.reads += 1;
        // An endless input is always ready, so waiting never times out. Only the clock can end it.
        if self.reads.is_multiple_of(READS_PER_LOOK) && self.elapsed_ms() >= TOTAL_MS {
            return Err(End::TimedOut);
        }
        loop {
            // Read first, wait second: hosts write at once, so a wait would cost one call for nothing. If the wait is
            // needed, its cost does not matter.
            let mut read = self.system.read_now(into);
            if read == Read::Nothing {
                let ms = self.patience_ms();
                if ms == 0 {
                    return Err(End::TimedOut);
                }
                read = self.system.read_within(into, ms);
            }
            match read {
                Read::Bytes(count) => return Ok(count.min(into.len())),
                Read::LastBytes(count) => {
                    self.writer_is_gone = true;
                    return Ok(count.min(into.len()));
                }
                Read::End => return Err(End::Eof),
                Read::TimedOut => return Err(End::TimedOut),
                Read::Nothing => {}
            }
        }
    }

    /// How long to wait for the next byte; 0 if there is no time left to wait.
    fn patience_ms(&mut self) -> u64 {
        let (limit, since_start) = if self.body_bytes == 0 {
            (FIRST_BYTE_MS, FIRST_BYTE_MS)
        } else if self.seq == 0 && self.scanner.found.complete {
            (AFTER_COMPLETE_MS, TOTAL_MS)
        } else if self.seq > 0 && self.ends_in_brace {
            (AFTER_BRACE_MS, TOTAL_MS)
        } else {
            (TOTAL_MS, TOTAL_MS)
        };
        self.waits += 1;
        // Reading the clock would cost a system call. Before the first wait, no time has passed. Before the second one,
        // at most [`FIRST_BYTE_MS`] have passed, so a short wait fits into the total.
        if self.waits == 1 || (self.waits == 2 && limit < TOTAL_MS - FIRST_BYTE_MS) {
            return limit;
        }
        limit.min(since_start.saturating_sub(self.elapsed_ms()))
    }

    fn elapsed_ms(&mut self) -> u64 {
        self.system.boottime_ns().saturating_sub(self.invocation.boottime_ns) / 1_000_000
    }

    /// Scans the bytes of a frame that are new.
    fn look_at(&mut self, frame: &[u8]) {
        if self.seq == 0 {
            let body = frame.get(HEADER_BYTES + usize::from(self.meta_bytes)..);
            self.scanner.advance(body.unwrap_or_default());
        } else {
            let last = frame.iter().rev().take(4).find(|byte| !byte.is_ascii_whitespace());
            self.ends_in_brace = last == Some(&b'}');
        }
    }

    fn write_metadata(&self, frame: &mut [u8]) -> u16 {
        let given = self.invocation;
        let stamp = Stamp {
            wall_ns: given.wall_ns,
            boottime_ns: given.boottime_ns,
            pid: given.pid,
            ..Stamp::default()
        };
        let texts = [
            (record::ARGUMENT, given.argument),
            (record::CURSOR_VERSION, given.cursor_version),
            (record::PROJECT_DIR, given.project_dir),
            (record::TRANSCRIPT_PATH, given.transcript_path),
            (record::CODE_REMOTE, given.code_remote),
            (record::PWD, given.pwd),
        ];
        let place = frame.get_mut(HEADER_BYTES..HEADER_BYTES + METADATA_MAX);
        place.and_then(|place| record::encode(place, &stamp, &texts)).unwrap_or_default()
    }

    fn verdict(&self) -> Verdict {
        let given = self.invocation;
        Verdict::of(self.scanner.found, given.argument, !given.cursor_version.is_empty())
    }

    /// Completes the frame and appends it to the first file that accepts it.
    fn emit(&mut self, buffer: &mut [u8], filled: usize, flags: u8) {
        let Some(frame) = buffer.get_mut(..filled) else { return };
        let meta_bytes = if self.seq == 0 { self.meta_bytes } else { 0 };
        if self.seq == 0 {
            let verdict = self.verdict();
            let event = verdict.event.map_or(0, |event| event as u8);
            let metadata = frame.get_mut(HEADER_BYTES..).unwrap_or_default();
            record::set_hints(metadata, verdict.host as u8, event);
        }
        frame::seal(frame, self.invocation.id, self.seq, meta_bytes, flags);
        self.seq += 1;
        self.append(frame);
    }

    fn append(&mut self, frame: &[u8]) {
        if matches!(self.sink, Sink::Unopened) {
            self.sink = match self.system.open(Place::Journal) {
                Ok(journal) => {
                    self.check_bound(&journal);
                    Sink::Journal(journal)
                }
                Err(errno) => self.divert(errno),
            };
        }
        if let Sink::Journal(journal) = &self.sink {
            match self.system.append(journal, frame) {
                Ok(count) if count == frame.len() => return,
                failed => self.sink = self.divert(failed.err().unwrap_or_default()),
            }
        }
        if let Sink::Spill { file, errno } = &self.sink {
            match self.system.append(file, frame) {
                Ok(count) if count == frame.len() => {}
                failed => {
                    let why = failed.err().filter(|_| *errno == 0).unwrap_or(*errno);
                    self.sink = Sink::Lost { errno: why };
                }
            }
        }
    }

    /// Only one run in sixteen checks the journal's size. The others save that system call.
    fn check_bound(&mut self, journal: &S::File) {
        if self.invocation.id & 15 == 0
            && self.system.size(journal).is_some_and(|bytes| bytes > JOURNAL_MAX_BYTES)
        {
            self.system.stop_journal(journal);
        }
    }

    /// Called if the journal accepts no more. If the journal has reached its bound, the hook is only counted. For any
    /// other reason the hook goes to the spill file, if that has room.
    #[cold]
    #[inline(never)]
    fn divert(&mut self, errno: u32) -> Sink<S::File> {
        if errno == ELOOP {
            return Sink::Lost { errno };
        }
        match self.system.open(Place::Spill) {
            Ok(spill) if self.system.size(&spill).is_some_and(|size| size < SPILL_MAX_BYTES) => {
                Sink::Spill { file: spill, errno }
            }
            _ => Sink::Lost { errno },
        }
    }

    fn count_loss(&mut self) {
        if let Sink::Lost { errno } = mem::replace(&mut self.sink, Sink::Unopened) {
            self.write_loss(errno);
        }
    }

    #[cold]
    #[inline(never)]
    fn write_loss(&mut self, errno: u32) {
        let bytes = u32::try_from(self.body_bytes).unwrap_or(u32::MAX);
        let (wall_ns, id) = (self.invocation.wall_ns, self.invocation.id);
        let loss = Loss { wall_ns, id, errno, bytes };
        // If both fail, there is nothing left to try.
        let _counted =
            self.append_loss(Place::Losses, &loss) || self.append_loss(Place::SpareLosses, &loss);
    }

    /// Returns true if the file now contains the loss, or has reached its maximum size.
    fn append_loss(&mut self, place: Place, loss: &Loss) -> bool {
        let Ok(losses) = self.system.open(place) else { return false };
        match self.system.size(&losses) {
            Some(size) if size < LOSSES_MAX_BYTES => {
                self.system.append(&losses, &loss.encode()) == Ok(LOSS_BYTES)
            }
            size => size.is_some(),
        }
    }
}

fn flags_of(end: &End) -> u8 {
    match end {
        End::Eof => 0,
        End::TimedOut => frame::NO_EOF,
    }
}
