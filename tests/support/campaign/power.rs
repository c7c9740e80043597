//! Power cuts, simulated by a file system that drops everything that was not written to its device.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Seek, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::{Report, Traffic, bar, frames};
use crate::collector::Collector;
use crate::journal::{JournalWriter, now};
use crate::ledger::{self, Ledger};
use crate::machine::{self, Mounted};
use crate::player;
use crate::random::Random;
use crate::verify;
use crate::wait::pause;
use crate::world::World;

/// Maximum age of hooks that may be lost: the last sync is at most this old.
const WINDOW: Duration = Duration::from_millis(150);
/// If a sync on this machine takes longer than this, the cut proves nothing about the window, and is repeated.
const STALL_MAX: Duration = Duration::from_millis(100);
/// Maximum number of inconclusive cuts that are repeated in a short campaign. In a longer campaign it is the number of
/// cuts.
const AGAIN_MIN: u64 = 10;
/// Number of cuts per state directory. The last one happens while a collector catches up.
const CUTS_PER_STATE: u64 = 10;
/// Number of hooks for such a collector (about two seconds of work), and how many of them are in one segment.
const BACKLOG: u64 = if cfg!(debug_assertions) { 4_000 } else { 24_000 };
const BACKLOG_SEGMENT: u64 = BACKLOG / 8;
/// Number of the first segment that the test itself writes. A collector does not reach this number meanwhile.
const SEGMENTS_FROM: u64 = 1_000;
/// Maximum size of a body in a backlog, so that each hook takes one frame.
const BACKLOG_BODY_MAX: usize = 60_000;

/// Repeats cuts until `cuts` of them are conclusive. Panics if as many cuts again were not, because the machine was too
/// busy.
///
/// # Errors
/// The machine does not permit it.
pub fn run(cuts: u64, seed: u64) -> Result<Report, String> {
    machine::root()?;
    machine::tool("perl")?;
    let mut random = Random::from_seed(seed);
    let bar = bar("power cut", cuts);
    let mut sum = Sum::default();
    let mut done = 0;
    while done < cuts {
        let mut world = World::new();
        let at = world.home().join(".local/state");
        let (image, other) = (machine::image()?, machine::image()?);
        let disk = Mounted::ext4(image.path(), &at, 512)?;
        let yardstick = Mounted::ext4(other.path(), &world.scratch("yardstick"), 64)?;
        let mut probe = fs::File::create(yardstick.path().join("probe")).unwrap();
        world.copy_shim();
        let mut first = 0;
        let mut all = Ledger::of(ledger::mixed);
        let here = CUTS_PER_STATE.min(cuts - done);
        let mut said = 1;
        while said < here {
            let cut = one(&world, (&disk, &mut probe), &mut random, first, &mut all, &mut sum)?;
            first = cut.next;
            if cut.conclusive {
                said += 1;
                bar.inc(1);
                continue;
            }
            sum.inconclusive += 1;
            assert!(
                sum.inconclusive <= cuts.max(AGAIN_MIN),
                "{} cuts were inconclusive, a sync waited {:.0?} at most: this machine is too busy to tell",
                sum.inconclusive,
                sum.inconclusive_stall,
            );
        }
        // This cut comes last, because every cut compares everything before it.
        behind(&world, &disk, &mut random, first, &mut all, &mut sum)?;
        done += here;
        bar.inc(1);
    }
    bar.finish_and_clear();
    sum.lost_ms.sort_unstable();
    let lost_ms = sum.lost_ms.get(sum.lost_ms.len() / 2).copied().unwrap_or(0);
    let worst = sum.lost_ms.last().copied().unwrap_or(0);
    assert!(
        sum.control_lost > 0,
        "the unsynced control lost nothing: this campaign proves nothing"
    );
    assert_eq!(sum.control_kept, 0, "the unsynced control kept lines: the cut is no cut");
    Ok(format!(
        "power-cut: seed {seed}, {cuts} cuts, {} hooks accepted before them; older than {WINDOW:?}: {} lost; in the window: \
         {} lost; the oldest {lost_ms} ms before its cut (median of cuts), {worst} ms at most (a sync beside it waited \
         {:.0?} at most); inconclusive, a sync beside it waited more than {STALL_MAX:?}: {} more cuts, {} of {} hooks lost; \
         of {} hooks of backlogs, whose cuts left {} in the database: 0 lost; position ahead of the disk: 0; database \
         opened {} times; control: unsynced file lost {} of {} lines",
        sum.accepted,
        sum.older,
        sum.lost,
        sum.stall,
        sum.inconclusive,
        sum.inconclusive_lost,
        sum.inconclusive_accepted,
        sum.behind,
        sum.behind_stored,
        cuts + sum.inconclusive,
        sum.control_lost,
        sum.control_lost + sum.control_kept,
    ))
}

