//! Tests rotation, deletion, the bound, the spill file, and every combination of names that a crash can leave.

use std::fs::OpenOptions;
use std::io::Write;

use super::*;

fn names(world: &World) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(world.dir.root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("seg-") || name.starts_with("journal"))
        .collect();
    names.sort();
    names
}

const AT_REST: [&str; 2] = ["journal", "journal.stop"];

fn small(world: &mut World) {
    world.limits.segment_bytes = 1;
}

/// Polls until `done`. Tells the follower each time that everything handed out is stored.
#[track_caller]
fn poll_and_store_until(
    follower: &mut Follower,
    mut done: impl FnMut(&[Record]) -> bool,
) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let start = clock::instant();
    while clock::instant().duration_since(start) < Duration::from_secs(10) {
        let batch = follower.poll(100);
        records.extend(batch.records);
        if let Some(position) = batch.position {
            follower.may_forget(&position);
        }
        if done(&records) {
            return records;
        }
        follower.wait(Duration::from_millis(5));
    }
    panic!("not done after ten seconds: {:?} {:?}", bodies(&records), follower.usage());
}

#[test]
fn a_segment_goes_when_it_is_stored_and_nobody_writes_to_it() {
    let mut world = World::new();
    small(&mut world);
    let mut follower = world.follow(&Position::default());
    assert_eq!(names(&world), AT_REST);
    for id in 1..=3 {
        world.write(id, format!("record {id}").as_bytes());
        poll_and_store_until(&mut follower, |records| records.len() == 1);
    }
    poll_and_store_until(&mut follower, |_| names(&world) == AT_REST);
    assert_eq!(follower.counters().records, 3);
    assert_eq!(follower.usage().segments, 1);
}

#[test]
fn a_segment_stays_until_it_is_stored() {
    let mut world = World::new();
    small(&mut world);
    let mut follower = world.follow(&Position::default());
    world.write(1, b"one");
    poll_until(&mut follower, |_, _| names(&world).len() == 3);
    for _ in 0..20 {
        follower.poll(10);
        follower.wait(Duration::from_millis(20));
    }
    assert_eq!(names(&world), ["journal", "journal.stop", "seg-1"]);
}

#[test]
fn what_is_stored_is_worth_making_sure_of_once_a_whole_segment_is() {
    let mut world = World::new();
    let mut follower = world.follow(&Position::default());
    world.write(1, b"one");
    let (_, open) = poll_until(&mut follower, |_, position| position.is_some());
    assert!(!follower.would_forget(&open.unwrap()), "the journal itself stays");
    drop(follower);

    small(&mut world);
    let mut follower = world.follow(&Position::default());
    let start = clock::instant();
    let mut last = Position::default();
    while !follower.would_forget(&last) {
        assert!(clock::instant().duration_since(start) < Duration::from_secs(10));
        last = follower.poll(10).position.unwrap_or(last);
        follower.wait(Duration::from_millis(5));
    }
    assert_eq!(names(&world), ["journal", "journal.stop", "seg-1"]);
    follower.may_forget(&last);
    assert!(!follower.would_forget(&last), "once is enough");
}

#[test]
fn a_segment_with_a_writer_stays_and_what_comes_late_is_read() {
    let mut world = World::new();
    small(&mut world);
    let mut follower = world.follow(&Position::default());
    let late = write::open(&world.dir.journal()).unwrap();
    world.write(1, b"early");
    poll_and_store_until(&mut follower, |records| records.len() == 1);
    poll_and_store_until(&mut follower, |_| names(&world).len() == 3);
    // Many rounds of housekeeping, none of which may delete the segment.
    for _ in 0..10 {
        follower.wait(Duration::from_millis(50));
        let batch = follower.poll(10);
        follower.may_forget(&batch.position.unwrap_or_default());
    }
    assert_eq!(names(&world), ["journal", "journal.stop", "seg-1"]);
    let record = write::NewRecord { wall_ns: 9, id: 9, body: b"late", ..new() };
    write::append(&mut late.try_clone().unwrap(), &record).unwrap();
    drop(late);
    let records = poll_and_store_until(&mut follower, |records| !records.is_empty());
    assert_eq!(bodies(&records), ["late"]);
    poll_and_store_until(&mut follower, |_| names(&world) == AT_REST);
}

