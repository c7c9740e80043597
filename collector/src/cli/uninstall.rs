//! `hookspan uninstall`: the exact inverse of `install`.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use super::install::hooks_path;
use super::output::{Paint, note, print};
use super::{Global, consent, purge, service};
use crate::clock;
use crate::dirs::{Lock, StateDir};
use crate::hooks_json::plan::{Applied, remove_if_empty};
use crate::hooks_json::recognise::Form;
use crate::hooks_json::record::{Place, places};
use crate::hooks_json::{Plan, Scope};

/// How long a collector may take to end after its service was stopped.
const STOPPING: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(20);

/// Remove hookspan's entries from hooks.json, and the hook program
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan uninstall --dry-run          show every line of the change, make none\n  \
                  hookspan uninstall\n  \
                  hookspan uninstall --all              every scope, and every project that it was installed in\n  \
                  hookspan uninstall --purge            the same, and delete the recorded data"
)]
pub(crate) struct Args {
    /// Whose hooks.json [default: user]
    #[arg(long, value_enum, conflicts_with_all = ["all", "purge"])]
    scope: Option<Scope>,
    /// Every known hooks.json: the user's, this project's, the machine's, and those of all projects with an
    /// installation
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    consent: consent::Options,
    /// Also delete the recorded data: journal, database, token, and the history of `hookspan demo`; includes --all
    #[arg(long)]
    purge: bool,
}

/// What will be undone.
struct Undo {
    plans: Vec<(Place, Plan)>,
    /// Files that cannot be changed, and why.
    refused: Vec<String>,
    service: Option<service::Service>,
    data: Vec<(StateDir, Vec<PathBuf>)>,
}

impl Undo {
    fn is_nothing(&self) -> bool {
        self.plans.is_empty()
            && self.refused.is_empty()
            && self.service.is_none()
            && self.data.iter().all(|(_, files)| files.is_empty())
    }

    fn deletes(&self) -> bool {
        self.data.iter().any(|(_, files)| !files.is_empty())
    }
}

