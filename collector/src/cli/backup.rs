//! `hookspan backup`: copies the whole database, whether or not a collector runs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::{Global, output};
use crate::store::backup;

/// Copy the database to a new file; the collector may keep running
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan backup ~/hookspan-backup.db\n  hookspan backup --json /mnt/backup/hookspan.db\n\nTo \
                  go back to it: stop the collector, move hookspan.db, hookspan.db-wal and hookspan.db-shm of the state \
                  directory away, and put the copy there as hookspan.db."
)]
pub(crate) struct Args {
    /// The new file; an existing file is not replaced
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Answer {
    file: PathBuf,
    bytes: u64,
}

/// Runs the command.
///
/// # Errors
/// There is no database, or the copy cannot be written.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let file = global.env.current_dir().join(&args.file);
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("copying {wide_bar} {percent}% {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    backup::copy(&global.state.database(), &file, |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    let found = file.metadata().with_context(|| format!("cannot look at {}", file.display()))?;
    if args.json {
        output::print_json(&Answer { file, bytes: found.len() })?;
    } else {
        output::print(&format!("{}: {}\n", file.display(), crate::text::bytes(found.len())))?;
    }
    Ok(ExitCode::SUCCESS)
}