#[test]
fn a_writer_that_died_in_its_record_leaves_a_truncated_one() {
    let mut world = World::new();
    small(&mut world);
    let mut follower = world.follow(&Position::default());
    let body = vec![b'x'; 300_000];
    let temp = tempfile::NamedTempFile::new().unwrap();
    write_to(temp.path(), 1, &body);
    let whole = fs::read(temp.path()).unwrap();
    let mut journal = write::open(&world.dir.journal()).unwrap();
    journal.write_all(&whole[..262_144 + 40]).unwrap();
    drop(journal);
    let records = poll_and_store_until(&mut follower, |records| !records.is_empty());
    assert_eq!(records[0].flags, FLAG_TRUNCATED);
    assert!(records[0].body.len() > 200_000 && body.starts_with(&records[0].body));
    poll_and_store_until(&mut follower, |_| names(&world) == AT_REST);
}

#[test]
fn positions_cover_every_segment_and_survive_a_restart_in_any_of_them() {
    let mut world = World::new();
    small(&mut world);
    let mut stored = Position::default();
    let mut seen = Vec::new();
    for id in 1..=6 {
        world.write(id, format!("record {id}").as_bytes());
        // This follower is killed whenever something was stored, and is never told that it may forget.
        let mut follower = world.follow(&stored);
        let (records, position) = poll_until(&mut follower, |_, position| position.is_some());
        seen.extend(bodies(&records));
        stored = position.unwrap().to_string().parse().unwrap();
    }
    let (records, _) = {
        let mut follower = world.follow(&stored);
        poll_until(&mut follower, |_, position| position.is_none())
    };
    seen.extend(bodies(&records));
    seen.sort();
    seen.dedup();
    let expected: Vec<_> = (1..=6).map(|id| format!("record {id}")).collect();
    assert_eq!(seen, expected);
    assert!(names(&world).len() > 4, "{:?}", names(&world));
}

#[test]
fn an_open_record_holds_the_position_back() {
    let world = World::new();
    let mut follower = world.follow(&Position::default());
    world.write(1, b"one");
    let begun = fs::metadata(world.dir.journal()).unwrap().len();
    let body = vec![b'x'; 300_000];
    let temp = tempfile::NamedTempFile::new().unwrap();
    write_to(temp.path(), 2, &body);
    let whole = fs::read(temp.path()).unwrap();
    let first = 262_144 + 40;
    let mut journal = write::open(&world.dir.journal()).unwrap();
    journal.write_all(&whole[..first]).unwrap();
    world.write(3, b"three");
    let end = format!(":{begun}");
    let (records, position) = poll_until(&mut follower, |_, position| {
        position.is_some_and(|position| position.to_string().ends_with(&end))
    });
    assert_eq!(bodies(&records), ["one", "three"]);
    drop(follower);
    let mut follower = world.follow(&position.unwrap());
    journal.write_all(&whole[first..]).unwrap();
    let (records, _) = poll_until(&mut follower, |records, _| records.len() == 2);
    assert_eq!(records[0].body, b"three");
    assert!(records[1].body == body);
}

#[test]
fn a_position_never_names_bytes_that_were_not_synced() {
    let world = World::new();
    let mut follower = world.follow(&Position::default());
    follower.poll(10);
    // Between two syncs a record is handed out and the position does not cover it yet. A sync may happen at that very
    // moment, so the test tries several times.
    let early = (1..=20).any(|id| {
        world.write(id, b"one");
        let batch = follower.poll(10);
        bodies(&batch.records) == ["one"] && batch.position.is_none()
    });
    assert!(early, "no record came before its sync");
}

