//! `hookspan doctor`: every link of the chain, and what to do.

use std::process::ExitCode;

use super::Global;
use super::output::{Paint, columns, print, print_json};
use crate::doctor::{self, Finding, Level};
use crate::text;

/// Check configuration, hooks, hook program, collector and destinations, and say what to do
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  hookspan doctor\n  hookspan doctor --json")]
pub struct Args {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command. Exit code 1 when something is not recorded, kept or sent.
///
/// # Errors
/// The findings cannot be printed.
pub fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let findings = doctor::examine(global);
    let problems = findings.iter().filter(|finding| finding.level == Level::Problem).count();
    if args.json {
        print_json(&findings)?;
    } else {
        print(&describe(&findings, columns(), Paint::stdout(&global.env)))?;
    }
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn describe(findings: &[Finding], columns: usize, paint: Paint) -> String {
    let mut out = String::new();
    for finding in findings {
        let (mark, area) = match finding.level {
            Level::Ok => (paint.green("✓"), paint.dim(&text::cell(finding.area, 9))),
            Level::Warning => (paint.yellow("!"), paint.yellow(&text::cell(finding.area, 9))),
            Level::Problem => (paint.red("✗"), paint.red(&text::cell(finding.area, 9))),
        };
        let mut lines = text::wrap(&finding.what, columns.saturating_sub(13)).into_iter();
        out += &format!("{mark} {area}  {}\n", lines.next().unwrap_or_default());
        for line in lines {
            out += &format!("{:13}{line}\n", "");
        }
        let remedy = finding.remedy.as_deref().unwrap_or_default();
        let lines = text::wrap(remedy, columns.saturating_sub(16));
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
            let arrow = if index == 0 { paint.bold("→") } else { " ".to_owned() };
            out += &format!("{:13}{arrow} {line}\n", "");
        }
    }
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    out += &match (count(Level::Problem), count(Level::Warning)) {
        (0, 0) => format!("\n{}\n", paint.green("All is well.")),
        (problems, warnings) => format!("\n{problems} to repair, {warnings} to know of.\n"),
    };
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_say_what_to_do_and_fit_the_terminal() {
        let finding = |level, what: &str, remedy: Option<&str>| Finding {
            area: "hooks",
            level,
            what: what.to_owned(),
            remedy: remedy.map(str::to_owned),
        };
        let findings = [
            finding(Level::Ok, "/home/u/.cursor/hooks.json: 15 events (standard)", None),
            finding(
                Level::Problem,
                "/home/u/.local/state/hookspan/bin/hookspan-shim: is not there, so every hook fails",
                Some("hookspan install"),
            ),
        ];
        assert_eq!(
            describe(&findings, 60, Paint::plain()),
            "✓ hooks      /home/u/.cursor/hooks.json: 15 events\n             (standard)\n\
             ✗ hooks      /home/u/.local/state/hookspan/bin/hookspan-\n             \
             shim: is not there, so every hook fails\n             \
             → hookspan install\n\n1 to repair, 0 to know of.\n"
        );
    }
}
