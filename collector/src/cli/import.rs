//! `hookspan import`: reads recorded hooks from files. They take the same path as live hooks.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use serde::Serialize;

use super::{Global, output};
use crate::clock;
use crate::config::zone;
use crate::dirs::{Lock, LockError, StateDir};
use crate::import::{self, Judged, Remark, Remarks, Report, Source, Staged, Zone};
use crate::ingest::Local;
use crate::store::imports;
use crate::store::open::Readers;
use crate::store::write::ImportCounts;

/// How often to ask a running collector for its progress.
const ASK: Duration = Duration::from_millis(50);

/// Import recorded hooks: JSON Lines, other JSON, or the log of an audit script
///
/// Files may be compressed (gzip, Zstandard) or UTF-16. JSON may be pretty-printed or an array. In a log, a time before
/// a hook is the time of that hook: `[2026-10-05 12:00:01] {"hook_event_name": ...}`, as the audit script in Cursor's
/// documentation writes it. A file can be imported again: hooks that are already stored are skipped.
#[derive(Debug, Default, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan import hooks.jsonl\n  hookspan import /tmp/agent-audit.log --timezone Europe/Berlin\n  \
                  hookspan import --json *.jsonl.gz\n  ssh host cat hooks.jsonl.zst | hookspan import -\n\nA file that is mostly no JSON \
                  is refused before anything is stored; --force stores it line by line, as malformed hooks. A damaged archive is \
                  imported up to the damage, with exit code 1."
)]
pub(crate) struct Args {
    /// Files to read; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Time zone of times without a zone: "Europe/Berlin", "+02:00", "UTC", "local" [default: local]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub timezone: Option<String>,
    /// Import binary files and files that are mostly not JSON, too
    #[arg(long)]
    pub force: bool,
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
    /// Number of files that could be read only in part.
    damaged: usize,
    notes: Vec<Note>,
}

/// The parts of a file that were not understood. Never contains their text.
#[derive(Serialize)]
struct Note {
    file: String,
    kind: &'static str,
    count: u64,
    first_line: u64,
}

/// Runs the command.
///
/// # Errors A file cannot be read or has no recorded hooks, or the store cannot be written.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let config = global.config()?;
    let dir = &global.state;
    let zone = match &args.timezone {
        Some(name) => zone::parse(name)?,
        None => zone::of_this_machine(),
    };
    dir.prepare()?;
    // All files are checked before the first one is copied. So an unsuitable file changes nothing.
    let mut judged = Vec::new();
    for file in &args.files {
        let (input, len) = open(file, args.force)?;
        // A regular file is closed and opened again later, because thousands of files cannot be open at once.
        judged.push((file, len.is_none().then_some(input)));
    }
    let (mut staged, mut notes, mut damaged) = (Vec::new(), Vec::new(), 0);
    for (number, (file, input)) in judged.into_iter().enumerate() {
        let (input, len) = match input {
            Some(input) => (input, None),
            None => open(file, args.force)?,
        };
        let mut zone = Zone::new(zone.0.clone(), zone.1.clone());
        let Report { staged: one, remarks, damage } =
            stage(dir, file, number as u64, input, &mut zone, len)?;
        staged.push(one);
        let shown = file.display();
        for note in zone.notes() {
            output::note(&format!("{shown}: {note}"));
        }
        remark(&shown.to_string(), &remarks, &mut notes);
        if let Some(damage) = damage {
            damaged += 1;
            output::note(&format!(
                "{shown}: {damage}. Hooks before this point were imported. Import the file again when it is complete."
            ));
        }
    }
    let ImportCounts { new, duplicate, malformed } = take_in(dir, config.core, &staged)?;
    if args.json {
        let files = staged.len();
        output::print_json(&Answer { new, duplicate, malformed, files, damaged, notes })?;
    } else {
        output::print(&format!(
            "{} new, {} already stored, {} not valid JSON (kept raw)\n",
            HumanCount(new),
            HumanCount(duplicate),
            HumanCount(malformed)
        ))?;
    }
    Ok(if damaged > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Reports what was not understood. Only a terminal shows the first such line; no log or pipe gets it.
fn remark(file: &str, remarks: &Remarks, notes: &mut Vec<Note>) {
    for (remark, found) in remarks {
        let first = if output::can_ask() && *remark != Remark::Unfinished {
            format!("line {}: {}", found.line, found.shown)
        } else {
            format!("line {}", found.line)
        };
        output::note(&format!("{file}: {} (first: {first})", remark.sentence(found.count)));
        notes.push(Note {
            file: file.to_owned(),
            kind: remark.word(),
            count: found.count,
            first_line: found.line,
        });
    }
}

/// A file to read: its format, recognised by its beginning, and its length if it has one.
fn open(path: &Path, force: bool) -> anyhow::Result<(Judged<'static>, Option<u64>)> {
    let shown = path.display();
    let (input, len): (Box<dyn Read>, _) = if path == Path::new("-") {
        (Box::new(io::stdin()), None)
    } else {
        let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
        let found = file.metadata().with_context(|| format!("cannot read {shown}"))?;
        anyhow::ensure!(
            !found.is_dir(),
            "cannot read {shown}: it is a folder; name the files in it"
        );
        let len = found.is_file().then_some(found.len());
        (Box::new(file), len)
    };
    let source = Source::open(input).with_context(|| format!("cannot read {shown}"))?;
    let judged = import::judge(source, force)
        .with_context(|| format!("{shown} is not imported (--force imports it anyway)"))?;
    Ok((judged, len))
}

fn stage(
    dir: &StateDir,
    path: &Path,
    number: u64,
    input: Judged<'_>,
    zone: &mut Zone,
    bytes: Option<u64>,
) -> anyhow::Result<Report> {
    let bar = match bytes {
        Some(bytes) => ProgressBar::new(bytes),
        None => ProgressBar::new_spinner(),
    };
    let style = ProgressStyle::with_template("reading {wide_bar} {bytes}/{total_bytes}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let unique = u64::from(std::process::id()) << 32 | number;
    let staged =
        import::stage(dir, clock::now(), unique, input, zone, |done| bar.set_position(done));
    bar.finish_and_clear();
    staged
        .with_context(|| format!("cannot copy {} into {}", path.display(), dir.imports().display()))
}

/// Imports the staged files: through the running collector, or in this process.
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
                return done(&readers, staged)?.context("the store has no record of the import");
            }
            Err(LockError::Busy(_)) => {
                bar.set_message("the collector imports it");
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

/// Imports everything that is staged, oldest first, including imports that an interrupted command left behind.
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

/// The result of the imports in `staged`, once all of them are complete.
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
