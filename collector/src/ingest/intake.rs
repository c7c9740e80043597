//! From journal records to batches.

use hookspan_core::{Hook, HookSource, Timestamp};

use crate::clock;
use crate::dirs::StateDir;
use crate::engine::{Batch, Horizon};
use crate::journal::{Counters, Follower, JournalError, Limits, Position, Record, Usage, losses};
use crate::store::write::Preparer;

/// Hooks of a batch. A page of the database that several hooks change is written once a batch, so large ones cost less; only
/// a backlog fills one.
const ROWS: usize = 2_000;
/// Bytes of a batch, the last few hooks aside, before they are packed.
const BYTES: usize = 16 << 20;
/// Records asked for at a time: bounds what large ones can take beyond [`BYTES`].
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
    /// Opens the journal at `position`, as the store has it. A text that is no position means the beginning: what is stored
    /// already is known by its id.
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

    /// What is there now, at most a batch of it, and the position it goes up to. The batch's horizon says whether that was
    /// all: [`Horizon::Still`] means that a segment could not be read, and that [`Follower::problems`] says why.
    pub(crate) fn read(&mut self) -> (Batch, Option<Position>) {
        let mut batch = Batch::default();
        let (mut bytes, mut last) = (0, None);
        let mut position = None;
        loop {
            let looked_at = clock::now();
            let found = self.follower.poll(STEP);
            position = found.position.or(position);
            if found.records.is_empty() {
                // What cannot be read may be older than anything else: time does not pass.
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

    /// The position it was opened at.
    #[must_use]
    pub(crate) fn position(&self) -> &Position {
        &self.position
    }

    /// What the journal takes on disk.
    #[must_use]
    pub(crate) fn usage(&self) -> Usage {
        self.follower.usage()
    }

    /// What the journal's reader cannot do at present, in words.
    #[must_use]
    pub(crate) fn problems(&self) -> String {
        let problems = self.follower.problems();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    /// The journal's reader, to wait and to let go of segments.
    pub(crate) fn follower(&mut self) -> &mut Follower {
        &mut self.follower
    }

    /// Whether a probe of `doctor` was read since the last call. Somebody waits for the position behind it.
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

    /// What the reader has counted since the last batch.
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

    /// Losses by reason, when there are new ones.
    fn losses(&mut self) -> Vec<(String, u64)> {
        // What cannot be looked at now is looked at with the next batch.
        let Ok(bytes) = losses::bytes(&self.dir) else { return Vec::new() };
        if bytes == self.losses_bytes {
            return Vec::new();
        }
        let Ok(losses) = losses::read(&self.dir) else { return Vec::new() };
        self.losses_bytes = bytes;
        losses.by_reason.into_iter().map(|(reason, n)| (format!("lost.{reason}"), n)).collect()
    }
}
