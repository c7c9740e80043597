//! Durations of settled spans, as histograms per UTC day: what percentiles are read from.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};
use hookspan_core::{Span, SpanKind, Status, Timestamp, Value};
use rusqlite::{Connection, OptionalExtension as _};

const DAY_NS: i64 = 86_400 * 1_000_000_000;
const HOUR_NS: i64 = 3_600 * 1_000_000_000;
/// A hook that took longer to get here was late.
const ARRIVAL_BUDGET_US: u64 = 5_000;
/// Powers of two, in microseconds: up to nine hours and beyond.
const HEAT_BUCKETS: usize = 36;
/// One microsecond to a day; anything longer counts as a day.
const LONGEST_US: u64 = 86_400_000_000;
/// About 4 MB of sketches at hand.
const MOST: usize = 256;
/// A name is a tool or a model; a longer one was forged, or is nothing a table could show.
const LONGEST_NAME: usize = 120;

type Key = (i64, &'static str, String);

struct Sketch {
    count: u64,
    errors: u64,
    values: Histogram<u32>,
    dirty: bool,
}

impl Sketch {
    fn new() -> rusqlite::Result<Self> {
        let values = empty().ok_or(rusqlite::Error::InvalidQuery)?;
        Ok(Self { count: 0, errors: 0, values, dirty: false })
    }

    fn record(&mut self, us: u64, failed: bool) {
        self.count += 1;
        self.errors += u64::from(failed);
        self.values.saturating_record(us.max(1));
        self.dirty = true;
    }
}

/// What a settled span counts for.
#[derive(Debug)]
pub(super) struct Counted {
    day: i64,
    hour: i64,
    us: u64,
    failed: bool,
    names: Vec<(&'static str, String)>,
}

impl Counted {
    /// `None` while it runs.
    pub(super) fn of(span: &Span) -> Option<Self> {
        let end = span.end?;
        let mut names = vec![("kind", span.kind.as_str().to_owned())];
        match span.kind {
            SpanKind::Tool => {
                names.extend(text(span, "gen_ai.tool.name").map(|name| ("tool", cut(name))));
            }
            SpanKind::Generation => {
                names.extend(text(span, "gen_ai.request.model").map(|name| ("model", cut(name))));
                let project = span.workspace.as_deref().map(folder);
                names.extend(project.map(|name| ("project", cut(name))));
            }
            _ => {}
        }
        Some(Self {
            day: span.start.0.div_euclid(DAY_NS),
            hour: span.start.0.div_euclid(HOUR_NS),
            us: u64::try_from(end.at.since(span.start) / 1_000).unwrap_or(0),
            failed: matches!(span.status, Status::Error { .. }),
            names,
        })
    }
}

/// Sketches in use, written back in the transaction that changed them.
#[derive(Default)]
pub(super) struct Sketches {
    held: BTreeMap<Key, Sketch>,
    heat: Heat,
}

impl Sketches {
    /// Counts a span that has just settled, once for each name it has.
    pub(super) fn count(&mut self, db: &Connection, counted: Counted) -> rusqlite::Result<()> {
        for (dimension, name) in counted.names {
            self.heat.add((counted.hour, dimension, name.clone()), counted.us);
            self.add(db, (counted.day, dimension, name), counted.us, counted.failed)?;
        }
        Ok(())
    }

    /// Counts how long a hook took from its stamp to here.
    pub(super) fn arrived(
        &mut self,
        db: &Connection,
        at: Timestamp,
        us: u64,
    ) -> rusqlite::Result<()> {
        let day = at.0.div_euclid(DAY_NS);
        self.add(db, (day, "arrival", "journal".to_owned()), us, us > ARRIVAL_BUDGET_US)
    }

    /// Takes back what these spans counted for: they are deleted, and a rebuild would not find them.
    pub(super) fn remove<'a>(
        &mut self,
        db: &Connection,
        spans: impl Iterator<Item = &'a Span>,
    ) -> rusqlite::Result<()> {
        let mut gone = Self::default();
        for counted in spans.filter_map(Counted::of) {
            for (dimension, name) in counted.names {
                gone.heat.add((counted.hour, dimension, name.clone()), counted.us);
                let key = (counted.day, dimension, name);
                let sketch = match gone.held.entry(key) {
                    std::collections::btree_map::Entry::Occupied(held) => held.into_mut(),
                    std::collections::btree_map::Entry::Vacant(free) => free.insert(Sketch::new()?),
                };
                sketch.record(counted.us, counted.failed);
            }
        }
        self.write(db)?;
        self.held.clear();
        for (key, gone) in gone.held {
            let mut left = load(db, &key)?;
            left.count = left.count.saturating_sub(gone.count);
            left.errors = left.errors.saturating_sub(gone.errors);
            left.dirty = true;
            // A damaged sketch may hold less than it should; it is what a rebuild makes whole.
            let _subtracted = left.values.subtract(&gone.values);
            if left.count == 0 {
                db.prepare_cached(
                    "DELETE FROM histogram WHERE day = ?1 AND dimension = ?2 AND name = ?3",
                )?
                .execute((key.0, key.1, key.2.as_str()))?;
            } else {
                self.held.insert(key, left);
            }
        }
        self.write(db)?;
        self.held.clear();
        gone.heat.take_back(db)
    }

    fn add(&mut self, db: &Connection, key: Key, us: u64, failed: bool) -> rusqlite::Result<()> {
        if self.held.len() >= MOST && !self.held.contains_key(&key) {
            self.write(db)?;
            self.held.clear();
        }
        let sketch = match self.held.entry(key) {
            std::collections::btree_map::Entry::Occupied(held) => held.into_mut(),
            std::collections::btree_map::Entry::Vacant(free) => {
                let loaded = load(db, free.key())?;
                free.insert(loaded)
            }
        };
        sketch.record(us, failed);
        Ok(())
    }

    /// Writes what changed.
    pub(super) fn write(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let mut statement = db.prepare_cached(
            "INSERT INTO histogram (day, dimension, name, count, errors, sketch)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (day, dimension, name) DO UPDATE
             SET count = excluded.count, errors = excluded.errors, sketch = excluded.sketch",
        )?;
        let mut serializer = V2Serializer::new();
        let mut bytes = Vec::new();
        for ((day, dimension, name), sketch) in &mut self.held {
            if !std::mem::take(&mut sketch.dirty) {
                continue;
            }
            bytes.clear();
            serializer
                .serialize(&sketch.values, &mut bytes)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
            let (count, errors) = (sketch.count.cast_signed(), sketch.errors.cast_signed());
            statement.execute((*day, *dimension, name.as_str(), count, errors, &bytes))?;
        }
        self.heat.write(db)
    }

    /// Forgets all: what was counted in a transaction that was rolled back was not counted.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.heat.counts.clear();
    }
}

