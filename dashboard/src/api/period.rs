//! The period of a request and its columns. A period is a number of days up to now, or lies between two times.

use hookspan_view::source::{COUNTED_MAX, LineFilter};
use schemars::JsonSchema;
use serde::Deserialize;

use super::query::Number;
use crate::problem::Problem;

const MINUTE_NS: i64 = 60_000_000_000;
pub(super) const DAY_NS: i64 = 1_440 * MINUTE_NS;
const DAYS_MAX: i64 = 3_660;
/// Maximum number of columns that can be requested. The days of 53 weeks are 371.
const ASKED_MAX: usize = 400;

/// A period.
#[derive(Deserialize, JsonSchema)]
pub(super) struct PeriodQuery {
    /// up to now: 30, at most 3660
    days: Option<Number>,
    /// begins then, instead of `days`
    from_us: Option<Number>,
    /// ends then, instead of now
    to_us: Option<Number>,
}

impl PeriodQuery {
    /// Where the period begins, if the query says so.
    pub(super) fn begin_ns(&self) -> Option<i64> {
        self.from_us.map(Number::us_as_ns)
    }
}

/// The period: `days` up to now, or whatever lies between `from_us` and `to_us`.
pub(super) struct Period {
    from_ns: i64,
    to_ns: i64,
    /// The period was given as a number of days up to now. Such days are UTC days.
    is_recent: bool,
}

impl Period {
    pub(super) fn of(query: &PeriodQuery, now_ns: i64) -> Result<Self, Problem> {
        let days @ 1..=DAYS_MAX = query.days.map_or(30, |days| days.0) else {
            return Err(Problem::bad_parameter("days", "between 1 and 3660"));
        };
        let to_ns = query.to_us.map_or(now_ns, Number::us_as_ns);
        let from_ns = query.from_us.map_or(now_ns - (days - 1) * DAY_NS, Number::us_as_ns);
        if from_ns > to_ns || to_ns.saturating_sub(from_ns) > DAYS_MAX * DAY_NS {
            return Err(Problem::bad_parameter("from_us", "before to_us, by at most ten years"));
        }
        Ok(Self { from_ns, to_ns, is_recent: query.from_us.is_none() })
    }

    /// Whether the period consists of whole UTC days, or ends now.
    pub(super) fn is_whole_days(&self, now_ns: i64) -> bool {
        let is_start = |ns: i64| ns.rem_euclid(DAY_NS) == 0;
        let ends = self.to_ns >= now_ns || is_start(self.to_ns.saturating_add(1_000));
        ends && (self.is_recent || is_start(self.from_ns))
    }

    /// Its first and last nanosecond. A period that reaches beyond now lasts until the end of the UTC day, since sums
    /// of that day have what was counted until now.
    pub(super) fn spans(&self, now_ns: i64) -> (i64, i64) {
        let from_ns = match self.is_recent {
            true => self.from_ns.div_euclid(DAY_NS) * DAY_NS,
            false => self.from_ns,
        };
        let to_ns = match self.to_ns.saturating_add(1_000) > now_ns {
            true => (self.to_ns.max(now_ns).div_euclid(DAY_NS) + 1) * DAY_NS - 1,
            // The last microsecond of the period is in it to its end.
            false => self.to_ns.div_euclid(1_000) * 1_000 + 999,
        };
        (from_ns, to_ns)
    }

    /// From and to, nanoseconds since the epoch.
    pub(super) fn bounds(&self) -> (i64, i64) {
        (self.from_ns, self.to_ns)
    }

    /// Edges of columns that cover the period's UTC days. A column has 1, 7, 28 or 91 days: the smallest width that
    /// gives at most `most` columns.
    pub(super) fn edges(&self, now_ns: i64, most: i64) -> Vec<i64> {
        let (first, last) = self.in_units(DAY_NS);
        let days = last - first + 1;
        let widths = [1, 7, 28, 91];
        let width = widths.into_iter().find(|width| days <= width * most).unwrap_or(91);
        let columns = (days + width - 1) / width;
        let mut edges: Vec<i64> =
            (0..=columns).map(|column| (first + column * width) * DAY_NS).collect();
        // If the period begins or ends within a day, so do its first and last column.
        if !self.is_whole_days(now_ns) {
            if let Some(begin) = edges.first_mut() {
                *begin = self.from_ns;
            }
            if let Some(end) = edges.last_mut() {
                *end = self.to_ns.saturating_add(1);
            }
        }
        edges
    }

    /// The filter with this period.
    pub(super) fn within(&self, filter: LineFilter) -> LineFilter {
        LineFilter { from_ns: Some(self.from_ns), to_ns: Some(self.to_ns), ..filter }
    }

    pub(super) fn in_units(&self, unit_ns: i64) -> (i64, i64) {
        (self.from_ns.div_euclid(unit_ns), self.to_ns.div_euclid(unit_ns))
    }
}

/// Edges of the columns that the request lists.
pub(super) fn asked(columns: &str, from_ns: i64) -> Result<Vec<i64>, Problem> {
    let wrong =
        || Problem::bad_parameter("columns", "up to 400 lengths in minutes, as 1440*29,1380");
    let mut edges = vec![from_ns];
    for part in columns.split(',') {
        let (length, times) = part.split_once('*').unwrap_or((part, "1"));
        let length: i64 = length.parse().map_err(|_| wrong())?;
        let times: usize = times.parse().map_err(|_| wrong())?;
        if !(1..=527_040).contains(&length) || edges.len().saturating_add(times) > ASKED_MAX + 1 {
            return Err(wrong());
        }
        for _ in 0..times {
            let last = edges.last().copied().unwrap_or(from_ns);
            edges.push(last.saturating_add(length * MINUTE_NS));
        }
    }
    Ok(edges)
}

/// The error if too many spans or turns would have to be counted one by one.
pub(super) fn too_many(what: &str) -> Problem {
    let detail = format!(
        "there are no sums for these filters, and more than {COUNTED_MAX} {what} of the period would have to be counted one by \
         one: choose a shorter period or a project, or whole UTC days with no filter but the group's own"
    );
    Problem::bad_parameter("from_us", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_lengths_in_minutes_and_bounded() {
        let edges = asked("1440*2,1380,15", 900_000_000_000).unwrap();
        let minutes: Vec<_> = edges.iter().map(|edge| edge / MINUTE_NS).collect();
        assert_eq!(minutes, [15, 1_455, 2_895, 4_275, 4_290]);
        for wrong in ["", "x", "0", "-5", "1440*401", "1*99999999999999999999", "1440*", "527041"] {
            assert!(asked(wrong, 0).is_err(), "{wrong}");
        }
        assert_eq!(asked("1440*400", 0).unwrap().len(), 401);
    }
}
