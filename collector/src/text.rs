//! Text that came from somewhere else, made fit for a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// `text` on one line of at most `columns`, with nothing in it that a terminal would obey: control characters become
/// pictures of themselves, and what turns the writing direction or takes no room is named.
#[must_use]
pub fn visible(text: &str, columns: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let shown = picture(c);
        used += shown.width();
        out.push_str(&shown);
        if used > columns {
            // Make room for the ellipsis, which is itself one column.
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
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => format!("[U+{:04X}]", u32::from(c)),
        _ => c.to_string(),
    }
}

/// `text` made visible and filled with spaces to exactly `columns`.
#[must_use]
pub fn cell(text: &str, columns: usize) -> String {
    let shown = visible(text, columns);
    let fill = columns.saturating_sub(shown.width());
    shown + &" ".repeat(fill)
}

/// `text` made visible and pushed to the right edge of `columns`.
#[must_use]
pub fn right(text: &str, columns: usize) -> String {
    let shown = visible(text, columns);
    " ".repeat(columns.saturating_sub(shown.width())) + &shown
}

/// `text` made visible and broken into lines of at most `columns`, between words where that is possible.
#[must_use]
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
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

/// A duration in at most six characters, rounded as the pages round it: `420µs`, `12ms`, `3.4s`, `2m05s`, `3h07m`, `12d`.
#[must_use]
pub fn duration(ns: i64) -> String {
    let ns = ns.max(0).cast_unsigned();
    let (us, ms, s) = (nearest(ns, 1_000), nearest(ns, 1_000_000), nearest(ns, 1_000_000_000));
    let (tenths_ms, tenths_s) = (nearest(ns, 100_000), nearest(ns, 100_000_000));
    let minutes = nearest(ns, 60_000_000_000);
    match s {
        _ if us < 1_000 => format!("{us}µs"),
        _ if tenths_ms < 100 => format!("{}.{}ms", tenths_ms / 10, tenths_ms % 10),
        _ if ms < 1_000 => format!("{ms}ms"),
        _ if tenths_s < 600 => format!("{}.{}s", tenths_s / 10, tenths_s % 10),
        0..3_600 => format!("{}m{:02}s", s / 60, s % 60),
        _ if minutes < 2_880 => format!("{}h{:02}m", minutes / 60, minutes % 60),
        _ => format!("{}d", s / 86_400),
    }
}

/// A count in at most five characters, rounded: `999`, `12.3k`, `171k`, `4.2M`.
#[must_use]
pub fn count(n: u64) -> String {
    for (unit, word) in [(1_000, 'k'), (1_000_000, 'M')] {
        let (whole, tenths) = (nearest(n, unit), nearest(n, unit / 10));
        match n {
            0..1_000 => return n.to_string(),
            _ if tenths < 1_000 => return format!("{}.{}{word}", tenths / 10, tenths % 10),
            _ if whole < 1_000 || word == 'M' => return format!("{whole}{word}"),
            _ => {}
        }
    }
    n.to_string()
}

/// `n` in units, to the nearest whole one.
fn nearest(n: u64, unit: u64) -> u64 {
    n / unit + u64::from(n % unit * 2 >= unit)
}

/// Bytes with a unit: `512 B`, `1.5 KiB`, `3.0 GiB`.
#[must_use]
pub fn bytes(n: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut tenths = n.saturating_mul(10);
    let mut shown = format!("{n} B");
    for unit in units {
        if tenths < 10_240 {
            break;
        }
        tenths /= 1_024;
        shown = format!("{}.{} {unit}", tenths / 10, tenths % 10);
    }
    shown
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

    #[test]
    fn quantities_are_short() {
        let shown =
            [0, 420_000, 1_500_000, 12_000_000, 3_456_000_000, 125_000_000_000].map(duration);
        assert_eq!(shown, ["0µs", "420µs", "1.5ms", "12ms", "3.5s", "2m05s"]);
        // A carry goes into the next unit, and nothing is cut off: pages would say another number.
        let carried =
            [999_600, 9_960_000, 11_600_000, 999_600_000, 59_960_000_000, 3_599_600_000_000];
        assert_eq!(carried.map(duration), ["1.0ms", "10ms", "12ms", "1.0s", "1m00s", "1h00m"]);
        let counts = [1_050, 99_949, 99_950, 999_499, 999_500, 99_950_000, 1_000_000_000];
        assert_eq!(counts.map(count), ["1.1k", "99.9k", "100k", "999k", "1.0M", "100M", "1000M"]);
        assert_eq!(duration(11_220_000_000_000), "3h07m");
        assert_eq!([999, 12_345, 171_149, 4_200_000].map(count), ["999", "12.3k", "171k", "4.2M"]);
        assert_eq!([512, 1_536, 3 << 30].map(bytes), ["512 B", "1.5 KiB", "3.0 GiB"]);
    }
}