/// Measures how long this machine delays a sync, until `enough` is set: the wait for a processor and the sync itself.
/// It uses a file system of its own, because a sync here would also write what the test wants to find unwritten.
fn stalls(yardstick: &mut fs::File, enough: &AtomicBool) -> Duration {
    const TICK: Duration = Duration::from_millis(5);
    let (mut worst, mut last) = (Duration::ZERO, Instant::now());
    while !enough.load(Ordering::Relaxed) {
        pause(TICK);
        yardstick.write_all(&[0; 4_096]).unwrap();
        yardstick.sync_data().unwrap();
        let now = Instant::now();
        worst = worst.max((now - last).saturating_sub(TICK));
        last = now;
    }
    yardstick.set_len(0).unwrap();
    yardstick.rewind().unwrap();
    worst
}

/// Sums over conclusive cuts, unless a field says otherwise.
#[derive(Debug, Default)]
struct Sum {
    stall: Duration,
    accepted: usize,
    /// Hooks that were lost although they were older than the window.
    older: usize,
    /// Lost in the window.
    lost: usize,
    inconclusive: u64,
    inconclusive_stall: Duration,
    inconclusive_accepted: usize,
    inconclusive_lost: usize,
    lost_ms: Vec<u128>,
    control_lost: usize,
    control_kept: usize,
    /// Hooks of backlogs, and how many of them were in the database after their cut.
    behind: u64,
    behind_stored: u64,
}

/// The result of a cut.
struct Cut {
    /// The next hook's number.
    next: u64,
    /// Whether syncs were fast enough for the window to be meaningful.
    conclusive: bool,
}

/// A cut while the collector catches up and its commits do not wait for the disk. All hooks had been written to the
/// disk before, so none may be lost.
fn behind(
    world: &World,
    disk: &Mounted,
    random: &mut Random,
    first: u64,
    all: &mut Ledger,
    sum: &mut Sum,
) -> Result<(), String> {
    fs::create_dir_all(world.state()).unwrap();
    let next = first + BACKLOG;
    for start in (first..next).step_by(BACKLOG_SEGMENT as usize) {
        let path = world.state().join(format!("seg-{}", SEGMENTS_FROM + start / BACKLOG_SEGMENT));
        let mut segment = JournalWriter::new(path.clone());
        for number in start..start + BACKLOG_SEGMENT {
            let body = ledger::mixed(number);
            if body.len() <= BACKLOG_BODY_MAX {
                segment.append(now(), "afterAgentThought", &body).unwrap();
                all.enter(number, accepted());
                sum.behind += 1;
            }
        }
        segment.flush().unwrap();
        fs::File::open(path).unwrap().sync_all().unwrap();
    }
    fs::File::open(world.state()).unwrap().sync_all().unwrap();
    let collector = Collector::start(world);
    pause(Duration::from_millis(random.between(0, 1_500)));
    let cut = disk.cut_power();
    collector.kill();
    cut?;
    disk.reboot();
    position_is_on_disk(world);
    sum.behind_stored += stored(world);
    let collector = Collector::start(world);
    collector.drained(Duration::from_secs(120));
    drop(collector);
    let mut comparison = all.comparison();
    verify::each_raw_body(world, |body| comparison.see(body));
    let verdict = comparison.verdict();
    assert_eq!((verdict.lost, verdict.duplicate, verdict.different), Default::default());
    Ok(())
}

