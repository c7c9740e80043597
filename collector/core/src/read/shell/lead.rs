//! Reads the part of a command before the program's name. A misread quote there could show an argument as a name. If
//! two shells read something differently, every function here returns `None`.

/// Maximum depth of substitutions inside each other.
const MAX_DEPTH: usize = 8;

/// A position in a command.
#[derive(Clone, Copy)]
pub(super) struct Lead<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lead<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// What is still to be read.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    pub(super) fn at_end(&self) -> bool {
        self.rest().is_empty()
    }

    /// Whether the command ends here.
    pub(super) fn at_separator(&self) -> bool {
        self.rest().first().is_none_or(|b| b"\n;&|".contains(b))
    }

    /// Skips blanks and continued lines.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.rest() {
                // bash knows no other blanks.
                [b' ' | b'\t', ..] | [b'\r', b'\n', ..] | [b'\r'] => self.at += 1,
                [b'\\', b'\n', ..] => self.at += 2,
                [b'\\', b'\r', b'\n', ..] => self.at += 3,
                _ => return,
            }
        }
    }

    /// Skips blanks, empty lines and comments.
    pub(super) fn skip_empty(&mut self) {
        loop {
            self.skip_blanks();
            match self.rest() {
                [b'\n', ..] => self.at += 1,
                [b'#', ..] => self.skip_comment(),
                _ => return,
            }
        }
    }

    fn skip_comment(&mut self) {
        let rest = self.rest();
        self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    }

    /// Skips the arguments of a command and its end, unless its end starts a pipe or a background job.
    pub(super) fn skip_statement(&mut self) -> Option<()> {
        loop {
            self.skip_blanks();
            match self.rest() {
                [] => return Some(()),
                [b';', b';' | b'&' | b'|', ..] => return None,
                [b'&', b'&', ..] | [b'|', b'|', ..] => {
                    self.at += 2;
                    // After `&&` at the end of the text, the shell waits for another command.
                    self.skip_empty();
                    return (!self.at_end()).then_some(());
                }
                [b';' | b'\n', ..] => {
                    self.at += 1;
                    return Some(());
                }
                [b'#', ..] => self.skip_comment(),
                [b'&', b'>', ..] => self.at += 2,
                redirection @ [b'<' | b'>', ..] => self.at += bare(redirection, true)?,
                [b'&' | b'|', ..] => return None,
                _ => {
                    self.word()?;
                }
            }
        }
    }

    /// Skips `NAME=value` or `NAME+=value`, and returns true. Returns false if there is no assignment here, and `None`
    /// if shells may disagree.
    pub(super) fn skip_assignment(&mut self) -> Option<bool> {
        let rest = self.rest();
        let name = rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        let equals = match rest.get(name..) {
            Some([b'=', ..]) => 1,
            Some([b'+', b'=', ..]) => 2,
            _ => return Some(false),
        };
        if name == 0 || rest.first().is_some_and(u8::is_ascii_digit) {
            return None;
        }
        self.at += name + equals;
        // In `TOKEN= abc` the program is `abc`. But the author may have meant an assignment.
        (!self.word()?.is_empty()).then_some(true)
    }

    /// Skips the `&` that PowerShell needs before the path of a program.
    pub(super) fn skip_call(&mut self) {
        if let [b'&', b' ', ..] = self.rest() {
            self.at += 2;
            self.skip_blanks();
        }
    }

    /// Moves behind a PowerShell assignment (`$name = "value"`), if its value is one word.
    pub(super) fn power_shell_assignment(mut self) -> Option<Self> {
        self.at += self.text.get(self.at..)?.strip_prefix('$').map(|_| 1)?;
        let is_name = |b: &&u8| b.is_ascii_alphanumeric() || b"_:".contains(b);
        self.at += self.rest().iter().take_while(is_name).count();
        self.skip_blanks();
        self.at += self.rest().starts_with(b"=").then_some(1)?;
        self.skip_blanks();
        self.word()?;
        self.skip_blanks();
        matches!(self.rest(), [] | [b';' | b'\n', ..]).then_some(self)
    }

    /// Reads the word in command position: a name or a path. A word in quotes is accepted only if it is a path that
    /// begins at a root or in this folder.
    pub(super) fn command_word(&mut self) -> Option<&'a str> {
        let word = match self.rest() {
            [quote @ (b'"' | b'\''), inner @ ..] => {
                let length = memchr::memchr(*quote, inner)?;
                let word = self.text.get(self.at + 1..self.at + 1 + length)?;
                self.at += length + 2;
                Some(word).filter(|word| is_quoted_path(word))?
            }
            rest => {
                let length = rest.iter().take_while(|b| is_path_byte(**b)).count();
                let word = self.text.get(self.at..self.at + length)?;
                self.at += length;
                Some(word).filter(|word| is_bare_path(word))?
            }
        };
        (self.ends_word() && self.begins_arguments()).then_some(word)
    }

    fn ends_word(&self) -> bool {
        matches!(
            self.rest(),
            [] | [b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>', ..]
                | [b'\r']
                | [b'\r', b'\n', ..]
        )
    }

    /// Whether the next characters can begin arguments. `TOKEN = abc` is an assignment in other languages, and `name
    /// ()` begins a function.
    fn begins_arguments(mut self) -> bool {
        self.skip_blanks();
        !matches!(self.rest(), [b'=' | b'(', ..] | [b'+', b'=', ..])
    }

    /// Reads one word with its quotes and substitutions. The word is empty if none stands here.
    pub(super) fn word(&mut self) -> Option<&'a str> {
        let start = self.at;
        // Open double quotes and substitutions, with their starts.
        let mut open: Vec<(u8, usize)> = Vec::new();
        loop {
            let quoted = open.last().is_some_and(|(kind, _)| *kind == b'"');
            self.at += match self.rest() {
                [] => break,
                _ if open.is_empty() && self.ends_word() => break,
                [b'\r', ..] if open.is_empty() => return None,
                text if is_smart_quote(text) => return None,
                [b'"', ..] if quoted => {
                    open.pop();
                    1
                }
                [b'"', ..] => {
                    open.push((b'"', self.at));
                    1
                }
                [b')', ..] if !quoted && !open.is_empty() => {
                    let (_, from) = open.pop()?;
                    // The patterns of `case` contain closing parentheses without an opening one.
                    (!self.text.get(from..self.at)?.contains("case")).then_some(1)?
                }
                [b'$', b'(', after, ..] if *after != b'(' => {
                    open.push((b')', self.at));
                    2
                }
                [b'$', b'(' | b'[', ..] | [b'`', ..] => return None,
                [b'$', b'{', name @ ..] => 3 + variable(name)?,
                [b'\\', next, ..] => escape(*next, open.is_empty())?,
                [b'\\'] => return None,
                _ if quoted => 1,
                [b'\'', inner @ ..] => 2 + single_quoted(inner)?,
                rest => bare(rest, open.is_empty())?,
            };
            if open.len() > MAX_DEPTH {
                return None;
            }
        }
        if open.is_empty() { self.text.get(start..self.at) } else { None }
    }
}

