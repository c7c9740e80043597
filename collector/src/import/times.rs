//! Parses times in logs, and applies a zone to times without one.

use hookspan_core::Timestamp;
use jiff::civil::{Date, DateTime, Time as Clock};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use crate::config::zone;

/// A time, with or without a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// The time has a zone, or is a number.
    Exact(Timestamp),
    /// The time has no zone: it is the local time of the machine that wrote the log.
    Local(DateTime),
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Time {
    /// Reads RFC 3339, `2026-10-05 12:00:01` with or without a fraction and a zone, the output of `date`, and numbers.
    /// Numbers are nanoseconds since the Unix epoch, or in the unit that gives a time between the years 2001 and 5138.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(at) = number(text) {
            return Some(Self::Exact(at));
        }
        if text.len() > 64 || !text.contains(':') {
            return None;
        }
        let text = text.replace(['/'], "-");
        if let Ok(at) = text.parse::<jiff::Timestamp>() {
            return exact(at);
        }
        if let Ok(at) = text.parse::<DateTime>() {
            return Some(Self::Local(at));
        }
        zoned(&text).or_else(|| spelled(&text))
    }

    /// The time at the beginning of a log's line, and the rest of the line.
    pub(super) fn before(prefix: &str) -> Option<(Self, &str)> {
        let prefix = prefix.trim_start();
        if let Some(rest) = prefix.strip_prefix('[') {
            let (inside, rest) = rest.split_once(']')?;
            return Some((Self::parse(inside)?, rest));
        }
        let ends: Vec<usize> = words(prefix).take(7).collect();
        // The longest candidate is tried first, because a zone may follow the time.
        ends.iter().rev().find_map(|end| {
            let (time, rest) = prefix.split_at_checked(*end)?;
            let time = time.trim_end_matches([':', ',', '|', '-']);
            Some((Self::parse(time)?, rest))
        })
    }
}

/// Where each word ends.
fn words(text: &str) -> impl Iterator<Item = usize> + '_ {
    let ends = text.char_indices().zip(text.chars().skip(1).map(Some).chain([None]));
    ends.filter(|((_, c), next)| !c.is_whitespace() && next.is_none_or(char::is_whitespace))
        .map(|((at, c), _)| at + c.len_utf8())
}

fn exact(at: jiff::Timestamp) -> Option<Time> {
    let ns = i64::try_from(at.as_nanosecond()).ok()?;
    (ns >= 0).then_some(Time::Exact(Timestamp(ns)))
}

/// The unit of a number follows from its size: the result must be a plausible time.
fn number(text: &str) -> Option<Timestamp> {
    if text.bytes().any(|byte| !byte.is_ascii_digit() && byte != b'.') {
        return None;
    }
    if let Ok(number) = text.parse::<i64>() {
        let unit = match number {
            1_000_000_000..100_000_000_000 => 1_000_000_000,
            1_000_000_000_000..100_000_000_000_000 => 1_000_000,
            1_000_000_000_000_000..100_000_000_000_000_000 => 1_000,
            _ => 1,
        };
        return number.checked_mul(unit).map(Timestamp);
    }
    let (whole, fraction) = text.split_once('.')?;
    let seconds =
        whole.parse().ok().filter(|whole| (1_000_000_000..100_000_000_000).contains(whole))?;
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanos: i64 = digits.parse().ok()?;
    i64::checked_mul(seconds, 1_000_000_000)?.checked_add(nanos).map(Timestamp)
}

/// A time whose zone follows a space or has the form `+0200`.
fn zoned(text: &str) -> Option<Time> {
    let at = text.rfind([' ', '+', '-']).filter(|at| *at > 10)?;
    let (time, zone) = text.split_at_checked(at)?;
    let time: DateTime = time.trim().parse().ok()?;
    let offset = offset(zone.trim())?;
    exact(offset.to_timestamp(time).ok()?)
}

/// `UTC`, `GMT`, `Z`, or an offset.
fn offset(text: &str) -> Option<Offset> {
    if matches!(text, "UTC" | "GMT" | "Z") { Some(Offset::UTC) } else { zone::offset(text) }
}

