//! Reads the part after the name as bash does. A misreading here can lose the name, or return the name of the first of
//! several commands. It cannot show any other word.

/// Maximum nesting of quotes and substitutions.
const MAX_DEPTH: usize = 64;

/// Maximum number of here-documents that begin in one line.
const MAX_DOCUMENTS: usize = 16;

/// Whether the command that `text` continues is the last one: only arguments, redirections and here-documents follow.
pub(super) fn is_last(text: &[u8]) -> bool {
    let mut rest = Rest { text, at: 0, open: Vec::new(), documents: Vec::new() };
    rest.arguments().is_some_and(|()| rest.nothing_follows().is_some())
}

struct Rest<'a> {
    text: &'a [u8],
    at: usize,
    /// The byte that ends each open quote or substitution.
    open: Vec<u8>,
    /// Here-documents whose text begins on the next line.
    documents: Vec<Document<'a>>,
}

struct Document<'a> {
    end: &'a [u8],
    /// `<<-`: tabs before the end word are ignored.
    indented: bool,
}

impl<'a> Rest<'a> {
    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Moves to the end of the command.
    fn arguments(&mut self) -> Option<()> {
        loop {
            let inside = self.open.last().copied();
            let step = match inside {
                Some(b'"' | b'}') => self.quoted(inside == Some(b'}'))?,
                _ if self.ends_here() => return Some(()),
                _ => self.bare(inside)?,
            };
            self.at += step;
            if self.open.len() > MAX_DEPTH || self.documents.len() > MAX_DOCUMENTS {
                return None;
            }
        }
    }

    fn ends_here(&self) -> bool {
        self.open.is_empty()
            && match self.rest() {
                [] | [b'\n' | b';' | b'|', ..] => true,
                [b'&', next @ ..] => !next.starts_with(b">"),
                _ => false,
            }
    }

    /// One step in double quotes or in `${…}`.
    fn quoted(&mut self, braces: bool) -> Option<usize> {
        match self.rest() {
            [] => None,
            [b'\\', ..] => Some(2),
            [b'$', b'(', ..] => Some(self.push(b')', 2)),
            [b'$', b'{', ..] => Some(self.push(b'}', 2)),
            [b'`', inner @ ..] => Some(2 + until(b'`', inner)?),
            [b'"', ..] if braces => Some(self.push(b'"', 1)),
            [byte, ..] => {
                if self.open.last() == Some(byte) {
                    self.open.pop();
                }
                Some(1)
            }
        }
    }

    /// One step outside of quotes.
    fn bare(&mut self, inside: Option<u8>) -> Option<usize> {
        match self.rest() {
            [] => None,
            [b'\\', ..] => Some(2),
            [b'\'', inner @ ..] => Some(2 + memchr::memchr(b'\'', inner)?),
            [b'$', b'\'', inner @ ..] => Some(3 + until(b'\'', inner)?),
            [b'`', inner @ ..] => Some(2 + until(b'`', inner)?),
            [b'"', ..] => Some(self.push(b'"', 1)),
            [b'$', b'{', ..] => Some(self.push(b'}', 2)),
            [b'$' | b'<' | b'>', b'(', ..] => Some(self.push(b')', 2)),
            // A group of commands, unless it is inside a substitution.
            [b'(', ..] => inside.map(|_| self.push(b')', 1)),
            [b')', ..] => self.open.pop().map(|_| 1),
            [b'#', comment @ ..] if self.begins_word() => {
                Some(1 + memchr::memchr(b'\n', comment).unwrap_or(comment.len()))
            }
            [b'<', b'<', b'<', ..] => Some(3),
            [b'<', b'<', after @ ..] => Some(2 + self.document(after)?),
            [b'<' | b'>', b'&' | b'|', ..] | [b'&', b'>', ..] => Some(2),
            [b'\n', ..] => {
                self.at += 1;
                self.skip_documents()?;
                Some(0)
            }
            _ => Some(1),
        }
    }

    fn push(&mut self, end: u8, step: usize) -> usize {
        self.open.push(end);
        step
    }

    fn begins_word(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.text.get(at));
        before.is_none_or(|b| b" \t\r\n;&|(".contains(b))
    }

    /// Reads the end word of a here-document, which begins at `after`. Returns the word's length.
    fn document(&mut self, after: &'a [u8]) -> Option<usize> {
        let indented = after.first() == Some(&b'-');
        let mut from = usize::from(indented);
        from += after.get(from..)?.iter().take_while(|b| b" \t".contains(b)).count();
        let (end, length) = match after.get(from..)? {
            [quote @ (b'"' | b'\''), word @ ..] => {
                let length = memchr::memchr(*quote, word)?;
                (word.get(..length)?, length + 2)
            }
            word => {
                let skip = usize::from(word.first() == Some(&b'\\'));
                let word = word.get(skip..)?;
                let plain = |b: &&u8| b.is_ascii_alphanumeric() || b"_-.".contains(b);
                let length = word.iter().take_while(plain).count();
                (word.get(..length)?, length + skip)
            }
        };
        self.documents.push(Document { end, indented });
        (!end.is_empty()).then_some(from + length)
    }

    /// Skips the texts of the here-documents that begin after this line.
    fn skip_documents(&mut self) -> Option<()> {
        for document in std::mem::take(&mut self.documents) {
            loop {
                let rest = self.rest();
                let end = memchr::memchr(b'\n', rest);
                let mut line = rest.get(..end.unwrap_or(rest.len()))?;
                self.at += line.len() + usize::from(end.is_some());
                line = line.strip_suffix(b"\r").unwrap_or(line);
                if document.indented {
                    line = line.get(line.iter().take_while(|b| **b == b'\t').count()..)?;
                }
                if line == document.end {
                    break;
                }
                end?;
            }
        }
        Some(())
    }

    /// Whether only blanks, empty lines and comments follow the command.
    fn nothing_follows(&mut self) -> Option<()> {
        match self.rest() {
            [b'&', b'&', ..] | [b'|', ..] => return None,
            [b';' | b'&', ..] => self.at += 1,
            _ => {}
        }
        loop {
            match self.rest() {
                [] => return self.documents.is_empty().then_some(()),
                [b'#', ..] | [b'\n', ..] => self.at += self.bare(None)?,
                [b' ' | b'\t' | b'\r', ..] => self.at += 1,
                _ => return None,
            }
        }
    }
}

/// Position of `end`, unless a backslash stands before it.
fn until(end: u8, text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'\\' => at += 2,
            byte if *byte == end => return Some(at),
            _ => at += 1,
        }
    }
}
