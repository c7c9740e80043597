//! `hookspan install`: the hook program and its entries in hooks.json.

use std::process::ExitCode;

use super::output::{Paint, note, print};
use super::{Global, output, service};
use crate::hooks_json::plan::Wish;
use crate::hooks_json::{Events, Plan, Scope};
use crate::text;

/// Put the hook program in place and add its entries to Cursor's hooks.json
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan install --dry-run\n  hookspan install --events all\n  hookspan install --scope project --yes\n  hookspan install --service"
)]
pub struct Args {
    #[command(flatten)]
    options: Options,
    /// Show the change and make none
    #[arg(long)]
    dry_run: bool,
    /// Change the files without asking
    #[arg(long, short = 'y')]
    yes: bool,
    /// Also start the collector at login: a systemd user unit on Linux, a launchd agent on macOS
    #[arg(long)]
    service: bool,
}

/// What to install, shared by `install` and `up`.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Options {
    /// Whose hooks.json
    #[arg(long, value_enum, default_value_t = Scope::User)]
    pub scope: Scope,
    /// Which events to record [default: what is installed already, else standard]
    #[arg(long, value_enum)]
    pub events: Option<Events>,
    /// Write the command without `exec`, for a Cursor that starts hooks without a shell
    #[arg(long)]
    pub no_exec: bool,
}

/// Runs the command. A refusal leaves everything as it is and is exit code 1.
///
/// # Errors
/// A file cannot be read or written, or hooks.json is broken.
pub fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let plan = plan(global, &args.options)?;
    let service = args.service.then(|| service::Service::new(global)).transpose()?;
    let done = plan.is_done();
    if done {
        print(&format!("{}: already up to date, {} hooks\n", plan.path().display(), plan.hooks()))?;
    } else {
        print(&describe(&plan, Paint::stdout(&global.env)))?;
    }
    if args.dry_run {
        if let Some(service) = &service {
            print(&service.describe())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !done {
        if !consent(args.yes, "Make this change?")? {
            note("nothing was changed");
            return Ok(ExitCode::FAILURE);
        }
        apply(global, &args.options, plan)?;
    }
    if let Some(service) = service {
        service.install()?;
    } else {
        note("Start the collector with `hookspan up`. `hookspan uninstall` undoes all of this.");
    }
    Ok(ExitCode::SUCCESS)
}

/// Plans what `options` ask for.
///
/// # Errors
/// There is no such hooks.json to find, or it cannot be edited.
pub fn plan(global: &Global, options: &Options) -> anyhow::Result<Plan> {
    let wish = Wish {
        scope: options.scope,
        path: hooks_path(global, options.scope)?,
        events: options.events,
        no_exec: options.no_exec,
        dir_is_default: global.dir_is_default,
    };
    Plan::install(&global.state, &wish)
}

/// Carries a plan out and says so.
///
/// # Errors
/// A file cannot be written.
pub fn apply(global: &Global, options: &Options, plan: Plan) -> anyhow::Result<()> {
    let (path, hooks) = (plan.path().display().to_string(), plan.hooks());
    plan.apply(&global.state)?;
    let tick = Paint::stderr(&global.env).green("Done:");
    note(&format!("{tick} {hooks} hooks in {path}. Restart Cursor if nothing arrives."));
    if options.scope == Scope::Project {
        note("The entries name a program in your own home folder: do not commit this hooks.json.");
    }
    Ok(())
}

/// The hooks.json of a scope.
///
/// # Errors
/// There is no home folder.
pub fn hooks_path(global: &Global, scope: Scope) -> anyhow::Result<std::path::PathBuf> {
    let path = scope.path(&global.env);
    path.ok_or_else(|| anyhow::anyhow!("there is no home folder: set HOME, or use --scope project"))
}

/// Whether to go on: yes when told so or when nobody could answer, else as the person says.
///
/// # Errors
/// Standard input cannot be read.
pub fn consent(yes: bool, question: &str) -> anyhow::Result<bool> {
    if yes || !output::can_ask() { Ok(true) } else { output::ask(question) }
}

/// The plan as a person reads it: the program, then the change to hooks.json as a diff.
#[must_use]
pub fn describe(plan: &Plan, paint: Paint) -> String {
    let mut out = String::new();
    if let Some((program, verb)) = plan.program_step() {
        out += &format!("{verb} {}\n", program.display());
    }
    let diff = plan.diff();
    if diff.is_empty() {
        return out;
    }
    out += &format!("change {}\n\n", plan.path().display());
    for (sign, line) in diff {
        let line = text::visible(&line, usize::MAX);
        let line = match sign {
            '+' => paint.green(&format!("+ {line}")),
            '-' => paint.red(&format!("- {line}")),
            '@' => paint.dim("  ..."),
            _ => format!("  {line}"),
        };
        out += &line;
        out += "\n";
    }
    out += "\n";
    out
}
