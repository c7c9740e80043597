//! `hookspan doctor`: checks every part of the installation and says what to do.

use std::process::ExitCode;

use hookspan_view::health::drift_report;

use super::output::{Paint, columns, print, print_json};
use super::{Global, advice};
use crate::doctor::{self, Finding, Severity};
use crate::status::Status;
use crate::text;

/// Check configuration, hooks, hook program, collector and destinations, and say what to do
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Nothing is changed. Only hookspan's own hook program is run, in the environment that Cursor has when it is \
                  started from the desktop.\n\nExit code: 0 no problem (warnings may be there), 1 a problem: something is not \
                  recorded, kept or sent, 2 wrong usage.\n\nExamples:\n  hookspan doctor\n  hookspan doctor --json | jq '.[] | \
                  select(.severity != \"ok\") | .id'"
)]
pub(crate) struct Args {
    /// Print the findings as JSON: id, area, severity (ok, warning, problem), what, meaning, remedy, places
    #[arg(long)]
    json: bool,
    /// Print events, fields and values that hookspan does not know, as a text to report: names, types and counts, no
    /// content
    #[arg(long, conflicts_with = "json")]
    drift: bool,
}

/// Runs the command. Exit code 1 when something is not recorded, kept or sent.
///
/// # Errors
/// The findings cannot be printed, or, with `--drift`, the status cannot be read.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    if args.drift {
        let counters = Status::read(global)?.counters;
        let counters = counters.iter().map(|(key, count)| (key.as_str(), *count));
        let report = drift_report(env!("CARGO_PKG_VERSION"), counters);
        print(report.as_deref().unwrap_or("No unknown events, fields or values have arrived.\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut findings = doctor::examine(global);
    for advice in
        findings.iter_mut().flat_map(|found| [&mut found.meaning, &mut found.remedy]).flatten()
    {
        *advice = advice::fitted(global, advice);
    }
    let problems = count(&findings, Severity::Problem);
    if args.json {
        print_json(&findings)?;
    } else {
        print(&describe(&findings, columns(), Paint::stdout(&global.env)))?;
    }
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn count(findings: &[Finding], severity: Severity) -> usize {
    findings.iter().filter(|finding| finding.severity == severity).count()
}

fn describe(findings: &[Finding], columns: usize, paint: Paint) -> String {
    let mut out: String =
        findings.iter().map(|finding| described(finding, columns, paint)).collect();
    let number = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    let (problems, warnings) =
        (count(findings, Severity::Problem), count(findings, Severity::Warning));
    out += &match (problems, warnings) {
        (0, 0) => format!("\n{}\n", paint.green("No problems found.")),
        _ => format!("\n{}, {}.\n", number(problems, "problem"), number(warnings, "warning")),
    };
    out
}

/// One finding: what is wrong, then what that means, then what to do.
fn described(finding: &Finding, columns: usize, paint: Paint) -> String {
    let area = text::cell(finding.area, 10);
    let (mark, area) = match finding.severity {
        Severity::Ok => (paint.green("✓"), paint.dim(&area)),
        Severity::Warning => (paint.yellow("!"), paint.yellow(&area)),
        Severity::Problem => (paint.red("✗"), paint.red(&area)),
    };
    let mut out = format!("{mark} {area} ");
    let mut lines = text::wrap(&finding.what, columns.saturating_sub(13));
    lines.extend(
        finding.meaning.iter().flat_map(|said| text::wrap(said, columns.saturating_sub(13))),
    );
    out += &lines.join(&format!("\n{:13}", ""));
    out += "\n";
    let remedy = finding.remedy.as_deref().unwrap_or_default();
    let lines = text::wrap(remedy, columns.saturating_sub(15));
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let arrow = if index == 0 { paint.bold("→") } else { " ".to_owned() };
        out += &format!("{:13}{arrow} {line}\n", "");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_say_what_follows_and_what_to_do_and_fit_the_terminal() {
        let findings = [
            Finding::ok("hooks.installed", "/home/u/.cursor/hooks.json: 15 events (standard)"),
            Finding::problem(
                "program.missing",
                "/home/u/.local/state/hookspan/bin/hookspan-shim is missing",
                "hookspan install",
            )
            .meaning("every hook that runs it fails"),
        ];
        assert_eq!(
            describe(&findings, 60, Paint::plain()),
            "✓ hooks      /home/u/.cursor/hooks.json: 15 events\n             (standard)\n\
             ✗ program    /home/u/.local/state/hookspan/bin/hookspan-shim\n             \
             is missing\n             \
             every hook that runs it fails\n             \
             → hookspan install\n\n1 problem, 0 warnings.\n"
        );
        assert!(describe(&findings[..1], 60, Paint::plain()).ends_with("\nNo problems found.\n"));
    }
}
