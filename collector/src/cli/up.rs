//! `hookspan up`: installs the hooks, starts the collector and shows the dashboard.

use std::process::ExitCode;
use std::time::Duration;

use super::output::{Paint, can_ask, note};
use super::{Global, consent, install, open, output, serve};
use crate::clock;
use crate::dirs::{LockError, ServeInfo};
use crate::hooks_json::Plan;

/// How long a newly started collector may take until it serves pages.
const STARTING: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(20);

/// Install the hooks (after asking), start collector and dashboard, print the address
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan up\n  hookspan up --events minimal\n  hookspan up --yes --listen 127.0.0.1:8080\n\n\
                  When a collector is running already, prints its address."
)]
pub(crate) struct Args {
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
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    // If the configuration would keep the collector from starting, the command fails before anything changes.
    global.config()?;
    install_hooks(global, &args)?;
    if let Some(info) = ServeInfo::running(&global.state) {
        return beside(global, info);
    }
    note(&format!(
        "Ctrl-C stops the collector. Without it, hooks are still recorded; `{}` stores them later.",
        global.command("serve")
    ));
    match serve::run(global, serve::Args { options: args.serve }) {
        Err(error) if is_busy(&error) => match ServeInfo::running(&global.state) {
            Some(info) => beside(global, info),
            None => Err(error),
        },
        ended => ended,
    }
}

fn is_busy(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| matches!(cause.downcast_ref(), Some(LockError::Busy(_))))
}

/// Prints the address of the collector that already runs.
fn beside(global: &Global, info: ServeInfo) -> anyhow::Result<ExitCode> {
    let (start, mut info) = (clock::instant(), info);
    while info.address.is_none() && clock::instant().duration_since(start) < STARTING {
        std::thread::sleep(STEP);
        info = ServeInfo::running(&global.state).unwrap_or(info);
    }
    if info.url().is_none() && info.socket.is_none() {
        anyhow::bail!("the collector (process {}) serves no dashboard yet; try again", info.pid);
    }
    note(&format!("A collector is running already: process {}.", info.pid));
    let own = env!("CARGO_PKG_VERSION");
    if info.version != own {
        let theirs = if info.version.is_empty() { "unknown" } else { &info.version };
        note(&format!(
            "Its version is {theirs}, this is {own}: stop it (`kill {}`) and run this again to use the new one.",
            info.pid
        ));
    }
    output::print(&format!("{}\n", open::address(&info)?))?;
    Ok(ExitCode::SUCCESS)
}

fn install_hooks(global: &Global, args: &Args) -> anyhow::Result<()> {
    let plan = install::plan(global, &args.install)?;
    if plan.is_done() {
        return Ok(());
    }
    let others = install::also_installed(global, &plan);
    if let (None, Some((scope, path)), 0) = (args.install.scope, others.first(), plan.hooks_now()) {
        note(&format!(
            "The hooks are in {} (scope {}). Not adding them to {}, which would start two hooks for each event there; \
             `hookspan install` does.",
            path.display(),
            scope.as_str(),
            plan.path().display()
        ));
        return Ok(());
    }
    if !args.yes && !can_ask() {
        note(
            "Cursor's hooks are not installed, and there is no terminal to ask at: \
             run `hookspan install`, or `hookspan up --yes`. Starting without them.",
        );
        return Ok(());
    }
    let ask = |plan: &Plan| {
        if args.yes {
            return Ok(true);
        }
        note("hookspan records what Cursor's agent does. It needs to add these hooks:\n");
        note(&consent::describe(plan, false, Paint::stderr(&global.env)));
        note(
            "`hookspan install --dry-run` shows every line. `hookspan uninstall` removes the hooks again.",
        );
        output::ask("Make this change?")
    };
    if !install::carry_out(global, &args.install, plan, ask)? {
        note("Starting without hooks; `hookspan install` adds them later.\n");
    }
    Ok(())
}
