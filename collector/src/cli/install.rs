//! `hookspan install`: the hook program and its entries in hooks.json.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::output::{Paint, note, print};
use super::{Global, consent, service};
use crate::config::Misuse;
use crate::hooks_json::document::Document;
use crate::hooks_json::file::HooksFile;
use crate::hooks_json::own_entries::{self, Ours};
use crate::hooks_json::plan::{Applied, Wish};
use crate::hooks_json::record::places;
use crate::hooks_json::{Events, Plan, Scope};

/// Number of attempts if the file keeps changing during an installation that asks no questions.
const ATTEMPTS: usize = 5;

/// Install the hook program and add its entries to Cursor's hooks.json
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan install --dry-run            show every line of the change, make none\n  \
                  hookspan install --events all\n  \
                  hookspan install --scope project --git-exclude --yes\n  \
                  hookspan install --service            start the collector at login too\n\n\
                  Without a terminal to ask at, the change is made without asking, as with --yes."
)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    consent: consent::Options,
    /// Also start the collector at login: a systemd user unit on Linux, a launchd agent on macOS
    #[arg(long)]
    service: bool,
}

/// What to install, shared by `install` and `up`.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Options {
    /// Whose hooks.json [default: user]
    #[arg(long, value_enum)]
    pub scope: Option<Scope>,
    /// Which events to record [default: the installed ones, else standard]
    #[arg(long, value_enum)]
    pub events: Option<Events>,
    /// Write the command without `exec`, for a Cursor that starts hooks without a shell
    #[arg(long)]
    pub no_exec: bool,
    /// With --scope project: list the file in .git/info/exclude, so that git does not offer to commit it
    #[arg(long)]
    pub git_exclude: bool,
}

impl Options {
    /// The scope that the user named, else the user scope.
    #[must_use]
    pub(crate) fn scope(&self) -> Scope {
        self.scope.unwrap_or(Scope::User)
    }
}

/// Runs the command. If the person refuses, nothing changes and the exit code is 1.
///
/// # Errors
/// A file cannot be read or written, or hooks.json is broken.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let service = args.service.then(|| service::Service::new(global)).transpose()?;
    let plan = plan(global, &args.options)?;
    if plan.is_done() {
        print(&format!("{}: already up to date, {} hooks\n", plan.path().display(), plan.hooks()))?;
    }
    if args.consent.dry_run {
        print(&consent::describe(&plan, true, Paint::stdout(&global.env)))?;
        warn(global, &args.options, &plan);
        if let Some(service) = &service {
            print(&service.describe())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !plan.is_done() {
        let ask = |plan: &Plan| {
            print(&consent::describe(plan, args.consent.diff, Paint::stdout(&global.env)))?;
            warn(global, &args.options, plan);
            consent::ask(args.consent.yes, "Make this change?")
        };
        if !carry_out(global, &args.options, plan, ask)? {
            note("Nothing was changed.");
            return Ok(ExitCode::FAILURE);
        }
    }
    match service {
        Some(service) => service.install()?,
        None => note(&next_step(global, args.options.scope())),
    }
    Ok(ExitCode::SUCCESS)
}

/// The next command to run. `up` also installs in the user scope, so after an installation in another scope it would
/// make every hook run twice.
fn next_step(global: &Global, scope: Scope) -> String {
    let start = if scope == Scope::User { "up" } else { "serve" };
    let undo = match scope {
        Scope::User => "uninstall".to_owned(),
        other => format!("uninstall --scope {}", other.as_str()),
    };
    format!(
        "Start the collector with `{}`. `{}` undoes all of this.",
        global.command(start),
        global.command(&undo)
    )
}

/// Plans what `options` request.
///
/// # Errors
///
/// No hooks.json can be found for the scope, or it cannot be edited.
pub(crate) fn plan(global: &Global, options: &Options) -> anyhow::Result<Plan> {
    let scope = options.scope();
    if options.git_exclude && scope != Scope::Project {
        anyhow::bail!(Misuse("--git-exclude needs --scope project".to_owned()));
    }
    let wish = Wish {
        scope,
        path: hooks_path(global, scope)?,
        events: options.events,
        no_exec: options.no_exec,
        pin_dir: match scope {
            // The machine-wide file is used by all accounts. Each account's home folder decides where its hooks are
            // stored.
            Scope::Enterprise => global.dir_is_given,
            Scope::User | Scope::Project => !global.dir_is_default,
        },
        git_exclude: options.git_exclude,
    };
    Plan::install(&global.state, &wish)
}

/// Asks, then carries out the plan. If the file was edited in the meantime, it plans and asks again. Returns whether
/// the plan was carried out.
///
/// # Errors
///
/// A file cannot be written, or it keeps changing.
pub(crate) fn carry_out(
    global: &Global,
    options: &Options,
    plan: Plan,
    ask: impl Fn(&Plan) -> anyhow::Result<bool>,
) -> anyhow::Result<bool> {
    let mut plan = plan;
    for _ in 0..ATTEMPTS {
        let (path, hooks) = (plan.path().display().to_string(), plan.hooks());
        if !plan.is_done() {
            if !ask(&plan)? {
                return Ok(false);
            }
            if plan.apply(&global.state)? == Applied::Changed {
                note(&format!("{path} was changed in the meantime; looking at it again."));
                plan = self::plan(global, options)?;
                continue;
            }
        }
        let tick = Paint::stderr(&global.env).green("Done:");
        note(&format!("{tick} {hooks} hooks in {path}. Restart Cursor if nothing arrives."));
        return Ok(true);
    }
    anyhow::bail!(
        "{}: another program keeps changing this file, so hookspan did not change it",
        plan.path().display()
    )
}

/// Warns about things that a person should know before agreeing.
fn warn(global: &Global, options: &Options, plan: &Plan) {
    let scope = options.scope();
    for (other, path) in also_installed(global, plan) {
        note(&format!(
            "note: hookspan's hooks are in {} too (scope {}): where Cursor reads both files, each event starts two hooks.",
            path.display(),
            other.as_str()
        ));
    }
    if scope == Scope::Enterprise && global.dir_is_given {
        note(&format!(
            "note: hooks of every account will write to {}, which other accounts may not enter.",
            global.state.root().display()
        ));
    }
    if scope == Scope::Enterprise && !global.dir_is_given && !global.dir_is_default {
        note(
            "note: each account's hooks write below its own home folder; XDG_STATE_HOME of this shell does not reach them.",
        );
    }
    if scope == Scope::Project {
        consent::warn_of_git(plan);
    }
}

/// Other files that run the hook program.
pub(super) fn also_installed(global: &Global, plan: &Plan) -> Vec<(Scope, PathBuf)> {
    let others = places(&global.env, global.state.root()).into_iter();
    let others = others.filter(|place| place.path != plan.path());
    others
        .filter(|place| !entries_at(&place.path).is_empty())
        .map(|place| (place.scope, place.path))
        .collect()
}

/// The entries of a hooks.json that run the hook program on this system.
pub(super) fn entries_at(path: &Path) -> Vec<Ours> {
    let text = HooksFile::read(path).ok().and_then(|file| file.text).unwrap_or_default();
    let entries = Document::parse(&text).map(|document| own_entries::entries(&document));
    entries.unwrap_or_default().into_iter().filter(Ours::runs_here).collect()
}

/// The hooks.json of a scope.
///
/// # Errors
/// There is no home folder.
pub(crate) fn hooks_path(global: &Global, scope: Scope) -> anyhow::Result<PathBuf> {
    let path = scope.path(&global.env);
    path.ok_or_else(|| anyhow::anyhow!("there is no home folder: set HOME, or use --scope project"))
}
