//! Stores one request inside the caller's transaction, so that all of it is stored or nothing.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;
use rusqlite::{Connection, OptionalExtension as _};

use super::{Field, Incoming, Limits, Point, ReceivedSpan, Taken, Usage, join};

const DAY_NS: i64 = 86_400_000_000_000;
/// Maximum number of stored spans whose session is not known. They are deleted after a week at the latest.
const UNJOINED_MAX: u64 = 20_000;
/// Maximum number of remembered series.
const SERIES_MAX: i64 = 50_000;

/// Stores the new items of a request, and counts the others.
///
/// # Errors
/// Returns SQLite's error if the database cannot be written.
pub(crate) fn take(
    db: &Connection,
    incoming: &Incoming,
    limits: Limits,
    now_ns: i64,
) -> rusqlite::Result<Taken> {
    let mut taken = Taken::default();
    let mut counts = incoming.counts.clone();
    let mut count = |key, by: u64| {
        if by > 0 {
            *counts.entry(key).or_default() += by;
        }
    };
    let mut room = Room::of(db, limits, now_ns)?;
    let mut traces = BTreeSet::new();
    for span in &incoming.spans {
        match store_span(db, span, &mut room, now_ns)? {
            Stored::New => {
                traces.insert(span.trace);
                taken.stored += 1;
            }
            Stored::Known => taken.duplicate += 1,
            Stored::Own => taken.own += 1,
            Stored::Refused(limit) => {
                taken.refused += 1;
                count(limit, 1);
            }
        }
    }
    room.close(db)?;
    count("otlp.stored_spans", taken.stored);
    count("otlp.came_back", taken.own);
    for trace in &traces {
        join::trace(db, trace)?;
    }
    let mut series = series(db)?;
    let mut points = 0;
    for point in &incoming.points {
        if series >= SERIES_MAX && !is_known(db, &point.key)? {
            count("otlp.refused.series", 1);
            continue;
        }
        match store_point(db, point, now_ns)? {
            Told::New => {
                series += 1;
                points += 1;
            }
            Told::More => points += 1,
            Told::Known => taken.duplicate += 1,
        }
    }
    taken.stored += points;
    count("otlp.stored_points", points);
    count("otlp.duplicate", taken.duplicate);
    for (key, by) in &counts {
        add(db, key, *by)?;
    }
    taken.unjoined = join::is_waiting(db, now_ns)?;
    Ok(taken)
}

fn add(db: &Connection, key: &str, by: u64) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT INTO counter (key, value) VALUES (?1, ?2)
         ON CONFLICT (key) DO UPDATE SET value = value + excluded.value",
    )?
    .execute((key, by.cast_signed()))
    .map(drop)
}

/// The session of a trace, as far as it was known before this request.
enum Whose {
    Ours(join::Home),
    /// An earlier row of the trace has a session: the session, and the row's `joined`.
    Known(String, i64),
    Nobody,
}

/// The traces of this request, each looked up once.
#[derive(Default)]
struct Traces(HashMap<[u8; 16], Whose, RandomState>);

impl Traces {
    fn of(&mut self, db: &Connection, trace: &[u8; 16]) -> rusqlite::Result<&Whose> {
        match self.0.entry(*trace) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => Ok(new.insert(match join::home(db, trace)? {
                Some(home) => Whose::Ours(home),
                None => match join::of_trace(db, trace)? {
                    Some((session, how)) => Whose::Known(session, how),
                    None => Whose::Nobody,
                },
            })),
        }
    }
}

/// What is left of the limits, and what is known about the traces of a request.
struct Room {
    traces: Traces,
    limits: Limits,
    day: i64,
    spans: u64,
    bytes: u64,
    unjoined: u64,
    /// Number of stored spans of the sessions in this request.
    sessions: HashMap<String, u64, RandomState>,
}

