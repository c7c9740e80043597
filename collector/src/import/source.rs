//! Reads a file as text: decompressed, and converted from UTF-16 to UTF-8.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::GzDecoder;

/// Number of bytes at the beginning by which a file is recognised.
pub(super) const SAMPLE: usize = 1 << 20;
/// Limits of decompression: a size that is always allowed, and beyond it a multiple of the file's size. Logs of hooks
/// shrink to a twentieth; a decompression bomb shrinks to a thousandth.
const UNPACKED_MIN: u64 = 1 << 30;
const UNPACKED_TIMES: u64 = 200;
/// Maximum window of a Zstandard frame, as a power of two: `zstd`'s own default.
const WINDOW_LOG: u32 = 27;

/// Why a file cannot be read to its end. Everything before that point is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The archive ends too early or is corrupt.
    Archive(String),
    /// It becomes larger than any log would.
    Bomb,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Archive(error) => {
                write!(f, "the compressed data is cut off or corrupt ({error})")
            }
            Self::Bomb => write!(
                f,
                "it unpacks to more than {UNPACKED_TIMES} times its size, which is unusual for a log; decompress it yourself if it is one"
            ),
        }
    }
}

/// A file as text.
pub(crate) struct Source<'a> {
    text: Box<dyn Read + 'a>,
    /// The beginning of the text, at most [`SAMPLE`] bytes, and whether it is the whole text.
    pub(super) sample: Vec<u8>,
    pub(super) whole: bool,
    /// Number of bytes of the sample that were returned.
    used: usize,
    read: Rc<Cell<u64>>,
    damage: Rc<RefCell<Option<Damage>>>,
}

impl std::fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

impl<'a> Source<'a> {
    /// Opens `input`. Its first bytes decide the format, not its name.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn open(input: impl Read + 'a) -> io::Result<Self> {
        let read = Rc::new(Cell::new(0));
        let damage = Rc::new(RefCell::new(None));
        let failed = Rc::new(Cell::new(false));
        let input = Counted { input, read: Rc::clone(&read), failed: Rc::clone(&failed) };
        let mut text = unpack(input, &read, &failed, &damage)?;
        let mut sample = beginning(&mut text, SAMPLE)?;
        if let Some(big_endian) = is_utf16(&sample) {
            let rest = io::Cursor::new(sample).chain(text);
            text = Box::new(Utf16::new(rest, big_endian));
            sample = beginning(&mut text, SAMPLE)?;
        }
        let whole = sample.len() < SAMPLE;
        Ok(Self { text, sample, whole, used: 0, read, damage })
    }

    #[cfg(test)]
    fn bytes_read(&self) -> u64 {
        self.read.get()
    }

    /// Why reading stopped before the end of the file.
    #[must_use]
    pub(crate) fn damage(&self) -> Option<Damage> {
        self.damage.borrow().clone()
    }

    /// A handle for progress and errors that can be used while the source itself is borrowed.
    pub(super) fn gauge(&self) -> Gauge {
        Gauge { read: Rc::clone(&self.read), damage: Rc::clone(&self.damage) }
    }
}

/// How far a source was read, and what failed.
pub(super) struct Gauge {
    read: Rc<Cell<u64>>,
    damage: Rc<RefCell<Option<Damage>>>,
}

impl Gauge {
    /// Bytes of the file itself that were read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.read.get()
    }

    pub(super) fn damage(&self) -> Option<Damage> {
        self.damage.borrow().clone()
    }
}

impl Read for Source<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.sample.get(self.used..).unwrap_or_default();
        if rest.is_empty() {
            return self.text.read(into);
        }
        let read = rest.read(into)?;
        self.used += read;
        Ok(read)
    }
}

/// Reads at most so many bytes.
fn beginning(input: &mut dyn Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unpack<'a>(
    mut input: impl Read + 'a,
    read: &Rc<Cell<u64>>,
    failed: &Rc<Cell<bool>>,
    damage: &Rc<RefCell<Option<Damage>>>,
) -> io::Result<Box<dyn Read + 'a>> {
    let begins = beginning(&mut input, 4)?;
    let input = BufReader::with_capacity(1 << 18, io::Cursor::new(begins.clone()).chain(input));
    let guard = |unpacker: Box<dyn Read + 'a>| Guarded {
        unpacker,
        unpacked: 0,
        read: Rc::clone(read),
        failed: Rc::clone(failed),
        damage: Rc::clone(damage),
    };
    match *begins {
        [0x1f, 0x8b, ..] => Ok(Box::new(guard(Box::new(Members::new(input))))),
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(input)?;
            decoder.window_log_max(WINDOW_LOG)?;
            Ok(Box::new(guard(Box::new(decoder))))
        }
        _ => Ok(Box::new(input)),
    }
}

