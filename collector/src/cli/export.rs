//! `hookspan export`: sessions as files, and what a destination would get.

mod preview;

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::ValueEnum as _;
use indicatif::{ProgressBar, ProgressStyle};
use rusqlite::Connection;

use super::Global;
use super::output::{self, note};
use crate::audit::{AuditFile, What};
use crate::config::Misuse;
use crate::config::destination::ContentPolicy;
use crate::export::file::{self, FileError, Selection};
use crate::export::otlp::Encoding;
use crate::export::resource::{ResourceBase, host_name};
use crate::redaction::Redaction;
use crate::store::open;
use crate::store::whole::{self, SessionRow};
use crate::text::counted;

/// Write recorded sessions as OTLP, a Chrome trace or the raw log
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan export --all --format jsonl --content full --output hooks.jsonl\n  hookspan export --session d95a19cf --format otlp-json\n  hookspan export --all --format otlp-proto --content off --output spans.pb\n  hookspan export --to jaeger --dry-run"
)]
pub(crate) struct Args {
    /// Only this session: its id, the beginning of its id, or `last`
    #[arg(long, value_name = "ID", conflicts_with = "all", required_unless_present_any = ["all", "to"])]
    pub session: Option<String>,
    /// Every session
    #[arg(long)]
    pub all: bool,
    /// Format of the output
    #[arg(long, value_enum, required_unless_present = "to")]
    pub format: Option<Format>,
    /// Show what this configured destination would get, as OTLP/JSON. Needs --dry-run, because only the collector sends
    #[arg(long, value_name = "NAME", requires = "dry_run", conflicts_with_all = ["format", "content", "no_redact"])]
    pub to: Option<String>,
    /// With --to: only show what would be sent of the last session, or of --session; send nothing
    #[arg(long, requires = "to")]
    pub dry_run: bool,
    /// How much content the output has
    #[arg(long, value_enum, default_value_t = Content::Metadata)]
    pub content: Content,
    /// Do not redact secrets. Needs --content full. Keep the output private
    #[arg(long)]
    pub no_redact: bool,
    /// Write to this file instead of standard output
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// OTLP/JSON: one {"resourceSpans": [...]} document
    OtlpJson,
    /// OTLP protobuf: one ExportTraceServiceRequest
    OtlpProto,
    /// Chrome trace events, for Perfetto and chrome://tracing
    ChromeTrace,
    /// The raw log, one hook a line; with --content full, `import` reads it back
    Jsonl,
    /// One HTML page without external files
    Html,
}

/// `--content`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Content {
    /// No paths, programs or names
    Off,
    /// Names and sizes, no content
    Metadata,
    /// Prompts, answers, arguments and results too, with secrets redacted; jsonl is the raw log, not redacted
    Full,
}

/// Runs the command.
///
/// # Errors
/// There is no such session, the store cannot be read, or the output cannot be written.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let db = open::reader(&global.state.database())?;
    let sessions = select(&db, &args)?;
    let Some(format) = args.format else { return preview::run(global, &args, &db, &sessions) };
    let resource = ResourceBase::from_env(&global.env, host_name()).map_err(Misuse::from)?;
    if args.no_redact && args.content != Content::Full {
        let words = "--no-redact needs --content full: with less content, secrets never leave";
        return Err(Misuse(words.to_owned()).into());
    }
    let redaction = match args.no_redact {
        true => None,
        false => Some(Redaction::load(&global.state, &global.config()?.redact)?),
    };
    if let Some(warning) = warning(&args, format) {
        note(warning);
    }
    let encoding = Encoding::file(args.content.into(), resource, redaction);
    let selection = Selection { db: &db, sessions: &sessions, all: args.all, encoding: &encoding };
    let bar = progress(sessions.len());
    let mut done = || bar.inc(1);
    match &args.output {
        Some(path) => {
            let file =
                private_file(path).with_context(|| format!("cannot write {}", path.display()))?;
            let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
            file::write(&selection, format.into(), &mut out, &mut done)
                .with_context(|| path.display().to_string())?;
        }
        None => {
            let out = io::stdout().lock();
            if format == Format::OtlpProto && out.is_terminal() {
                return Err(Misuse(
                    "otlp-proto is binary: name a file with --output FILE, or pipe it".to_owned(),
                )
                .into());
            }
            let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
            let written = file::write(&selection, format.into(), &mut out, &mut done);
            if let Err(error) = written
                && !is_broken_pipe(&error)
            {
                return Err(error.into());
            }
        }
    }
    bar.finish_and_clear();
    output::audited(
        AuditFile::new(&global.state).add(What::Exported, &told(&args, format, sessions.len())),
    );
    Ok(ExitCode::SUCCESS)
}

