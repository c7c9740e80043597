//! `hookspan destinations`: list, test and control the receivers of traces.

mod add;

use std::path::PathBuf;
use std::process::ExitCode;

use hookspan_core::Timestamp;
use hookspan_view::source::LineFilter;
use serde::Serialize;

use super::Global;
use super::calendar::Calendar;
use super::output::{self, Paint, columns, note, print, print_json};
use crate::audit::{AuditFile, What};
use crate::clock;
use crate::config::destination::{self, Destination};
use crate::config::{Misuse, removal};
use crate::dirs::ServeInfo;
use crate::export::Settings;
use crate::export::probe::{self, Step};
use crate::export::replay::{self, Replayed};
use crate::hooks_json::file::HooksFile;
use crate::redaction::Redaction;
use crate::status::{self, Status};
use crate::store::export::{self, StartAt};
use crate::text;

/// Add, list, test, pause, resume, replay and remove destinations of traces
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Add(add::Args),
    /// List the destinations with address, state, and advice
    #[command(
        after_help = "Examples:\n  hookspan destinations list\n  hookspan destinations list --json"
    )]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Test a destination: resolve its name, connect, check TLS, export zero spans
    #[command(
        after_help = "Examples:\n  hookspan destinations test jaeger\n  hookspan destinations test --json\n\nExit code 1: a destination cannot be reached or refuses the export."
    )]
    Test {
        /// Name of the destination [default: all destinations]
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop sending to a destination; its spans wait until it is resumed
    #[command(after_help = "Example:\n  hookspan destinations pause jaeger")]
    Pause {
        /// Name of the destination
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Send stored spans again, for a destination that lost its data or was added late
    #[command(
        after_help = "Examples:\n  hookspan destinations replay jaeger --since 2h\n  hookspan destinations replay jaeger --since all\n  hookspan destinations replay jaeger --from 2026-11-30 --to 2026-11-30T12:00:00Z"
    )]
    Replay {
        /// Name of the destination
        #[arg(value_name = "NAME")]
        name: String,
        /// Send spans that ended within this time: 30m, 2h or 7d; "all" sends every stored span
        #[arg(long, value_name = "TIME", default_value = "24h")]
        since: String,
        /// Send spans that ended at or after this time: "2026-11-30" in this machine's zone, or
        /// "2026-11-30T09:15:00Z"
        #[arg(long, value_name = "TIME", conflicts_with = "since")]
        from: Option<String>,
        /// End of the period; a day means the end of that day
        #[arg(long, value_name = "TIME", conflicts_with = "since", requires = "from")]
        to: Option<String>,
    },
    /// Remove a destination from the configuration file, and delete its position and counters
    #[command(
        after_help = "Example:\n  hookspan destinations remove jaeger\n\nAll other text of the file stays, comments included. Without a running collector, the destination is forgotten at once; otherwise restart the \
                      collector, and run the command again."
    )]
    Remove {
        /// Name of the destination
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Resume a paused destination at once
    #[command(after_help = "Example:\n  hookspan destinations resume jaeger")]
    Resume {
        /// Name of the destination
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// Runs the command. Exit code 1 when a tested destination does not work.
///
/// # Errors
/// The configuration is not valid, or there is no destination of that name.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Add(args) => add::run(global, args),
        Command::List { json } => list(global, json),
        Command::Test { name, json } => test(global, name.as_deref(), json),
        Command::Pause { name } => set_stopped(global, &name, true),
        Command::Resume { name } => set_stopped(global, &name, false),
        Command::Replay { name, from: Some(from), to, .. } => {
            replay_period(global, &name, &from, to.as_deref())
        }
        Command::Replay { name, since, .. } => replay(global, &name, &since),
        Command::Remove { name } => remove(global, &name),
    }
}

fn configured(global: &Global) -> anyhow::Result<Vec<Destination>> {
    let all = destination::all(&global.config()?, &global.env);
    Ok(all.map_err(|error| Misuse(error.to_string()))?)
}

