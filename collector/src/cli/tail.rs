//! `hookspan tail`: shows what the agent does while it does it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use hookspan_core::{SpanId, Timestamp};
use hookspan_view::facet;
use hookspan_view::health::JournalHealth;
use hookspan_view::line::{Line, LineKind, Outcome};
use hookspan_view::source::{LineFilter, Sessions as _, Spans as _};
use serde::Serialize;

use super::Global;
use super::blank::Blank;
use super::calendar::Calendar;
use super::output::{Paint, columns};
use super::sessions::rfc3339;
use crate::clock;
use crate::source::StoreSource;
use crate::store::open;
use crate::text;

/// Interval between two queries.
const ASK: Duration = Duration::from_millis(250);
/// Maximum number of spans per query.
const SPANS: usize = 500;
/// A span that began up to this long ago may still end, and is then shown.
const LOOK_BACK_NS: i64 = 3_600_000_000_000;
/// Maximum number of spans that are remembered as shown.
const SHOWN_MAX: usize = 50_000;

/// Follow what the agent does: each call as it ends
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan tail\n  hookspan tail -n 100 --no-follow\n  hookspan tail --redact\n  hookspan tail --json | jq .label"
)]
pub(crate) struct Args {
    /// Start with the last N calls that have ended
    #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 10)]
    lines: usize,
    /// Print these calls and exit
    #[arg(long)]
    no_follow: bool,
    /// Only failures
    #[arg(long)]
    errors: bool,
    /// Print a JSON object per line
    #[arg(long)]
    json: bool,
    /// Redact secrets, as in an export
    #[arg(long)]
    redact: bool,
}

#[derive(Serialize)]
struct Shown<'a> {
    ended_at: String,
    session: &'a str,
    project: &'a str,
    span_id: String,
    kind: &'static str,
    label: &'a str,
    status: &'static str,
    /// `None` if no hook reports the duration.
    duration_ms: Option<f64>,
}

/// Runs the command until it is interrupted or nobody reads its output any more.
///
/// # Errors
/// The database cannot be read.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    // If nothing was ever recorded, this fails at once and says what is missing.
    drop(open::reader(&global.state.database())?);
    let source = StoreSource::new(&global.state.database(), Box::new(JournalHealth::default), []);
    let mut tail = Tail {
        source,
        calendar: Calendar::of_this_machine(),
        paint: Paint::stdout(&global.env),
        blank: Blank::new(args.redact, &global.state, &global.config()?.redact)?,
        json: args.json,
        errors: args.errors,
        shown: BTreeSet::new(),
        projects: BTreeMap::new(),
    };
    let mut first = tail.ended(None)?;
    let skip = first.len().saturating_sub(args.lines);
    tail.shown.extend(first.iter().map(|(_, line)| line.id));
    let mut rev = tail.rev()?;
    let mut going = tail.print(&first.split_off(skip))?;
    while going && !args.no_follow {
        std::thread::sleep(ASK);
        let now = tail.rev()?;
        if now == rev {
            continue;
        }
        rev = now;
        let since = clock::now().0 - LOOK_BACK_NS;
        let found = tail.ended(Some(since))?;
        let fresh: Vec<_> =
            found.into_iter().filter(|(_, line)| !tail.shown.contains(&line.id)).collect();
        if tail.shown.len() > SHOWN_MAX {
            tail.shown.clear();
        }
        tail.shown.extend(fresh.iter().map(|(_, line)| line.id));
        going = tail.print(&fresh)?;
    }
    Ok(ExitCode::SUCCESS)
}

struct Tail {
    source: StoreSource,
    calendar: Calendar,
    paint: Paint,
    blank: Blank,
    json: bool,
    errors: bool,
    shown: BTreeSet<SpanId>,
    /// Project by root.
    projects: BTreeMap<String, String>,
}

impl Tail {
    fn rev(&self) -> anyhow::Result<u64> {
        let position = self.source.position();
        Ok(position.map_err(|error| anyhow::anyhow!("cannot read the database: {}", error.0))?.rev)
    }

