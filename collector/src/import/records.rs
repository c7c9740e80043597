//! Divides a text into JSON objects in any layout: one per line, pretty-printed, one after the other without a line
//! break, as elements of an array, or after a log's own text.
//!
//! An object ends where its braces close. Text that is not JSON is returned line by line. Every line is read a bounded
//! number of times, no matter what it contains.

use std::io::{self, Read};

use memchr::{memchr, memchr_iter, memchr3};

/// Maximum length of an object or line. The rest of a longer one is left out.
pub(super) const LONGEST: usize = 64 << 20;
/// An object must begin within this many bytes of its line. Otherwise the line is text.
const PREFIX: usize = 1_024;
/// Bytes read at a time.
const READ: usize = 256 << 10;

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item<'a> {
    /// Number of its first line, from 1.
    pub(super) line: u64,
    /// The text before it on its line.
    pub(super) prefix: &'a [u8],
    /// The object, or the line.
    pub(super) body: &'a [u8],
    pub(super) kind: Kind,
}

/// What an [`Item`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A JSON object.
    Object,
    /// The text begins like an object but is not one.
    Broken,
    /// Like `Broken`, and the text ends inside it.
    Unfinished,
    /// The beginning of an object or a line of more than [`LONGEST`] bytes.
    Cut,
    /// A line without an object.
    Text,
}

/// Reads items.
pub(super) struct Records<R> {
    input: R,
    buffer: Vec<u8>,
    /// Number of bytes of the buffer that were returned.
    used: usize,
    ended: bool,
    line: u64,
    /// Number of bytes returned so far.
    offset: u64,
    /// Up to this offset an object must end on its own line, because an object of several lines was tried and failed.
    single_until: u64,
    /// The beginning of an item that is too long.
    cut: Vec<u8>,
}

/// Where an object ends, relative to the bytes not yet returned.
enum End {
    At(usize),
    Invalid(usize),
    Unfinished,
    TooLong,
}

