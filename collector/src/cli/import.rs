//! `hookspan import`: recorded hooks from files, by the same path as live ones.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::{Global, output};
use crate::clock;
use crate::dirs::{Lock, LockError, StateDir};
use crate::import::{self, Staged};
use crate::ingest::Local;
use crate::store::imports;
use crate::store::open::Readers;
use crate::store::write::ImportCounts;

/// How often a running collector is asked how far it is.
const ASK: Duration = Duration::from_millis(50);

/// Read recorded hooks (JSON Lines) into the store
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan import hooks.jsonl\n  cat hooks.jsonl | hookspan import -\n  hookspan import --json *.jsonl"
)]
pub struct Args {
    /// Files to read; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Print the counts as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Answer {
    new: u64,
    duplicate: u64,
    malformed: u64,
    files: usize,
}

/// Runs the command.
///
/// # Errors
/// A file cannot be read, or the store cannot be written.
pub fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let config = global.config()?;
    let dir = &global.state;
    dir.prepare()?;
    // A name that is wrong changes nothing: all files are opened before the first one is copied.
    let mut inputs = Vec::new();
    for file in &args.files {
        inputs.push((file, open(file)?));
    }
    let mut staged = Vec::new();
    for (number, (file, (mut input, bytes))) in inputs.into_iter().enumerate() {
        staged.push(stage(dir, file, number as u64, &mut *input, bytes)?);
    }
    let counts = take_in(dir, config.core, &staged)?;
    let ImportCounts { new, duplicate, malformed } = counts;
    if args.json {
        output::print_json(&Answer { new, duplicate, malformed, files: staged.len() })?;
    } else {
        output::print(&format!(
            "{new} new, {duplicate} known already, {malformed} malformed (kept as they are)\n"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A file to read, and its length where it has one.
fn open(path: &Path) -> anyhow::Result<(Box<dyn Read>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin().lock()), None));
    }
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let found = file.metadata().with_context(|| format!("cannot read {shown}"))?;
    anyhow::ensure!(!found.is_dir(), "cannot read {shown}: it is a folder; name the files in it");
    let len = found.is_file().then_some(found.len());
    Ok((Box::new(file), len))
}

fn stage(
    dir: &StateDir,
    path: &Path,
    number: u64,
    input: &mut dyn Read,
    bytes: Option<u64>,
) -> anyhow::Result<Staged> {
    let bar = match bytes {
        Some(bytes) => ProgressBar::new(bytes),
        None => ProgressBar::new_spinner(),
    };
    let style = ProgressStyle::with_template("reading {wide_bar} {bytes}/{total_bytes}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let unique = u64::from(std::process::id()) << 32 | number;
    let staged = import::stage(dir, clock::now(), unique, input, |done| bar.set_position(done));
    bar.finish_and_clear();
    staged
        .with_context(|| format!("cannot copy {} into {}", path.display(), dir.imports().display()))
}

/// Has the staged files taken in: by the running collector, or here.
fn take_in(
    dir: &StateDir,
    config: hookspan_core::Config,
    staged: &[Staged],
) -> anyhow::Result<ImportCounts> {
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {per_sec}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let readers = Readers::new(dir.database());
    loop {
        match Lock::acquire(dir) {
            Ok(lock) => {
                bar.set_style(style);
                here(dir, lock, config, staged, &bar)?;
                bar.finish_and_clear();
                return done(&readers, staged)?.context("the import left no trace in the store");
            }
            Err(LockError::Busy(_)) => {
                bar.set_message("the collector takes it in");
                bar.tick();
                if let Some(counts) = done(&readers, staged)? {
                    bar.finish_and_clear();
                    return Ok(counts);
                }
                std::thread::sleep(ASK);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Takes in everything that is staged, oldest first; imports that an interrupted command left are among it.
fn here(
    dir: &StateDir,
    lock: Lock,
    config: hookspan_core::Config,
    staged: &[Staged],
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let mut local = Local::open(dir, lock, config, |done, of| {
        bar.set_message("catching up");
        bar.set_length(of);
        bar.set_position(done);
    })?;
    for one in import::pending(dir)? {
        bar.set_message(if staged.contains(&one) {
            "importing"
        } else {
            "finishing an earlier import"
        });
        local.import(&one, |lines, of| {
            bar.set_length(of);
            bar.set_position(lines);
        })?;
    }
    local.settle()?;
    Ok(())
}

/// What `staged` came to, once all of it is done.
fn done(readers: &Readers, staged: &[Staged]) -> anyhow::Result<Option<ImportCounts>> {
    let mut sum = ImportCounts::default();
    for one in staged {
        let run = readers.with(|db| imports::run(db, &one.run));
        // A collector that is just starting may not have made the database yet.
        let Ok(Some(run)) = run else { return Ok(None) };
        if let Some(error) = run.error {
            anyhow::bail!("the collector cannot read the import: {error}");
        }
        if !run.done {
            return Ok(None);
        }
        sum.new += run.counts.new;
        sum.duplicate += run.counts.duplicate;
        sum.malformed += run.counts.malformed;
    }
    Ok(Some(sum))
}
