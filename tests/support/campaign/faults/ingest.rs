//! Faults that keep a collector from its own files while hooks arrive: file modes, missing descriptors, no space for
//! another file.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use super::super::{Report, extend, send};
use super::system::stored;
use crate::collector::{self, Collector};
use crate::machine::{self, Mounted};
use crate::wait::{SOON, eventually, pause};
use crate::world::World;

/// An account that owns nothing else.
const NOBODY: u32 = 65_534;
/// The smallest segments that are allowed. Two hundred hooks fill more than one.
const CONFIG: &str = "[journal]\nsegment_bytes = 1048576\n";

/// For two seconds the state directory cannot be written (`chmod 500`), while the journal must be rolled.
pub(super) fn unwritable(seed: u64) -> Result<Report, String> {
    // Root ignores modes.
    machine::root()?;
    let mut world = World::new().owned_by(NOBODY);
    world.write_config(CONFIG);
    // The program may be in a folder that only root may enter.
    let program = world.scratch("hookspan");
    fs::copy(world.hookspan(), &program).map_err(|error| error.to_string())?;
    world.set_program(Some(program));
    world.shim();
    let collector = Collector::start(&world);
    let mut ledger = send(&world, 20, seed);
    collector.drained(SOON);
    mode(&world, 0o500);
    extend(&mut ledger, &world, 200, seed);
    let told = problem(&world);
    pause(Duration::from_secs(2));
    extend(&mut ledger, &world, 20, seed);
    mode(&world, 0o700);
    rolls_again(&world);
    stored(&world, collector, &ledger);
    Ok(format!(
        "a state directory that cannot be written for two seconds: {} hooks, 0 lost, 0 twice; shown as: {told}",
        ledger.accepted()
    ))
}

fn mode(world: &World, mode: u32) {
    fs::set_permissions(world.state(), fs::Permissions::from_mode(mode)).unwrap();
}

/// Two hundred connections reach a collector with a limit of 64 descriptors. Then the limit is lowered to the number of
/// descriptors in use, so that the collector can open no file. Hooks must be stored while the connections are open, and
/// the journal must be rolled.
pub(super) fn no_descriptors(seed: u64) -> Result<Report, String> {
    machine::tool("prlimit")?;
    let world = World::new();
    world.write_config(CONFIG);
    world.shim();
    let collector = Collector::start_below(&world, &["prlimit", "--nofile=64"]);
    let host = collector.url.trim_start_matches("http://").parse().unwrap();
    // Connections that are not accepted wait in the kernel, until its queue is full.
    let connect = |_| TcpStream::connect_timeout(&host, Duration::from_millis(500)).ok();
    let held: Vec<_> = (0..200).map_while(connect).collect();
    // The collector accepts fewer connections than it may have descriptors, so the limit is lowered to the number in
    // use.
    pause(Duration::from_secs(1));
    let pid = collector.pid().as_raw_nonzero().to_string();
    // A process without privileges may lower its limit but not raise it again.
    let full = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count().min(64);
    let lower = format!("--nofile={full}:{full}");
    let lowered = Command::new("prlimit").args(["--pid", &pid, &lower]).status();
    if !lowered.is_ok_and(|status| status.success()) {
        return Err(format!("prlimit cannot lower the limit to {full}"));
    }
    let mut ledger = send(&world, 200, seed);
    collector.drained(SOON);
    extend(&mut ledger, &world, 200, seed);
    collector.drained(SOON);
    rolls_again(&world);
    let connections = held.len();
    drop(held);
    stored(&world, collector, &ledger);
    Ok(format!(
        "{full} of {full} descriptors in use, {connections} connections held: {} hooks stored meanwhile, the journal rolled, 0 lost, \
         0 twice",
        ledger.accepted()
    ))
}

/// The disk has no room for one more file when the journal must be rolled.
pub(super) fn no_room_to_roll(seed: u64) -> Result<Report, String> {
    let mut world = World::new();
    world.write_config(CONFIG);
    let disk = Mounted::tmpfs_with(&world.home().join(".local/state"), "size=200m,nr_inodes=60")?;
    world.copy_shim();
    let collector = Collector::start(&world);
    let mut ledger = send(&world, 20, seed);
    collector.drained(SOON);
    let fillers: Vec<_> = (0..100).map(|one| disk.path().join(format!("filler-{one}"))).collect();
    let full = fillers.iter().any(|path| fs::write(path, "").is_err());
    assert!(full, "there is room for more files");
    extend(&mut ledger, &world, 200, seed);
    let told = problem(&world);
    fillers.iter().for_each(|path| drop(fs::remove_file(path)));
    rolls_again(&world);
    stored(&world, collector, &ledger);
    Ok(format!(
        "no room for one more file when the journal is rolled: {} hooks, 0 lost, 0 twice; shown as: {told}",
        ledger.accepted()
    ))
}

/// The problems that `status` reports.
#[track_caller]
fn problem(world: &World) -> String {
    eventually("the failing roll is shown", SOON, || {
        let status = world.json(&["status", "--json"]);
        let what = status["journal"]["problems"][0]["what"].as_str().map(str::to_owned);
        what.filter(|what| what.contains("roll the journal"))
            .ok_or_else(|| format!("{status:#}\n{}", collector::log(world)))
    })
}

/// Checks that there is a segment and that no problem is reported.
#[track_caller]
fn rolls_again(world: &World) {
    eventually("the journal is rolled", SOON, || {
        let status = world.json(&["status", "--json"]);
        let none = status["journal"]["problems"].as_array().is_some_and(Vec::is_empty);
        let journal = fs::metadata(world.state().join("journal")).map_or(0, |found| found.len());
        if none && journal < 1 << 20 { Ok(()) } else { Err(format!("{status:#}")) }
    });
}