/// A name that a table can show.
fn cut(name: &str) -> String {
    name.chars().take(LONGEST_NAME).collect()
}

/// The last name of a path, on either kind of system.
fn folder(path: &str) -> &str {
    path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Counts of one transaction by hour, to be added to what is stored.
#[derive(Default)]
struct Heat {
    counts: BTreeMap<Key, [u32; HEAT_BUCKETS]>,
}

impl Heat {
    fn add(&mut self, key: Key, us: u64) {
        let bucket = us.max(1).ilog2() as usize;
        self.counts.entry(key).or_insert([0; HEAT_BUCKETS])[bucket.min(HEAT_BUCKETS - 1)] += 1;
    }

    fn write(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let mut find = db.prepare_cached(
            "SELECT counts FROM heat WHERE hour = ?1 AND dimension = ?2 AND name = ?3",
        )?;
        let mut put = db.prepare_cached(
            "INSERT OR REPLACE INTO heat (hour, dimension, name, counts) VALUES (?1, ?2, ?3, ?4)",
        )?;
        for ((hour, dimension, name), mut counts) in std::mem::take(&mut self.counts) {
            let key = (hour, dimension, name.as_str());
            let stored = find.query_row(key, |row| Ok(heat_read(row.get_ref(0)?.as_blob()?)));
            for (sum, more) in counts.iter_mut().zip(stored.optional()?.unwrap_or_default()) {
                *sum = sum.saturating_add(more);
            }
            let bytes: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
            put.execute((hour, dimension, name.as_str(), bytes))?;
        }
        Ok(())
    }
}

impl Heat {
    /// Subtracts these counts from what is stored.
    fn take_back(self, db: &Connection) -> rusqlite::Result<()> {
        let mut find = db.prepare_cached(
            "SELECT counts FROM heat WHERE hour = ?1 AND dimension = ?2 AND name = ?3",
        )?;
        for ((hour, dimension, name), gone) in self.counts {
            let key = (hour, dimension, name.as_str());
            let stored = find.query_row(key, |row| Ok(heat_read(row.get_ref(0)?.as_blob()?)));
            let Some(mut left) = stored.optional()? else { continue };
            for (left, gone) in left.iter_mut().zip(gone) {
                *left = left.saturating_sub(gone);
            }
            if left.iter().all(|count| *count == 0) {
                db.prepare_cached(
                    "DELETE FROM heat WHERE hour = ?1 AND dimension = ?2 AND name = ?3",
                )?
                .execute(key)?;
            } else {
                let bytes: Vec<u8> = left.iter().flat_map(|count| count.to_le_bytes()).collect();
                db.prepare_cached(
                    "UPDATE heat SET counts = ?4 WHERE hour = ?1 AND dimension = ?2 AND name = ?3",
                )?
                .execute((hour, dimension, name.as_str(), bytes))?;
            }
        }
        Ok(())
    }
}

/// Counts by power of two, as stored; what is not a whole number of them is left out.
pub(in crate::store) fn heat_read(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}

/// A sketch as stored, or an empty one. A damaged one starts over: it is derived, and `rebuild` makes it whole.
fn load(db: &Connection, (day, dimension, name): &Key) -> rusqlite::Result<Sketch> {
    let stored = db
        .prepare_cached(
            "SELECT count, errors, sketch FROM histogram
             WHERE day = ?1 AND dimension = ?2 AND name = ?3",
        )?
        .query_row((day, dimension, name), |row| {
            let (count, errors): (i64, i64) = (row.get(0)?, row.get(1)?);
            let mut bytes = row.get_ref(2)?.as_blob()?;
            Ok((count, errors, Deserializer::new().deserialize::<u32, _>(&mut bytes).ok()))
        })
        .optional()?;
    if let Some((count, errors, Some(read))) = stored
        && let Some(mut values) = empty()
        && values.add(&read).is_ok()
    {
        let (count, errors) = (count.cast_unsigned(), errors.cast_unsigned());
        return Ok(Sketch { count, errors, values, dirty: false });
    }
    Sketch::new()
}

fn empty() -> Option<Histogram<u32>> {
    Histogram::new_with_bounds(1, LONGEST_US, 2).ok()
}

fn text<'a>(span: &'a Span, key: &str) -> Option<&'a str> {
    span.attributes.iter().find(|attribute| attribute.key == key).and_then(|attribute| {
        match &attribute.value {
            Value::Str(text) if !text.is_empty() => Some(text.as_str()),
            _ => None,
        }
    })
}
