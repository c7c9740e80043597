//! Removes the escapes from text, and maps positions back to the original text.
//!
//! Rules see `{"password": "x"}` whether the JSON stands alone, inside a JSON string, or inside a string of a string. A
//! run of backslashes and the character it escapes become one character, so a replacement always covers whole escapes.

/// A text without escapes.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) text: Vec<u8>,
    /// After each escape: position in `text`, position in the original.
    jumps: Vec<(usize, usize)>,
}

impl View {
    /// Removes the escapes of `text`.
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut view = Self { text: Vec::with_capacity(text.len()), jumps: Vec::new() };
        let mut at = 0;
        while let Some(next) = memchr::memchr(b'\\', text.get(at..).unwrap_or_default()) {
            view.text.extend_from_slice(text.get(at..at + next).unwrap_or_default());
            let start = at + next;
            let run = run_length(text, start);
            let (character, length) = escaped(text.get(start + run..).unwrap_or_default());
            // At depth `k`, a line break is written with `2^k / 2` backslashes. Further backslashes are text before the
            // line break.
            if character == b'\n' && !run.is_power_of_two() {
                view.text.push(b'\\');
                view.jumps.push((view.text.len(), start + run - (run & run.wrapping_neg())));
            }
            view.text.push(character);
            at = start + run + length;
            view.jumps.push((view.text.len(), at));
        }
        view.text.extend_from_slice(text.get(at..).unwrap_or_default());
        view
    }

    /// Like [`Self::of`], but also decodes the escapes of URLs: `%20` is a space.
    pub(crate) fn of_url(text: &[u8]) -> Self {
        let plain = Self::of(text);
        let mut view = Self { text: Vec::with_capacity(plain.text.len()), jumps: Vec::new() };
        let mut jumps = plain.jumps.iter().peekable();
        let mut at = 0;
        while let Some(byte) = plain.text.get(at) {
            let decoded = percent(plain.text.get(at..).unwrap_or_default());
            view.text.push(decoded.unwrap_or(*byte));
            at += if decoded.is_some() { 3 } else { 1 };
            let passed = std::iter::from_fn(|| jumps.next_if(|(jump, _)| *jump <= at)).count() > 0;
            if passed || decoded.is_some() {
                view.jumps.push((view.text.len(), plain.original(at)));
            }
        }
        view
    }

    /// The position in the original text of the character at `at` in the view.
    pub(crate) fn original(&self, at: usize) -> usize {
        let before = self.jumps.partition_point(|(view, _)| *view <= at);
        match before.checked_sub(1).and_then(|index| self.jumps.get(index)) {
            Some((view, original)) => original + (at - view),
            None => at,
        }
    }
}

/// Whether `text` holds an escape of URLs.
pub(crate) fn has_percent(text: &[u8]) -> bool {
    memchr::memchr_iter(b'%', text).any(|at| percent(text.get(at..).unwrap_or_default()).is_some())
}

/// The ASCII character that the beginning of `text` stands for, as in `%3D`.
fn percent(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"%")?.get(..2)?;
    let number = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (digits.iter().all(u8::is_ascii_hexdigit) && number < 0x80).then_some(number)
}

/// Number of consecutive backslashes from `start`.
fn run_length(text: &[u8], start: usize) -> usize {
    text.get(start..).unwrap_or_default().iter().take_while(|byte| **byte == b'\\').count()
}

/// The character that a run of backslashes means together with the beginning of `rest`, and the number of bytes of
/// `rest` that it takes.
fn escaped(rest: &[u8]) -> (u8, usize) {
    match rest.first() {
        Some(b'n') => (b'\n', 1),
        Some(b'r') => (b'\r', 1),
        Some(b't') => (b'\t', 1),
        Some(quote @ (b'"' | b'\'' | b'/' | b'`')) => (*quote, 1),
        Some(b'u') => match rest.get(1..5).and_then(ascii) {
            Some(character) => (character, 5),
            None => (b'\\', 0),
        },
        _ => (b'\\', 0),
    }
}

/// The ASCII character with these four hexadecimal digits.
fn ascii(digits: &[u8]) -> Option<u8> {
    let number = u8::from_str_radix(std::str::from_utf8(digits.get(2..)?).ok()?, 16).ok()?;
    (digits.starts_with(b"00") && number < 0x80).then_some(number)
}

/// The end of a quoted value. `end` is the first quote; it belongs to the value if it is escaped more deeply than the
/// opening quote.
///
/// A quote at depth `k` stands after `2^k - 1` backslashes. A further backslash in the value is doubled as often.
pub(crate) fn end_of_quoted(text: &[u8], start: usize, end: usize) -> usize {
    const MAX: usize = 4 * 1_024;
    let Some(quote @ (b'"' | b'\'')) = start.checked_sub(1).and_then(|at| text.get(at)).copied()
    else {
        return end;
    };
    let opening = backslashes_before(text, start - 1);
    let limit = text.len().min(end.saturating_add(MAX));
    // In the original text, `end` stands before the backslashes of the quote that ends the value in the view.
    let mut at = end;
    while let Some(found) = memchr::memchr(quote, text.get(at..limit).unwrap_or_default()) {
        let run = backslashes_before(text, at + found);
        if at == end && at + found != end + run {
            return end;
        }
        let is_closing = run % ((opening + 1) * 2) == opening;
        if is_closing {
            // Backslashes beyond those of the closing quote belong to the value.
            return (at + found - opening).max(end);
        }
        at += found + 1;
    }
    end
}

fn backslashes_before(text: &[u8], at: usize) -> usize {
    text.get(..at).unwrap_or_default().iter().rev().take_while(|byte| **byte == b'\\').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_any_depth_are_one_character() {
        for text in [r#"a"b"#, r#"a\"b"#, r#"a\\\"b"#, r"a\u0022b", r"a\\u0022b"] {
            let view = View::of(text.as_bytes());
            assert_eq!(view.text, b"a\"b", "{text}");
            assert_eq!((view.original(0), view.original(1)), (0, 1));
            assert_eq!(view.original(2), text.len() - 1);
            assert_eq!(view.original(3), text.len());
        }
    }

    #[test]
    fn escapes_of_urls_are_one_character() {
        assert_eq!(View::of_url(b"a%20b").text, b"a b");
        let text = r#"x\\"%3Dy%zz"#;
        let view = View::of_url(text.as_bytes());
        assert_eq!(view.text, b"x\"=y%zz");
        assert_eq!(
            (view.original(1), view.original(2), view.original(3)),
            (1, text.len() - 7, text.len() - 4)
        );
        assert_eq!(view.original(view.text.len()), text.len());
    }

    #[test]
    fn an_escaped_quote_inside_a_value_does_not_end_the_value() {
        for (text, value) in [
            (r#""ab\"cd" x"#, r#"ab\"cd"#),
            (r#"\"ab\\\"cd\" x"#, r#"ab\\\"cd"#),
            (r#""ab" "x\" y""#, "ab"),
            (r#""ab\\" x"#, r"ab\\"),
        ] {
            let start = text.find('a').unwrap();
            let end = end_of_quoted(text.as_bytes(), start, start + 2);
            assert_eq!(text.get(start..end), Some(value), "{text}");
        }
    }

    #[test]
    fn a_hundred_thousand_backslashes_are_one() {
        let text = "\\".repeat(100_000) + "\"";
        let view = View::of(text.as_bytes());
        assert_eq!(view.text, b"\"");
    }
}