/// Hooks in the database, before another collector opens it.
fn stored(world: &World) -> u64 {
    let count = |db: &rusqlite::Connection| {
        db.query_row("SELECT count(*) FROM raw_hook", [], |row| row.get::<_, i64>(0)).ok()
    };
    copy(world).as_ref().and_then(count).unwrap_or(0).cast_unsigned()
}

fn accepted() -> player::Reply {
    player::Reply { code: Some(0), stdout: "{}\n".into(), stderr: String::new() }
}

fn one(
    world: &World,
    (disk, probe): (&Mounted, &mut fs::File),
    random: &mut Random,
    first: u64,
    all: &mut Ledger,
    sum: &mut Sum,
) -> Result<Cut, String> {
    let traffic = Traffic::from(world, 0, first);
    let times = Mutex::new(BTreeMap::new());
    let control = disk.path().join(format!("unsynced-{first}"));
    fs::write(&control, "").unwrap();
    let sent = Mutex::new((fs::File::options().append(true).open(&control).unwrap(), 0_usize));
    let collector = Collector::start(world);
    let mut stall = Duration::ZERO;
    let cut = thread::scope(|scope| {
        let _end = traffic.until_the_end();
        for seed in 0..4 {
            let (traffic, times, sent) = (&traffic, &times, &sent);
            scope.spawn(move || {
                traffic.run(seed, |number| {
                    times.lock().unwrap().insert(number, SystemTime::now());
                    let mut sent = sent.lock().unwrap();
                    if sent.0.write_all(b"a line\n").is_ok() {
                        sent.1 += 1;
                    }
                });
            });
        }
        let enough = AtomicBool::new(false);
        thread::scope(|measuring| {
            let stalls = measuring.spawn(|| stalls(probe, &enough));
            // Ten times what a busy agent sends. Sending as fast as possible would keep the syncs from getting a
            // processor.
            let until = Instant::now() + Duration::from_millis(random.between(200, 1_200));
            while Instant::now() < until {
                traffic.allow(5);
                pause(Duration::from_millis(10));
            }
            let cut = disk.cut_power();
            enough.store(true, Ordering::Relaxed);
            stall = stalls.join().unwrap();
            cut
        })
    });
    collector.kill();
    let control_sent = sent.into_inner().unwrap().1;
    let cut = cut?;
    disk.reboot();
    position_is_on_disk(world);
    let kept = fs::read(&control).map_or(0, |text| text.iter().filter(|b| **b == b'\n').count());
    sum.control_kept += kept;
    sum.control_lost += control_sent.saturating_sub(kept);

    let after = traffic.started();
    let collector = Collector::start(world);
    for number in after..after + 3 {
        let reply = player::hook(world, "afterAgentThought", &ledger::mixed(number));
        all.enter(number, reply);
    }
    collector.drained(Duration::from_secs(120));
    drop(collector);
    let times = times.into_inner().unwrap();
    judge(world, all, &times, (cut, after), stall, sum);
    Ok(Cut { next: after + 3, conclusive: stall <= STALL_MAX })
}

