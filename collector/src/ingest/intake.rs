//! Turns journal records into batches.

use hookspan_core::{Hook, HookSource, Timestamp};

use crate::clock;
use crate::dirs::StateDir;
use crate::engine::{Batch, Horizon};
use crate::journal::{Counters, Follower, JournalError, Limits, Position, Record, Usage, losses};
use crate::store::write::Preparer;

/// Maximum number of hooks per batch. A database page that several hooks change is written once per batch, so large
/// batches cost less per hook. Only a backlog fills a batch.
const ROWS: usize = 2_000;
/// A batch is closed when it has this many bytes, before packing.
const BYTES: usize = 16 << 20;
/// Records read at a time. It limits how far large records can exceed [`BYTES`].
const STEP: usize = 50;

/// Reads the journal in batches.
#[derive(Debug)]
pub(crate) struct Intake {
    dir: StateDir,
    follower: Follower,
    position: Position,
    preparer: Preparer,
    told: Counters,
    losses_bytes: u64,
    probed: bool,
}

impl Intake {
    /// Opens the journal at the stored `position`. If the text is not a position, reading starts at the
    /// beginning. Hooks that are stored already are recognised by their id.
    ///
    /// # Errors
    /// When the state directory cannot be read or written.
    pub(crate) fn open(
        dir: &StateDir,
        position: Option<&str>,
        limits: Limits,
    ) -> Result<Self, JournalError> {
        let position: Position = position.and_then(|text| text.parse().ok()).unwrap_or_default();
        Ok(Self {
            dir: dir.clone(),
            follower: Follower::open(dir, &position, limits)?,
            position,
            preparer: Preparer::default(),
            told: Counters::default(),
            losses_bytes: 0,
            probed: false,
        })
    }

    /// Reads what is available now, but at most one batch, and returns it with the position after it. The batch's
    /// horizon tells whether that was everything. [`Horizon::Still`] means that a segment could not be read, see
    /// [`Follower::problems`].
    pub(crate) fn read(&mut self) -> (Batch, Option<Position>) {
        let mut batch = Batch::default();
        let (mut bytes, mut last) = (0, None);
        let mut position = None;
        loop {
            let looked_at = clock::now();
            let found = self.follower.poll(STEP);
            position = found.position.or(position);
            if found.records.is_empty() {
                // The part that cannot be read may be older than everything else, so time does not pass.
                batch.horizon = if found.unread { Horizon::Still } else { Horizon::End(looked_at) };
                break;
            }
            for record in found.records {
                bytes += record.body.len();
                last = Some(Timestamp(record.wall_ns.cast_signed()));
                self.add(record);
            }
            if self.preparer.waiting() >= ROWS || bytes >= BYTES {
                batch.horizon = last.map_or(Horizon::Still, Horizon::At);
                break;
            }
        }
        batch.arrivals = self.preparer.finish();
        batch.position = position.as_ref().map(ToString::to_string);
        batch.counts = self.news();
        batch.gauges = self.losses();
        (batch, position)
    }

    /// The position at opening.
    #[must_use]
    pub(crate) fn position(&self) -> &Position {
        &self.position
    }

    /// What the journal takes on disk.
    #[must_use]
    pub(crate) fn usage(&self) -> Usage {
        self.follower.usage()
    }

    /// The reader's current problems, as text.
    #[must_use]
    pub(crate) fn problems(&self) -> String {
        let problems = self.follower.problems();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    /// The journal's reader, for waiting and for releasing segments.
    pub(crate) fn follower(&mut self) -> &mut Follower {
        &mut self.follower
    }

    /// Whether a probe of `doctor` was read since the last call. `doctor` waits for the position after it.
    pub(crate) fn take_probed(&mut self) -> bool {
        std::mem::take(&mut self.probed)
    }

    fn add(&mut self, record: Record) {
        if record.is_probe() {
            self.probed = true;
            return;
        }
        let hook = Hook {
            seq: 0,
            observed_at: Timestamp(i64::try_from(record.wall_ns).unwrap_or(i64::MAX)),
            boottime_ns: record.boottime_ns,
            argument: record.argument,
            context: record.context,
            source: HookSource::Shim,
            body: record.body,
        };
        self.preparer.add(record.id, record.flags, hook);
    }

    /// The increase in the reader's counters since the last batch.
    fn news(&mut self) -> Vec<(&'static str, u64)> {
        let now = self.follower.counters();
        let old = std::mem::replace(&mut self.told, now);
        let all = [
            ("torn_frame", now.torn, old.torn),
            ("newer_frame", now.newer, old.newer),
            ("duplicate_frame", now.duplicate, old.duplicate),
            ("conflicting_frame", now.conflicting, old.conflicting),
            ("evicted_record", now.evicted, old.evicted),
            ("truncated_record", now.truncated, old.truncated),
            ("headless_record", now.headless, old.headless),
            ("journal_sync_failed", now.sync_failed, old.sync_failed),
        ];
        all.into_iter()
            .filter(|(_, now, old)| now > old)
            .map(|(key, now, old)| (key, now - old))
            .collect()
    }

    /// Losses by reason, if there are new ones.
    fn losses(&mut self) -> Vec<(String, u64)> {
        // If the files cannot be read now, the next batch tries again.
        let Ok(bytes) = losses::bytes(&self.dir) else { return Vec::new() };
        if bytes == self.losses_bytes {
            return Vec::new();
        }
        let Ok(losses) = losses::read(&self.dir) else { return Vec::new() };
        self.losses_bytes = bytes;
        losses.by_reason.into_iter().map(|(reason, n)| (format!("lost.{reason}"), n)).collect()
    }
}
