//! Looks at the sessions regularly, and sends new notices.

use std::io::Read as _;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use hookspan_view::health::JournalHealth;
use hookspan_view::now::{Standing, standing};
use hookspan_view::source::Sessions as _;

use super::decide::{Memory, New, decide};
use super::deliver::Deliver;
use super::ledger::Ledger;
use super::notice::Notice;
use crate::clock;
use crate::config::Global;
use crate::dirs::ServeInfo;
use crate::redaction::Redaction;
use crate::source::StoreSource;
use crate::text;

/// Interval between two checks whether something was recorded. A check reads one row.
const LOOK: Duration = Duration::from_secs(2);
/// Number of checks after which the sessions are judged even if nothing was recorded: a call that runs for too long
/// counts as waiting.
const JUDGE_EVERY: u32 = 5;

/// Sends notices until the standard input is closed. First it waits for a line, which says that the collector has
/// opened the store.
///
/// # Errors
/// The configuration cannot be read.
pub(crate) fn run(global: &Global) -> anyhow::Result<()> {
    let config = global.config()?;
    if config.notify.is_off() {
        return Ok(());
    }
    let redaction = Redaction::load(&global.state, &config.redact)?;
    let ended = input();
    if ended.recv().is_err() {
        return Ok(());
    }
    let ledger = Ledger::read(&global.state);
    let mut watch = Watch {
        global,
        source: StoreSource::new(&global.state.database(), Box::new(JournalHealth::default), []),
        deliver: Deliver::new(&config.notify, &global.env),
        redaction,
        memory: Memory::of(ledger.seen.clone()),
        ledger,
    };
    let (mut rev, mut looks, mut first) = (None, 0, true);
    loop {
        let now = watch.source.position().ok().map(|position| (position.epoch, position.rev));
        looks += 1;
        if now != rev || looks >= JUDGE_EVERY {
            match watch.look(first) {
                Ok(()) => first = false,
                Err(error) => tracing::warn!(%error, "notify.not_looked"),
            }
            (rev, looks) = (now, 0);
        }
        match ended.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Returns a channel that gets one message when the standard input has its first byte. The channel closes when the
/// input closes.
fn input() -> Receiver<()> {
    let (first, heard) = bounded(1);
    thread::spawn(move || {
        let mut byte = [0];
        let mut stdin = std::io::stdin().lock();
        if stdin.read_exact(&mut byte).is_ok() && first.send(()).is_ok() {
            while matches!(stdin.read(&mut byte), Ok(1)) {}
        }
    });
    heard
}

struct Watch<'a> {
    global: &'a Global,
    source: StoreSource,
    deliver: Deliver<'a>,
    redaction: Redaction,
    memory: Memory,
    ledger: Ledger,
}

impl Watch<'_> {
    fn look(&mut self, first: bool) -> anyhow::Result<()> {
        let now = clock::now();
        let (sessions, _) = standing(&self.source, now)
            .map_err(|error| anyhow::anyhow!("cannot read the database: {}", error.0))?;
        let new = decide(&mut self.memory, &sessions, |kind| self.deliver.wants(kind), now, first);
        if !new.changed {
            return Ok(());
        }
        self.ledger.seen.clone_from(&self.memory.seen);
        self.ledger.dropped += new.dropped;
        // Written before anything is sent, so that after a crash nothing is sent twice.
        self.ledger.write(&self.global.state).context("cannot write notify.json")?;
        self.tell(&sessions, new);
        self.ledger.write(&self.global.state).context("cannot write notify.json")
    }

    fn tell(&mut self, sessions: &[Standing], new: New) {
        let place = ServeInfo::running(&self.global.state).and_then(|info| info.url());
        for (at, kind) in new.notices {
            let Some(standing) = sessions.get(at) else { continue };
            let notice = Notice::new(kind, standing, place.as_deref(), &self.redaction);
            for way in self.deliver.ways(kind) {
                let state = self.ledger.ways.entry(way).or_default();
                match self.deliver.tell(way, &notice) {
                    Ok(()) => {
                        state.sent += 1;
                        state.failing = 0;
                    }
                    Err(failure) => {
                        tracing::warn!(way = way.as_str(), %failure, "notify.failed");
                        state.failed += 1;
                        state.failing += 1;
                        state.last_error = Some(text::visible(&failure.to_string(), 200));
                        state.last_error_s = clock::now().0 / 1_000_000_000;
                    }
                }
            }
        }
    }
}