/// Length of a name in `${name}`. Other forms of `${…}` may contain blanks and quotes.
fn variable(name: &[u8]) -> Option<usize> {
    let length = name.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    (name.get(length) == Some(&b'}')).then_some(length)
}

/// Length of a backslash and the character after it. PowerShell and cmd.exe do not use the backslash as an escape, so
/// the character must be one that has no meaning of its own.
fn escape(next: u8, top: bool) -> Option<usize> {
    let matters = b"\"'`$;&|()<>#{}\n\r".contains(&next);
    // A backslash before a line break continues the line. This is safe outside of quotes only.
    let continued = top && next == b'\n';
    (!matters || continued).then_some(2)
}

/// Length of text in single quotes. fish has escapes inside them, and cmd.exe does not know these quotes; such text is
/// refused.
fn single_quoted(inner: &[u8]) -> Option<usize> {
    let length = memchr::memchr(b'\'', inner)?;
    let text = inner.get(..length)?;
    let doubles = memchr::memchr_iter(b'"', text).count();
    let smart = text.windows(3).any(is_smart_quote);
    (!smart && text.last() != Some(&b'\\') && doubles.is_multiple_of(2)).then_some(length)
}

/// Whether one of U+2018 to U+201F begins here. PowerShell treats these characters as quotes.
fn is_smart_quote(text: &[u8]) -> bool {
    matches!(text, [0xe2, 0x80, 0x98..=0x9f, ..])
}

/// Length of a character outside of quotes. A redirection includes its `&`.
fn bare(rest: &[u8], top: bool) -> Option<usize> {
    match rest {
        [b'<', b'<' | b'(' | b'#', ..] | [b'>', b'(', ..] => None,
        [b'<' | b'>', b'&' | b'|', ..] => Some(2),
        [b'@', b'"' | b'\'' | b'{', ..] => None,
        [b'(' | b')' | b'{' | b'}' | b'^', ..] => None,
        // A comment could hide the end of a substitution.
        [b'#', ..] if !top => None,
        _ => Some(1),
    }
}

fn is_path_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"._+-/\\:~".contains(&b)
}

/// Whether text without quotes is a name or a path. A path on a drive must name a file with an extension: `C:\Users\A
/// B` without quotes is a folder's name cut at its blank.
fn is_bare_path(word: &str) -> bool {
    let of_drive = |word: &str| {
        let base = word.rsplit(['/', '\\']).next().unwrap_or_default();
        is_drive(word) && !word.get(2..).unwrap_or_default().contains(':') && base.contains('.')
    };
    (!word.contains(':') || of_drive(word))
        && word.rfind('~').is_none_or(|at| at == 0)
        && !word.ends_with(['/', '\\'])
}

fn is_drive(word: &str) -> bool {
    matches!(word.as_bytes(), [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic())
}

/// Whether text in quotes is a path. Any other quoted text may be a value that PowerShell would print.
fn is_quoted_path(word: &str) -> bool {
    let rooted = ["/", "./", "../", "~/", ".\\", "..\\", "\\\\"];
    (is_drive(word) || rooted.iter().any(|root| word.starts_with(root)))
        && word.bytes().all(|b| is_path_byte(b) || b" ()".contains(&b))
        && !word.contains(" -")
}
