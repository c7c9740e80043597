//! The filter words of lists and counts. They have the same meaning on pages, in the API, in search and in commands.
//!
//! The words are those of [`WORDS`]; `docs/figures.md` defines them. Other
//! parameters of an endpoint or a command (`session`, a minimum duration) belong to it alone.

pub use crate::word::{NONE, Unfit, YES};

use crate::line::LineKind;
use crate::outcome::OutcomeFilter;
use crate::source::LineFilter;

/// The words.
pub const WORDS: [&str; 11] = [
    "tool", "kind", "model", "project", "status", "from", "to", "branch", "outcome", "tag",
    "starred",
];

const DAY_NS: i64 = 86_400_000_000_000;

impl LineFilter {
    /// Sets the value of a word. An empty value is ignored. Returns false if `name` is none of [`WORDS`].
    ///
    /// # Errors
    ///
    /// [`Unfit`] if the value is not valid for the word.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool, Unfit> {
        let Some(word) = WORDS.into_iter().find(|word| *word == name) else { return Ok(false) };
        if value.is_empty() {
            return Ok(true);
        }
        match word {
            "tool" => self.tool = Some(value.to_owned()),
            "model" => self.model = Some(value.to_owned()),
            "project" => self.project = Some(value.to_owned()),
            "branch" => self.branch = Some(value.to_owned()),
            "tag" => self.tag = Some(value.to_owned()),
            "outcome" => {
                let words = OutcomeFilter::ALL.map(OutcomeFilter::as_str).join(", ");
                let outcome = OutcomeFilter::parse(value);
                self.outcome =
                    Some(outcome.ok_or(Unfit { word, wanted: format!("one of {words}") })?);
            }
            "starred" if value == YES => self.starred = true,
            "starred" => return Err(Unfit { word, wanted: "yes, or nothing".to_owned() }),
            "kind" => {
                let words = LineKind::ALL.map(LineKind::as_str).join(", ");
                let kind = LineKind::parse(value);
                self.kind = Some(kind.ok_or(Unfit { word, wanted: format!("one of {words}") })?);
            }
            "status" if value == "error" => self.failed = true,
            "status" => return Err(Unfit { word, wanted: "error, or nothing".to_owned() }),
            "from" => self.from_ns = Some(time(value, false).ok_or_else(|| unfit_time(word))?),
            _ => self.to_ns = Some(time(value, true).ok_or_else(|| unfit_time(word))?),
        }
        Ok(true)
    }
}

fn unfit_time(word: &'static str) -> Unfit {
    let wanted = "a day (2026-11-30) or a time (2026-11-30T09:15:00Z), in UTC".to_owned();
    Unfit { word, wanted }
}

/// A time in nanoseconds since the epoch. A day means its first nanosecond or, with `last`, its last one.
fn time(text: &str, last: bool) -> Option<i64> {
    let Some((date, clock)) = text.split_once(['T', ' ']) else {
        let start = day(text)?;
        return Some(if last { start + DAY_NS - 1 } else { start });
    };
    Some(day(date)? + of_day(clock.strip_suffix('Z').unwrap_or(clock))?)
}

/// `2026-11-30`.
fn day(date: &str) -> Option<i64> {
    let mut parts = date.splitn(3, '-').map(whole);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let fits =
        (1970..=2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    // Here a year begins in March, so that the leap day is its last day.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before = year * 365 + year / 4 - year / 100 + year / 400;
    let days = before + (153 * month + 2) / 5 + day - 1 - 719_468;
    fits.then(|| days * DAY_NS)
}

/// `09:15`, `09:15:00` or `09:15:00.25`.
fn of_day(clock: &str) -> Option<i64> {
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (whole(parts.next()?)?, whole(parts.next()?)?);
    let (second, fraction) = match parts.next() {
        None => (0, "0"),
        Some(rest) => match rest.split_once('.') {
            None => (whole(rest)?, "0"),
            Some((second, fraction)) => (whole(second)?, fraction),
        },
    };
    let fits = hour < 24 && minute < 60 && second < 60 && fraction.len() <= 9;
    let nanos = whole(&format!("{fraction:0<9}"))?;
    fits.then_some(((hour * 60 + minute) * 60 + second) * 1_000_000_000 + nanos)
}

/// Digits, and nothing else.
fn whole(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_known_and_refuses_what_it_cannot_have() {
        let mut filter = LineFilter::default();
        for (word, value) in WORDS.into_iter().zip(
            ["Shell", "mcp", "m", "api", "error", "2026-11-29", "2026-11-30"]
                .into_iter()
                .chain(["main", "none", "later", "yes"]),
        ) {
            assert_eq!(filter.set(word, value), Ok(true), "{word}");
        }
        assert_eq!((filter.failed, filter.kind), (true, Some(LineKind::Mcp)));
        assert_eq!((filter.starred, filter.outcome), (true, Some(OutcomeFilter::None)));
        assert_eq!(filter.set("outcome", "committed"), Ok(true));
        assert_eq!(filter.outcome.map(OutcomeFilter::as_str), Some("committed"));
        assert_eq!(
            filter.to_ns.zip(filter.from_ns).map(|(to, from)| to - from),
            Some(2 * DAY_NS - 1)
        );
        assert_eq!(filter.set("sort", "x"), Ok(false));
        assert_eq!(filter.set("kind", ""), Ok(true));
        for (word, value, part) in [
            ("kind", "generation", "one of session, turn"),
            ("status", "ok", "error"),
            ("outcome", "won", "one of tests_failed, tests_passed"),
            ("starred", "no", "yes"),
            ("from", "yesterday", "a day"),
            ("to", "2026-13-01", "a day"),
        ] {
            let unfit = filter.set(word, value).unwrap_err();
            assert!(unfit.word == word && unfit.wanted.contains(part), "{unfit:?}");
        }
    }

    #[test]
    fn times_are_days_or_instants_in_utc() {
        let second = 1_000_000_000;
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("2026-11-30", Some(1_795_996_800 * second)),
            ("2000-02-29", Some(951_782_400 * second)),
            ("2026-11-30T09:15:00Z", Some(1_796_030_100 * second)),
            ("2026-11-30 09:15", Some(1_796_030_100 * second)),
            ("2026-11-30T09:15:00.25Z", Some(1_796_030_100 * second + 250_000_000)),
            ("2026-11-30T24:00:00Z", None),
            ("2026-11-30T09:15:00+02:00", None),
            ("1969-12-31", None),
            ("2026-11-", None),
            ("+026-11-30", None),
            ("", None),
        ] {
            assert_eq!(time(text, false), expected, "{text}");
        }
        assert_eq!(time("1970-01-01", true), Some(DAY_NS - 1));
    }
}