impl Room {
    fn of(db: &Connection, limits: Limits, now_ns: i64) -> rusqlite::Result<Self> {
        let day = now_ns.div_euclid(DAY_NS);
        let used: Option<(i64, i64)> = db
            .prepare_cached("SELECT spans, bytes FROM received_day WHERE day = ?1")?
            .query_row([day], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (spans, bytes) = used.unwrap_or_default();
        let unjoined = "SELECT count(*) FROM received_span WHERE session IS NULL";
        let unjoined: i64 = db.prepare_cached(unjoined)?.query_row([], |row| row.get(0))?;
        Ok(Self {
            traces: Traces::default(),
            limits,
            day,
            spans: spans.cast_unsigned(),
            bytes: bytes.cast_unsigned(),
            unjoined: unjoined.cast_unsigned(),
            sessions: HashMap::default(),
        })
    }

    /// The counter of the limit that a span would exceed. `None` if the span can be stored.
    fn refuses(
        &mut self,
        db: &Connection,
        span: &ReceivedSpan,
    ) -> rusqlite::Result<Option<&'static str>> {
        if self.spans >= self.limits.day_spans {
            return Ok(Some("otlp.refused.day_spans"));
        }
        if self.bytes.saturating_add(size(span)) > self.limits.day_bytes {
            return Ok(Some("otlp.refused.day_bytes"));
        }
        let Some(session) = &span.session else {
            let is_full = self.unjoined >= UNJOINED_MAX;
            return Ok(is_full.then_some("otlp.refused.unjoined"));
        };
        let stored = match self.sessions.get(session) {
            Some(stored) => *stored,
            None => {
                let stored: i64 = db
                    .prepare_cached("SELECT count(*) FROM received_span WHERE session = ?1")?
                    .query_row([session], |row| row.get(0))?;
                self.sessions.insert(session.clone(), stored.cast_unsigned());
                stored.cast_unsigned()
            }
        };
        Ok((stored >= self.limits.session_spans).then_some("otlp.refused.session_spans"))
    }

    fn used(&mut self, span: &ReceivedSpan) {
        self.spans += 1;
        self.bytes = self.bytes.saturating_add(size(span));
        match &span.session {
            None => self.unjoined += 1,
            Some(session) => {
                if let Some(stored) = self.sessions.get_mut(session) {
                    *stored += 1;
                }
            }
        }
    }

    fn close(&self, db: &Connection) -> rusqlite::Result<()> {
        let bytes = i64::try_from(self.bytes).unwrap_or(i64::MAX);
        db.prepare_cached(
            "INSERT OR REPLACE INTO received_day (day, spans, bytes) VALUES (?1, ?2, ?3)",
        )?
        .execute((self.day, self.spans.cast_signed(), bytes))?;
        db.prepare_cached("DELETE FROM received_day WHERE day < ?1")?.execute([self.day])?;
        Ok(())
    }
}

/// Size of a span: the bytes of its texts, plus a constant for its numbers.
fn size(span: &ReceivedSpan) -> u64 {
    let texts = [&span.name, &span.service, &span.scope, &span.attributes];
    let optional = [&span.message, &span.session, &span.tool, &span.directory, &span.model];
    let texts = texts.iter().map(|text| text.len()).sum::<usize>();
    let optional = optional.iter().filter_map(|text| text.as_ref()).map(String::len).sum::<usize>();
    (texts + optional + 100) as u64
}

enum Stored {
    New,
    Known,
    Own,
    /// Refused because of a limit, with the limit's counter.
    Refused(&'static str),
}

fn store_span(
    db: &Connection,
    span: &ReceivedSpan,
    room: &mut Room,
    now_ns: i64,
) -> rusqlite::Result<Stored> {
    let known = "SELECT 1 FROM received_span WHERE trace = ?1 AND id = ?2";
    if db.prepare_cached(known)?.exists((&span.trace, &span.id))? {
        return Ok(Stored::Known);
    }
    let mut span = Cow::Borrowed(span);
    let mut joined = span.session.is_some().then_some(join::SESSION_ID);
    match room.traces.of(db, &span.trace)? {
        Whose::Ours(home) => {
            if join::has(db, home.root_id, &span.id)? {
                return Ok(Stored::Own);
            }
            joined = Some(join::TRACEPARENT);
            span.to_mut().session = Some(home.root.clone());
        }
        Whose::Known(session, how) if span.session.is_none() => {
            joined = Some(*how);
            span.to_mut().session = Some(session.clone());
        }
        Whose::Known(..) | Whose::Nobody => {}
    }
    if let Some(limit) = room.refuses(db, &span)? {
        return Ok(Stored::Refused(limit));
    }
    insert(db, &span, joined, now_ns)?;
    room.used(&span);
    Ok(Stored::New)
}

fn insert(
    db: &Connection,
    span: &ReceivedSpan,
    joined: Option<i64>,
    now_ns: i64,
) -> rusqlite::Result<()> {
    let Usage { input, output, cache_read, cache_write, cost } = span.usage.unwrap_or_default();
    db.prepare_cached(
        "INSERT INTO received_span (trace, id, parent, kind, name, service, scope, start_ns, end_ns, status, message,
                                    attributes, cut, session, joined, tool, directory, model, input, output,
                                    cache_read, cache_write, cost, received_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
                 ?23, ?24)",
    )?
    .execute(rusqlite::params![
        span.trace,
        span.id,
        span.parent,
        span.kind,
        span.name,
        span.service,
        span.scope,
        span.start_ns,
        span.end_ns,
        span.status,
        span.message,
        span.attributes,
        span.cut,
        span.session,
        joined,
        span.tool,
        span.directory,
        span.model,
        input,
        output,
        cache_read,
        cache_write,
        cost,
        now_ns,
    ])
    .map(drop)
}