/// Counts the bytes read from the file itself, and records a read error.
struct Counted<R> {
    input: R,
    read: Rc<Cell<u64>>,
    failed: Rc<Cell<bool>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into);
        match &read {
            Ok(read) => self.read.set(self.read.get() + *read as u64),
            Err(error) => {
                let failed = error.kind() != io::ErrorKind::Interrupted;
                self.failed.set(self.failed.get() || failed);
            }
        }
        read
    }
}

/// Stops if the archive is damaged or the size limit is reached, and records the reason. An I/O error does not count as
/// damage.
struct Guarded<'a> {
    unpacker: Box<dyn Read + 'a>,
    unpacked: u64,
    read: Rc<Cell<u64>>,
    failed: Rc<Cell<bool>>,
    damage: Rc<RefCell<Option<Damage>>>,
}

impl Read for Guarded<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.damage.borrow().is_some() {
            return Ok(0);
        }
        let read = match self.unpacker.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) if self.failed.get() => return Err(error),
            Err(error) => {
                *self.damage.borrow_mut() = Some(Damage::Archive(error.to_string()));
                return Ok(0);
            }
            Ok(read) => read,
        };
        self.unpacked += read as u64;
        let most = UNPACKED_MIN.max(self.read.get().saturating_mul(UNPACKED_TIMES));
        if self.unpacked > most {
            *self.damage.borrow_mut() = Some(Damage::Bomb);
            return Ok(0);
        }
        Ok(read)
    }
}

/// Reads the members of a gzip file one after the other. Zeros after the last member are padding.
struct Members<R> {
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    fn new(input: R) -> Self {
        Self { member: Some(GzDecoder::new(input)) }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.member else { return Ok(0) };
            match member.read(into)? {
                0 if !into.is_empty() => {}
                read => return Ok(read),
            }
            let Some(mut input) = self.member.take().map(GzDecoder::into_inner) else {
                return Ok(0);
            };
            loop {
                let rest = input.fill_buf()?;
                let zeros = rest.iter().take_while(|byte| **byte == 0).count();
                match rest.get(zeros..) {
                    None | Some([]) if zeros == 0 => return Ok(0),
                    None | Some([]) => input.consume(zeros),
                    Some([0x1f, ..]) if zeros == 0 => break,
                    Some(_) => {
                        let error = "other bytes follow the compressed data";
                        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                    }
                }
            }
            self.member = Some(GzDecoder::new(input));
        }
    }
}

/// Whether a text is UTF-16, by its byte order mark or by the zeros beside its first bracket. Returns true for
/// big-endian.
fn is_utf16(begins: &[u8]) -> Option<bool> {
    match *begins {
        [0xff, 0xfe, 0, 0, ..] => None,
        [0xff, 0xfe, ..] => Some(false),
        [b'{' | b'[', 0, next, ..] if next != 0 => Some(false),
        [0xfe, 0xff, ..] | [0, b'{' | b'[', ..] => Some(true),
        _ => None,
    }
}

/// Converts UTF-16 to UTF-8. Invalid parts become U+FFFD.
struct Utf16<R> {
    input: R,
    big_endian: bool,
    /// Bytes that do not make a complete unit or pair yet.
    rest: Vec<u8>,
    text: Vec<u8>,
    used: usize,
    ended: bool,
}

impl<R: Read> Utf16<R> {
    fn new(input: R, big_endian: bool) -> Self {
        Self { input, big_endian, rest: Vec::new(), text: Vec::new(), used: 0, ended: false }
    }

