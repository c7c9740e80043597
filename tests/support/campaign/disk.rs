//! Full disks, at the shim, at the collector, at both.

use std::fs;
use std::ops::Range;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Report, extend_of};
use crate::collector::{self, Collector};
use crate::ledger::{Ledger, Verdict};
use crate::machine::Mounted;
use crate::random::Random;
use crate::verify;
use crate::wait::{SOON, eventually};
use crate::world::World;

/// Maximum time until everything is stored once there is space again. A debug build stores a backlog more slowly.
const BACK: Duration = Duration::from_secs(if cfg!(debug_assertions) { 15 } else { 5 });
/// Space reserved for hooks after the journal's end, and the same for the database.
const RESERVE: u64 = 16 << 20;
const BALLAST: u64 = 32 << 20;
/// Size of a disk with room for both reserves, so that both are made.
const DISK_MIB: u64 = 200;
/// Bytes of a large hook.
const LARGE: Range<u64> = 500_000..1_500_000;

/// Shims run on a full disk: with or without a collector, and with a run-time directory that is also full. Every hook
/// must be stored or counted, and the system must recover by itself. A hundred shims write more than reserve and
/// ballast can hold.
///
/// # Errors
/// The machine does not permit it.
pub fn run(shims: u64, seed: u64) -> Result<Report, String> {
    let lines = [
        without_collector(shims, seed, Spill::None)?,
        without_collector(shims, seed, Spill::Full)?,
        with_collector(shims, seed, Ballast::Used)?,
        with_collector(shims, seed, Ballast::Gone)?,
    ];
    Ok(lines.join("\n"))
}

/// Where hooks can go that the journal does not accept.
#[derive(Clone, Copy, Debug)]
enum Spill {
    /// There is no run-time directory.
    None,
    /// It is full too.
    Full,
}

/// The body of hook `number`: text that no compression makes small. Nine in ten bodies are large.
fn large(number: u64) -> Vec<u8> {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut random = Random::from_seed(0xd15c);
        let mut text = String::new();
        while (text.len() as u64) < 2 * LARGE.end {
            text.push_str(&format!("{:016x}", random.bits()));
        }
        text
    });
    let mut random = Random::from_seed(number ^ 0xf111);
    let bytes = match number % 10 {
        9 => random.between(100, 4_000),
        _ => random.between(LARGE.start, LARGE.end),
    };
    let from = random.between(0, LARGE.end);
    let text = &TEXT[from as usize..(from + bytes) as usize];
    let conversation = number / 40;
    format!(
        "{{\"conversation_id\":\"00000000-0000-4000-8000-{conversation:012}\",\"generation_id\":\"g\",\
         \"number\":{number},\"text\":\"{text}\",\"hook_event_name\":\"afterAgentThought\",\
         \"cursor_version\":\"3.7.19\"}}"
    )
    .into_bytes()
}

/// A small disk for the state directory.
fn small_world(spill: Spill) -> Result<(World, Mounted), String> {
    let mut world = match spill {
        Spill::None => World::new().with_env("XDG_RUNTIME_DIR", "/nonexistent"),
        Spill::Full => World::new(),
    };
    let disk = Mounted::tmpfs(&world.home().join(".local/state"), DISK_MIB)?;
    world.copy_shim();
    Ok((world, disk))
}

/// No collector runs and the disk is full. Hooks in the reserved space are stored later, and the others are counted.
fn without_collector(shims: u64, seed: u64, spill: Spill) -> Result<Report, String> {
    let (world, disk) = small_world(spill)?;
    // A collector prepares journal, reserve and loss file, as on every machine where one has run.
    drop(Collector::start(&world));
    let filler = disk.fill("filler");
    let (place, run_time) = match spill {
        Spill::None => ("no run-time directory", None),
        Spill::Full => {
            let run_time = Mounted::tmpfs(&world.scratch("run"), 1)?;
            run_time.fill("filler");
            ("run-time directory full too", Some(run_time))
        }
    };
    let mut ledger = Ledger::of(large);
    extend_of(large, &mut ledger, &world, shims, seed);
    let kept = fs::metadata(world.state().join("journal")).unwrap().len();
    assert!(kept >= RESERVE, "the reserve was not used up: {kept} bytes");
    fs::remove_file(filler).unwrap();
    let collector = Collector::start(&world);
    all_stored(&world, &ledger);
    drop(collector);
    let (stored, lost) = account(&world, &ledger);
    drop(run_time);
    Ok(format!(
        "disk-full, no collector, {place}: {shims} shims, {stored} stored, {lost} lost and counted, sum exact"
    ))
}

/// Whether the database has ballast: reserved space that it can free when the disk is full.
#[derive(Clone, Copy, Debug)]
enum Ballast {
    /// The ballast is freed. After that, there may be room again for all hooks.
    Used,
    /// There is no ballast. Writing is refused as long as the disk is full.
    Gone,
}

