//! `hookspan uninstall`: the exact inverse of `install`.

use std::fs;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use super::install::{consent, describe, hooks_path};
use super::output::{Paint, note, print};
use super::{Global, service};
use crate::dirs::Lock;
use crate::hooks_json::{Plan, Scope};
use crate::journal;

/// Take hookspan's entries out of hooks.json again and remove the hook program
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan uninstall --dry-run\n  hookspan uninstall\n  hookspan uninstall --purge"
)]
pub struct Args {
    /// Whose hooks.json
    #[arg(long, value_enum, default_value_t = Scope::User)]
    scope: Scope,
    /// Show the change and make none
    #[arg(long)]
    dry_run: bool,
    /// Change the files without asking
    #[arg(long, short = 'y')]
    yes: bool,
    /// Also delete the recorded data: journal, database, token
    #[arg(long)]
    purge: bool,
}

/// Runs the command. A refusal leaves everything as it is and is exit code 1.
///
/// # Errors
/// A file cannot be read or written, or hooks.json is broken.
pub fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let plan = Plan::uninstall(&global.state, args.scope, &hooks_path(global, args.scope)?)?;
    let service = service::Service::installed(global);
    let data = if args.purge { data_files(global)? } else { Vec::new() };
    if args.purge && !args.dry_run && Lock::is_held(&global.state) {
        anyhow::bail!("a collector is running: stop it before its data is deleted");
    }
    if plan.is_done() && service.is_none() && data.is_empty() {
        print(&format!("{}: nothing of hookspan's is in it\n", plan.path().display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&describe(&plan, Paint::stdout(&global.env)))?;
    for path in service.iter().map(|service| &service.path).chain(&data) {
        print(&format!("delete {}\n", path.display()))?;
    }
    if args.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    if !data.is_empty() && !args.yes && !std::io::stdin().is_terminal() {
        anyhow::bail!(
            "nobody can be asked, and the recorded data would be gone: add --yes to delete it"
        );
    }
    let question =
        if data.is_empty() { "Make this change?" } else { "Make this change and delete the data?" };
    if !consent(args.yes, question)? {
        note("nothing was changed");
        return Ok(ExitCode::FAILURE);
    }
    plan.apply(&global.state)?;
    if let Some(service) = service {
        service.uninstall()?;
    }
    purge(global, &data)?;
    let left = global.state.root();
    match left.exists() {
        true => note(&format!(
            "Done. What was recorded stays in {}; `hookspan uninstall --purge` deletes it.",
            left.display()
        )),
        false => note("Done: nothing of hookspan is left."),
    }
    Ok(ExitCode::SUCCESS)
}

/// What hookspan keeps in the state directory, by its own names: the directory may hold other things if `--dir` said so.
fn data_files(global: &Global) -> anyhow::Result<Vec<PathBuf>> {
    let root = global.state.root();
    let entries = match fs::read_dir(root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read {}", root.display()))?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", root.display()))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_ours = [
            "journal",
            "journal.stop",
            "losses",
            "torn",
            "lock",
            "token",
            "serve.json",
            "imports",
            "ballast",
        ]
        .contains(&name.as_ref())
            || name.starts_with("seg-")
            || name.starts_with("damaged-")
            || name.starts_with("hookspan.db")
            || name.starts_with("search.db");
        if is_ours {
            files.push(entry.path());
        }
    }
    files.extend(journal::spilled(&global.state));
    files.extend(journal::spare_losses(&global.state));
    files.sort();
    Ok(files)
}

fn purge(global: &Global, files: &[PathBuf]) -> anyhow::Result<()> {
    for path in files {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot delete {}", path.display()));
            }
            _ => {}
        }
    }
    if !files.is_empty() {
        let root = global.state.root();
        global
            .state
            .remove_if_unused()
            .with_context(|| format!("cannot remove {}", root.display()))?;
    }
    Ok(())
}