impl<R: Read> Records<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            used: 0,
            ended: false,
            line: 1,
            offset: 0,
            single_until: 0,
            cut: Vec::new(),
        }
    }

    /// The next item.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<Item<'_>>> {
        if !self.skip_separators()? {
            return Ok(None);
        }
        let line = self.line;
        let Some(start) = self.object_start()? else {
            let end = self.line_end(LONGEST)?;
            if end == LONGEST {
                return self.hand_out_cut(line, 0);
            }
            return self.hand_out(line, 0, 0..end, Kind::Text);
        };
        match self.object_end(start)? {
            End::At(end) if self.line_goes_on(end)? => {
                self.hand_out(line, start, start..end, Kind::Object)
            }
            End::TooLong => self.hand_out_cut(line, start),
            End::Unfinished if self.single_until <= self.offset => {
                let end = self.broken_end(start, self.unread().len())?;
                let all = end == self.unread().len();
                let kind = if all { Kind::Unfinished } else { Kind::Broken };
                self.hand_out(line, start, start..end, kind)
            }
            End::Invalid(at) => {
                let end = self.broken_end(start, at)?;
                self.hand_out(line, start, start..end, Kind::Broken)
            }
            End::At(end) => {
                // Something else follows the object on its last line.
                let end = end + self.line_end_from(end)?;
                self.hand_out(line, start, start..end, Kind::Broken)
            }
            End::Unfinished => {
                let end = start + self.line_end_from(start)?;
                self.hand_out(line, start, start..end, Kind::Broken)
            }
        }
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.used..).unwrap_or_default()
    }

    /// Reads more of the input. Returns false at its end.
    fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.used > READ && self.used > self.buffer.len() / 2 {
            self.buffer.drain(..self.used);
            self.used = 0;
        }
        let old = self.buffer.len();
        self.buffer.resize(old + READ, 0);
        let read = loop {
            match self.input.read(self.buffer.get_mut(old..).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(old + read.as_ref().copied().unwrap_or(0));
        self.ended = read? == 0;
        Ok(!self.ended)
    }

    fn consume(&mut self, bytes: usize) {
        let gone = self.unread().get(..bytes).unwrap_or_default();
        self.line += memchr_iter(b'\n', gone).count() as u64;
        self.used += bytes;
        self.offset += bytes as u64;
    }

    fn hand_out(
        &mut self,
        line: u64,
        prefix: usize,
        body: std::ops::Range<usize>,
        kind: Kind,
    ) -> io::Result<Option<Item<'_>>> {
        let start = self.used;
        self.consume(body.end);
        let at = |range: std::ops::Range<usize>| {
            self.buffer.get(start + range.start..start + range.end).unwrap_or_default()
        };
        Ok(Some(Item {
            line,
            prefix: at(0..prefix).trim_ascii(),
            body: at(body).trim_ascii(),
            kind,
        }))
    }

    /// Returns the beginning of an object or line that is too long, and skips the rest of its line.
    fn hand_out_cut(&mut self, line: u64, prefix: usize) -> io::Result<Option<Item<'_>>> {
        self.cut = self.unread().get(..prefix + LONGEST).unwrap_or_default().to_vec();
        self.consume(self.cut.len());
        loop {
            let rest = self.unread();
            if let Some(end) = memchr(b'\n', rest) {
                self.consume(end);
                break;
            }
            self.consume(rest.len());
            (self.used, self.buffer) = (0, Vec::new());
            if !self.fill()? {
                break;
            }
        }
        let (prefix, body) = self.cut.split_at(prefix);
        Ok(Some(Item { line, prefix: prefix.trim_ascii(), body, kind: Kind::Cut }))
    }

    /// Skips separators between objects. Returns false at the end of the text.
    fn skip_separators(&mut self) -> io::Result<bool> {
        loop {
            let Some(byte) = self.unread().first().copied() else {
                if self.fill()? { continue } else { return Ok(false) }
            };
            let separates = match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b']' | 0x1e => true,
                b'[' => self.opens_array()?,
                _ => false,
            };
            if !separates {
                return Ok(true);
            }
            self.consume(1);
        }
    }

    /// Whether the bracket here begins an array of objects. It may also begin a time in brackets.
    fn opens_array(&mut self) -> io::Result<bool> {
        let mut at = 1;
        loop {
            match self.unread().get(at).copied() {
                Some(byte) if byte.is_ascii_whitespace() && at < PREFIX => at += 1,
                Some(byte) => return Ok(matches!(byte, b'{' | b'[' | b']')),
                None if self.fill()? => {}
                None => return Ok(false),
            }
        }
    }

    /// Bytes until the end of this line, at most about `most`.
    fn line_end(&mut self, most: usize) -> io::Result<usize> {
        let mut looked = 0;
        loop {
            let unread = self.unread();
            if let Some(end) = memchr(b'\n', unread.get(looked..).unwrap_or_default()) {
                return Ok((looked + end).min(most));
            }
            looked = unread.len();
            if looked >= most || !self.fill()? {
                return Ok(looked.min(most));
            }
        }
    }

    fn object_start(&mut self) -> io::Result<Option<usize>> {
        let end = self.line_end(PREFIX)?;
        Ok(memchr(b'{', self.unread().get(..end).unwrap_or_default()))
    }

    /// Where the object at `start` ends.
    fn object_end(&mut self, start: usize) -> io::Result<End> {
        let mut syntax = Syntax { single: self.offset < self.single_until, ..Syntax::default() };
        let mut at = start;
        loop {
            match syntax.feed(self.unread().get(at..).unwrap_or_default()) {
                Step::End(end) => return Ok(End::At(at + end)),
                Step::Invalid(bad) => return Ok(End::Invalid(at + bad)),
                Step::More => at = self.unread().len(),
            }
            if at - start >= LONGEST {
                return Ok(End::TooLong);
            }
            if !self.fill()? {
                return Ok(End::Unfinished);
            }
        }
    }

    /// Whether an object is followed by something valid: the end of its line, or the next object.
    fn line_goes_on(&mut self, mut at: usize) -> io::Result<bool> {
        loop {
            match self.unread().get(at).copied() {
                Some(b' ' | b'\t' | b'\r' | 0x1e) => at += 1,
                Some(byte) => return Ok(matches!(byte, b'\n' | b',' | b']' | b'{' | b'[')),
                None if self.fill()? => {}
                None => return Ok(true),
            }
        }
    }

    /// The end of a text that begins like an object and stops being one at `bad`. It includes its own line and the
    /// following lines up to `bad` that are not objects of their own.
    fn broken_end(&mut self, start: usize, bad: usize) -> io::Result<usize> {
        self.single_until = self.single_until.max(self.offset + bad as u64);
        let mut end = start + self.line_end_from(start)?;
        while end < bad {
            let next = end + 1;
            let line = next + self.line_end_from(next)?;
            if line > bad || self.holds_object(next, line) {
                break;
            }
            end = line;
        }
        Ok(end.min(self.unread().len()))
    }

    fn line_end_from(&mut self, start: usize) -> io::Result<usize> {
        loop {
            let rest = self.unread().get(start..).unwrap_or_default();
            match memchr(b'\n', rest) {
                Some(end) => return Ok(end),
                None if rest.len() < LONGEST && self.fill()? => {}
                None => return Ok(self.unread().len().saturating_sub(start)),
            }
        }
    }

    fn holds_object(&self, start: usize, end: usize) -> bool {
        let line = self.unread().get(start..end).unwrap_or_default();
        let Some(brace) = memchr(b'{', line.get(..PREFIX.min(line.len())).unwrap_or_default())
        else {
            return false;
        };
        let rest = line.get(brace..).unwrap_or_default();
        match (Syntax { single: true, ..Syntax::default() }).feed(rest) {
            Step::End(end) => rest.get(end..).unwrap_or_default().trim_ascii().is_empty(),
            _ => false,
        }
    }
}

