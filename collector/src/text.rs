//! Makes text from elsewhere safe for a terminal.

use std::borrow::Cow;
use std::str::Chars;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// `text` on one line of at most `columns`, without anything that a terminal would interpret. Control characters are
/// replaced by visible symbols. Characters that reorder text, hide text or take no room are replaced by their names.
///
/// Pages follow the same rule (`dashboard/web/app/format/text.js`). Both are tested with
/// `dashboard/web/tests/corpus/hidden.json`.
#[must_use]
pub(crate) fn visible(text: &str, columns: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    let mut before = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let stays = is_presentation(c, before.replace(c), &rest);
        let shown = if stays { c.to_string() } else { picture(c) };
        used += shown.width();
        out.push_str(&shown);
        if used > columns {
            // Makes room for the ellipsis, which takes one column.
            while used >= columns.max(1) {
                let Some(last) = out.pop() else { break };
                used -= last.width().unwrap_or(0);
            }
            if columns > 0 {
                out.push('…');
            }
            break;
        }
    }
    out
}

fn picture(c: char) -> String {
    match c {
        '\t' => " ".to_owned(),
        '\n' => "↵".to_owned(),
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('?').to_string(),
        '\x7f' => "␡".to_owned(),
        c if is_hidden(c) => format!("[U+{:04X}]", u32::from(c)),
        _ => c.to_string(),
    }
}

/// Characters that reorder text, hide text or take no room: C1 controls, soft hyphen, fillers, direction marks,
/// joiners, variation selectors, tags, and all others that Unicode calls ignorable.
const fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether `c` selects the presentation of the symbol `before` it, as text or as a picture. Such a selector is part of
/// the symbol; in any other place it hides something.
fn is_presentation(c: char, before: Option<char>, rest: &Chars<'_>) -> bool {
    let is_symbol = |c: char| {
        matches!(
            c,
            '\u{a9}'
                | '\u{ae}'
                | '\u{203c}'
                | '\u{2049}'
                | '\u{2122}'
                | '\u{2139}'
                | '\u{2190}'..='\u{2bff}'
                | '\u{3030}'
                | '\u{303d}'
                | '\u{3297}'
                | '\u{3299}'
                | '\u{1f000}'..='\u{1faff}'
        )
    };
    let is_keycap = || rest.as_str().starts_with('\u{20e3}');
    matches!(c, '\u{fe0e}' | '\u{fe0f}') && (before.is_some_and(is_symbol) || is_keycap())
}

/// `text` with hidden characters replaced by their names, and with the same line breaks. `None` if there are no such
/// characters.
#[must_use]
pub(crate) fn spelled(text: &str) -> Option<String> {
    if !text.contains(is_hidden) {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 64);
    let mut before = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if is_hidden(c) && !is_presentation(c, before, &rest) {
            out.push_str(&picture(c));
        } else {
            out.push(c);
        }
        before = Some(c);
    }
    Some(out)
}

/// A JSON document with hidden characters replaced by escapes. Its meaning stays the same.
#[must_use]
pub(crate) fn escaped_json(json: &str) -> Cow<'_, str> {
    if !json.contains(|c| c == '\x7f' || is_hidden(c)) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 64);
    let mut units = [0; 2];
    let mut before = None;
    let mut rest = json.chars();
    while let Some(c) = rest.next() {
        let stays = is_presentation(c, before.replace(c), &rest);
        if stays || (c != '\x7f' && !is_hidden(c)) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut units) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    Cow::Owned(out)
}

/// `text` made visible, and padded with spaces to exactly `columns`.
#[must_use]
pub(crate) fn cell(text: &str, columns: usize) -> String {
    let shown = visible(text, columns);
    let fill = columns.saturating_sub(shown.width());
    shown + &" ".repeat(fill)
}

/// `text` made visible, and aligned to the right within `columns`.
#[must_use]
pub(crate) fn right(text: &str, columns: usize) -> String {
    let shown = visible(text, columns);
    " ".repeat(columns.saturating_sub(shown.width())) + &shown
}

