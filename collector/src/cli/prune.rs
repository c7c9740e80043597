//! `hookspan prune`: delete old sessions now.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::{Global, output};
use crate::clock;
use crate::dirs::Lock;
use crate::ingest::Local;
use crate::store::{open, prune};

/// The most sessions of one run that are only counted.
const COUNTED_MAX: u32 = 1_000_000;

/// Delete old sessions with everything recorded of them; the collector must not run
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan prune --older-than 90d --dry-run\n  hookspan prune --older-than 90d\n\nA running \
                  collector prunes by itself: set retention.max_age or retention.max_bytes in the configuration."
)]
pub struct Args {
    /// Sessions whose last event is older than this, like "90d" or "12h"
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub older_than: Duration,
    /// Only count them
    #[arg(long)]
    pub dry_run: bool,
    /// Print the counts as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Default, Serialize)]
struct Answer {
    sessions: u64,
    spans: u64,
    hooks: u64,
    deleted: bool,
}

/// Runs the command.
///
/// # Errors
/// A collector runs, or the store cannot be written.
pub fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let config = global.config()?;
    let dir = &global.state;
    let age = i64::try_from(args.older_than.as_nanos()).unwrap_or(i64::MAX);
    let before = clock::now().0.saturating_sub(age);
    if args.dry_run {
        let database = open::reader(&dir.database())?;
        let sessions = prune::older_than(&database, before, COUNTED_MAX)?.len() as u64;
        return say(&args, &Answer { sessions, ..Answer::default() });
    }
    dir.verify()?;
    let lock = Lock::acquire(dir)
        .context("cannot prune; a running collector does by itself, with retention.max_age")?;
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("pruning {wide_bar} {pos} sessions");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut local = Local::open(dir, lock, config.core, |_, _| {})?;
    let mut answer = Answer { deleted: true, ..Answer::default() };
    loop {
        let roots = local.older_than(before)?;
        if roots.is_empty() {
            break;
        }
        let deleted = local.delete(&roots)?;
        answer.sessions += deleted.sessions;
        answer.spans += deleted.spans;
        answer.hooks += deleted.hooks;
        bar.inc(deleted.sessions);
    }
    local.settle()?;
    bar.finish_and_clear();
    say(&args, &answer)
}

fn say(args: &Args, answer: &Answer) -> anyhow::Result<ExitCode> {
    if args.json {
        output::print_json(answer)?;
    } else if answer.deleted {
        let Answer { sessions, spans, hooks, .. } = answer;
        output::print(&format!(
            "{sessions} sessions deleted, with {spans} spans and {hooks} hooks\n"
        ))?;
    } else {
        output::print(&format!("{} sessions would be deleted\n", answer.sessions))?;
    }
    Ok(ExitCode::SUCCESS)
}