/// Describes the export for the audit log, without names and ids.
fn told(args: &Args, format: Format, sessions: usize) -> String {
    let word = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
        value().map_or_else(String::new, |value| value.get_name().to_owned())
    };
    let format = word(&|| format.to_possible_value());
    let content = word(&|| args.content.to_possible_value());
    let secrets = if args.no_redact { ", secrets left in" } else { "" };
    format!(
        "{format}, content {content}{secrets}, {}, by a command",
        counted(sessions as u64, "session")
    )
}

const BUFFER_BYTES: usize = 256 * 1_024;

/// What `--content full` includes, for standard error.
fn warning(args: &Args, format: Format) -> Option<&'static str> {
    match (args.content, format) {
        (Content::Off | Content::Metadata, _) => None,
        (Content::Full, Format::Jsonl) => Some(
            "--content full as jsonl is the raw log: prompts, answers, commands, file contents and results, with every secret \
             in them. Keep the file to yourself.",
        ),
        (Content::Full, _) if args.no_redact => Some(
            "--content full --no-redact includes prompts, answers, arguments and results, with every secret in them. Keep the \
             file to yourself.",
        ),
        (Content::Full, _) => Some(
            "--content full includes prompts, answers, arguments and results. Known kinds of secrets are replaced; PRIVACY.md \
             says what is missed.",
        ),
    }
}

fn select(db: &Connection, args: &Args) -> anyhow::Result<Vec<SessionRow>> {
    let wanted = match &args.session {
        Some(wanted) => wanted.as_str(),
        None if args.all => return Ok(whole::sessions(db, None)?),
        None => "last",
    };
    let found = match wanted {
        "last" => whole::last_session(db)?.into_iter().collect(),
        _ => whole::sessions(db, Some(wanted))?,
    };
    match found.as_slice() {
        [] => anyhow::bail!("no session {wanted:?}: `hookspan sessions` lists them"),
        [_] => Ok(found),
        // A complete id is never ambiguous, even if another id begins with it.
        [first, ..] if first.root == wanted => Ok(vec![first.clone()]),
        many => {
            let ids: Vec<&str> = many.iter().map(|session| session.root.as_str()).collect();
            anyhow::bail!("{wanted:?} is the beginning of several sessions: {}", ids.join(", "))
        }
    }
}

/// Shown only where standard error is a terminal.
fn progress(sessions: usize) -> ProgressBar {
    let bar = if sessions > 20 { ProgressBar::new(sessions as u64) } else { ProgressBar::hidden() };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} sessions, {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// An export may contain every prompt and answer, so only its owner may read the file.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

fn is_broken_pipe(error: &FileError) -> bool {
    match error {
        FileError::Output(error) => error.kind() == io::ErrorKind::BrokenPipe,
        FileError::Json(error) => error.io_error_kind() == Some(io::ErrorKind::BrokenPipe),
        FileError::Store(_) | FileError::Encoded(_) => false,
    }
}

impl From<Format> for file::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::OtlpJson => Self::OtlpJson,
            Format::OtlpProto => Self::OtlpProto,
            Format::ChromeTrace => Self::ChromeTrace,
            Format::Jsonl => Self::Jsonl,
            Format::Html => Self::Html,
        }
    }
}

impl From<Content> for ContentPolicy {
    fn from(content: Content) -> Self {
        match content {
            Content::Off => Self::Off,
            Content::Metadata => Self::Metadata,
            Content::Full => Self::Full,
        }
    }
}