/// Checks that hooks accepted well before the cut are stored. Hooks accepted just before it may be lost, and are
/// counted. If a sync had to wait too long, only consistency is checked.
#[track_caller]
fn judge(
    world: &World,
    all: &mut Ledger,
    times: &BTreeMap<u64, SystemTime>,
    (cut, next): (SystemTime, u64),
    stall: Duration,
    sum: &mut Sum,
) {
    let conclusive = stall <= STALL_MAX;
    // A hook may have to wait for two rounds of syncs: one that began before the hook, and one that the cut
    // interrupted.
    let window = WINDOW + 2 * stall;
    let this = Ledger::of(ledger::mixed);
    let mut comparison = this.comparison();
    verify::each_raw_body(world, |body| comparison.see(body));
    let stored = comparison.stored();
    let (mut accepted_before, mut lost) = (0, Vec::new());
    for (number, at) in times.iter().filter(|(_, at)| **at <= cut) {
        accepted_before += 1;
        if stored.contains(number) {
            // From now on, no cut may lose this hook.
            all.enter(*number, accepted());
            continue;
        }
        let before = cut.duration_since(*at).unwrap_or_default();
        assert!(
            before <= window || !conclusive,
            "hook {number} was accepted {before:?} before the cut and is gone; {window:?} are allowed"
        );
        all.enter_killed(*number);
        lost.push(before);
    }
    if conclusive {
        let older = lost.iter().filter(|before| **before > WINDOW).count();
        sum.stall = sum.stall.max(stall);
        sum.accepted += accepted_before;
        sum.older += older;
        sum.lost += lost.len() - older;
        sum.lost_ms.push(lost.iter().max().map_or(0, Duration::as_millis));
    } else {
        sum.inconclusive_stall = sum.inconclusive_stall.max(stall);
        sum.inconclusive_accepted += accepted_before;
        sum.inconclusive_lost += lost.len();
    }
    times.iter().filter(|(_, at)| **at > cut).for_each(|(number, _)| all.enter_killed(*number));
    // A hook that was being written may be stored in part, marked as cut.
    (0..next)
        .filter(|number| !times.contains_key(number))
        .for_each(|number| all.enter_killed(number));
    // No hook may be stored that was never sent, and no hook may be stored twice. Hooks that earlier cuts left must
    // still be there.
    let mut again = all.comparison();
    verify::each_raw_body(world, |body| again.see(body));
    let verdict = again.verdict();
    assert_eq!((verdict.lost, verdict.duplicate, verdict.different), Default::default());
}

/// A copy of the database as the cut left it. Opening the original would repair what the collector must find.
pub(super) fn copy(world: &World) -> Option<rusqlite::Connection> {
    let copy = world.scratch("looked-at.db");
    for suffix in ["", "-wal"] {
        let from = world.state().join(format!("hookspan.db{suffix}"));
        let to = format!("{}{suffix}", copy.display());
        if fs::copy(from, &to).is_err() {
            drop(fs::remove_file(to));
        }
    }
    rusqlite::Connection::open(&copy).ok()
}

/// Checks that every offset of the stored position lies within an existing segment.
#[track_caller]
fn position_is_on_disk(world: &World) {
    let Some(db) = copy(world) else { return };
    let sql = "SELECT value FROM state WHERE key = 'journal'";
    let Ok(position) = db.query_row(sql, [], |row| row.get::<_, String>(0)) else { return };
    drop(db);
    let lengths: BTreeMap<u64, u64> = segments(world)
        .iter()
        .filter_map(|path| {
            let file = fs::read(path).unwrap();
            Some((frames::fingerprint(&file)?, file.len() as u64))
        })
        .collect();
    for word in position.split_ascii_whitespace().skip(2) {
        let (key, offset) = word.split_once(':').unwrap();
        let (key, offset) = (u64::from_str_radix(key, 16).unwrap(), offset.parse::<u64>().unwrap());
        // The position may name a segment that is not in the state directory: it was deleted after it was stored, or
        // it is in the run-time directory.
        let Some(length) = lengths.get(&key).copied() else { continue };
        assert!(offset <= length, "the position {position} is ahead of the disk: {lengths:x?}");
    }
}

fn segments(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.state()).unwrap().flatten().map(|entry| entry.path());
    entries
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name == "journal" || name.starts_with("seg-")
        })
        .collect()
}
