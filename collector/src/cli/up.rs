//! `hookspan up`: from nothing to a dashboard.

use std::process::ExitCode;

use super::output::{Paint, ask, can_ask, note};
use super::{Global, install, serve};

/// Install the hooks (after asking), start collector and dashboard, print the address
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan up\n  hookspan up --events minimal\n  hookspan up --yes --listen 127.0.0.1:8080"
)]
pub struct Args {
    #[command(flatten)]
    install: install::Options,
    /// Change hooks.json without asking
    #[arg(long, short = 'y')]
    yes: bool,
    #[command(flatten)]
    serve: serve::Options,
}

/// Runs the command.
///
/// # Errors
/// The hooks cannot be installed, or the collector cannot start.
pub fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    // A configuration that stops the collector should stop us before anything is changed.
    global.config()?;
    install_hooks(global, &args)?;
    note(
        "Ctrl-C stops the collector; hooks go on being recorded, and `hookspan serve` takes them in.",
    );
    serve::run(global, serve::Args { options: args.serve })
}

fn install_hooks(global: &Global, args: &Args) -> anyhow::Result<()> {
    let plan = install::plan(global, &args.install)?;
    if plan.is_done() {
        return Ok(());
    }
    if !args.yes {
        if !can_ask() {
            note(
                "Cursor's hooks are not installed, and there is no terminal to ask at: \
                 run `hookspan install`, or `hookspan up --yes`. Starting without them.",
            );
            return Ok(());
        }
        note("hookspan records what Cursor's agent does by way of hooks. This is the change:\n");
        note(&install::describe(&plan, Paint::stderr(&global.env)));
        note("`hookspan uninstall` takes it back, byte for byte.");
        if !ask("Make this change?")? {
            note("Starting without hooks; `hookspan install` adds them later.\n");
            return Ok(());
        }
    }
    install::apply(global, &args.install, plan)
}