/// The output of `date`: `Mon Oct  5 12:00:01 CEST 2026`, also with AM and PM. The name of a zone may mean several
/// zones, so only UTC is accepted.
fn spelled(text: &str) -> Option<Time> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, month, day, clock, between @ .., year] = words.as_slice() else { return None };
    let month = MONTHS.iter().position(|name| name == month)?;
    let day: i8 = day.parse().ok()?;
    let clock: Clock = clock.parse().ok()?;
    let hour = match between.first() {
        Some(&"PM") if clock.hour() < 12 => clock.hour() + 12,
        Some(&"AM") if clock.hour() == 12 => 0,
        _ => clock.hour(),
    };
    let date = Date::new(year.parse().ok()?, i8::try_from(month).ok()? + 1, day).ok()?;
    let at = date.at(hour, clock.minute(), clock.second(), 0);
    match between.last() {
        Some(&("UTC" | "GMT")) => exact(Offset::UTC.to_timestamp(at).ok()?),
        _ => Some(Time::Local(at)),
    }
}

/// Reads times that name no zone.
#[derive(Debug)]
pub(crate) struct Zone {
    zone: TimeZone,
    name: String,
    /// The last time. It tells which of the two halves of a repeated hour a time belongs to.
    last: Option<Timestamp>,
    /// How many times were read with this zone, and how many of them the clock showed twice or never, with the line of
    /// the first.
    used: u64,
    twice: (u64, u64),
    never: (u64, u64),
}

/// If a time in a repeated hour would be further back than this, it belongs to the second half. Parallel hooks write
/// slightly out of order.
const OUT_OF_ORDER_NS: i64 = 60_000_000_000;

impl Zone {
    /// A zone, and what to call it.
    #[must_use]
    pub(crate) fn new(zone: TimeZone, name: String) -> Self {
        Self { zone, name, last: None, used: 0, twice: (0, 0), never: (0, 0) }
    }

    /// The moment of a time that stands on `line`.
    pub(super) fn resolve(&mut self, time: Time, line: u64) -> Option<Timestamp> {
        let at = match time {
            Time::Exact(at) => Some(at),
            Time::Local(clock) => self.local(clock, line),
        };
        self.last = at.or(self.last);
        at
    }

    fn local(&mut self, clock: DateTime, line: u64) -> Option<Timestamp> {
        self.used += 1;
        let ambiguous = self.zone.to_ambiguous_timestamp(clock);
        let found = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => ambiguous.compatible(),
            AmbiguousOffset::Gap { .. } => {
                note(&mut self.never, line);
                ambiguous.compatible()
            }
            AmbiguousOffset::Fold { .. } => {
                note(&mut self.twice, line);
                let later = ambiguous.later();
                match (stamp(ambiguous.earlier().ok()?), self.last) {
                    (Some(Timestamp(first)), Some(Timestamp(last)))
                        if first + OUT_OF_ORDER_NS < last =>
                    {
                        later
                    }
                    (first, _) => return first,
                }
            }
        };
        stamp(found.ok()?)
    }

    /// What the user should know about the times.
    #[must_use]
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let Self { name, used, .. } = self;
        if *used > 0 {
            notes
                .push(format!("times without a zone were read as {name}; --timezone changes this"));
        }
        if let (count @ 1.., line) = self.twice {
            notes.push(format!(
                "{count} times (first: line {line}) are in the hour that occurs twice in {name}; the order of the lines decided which one is meant"
            ));
        }
        if let (count @ 1.., line) = self.never {
            notes.push(format!(
                "{count} times (first: line {line}) are in the hour that {name} skips; they were moved by one hour"
            ));
        }
        notes
    }
}

fn note((count, first): &mut (u64, u64), line: u64) {
    *count += 1;
    if *first == 0 {
        *first = line;
    }
}

