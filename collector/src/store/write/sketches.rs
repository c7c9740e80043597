//! Histograms of the durations of settled spans, per UTC day and per [`BLOCK_DAYS`] days. Percentiles of any period are
//! computed from them. The time for that hardly depends on the length of the period.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};
use hookspan_core::{Span, SpanKind, Timestamp};
use hookspan_view::facet;
use hookspan_view::line::LineKind;
use rusqlite::{Connection, OptionalExtension as _};
use smol_str::SmolStr;

use super::reach::Reached;

pub(super) const DAY_NS: i64 = 86_400 * 1_000_000_000;
const HOUR_NS: i64 = 3_600 * 1_000_000_000;
/// A hook counts as late if more than 5 ms pass between its timestamp and the moment when the collector has read it.
const ARRIVAL_BUDGET_US: u64 = 5_000;
/// Number of buckets, one per power of two in microseconds. The last one holds everything over nine hours.
pub(in crate::store) const HEAT_BUCKETS: usize = 36;
/// One day. Longer durations count as one day.
pub(in crate::store) const LONGEST_US: u64 = 86_400_000_000;
/// Maximum number of cached sketches: a few MB. A sketch of calls of up to a minute takes 70 kB.
const MOST: usize = 96;
/// Number of days in a coarse sketch. A period of years is read from coarse sketches, and from single days at its ends.
pub(in crate::store) const BLOCK_DAYS: i64 = 32;
/// Hours in a coarse row of the heatmap.
pub(in crate::store) const DAY_HOURS: i64 = 24;
/// Significant digits of a percentile: accurate to a thousandth.
pub(in crate::store) const DIGITS: u8 = 3;