#[test]
fn every_state_a_crash_leaves_is_put_in_order() {
    let all = |world: &World| {
        let mut follower = world.follow(&Position::default());
        let (records, _) = poll_until(&mut follower, |records, _| records.len() == 1);
        assert_eq!(bodies(&records), ["kept"]);
        assert_eq!(follower.poll(10).records, []);
        world.write(2, b"new");
        let (records, _) = poll_until(&mut follower, |records, _| records.len() == 1);
        assert_eq!(bodies(&records), ["new"]);
        let left = names(world);
        assert!(!left.iter().any(|name| name == "journal.new" || name == "journal.link"));
        assert!(world.dir.root().join("journal.stop").is_symlink());
    };
    let started = || {
        let world = World::new();
        drop(world.follow(&Position::default()));
        world.write(1, b"kept");
        world
    };
    let (journal, stop, new) = ("journal", "journal.stop", "journal.new");
    let at = |world: &World, name: &str| world.dir.root().join(name);

    // Crashes during a rotation: before the link, between link and rename, after the rename.
    let world = started();
    fs::write(at(&world, new), b"").unwrap();
    all(&world);
    let world = started();
    fs::write(at(&world, new), b"").unwrap();
    fs::hard_link(at(&world, journal), at(&world, "seg-1")).unwrap();
    all(&world);
    assert_eq!(names(&world), AT_REST);
    let world = started();
    fs::rename(at(&world, journal), at(&world, "seg-1")).unwrap();
    fs::write(at(&world, journal), b"").unwrap();
    all(&world);

    // A shim stopped the journal. Then each step of opening it again is interrupted.
    let exchange = |world: &World| {
        fs::rename(at(world, stop), at(world, "link")).unwrap();
        fs::rename(at(world, journal), at(world, stop)).unwrap();
        fs::rename(at(world, "link"), at(world, journal)).unwrap();
    };
    let world = started();
    exchange(&world);
    all(&world);
    let world = started();
    exchange(&world);
    fs::hard_link(at(&world, stop), at(&world, "seg-1")).unwrap();
    all(&world);
    let world = started();
    exchange(&world);
    fs::rename(at(&world, stop), at(&world, "seg-1")).unwrap();
    std::os::unix::fs::symlink("journal-is-full", at(&world, stop)).unwrap();
    all(&world);

    // No journal at all, and no link.
    let world = started();
    fs::rename(at(&world, journal), at(&world, "seg-7")).unwrap();
    fs::remove_file(at(&world, stop)).unwrap();
    all(&world);
}

#[test]
fn at_the_bound_the_journal_is_stopped_and_goes_on_when_there_is_room() {
    let mut world = World::new();
    world.limits.bound_bytes = 10_000;
    world.limits.segment_bytes = 4_000;
    let mut follower = world.follow(&Position::default());
    let mut written = 0;
    let mut stored = None;
    while !world.dir.journal().is_symlink() {
        world.write(written, &[b'x'; 3_000]);
        written += 1;
        assert!(written < 50, "never stopped");
        follower.wait(Duration::from_millis(120));
        stored = follower.poll(10).position.or(stored);
    }
    assert!(follower.usage().stopped);
    let refused = OpenOptions::new().append(true).open(world.dir.journal());
    assert!(refused.is_err(), "the link leads nowhere");
    follower.may_forget(&stored.unwrap());
    poll_and_store_until(&mut follower, |_| names(&world) == AT_REST);
    assert!(!follower.usage().stopped && world.dir.journal().is_file());
    world.write(99, b"again");
    let records = poll_and_store_until(&mut follower, |records| records.len() == 1);
    assert_eq!(bodies(&records), ["again"]);
    assert_eq!(follower.counters().records, written + 1);
}

