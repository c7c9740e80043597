//! `hookspan config`: check, show, example.

use std::process::ExitCode;

use super::{Global, output};
use crate::config::destination;
use crate::config::example::EXAMPLE;

/// Check or show the configuration, or print an example
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check the configuration file
    #[command(
        after_help = "Examples:\n  hookspan config check\n  hookspan config check --config ./config.toml"
    )]
    Check,
    /// Print the effective configuration: defaults, file and environment together
    #[command(after_help = "Examples:\n  hookspan config show\n  hookspan config show --json")]
    Show {
        /// Print JSON instead of TOML
        #[arg(long)]
        json: bool,
    },
    /// Print an example with every key, its meaning and its default
    #[command(
        after_help = "Examples:\n  mkdir -p ~/.config/hookspan\n  hookspan config example > ~/.config/hookspan/config.toml"
    )]
    Example,
}

/// Runs the command.
///
/// # Errors
/// The configuration is not valid.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Check => check(global)?,
        Command::Show { json } => show(global, json)?,
        Command::Example => output::print(EXAMPLE)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn check(global: &Global) -> anyhow::Result<()> {
    let config = global.config()?;
    config.dashboard.check()?;
    config.receive.check(&config.dashboard)?;
    let all = destination::all(&config, &global.env)
        .map_err(|error| crate::config::Misuse(error.to_string()))?;
    all.iter().try_for_each(|one| {
        config.receive.check_destination(&one.name, &one.connection.endpoint)
    })?;
    // The collector would pause such a destination and keep running. This command reports it as an error.
    if let Some((name, problem)) =
        all.iter().find_map(|one| Some((&one.name, one.unready.as_ref()?)))
    {
        let words = format!("destination {name:?} stays paused: {problem}");
        return Err(crate::config::Misuse(words).into());
    }
    let mut out = match &global.config_file {
        Some(path) if path.exists() => format!("{}: ok\n", path.display()),
        Some(path) => format!("{}: not found; using defaults\n", path.display()),
        None => "no configuration file: there is no home folder\n".to_owned(),
    };
    if let Some(policy) = &config.policy {
        out += &format!("{}: in force: {}\n", policy.file().display(), policy.words().join("; "));
    }
    for one in all.iter().filter(|one| !one.by_policy.is_empty()) {
        out += &format!("  {}: by policy, {}\n", one.name, one.by_policy.join(", "));
    }
    output::print(&out)
}

fn show(global: &Global, json: bool) -> anyhow::Result<()> {
    let config = global.config()?;
    let table = config.to_toml();
    if json {
        return output::print_json(&table);
    }
    let file = match &global.config_file {
        Some(path) if path.exists() => path.display().to_string(),
        Some(path) => format!("{} (not there)", path.display()),
        None => "none".to_owned(),
    };
    let policy = config.policy.as_ref().map_or_else(String::new, |policy| {
        format!("# policy: {}: {}\n", policy.file().display(), policy.words().join("; "))
    });
    let text = toml::to_string(&table)?;
    output::print(&format!(
        "# file: {file}\n{policy}# state directory: {}\n\n{text}",
        global.state.root().display()
    ))
}
