//! Hands stories over in every way, and compares the results.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::check::{Check, Differences};
use super::commands;
use super::emit::{Hook, Ways, hooks};
use super::tables::{self, Tables, tables};
use super::truth::{Story, story};
use crate::collector::Collector;
use crate::journal::JournalWriter;
use crate::random::Random;
use crate::verify;
use crate::wait::pause;
use crate::world::World;

/// Number of days for each seed, so that no sum over days contains anything of two seeds.
const DAYS: u64 = 3;
/// How long answers may take to become right. The search index uses only idle time.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long answers may take after one answer stayed wrong. One failure is enough, so the rest need not be waited for.
const IMPATIENCE: Duration = Duration::from_secs(10);

/// Number of hooks in one import of an exported log.
const PART: usize = 701;

/// Which seeds to run, and how many share a store.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The first seed.
    pub first: u64,
    /// How many.
    pub seeds: u64,
    /// Seeds in one store.
    pub chunk: u64,
}

/// How the hooks of a seed get into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Road {
    Import,
    Imports,
    Journal,
    JournalInParts,
}

fn way(seed: u64) -> (Road, Ways) {
    let road = [Road::Import, Road::Imports, Road::Journal, Road::JournalInParts];
    let ways = Ways { jitter: if seed / 4 % 2 == 1 { 200 } else { 0 }, doubled: seed / 8 % 2 == 1 };
    (road[(seed % 4) as usize], ways)
}

/// Runs all seeds. Returns the differences, each with its seed and way. After each store, `progress` is told how many
/// seeds are done and how many differences were found.
#[must_use]
pub fn run(plan: Plan, progress: impl Fn(u64, usize)) -> Vec<String> {
    let mut all = Vec::new();
    let mut first = plan.first;
    let end = plan.first + plan.seeds;
    while first < end {
        let last = (first + plan.chunk).min(end);
        all.extend(chunk(first, last));
        first = last;
        progress(first - plan.first, all.len());
        if all.len() > 200 {
            all.push(format!("stopped before seed {first}"));
            break;
        }
    }
    all
}

fn chunk(first: u64, last: u64) -> Vec<String> {
    let world = World::new();
    let collector = Collector::start(&world);
    let mut all = Vec::new();
    let mut stories: Vec<Story> = Vec::new();
    for (seed, place) in (first..last).zip(1..) {
        let story = story(seed, place * DAYS);
        hand_over(&world, &collector, &story);
        compare(&collector, &story, "as it came", &mut all);
        stories.push(story);
    }
    let mut found = Differences::default();
    commands::of_world(&world, &stories, &mut found);
    for session in stories.iter().take(6).flat_map(|story| &story.sessions) {
        commands::of_session(&world, session, &mut found);
    }
    let few = stories.iter().take(3).flat_map(|story| &story.sessions);
    commands::of_mcp(&world, few, &mut found);
    let before: Vec<Value> = stories.iter().flat_map(|story| sums(&collector, story)).collect();
    collector.stop();
    let live = tables(&world.state().join("hookspan.db"));
    world.ok(&["rebuild"]);
    let collector = Collector::start(&world);
    for story in &stories {
        compare(&collector, story, "after rebuild", &mut all);
    }
    let after: Vec<Value> = stories.iter().flat_map(|story| sums(&collector, story)).collect();
    for (before, after) in before.iter().zip(&after) {
        found.equal("sums after rebuild", after, before);
    }
    tables::compare(
        "after rebuild",
        &tables(&world.state().join("hookspan.db")),
        &live,
        &mut found,
    );
    round_trip(&world, &stories, &live, &mut found, &mut all);
    for story in &mut stories {
        let gone = story.sessions.remove(0);
        let path = format!("sessions/{}/delete", gone.id);
        if let Err(error) = collector.post(&path, &json!({"confirm": gone.id})) {
            found.0.push(error);
        }
        compare(&collector, story, "after a deletion", &mut all);
    }
    commands::of_world(&world, &stories, &mut found);
    all.extend(found.0.into_iter().map(|line| format!("seeds {first}..{last}: {line}")));
    all
}