    /// Spans that have ended, in the order of their ends.
    fn ended(&self, from_ns: Option<i64>) -> anyhow::Result<Vec<(String, Line)>> {
        let filter = LineFilter { from_ns, failed: self.errors, ..LineFilter::default() };
        let found = match from_ns {
            None if !self.errors => self.source.latest(None, SPANS),
            _ => self.source.matching(&filter, None, SPANS),
        };
        let mut found =
            found.map_err(|error| anyhow::anyhow!("cannot read the database: {}", error.0))?;
        found.retain(|(_, line)| line.end.is_some() && line.kind != LineKind::Session);
        found.sort_by_key(|(_, line)| (line.end, line.row));
        found.iter_mut().for_each(|(_, line)| self.blank.label(&mut line.label));
        Ok(found)
    }

    /// False when nobody reads any more.
    fn print(&mut self, lines: &[(String, Line)]) -> anyhow::Result<bool> {
        let mut out = String::new();
        for (root, line) in lines {
            let project = self.project(root);
            out += &if self.json {
                json(root, &project, line)?
            } else {
                plain(&project, line, &self.calendar.clock(end(line)), columns(), self.paint)
            };
            out += "\n";
        }
        let mut stdout = io::stdout().lock();
        match stdout.write_all(out.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            written => written.map(|()| true).context("cannot write"),
        }
    }

    fn project(&mut self, root: &str) -> String {
        if let Some(known) = self.projects.get(root) {
            return known.clone();
        }
        let session = self.source.session(root).ok().flatten();
        let workspace = session.and_then(|session| session.workspace);
        let name = workspace.as_deref().and_then(facet::project).unwrap_or_default();
        let name = self.blank.text(&name).into_owned();
        self.projects.insert(root.to_owned(), name.clone());
        name
    }
}

fn json(root: &str, project: &str, line: &Line) -> anyhow::Result<String> {
    Ok(serde_json::to_string(&Shown {
        ended_at: rfc3339(end(line)),
        session: root,
        project,
        span_id: line.id.to_string(),
        kind: line.kind.as_str(),
        label: &line.label,
        status: line.outcome.as_str(),
        duration_ms: line.length_ns().map(|ns| ns as f64 / 1e6),
    })?)
}

fn end(line: &Line) -> Timestamp {
    line.end.unwrap_or(line.start)
}

fn plain(project: &str, line: &Line, time: &str, columns: usize, paint: Paint) -> String {
    let duration = line.length_ns().map_or_else(|| "?".to_owned(), text::duration);
    let duration = text::right(&duration, 6);
    let state = match line.outcome {
        Outcome::Error => paint.red("failed"),
        Outcome::Unknown => paint.yellow("no end"),
        Outcome::Ok | Outcome::Open => String::new(),
    };
    let label = text::cell(&line.label, columns.saturating_sub(39).max(20));
    let label = if line.kind == LineKind::Turn { paint.bold(&label) } else { label };
    let row = format!("{time} {} {label} {duration} {state}", text::cell(project, 14));
    row.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_eighty_columns_and_hides_escape_sequences() {
        let line = Line {
            row: 1,
            id: SpanId([0; 8]),
            parent: None,
            kind: LineKind::Shell,
            label: format!("Shell \x1b]0;x\x07 {}", "long ".repeat(40)),
            start: Timestamp(1_780_000_000_000_000_000),
            end: Some(Timestamp(1_780_000_020_100_000_000)),
            outcome: Outcome::Error,
            flags: 0,
            wait_us: 0,
        };
        let shown = plain("a-project-with-a-name", &line, "20:27:00", 80, Paint::plain());
        assert_eq!(
            shown,
            "20:27:00 a-project-wit… Shell ␛]0;x␇ long long long long long lo…  20.1s failed"
        );
        assert!(shown.chars().count() <= 80, "{}", shown.chars().count());
        let json: serde_json::Value =
            serde_json::from_str(&json("r", "p", &line).unwrap()).unwrap();
        assert_eq!((&json["status"], &json["duration_ms"]), (&"error".into(), &20_100.0.into()));
    }
}