/// Dimension, number of days (or hours) that the sketch covers, the first of them, and name.
type Key = (&'static str, i64, i64, SmolStr);

struct Sketch {
    count: u64,
    errors: u64,
    total_us: u64,
    values: Histogram<u32>,
    dirty: bool,
}

impl Sketch {
    fn new() -> rusqlite::Result<Self> {
        let values = covering(1).ok_or(rusqlite::Error::InvalidQuery)?;
        Ok(Self { count: 0, errors: 0, total_us: 0, values, dirty: false })
    }

    /// Counts a span. `us` is `None` if its length is unknown.
    fn record(&mut self, us: Option<u64>, failed: bool) {
        self.count += 1;
        self.errors += u64::from(failed);
        self.dirty = true;
        let Some(us) = us else { return };
        self.total_us = self.total_us.saturating_add(us);
        let us = us.clamp(1, LONGEST_US);
        // Grows the histogram explicitly, because its automatic growth would give it a different size.
        if us > self.values.high()
            && let Some(mut larger) = covering(us)
            && larger.add(&self.values).is_ok()
        {
            self.values = larger;
        }
        self.values.saturating_record(us);
    }

    /// Subtracts values. A damaged sketch may contain too few; a rebuild restores it.
    fn take_back(&mut self, gone: &[(Option<u64>, bool)]) {
        let known = || gone.iter().filter_map(|(us, _)| *us);
        if let Some(mut values) = covering(known().max().unwrap_or(1)) {
            known().for_each(|us| values.saturating_record(us.clamp(1, LONGEST_US)));
            let _subtracted = self.values.subtract(&values);
        }
        let failed = gone.iter().filter(|(_, failed)| *failed).count() as u64;
        let total_us = known().fold(0_u64, u64::saturating_add);
        self.count = self.count.saturating_sub(gone.len() as u64);
        self.errors = self.errors.saturating_sub(failed);
        self.total_us = self.total_us.saturating_sub(total_us);
        self.dirty = true;
    }

    /// Resizes the histogram to the size that its largest value needs. Its bytes then depend only on its content and
    /// not on its history.
    fn fit(&mut self) {
        let most = self.values.max();
        if size(most) != self.values.high()
            && let Some(mut fitting) = covering(most)
            && fitting.add(&self.values).is_ok()
        {
            self.values = fitting;
        }
    }
}

/// The facts by which a settled span is counted. They come only from columns of its row, so that a changed row can be
/// subtracted exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    day: i64,
    hour: i64,
    /// `None` if its duration is unknown, or is the wait for a person.
    us: Option<u64>,
    failed: bool,
    names: Vec<(&'static str, SmolStr)>,
    /// Facts for the row of its session.
    pub(super) reached: Reached,
    is_turn: bool,
}

impl Counted {
    /// `None` while the span runs.
    pub(super) fn of(span: &Span) -> Option<Self> {
        span.end?;
        let mut names = Vec::with_capacity(3);
        names.push(("kind", SmolStr::new_static(LineKind::of(span).as_str())));
        names.extend(facet::tool(span).map(|name| ("tool", SmolStr::from(name))));
        names.extend(facet::model(span).map(|name| ("model", SmolStr::from(name))));
        if span.kind == SpanKind::Generation {
            let project = span.workspace.as_deref().and_then(facet::project);
            names.extend(project.map(|name| ("project", SmolStr::from(name))));
        }
        Some(Self {
            day: span.start.0.div_euclid(DAY_NS),
            hour: span.start.0.div_euclid(HOUR_NS),
            us: span.work_ns().map(|ns| u64::try_from(ns / 1_000).unwrap_or(0)),
            failed: span.is_failure(),
            names,
            reached: Reached::of(span),
            is_turn: span.kind == SpanKind::Generation,
        })
    }

    /// Whether it is the span of a turn.
    pub(super) fn is_turn(&self) -> bool {
        self.is_turn
    }
}

/// Cached sketches. They are written in the transaction that changed them.
#[derive(Default)]
pub(super) struct Sketches {
    held: BTreeMap<Key, Sketch>,
    /// Values to subtract: length in microseconds, if it is known, and whether the span failed.
    gone: BTreeMap<Key, Vec<(Option<u64>, bool)>>,
    heat: Heat,
}

impl Sketches {
    /// Counts a settled span once for each of its names.
    pub(super) fn count(&mut self, db: &Connection, counted: &Counted) -> rusqlite::Result<()> {
        for (dimension, name) in &counted.names {
            if let Some(us) = counted.us {
                self.heat.add(dimension, counted.hour, name, us, 1);
            }
            for key in keys(dimension, counted.day, name) {
                self.add(db, key, counted.us, counted.failed)?;
            }
        }
        Ok(())
    }

    /// Subtracts a settled span whose row changes or is removed.
    pub(super) fn take_back(&mut self, db: &Connection, counted: &Counted) -> rusqlite::Result<()> {
        for (dimension, name) in &counted.names {
            if let Some(us) = counted.us {
                self.heat.add(dimension, counted.hour, name, us, -1);
            }
            for key in keys(dimension, counted.day, name) {
                self.gone.entry(key).or_default().push((counted.us, counted.failed));
            }
        }
        if self.gone.len() >= MOST { self.write(db) } else { Ok(()) }
    }

    /// Counts the time from a hook's timestamp until the collector has read the hook.
    pub(super) fn arrived(
        &mut self,
        db: &Connection,
        at: Timestamp,
        us: u64,
    ) -> rusqlite::Result<()> {
        let day = at.0.div_euclid(DAY_NS);
        self.add(
            db,
            ("arrival", 1, day, SmolStr::new_static("journal")),
            Some(us),
            us > ARRIVAL_BUDGET_US,
        )
    }

    fn add(
        &mut self,
        db: &Connection,
        key: Key,
        us: Option<u64>,
        failed: bool,
    ) -> rusqlite::Result<()> {
        if self.held.len() >= MOST && !self.held.contains_key(&key) {
            self.write(db)?;
            self.held.clear();
        }
        self.hold(db, key)?.record(us, failed);
        Ok(())
    }

    fn hold(&mut self, db: &Connection, key: Key) -> rusqlite::Result<&mut Sketch> {
        match self.held.entry(key) {
            Entry::Occupied(held) => Ok(held.into_mut()),
            Entry::Vacant(free) => {
                let loaded = load(db, free.key())?;
                Ok(free.insert(loaded))
            }
        }
    }

    /// Writes what changed.
    pub(super) fn write(&mut self, db: &Connection) -> rusqlite::Result<()> {
        for (key, values) in std::mem::take(&mut self.gone) {
            self.hold(db, key)?.take_back(&values);
        }
        let mut serializer = V2Serializer::new();
        let mut bytes = Vec::new();
        for (key, sketch) in &mut self.held {
            if !std::mem::take(&mut sketch.dirty) {
                continue;
            }
            if sketch.count == 0 {
                delete(db, key)?;
                continue;
            }
            sketch.fit();
            bytes.clear();
            serializer
                .serialize(&sketch.values, &mut bytes)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
            put(db, key, sketch, &bytes)?;
        }
        if self.held.len() > MOST {
            self.held.clear();
        }
        self.heat.write(db)
    }

    /// Clears what was counted in a transaction that was rolled back.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.gone.clear();
        self.heat.counts.clear();
    }
}

fn put(
    db: &Connection,
    (dimension, days, day, name): &Key,
    sketch: &Sketch,
    bytes: &[u8],
) -> rusqlite::Result<()> {
    let (count, errors) = (sketch.count.cast_signed(), sketch.errors.cast_signed());
    let (total_us, name) = (sketch.total_us.cast_signed(), name.as_str());
    db.prepare_cached(
        "INSERT INTO histogram (dimension, days, day, name, count, errors, total_us, sketch)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (dimension, days, day, name) DO UPDATE
         SET count = excluded.count, errors = excluded.errors, total_us = excluded.total_us,
             sketch = excluded.sketch",
    )?
    .execute((dimension, days, day, name, count, errors, total_us, bytes))?;
    Ok(())
}

