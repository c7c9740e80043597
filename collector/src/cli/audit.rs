//! `hookspan audit`: sign-ins, deletions and exports.

use std::process::ExitCode;

use super::Global;
use super::calendar::Calendar;
use super::output::{self, Paint};
use crate::audit::{AuditFile, Log};
use crate::text;

/// List sign-ins, tokens, deletions, exported files and changed destinations; the newest entry is last
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The last 1,000 entries are kept. Refused sign-ins, tokens and connections of other accounts are counted; a running \
                  collector writes the counts once a minute.\n\nExamples:\n  hookspan audit\n  hookspan audit --json"
)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// The audit log cannot be read.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    if global.state.root().exists() {
        global.state.verify()?;
    }
    let log = AuditFile::new(&global.state).read()?;
    if args.json {
        output::print_json(&log)?;
    } else {
        output::print(&describe(&log, &Calendar::of_this_machine(), Paint::stdout(&global.env)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(log: &Log, calendar: &Calendar, paint: Paint) -> String {
    let time =
        |at_s: i64| calendar.stamp(hookspan_core::Timestamp(at_s.saturating_mul(1_000_000_000)));
    let mut out = String::new();
    if log.dropped > 0 {
        out += &format!("{} older entries were deleted to make room\n", text::count(log.dropped));
    }
    for one in &log.entries {
        let what = text::cell(&one.what, 19);
        out += &format!(
            "{}  {what} {}\n",
            paint.dim(&time(one.at_s)),
            text::visible(&one.detail, 300)
        );
    }
    for (what, refused) in &log.refused {
        let told = format!(
            "refused: {} {}, the last at {}",
            text::count(refused.count),
            text::visible(what, 40),
            time(refused.last_s)
        );
        out += &format!("{}\n", paint.yellow(&told));
    }
    if out.is_empty() {
        out = "the audit log is empty: nobody signed in, and nothing was deleted or exported\n"
            .to_owned();
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::audit::{Entry, Refused};

    use super::*;

    #[test]
    fn the_log_is_told_in_lines_and_nothing_in_it_is_obeyed_by_a_terminal() {
        let entry = Entry {
            at_s: 1_780_000_000,
            what: "destination added".to_owned(),
            detail: "a\u{1b}]0;x\u{7}: h:1".to_owned(),
        };
        let refused = Refused { count: 1_204, last_s: 1_780_000_001 };
        let log = Log {
            entries: vec![entry],
            dropped: 3,
            refused: [("sign-in".to_owned(), refused)].into(),
            ..Log::default()
        };
        assert_eq!(
            describe(&log, &Calendar::utc(), Paint::plain()),
            "3 older entries were deleted to make room\n2026-05-28 20:26:40  destination added   a␛]0;x␇: h:1\n\
             refused: 1.2k sign-in, the last at 2026-05-28 20:26:41\n"
        );
    }
}