enum Step {
    /// The value ends before this byte.
    End(usize),
    /// This byte cannot stand here.
    Invalid(usize),
    More,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expect {
    #[default]
    Value,
    KeyOrEnd,
    Key,
    Colon,
    ValueOrEnd,
    CommaOrEnd,
}

/// Parses enough JSON to find a value's end. Numbers and words are not checked.
#[derive(Debug, Default)]
struct Syntax {
    /// The open braces and brackets.
    open: Vec<u8>,
    expect: Expect,
    in_string: bool,
    is_key: bool,
    in_word: bool,
    escaped: bool,
    /// A line break ends it.
    single: bool,
}

impl Syntax {
    fn feed(&mut self, bytes: &[u8]) -> Step {
        let mut at = 0;
        while let Some(byte) = bytes.get(at).copied() {
            if self.in_string {
                match self.string(bytes.get(at..).unwrap_or_default()) {
                    Ok(used) => at += used,
                    Err(bad) => return Step::Invalid(at + bad),
                }
                continue;
            }
            if self.in_word {
                if matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.') {
                    at += 1;
                    continue;
                }
                self.in_word = false;
            }
            if byte == b'\n' && self.single || !self.structure(byte) {
                return Step::Invalid(at);
            }
            at += 1;
            if self.open.is_empty() {
                return Step::End(at);
            }
        }
        Step::More
    }

    /// Continues inside a string. Returns `Err` at a raw line break.
    fn string(&mut self, bytes: &[u8]) -> Result<usize, usize> {
        let mut at = 0;
        if std::mem::take(&mut self.escaped) {
            if bytes.first() == Some(&b'\n') {
                return Err(0);
            }
            at = 1;
        }
        while let Some(found) = memchr3(b'"', b'\\', b'\n', bytes.get(at..).unwrap_or_default()) {
            at += found;
            match bytes.get(at) {
                Some(b'"') => {
                    self.in_string = false;
                    self.expect = if self.is_key { Expect::Colon } else { Expect::CommaOrEnd };
                    return Ok(at + 1);
                }
                Some(b'\\') if at + 1 == bytes.len() => {
                    self.escaped = true;
                    return Ok(bytes.len());
                }
                Some(b'\\') if bytes.get(at + 1) != Some(&b'\n') => at += 2,
                _ => return Err(at),
            }
        }
        Ok(bytes.len())
    }

    /// Handles one byte outside strings and words. Returns false if the byte is invalid here.
    fn structure(&mut self, byte: u8) -> bool {
        use Expect::{Colon, CommaOrEnd, Key, KeyOrEnd, Value, ValueOrEnd};
        match (byte, self.expect) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => {}
            (b'"', Key | KeyOrEnd) => (self.in_string, self.is_key) = (true, true),
            (b'"', Value | ValueOrEnd) => (self.in_string, self.is_key) = (true, false),
            (b':', Colon) => self.expect = Value,
            (b'{', Value | ValueOrEnd) => {
                self.open.push(b'{');
                self.expect = KeyOrEnd;
            }
            (b'[', Value | ValueOrEnd) => {
                self.open.push(b'[');
                self.expect = ValueOrEnd;
            }
            (b'}', KeyOrEnd | CommaOrEnd) if self.open.last() == Some(&b'{') => self.close(),
            (b']', ValueOrEnd | CommaOrEnd) if self.open.last() == Some(&b'[') => self.close(),
            (b',', CommaOrEnd) => {
                self.expect = if self.open.last() == Some(&b'{') { Key } else { Value };
            }
            (b'-' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z', Value | ValueOrEnd) => {
                (self.in_word, self.expect) = (true, CommaOrEnd);
            }
            _ => return false,
        }
        true
    }

    fn close(&mut self) {
        self.open.pop();
        self.expect = Expect::CommaOrEnd;
    }
}

#[cfg(test)]
mod tests;
