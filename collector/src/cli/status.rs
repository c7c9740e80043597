//! `hookspan status`: whether the collector runs, and whether hooks or spans wait or are lost.

use std::collections::BTreeMap;
use std::process::ExitCode;

use super::output::{Paint, print, print_json};
use super::{Global, advice};
use crate::clock;
use crate::notify::{Way, WayState};
use crate::status::{Destination, Status};
use crate::text::{self, counted};

/// Show whether the collector runs, its backlog, losses, and the dashboard's address
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code: 0 when a collector runs and every destination gets its spans, 1 when none runs or answers, or a \
                  destination is paused or lost spans during the last day, 2 wrong usage. A receiver that is away for a \
                  while is no failure: its spans wait.\n\nExamples:\n  hookspan status\n  hookspan status --json\n  \
                  hookspan status > /dev/null && echo recording"
)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command. Exit code 1 if no collector runs, or a destination is paused or loses spans.
///
/// # Errors
/// The state directory or the database cannot be read.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let status = Status::read(global)?;
    if args.json {
        print_json(&status)?;
    } else {
        print(&advice::fitted(global, &describe(&status, Paint::stdout(&global.env))))?;
    }
    Ok(if status.faults().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The lines of the output: a name and a text.
struct Lines {
    text: String,
    paint: Paint,
}

impl Lines {
    fn add(&mut self, name: &str, value: &str) {
        self.text += &format!("{} {value}\n", self.paint.dim(&text::cell(name, 12)));
    }

    /// Adds a line of text below the previous one.
    fn more(&mut self, value: &str) {
        self.add("", value);
    }
}

fn describe(status: &Status, paint: Paint) -> String {
    let mut lines = Lines { text: String::new(), paint };
    describe_collector(status, &mut lines);
    describe_journal(status, &mut lines);
    describe_database(status, &mut lines);
    describe_received(status, &mut lines);
    describe_installed(status, &mut lines);
    for destination in &status.destinations {
        lines.add("destination", &described(destination, paint));
    }
    if status.destinations.is_empty() {
        lines.add("destination", "none: nothing leaves this computer");
    }
    if !status.policy.is_empty() {
        lines.add("policy", &status.policy.join("; "));
    }
    for (way, state) in &status.notices {
        lines.add("notices", &noticed(*way, state, paint));
    }
    if status.notices_dropped > 0 {
        let dropped = counted(status.notices_dropped, "notice");
        lines.add("notices", &format!("{dropped} not sent: more than 20 in ten minutes"));
    }
    lines.text
}

/// `desktop: 12 sent, 3 failed`, and why the last one failed.
fn noticed(way: Way, state: &WayState, paint: Paint) -> String {
    let sent = format!("{}: {} sent", way.as_str(), text::count(state.sent));
    let WayState { failed, failing, last_error, .. } = state;
    let error = last_error.as_deref().filter(|_| *failing > 0);
    match (failed, error) {
        (0, _) => sent,
        (failed, None) => format!("{sent}, {} failed before", text::count(*failed)),
        (failed, Some(error)) => {
            paint.yellow(&format!("{sent}, {} failed, the last: {error}", text::count(*failed)))
        }
    }
}

fn describe_collector(status: &Status, lines: &mut Lines) {
    let paint = lines.paint;
    let collector = match (status.running, status.pid) {
        (true, Some(pid)) => {
            let version = status.version.as_deref().unwrap_or_default();
            paint.green(&format!("running, process {pid}, version {version}"))
        }
        (true, None) => paint.yellow("busy: another command holds the state directory"),
        (false, _) => format!("{}: start it with `hookspan up`", paint.yellow("not running")),
    };
    lines.add("collector", &collector);
    if let Some(url) = &status.dashboard_url {
        lines.add("dashboard", &paint.cyan(url));
    }
    if status.is_blind() {
        lines.add("hooks", "not known");
        return;
    }
    let received = status.counters.get("received").copied().unwrap_or(0);
    let newest = status.last_hook_ns.map_or_else(
        || "none yet".to_owned(),
        |at| format!("newest {} ago", text::age(clock::now().0.saturating_sub(at))),
    );
    lines.add("hooks", &format!("{received} received, {newest}, {} malformed", status.malformed));
}

fn describe_journal(status: &Status, lines: &mut Lines) {
    let (journal, paint) = (&status.journal, lines.paint);
    let about = if journal.estimated { "about " } else { "" };
    let bytes = text::bytes(journal.bytes);
    lines.add("journal", &format!("{bytes}, {about}{} not yet stored", status.backlog));
    if journal.spilled > 0 {
        let bytes = text::bytes(journal.spilled_bytes);
        let what = format!(
            "{} of them ({bytes}) wait in the run-time directory, because the state directory could not be written",
            journal.spilled
        );
        lines.more(&paint.yellow(&what));
    }
    if journal.stopped {
        lines.more(&paint.red("the journal is full: new hooks are counted and dropped"));
    }
    for problem in &journal.problems {
        let age = clock::now().0.saturating_sub(problem.since_us.saturating_mul(1_000)).max(0);
        let what = format!("for {}: {}", text::duration(age), text::visible(&problem.what, 300));
        lines.more(&paint.yellow(&what));
    }
    if let Some(age) = status.oldest_unread_ms.filter(|age| *age >= 1_000) {
        let age = text::age(age.saturating_mul(1_000_000));
        lines.more(&format!("the oldest of them has waited for {age}"));
    }
    if let Some(queue) = status.queue.filter(|queue| queue.len > 0) {
        lines.add("queue", &format!("{} of {} batches", queue.len, queue.cap));
    }
}

fn describe_database(status: &Status, lines: &mut Lines) {
    let paint = lines.paint;
    lines.add("database", &text::bytes(status.database_bytes));
    if status.older_rules {
        let stop = if status.running { "stop the collector and run" } else { "run" };
        let what = format!(
            "its sessions were derived by an earlier version with older rules: {stop} `hookspan rebuild` to derive them again"
        );
        lines.more(&paint.yellow(&what));
    }
    for aside in &status.damaged {
        lines.more(&paint.yellow(aside));
    }
    if let Some(trouble) = &status.trouble {
        lines.add("trouble", &paint.red(&text::visible(trouble, 200)));
    }
    let full = status.counters.get(crate::engine::SESSION_FULL).copied().unwrap_or(0);
    if full > 0 {
        let what = format!(
            "{full} hooks exceeded the limit of their session: they are stored, but not shown in it"
        );
        lines.more(&paint.yellow(&what));
    }
    if let Some(what) = memory(&status.counters) {
        lines.add("memory", &what);
    }
    let lost: Vec<String> =
        status.losses.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let lost = if lost.is_empty() { "none".to_owned() } else { paint.red(&lost.join(", ")) };
    lines.add("losses", &lost);
}

/// What was received over OTLP, while it is received, or once something was.
fn describe_received(status: &Status, lines: &mut Lines) {
    let count = |key: &str| status.counters.get(key).copied().unwrap_or(0);
    let requests = count("otlp.requests");
    if status.receive.is_none() && requests == 0 {
        return;
    }
    let at = status.receive.as_deref().unwrap_or("not listening");
    let (spans, points) = (count("otlp.stored_spans"), count("otlp.stored_points"));
    lines.add(
        "receive",
        &format!("{at}, {requests} requests, {spans} spans and {points} points stored"),
    );
    let refused = status.counters.iter().filter_map(|(key, count)| {
        let reason = key.strip_prefix("otlp.refused.")?;
        Some(format!("{count} {}", reason.replace('_', " ")))
    });
    let refused: Vec<String> = refused.collect();
    if !refused.is_empty() {
        lines.more(&lines.paint.yellow(&format!("refused: {}", refused.join(", "))));
    }
}

fn describe_installed(status: &Status, lines: &mut Lines) {
    for installed in &status.installed {
        let scope = installed.scope.as_str();
        let (file, events) = (installed.file.display(), installed.events);
        lines.add("installed", &format!("{scope}: {file}, {events} events"));
    }
    if status.installed.is_empty() {
        let missing = "hookspan's hooks are not installed, so nothing is recorded";
        lines.add("installed", &lines.paint.yellow(missing));
    }
}

fn described(destination: &Destination, paint: Paint) -> String {
    let state = match destination.state.as_str() {
        "ok" => paint.green("ok"),
        "new" | "off" => paint.dim(&destination.state),
        other => paint.yellow(other),
    };
    let lost: u64 = destination.lost.values().sum();
    let mut out = format!(
        "{} {state}, {} waiting, {} delivered, {lost} lost",
        destination.name, destination.pending, destination.delivered
    );
    if !destination.by_policy.is_empty() {
        let words = destination.by_policy.join(", ");
        out += &format!("\n{:13}by policy, {}", "", text::visible(&words, 300));
    }
    let failure = [&destination.last_error, &destination.advice];
    let failure = failure.into_iter().filter(|_| destination.state != "ok");
    let loss = std::iter::once(&destination.last_loss).filter(|_| lost > 0);
    for words in failure.chain(loss).flatten() {
        out += &format!("\n{:13}{}", "", text::visible(words, 300));
    }
    if let Some(metrics) = destination.metrics.as_ref().filter(|own| own.state != "ok") {
        let words = [&metrics.last_error, &metrics.advice].into_iter().flatten();
        let words = words.map(String::as_str).collect::<Vec<_>>().join(" ");
        out += &format!("\n{:13}metrics {}: {}", "", metrics.state, text::visible(&words, 300));
    }
    out
}

/// What was evicted from the collector's memory, and what was reloaded.
fn memory(counters: &BTreeMap<String, u64>) -> Option<String> {
    let count = |key: &str| counters.get(key).copied().unwrap_or(0);
    let (evicted, reloaded) =
        (count(crate::engine::SESSION_EVICTED), count(crate::engine::TURN_RELOADED));
    (evicted > 0 || reloaded > 0)
        .then(|| format!("{evicted} sessions evicted, {reloaded} settled turns read again"))
}

#[cfg(test)]
mod tests {
    use super::memory;

    #[test]
    fn what_left_memory_is_told_once_there_is_some() {
        let of = |counts: &[(&str, u64)]| {
            memory(&counts.iter().map(|(key, count)| ((*key).to_owned(), *count)).collect())
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("session_evicted", 0)]), None);
        let told = of(&[("session_evicted", 2), ("turn_reloaded", 3)]);
        assert_eq!(told.as_deref(), Some("2 sessions evicted, 3 settled turns read again"));
        assert_eq!(
            of(&[("turn_reloaded", 1)]).as_deref(),
            Some("0 sessions evicted, 1 settled turns read again")
        );
    }
}
