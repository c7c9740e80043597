//! Runs the whole hook program on a simulated operating system that returns arbitrary results.

use std::collections::VecDeque;

use arbitrary::{Arbitrary, Unstructured};
use hookspan_shim::frame::{CUT, Decoded, HEADER_BYTES, Header, LAST, NO_EOF};
use hookspan_shim::losses::Loss;
use hookspan_shim::program::{
    FRAME_BYTES, Invocation, JOURNAL_MAX_BYTES, Place, Read, System, run,
};
use hookspan_shim::record::Metadata;
use hookspan_shim::reply::Verdict;
use hookspan_shim::scan::Scan;

/// What standard input does next.
#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Bytes(&'a [u8]),
    /// One byte many times, so that few input bytes make a large body.
    Repeated(u8, u16),
    Nothing,
    Pause(u16),
    Hangs,
}

/// The result of opening a file or writing to it.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Outcome {
    Works,
    WritesShort(u16),
    Fails(u8),
}

#[derive(Arbitrary, Debug)]
struct Script<'a> {
    id: u64,
    argument: &'a [u8],
    cursor_version: &'a [u8],
    pwd: &'a [u8],
    journal_is_full: bool,
    /// Results of opening the journal, the spill file, the loss file and the spare loss file.
    opens: [Option<u8>; 4],
    writes: Vec<Outcome>,
    input: Vec<Input<'a>>,
}

struct Machine<'a> {
    script: &'a Script<'a>,
    now_ns: u64,
    input: VecDeque<Step>,
    writes: VecDeque<Outcome>,
    given: Vec<u8>,
    /// Bytes written to each of these files.
    files: [Vec<u8>; 4],
    something_failed: bool,
    stopped: bool,
    replies: Vec<Vec<u8>>,
}

enum Step {
    Bytes(VecDeque<u8>),
    Nothing,
    Pause(u64),
    Hangs,
}

/// Plays the script, and checks what was stored and answered.
pub fn program(data: &[u8]) {
    let Ok(script) = Script::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let invocation = Invocation {
        wall_ns: 1,
        boottime_ns: 1,
        pid: 0,
        id: script.id,
        argument: script.argument,
        cursor_version: script.cursor_version,
        project_dir: b"",
        transcript_path: b"",
        code_remote: b"",
        pwd: script.pwd,
    };
    let mut machine = Machine::new(&script);
    run(&mut machine, &invocation, &mut vec![0xAA; FRAME_BYTES]);
    machine.check(&invocation);
}

impl<'a> Machine<'a> {
    fn new(script: &'a Script<'a>) -> Self {
        let step = |input: &Input<'_>| match input {
            Input::Bytes(bytes) => Step::Bytes(bytes.iter().copied().collect()),
            Input::Repeated(byte, count) => Step::Bytes(vec![*byte; usize::from(*count)].into()),
            Input::Nothing => Step::Nothing,
            Input::Pause(ms) => Step::Pause((*ms).into()),
            Input::Hangs => Step::Hangs,
        };
        Self {
            script,
            now_ns: 1,
            input: script.input.iter().map(step).collect(),
            writes: script.writes.iter().copied().collect(),
            given: Vec::new(),
            files: [const { Vec::new() }; 4],
            something_failed: false,
            stopped: false,
            replies: Vec::new(),
        }
    }

    fn pass_ms(&mut self, ms: u64) {
        self.now_ns += ms * 1_000_000;
    }

    fn check(&self, invocation: &Invocation<'_>) {
        let elapsed_ms = (self.now_ns - 1) / 1_000_000;
        assert!(elapsed_ms <= 5_000, "it took {elapsed_ms} ms");
        let [journal, spill, losses, spare] = &self.files;
        assert!(losses.is_empty() || spare.is_empty(), "counted twice");
        let losses = if losses.is_empty() { spare } else { losses };
        assert!(matches!(losses.len(), 0 | 32));
        let kept = frames(journal, self.something_failed);
        let spilt = frames(spill, self.something_failed);
        if self.something_failed {
            let is_whole = spilt.last().or(kept.last()).is_some_and(|(h, _)| h.flags & LAST != 0);
            let lost = losses.first_chunk().and_then(Loss::decode);
            let losses_fail = self.script.opens[2].is_some() && self.script.opens[3].is_some();
            assert!(is_whole || lost.is_some() || losses_fail, "neither kept nor counted");
            if let Some(loss) = lost {
                assert_eq!(loss.id, invocation.id);
            }
        } else {
            assert!(spilt.is_empty() && losses.is_empty());
            self.check_kept(&kept, invocation);
        }
        if self.stopped {
            assert!(self.script.journal_is_full && invocation.id & 15 == 0);
        }
        self.check_reply(invocation);
    }

    fn check_kept(&self, kept: &[(Header, &[u8])], invocation: &Invocation<'_>) {
        let mut body = Vec::new();
        for (number, (header, payload)) in (0_u32..).zip(kept) {
            assert_eq!((header.id, header.seq), (invocation.id, number));
            assert_eq!(header.flags & LAST != 0, number as usize + 1 == kept.len());
            body.extend_from_slice(payload.get(header.meta_bytes.into()..).unwrap_or_default());
        }
        assert!(body == self.given, "{} bytes kept of {}", body.len(), self.given.len());
        let Some((first, payload)) = kept.first() else { panic!("nothing was kept") };
        let metadata = payload.get(..first.meta_bytes.into()).and_then(Metadata::decode);
        assert_eq!(metadata.map(|metadata| metadata.stamp.wall_ns), Some(invocation.wall_ns));
        let flags = kept.last().map_or(0, |(header, _)| header.flags);
        assert_eq!(flags & !(LAST | NO_EOF | CUT), 0);
        // Either the end of the input was seen, or the flag says that it was not.
        assert_eq!(flags & NO_EOF == 0, self.input.is_empty(), "input left: {}", self.input.len());
    }

    /// The answer depends on the input alone, not on the journal's state.
    fn check_reply(&self, invocation: &Invocation<'_>) {
        let room = FRAME_BYTES - HEADER_BYTES;
        let cursor = !invocation.cursor_version.is_empty();
        // How many frames there are depends on the metadata. A body that surely fits into one frame can be checked
        // exactly.
        if self.given.len() + 3_100 <= room {
            let scan = Scan::of(&self.given);
            let expected = Verdict::of(scan, invocation.argument, cursor).reply();
            let expected: &[&[u8]] = if expected.is_empty() { &[] } else { &[expected] };
            assert_eq!(self.replies, expected);
        }
        assert!(self.replies.len() <= 1);
    }
}

