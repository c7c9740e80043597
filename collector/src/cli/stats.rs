//! `hookspan stats`: how long things take.

use std::process::ExitCode;

use anyhow::Context as _;
use hookspan_core::price::Estimate;
use hookspan_view::source::{LatencyRow, LineFilter};
use rusqlite::Connection;
use serde::Serialize;

use super::calendar::{Calendar, after};
use super::cost::{self, Cost};
use super::narrow::Narrow;
use super::output::{Paint, note, print, print_json};
use super::{Global, advice};
use crate::clock;
use crate::config::Misuse;
use crate::store::{open, read};
use crate::text;

const DAY_NS: i64 = 86_400_000_000_000;

/// Percentiles of durations per tool, model, kind or project
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan stats\n  hookspan stats --group model --days 7\n  hookspan stats --project api --status error --from 2026-11-01\n  hookspan stats --json"
)]
pub(crate) struct Args {
    /// What to group by
    #[arg(long, value_enum, default_value_t = Group::Tool)]
    group: Group,
    /// Days up to today; without meaning beside --from or --to
    #[arg(long, value_name = "N", default_value_t = 30)]
    days: i64,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    narrow: Narrow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Group {
    /// Calls by tool
    Tool,
    /// Turns by model
    Model,
    /// Spans by kind
    Kind,
    /// Turns by project
    Project,
}

impl Group {
    const fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Model => "model",
            Self::Kind => "kind",
            Self::Project => "project",
        }
    }
}

#[derive(Serialize)]
struct Row {
    name: String,
    n: u64,
    errors: u64,
    /// Calls whose duration no hook reports. The durations below do not include them, and are null if no duration is
    /// known.
    unknown: u64,
    p50_us: Option<u64>,
    p90_us: Option<u64>,
    p95_us: Option<u64>,
    p99_us: Option<u64>,
    max_us: Option<u64>,
    total_us: Option<u64>,
    /// Estimated cost by model; never a bill. Left out without a price table.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
}

/// Runs the command.
///
/// # Errors
/// The database cannot be read.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    if !(1..=3_660).contains(&args.days) {
        return Err(Misuse("--days must be between 1 and 3660".to_owned()).into());
    }
    let database = open::reader(&global.state.database())?;
    let calendar = Calendar::of_this_machine();
    let today = calendar.day(clock::now());
    let days = calendar.bounds(after(today, 1 - args.days), today);
    let narrow = args.narrow.filter(&calendar)?;
    let rows = rows(&database, &args, &narrow, days);
    let rows = rows.context("cannot read the database")?;
    let config = global.config()?;
    let prices = config.prices;
    // Costs are those of all turns in these days, so they are shown only without filters.
    let used = match prices.is_empty() || !narrow.is_empty() {
        true => Vec::new(),
        false => read::usage(&database, days.0).context("cannot read the database")?,
    };
    let cost_of = |model: &str| {
        let (_, usage) = used.iter().find(|(name, _)| name.as_deref() == Some(model))?;
        prices.estimate(Some(model), *usage)
    };
    if args.json {
        let row = |row: LatencyRow| {
            let cost = (args.group == Group::Model).then(|| cost_of(&row.name)).flatten();
            Row { cost: Cost::of(&prices, cost), ..Row::from(row) }
        };
        let rows: Vec<_> = rows.into_iter().map(row).collect();
        print_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() && !narrow.is_empty() {
        note(&advice::fitted(global, NONE_LIKE_THAT));
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        let first = days.0.div_euclid(DAY_NS);
        let older = read::older(&database, args.group.word(), first);
        note(&nothing(args.days, first, older.context("cannot read the database")?));
        return Ok(ExitCode::SUCCESS);
    }
    let mut shown = table(args.group.word(), &rows, Paint::stdout(&global.env));
    let costs = used.iter().filter_map(|(model, usage)| prices.estimate(model.as_deref(), *usage));
    if let Some(sum) = costs.reduce(Estimate::plus) {
        shown += &format!("\nestimated cost, not a bill: {}\n", cost::words(&prices, sum));
        shown += &cost::source(&config.price_lists);
        let by_model = rows.iter().filter(|_| args.group == Group::Model);
        let costs = by_model.filter_map(|row| Some((&row.name, cost_of(&row.name)?)));
        for (name, estimate) in costs {
            let name = text::cell(name, 28);
            shown += &format!("  {name}  {}\n", cost::words(&prices, estimate));
        }
    }
    print(&shown)?;
    Ok(ExitCode::SUCCESS)
}

const NONE_LIKE_THAT: &str =
    "no finished call matches; `hookspan stats` without filters counts all";