/// Checks that the raw log, imported elsewhere in parts of another length, gives the same results.
fn round_trip(
    world: &World,
    stories: &[Story],
    live: &Tables,
    found: &mut Differences,
    all: &mut Vec<String>,
) {
    let log = verify::export_log(world);
    let other = World::new();
    let collector = Collector::start(&other);
    let lines = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    for part in lines.chunks(PART) {
        let file = other.scratch("part.jsonl");
        fs::write(&file, part.join("\n")).unwrap();
        other.ok(&["import", file.to_str().unwrap()]);
    }
    for story in stories {
        compare(&collector, story, "exported and imported", all);
    }
    let imported = tables(&other.state().join("hookspan.db"));
    tables::compare("exported and imported", &imported, live, found);
}

/// Compares repeatedly until there is no difference or the time is over.
fn compare(collector: &Collector<'_>, story: &Story, when: &str, all: &mut Vec<String>) {
    let (road, ways) = way(story.seed);
    let started = Instant::now();
    loop {
        // Each hook may be late, and a turn lies between two hooks.
        let slack_us = 2_000 + 2_000 * ways.jitter as i64;
        let mut check = Check { collector, story, slack_us, found: Differences::default() };
        check.all();
        check.search();
        if check.found.0.is_empty() {
            return;
        }
        let patience = if all.is_empty() { PATIENCE } else { IMPATIENCE };
        if started.elapsed() > patience {
            let lines = check.found.0.into_iter().take(6);
            all.extend(
                lines.map(|line| format!("seed {} {road:?} {ways:?} {when}: {line}", story.seed)),
            );
            return;
        }
        pause(Duration::from_millis(300));
    }
}

/// The answers that contain sums, as JSON, for an exact comparison.
fn sums(collector: &Collector<'_>, story: &Story) -> Vec<Value> {
    let from = story.from_ms * 1_000;
    let period = format!("from_us={from}&to_us={}", from + DAYS * 86_400_000_000 - 1);
    [
        "latency?group=tool&",
        "latency?group=kind&",
        "latency?group=model&",
        "latency?group=project&",
        "latency/heatmap?group=kind&",
        "time?",
    ]
    .iter()
    .map(|path| collector.get(&format!("{path}{period}")).unwrap_or(Value::Null))
    .collect()
}

fn hand_over(world: &World, collector: &Collector<'_>, story: &Story) {
    let (road, ways) = way(story.seed);
    let hooks = hooks(story, ways);
    let mut random = Random::from_seed(story.seed ^ 0x00c0_ffee);
    let parts = match road {
        Road::Import | Road::Journal => vec![&*hooks],
        Road::Imports | Road::JournalInParts => cut(&hooks, &mut random),
    };
    for part in parts {
        match road {
            Road::Import | Road::Imports => {
                let file = world.scratch("part.jsonl");
                fs::write(&file, lines(part)).unwrap();
                world.ok(&["import", file.to_str().unwrap()]);
            }
            Road::Journal | Road::JournalInParts => append(world, collector, part),
        }
    }
}

/// Cuts at one to three places.
fn cut<'h>(hooks: &'h [Hook], random: &mut Random) -> Vec<&'h [Hook]> {
    let mut places: Vec<usize> =
        (0..1 + random.bits() % 3).map(|_| (random.bits() as usize) % hooks.len()).collect();
    places.extend([0, hooks.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &hooks[pair[0]..pair[1]]).filter(|part| !part.is_empty()).collect()
}

/// Hooks as a file that `import` reads.
#[must_use]
pub fn lines(hooks: &[Hook]) -> String {
    let mut text = String::new();
    for Hook { at, body } in hooks {
        writeln!(text, "{{\"observed_at\": {}, \"event\": {body}}}", at * 1_000_000).unwrap();
    }
    text
}

fn append(world: &World, collector: &Collector<'_>, hooks: &[Hook]) {
    let received = || {
        let health = collector.get("health").unwrap_or_default();
        health["counters"]["received"].as_i64().unwrap_or(0)
    };
    let wanted = received() + hooks.len() as i64;
    let mut journal = JournalWriter::new(world.state().join("journal"));
    for Hook { at, body } in hooks {
        let event = body["hook_event_name"].as_str().unwrap_or_default();
        journal.append(at * 1_000_000, event, body.to_string().as_bytes()).unwrap();
    }
    journal.flush().unwrap();
    let started = Instant::now();
    while received() < wanted && started.elapsed() < PATIENCE {
        pause(Duration::from_millis(20));
    }
}
