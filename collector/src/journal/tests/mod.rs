//! Tests the journal as a whole, with writers and one follower. [`damage`] flips, cuts and mixes bytes. [`segments`]
//! rolls, stops, spills and deletes. [`faults`] makes every file operation fail. [`shims`] runs the real program.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use hookspan_shim::frame::NO_EOF;

use super::*;
use crate::clock;
use crate::dirs::StateDir;

mod damage;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod segments;
#[cfg(target_os = "linux")]
mod shims;

/// A state directory, and a follower with limits that are small enough for tests.
struct World {
    _temp: tempfile::TempDir,
    dir: StateDir,
    limits: Limits,
}

impl World {
    fn new() -> Self {
        let limits = Limits { name_age: Duration::ZERO, ..Limits::default() };
        Self::below(tempfile::tempdir().unwrap(), limits)
    }

    fn below(temp: tempfile::TempDir, limits: Limits) -> Self {
        let dir = StateDir::at(temp.path().join("state"));
        dir.prepare().unwrap();
        Self { _temp: temp, dir, limits }
    }

    fn follow(&self, position: &Position) -> Follower {
        Follower::open(&self.dir, position, self.limits).unwrap()
    }

    fn write(&self, id: u64, body: &[u8]) {
        write_to(&self.dir.journal(), id, body);
    }
}

fn write_to(path: &Path, id: u64, body: &[u8]) {
    let mut file = write::open(path).unwrap();
    let new = write::NewRecord { wall_ns: 1_000 + id, id, argument: "stop", body, ..new() };
    write::append(&mut file, &new).unwrap();
}

fn new<'a>() -> write::NewRecord<'a> {
    write::NewRecord::default()
}

/// Polls until `done`, for at most ten seconds.
#[track_caller]
fn poll_until(
    follower: &mut Follower,
    mut done: impl FnMut(&[Record], Option<&Position>) -> bool,
) -> (Vec<Record>, Option<Position>) {
    let (mut records, mut position) = (Vec::new(), None);
    let start = clock::instant();
    while clock::instant().duration_since(start) < Duration::from_secs(10) {
        let batch = follower.poll(100);
        records.extend(batch.records);
        position = batch.position.or(position);
        if done(&records, position.as_ref()) {
            return (records, position);
        }
        follower.wait(Duration::from_millis(5));
    }
    panic!("not done after ten seconds: {} records, {position:?}", records.len());
}

fn bodies(records: &[Record]) -> Vec<String> {
    records.iter().map(|record| String::from_utf8_lossy(&record.body).into_owned()).collect()
}

#[test]
fn records_come_out_as_they_went_in() {
    let world = World::new();
    let mut follower = world.follow(&Position::default());
    let mut file = write::open(&world.dir.journal()).unwrap();
    let context = HookContext { cwd: Some("/p".into()), ..HookContext::default() };
    let sent = write::NewRecord {
        wall_ns: 5,
        boottime_ns: 6,
        id: 7,
        argument: "stop",
        context: context.clone(),
        flags: NO_EOF,
        body: b"{}",
    };
    let id = write::append(&mut file, &sent).unwrap();
    let (records, _) = poll_until(&mut follower, |records, _| !records.is_empty());
    let expected = Record {
        id,
        wall_ns: 5,
        boottime_ns: Some(6),
        pid: None,
        flags: NO_EOF,
        argument: Some("stop".into()),
        context,
        body: b"{}".to_vec(),
    };
    assert_eq!(records, [expected]);
    assert_eq!(id, record_id(5, 7));
}

#[test]
fn a_stored_position_goes_on_behind_what_was_read() {
    let world = World::new();
    let mut follower = world.follow(&Position::default());
    world.write(1, b"one");
    let len = fs::metadata(world.dir.journal()).unwrap().len();
    let end = format!(":{len}");
    let (_, position) = poll_until(&mut follower, |_, position| {
        position.is_some_and(|position| position.to_string().ends_with(&end))
    });
    drop(follower);
    world.write(2, b"two");
    let position = position.unwrap().to_string().parse().unwrap();
    let mut follower = world.follow(&position);
    let (records, _) = poll_until(&mut follower, |records, _| !records.is_empty());
    assert_eq!(bodies(&records), ["two"]);
}

#[test]
fn bodies_of_every_size_survive_in_frames() {
    let world = World::new();
    let mut follower = world.follow(&Position::default());
    let sizes = [0, 1, 262_000, 262_144, 262_145, 1_000_000, 16 << 20];
    let mut expected = BTreeMap::new();
    for (id, size) in (0..).zip(sizes) {
        let body: Vec<u8> = (0..size).map(|i| (i * 31 + (i >> 9)) as u8).collect();
        world.write(id, &body);
        expected.insert(1_000 + id, body);
    }
    let (records, _) = poll_until(&mut follower, |records, _| records.len() == sizes.len());
    let found: BTreeMap<_, _> = records.into_iter().map(|r| (r.wall_ns, r.body)).collect();
    assert!(found == expected);
    assert_eq!(follower.counters().torn, 0);
}
