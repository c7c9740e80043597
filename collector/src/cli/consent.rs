//! Asks for consent: a summary of the change, every changed line on request, and the question.

use super::output::{self, Paint, note};
use crate::hooks_json::Plan;
use crate::hooks_json::git::WorkTree;
use crate::hooks_json::own_entries::Ours;
use crate::hooks_json::recognise::Form;
use crate::hooks_json::scope::project_of;
use crate::hooks_json::summary::Summary;
use crate::text;

/// How a person agrees to a change of files, shared by `install` and `uninstall`.
#[derive(Clone, Copy, Debug, clap::Args)]
#[group(skip)]
pub(super) struct Options {
    /// Show every changed line and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Show every changed line before asking
    #[arg(long)]
    pub(super) diff: bool,
    /// Change the files without asking
    #[arg(long, short = 'y')]
    pub(super) yes: bool,
}

/// The plan: what changes in which file. With `all`, every changed line follows.
#[must_use]
pub(super) fn describe(plan: &Plan, all: bool, paint: Paint) -> String {
    let mut out = String::new();
    if let Some((program, verb)) = plan.program_step() {
        out += &format!("{verb} {}\n", program.display());
    }
    if let Some(verb) = plan.file_step() {
        out += &format!("{verb} {}\n", plan.path().display());
        for line in entries(&plan.summary()) {
            out += &format!("  {line}\n");
        }
        if !all {
            out += &paint.dim("  --diff shows every line\n");
        }
    }
    for ours in &plan.summary().others {
        out += &format!("  {}\n", other(ours, plan.is_uninstall()));
    }
    if let Some(excluded) = plan.exclusion() {
        out += &format!("add {} to {}\n", excluded.text.trim(), excluded.path.display());
    }
    if all {
        out += &diff(plan, paint);
    }
    out
}

/// One line for each kind of change to entries.
fn entries(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    let mut counts = Vec::new();
    for (count, verb) in
        [(summary.added, "adds"), (summary.updated, "updates"), (summary.removed, "removes")]
    {
        if count > 0 {
            counts.push(format!("{verb} {}", counted(count, "entry", "entries")));
        }
    }
    match summary.kept {
        0 => {}
        1 => counts.push("keeps the one that is there".to_owned()),
        kept => counts.push(format!("keeps the {kept} that are there")),
    }
    if !counts.is_empty() {
        lines.push(counts.join(", "));
    }
    lines.extend(
        summary
            .programs_before
            .iter()
            .map(|program| format!("updated entries ran {}", text::visible(program, 200))),
    );
    lines.extend(
        summary
            .dirs_before
            .iter()
            .map(|dir| format!("updated entries wrote to {}", text::visible(dir, 200))),
    );
    if let Some((line, column, found)) = &summary.version {
        let found = text::visible(found, 40);
        lines.push(format!("makes \"version\" 1 (line {line}, column {column}: it is {found}, so Cursor ignores the file)"));
    }
    lines
}

/// An entry in another form, and why it is kept.
fn other(ours: &Ours, uninstalls: bool) -> String {
    let place = format!("line {}, {}", ours.line, text::visible(&ours.event, 40));
    let command = text::visible(&ours.command, 60);
    match ours.recognised.form {
        Form::Elsewhere(system) => {
            let system = system.as_str();
            format!("{place}: an entry for {system} stays; only hookspan on {system} manages it")
        }
        _ if uninstalls => {
            format!("{place}: runs hookspan through `{command}`; not removed, remove it by hand")
        }
        _ if ours.in_group => format!(
            "{place}: a group (as in Claude's settings) with other hooks in it stays; Cursor does not run it"
        ),
        _ => format!(
            "{place}: runs hookspan through `{command}`; kept, and no second entry is added"
        ),
    }
}

fn diff(plan: &Plan, paint: Paint) -> String {
    let lines = plan.diff();
    if lines.is_empty() {
        return String::new();
    }
    let mut out = "\n".to_owned();
    for (sign, line) in lines {
        let line = text::visible(&line, usize::MAX);
        out += &match sign {
            '+' => paint.green(&format!("+ {line}")),
            '-' => paint.red(&format!("- {line}")),
            '@' => paint.dim("  ..."),
            _ => format!("  {line}"),
        };
        out += "\n";
    }
    out + "\n"
}

/// Warns that a project's hooks.json is for one person, and says whether git would commit it.
pub(super) fn warn_of_git(plan: &Plan) {
    let path = plan.path();
    note("note: the entries name a program in your own home folder; they fail on other computers.");
    let Some(tree) = project_of(path).and_then(WorkTree::at) else { return };
    if tree.tracks(path) {
        note(&format!(
            "warning: {} is in this repository already: do not commit the change.",
            path.display()
        ));
    } else if plan.exclusion().is_none() && tree.exclusion(path).is_ok_and(|left| left.is_some()) {
        note("git would offer to commit the file; --git-exclude lists it in .git/info/exclude.");
    }
}

/// Whether to continue. Yes with `--yes` and without a terminal; otherwise the person decides.
///
/// # Errors
/// Standard input cannot be read.
pub(super) fn ask(yes: bool, question: &str) -> anyhow::Result<bool> {
    if yes {
        return Ok(true);
    }
    if !output::can_ask() {
        note("Not a terminal: making the change without asking, as with --yes.");
        return Ok(true);
    }
    output::ask(question)
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