/// Percentiles from the stored sums. With filters, the matching spans are counted one by one, however many there are: a
/// command may take longer than a page.
fn rows(
    database: &Connection,
    args: &Args,
    narrow: &LineFilter,
    days: (i64, i64),
) -> rusqlite::Result<Vec<LatencyRow>> {
    let group = args.group.word();
    let found = match narrow.is_empty() {
        true => read::latency_between(database, group, days, usize::MAX)?,
        false => {
            let filter = within(narrow.clone(), days);
            read::latency_of(database, group, &filter, usize::MAX)?
        }
    };
    Ok(found.unwrap_or_default())
}

/// The filter with a period: the period of `--from` and `--to` if given, otherwise the last days.
fn within(mut filter: LineFilter, (from_ns, to_ns): (i64, i64)) -> LineFilter {
    if filter.from_ns.is_none() && filter.to_ns.is_none() {
        (filter.from_ns, filter.to_ns) = (Some(from_ns), Some(to_ns));
    }
    filter
}

/// The message for an empty period. It says where older spans are.
fn nothing(days: i64, first: i64, older: Option<(i64, u64)>) -> String {
    let nothing = format!("nothing has ended in the last {days} days");
    let Some((newest, spans)) = older else { return nothing };
    // The newest day is one of UTC, and may have begun a day earlier here.
    let ask = (days + first - newest + 1).clamp(1, 3_660);
    format!("{nothing}; {spans} spans are older: hookspan stats --days {ask}")
}

impl From<LatencyRow> for Row {
    fn from(row: LatencyRow) -> Self {
        Self {
            name: row.name,
            n: row.count,
            errors: row.errors,
            unknown: row.unknown,
            p50_us: row.p50_us,
            p90_us: row.p90_us,
            p95_us: row.p95_us,
            p99_us: row.p99_us,
            max_us: row.max_us,
            total_us: row.total_us,
            cost: None,
        }
    }
}

/// Width of the names.
const NAME: usize = 21;

/// A table that fits 80 columns.
fn table(group: &str, rows: &[LatencyRow], paint: Paint) -> String {
    let head = format!(
        "{}  CALLS  TOTAL    P50    P90    P95    P99    MAX  FAILED",
        text::cell(&group.to_uppercase(), NAME)
    );
    let mut out = paint.bold(&head) + "\n";
    for row in rows {
        let times =
            [row.total_us, row.p50_us, row.p90_us, row.p95_us, row.p99_us, row.max_us].map(|us| {
                let ns = us.map(|us| i64::try_from(us.saturating_mul(1_000)).unwrap_or(i64::MAX));
                text::right(&ns.map_or_else(|| "?".to_owned(), text::duration), 6)
            });
        let share = row.errors as f64 * 100.0 / row.count.max(1) as f64;
        let failed = if row.errors == 0 { String::new() } else { format!("{share:.1}%") };
        let failed = text::right(&failed, 7);
        let failed = if row.errors > 0 { paint.red(&failed) } else { failed };
        let line = format!(
            "{}  {} {} {failed}",
            text::cell(&row.name, NAME),
            text::right(&text::count(row.count), 5),
            times.join(" ")
        );
        out += line.trim_end();
        out += "\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_period_says_which_one_is_not() {
        assert_eq!(nothing(30, 71, None), "nothing has ended in the last 30 days");
        assert_eq!(
            nothing(30, 71, Some((60, 7))),
            "nothing has ended in the last 30 days; 7 spans are older: hookspan stats --days 42"
        );
    }

    #[test]
    fn the_table_fits_eighty_columns_and_hides_escape_sequences() {
        let row = LatencyRow {
            name: "mcp \x1b[31m very long name of a tool indeed".to_owned(),
            count: 62_940,
            errors: 7_427,
            unknown: 0,
            p50_us: Some(3_900_000),
            p90_us: Some(24_300_000),
            p95_us: Some(39_600_000),
            p99_us: Some(119_000_000),
            max_us: Some(764_000_000),
            total_us: Some(3_600_000_000 * 31),
        };
        let untold =
            LatencyRow { name: "Hung".into(), count: 2, unknown: 2, ..LatencyRow::default() };
        let shown = table("tool", &[row, untold], Paint::plain());
        assert_eq!(
            shown.lines().nth(1).unwrap(),
            "mcp ␛[31m very long …  62.9k 31h00m   3.9s  24.3s  39.6s  1m59s 12m44s   11.8%"
        );
        assert_eq!(
            shown.lines().nth(2).unwrap(),
            "Hung                       2      ?      ?      ?      ?      ?      ?"
        );
        assert!(shown.lines().all(|line| line.chars().count() <= 80));
    }
}