/// The disk fills while the collector works. It keeps running, reads work, the trouble is shown, and it recovers within
/// seconds.
fn with_collector(shims: u64, seed: u64, fallback: Ballast) -> Result<Report, String> {
    let (world, disk) = small_world(Spill::None)?;
    let mut collector = Collector::start(&world);
    let mut ledger = Ledger::of(large);
    extend_of(large, &mut ledger, &world, 10, seed);
    collector.drained(SOON);
    let ballast = world.state().join("ballast");
    eventually("the ballast is kept", SOON, || match fs::metadata(&ballast) {
        Ok(found) if found.len() == BALLAST => Ok(()),
        other => Err(format!("{other:?}")),
    });
    if let Ballast::Gone = fallback {
        fs::remove_file(&ballast).unwrap();
    }
    let filler = disk.fill("filler");
    extend_of(large, &mut ledger, &world, shims, seed);
    assert!(collector.is_running(), "it ended on a full disk\n{}", collector::log(&world));
    let sessions = collector.get("sessions").unwrap();
    assert!(!sessions["items"].as_array().unwrap().is_empty(), "reads do not work: {sessions:#}");
    let shown = eventually("trouble and losses are shown", SOON, || {
        let status = world.json(&["status", "--json"]);
        let refused = match fallback {
            // Once there is room again, the trouble is over. The counter shows that there was some.
            Ballast::Used => status["counters"]["store_retries"].as_u64() > Some(0),
            Ballast::Gone => false,
        };
        let told = refused || status["trouble"].is_string();
        if told && counted(&status) > 0 && !ballast.exists() {
            Ok(status)
        } else {
            Err(format!("ballast: {}, {status:#}", ballast.exists()))
        }
    });
    let fell_back = match fallback {
        Ballast::Used => "ballast used up",
        Ballast::Gone => "no ballast",
    };
    fs::remove_file(filler).unwrap();
    let freed = Instant::now();
    all_stored(&world, &ledger);
    let back = freed.elapsed();
    assert!(back <= BACK, "it took {back:?} to come back\n{}", collector::log(&world));
    drop(collector);
    let (stored, lost) = account(&world, &ledger);
    Ok(format!(
        "disk-full, collector at work: {} shims, {stored} stored, {lost} lost and counted, sum exact; never exited, reads \
         worked, {fell_back}, shown as {}; back after {back:.1?}",
        shims + 10,
        shown["trouble"]
    ))
}

/// Waits until every hook is stored or counted and no trouble is shown. The backlog alone does not tell this: the
/// collector waits half a minute for the rest of a hook whose end found no room.
#[track_caller]
fn all_stored(world: &World, ledger: &Ledger) {
    eventually("everything is stored again", Duration::from_secs(120), || {
        let status = world.json(&["status", "--json"]);
        let rows = rows(world).map_err(|error| error.to_string())?;
        match rows + counted(&status) >= ledger.accepted() as u64 && status["trouble"].is_null() {
            true => Ok(()),
            false => Err(format!("{rows} stored, {status:#}\n{}", collector::log(world))),
        }
    });
}

/// Hooks in the database.
fn rows(world: &World) -> rusqlite::Result<u64> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let db = rusqlite::Connection::open_with_flags(world.state().join("hookspan.db"), flags)?;
    let count = db.query_row("SELECT count(*) FROM raw_hook", [], |row| row.get::<_, i64>(0))?;
    Ok(count.cast_unsigned())
}

/// Losses that `status` shows.
fn counted(status: &Value) -> u64 {
    status["losses"].as_object().unwrap().values().filter_map(Value::as_u64).sum()
}

/// Checks that every shim exited with 0 and its answer, and that each hook is either stored or counted, never both.
/// Some hooks must be lost; otherwise the test proves nothing.
#[track_caller]
fn account(world: &World, ledger: &Ledger) -> (usize, usize) {
    assert_eq!(ledger.refused(), [], "a shim was harmed by a full disk");
    // A hook whose end did not fit may be stored in part, marked as cut.
    let mut ledger = ledger.clone();
    (0..ledger.accepted() as u64).for_each(|number| ledger.enter_killed(number));
    let mut comparison = ledger.comparison();
    verify::each_raw_body(world, |body| comparison.see(body));
    let stored = comparison.stored().len();
    let Verdict { lost, duplicate, different } = comparison.verdict();
    assert_eq!((duplicate, different), Default::default());
    let status = world.json(&["status", "--json"]);
    assert_eq!(lost.len() as u64, counted(&status), "stored {stored}, {status:#}");
    assert_eq!(stored + lost.len(), ledger.accepted());
    assert!(!lost.is_empty(), "nothing was lost: the disk was not full enough to prove anything");
    (stored, lost.len())
}