/// `text` made visible, and broken into lines of at most `columns`, between words if possible.
#[must_use]
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(10);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in visible(text, usize::MAX).split_inclusive([' ', '-']) {
        if !line.is_empty() && line.width() + word.trim_end().width() > columns {
            lines.push(line.trim_end().to_owned());
            line.clear();
        }
        for c in word.chars() {
            if line.width() + c.width().unwrap_or(0) > columns && c != ' ' {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// The operating system's reason, without its number: "Permission denied".
#[must_use]
pub(crate) fn reason(error: &std::io::Error) -> String {
    let said = error.to_string();
    said.split_once(" (os error ").map_or(said.as_str(), |(said, _)| said).to_owned()
}

/// A duration in at most six characters, rounded: `0s`, `420µs`, `3.4ms`, `12ms`, `20.1s`, `2m05s`, `3h07m`, `3d04h`, `120d`.
///
/// Pages follow the same rules for durations, ages, counts and sizes (`dashboard/web/app/format/quantity.js`). Both are tested with
/// `dashboard/web/tests/corpus/quantities.json`.
#[must_use]
pub(crate) fn duration(ns: i64) -> String {
    // Pages are given whole microseconds.
    let us = ns.max(0).cast_unsigned() / 1_000;
    let (tenths_ms, ms) = (nearest(us, 100), nearest(us, 1_000));
    let (tenths_s, s) = (nearest(us, 100_000), nearest(us, 1_000_000));
    let (minutes, hours) = (nearest(us, 60_000_000), nearest(us, 3_600_000_000));
    match us {
        0 => "0s".to_owned(),
        1..1_000 => format!("{us}µs"),
        _ if tenths_ms < 100 => format!("{}ms", tenths(tenths_ms)),
        _ if ms < 1_000 => format!("{ms}ms"),
        _ if tenths_s < 600 => format!("{}s", tenths(tenths_s)),
        _ if s < 3_600 => format!("{}m{:02}s", s / 60, s % 60),
        _ if minutes < 48 * 60 => format!("{}h{:02}m", minutes / 60, minutes % 60),
        _ if hours < 2_400 => format!("{}d{:02}h", hours / 24, hours % 24),
        _ => format!("{}d", nearest(us, 86_400_000_000)),
    }
}

/// The age of something, in whole units and never rounded up: `14s`, `2m10s`, `3h02m`, `5d`. A negative age is `0s`.
#[must_use]
pub(crate) fn age(ns: i64) -> String {
    let s = ns.max(0) / 1_000_000_000;
    match s {
        0..60 => format!("{s}s"),
        60..3_600 => format!("{}m{:02}s", s / 60, s % 60),
        3_600..86_400 => format!("{}h{:02}m", s / 3_600, s / 60 % 60),
        _ => format!("{}d", s / 86_400),
    }
}

/// A count in at most five characters, rounded: `999`, `12.3k`, `171k`, `4.2M`.
#[must_use]
pub(crate) fn count(n: u64) -> String {
    if n < 1_000 { n.to_string() } else { scaled(n, 1_000, ["k", "M", "G"]) }
}

/// A number with its noun: `1 session`, `1,234 sessions`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {noun}{s}", indicatif::HumanCount(number))
}

/// A size: `512 B`, `48.0 KiB`, `3.0 GiB`.
#[must_use]
pub(crate) fn bytes(n: u64) -> String {
    if n < 1_024 { format!("{n} B") } else { scaled(n, 1_024, [" KiB", " MiB", " GiB", " TiB"]) }
}

/// `n` in the first unit in which it has at most three digits before the point, with one decimal below 100.
fn scaled<const UNITS: usize>(n: u64, base: u64, units: [&str; UNITS]) -> String {
    let mut unit = 1;
    let mut shown = n.to_string();
    for word in units {
        unit *= base;
        let (whole, decimal) = (nearest(n, unit), nearest(n.saturating_mul(10), unit));
        if decimal < 1_000 {
            return tenths(decimal) + word;
        }
        shown = format!("{whole}{word}");
        if whole < base {
            break;
        }
    }
    shown
}

/// `n` in units, rounded to the nearest one.
fn nearest(n: u64, unit: u64) -> u64 {
    n / unit + u64::from(n % unit * 2 >= unit)
}

/// A number of tenths as text: 34 is `3.4`.
fn tenths(n: u64) -> String {
    format!("{}.{}", n / 10, n % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_terminal_obeys_gets_through() {
        let hostile = "a\x1b]52;c;aGk=\x07b\x1b[2J\u{9b}31m\r\n\u{202e}c\u{200b}\x7f";
        let shown = visible(hostile, usize::MAX);
        assert_eq!(shown, "a␛]52;c;aGk=␇b␛[2J[U+009B]31m␍↵[U+202E]c[U+200B]␡");
        assert!(!shown.chars().any(char::is_control));
    }

    #[test]
    fn hidden_characters_read_as_they_do_on_the_pages() {
        let text = include_str!("../../dashboard/web/tests/corpus/hidden.json");
        let cases: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
        assert!(cases.len() > 15);
        for case in cases {
            let (input, expected) = (case["input"].as_str().unwrap(), &case["visible"]);
            assert_eq!(visible(input, usize::MAX), *expected, "{}", case["name"]);
            let json = serde_json::to_string(input).unwrap();
            let escaped = escaped_json(&json);
            assert!(!visible(&escaped, usize::MAX).contains("[U+"), "{escaped}");
            assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), input);
        }
    }

    #[test]
    fn text_is_cut_by_columns_not_bytes() {
        assert_eq!(visible("hello", 5), "hello");
        assert_eq!(visible("hello!", 5), "hell…");
        assert_eq!(visible("日本語", 5), "日本…");
        assert_eq!(visible("日本語", 4), "日…");
        assert_eq!(visible("x", 0), "");
        assert_eq!(visible("xyz", 1), "…");
        assert_eq!(cell("日", 4), "日  ");
        assert_eq!(right("12", 4), "  12");
    }

    /// The corpus of inputs and expected texts that the pages' tests use as well.
    fn corpus(kind: &str) -> Vec<(i64, String)> {
        let text = include_str!("../../dashboard/web/tests/corpus/quantities.json");
        let all: serde_json::Value = serde_json::from_str(text).unwrap();
        let cases: Vec<(i64, String)> = serde_json::from_value(all[kind].clone()).unwrap();
        assert!(cases.len() > 2, "{kind}");
        cases
    }

    #[track_caller]
    fn check(kind: &str, show: impl Fn(i64) -> String) {
        for (given, expected) in corpus(kind) {
            assert_eq!(show(given), expected, "{kind} of {given}");
        }
    }

    #[test]
    fn quantities_read_as_they_do_on_the_pages() {
        check("duration", |us| duration(us * 1_000));
        check("age", |us| age(us * 1_000));
        check("count", |n| count(n.cast_unsigned()));
        check("bytes", |n| bytes(n.cast_unsigned()));
    }

    #[test]
    fn durations_fit_their_column_and_extremes_are_shown() {
        for us in
            (0..80).map(|power| 1.7_f64.powi(power) as i64).filter(|us| *us < 86_400_000_000_000)
        {
            assert!(duration(us * 1_000).chars().count() <= 6, "{}", duration(us * 1_000));
        }
        assert_eq!(duration(-1), "0s");
        assert_eq!(duration(999), "0s", "less than a microsecond");
        assert_eq!(duration(i64::MAX), "106752d");
        assert_eq!(count(u64::MAX), "18446744074G");
        assert_eq!(bytes(u64::MAX), "16777216 TiB");
    }
}
