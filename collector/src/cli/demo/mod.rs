//! `hookspan demo`: a dashboard with sample data, kept separate from recorded data.

mod story;

use std::process::ExitCode;
use std::time::Duration;
use std::{fs, io};

use anyhow::Context as _;

use super::output::{self, note};
use super::{Global, import, open, purge, serve};
use crate::clock;
use crate::config::listen::Place;
use crate::dirs::{ServeInfo, StateDir, create_private};
use crate::export::Reread;
use crate::prices::with_public;
use crate::store::open as database;

/// Show the dashboard with sample data, separate from your recorded data
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan demo\n  hookspan demo --sessions 200 --fresh\n  hookspan demo --no-open --listen 127.0.0.1:0"
)]
pub(crate) struct Args {
    /// Number of sample sessions
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=5_000))]
    sessions: u32,
    /// Delete an earlier demo first
    #[arg(long)]
    fresh: bool,
    /// Address and port of the demo's dashboard
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4330")]
    listen: Place,
    /// Print the address without starting a browser
    #[arg(long)]
    no_open: bool,
    /// Only write and import the sample data
    #[arg(long)]
    no_serve: bool,
}

/// Runs the command.
///
/// # Errors
/// The history cannot be written, or the dashboard cannot start.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let demo = apart(global)?;
    if let (false, Some(info)) = (args.no_serve, ServeInfo::running(&demo.state)) {
        return show_running(&demo, &args, &info);
    }
    if args.fresh {
        remove(&demo.state)?;
    }
    demo.state.prepare()?;
    if database::reader(&demo.state.database()).is_err() {
        fill(&demo, args.sessions)?;
    }
    if args.no_serve {
        output::print(&format!("{}\n", demo.state.root().display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut config = demo.config()?;
    config.dashboard.listen = vec![args.listen.clone()];
    // Sample data has invented tokens, and public prices show what the pages make of them.
    config.prices = with_public(config.prices);
    config.price_lists.public = true;
    // Sample data is never exported.
    config.destinations.clear();
    config.otel.clear();
    // Without the sandbox, because a browser that the collector starts would inherit it.
    config.sandbox = false;
    note(&format!(
        "Sample data in {}; Ctrl-C ends the demo. `{}` opens it again while it runs.",
        demo.state.root().display(),
        demo.command("open")
    ));
    crate::serve::run(&demo.state, &config, &demo.env, Reread::default(), |started| {
        if !args.no_open
            && let Some(address) = started.signed_in()
        {
            start_browser(&demo, &address);
        }
        serve::say(&demo, started)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Another demo serves the same data. Print its address.
fn show_running(demo: &Global, args: &Args, info: &ServeInfo) -> anyhow::Result<ExitCode> {
    note(&format!("The demo is running already: process {}.", info.pid));
    if args.fresh {
        note("To use --fresh, stop the running demo first.");
    }
    if args.no_open {
        output::print(&format!("{}\n", open::address(info)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    open::run(demo, open::Args::default())
}

/// Settings for the demo: a separate state directory, and no destinations from the environment.
fn apart(global: &Global) -> anyhow::Result<Global> {
    let root = purge::demo(global.state.root()).context("the state directory has no name")?;
    Ok(Global {
        env: global.env.without("OTEL_"),
        state: StateDir::at(root),
        dir_is_default: false,
        dir_is_given: true,
        config_file: None,
        config_required: false,
        policy_file: None,
    })
}

fn fill(demo: &Global, sessions: u32) -> anyhow::Result<()> {
    let path = demo.state.root().join("demo.jsonl");
    let shown = path.display().to_string();
    drop(fs::remove_file(&path));
    create_private(&path).with_context(|| format!("cannot write {shown}"))?;
    fs::write(&path, story::write(clock::now().0, sessions))
        .with_context(|| format!("cannot write {shown}"))?;
    let imported =
        import::run(demo, import::Args { files: vec![path.clone()], ..import::Args::default() });
    drop(fs::remove_file(&path));
    imported.map(drop)
}

/// Removes an earlier demo. Only hookspan uses a folder of this name.
fn remove(state: &StateDir) -> anyhow::Result<()> {
    match fs::remove_dir_all(state.root()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", state.root().display()))
        }
        _ => Ok(()),
    }
}

/// Starts a browser without waiting for it. The file that redirects the browser is removed when its code has expired.
fn start_browser(demo: &Global, address: &str) {
    const CODE: Duration = Duration::from_secs(60);
    let Ok(page) = open::Redirect::write(&demo.state, address) else { return };
    std::thread::spawn(move || {
        open::start(page.path.as_os_str());
        std::thread::sleep(CODE);
        drop(page);
    });
}

#[cfg(test)]
mod tests {
    use crate::config::Environment;

    use super::*;

    #[test]
    fn the_demo_lives_beside_the_real_thing_and_sends_nothing() {
        let variables = [("HOME", "/home/u"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://x:4318")];
        let global =
            Global::new(Environment::of(&variables, "/w"), Some("/s/mine".into()), None).unwrap();
        let demo = apart(&global).unwrap();
        assert_eq!(demo.state.root(), std::path::Path::new("/s/mine-demo"));
        assert_eq!(demo.env.var("OTEL_EXPORTER_OTLP_ENDPOINT"), None);
        assert_eq!(demo.env.var("HOME"), Some("/home/u"));
    }

    #[test]
    fn an_invented_history_is_read_as_sessions_with_everything_in_them() {
        let dir = tempfile::tempdir().unwrap();
        let variables = [("HOME", "/home/u")];
        let state = dir.path().join("state");
        let global = Global::new(Environment::of(&variables, "/w"), Some(state), None).unwrap();
        let demo = apart(&global).unwrap();
        demo.state.prepare().unwrap();
        fill(&demo, 12).unwrap();
        let db = database::reader(&demo.state.database()).unwrap();
        let all = hookspan_view::source::SessionFilter::default();
        let sessions = crate::store::read::sessions(&db, &all, None, 100).unwrap();
        assert_eq!(sessions.len(), 12);
        assert!(sessions.iter().any(|session| session.errors > 0));
        assert!(sessions.iter().any(|session| session.subagents > 0));
        assert!(sessions.iter().all(|session| session.tokens.is_some()));
        let prices = with_public(hookspan_core::price::Prices::default());
        let used = hookspan_core::price::Usage { output: 1_000, ..Default::default() };
        for session in &sessions {
            let estimate = prices.estimate(session.model.as_deref(), used).unwrap();
            assert!(estimate.amount > 0.0, "{:?} has a price", session.model);
        }
        let counters = crate::store::read::counters(&db).unwrap();
        for bad in ["malformed", "unknown_event", "duplicate"] {
            assert!(counters.iter().all(|(name, count)| name != bad || *count == 0), "{bad}");
        }
        assert!(!demo.state.root().join("demo.jsonl").exists());
    }
}
