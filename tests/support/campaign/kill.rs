//! SIGKILL of the collector and of shims at any moment.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::control::Control;
use super::{Report, Traffic, bar, frames, nothing_is_lost, power, settle};
use crate::collector::{self, Collector};
use crate::journal::{JournalWriter, now};
use crate::ledger::{self, Ledger};
use crate::machine;
use crate::player::{self, Reply};
use crate::random::Random;
use crate::verify::rebuild_is_equal;
use crate::wait::pause;
use crate::world::World;

/// The size of a campaign.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Kills of the collector.
    pub kills: u64,
    /// Shims at once.
    pub at_once: u64,
    /// Shims per kill.
    pub shims: u64,
    /// One in this many kills happens while segments are being deleted, which begins after ten seconds; 0 for none.
    pub late_one_in: u64,
    /// Where the randomness starts.
    pub seed: u64,
}

/// One in this many kills happens after the collector reported that it is ready. The time until then is measured.
const READY_ONE_IN: u64 = 5;

/// Sessions end soon and are evicted soon, because otherwise every start would replay the whole campaign. Small
/// segments are rolled often.
const CONFIG: &str = "[trace]\nsession_idle = \"2s\"\ngeneration_idle = \"1s\"\n\n[journal]\nsegment_bytes = 1048576\n";

/// Kills the collector again and again under `at_once` shims, some of which are killed too.
#[track_caller]
pub fn run(plan: Plan) -> Report {
    let world = World::new();
    world.write_config(CONFIG);
    let traffic = Traffic::new(&world, 40);
    let control = Control::start(&world);
    let mut random = Random::from_seed(plan.seed);
    let bar = bar("kill", plan.kills);
    let mut ready = Vec::new();
    thread::scope(|scope| {
        let _end = traffic.until_the_end();
        for seed in 0..plan.at_once {
            let (traffic, control) = (&traffic, &control);
            scope.spawn(move || traffic.run(plan.seed ^ seed << 32, |number| control.send(number)));
        }
        for kill in 0..plan.kills {
            if kill % 4 == 1 {
                control.distract();
            }
            traffic.allow(plan.shims);
            if plan.late_one_in > 0 && kill % plan.late_one_in == plan.late_one_in - 1 {
                kill_late(&world, &mut random);
            } else if kill % READY_ONE_IN == 0 {
                ready.push(kill_when_ready(&world, &mut random));
            } else {
                kill_soon(&world, &mut random);
            }
            control.kill();
            bar.inc(1);
        }
    });
    bar.finish_and_clear();
    let ledger = traffic.ledger.into_inner().unwrap();
    let collector = Collector::start(&world);
    collector.drained(Duration::from_secs(900));
    drop(collector);
    nothing_is_lost(&world, &ledger);
    // Longer than any session or turn takes to become idle and settle with this configuration.
    rebuild_is_equal(&world, Duration::from_secs(8));
    let (sent, lost) = control.end();
    assert!(lost > 0, "the negative control lost nothing of {sent}: this campaign proves nothing");
    ready.sort();
    let rolled = rolls(&world);
    format!(
        "kill: seed {}, {} kills of the collector and {} of shims, {} hooks accepted: 0 lost, 0 duplicated, 0 torn; \
         ready after {:.0?} median, {:.0?} at most; {rolled} segments; control: socket lost {lost} of {sent}",
        plan.seed,
        plan.kills,
        ledger.killed(),
        ledger.accepted(),
        ready[ready.len() / 2],
        ready[ready.len() - 1],
    )
}

type Calls = (&'static str, u64, u64, u64);

/// System calls that belong to one kind of work. A collector is killed in each of them.
struct Step {
    /// The work.
    what: &'static str,
    /// What makes sure that it is done.
    before: Before,
    /// Files of the state directory that the calls are about.
    names: &'static [&'static str],
    /// For each call: its name, the first and the last number to try, and the step between them. Each thread counts its
    /// own calls, and the first ones may be those of the start.
    calls: &'static [Calls],
}

