//! `hookspan digest`: sums up a day or a week by project.

use std::process::ExitCode;

use anyhow::Context as _;
use hookspan_core::price::Prices;
use hookspan_view::digest::{Digest, Done};
use hookspan_view::source::LineFilter;
use jiff::civil::Date;
use serde::Serialize;

use super::Global;
use super::blank::Blank;
use super::calendar::{Calendar, after};
use super::cost::{self, Cost};
use super::output::{Paint, note, print, print_json};
use crate::clock;
use crate::config::Misuse;
use crate::store::{open, read};
use crate::text::{self, counted};

/// Sums of turns are kept for quarters of an hour.
const QUARTER_NS: i64 = 900_000_000_000;
/// Columns of a project's name.
const NAME_COLUMNS: usize = 15;

/// Sum up a day or a week by project: turns, time, edits, tests, commits, tokens
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Days are those of this machine's zone. Turns that still run are not counted. Names of projects are redacted, as \
                  in an export.\n\nExamples:\n  hookspan digest\n  hookspan digest --week --format markdown > week.md\n  \
                  hookspan digest --date 2026-11-30 --format json"
)]
pub(crate) struct Args {
    /// One day (the default)
    #[arg(long, conflicts_with = "week")]
    day: bool,
    /// The seven days up to --date
    #[arg(long)]
    week: bool,
    /// The day, or the last of the week: "2026-11-30" [default: today]
    #[arg(long, value_name = "DAY")]
    date: Option<String>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table for the terminal
    Text,
    /// A heading and a table in Markdown
    Markdown,
    /// An object
    Json,
}

/// Runs the command.
///
/// # Errors The database cannot be read, or the date is not valid.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let calendar = Calendar::of_this_machine();
    let last = match &args.date {
        Some(date) => day(date)?,
        None => calendar.day(clock::now()),
    };
    let first = if args.week { after(last, -6) } else { last };
    let (from_ns, last_ns) = calendar.bounds(first, last);
    let config = global.config()?;
    let database = open::reader(&global.state.database())?;
    let unreadable = "cannot read the database";
    let edges = [from_ns, last_ns.saturating_add(1)];
    // No zone has days that begin within a quarter of an hour, except in the past.
    let spent = match edges.iter().all(|edge| edge % QUARTER_NS == 0) {
        true => read::spent(&database, &edges).context(unreadable)?,
        false => read::spent_of(&database, &edges, &LineFilter::default(), usize::MAX)
            .context(unreadable)?
            .unwrap_or_default(),
    };
    let times: Vec<_> = spent.into_iter().map(|one| one.time).collect();
    let work = read::work(&database, (from_ns, last_ns)).context(unreadable)?;
    let mut digest = Digest::of(&times, work, &config.prices);
    let blank = Blank::new(true, &global.state, &config.redact)?;
    for project in digest.projects.iter_mut().filter_map(|done| done.project.as_mut()) {
        *project = blank.text(project).into_owned();
    }
    let page =
        Page { first, last, bounds: (from_ns, last_ns), prices: &config.prices, digest: &digest };
    match args.format {
        Format::Json => print_json(&page.json())?,
        Format::Markdown => print(&page.markdown())?,
        Format::Text if digest.total.turns == 0 => {
            note(&format!("no turn has ended {}; try --week or --date", page.period()));
        }
        Format::Text => print(&page.text(Paint::stdout(&global.env)))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn day(date: &str) -> Result<Date, Misuse> {
    let day = Some(date).filter(|date| date.len() == 10).and_then(|date| date.parse().ok());
    day.ok_or_else(|| Misuse("--date: a day (2026-11-30)".to_owned()))
}

struct Page<'a> {
    first: Date,
    last: Date,
    /// Their first and last nanosecond.
    bounds: (i64, i64),
    prices: &'a Prices,
    digest: &'a Digest,
}

#[derive(Serialize)]
struct Shown {
    /// The first and the last day.
    from: String,
    to: String,
    from_us: i64,
    to_us: i64,
    total: Item,
    items: Vec<Item>,
    /// Number of projects that are not listed but are counted in the total.
    more_projects: u64,
}