/// The complete frames of a file. The last one may be short after a failed write.
fn frames(mut rest: &[u8], may_be_short: bool) -> Vec<(Header, &[u8])> {
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let whole = rest.split_first_chunk::<HEADER_BYTES>().and_then(|(header, behind)| {
            let Decoded::Header(header) = Header::decode(header) else { panic!("no header") };
            let (payload, after) = behind.split_at_checked(header.len as usize)?;
            assert!(header.matches(payload));
            Some((header, payload, after))
        });
        let Some((header, payload, after)) = whole else {
            assert!(may_be_short, "a short frame");
            break;
        };
        frames.push((header, payload));
        rest = after;
    }
    frames
}

impl System for Machine<'_> {
    type File = usize;

    fn boottime_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn read_now(&mut self, into: &mut [u8]) -> Read {
        match self.input.front() {
            Some(Step::Bytes(_)) | None => self.read_within(into, 0),
            _ => Read::Nothing,
        }
    }

    fn read_within(&mut self, into: &mut [u8], mut ms: u64) -> Read {
        assert!(!into.is_empty(), "a read of nothing is the end to the kernel");
        let waited = ms > 0;
        loop {
            match self.input.front_mut() {
                None => return Read::End,
                Some(Step::Bytes(bytes)) if bytes.is_empty() => {
                    self.input.pop_front();
                }
                Some(Step::Bytes(bytes)) => {
                    let count = bytes.len().min(into.len());
                    for (place, byte) in into.iter_mut().zip(bytes.drain(..count)) {
                        *place = byte;
                        self.given.push(byte);
                    }
                    if bytes.is_empty() {
                        self.input.pop_front();
                    }
                    let is_last = waited && count < into.len() && self.input.is_empty();
                    return if is_last { Read::LastBytes(count) } else { Read::Bytes(count) };
                }
                Some(Step::Nothing) => {
                    self.input.pop_front();
                    return Read::Nothing;
                }
                Some(Step::Pause(left)) => {
                    let slept = ms.min(*left);
                    *left -= slept;
                    let over = *left == 0;
                    self.pass_ms(slept);
                    ms -= slept;
                    if !over {
                        return Read::TimedOut;
                    }
                    self.input.pop_front();
                }
                Some(Step::Hangs) => {
                    self.pass_ms(ms);
                    return Read::TimedOut;
                }
            }
        }
    }

    fn open(&mut self, place: Place) -> Result<usize, u32> {
        let index = match place {
            Place::Journal => 0,
            Place::Spill => 1,
            Place::Losses => 2,
            Place::SpareLosses => 3,
        };
        match self.script.opens[index] {
            None => Ok(index),
            Some(errno) => {
                self.something_failed = true;
                Err(errno.into())
            }
        }
    }

    fn append(&mut self, file: &usize, bytes: &[u8]) -> Result<usize, u32> {
        // Loss files have reserved space, so writing their 32 bytes does not fail.
        let outcome = if *file >= 2 { None } else { self.writes.pop_front() };
        let count = match outcome.unwrap_or(Outcome::Works) {
            Outcome::Works => bytes.len(),
            Outcome::WritesShort(count) => usize::from(count).min(bytes.len()),
            Outcome::Fails(errno) => {
                self.something_failed = true;
                return Err(errno.into());
            }
        };
        self.something_failed |= count < bytes.len();
        self.files[*file].extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn size(&mut self, file: &usize) -> Option<u64> {
        let full = *file == 0 && self.script.journal_is_full;
        Some(if full { JOURNAL_MAX_BYTES + 1 } else { self.files[*file].len() as u64 })
    }

    fn stop_journal(&mut self, _: &usize) {
        self.stopped = true;
    }

    fn large_buffer(&mut self) -> Option<&'static mut [u8]> {
        // Out of memory: the program must continue with its small buffer.
        None
    }

    fn reply(&mut self, answer: &[u8], _: u64) {
        self.replies.push(answer.to_vec());
    }
}