fn series(db: &Connection) -> rusqlite::Result<i64> {
    db.prepare_cached("SELECT count(*) FROM received_series")?.query_row([], |row| row.get(0))
}

fn is_known(db: &Connection, key: &[u8; 16]) -> rusqlite::Result<bool> {
    db.prepare_cached("SELECT 1 FROM received_series WHERE key = ?1")?.exists([key])
}

enum Told {
    /// The first point of its series.
    New,
    /// A later point of a known series.
    More,
    /// A point that was counted before.
    Known,
}

/// Adds the increase since the last point of the series.
fn store_point(db: &Connection, point: &Point, now_ns: i64) -> rusqlite::Result<Told> {
    let last: Option<(i64, f64)> = db
        .prepare_cached("SELECT at_ns, value FROM received_series WHERE key = ?1")?
        .query_row([&point.key], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let more = match last {
        Some((at_ns, _)) if point.at_ns <= at_ns => return Ok(Told::Known),
        Some((_, value)) if point.is_cumulative && point.value >= value => point.value - value,
        // Also for a cumulative value that became smaller: the sender has reset it without a new start.
        _ => point.value,
    };
    db.prepare_cached(
        "INSERT INTO received_series (key, session, at_ns, value, received_ns) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (key) DO UPDATE SET at_ns = excluded.at_ns, value = excluded.value,
             received_ns = excluded.received_ns",
    )?
    .execute((&point.key, &point.session, point.at_ns, point.value, now_ns))?;
    let mut usage = Usage::default();
    #[expect(clippy::cast_possible_truncation, reason = "checked to be finite and below 2^53")]
    let tokens = Some(more as i64);
    match point.of {
        Field::Input => usage.input = tokens,
        Field::Output => usage.output = tokens,
        Field::CacheRead => usage.cache_read = tokens,
        Field::CacheWrite => usage.cache_write = tokens,
        Field::Cost => usage.cost = Some(more),
    }
    if point.beside_input {
        usage.input = tokens;
    }
    add_usage(db, point, usage, now_ns)?;
    Ok(if last.is_none() { Told::New } else { Told::More })
}

fn add_usage(db: &Connection, point: &Point, more: Usage, now_ns: i64) -> rusqlite::Result<()> {
    // A sum is NULL until a value is added to it.
    let sum = |column: &str| {
        format!(
            "{column} = CASE WHEN excluded.{column} IS NULL THEN {column}
                             ELSE coalesce({column}, 0) + excluded.{column} END"
        )
    };
    let sums = ["input", "output", "cache_read", "cache_write", "cost"].map(sum).join(", ");
    db.prepare_cached(&format!(
        "INSERT INTO received_usage (session, service, model, input, output, cache_read, cache_write, cost, first_ns,
                                     last_ns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9)
         ON CONFLICT (session, service, model) DO UPDATE SET {sums}, last_ns = excluded.last_ns"
    ))?
    .execute(rusqlite::params![
        point.session,
        point.service,
        point.model,
        more.input,
        more.output,
        more.cache_read,
        more.cache_write,
        more.cost,
        now_ns,
    ])
    .map(drop)
}
