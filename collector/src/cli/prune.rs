//! `hookspan prune`: delete old recordings now.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use hookspan_view::source::{Deleted, LineFilter};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use serde::Serialize;

use super::calendar::Calendar;
use super::narrow::Narrow;
use super::{Global, output};
use crate::audit::{AuditFile, What};
use crate::clock;
use crate::config::Misuse;
use crate::dirs::{Lock, LockError, StateDir};
use crate::ingest::Local;
use crate::journal::{Position, survey};
use crate::store::open::{self, OpenError};
use crate::store::salvage::{self, Aside};
use crate::store::{cli, prune};
use crate::text::counted;

/// The advice if a collector runs.
const BUSY: &str = "cannot prune while a collector runs. It prunes by itself if retention.max_age is set. To prune now, stop it (`systemctl --user \
                    stop hookspan`, or end the process), prune, and start it again; hooks wait in the journal meanwhile";

/// Delete old sessions, and old hooks without a session; the collector must not run
///
/// With --tool, --kind, --model, --project, --status, --from, --to, --branch, --outcome, --tag or --starred, only the
/// sessions that `hookspan sessions` lists with these flags are deleted, and no hooks without a session. A session is deleted from all files: hooks, spans,
/// search index, journal and export queues. The age of a hook without a session counts from its time, and the age of a
/// damaged database from the time when it was moved aside.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan prune --older-than 90d --dry-run\n  hookspan prune --older-than 90d\n  hookspan prune --project scratch \
                  --older-than 7d\n  hookspan prune --older-than 0s --yes      # everything\n  hookspan prune --damaged\n\nA running collector prunes by itself: set \
                  retention.max_age or retention.max_bytes in the configuration."
)]
pub(crate) struct Args {
    /// Delete data older than this: "90d", "12h", or "0s" for everything. The age of a session counts from its last
    /// event
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub older_than: Option<Duration>,
    #[command(flatten)]
    narrow: Narrow,
    /// Delete every damaged database that was moved aside, whatever its age
    #[arg(long)]
    pub damaged: bool,
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Delete without asking
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Print the counts as JSON
    #[arg(long)]
    pub json: bool,
}

/// Counts of what was deleted, or would be deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Answer {
    sessions: u64,
    turns: u64,
    spans: u64,
    hooks: u64,
    /// Bytes of payloads, as they were received.
    bytes: u64,
    damaged_databases: usize,
    damaged_bytes: u64,
    deleted: bool,
}

impl Answer {
    fn new(counted: &Deleted, damaged: &[Aside], deleted: bool) -> Self {
        let damaged_bytes = damaged.iter().map(Aside::bytes).sum();
        let damaged_databases = damaged.len();
        Self { damaged_databases, damaged_bytes, deleted, ..Self::default() }.with(counted)
    }

    /// Adds the counts of sessions and hooks.
    fn with(self, counted: &Deleted) -> Self {
        let Deleted { sessions, turns, spans, hooks, bytes, .. } = *counted;
        Self { sessions, turns, spans, hooks, bytes, ..self }
    }

    fn is_nothing(&self) -> bool {
        self.hooks == 0 && self.sessions == 0 && self.damaged_databases == 0
    }
}

/// Runs the command.
///
/// # Errors
///
/// A collector runs, there is no terminal to ask on, or the store cannot be written.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let config = global.config()?;
    let dir = &global.state;
    let filter = args.narrow.filter(&Calendar::of_this_machine())?;
    let before = before(&args, &filter)?;
    let counted = count(dir, &filter, before)?;
    if args.dry_run {
        let damaged = damaged(dir, &args, &filter, before, Lock::is_held(dir));
        say(&args, &Answer::new(&counted, &damaged, false))?;
        tell_what_stays(dir, &damaged);
        return Ok(ExitCode::SUCCESS);
    }
    dir.verify()?;
    // A database that was moved aside and saved can be deleted even while a collector runs.
    let lock = match Lock::acquire(dir) {
        Err(LockError::Busy(_)) if before.is_none() => None,
        lock => Some(lock.context(BUSY)?),
    };
    let damaged = damaged(dir, &args, &filter, before, lock.is_none());
    let planned = Answer::new(&counted, &damaged, false);
    if !args.yes && !planned.is_nothing() && !consent(&planned)? {
        output::note("nothing was deleted");
        return Ok(ExitCode::FAILURE);
    }
    for aside in &damaged {
        salvage::remove(aside)
            .with_context(|| format!("cannot delete {}", aside.folder.display()))?;
    }
    let mut deleted = Deleted::default();
    if let Some((before, lock)) = before.zip(lock).filter(|_| dir.database().exists()) {
        let bar = bar(&planned);
        let mut local = Local::open(dir, lock, config.core, |_, _| {})?;
        let progress = |gone: &Deleted| bar.set_position(gone.hooks);
        deleted = match filter.is_empty() {
            true => local.prune(before, progress)?,
            false => local.prune_matching(&filter, before, progress)?,
        };
        local.settle()?;
        bar.finish_and_clear();
    }
    let is_nothing = planned.is_nothing();
    let gone = Answer { deleted: true, ..planned }.with(&deleted);
    if !is_nothing {
        let detail = format!("{}, by `hookspan prune`", text(&gone).trim_start_matches("Deleted "));
        output::audited(AuditFile::new(dir).add(What::Deleted, &detail));
    }
    say(&args, &gone)?;
    tell_what_stays(dir, &damaged);
    Ok(ExitCode::SUCCESS)
}