#[test]
fn a_journal_deleted_under_us_is_made_again() {
    let world = World::new();
    let mut follower = world.follow(&Position::default());
    world.write(1, b"one");
    poll_until(&mut follower, |records, _| records.len() == 1);
    fs::remove_file(world.dir.journal()).unwrap();
    poll_until(&mut follower, |_, _| world.dir.journal().is_file());
    world.write(2, b"two");
    let (records, _) = poll_until(&mut follower, |records, _| records.len() == 1);
    assert_eq!(bodies(&records), ["two"]);
}

#[test]
fn what_was_not_read_of_a_deleted_journal_is_read_and_one_that_comes_back_goes_on() {
    let world = World::new();
    let mut follower = world.follow(&Position::default());
    world.write(1, b"one");
    fs::remove_file(world.dir.journal()).unwrap();
    let (records, _) = poll_until(&mut follower, |records, _| !records.is_empty());
    assert_eq!(bodies(&records), ["one"]);
    poll_until(&mut follower, |_, _| world.dir.journal().is_file());
    world.write(2, b"two");
    let away = world.dir.root().join("away");
    fs::rename(world.dir.journal(), &away).unwrap();
    let (records, _) = poll_until(&mut follower, |records, _| !records.is_empty());
    assert_eq!(bodies(&records), ["two"]);
    poll_until(&mut follower, |_, _| world.dir.journal().is_file());
    fs::rename(&away, world.dir.journal()).unwrap();
    world.write(3, b"three");
    let (records, _) = poll_until(&mut follower, |records, _| !records.is_empty());
    assert_eq!(bodies(&records), ["three"], "nothing is read twice");
}

#[test]
fn a_foreign_thing_in_the_journals_place_is_refused_and_named() {
    let world = World::new();
    fs::create_dir(world.dir.journal()).unwrap();
    let error = Follower::open(&world.dir, &Position::default(), world.limits).unwrap_err();
    assert!(error.to_string().contains("journal"), "{error}");
}

#[test]
fn space_is_reserved_behind_the_end() {
    use std::os::unix::fs::MetadataExt as _;

    let world = World::new();
    let mut follower = world.follow(&Position::default());
    world.write(1, b"one");
    follower.poll(10);
    let found = fs::metadata(world.dir.journal()).unwrap();
    assert!(found.len() < 1_000 && found.blocks() * 512 >= 16 << 20, "{}", found.blocks());
}

#[test]
fn a_silent_follower_is_woken_by_a_record_by_its_waker_and_by_an_import() {
    let world = World::new();
    let mut follower = world.follow(&Position::default());
    let woken_within = |follower: &mut Follower| {
        let start = clock::instant();
        follower.wait(Duration::from_secs(20));
        clock::instant().duration_since(start)
    };
    // Polls until the follower asks the kernel for a notification.
    let start = clock::instant();
    while clock::instant().duration_since(start) < Duration::from_millis(1_300) {
        follower.poll(10);
        follower.wait(Duration::from_millis(50));
    }
    let waker = follower.waker();
    let ringer = std::thread::spawn(move || waker.wake());
    assert!(woken_within(&mut follower) < Duration::from_secs(5));
    ringer.join().unwrap();
    #[cfg(target_os = "linux")]
    {
        let import = world.dir.imports().join("a.jsonl");
        let (seen, told) = crossbeam_channel::bounded::<()>(0);
        let stager = std::thread::spawn(move || {
            // Repeated until it is noticed, because the follower may not be watching yet.
            while told
                .recv_timeout(Duration::from_millis(20))
                .is_err_and(|error| error.is_timeout())
            {
                fs::write(&import, "").unwrap();
                fs::remove_file(&import).unwrap();
            }
        });
        assert!(woken_within(&mut follower) < Duration::from_secs(5));
        drop(seen);
        stager.join().unwrap();
    }
    let path = world.dir.journal();
    let writer = std::thread::spawn(move || write_to(&path, 1, b"one"));
    let (records, _) = poll_until(&mut follower, |records, _| !records.is_empty());
    writer.join().unwrap();
    assert_eq!(bodies(&records), ["one"]);
}
