//! `hookspan rebuild`: derives everything again from the raw log.

use std::process::ExitCode;

use anyhow::Context as _;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use serde::Serialize;

use super::{Global, output};
use crate::dirs::Lock;
use crate::ingest::Local;

/// Derive sessions and spans again from the raw log; the collector must not run
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  hookspan rebuild\n  hookspan rebuild --json")]
pub(crate) struct Args {
    /// Print the counts as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Answer {
    hooks: u64,
}

/// Runs the command.
///
/// # Errors
/// A collector runs, or the store cannot be written.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let config = global.config()?;
    let dir = &global.state;
    dir.verify()?;
    anyhow::ensure!(
        dir.database().exists(),
        "{}: no hooks have been collected here yet, so there is nothing to rebuild",
        dir.database().display()
    );
    let lock = Lock::acquire(dir).context("cannot rebuild")?;
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {per_sec} {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut show = |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    };
    bar.set_message("catching up");
    let local = Local::open(dir, lock, config.core, &mut show)?;
    bar.set_message("rebuilding");
    let hooks = local.rebuild(&mut show)?;
    bar.finish_and_clear();
    if args.json {
        output::print_json(&Answer { hooks })?;
    } else {
        output::print(&format!("Rebuilt from {} hooks\n", HumanCount(hooks)))?;
    }
    Ok(ExitCode::SUCCESS)
}