/// Everything before this time is deleted.
fn before(args: &Args, filter: &LineFilter) -> anyhow::Result<Option<i64>> {
    if !filter.is_empty() && args.damaged {
        return Err(Misuse("--damaged cannot be combined with filters of sessions".into()).into());
    }
    if !filter.is_empty() && args.older_than.is_none() {
        return Ok(Some(i64::MAX));
    }
    if args.older_than.is_none() && !args.damaged {
        return Err(Misuse(
            "say what to delete: --older-than TIME, --damaged, --project NAME or another filter"
                .into(),
        )
        .into());
    }
    let age = |age: Duration| i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
    // An age of zero deletes everything, including hooks whose clock was ahead.
    Ok(args.older_than.map(|older| match age(older) {
        0 => i64::MAX,
        age => clock::now().0.saturating_sub(age),
    }))
}

/// Which of the databases moved aside are deleted. A database that a running collector may still be saving stays. If
/// flags select sessions, all of them stay, because a damaged database may contain hooks of any session.
fn damaged(
    dir: &StateDir,
    args: &Args,
    filter: &LineFilter,
    before: Option<i64>,
    is_used: bool,
) -> Vec<Aside> {
    if !filter.is_empty() {
        return Vec::new();
    }
    if !args.damaged {
        return salvage::older_than(dir, before.unwrap_or(0));
    }
    salvage::aside(dir).into_iter().filter(|aside| !is_used || aside.report.is_some()).collect()
}

fn count(dir: &StateDir, filter: &LineFilter, before: Option<i64>) -> anyhow::Result<Deleted> {
    let Some(before) = before else { return Ok(Deleted::default()) };
    match open::reader(&dir.database()) {
        Ok(database) => {
            let position = cli::journal_position(&database)?;
            let position: Position =
                position.and_then(|text| text.parse().ok()).unwrap_or_default();
            if survey::survey(dir, &position).is_ok_and(|found| found.after_position > 0) {
                output::note(
                    "Hooks wait in the journal. They are stored first. Sessions that they continue are not old any more and stay.",
                );
            }
            if filter.is_empty() {
                return Ok(prune::count(&database, before)?);
            }
            let roots = prune::matching(&database, filter, before, usize::MAX)?;
            Ok(prune::count_of(&database, &roots)?)
        }
        // There is no database yet. The deletion stores the hooks of the journal first, and then counts them.
        Err(OpenError::Missing(_)) => Ok(Deleted::default()),
        Err(error) => Err(error.into()),
    }
}

fn consent(planned: &Answer) -> anyhow::Result<bool> {
    anyhow::ensure!(output::can_ask(), "not a terminal: pass --yes to delete recorded data");
    output::note(&text(planned));
    output::ask("Delete this? It cannot be undone.")
}

fn bar(planned: &Answer) -> ProgressBar {
    let bar = ProgressBar::new(planned.hooks);
    let style =
        ProgressStyle::with_template("deleting {wide_bar} {human_pos}/{human_len} hooks {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Names the damaged databases that stay, and why.
fn tell_what_stays(dir: &StateDir, gone: &[Aside]) {
    for aside in salvage::aside(dir).iter().filter(|aside| !gone.contains(aside)) {
        let why = match aside.report {
            None if Lock::is_held(dir) => {
                "the running collector is still copying hooks from it. Delete it when `hookspan status` no longer shows this."
            }
            _ => {
                "a damaged database may contain hooks of any session. `hookspan prune --damaged` deletes it."
            }
        };
        output::note(&format!("{} stays: {why}", aside.folder.display()));
    }
}

fn text(answer: &Answer) -> String {
    let Answer { sessions, turns, spans, hooks, bytes, damaged_databases, damaged_bytes, deleted } =
        *answer;
    let verb = if deleted { "Deleted" } else { "Would delete" };
    let (sessions, turns) = (counted(sessions, "session"), counted(turns, "turn"));
    let (spans, hooks) = (counted(spans, "span"), counted(hooks, "hook"));
    let mut text = format!("{verb} {sessions}, {turns}, {spans}, {hooks} ({})", HumanBytes(bytes));
    if damaged_databases > 0 {
        let databases = counted(damaged_databases as u64, "damaged database");
        text += &format!(", and {databases} ({})", HumanBytes(damaged_bytes));
    }
    text
}

fn say(args: &Args, answer: &Answer) -> anyhow::Result<()> {
    if args.json { output::print_json(answer) } else { output::print(&(text(answer) + "\n")) }
}