/// Runs the command. If the person refuses, nothing changes and the exit code is 1.
///
/// # Errors
/// A file cannot be read or written, or hooks.json is broken.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let undo = look(global, &args)?;
    if undo.is_nothing() {
        for place in wanted(global, &args)? {
            print(&format!("{}: hookspan is not installed there\n", place.path.display()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    describe(global, &args, &undo)?;
    if args.consent.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    check_collectors(&undo)?;
    if undo.deletes() && !args.consent.yes && !std::io::stdin().is_terminal() {
        anyhow::bail!("not a terminal: pass --yes to delete recorded data");
    }
    let question =
        if undo.deletes() { "Make this change and delete the data?" } else { "Make this change?" };
    if !consent::ask(args.consent.yes, question)? {
        note("Nothing was changed.");
        return Ok(ExitCode::FAILURE);
    }
    carry_out(global, undo)
}

/// The hooks.json files to change.
fn wanted(global: &Global, args: &Args) -> anyhow::Result<Vec<Place>> {
    if args.all || args.purge {
        return Ok(places(&global.env, global.state.root()));
    }
    let scope = args.scope.unwrap_or(Scope::User);
    let path = hooks_path(global, scope)?;
    Ok(vec![Place { scope, path, recorded: false }])
}

fn look(global: &Global, args: &Args) -> anyhow::Result<Undo> {
    let everything = args.all || args.purge;
    let mut undo = Undo { plans: Vec::new(), refused: Vec::new(), service: None, data: Vec::new() };
    for place in wanted(global, args)? {
        match Plan::uninstall(&global.state, place.scope, &place.path) {
            Ok(plan) if plan.is_done() => {}
            Ok(plan) => undo.plans.push((place, plan)),
            Err(error) if everything => undo.refused.push(format!("{error:#}")),
            Err(error) => return Err(error),
        }
    }
    // The service belongs to the user scope, not to a project.
    if everything || args.scope.is_none_or(|scope| scope == Scope::User) {
        undo.service = service::Service::installed(global);
    }
    if args.purge {
        for state in purge::directories(&global.state) {
            let files = purge::data_files(&state)?;
            undo.data.push((state, files));
        }
    }
    Ok(undo)
}

fn describe(global: &Global, args: &Args, undo: &Undo) -> anyhow::Result<()> {
    let paint = Paint::stdout(&global.env);
    for (_, plan) in &undo.plans {
        print(&consent::describe(plan, args.consent.dry_run || args.consent.diff, paint))?;
    }
    for path in undo.service.iter().map(|service| &service.path) {
        print(&format!("delete {}\n", path.display()))?;
    }
    for path in undo.data.iter().flat_map(|(_, files)| files) {
        print(&format!("delete {}\n", path.display()))?;
    }
    for refused in &undo.refused {
        note(&format!("warning: {refused}"));
    }
    Ok(())
}

/// Refuses while a collector runs. A collector that the service started stops with the service.
fn check_collectors(undo: &Undo) -> anyhow::Result<()> {
    for (state, _) in undo.data.iter().filter(|(_, files)| !files.is_empty()) {
        let of_service = undo.service.is_some() && !is_demo(undo, state);
        if !of_service && Lock::is_held(state) {
            anyhow::bail!("{}", purge::running(state));
        }
    }
    Ok(())
}

fn is_demo(undo: &Undo, state: &StateDir) -> bool {
    undo.data.first().is_some_and(|(first, _)| first != state)
}

fn carry_out(global: &Global, undo: Undo) -> anyhow::Result<ExitCode> {
    let mut failed = undo.refused;
    // This must be read first. Undoing the last installation may remove an unused state directory, and this list with
    // it.
    let made: Vec<_> = undo.data.iter().flat_map(|(state, _)| state.made_folders()).collect();
    for (place, plan) in undo.plans {
        match apply(global, &place, plan) {
            Ok(Some(backup)) => note(&format!(
                "{} does not have its bytes of before: it was edited since the installation, or had entries of hookspan then. \
                 Those bytes are kept in {}.",
                place.path.display(),
                backup.display()
            )),
            Ok(None) => {}
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    if let Some(service) = undo.service {
        service.uninstall()?;
    }
    for (state, _) in &undo.data {
        wait_for_end(state);
        if Lock::is_held(state) {
            anyhow::bail!("{}", purge::running(state));
        }
        // Since the question, hooks may have written files, and so may a collector that was ending.
        let mut files = purge::data_files(state)?;
        if failed.is_empty() {
            files.extend(purge::memory(state));
        }
        purge::delete(state, &files)?;
    }
    // One state directory may be inside folders that were created for another one.
    made.iter().try_for_each(|folder| remove_if_empty(folder))?;
    conclude(global, &failed)
}

/// Carries out one plan. Each plan is made directly before, because it depends on what earlier plans have changed.
fn apply(global: &Global, place: &Place, plan: Plan) -> anyhow::Result<Option<PathBuf>> {
    let mut plan = plan;
    for _ in 0..3 {
        if let Applied::Done { backup } = plan.apply(&global.state)? {
            return Ok(backup);
        }
        plan = Plan::uninstall(&global.state, place.scope, &place.path)?;
    }
    anyhow::bail!(
        "{}: another program keeps changing this file; run this again",
        place.path.display()
    )
}

fn wait_for_end(state: &StateDir) {
    let start = clock::instant();
    while Lock::is_held(state) && clock::instant().duration_since(start) < STOPPING {
        std::thread::sleep(STEP);
    }
}

fn conclude(global: &Global, failed: &[String]) -> anyhow::Result<ExitCode> {
    for failure in failed {
        note(&format!("error: {failure}"));
    }
    for place in places(&global.env, global.state.root()) {
        let entries = super::install::entries_at(&place.path);
        let advice = match entries.iter().any(|ours| ours.recognised.form == Form::Plain) {
            true => format!("`{}` removes them", global.command("uninstall --all")),
            false => "in a form that hookspan does not change: remove them by hand".to_owned(),
        };
        if !entries.is_empty() {
            note(&format!(
                "hookspan's hooks are still in {} (scope {}); {advice}.",
                place.path.display(),
                place.scope.as_str()
            ));
        }
    }
    let root = global.state.root();
    if root.exists() {
        note(&format!(
            "Done. Recorded data stays in {}; `{}` deletes it.",
            root.display(),
            global.command("uninstall --purge")
        ));
    } else if failed.is_empty() {
        note("Done. Everything of hookspan is removed.");
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