#[derive(Serialize)]
struct Item {
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    sessions: u64,
    turns: u64,
    calls: u64,
    errors: u64,
    active_us: i64,
    wait_us: i64,
    edits: u64,
    tests_passed: u64,
    tests_failed: u64,
    commits: u64,
    pull_requests: u64,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cost: Option<Cost>,
}

impl Page<'_> {
    /// `on 2026-11-30`, `from 2026-11-24 to 2026-11-30`
    fn period(&self) -> String {
        let Self { first, last, .. } = self;
        if first == last { format!("on {last}") } else { format!("from {first} to {last}") }
    }

    fn item(&self, done: &Done) -> Item {
        Item {
            project: done.project.clone(),
            sessions: done.sessions,
            turns: done.turns,
            calls: done.calls,
            errors: done.errors,
            active_us: done.active_ns / 1_000,
            wait_us: done.wait_ns / 1_000,
            edits: done.edits,
            tests_passed: done.tests_passed,
            tests_failed: done.tests_failed,
            commits: done.commits,
            pull_requests: done.pull_requests,
            input_tokens: done.input,
            output_tokens: done.output,
            cost: Cost::of(self.prices, done.cost),
        }
    }

    fn json(&self) -> Shown {
        Shown {
            from: self.first.to_string(),
            to: self.last.to_string(),
            from_us: self.bounds.0.div_euclid(1_000),
            to_us: self.bounds.1.saturating_add(1).div_euclid(1_000),
            total: self.item(&self.digest.total),
            items: self.digest.projects.iter().map(|done| self.item(done)).collect(),
            more_projects: self.digest.more,
        }
    }

    /// The totals in words. Zeros are left out.
    fn sentence(&self) -> String {
        let done = &self.digest.total;
        let tests = done.tests_passed + done.tests_failed;
        let failed = match done.tests_failed {
            0 => String::new(),
            failed => format!(" ({failed} failed)"),
        };
        let some = |count: u64, noun: &str| (count > 0).then(|| counted(count, noun));
        let said = [
            Some(counted(done.sessions, "session")),
            Some(counted(done.turns, "turn")),
            Some(format!("{} active", text::duration(done.active_ns))),
            (done.wait_ns > 0).then(|| format!("{} of it waiting", text::duration(done.wait_ns))),
            some(done.edits, "edit"),
            (tests > 0).then(|| counted(tests, "test run") + &failed),
            some(done.commits, "commit"),
            some(done.pull_requests, "pull request"),
            some(done.errors, "error"),
            done.input.map(|tokens| format!("{} tokens in", text::count(tokens))),
            done.output.map(|tokens| format!("{} tokens out", text::count(tokens))),
            done.cost.map(|estimate| format!("{} (estimate)", cost::words(self.prices, estimate))),
        ];
        said.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// A table of 80 columns below a line with the sums.
    fn text(&self, paint: Paint) -> String {
        let head = format!(
            "{} SESS TURNS ACTIVE   WAIT EDITS  TESTS COMMITS  ERR        TOKENS",
            text::cell("PROJECT", NAME_COLUMNS)
        );
        let mut out = paint.bold(&format!("What was done {}", self.period())) + "\n";
        for line in text::wrap(&self.sentence(), 80) {
            out += &(line + "\n");
        }
        out += &format!("\n{}\n", paint.bold(&head));
        for done in &self.digest.projects {
            out += row(done, paint).trim_end();
            out += "\n";
        }
        out + &self.rest()
    }

    fn rest(&self) -> String {
        match self.digest.more {
            0 => String::new(),
            more => format!("and {}\n", counted(more, "more project")),
        }
    }

    fn markdown(&self) -> String {
        let mut out = format!("## What was done {}\n\n{}\n\n", self.period(), self.sentence());
        out += "| project | sessions | turns | active | waiting | edits | tests | commits | PRs | errors | tokens |\n\
                |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
        for done in &self.digest.projects {
            out += &format!(
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                escaped(&named(done)),
                done.sessions,
                done.turns,
                text::duration(done.active_ns),
                text::duration(done.wait_ns),
                done.edits,
                tests(done),
                done.commits,
                done.pull_requests,
                done.errors,
                tokens(done),
            );
        }
        if self.digest.more > 0 {
            out += &format!("\n{}", self.rest());
        }
        out
    }
}