fn delete(db: &Connection, (dimension, days, day, name): &Key) -> rusqlite::Result<()> {
    db.prepare_cached(
        "DELETE FROM histogram WHERE dimension = ?1 AND days = ?2 AND day = ?3 AND name = ?4",
    )?
    .execute((dimension, days, day, name.as_str()))?;
    Ok(())
}

/// The periods to which a span is added: its day, and the block of days that contains it.
fn keys(dimension: &'static str, day: i64, name: &SmolStr) -> [Key; 2] {
    let block = day.div_euclid(BLOCK_DAYS) * BLOCK_DAYS;
    [(dimension, 1, day, name.clone()), (dimension, BLOCK_DAYS, block, name.clone())]
}

/// Counts of one transaction by hour and by day, for each name and (under an empty name) for all. They are added to the
/// stored counts.
#[derive(Default)]
struct Heat {
    counts: BTreeMap<Key, [i64; HEAT_BUCKETS]>,
}

impl Heat {
    fn add(&mut self, dimension: &'static str, hour: i64, name: &SmolStr, us: u64, by: i64) {
        let bucket = (us.max(1).ilog2() as usize).min(HEAT_BUCKETS - 1);
        let day = hour.div_euclid(DAY_HOURS) * DAY_HOURS;
        for (hours, first) in [(1, hour), (DAY_HOURS, day)] {
            for name in [name.clone(), SmolStr::default()] {
                let key = (dimension, hours, first, name);
                self.counts.entry(key).or_insert([0; HEAT_BUCKETS])[bucket] += by;
            }
        }
    }

    fn write(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let mut find = db.prepare_cached(
            "SELECT counts FROM heat
             WHERE dimension = ?1 AND name = ?2 AND hours = ?3 AND hour = ?4",
        )?;
        let mut put = db.prepare_cached(
            "INSERT OR REPLACE INTO heat (dimension, name, hours, hour, counts)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        for ((dimension, hours, hour, name), counts) in std::mem::take(&mut self.counts) {
            let key = (dimension, name.as_str(), hours, hour);
            let stored = find.query_row(key, |row| Ok(heat_read(row.get_ref(0)?.as_blob()?)));
            let stored = stored.optional()?.unwrap_or_default();
            let stored = stored.into_iter().map(i64::from).chain(std::iter::repeat(0));
            let sums = counts.iter().zip(stored).map(|(more, sum)| sum.saturating_add(*more));
            let sums: Vec<u32> =
                sums.map(|sum| u32::try_from(sum.max(0)).unwrap_or(u32::MAX)).collect();
            if sums.iter().all(|count| *count == 0) {
                db.prepare_cached(
                    "DELETE FROM heat
                     WHERE dimension = ?1 AND name = ?2 AND hours = ?3 AND hour = ?4",
                )?
                .execute(key)?;
                continue;
            }
            let bytes: Vec<u8> = sums.iter().flat_map(|count| count.to_le_bytes()).collect();
            put.execute((dimension, name.as_str(), hours, hour, bytes))?;
        }
        Ok(())
    }
}

/// Counts by power of two, as stored. An incomplete number at the end is ignored.
pub(in crate::store) fn heat_read(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}

/// A stored sketch, or an empty one. A damaged sketch is replaced by an empty one: `rebuild` restores it.
fn load(db: &Connection, (dimension, days, day, name): &Key) -> rusqlite::Result<Sketch> {
    let stored = db
        .prepare_cached(
            "SELECT count, errors, total_us, sketch FROM histogram
             WHERE dimension = ?1 AND days = ?2 AND day = ?3 AND name = ?4",
        )?
        .query_row((dimension, days, day, name.as_str()), |row| {
            let sums: [i64; 3] = [row.get(0)?, row.get(1)?, row.get(2)?];
            let mut bytes = row.get_ref(3)?.as_blob()?;
            Ok((sums, Deserializer::new().deserialize::<u32, _>(&mut bytes).ok()))
        })
        .optional()?;
    if let Some((sums, Some(read))) = stored
        && let Some(mut values) = covering(read.max())
        && values.add(&read).is_ok()
    {
        let [count, errors, total_us] = sums.map(i64::cast_unsigned);
        return Ok(Sketch { count, errors, total_us, values, dirty: false });
    }
    Sketch::new()
}

/// An empty histogram for values up to `us`.
fn covering(us: u64) -> Option<Histogram<u32>> {
    Histogram::new_with_bounds(1, size(us), DIGITS).ok()
}

/// The largest value that a histogram for values up to `us` can hold.
fn size(us: u64) -> u64 {
    us.clamp(4_096, LONGEST_US).next_power_of_two()
}