/// What a collector finds when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// No database.
    Nothing,
    /// Hooks that it has not read.
    Hooks,
    /// A journal of the size of a segment.
    WholeSegment,
}

const STEPS: [Step; 4] = [
    Step {
        what: "first migration",
        before: Before::Nothing,
        names: &["hookspan.db", "hookspan.db-journal", "hookspan.db-wal"],
        calls: &[("pwrite64", 1, 120, 3), ("fsync", 1, 20, 1), ("unlink", 1, 2, 1)],
    },
    Step {
        what: "roll",
        before: Before::WholeSegment,
        names: &["journal", "journal.new"],
        // Calls for the reserve of the old journal, for the reserve of the new one before it has its name, and for the
        // reserve after the roll.
        calls: &[("fallocate", 1, 3, 1), ("linkat", 1, 1, 1), ("rename", 1, 1, 1)],
    },
    Step {
        what: "commit",
        before: Before::Hooks,
        names: &["hookspan.db-wal"],
        calls: &[("pwrite64", 3, 40, 1), ("fsync", 2, 10, 1)],
    },
    Step {
        what: "sync of the journal",
        before: Before::Hooks,
        names: &["journal"],
        calls: &[("fdatasync", 1, 1, 1)],
    },
];

const FEW: u64 = 5;
/// The size of a segment in this configuration.
const SEGMENT_BYTES: u64 = 1 << 20;
/// Records of one frame each.
const ONE_FRAME_MAX: usize = 60_000;
/// How long to wait for a call. The first call of a kind always comes, however busy the machine is. A later call that
/// does not come within `CALL` does not exist. A deletion comes after ten seconds.
const FIRST_CALL: Duration = Duration::from_secs(60);
const CALL: Duration = Duration::from_millis(if cfg!(debug_assertions) { 10_000 } else { 2_000 });
const DELETION: Duration = Duration::from_secs(60);
/// Number of segments in a test of deletions.
const SEGMENTS: u64 = 3;

/// Kills the collector in the middle of a given system call: in the first, the second and so on, at most `calls` of
/// each. This covers every step of the first migration, of a roll, of a commit and of a deletion.
///
/// # Errors
/// `strace` is not there.
pub fn exactly(calls: u64, seed: u64) -> Result<Report, String> {
    machine::tool("strace")?;
    let mut hooks = 0;
    let mut lines = Vec::new();
    thread::scope(|scope| {
        // The tests of deletions mostly wait, so they run beside the others.
        let deletions = scope.spawn(|| deletions(calls.clamp(SEGMENTS, 9)));
        let mut world = Stepped::new();
        drop(Collector::start(&world.world));
        for step in &STEPS {
            let kinds: Vec<_> = step
                .calls
                .iter()
                .map(|call| tried(step, *call, calls, &mut world, &mut hooks))
                .collect();
            lines.push(format!("{}: {}", step.what, kinds.join(", ")));
        }
        hooks += world.settle();
        let (kills, more) = deletions.join().unwrap();
        lines.push(format!("deletion: {kills} unlink"));
        hooks += more;
    });
    Ok(format!(
        "kill in a system call: seed {seed}, kills by call: {}; {hooks} hooks: 0 lost, 0 duplicated, 0 torn",
        lines.join("; "),
    ))
}

