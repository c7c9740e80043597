//! Days and clock times in the time zone of this machine.

use hookspan_core::Timestamp;
use hookspan_view::filter::Unfit;
use hookspan_view::source::LineFilter;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp as Instant, ToSpan as _};

use crate::config::{Misuse, zone};

/// The calendar of a time zone.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    zone: TimeZone,
}

impl Calendar {
    /// The calendar of this machine: its zone is `TZ`, otherwise the system's setting.
    pub(crate) fn of_this_machine() -> Self {
        Self { zone: zone::of_this_machine().0 }
    }

    #[cfg(test)]
    pub(crate) const fn utc() -> Self {
        Self { zone: TimeZone::UTC }
    }

    /// The day that a time lies in.
    pub(crate) fn day(&self, at: Timestamp) -> Date {
        self.zoned(at).date()
    }

    /// The first and the last nanosecond of the days from `first` to `last`. A day has 23 or 25 hours when the clock
    /// is changed.
    pub(crate) fn bounds(&self, first: Date, last: Date) -> (i64, i64) {
        (self.start(first), self.start(after(last, 1)).saturating_sub(1))
    }

    /// `2026-11-30 15:04:05`
    pub(crate) fn stamp(&self, at: Timestamp) -> String {
        self.zoned(at).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// `15:04:05`
    pub(crate) fn clock(&self, at: Timestamp) -> String {
        self.zoned(at).strftime("%H:%M:%S").to_string()
    }

    /// Sets `from` or `to` of the filter. Without a `Z` at its end, the text is a day or a time of this zone.
    ///
    /// # Errors
    /// The text is neither a day nor a time.
    pub(crate) fn set(
        &self,
        filter: &mut LineFilter,
        word: &str,
        text: &str,
    ) -> Result<(), Misuse> {
        let wanted = || {
            Misuse(format!(
                "--{word}: a day (2026-11-30) or a time (2026-11-30T09:15:00, or with Z in UTC)"
            ))
        };
        let mut read = LineFilter::default();
        // Reads the text as if it were in UTC. This checks the text and finds year, month, day and time.
        let _known = read.set("from", text).map_err(|Unfit { .. }| wanted())?;
        let Some(utc_ns) = read.from_ns else { return Ok(()) };
        let is_day = !text.contains(['T', ' ']);
        let fields = Instant::from_nanosecond(utc_ns.into())
            .map_err(|_| wanted())?
            .to_zoned(TimeZone::UTC)
            .datetime();
        let ns = if text.ends_with('Z') {
            utc_ns
        } else if is_day && word == "to" {
            self.start(after(fields.date(), 1)).saturating_sub(1)
        } else {
            self.instant(fields)
        };
        match word {
            "from" => filter.from_ns = Some(ns),
            _ => filter.to_ns = Some(ns),
        }
        Ok(())
    }

    fn start(&self, day: Date) -> i64 {
        self.instant(day.to_datetime(jiff::civil::Time::midnight()))
    }

    /// The instant of a local time. A time that the clock skips means as much later as the clock was moved. Of a time
    /// that occurs twice, the first is meant.
    fn instant(&self, at: jiff::civil::DateTime) -> i64 {
        let zoned = self.zone.to_ambiguous_zoned(at).compatible();
        let ns = zoned.map_or(0, |zoned| zoned.timestamp().as_nanosecond());
        i64::try_from(ns).unwrap_or(i64::MAX)
    }

    fn zoned(&self, at: Timestamp) -> jiff::Zoned {
        let instant = Instant::from_nanosecond(at.0.into()).unwrap_or(Instant::UNIX_EPOCH);
        instant.to_zoned(self.zone.clone())
    }
}

/// The day that is `days` days later, or earlier if `days` is negative.
pub(crate) fn after(day: Date, days: i64) -> Date {
    let span: Span = days.clamp(-100_000, 100_000).days();
    day.saturating_add(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(zone: &str) -> Calendar {
        Calendar { zone: TimeZone::get(zone).unwrap() }
    }

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn days_are_those_of_the_zone_also_when_the_clock_changes() {
        const HOUR_NS: i64 = 3_600_000_000_000;
        let hours = |zone: &str, day: &str| {
            let (from, to) = of(zone).bounds(date(day), date(day));
            (to + 1 - from) / HOUR_NS
        };
        assert_eq!(hours("Europe/Berlin", "2026-03-29"), 23);
        assert_eq!(hours("Europe/Berlin", "2026-10-25"), 25);
        assert_eq!(hours("America/New_York", "2026-10-25"), 24);
        assert_eq!(hours("America/New_York", "2026-11-01"), 25);
        // Here midnight does not exist on the day of the change.
        assert_eq!(hours("Africa/Cairo", "2026-04-24"), 23);
        let at = Timestamp(1_793_404_800_000_000_000);
        assert_eq!(of("Asia/Kathmandu").stamp(at), "2026-10-31 05:45:00");
        assert_eq!(of("America/New_York").stamp(at), "2026-10-30 20:00:00");
        assert_eq!(of("America/New_York").day(at), date("2026-10-30"));
        assert_eq!(of("UTC").clock(at), "00:00:00");
    }

    #[test]
    fn a_time_without_z_is_one_of_the_zone() {
        let berlin = of("Europe/Berlin");
        let set = |word: &str, text: &str| {
            let mut filter = LineFilter::default();
            berlin
                .set(&mut filter, word, text)
                .map(|()| filter.from_ns.or(filter.to_ns).unwrap() / 1_000_000_000)
        };
        assert_eq!(set("from", "2026-11-30").unwrap(), 1_795_993_200);
        assert_eq!(set("to", "2026-11-30").unwrap(), 1_795_993_200 + 86_399);
        assert_eq!(
            set("to", "2026-10-25").unwrap() - set("from", "2026-10-25").unwrap(),
            25 * 3_600 - 1
        );
        assert_eq!(set("from", "2026-11-30T09:15").unwrap(), 1_795_993_200 + 33_300);
        assert_eq!(set("from", "2026-11-30T09:15:00Z").unwrap(), 1_795_996_800 + 33_300);
        let error = set("from", "yesterday").unwrap_err().to_string();
        assert!(error.contains("--from: a day (2026-11-30)"), "{error}");
    }
}