#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    status: status::Destination,
    endpoint: Option<String>,
    protocol: Option<&'static str>,
    preset: Option<&'static str>,
    content: Option<&'static str>,
    /// Temporality of the metrics. Left out if the destination gets no metrics.
    temporality: Option<&'static str>,
}

fn list(global: &Global, json: bool) -> anyhow::Result<ExitCode> {
    let configured = configured(global)?;
    let listed: Vec<Listed> = Status::read(global)?
        .destinations
        .into_iter()
        .map(|status| {
            let found = configured.iter().find(|one| one.name == status.name);
            Listed {
                endpoint: found.map(Destination::endpoint_host),
                protocol: found.map(|one| one.connection.protocol.as_str()),
                preset: found.map(|one| one.preset.as_str()),
                content: found.map(|one| one.content.as_str()),
                temporality: found.and_then(|one| Some(one.metrics.as_ref()?.temporality.as_str())),
                status,
            }
        })
        .collect();
    if json {
        print_json(&listed)?;
    } else {
        print(&describe(&listed, Paint::stdout(&global.env)))?;
    }
    if status::config_is_newer(global) {
        note(
            "The running collector started before the configuration file was written: restart it (`systemctl --user restart hookspan`, or \
             end it and start it again).",
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(listed: &[Listed], paint: Paint) -> String {
    if listed.is_empty() {
        return "No destinations: nothing leaves this computer. `hookspan destinations add` adds one.\n"
            .to_owned();
    }
    let mut out = String::new();
    for one in listed {
        let state = match one.status.state.as_str() {
            "ok" => paint.green("ok"),
            "paused" => paint.red("paused"),
            "retry" => paint.yellow("retry"),
            other => paint.dim(other),
        };
        let whereto = match (&one.endpoint, one.protocol, one.content) {
            (Some(endpoint), Some(protocol), Some(content)) => {
                format!("{endpoint}, {protocol}, content {content}")
            }
            _ => "not in the configuration any more".to_owned(),
        };
        let lost: u64 = one.status.lost.values().sum();
        out += &format!("{} {state}  {}\n", paint.bold(&one.status.name), paint.dim(&whereto));
        out += &format!(
            "  {} waiting, {} delivered, {lost} lost{}\n",
            text::count(one.status.pending),
            text::count(one.status.delivered),
            last_delivery(one.status.last_ok_us)
        );
        if !one.status.by_policy.is_empty() {
            let words = one.status.by_policy.join(", ");
            out += &format!("  by policy, {}\n", text::visible(&words, 300));
        }
        if let Some(metrics) = &one.status.metrics {
            out += &format!(
                "  metrics {}, {}: {} points delivered, {} lost{}\n",
                one.temporality.unwrap_or("off"),
                metrics.state,
                text::count(metrics.delivered),
                text::count(metrics.lost),
                last_delivery(metrics.last_ok_us)
            );
        }
        let lines = [&one.status.last_error, &one.status.advice, &one.status.last_loss];
        let metrics = one.status.metrics.iter();
        let more = metrics.flat_map(|own| [&own.last_error, &own.advice]);
        for line in lines.into_iter().chain(more).flatten() {
            for part in text::wrap(&text::visible(line, 400), columns().saturating_sub(2)) {
                out += &format!("  {part}\n");
            }
        }
    }
    out
}

/// `; last delivery 2026-11-30T09:15:00Z`; empty before the first delivery.
fn last_delivery(at_us: Option<i64>) -> String {
    let at = at_us.and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    let second = at.and_then(|at| at.round(jiff::Unit::Second).ok());
    second.map_or_else(String::new, |at| format!("; last delivery {at}"))
}

#[derive(Serialize)]
struct Tested {
    name: String,
    ok: bool,
    steps: Vec<Step>,
}

fn test(global: &Global, name: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let mut all = configured(global)?;
    if let Some(name) = name {
        let known: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
        all.retain(|one| one.name == name);
        if all.is_empty() {
            return Err(unknown(name, &known).into());
        }
    }
    let tested: Vec<Tested> = all
        .iter()
        .map(|one| {
            let steps = probe::probe(one);
            Tested { name: one.name.clone(), ok: steps.iter().all(|step| step.ok), steps }
        })
        .collect();
    if json {
        print_json(&tested)?;
    } else {
        print(&report(&tested, columns(), Paint::stdout(&global.env)))?;
    }
    let ok = tested.iter().all(|one| one.ok);
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(tested: &[Tested], columns: usize, paint: Paint) -> String {
    if tested.is_empty() {
        return "No destinations to test: nothing leaves this computer.\n".to_owned();
    }
    let mut out = String::new();
    for one in tested {
        out += &format!("{}\n", paint.bold(&one.name));
        for step in &one.steps {
            let mark = if step.ok { paint.green("✓") } else { paint.red("✗") };
            let what = text::visible(&step.what, 400);
            let mut lines = text::wrap(&what, columns.saturating_sub(18)).into_iter();
            let first = lines.next().unwrap_or_default();
            out += &format!("  {mark} {}  {first}\n", paint.dim(&text::cell(step.step, 13)));
            for line in lines {
                out += &format!("{:18}{line}\n", "");
            }
            for (index, line) in
                text::wrap(step.advice.as_deref().unwrap_or_default(), columns.saturating_sub(20))
                    .iter()
                    .enumerate()
                    .filter(|(_, line)| !line.is_empty())
            {
                out += &format!("{:18}{} {line}\n", "", if index == 0 { "→" } else { " " });
            }
        }
    }
    out
}

fn set_stopped(global: &Global, name: &str, stopped: bool) -> anyhow::Result<ExitCode> {
    let database = existing(global, name)?;
    if !export::set_stopped(&database, name, stopped)? {
        return Err(unused(name));
    }
    let woken = wake(global, name);
    let when = if woken { "" } else { " (a running collector notices within half a minute)" };
    print(&if stopped {
        format!("{name}: paused; its spans wait{when}\n")
    } else {
        format!("{name}: resumed{when}\n")
    })?;
    Ok(ExitCode::SUCCESS)
}

fn replay(global: &Global, name: &str, since: &str) -> anyhow::Result<ExitCode> {
    let start = match since {
        "all" => StartAt::Beginning,
        text => {
            let time = humantime::parse_duration(text).map_err(|error| {
                Misuse(format!("--since {text:?}: {error}; write 30m, 2h, 7d or all"))
            })?;
            let ns = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
            StartAt::Since(clock::now().plus(ns.saturating_neg()))
        }
    };
    let database = existing(global, name)?;
    let Some(waiting) = export::replay(&database, name, start)? else { return Err(unused(name)) };
    wake(global, name);
    let detail = format!("{name}: {waiting} spans since {since}");
    output::audited(AuditFile::new(&global.state).add(What::Replayed, &detail));
    print(&format!("{name}: {} spans are sent again\n", text::count(waiting)))?;
    Ok(ExitCode::SUCCESS)
}

fn replay_period(
    global: &Global,
    name: &str,
    from: &str,
    to: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let (mut filter, calendar) = (LineFilter::default(), Calendar::of_this_machine());
    calendar.set(&mut filter, "from", from)?;
    to.map_or(Ok(()), |to| calendar.set(&mut filter, "to", to))?;
    let database = existing(global, name)?;
    let is_used = |row: &status::Destination| row.name == name && row.state != "new";
    if !Status::read(global)?.destinations.iter().any(is_used) {
        return Err(unused(name));
    }
    let config = global.config()?;
    let all = configured(global)?;
    let destination = all.iter().find(|one| one.name == name).ok_or_else(|| unused(name))?;
    let redaction = Redaction::load(&global.state, &config.redact)?;
    let settings = Settings::of(&global.env, &config, redaction)?;
    let period = (
        Timestamp(filter.from_ns.unwrap_or(i64::MIN)),
        Timestamp(filter.to_ns.unwrap_or(i64::MAX)),
    );
    let count = match replay::period(&database, destination, &settings, period)? {
        Replayed::Spans(count) => count,
        Replayed::TooMuch(count) => {
            let words = format!(
                "nothing was sent: the period has more spans than fit into 256 MiB of requests (about {} spans); choose a shorter period",
                text::count(count)
            );
            return Err(Misuse(words).into());
        }
    };
    wake(global, name);
    let detail = format!("{name}: {count} spans from {from} to {}", to.unwrap_or("now"));
    output::audited(AuditFile::new(&global.state).add(What::Replayed, &detail));
    print(&format!("{name}: {} spans are sent again\n", text::count(count)))?;
    Ok(ExitCode::SUCCESS)
}

fn remove(global: &Global, name: &str) -> anyhow::Result<ExitCode> {
    if configured(global)?.iter().any(|one| one.name == name) {
        take_out(global, name)?;
        if ServeInfo::running(&global.state).is_some() {
            note(&format!(
                "The running collector still sends to it. Restart the collector, then {} deletes its position and counters.",
                global.command(&format!("destinations remove {name}"))
            ));
            return Ok(ExitCode::SUCCESS);
        }
        if !global.state.database().exists() || !export::remove(&global.state.database(), name)? {
            return Ok(ExitCode::SUCCESS);
        }
        print(&format!("{name}: forgotten\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let database = global.state.database();
    if !database.exists() || !export::remove(&database, name)? {
        let known = Status::read(global)?.destinations.into_iter().map(|one| one.name);
        return Err(unknown(name, &known.collect::<Vec<_>>()).into());
    }
    print(&format!("{name}: forgotten\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Removes a destination from the configuration file. Changes nothing else.
fn take_out(global: &Global, name: &str) -> anyhow::Result<()> {
    let by_hand = || {
        let place = global.config_file.as_deref().map_or("the environment".to_owned(), |path| {
            format!("{} or OTEL_EXPORTER_OTLP_ENDPOINT", path.display())
        });
        Misuse(format!("{name:?} cannot be removed automatically: remove it from {place} by hand"))
    };
    let path = global.config_file.as_deref().ok_or_else(by_hand)?;
    let file = HooksFile::read(path)?;
    let text = file.text.as_deref().unwrap_or_default();
    let rest = removal::without(text, name).ok_or_else(by_hand)?;
    file.check_owner()?;
    file.write(&rest)?;
    print(&format!("{}: {name} was removed\n", path.display()))?;
    Ok(())
}

/// The path of the database, if it exists and `name` is configured.
fn existing(global: &Global, name: &str) -> anyhow::Result<PathBuf> {
    let database = global.state.database();
    let known: Vec<String> = configured(global)?.into_iter().map(|one| one.name).collect();
    if !known.iter().any(|one| one == name) {
        return Err(unknown(name, &known).into());
    }
    if database.exists() { Ok(database) } else { Err(unused(name)) }
}

/// Tells a running collector to try the destination at once. Returns whether that worked.
fn wake(global: &Global, name: &str) -> bool {
    ServeInfo::running(&global.state).is_some_and(|info| status::wake(&info, name).is_ok())
}

fn unused(name: &str) -> anyhow::Error {
    anyhow::anyhow!("{name:?} has not been used yet: start the collector once with `hookspan up`")
}

pub(super) fn unknown(name: &str, known: &[String]) -> Misuse {
    let list = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Misuse(format!("no destination is called {name:?}; configured: {list}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_told_with_its_advice() {
        let step = |step, ok, what: &str, advice: Option<&str>| Step {
            step,
            ok,
            what: what.to_owned(),
            advice: advice.map(str::to_owned),
            took_ms: 1,
        };
        let steps = vec![
            step("name", true, "localhost is 127.0.0.1", None),
            step(
                "connection",
                false,
                "127.0.0.1:1: refused",
                Some("Check that the receiver runs."),
            ),
        ];
        let tested = [Tested { name: "jaeger".to_owned(), ok: false, steps }];
        assert_eq!(
            report(&tested, 80, Paint::plain()),
            "jaeger\n  ✓ name           localhost is 127.0.0.1\n  ✗ connection     127.0.0.1:1: refused\n\
             \x20                 → Check that the receiver runs.\n"
        );
    }
}
