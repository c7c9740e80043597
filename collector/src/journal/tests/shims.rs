//! Runs the real program with the real follower: every accepted hook arrives, and every other hook is counted.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use super::*;
use crate::shim_binary;

/// The embedded program, installed once for all tests of this process.
static SHIM: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hookspan-shim");
    shim_binary::install_to(&path).unwrap();
    (folder, path)
});

fn shim(world: &World) -> Command {
    let mut command = Command::new(&SHIM.1);
    command.arg("--dir").arg(world.dir.root()).arg("stop").env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A body that is computed from its number.
fn body_of(number: u64) -> Vec<u8> {
    let sizes = [300, 4_000, 16_000, 21_000, 70_000, 300_000];
    let size = sizes[number as usize % sizes.len()];
    let mut body = format!("{{\"conversation_id\":\"{number}\",\"text\":\"").into_bytes();
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    while body.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        body.extend_from_slice(format!("{state:x}").as_bytes());
    }
    body.extend_from_slice(b"\"}");
    body
}

fn start(mut command: Command, body: &[u8]) -> Child {
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(body).unwrap();
    child
}

#[track_caller]
fn finish(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{}\n");
}

/// Runs shims `from..to`, `at_once` at a time.
fn run_many(world: &World, from: u64, to: u64, at_once: u64) {
    for chunk in (from..to).step_by(at_once as usize) {
        let numbers = chunk..(chunk + at_once).min(to);
        let children: Vec<Child> =
            numbers.map(|number| start(shim(world), &body_of(number))).collect();
        children.into_iter().for_each(finish);
    }
}

/// Checks that each body of `0..count` arrived once, byte for byte.
#[track_caller]
fn check_all(records: &[Record], count: u64) {
    let found: BTreeSet<&[u8]> = records.iter().map(|record| record.body.as_slice()).collect();
    let missing: Vec<u64> =
        (0..count).filter(|number| !found.contains(body_of(*number).as_slice())).collect();
    assert_eq!(missing, Vec::<u64>::new(), "lost");
    let ids: BTreeSet<_> = records.iter().map(|record| record.id).collect();
    assert_eq!(ids.len() as u64, count, "different records");
}

#[test]
fn two_hundred_at_once_lose_and_tear_nothing() {
    let world = World::new();
    let mut follower = world.follow(&Position::default());
    let (records, _) = std::thread::scope(|scope| {
        scope.spawn(|| run_many(&world, 0, 200, 200));
        poll_until(&mut follower, |records, _| records.len() == 200)
    });
    check_all(&records, 200);
    let counters = follower.counters();
    assert_eq!((counters.torn, counters.truncated, counters.duplicate), (0, 0, 0));
}

#[test]
fn a_follower_that_dies_again_and_again_under_rotation_loses_nothing() {
    let mut world = World::new();
    world.limits.segment_bytes = 100_000;
    let mut records: Vec<Record> = Vec::new();
    let mut stored = Position::default();
    let mut deaths = 0;
    std::thread::scope(|scope| {
        let writers = scope.spawn(|| run_many(&world, 0, 300, 50));
        let mut done = false;
        while !done {
            done = writers.is_finished();
            // The follower is dropped without warning. Records without a stored position are read again.
            let mut follower = world.follow(&stored);
            deaths += 1;
            for _ in 0..15 {
                let batch = follower.poll(20);
                records.extend(batch.records);
                if let Some(position) = batch.position {
                    follower.may_forget(&position);
                    stored = position.to_string().parse().unwrap();
                }
                follower.wait(Duration::from_millis(10));
            }
        }
    });
    let mut follower = world.follow(&stored);
    let known = records.clone();
    let ids = |records: &[Record]| records.iter().map(|r| r.id).collect::<BTreeSet<_>>();
    let (rest, position) =
        poll_until(&mut follower, |rest, _| ids(&[&known, rest].concat()).len() == 300);
    // If nothing was read, there is no new position, and everything up to the last one is stored.
    let mut position = position.or(Some(stored));
    records.extend(rest);
    check_all(&records, 300);
    assert!(deaths > 2, "{deaths}");
    // Segments are deleted along the way. At the latest, they are gone once everything is stored.
    let start = clock::instant();
    while world.dir.segment(1).exists() {
        assert!(start.elapsed() < Duration::from_secs(10), "a stored segment stays");
        if let Some(position) = position.take() {
            follower.may_forget(&position);
        }
        position = follower.poll(100).position;
        follower.wait(Duration::from_millis(5));
    }
}

#[test]
fn a_writer_stopped_in_its_body_is_waited_for_across_rotation() {
    let mut world = World::new();
    world.limits.segment_bytes = 1;
    let mut follower = world.follow(&Position::default());
    let body = body_of(5);
    let mut child = shim(&world).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The body is longer than a frame. The shim has opened the journal, written the first part, and waits for the rest.
    stdin.write_all(&body[..50_000]).unwrap();
    poll_until(&mut follower, |_, _| world.dir.segment(1).exists());
    let signal = |name: &str| {
        let pid = child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    };
    signal("-STOP");
    for number in 0..3 {
        finish(start(shim(&world), &body_of(number)));
        let (_, position) = poll_until(&mut follower, |records, _| records.len() == 1);
        follower.may_forget(&position.unwrap_or_default());
        follower.wait(Duration::from_millis(150));
        let batch = follower.poll(10);
        assert_eq!(batch.records, []);
        follower.may_forget(&batch.position.unwrap_or_default());
    }
    assert!(world.dir.segment(1).exists(), "its writer lives");
    signal("-CONT");
    stdin.write_all(&body[50_000..]).unwrap();
    drop(stdin);
    finish(child);
    let (records, _) = poll_until(&mut follower, |records, _| !records.is_empty());
    assert!(records[0].body == body);
    assert_eq!(records[0].flags, 0);
}

