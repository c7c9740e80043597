//! `hookspan export`: sessions as files.

use std::path::PathBuf;
use std::process::ExitCode;

use super::{Global, output};

/// Write recorded sessions as OTLP, a Chrome trace or the raw log
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan export --all --format jsonl --output hooks.jsonl\n  hookspan export --session d95a19cf --format otlp-json\n  hookspan export --all --format otlp-proto --content off --output spans.pb"
)]
pub struct Args {
    /// Only this session: its id, the beginning of one, or `last`
    #[arg(long, value_name = "ID", conflicts_with = "all", required_unless_present = "all")]
    pub session: Option<String>,
    /// Every session
    #[arg(long)]
    pub all: bool,
    /// Form of the output
    #[arg(long, value_enum)]
    pub format: Format,
    /// How much content leaves
    #[arg(long, value_enum, default_value_t = Content::Full)]
    pub content: Content,
    /// Write to this file instead of standard output
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// OTLP/JSON: one {"resourceSpans": [...]} document
    OtlpJson,
    /// OTLP protobuf: one ExportTraceServiceRequest
    OtlpProto,
    /// Chrome trace events, for Perfetto and chrome://tracing
    ChromeTrace,
    /// The raw log, one hook a line; `import` reads it back
    Jsonl,
    /// A page that needs nothing else
    Html,
}

/// `--content`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Content {
    /// No paths, programs or names
    Off,
    /// Names and sizes, no content
    Metadata,
    /// Everything that was recorded
    Full,
}

/// Runs the command.
///
/// # Errors
/// There is no such session, the store cannot be read, or the output cannot be written.
pub fn run(_global: &Global, _args: Args) -> anyhow::Result<ExitCode> {
    Err(output::not_available("export"))
}