/// Tries one kind of call until it no longer occurs. Returns the kills as text.
#[track_caller]
fn tried(
    step: &Step,
    (kind, first, last, stride): Calls,
    calls: u64,
    shared: &mut Stepped,
    hooks: &mut usize,
) -> String {
    let last = last.min(first + (calls - 1) * stride);
    // Calls that occur only a few times are tried repeatedly.
    let rounds = if last - first < FEW { (calls / 8).max(1) } else { 1 };
    let all = (first..=last).step_by(stride as usize);
    let bar = bar("kill in a system call", rounds * all.clone().count() as u64);
    let (mut killed, mut unmade) = (0_u64, 0_u64);
    for call in (0..rounds).flat_map(|_| all.clone()) {
        let patience = if killed == 0 { FIRST_CALL } else { CALL };
        let came = match step.before {
            Before::Nothing => {
                let mut own = Stepped::new();
                own.prepare(step.before);
                let came = kill_in(&own.world, kind, step.names, call, patience);
                let version = power::copy(&own.world).map_or(0, |db| schema(&db));
                *hooks += own.settle();
                let whole = power::copy(&own.world).map_or(0, |db| schema(&db));
                unmade += u64::from(came && version < whole);
                came
            }
            before => {
                shared.prepare(before);
                kill_in(&shared.world, kind, step.names, call, patience)
            }
        };
        if !came {
            break;
        }
        killed += 1;
        bar.inc(1);
    }
    bar.finish_and_clear();
    assert!(killed > 0, "{}: {kind} never came", step.what);
    if step.before == Before::Nothing {
        assert!(unmade > 0, "{kind}: no kill came before the tables were made");
        return format!("{killed} {kind} ({unmade} of them before the tables were made)");
    }
    format!("{killed} {kind}")
}

fn schema(db: &rusqlite::Connection) -> i64 {
    db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap_or(0)
}

/// A world with its ledger.
struct Stepped {
    world: World,
    ledger: Ledger,
    next: u64,
}

impl Stepped {
    fn new() -> Self {
        let world = World::new();
        world.write_config(CONFIG);
        world.shim();
        Self { world, ledger: Ledger::of(ledger::mixed), next: 0 }
    }

    /// Sets up the work that is asked for.
    fn prepare(&mut self, before: Before) {
        for _ in 0..6 {
            let reply = player::hook(&self.world, "afterAgentThought", &ledger::mixed(self.next));
            self.ledger.enter(self.next, reply);
            self.next += 1;
        }
        let journal = self.world.state().join("journal");
        let bytes = || fs::metadata(&journal).map_or(0, |found| found.len());
        while before == Before::WholeSegment && bytes() < SEGMENT_BYTES {
            self.write("journal", 20);
        }
    }

    /// Writes this number of records without a shim.
    fn write(&mut self, name: &str, records: u64) {
        let mut journal = JournalWriter::new(self.world.state().join(name));
        for number in self.next..self.next + records {
            let body = ledger::mixed(number);
            if body.len() <= ONE_FRAME_MAX {
                journal.append(now(), "afterAgentThought", &body).unwrap();
                let (code, stdout) = (Some(0), "{}\n".into());
                self.ledger.enter(number, Reply { code, stdout, stderr: String::new() });
            }
        }
        journal.flush().unwrap();
        self.next += records;
    }

    #[track_caller]
    fn settle(&self) -> usize {
        settle(&self.world, &self.ledger);
        self.ledger.accepted()
    }
}

/// Kills collectors in the call that deletes a segment. A collector makes that call ten seconds after it has found the
/// segment. Returns the number of kills and of hooks.
#[track_caller]
fn deletions(count: u64) -> (u64, usize) {
    thread::scope(|scope| {
        let running: Vec<_> = (0..count).map(|one| scope.spawn(move || deletion(one))).collect();
        let hooks = running.into_iter().map(|one| one.join().unwrap()).sum();
        (count, hooks)
    })
}

/// Kills a collector in the deletion of one segment: in round 0 before any segment is deleted, in round 1 after one
/// deletion, and so on.
fn deletion(one: u64) -> usize {
    let mut stepped = Stepped::new();
    fs::create_dir_all(stepped.world.state()).unwrap();
    let segment = |number: u64| format!("seg-{number}");
    (1..=SEGMENTS).for_each(|number| stepped.write(&segment(number), 20));
    let last = 1 + one % SEGMENTS;
    assert!(
        kill_in(&stepped.world, "unlink", &[&segment(last)], 1, DELETION),
        "{} was not deleted\n{}",
        segment(last),
        collector::log(&stepped.world)
    );
    let left = |number: &u64| stepped.world.state().join(segment(*number)).exists();
    let left: Vec<u64> = (1..=SEGMENTS).filter(left).collect();
    assert_eq!(left, (last..=SEGMENTS).collect::<Vec<_>>(), "segments that are left");
    stepped.settle()
}