#[test]
fn shims_killed_in_their_bodies_cost_nobody_else() {
    let world = World::new();
    let mut follower = world.follow(&Position::default());
    let mut killed = Vec::new();
    for round in 0..10 {
        let mut victim = shim(&world).spawn().unwrap();
        victim.stdin.as_mut().unwrap().write_all(&body_of(5)[..60_000]).unwrap();
        finish(start(shim(&world), &body_of(round)));
        victim.kill().unwrap();
        killed.push(victim);
    }
    let (records, _) = poll_until(&mut follower, |records, _| records.len() == 10);
    check_all(&records, 10);
    for mut victim in killed {
        victim.wait().unwrap();
    }
}

#[test]
fn at_the_bound_two_hundred_shims_stop_the_journal_once_and_count_every_loss() {
    let world = World::new();
    drop(world.follow(&Position::default()));
    let journal = fs::OpenOptions::new().write(true).open(world.dir.journal()).unwrap();
    let bound = hookspan_shim::program::JOURNAL_MAX_BYTES;
    journal.set_len(bound + 1).unwrap();
    let children: Vec<Child> = (0..200).map(|_| start(shim(&world), &body_of(0))).collect();
    children.into_iter().for_each(finish);
    assert!(world.dir.journal().is_symlink(), "stopped");
    let kept = journal.metadata().unwrap().len() - bound - 1;
    let lost = losses::read(&world.dir).unwrap();
    assert_eq!(lost.by_reason.keys().collect::<Vec<_>>(), ["journal_full"]);
    let frame = fs::metadata(world.dir.root().join("journal.stop")).unwrap().len() - bound - 1;
    assert_eq!(kept, frame, "the journal went on at its other name");
    let size = kept / (200 - lost.total);
    assert_eq!(kept % size, 0);
    assert!((300..700).contains(&size), "kept and lost make two hundred: {size} bytes a record");
}

#[test]
fn what_the_state_directory_does_not_take_is_spilled_and_taken_in() {
    let world = World::new();
    let runtime = tempfile::tempdir().unwrap();
    let places = crate::dirs::Places {
        xdg_runtime_dir: Some(runtime.path().to_path_buf()),
        ..crate::dirs::Places::default()
    };
    let dir = StateDir::resolve(Some(world.dir.root()), &places).unwrap();
    let mut follower = Follower::open(&dir, &Position::default(), world.limits).unwrap();
    let limited = |limit: u64, number: u64| {
        let mut command = Command::new("prlimit");
        command.arg(format!("--fsize={limit}")).arg(&SHIM.1).arg("--dir").arg(dir.root());
        command.arg("stop").env_clear().env("XDG_RUNTIME_DIR", runtime.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        start(command, &body_of(number))
    };
    finish(limited(u64::from(u32::MAX), 0));
    let (records, _) = poll_until(&mut follower, |records, _| records.len() == 1);
    assert!(records[0].body == body_of(0));
    // The size limit cuts off the frame in the journal. The spill file starts empty and has room for the frame.
    let len = fs::metadata(dir.journal()).unwrap().len();
    finish(limited(len + 500, 6));
    let (records, position) = poll_until(&mut follower, |records, _| !records.is_empty());
    assert!(records[0].body == body_of(6));
    follower.may_forget(&position.unwrap_or_default());
    // A body of several frames reaches the limit in its third frame. The first two are in the journal.
    let len = fs::metadata(dir.journal()).unwrap().len();
    finish(limited(len + 50_000, 4));
    let (records, _) = poll_until(&mut follower, |records, _| !records.is_empty());
    assert!(records[0].body == body_of(4));
    assert_eq!(losses::read(&dir).unwrap().total, 0);
    // Neither file accepts the hook. It is counted, with the number of bytes that were read.
    finish(limited(100, 5));
    assert_eq!(losses::read(&dir).unwrap().by_reason["file_size_limit"], 1);
    let spilled = || fs::read_dir(runtime.path().join("hookspan")).unwrap().count();
    let start = clock::instant();
    while spilled() > 0 && clock::instant().duration_since(start) < Duration::from_secs(10) {
        let batch = follower.poll(10);
        follower.may_forget(&batch.position.unwrap_or_default());
        follower.wait(Duration::from_millis(20));
    }
    assert_eq!(spilled(), 0, "the spill file goes when it is stored");
}

#[test]
fn a_reader_on_the_other_side_of_a_fifo_or_a_link_gets_nothing() {
    let world = World::new();
    for place in ["fifo", "link"] {
        let journal = world.dir.journal();
        let elsewhere = world.dir.root().join("elsewhere");
        fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&elsewhere).unwrap();
        if place == "fifo" {
            assert!(Command::new("mkfifo").arg(&journal).status().unwrap().success());
        } else {
            std::os::unix::fs::symlink(&elsewhere, &journal).unwrap();
        }
        finish(start(shim(&world), &body_of(0)));
        assert_eq!(fs::metadata(&elsewhere).unwrap().len(), 0);
        fs::remove_file(&journal).unwrap();
    }
    assert_eq!(losses::read(&world.dir).unwrap().total, 2);
}