fn stamp(at: jiff::Timestamp) -> Option<Timestamp> {
    i64::try_from(at.as_nanosecond()).ok().filter(|ns| *ns >= 0).map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str, ns: i64) {
        assert_eq!(Time::parse(text), Some(Time::Exact(Timestamp(ns))), "{text}");
    }

    fn zone(name: &str) -> Zone {
        Zone::new(TimeZone::get(name).unwrap(), name.to_owned())
    }

    fn at(zone: &mut Zone, text: &str) -> String {
        let moment = zone.resolve(Time::parse(text).unwrap(), 7).unwrap();
        jiff::Timestamp::from_nanosecond(moment.0.into()).unwrap().to_string()
    }

    #[test]
    fn times_are_read_in_the_forms_that_logs_have() {
        let noon = 1_791_201_601_000_000_000;
        for text in [
            "2026-10-05T12:00:01Z",
            "2026-10-05 12:00:01+00:00",
            "2026-10-05 14:00:01 +0200",
            "2026-10-05T14:00:01+0200",
            "2026-10-05 12:00:01 UTC",
            "2026/10/05 12:00:01 GMT",
            "Mon Oct  5 12:00:01 UTC 2026",
            "1791201601",
            "1791201601000",
            "1791201601000000",
            "1791201601000000000",
            "1791201601.0",
        ] {
            exact(text, noon);
        }
        exact("1791201601.25", noon + 250_000_000);
        exact("5", 5);
        for text in [
            "2026-10-05 12:00:01",
            "2026-10-05T12:00:01",
            "2026-10-05 12:00:01.000",
            "2026-10-05 12:00:01,000",
            "2026/10/05 12:00:01",
            "Mon Oct  5 12:00:01 CEST 2026",
            "Mon Oct  5 12:00:01 PM CEST 2026",
        ] {
            let clock = jiff::civil::date(2026, 10, 5).at(12, 0, 1, 0);
            assert_eq!(Time::parse(text), Some(Time::Local(clock)), "{text}");
        }
        for text in
            ["", "yesterday", "12:00:01", "2026-10-05", "-5", "1.2.3", "2026-13-05 12:00:01"]
        {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_stands_at_the_beginning_of_a_line_with_or_without_brackets() {
        for (prefix, rest) in [
            ("[2026-10-05 12:00:01] ", ""),
            ("[2026-10-05 12:00:01] [stop] ", "[stop]"),
            ("2026-10-05 12:00:01 INFO input: ", "INFO input:"),
            ("2026-10-05 12:00:01,123 - hook - ", "hook -"),
            ("2026-10-05T12:00:01: ", ""),
        ] {
            let (time, found) = Time::before(prefix).unwrap_or_else(|| panic!("{prefix}"));
            assert!(matches!(time, Time::Local(_)), "{prefix}");
            assert_eq!(found.trim(), rest, "{prefix}");
        }
        assert!(Time::before("Received input: ").is_none());
        assert!(Time::before("[stop] ").is_none());
    }

    #[test]
    fn a_doubled_hour_follows_the_order_of_the_lines_and_a_skipped_one_is_moved_on() {
        let mut berlin = zone("Europe/Berlin");
        assert_eq!(at(&mut berlin, "2026-10-05 12:00:01"), "2026-10-05T10:00:01Z");
        assert_eq!(at(&mut berlin, "2026-10-25 02:10:00"), "2026-10-25T00:10:00Z");
        assert_eq!(at(&mut berlin, "2026-10-25 02:59:00"), "2026-10-25T00:59:00Z");
        assert_eq!(at(&mut berlin, "2026-10-25 02:58:59"), "2026-10-25T00:58:59Z");
        assert_eq!(at(&mut berlin, "2026-10-25 02:00:05"), "2026-10-25T01:00:05Z");
        assert_eq!(at(&mut berlin, "2026-10-25 03:00:00"), "2026-10-25T02:00:00Z");
        assert_eq!(at(&mut berlin, "2027-03-28 02:30:00"), "2027-03-28T01:30:00Z");
        let notes = berlin.notes();
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[1].starts_with("4 times (first: line 7)"), "{notes:?}");
        assert!(notes[2].contains("skips"), "{notes:?}");
    }
}