/// The negative control of every reader of a journal: a reader that trusts lengths loses neighbouring records.
///
/// Returns how many complete records a trusting reader loses. The collector must lose none of them.
#[track_caller]
pub fn a_trusting_reader_loses() -> Report {
    let world = World::new();
    world.shim();
    let mut ledger = Ledger::of(ledger::mixed);
    let journal = world.state().join("journal");
    for number in 0..40 {
        let body = ledger::mixed(number);
        ledger.enter(number, player::hook(&world, "afterAgentThought", &body));
        if number % 10 == 4 {
            // The bytes of a shim that was killed in the middle of its write.
            let torn = frames::record(number, 1, "stop", &vec![b'x'; 30_000]);
            let mut file = fs::File::options().append(true).open(&journal).unwrap();
            std::io::Write::write_all(&mut file, &torn[..torn.len() / 8]).unwrap();
        }
    }
    let file = fs::read(&journal).unwrap();
    let found: std::collections::BTreeSet<u64> = frames::trusting(&file)
        .into_iter()
        .filter_map(|payload| {
            let at = payload.windows(8).position(|window| window == b"{\"conver")?;
            ledger::number(&payload[at..])
        })
        .collect();
    let lost = ledger.accepted() - found.len();
    assert!(lost > 0, "the control lost nothing: this proves nothing");
    settle(&world, &ledger);
    let torn = world.json(&["status", "--json"])["counters"]["torn_frame"].clone();
    assert_eq!(torn, 4, "torn frames are counted");
    format!(
        "torn frames: 40 records beside 4 torn ones: 0 lost; control: a reader that trusts lengths lost {lost}"
    )
}

fn kill_soon(world: &World, random: &mut Random) {
    let mut child = collector::spawn(world, "serve", &[]);
    pause(Duration::from_micros(random.between(1_000, 500_000)));
    let ended = child.try_wait().unwrap();
    assert_eq!(ended, None, "it ended by itself\n{}", collector::log(world));
    child.kill().unwrap();
    child.wait().unwrap();
}

fn kill_when_ready(world: &World, random: &mut Random) -> Duration {
    let started = Instant::now();
    let collector = Collector::start(world);
    let ready = started.elapsed();
    pause(Duration::from_millis(random.between(0, 400)));
    collector.kill();
    ready
}

fn kill_late(world: &World, random: &mut Random) {
    let collector = Collector::start(world);
    pause(Duration::from_millis(random.between(10_000, 10_600)));
    collector.kill();
}

/// Kills a collector in the `call`-th call of this kind on one of these files. Returns false if there was no such call.
fn kill_in(world: &World, kind: &str, names: &[&str], call: u64, patience: Duration) -> bool {
    let trace = format!("trace={kind}");
    let inject = format!("inject={kind}:signal=KILL:when={call}");
    let path = |name: &&str| world.state().join(name).display().to_string();
    let paths: Vec<String> = names.iter().map(path).collect();
    let mut wrapper = vec!["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    paths.iter().for_each(|path| wrapper.extend(["-P", path.as_str()]));
    let mut child = collector::spawn_below(world, &wrapper, "serve", &[]);
    let started = Instant::now();
    while started.elapsed() < patience {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        pause(Duration::from_millis(10));
    }
    // The call did not occur that often. Killing the tracer would only detach it, so the collector is ended. The tracer
    // then ends by itself.
    let tracer = child.id();
    let traced = fs::read_to_string(format!("/proc/{tracer}/task/{tracer}/children")).unwrap();
    let traced = traced.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
    for pid in traced {
        let _may_have_ended = kill_process(pid, Signal::KILL);
    }
    child.wait().unwrap();
    false
}

/// How many segments there have been.
fn rolls(world: &World) -> u64 {
    let names = fs::read_dir(world.state()).unwrap().flatten();
    let numbers = names
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("seg-")?.parse::<u64>().ok());
    numbers.max().unwrap_or(0)
}