    fn more(&mut self) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.rest);
        let read = self.input.by_ref().take(1 << 16).read_to_end(&mut bytes)?;
        self.ended = read == 0;
        let unit = |pair: &[u8; 2]| match self.big_endian {
            true => u16::from_be_bytes(*pair),
            false => u16::from_le_bytes(*pair),
        };
        let (pairs, odd) = bytes.as_chunks::<2>();
        let mut units: Vec<u16> = pairs.iter().map(unit).collect();
        let mut rest = odd.to_vec();
        if !self.ended && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            // Its other half is still to come.
            units.pop();
            rest = bytes.get(2 * units.len()..).unwrap_or_default().to_vec();
        }
        let mut text = String::from_utf16_lossy(&units);
        if self.ended && !rest.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            rest.clear();
        }
        (self.rest, self.used) = (rest, 0);
        self.text = text.into_bytes();
        Ok(())
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.used >= self.text.len() {
            if self.ended {
                return Ok(0);
            }
            self.more()?;
        }
        let read = self.text.get(self.used..).unwrap_or_default().read(into)?;
        self.used += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn read(bytes: &[u8]) -> (Vec<u8>, Option<Damage>) {
        let mut source = Source::open(bytes).unwrap();
        let mut text = Vec::new();
        source.read_to_end(&mut text).unwrap();
        assert_eq!(source.bytes_read(), bytes.len() as u64, "all of it is read");
        (text, source.damage())
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn archives_are_unpacked_with_all_their_members() {
        let text = "{\"a\": 1}\n".repeat(200_000).into_bytes();
        assert_eq!(read(&text), (text.clone(), None));
        let (half, rest) = text.split_at(700_001);
        let both = [gzip(half), gzip(rest)].concat();
        assert_eq!(read(&both), (text.clone(), None));
        assert_eq!(read(&[both, vec![0; 512]].concat()), (text.clone(), None));
        let frames = [half, rest].map(|part| zstd::encode_all(part, 1).unwrap()).concat();
        assert_eq!(read(&frames), (text, None));
        assert_eq!(read(&gzip(b"")), (Vec::new(), None));
    }

    #[test]
    fn a_damaged_archive_gives_what_is_whole_and_says_so() {
        let text: String = (0..60_000).map(|i| format!("{{\"n\": {i}}}\n")).collect();
        let packed = [gzip(text.as_bytes()), zstd::encode_all(text.as_bytes(), 1).unwrap()];
        for packed in &packed {
            let cut = &packed[..packed.len() / 2];
            let mut source = Source::open(cut).unwrap();
            let mut found = Vec::new();
            source.read_to_end(&mut found).unwrap();
            assert!(matches!(source.damage(), Some(Damage::Archive(_))), "{:?}", source.damage());
            assert!(text.as_bytes().starts_with(&found), "what came is what was there");
        }
        let mut flipped = packed[0].clone();
        let last = flipped.len() - 6;
        flipped[last] ^= 1;
        assert!(read(&flipped).1.is_some(), "the checksum is checked");
        assert!(read(&[gzip(b"{}"), b"more".to_vec()].concat()).1.is_some());
    }

    #[test]
    fn what_unpacks_to_a_thousand_times_its_size_is_stopped() {
        let zeros = io::repeat(b'x').take(UNPACKED_MIN + (64 << 20));
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        io::copy(&mut { zeros }, &mut encoder).unwrap();
        let packed = encoder.finish().unwrap();
        let mut source = Source::open(&*packed).unwrap();
        let unpacked = io::copy(&mut source, &mut io::sink()).unwrap();
        assert_eq!(source.damage(), Some(Damage::Bomb));
        assert!(unpacked <= UNPACKED_MIN, "{unpacked}");
    }

    #[test]
    fn utf16_becomes_utf8_whatever_its_order_and_wherever_it_is_cut() {
        let text = "{\"prompt\": \"größe 😀\"}\r\n".repeat(40_000);
        let units: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        let marked = |bytes: &[u8], mark: [u8; 2]| [&mark, bytes].concat();
        let mark = |text: &str| format!("\u{feff}{text}").into_bytes();
        assert_eq!(read(&little).0, text.as_bytes());
        assert_eq!(read(&big).0, text.as_bytes());
        assert_eq!(read(&marked(&little, [0xff, 0xfe])).0, mark(&text));
        assert_eq!(read(&marked(&big, [0xfe, 0xff])).0, mark(&text));
        assert_eq!(read(&little[..little.len() - 1]).0.len(), text.len() - 1 + 3, "an odd byte");
        assert_eq!(read(&gzip(&little)).0, text.as_bytes());
    }
}