fn named(done: &Done) -> String {
    text::visible(done.project.as_deref().unwrap_or("(no project)"), 60)
}

fn row(done: &Done, paint: Paint) -> String {
    let number = |count: u64, columns| text::right(&text::count(count), columns);
    let ran = text::right(&tests(done), 6);
    let ran = if done.tests_failed > 0 { paint.red(&ran) } else { ran };
    let errors = number(done.errors, 4);
    let errors = if done.errors > 0 { paint.red(&errors) } else { errors };
    format!(
        "{} {} {} {} {} {} {ran} {} {errors} {}",
        text::cell(&named(done), NAME_COLUMNS),
        number(done.sessions, 4),
        number(done.turns, 5),
        text::right(&text::duration(done.active_ns), 6),
        text::right(&text::duration(done.wait_ns), 6),
        number(done.edits, 5),
        number(done.commits, 7),
        text::right(&tokens(done), 13),
    )
}

/// `12`, or `12 ✕3`: the number of test runs, and how many of them failed.
fn tests(done: &Done) -> String {
    let all = text::count(done.tests_passed + done.tests_failed);
    if done.tests_failed == 0 { all } else { format!("{all} ✕{}", done.tests_failed) }
}

/// `171k/2.1k`: input and output tokens; `?` for an unknown count.
fn tokens(done: &Done) -> String {
    let told = |count: Option<u64>| count.map_or("?".to_owned(), text::count);
    match (done.input, done.output) {
        (None, None) => "?".to_owned(),
        (input, output) => format!("{}/{}", told(input), told(output)),
    }
}

/// A name in a cell of Markdown.
fn escaped(name: &str) -> String {
    name.chars().fold(String::new(), |mut out, c| {
        if c.is_ascii_punctuation() && !"./-".contains(c) {
            out.push('\\');
        }
        out.push(c);
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest() -> Digest {
        let done = Done {
            project: Some("a|b](x)<i>\x1b[2J and a very long name of it".to_owned()),
            sessions: 12,
            turns: 140,
            errors: 7,
            active_ns: 11_000_000_000_000,
            wait_ns: 90_000_000_000,
            edits: 33,
            tests_passed: 9,
            tests_failed: 3,
            commits: 2,
            input: Some(21_000_000),
            ..Done::default()
        };
        Digest { total: Done { project: None, ..done.clone() }, projects: vec![done], more: 3 }
    }

    #[test]
    fn the_table_fits_eighty_columns_and_names_are_inert() {
        let (digest, prices) = (digest(), Prices::default());
        let (first, last) = (day("2024-10-04").unwrap(), day("2024-10-10").unwrap());
        let page = Page { first, last, bounds: (0, 0), prices: &prices, digest: &digest };
        let shown = page.text(Paint::plain());
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert!(shown.starts_with("What was done from 2024-10-04 to 2024-10-10\n"), "{shown}");
        assert!(shown.contains(" 12 ✕3") && shown.ends_with("and 3 more projects\n"), "{shown}");
        let markdown = page.markdown();
        let row = markdown.lines().find(|line| line.contains("very")).unwrap();
        assert!(row.starts_with(r"| a\|b\]\(x\)\<i\>"), "{row}");
        assert!(!markdown.contains('\x1b'));
    }

    #[test]
    fn a_date_is_a_day() {
        assert_eq!(day("1970-01-02").unwrap().to_string(), "1970-01-02");
        for wrong in ["", "1970-01-02T00:00:00Z", "yesterday", "2026-13-01"] {
            assert!(day(wrong).is_err(), "{wrong}");
        }
    }
}
