//! Tests hooks when the state directory is missing, closed, full or another user's. At the end of each case, a
//! collector must have stored each accepted hook exactly once, or counted it. If neither is possible, RELIABILITY.md
//! and the test say so.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use e2e_support::collector::{self, Collector};
use e2e_support::ledger::{self, Ledger, Verdict};
use e2e_support::machine::{self, Mounted};
use e2e_support::player::{self, Reply};
use e2e_support::wait::{SOON, eventually};
use e2e_support::world::World;
use e2e_support::{skip, verify};

const NOBODY: u32 = 65_534;
const STRANGER: u32 = 1;
const HOOKS: u64 = 6;

/// What happens to hooks without a run-time directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    Stored,
    Counted,
    /// Neither stored nor counted, because no place is left that belongs to the user.
    Gone,
}

/// A state of the state directory in which hooks arrive.
#[derive(Clone, Copy, Debug)]
struct Situation {
    name: &'static str,
    make: fn(&Place<'_>) -> Result<Option<Mounted>, String>,
    /// What a person repairs before starting a collector.
    repair: fn(&Place<'_>),
    without: Without,
    /// Whether the situation exists for root. File modes do not stop root.
    root: bool,
}

struct Place<'a> {
    world: &'a World,
    uid: u32,
    state: PathBuf,
}

const SITUATIONS: [Situation; 10] = [
    Situation {
        name: "no collector ever ran",
        make: |_| Ok(None),
        repair: |_| {},
        without: Without::Stored,
        root: true,
    },
    Situation {
        name: "state directory deleted",
        make: |place| {
            place.run_collector();
            fs::remove_dir_all(&place.state).unwrap();
            Ok(None)
        },
        repair: |_| {},
        without: Without::Stored,
        root: true,
    },
    Situation {
        name: "state directory moved away",
        make: |place| {
            place.run_collector();
            fs::rename(&place.state, place.world.home().join("moved")).unwrap();
            Ok(None)
        },
        repair: |_| {},
        without: Without::Stored,
        root: true,
    },
    Situation {
        name: "another user's home",
        make: |place| {
            give(&place.world.home(), STRANGER);
            Ok(None)
        },
        repair: |place| give(&place.world.home(), place.uid),
        without: Without::Gone,
        root: true,
    },
    Situation {
        name: "another user's state directory",
        make: |place| {
            place.make_state(0o700);
            give(&place.state, STRANGER);
            Ok(None)
        },
        repair: |place| fs::rename(&place.state, place.world.scratch("theirs")).unwrap(),
        without: Without::Gone,
        root: true,
    },
    Situation {
        name: "another user's state directory, open to all, with a journal",
        make: |place| {
            place.make_state(0o777);
            let journal = place.state.join("journal");
            fs::write(&journal, "").unwrap();
            fs::set_permissions(&journal, fs::Permissions::from_mode(0o666)).unwrap();
            give(&journal, STRANGER);
            give(&place.state, STRANGER);
            Ok(None)
        },
        repair: |place| {
            assert_eq!(fs::read(place.state.join("journal")).unwrap(), b"");
            fs::rename(&place.state, place.world.scratch("theirs")).unwrap();
        },
        without: Without::Gone,
        root: false,
    },
    Situation {
        name: "state directory closed after install",
        make: |place| {
            place.install();
            fs::set_permissions(&place.state, fs::Permissions::from_mode(0o500)).unwrap();
            Ok(None)
        },
        repair: |place| {
            fs::set_permissions(&place.state, fs::Permissions::from_mode(0o700)).unwrap();
        },
        without: Without::Counted,
        root: false,
    },
    Situation {
        name: "a file in place of the state directory",
        make: |place| {
            place.make_state(0o700);
            fs::remove_dir(&place.state).unwrap();
            fs::write(&place.state, "").unwrap();
            Ok(None)
        },
        repair: |place| fs::remove_file(&place.state).unwrap(),
        without: Without::Gone,
        root: true,
    },
    Situation {
        name: "disk full before install",
        make: |place| {
            let disk = place.mount()?;
            disk.fill("filler");
            Ok(Some(disk))
        },
        repair: |place| place.free(),
        without: Without::Gone,
        root: true,
    },
    Situation {
        name: "disk full after install, before the first start",
        make: |place| {
            let disk = place.mount()?;
            place.install();
            disk.fill("filler");
            Ok(Some(disk))
        },
        repair: |place| place.free(),
        without: Without::Counted,
        root: true,
    },
];

impl Place<'_> {
    fn run_collector(&self) {
        drop(Collector::start(self.world));
    }

    fn install(&self) {
        self.world.ok(&["install", "--scope", "user"]);
    }

    fn make_state(&self, mode: u32) {
        let mut made = self.world.home();
        for part in [".local", "state", "hookspan"] {
            made.push(part);
            fs::create_dir(&made).unwrap();
            give(&made, self.uid);
        }
        fs::set_permissions(&self.state, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A small disk around the state directory.
    fn mount(&self) -> Result<Mounted, String> {
        let above = self.world.home().join(".local");
        fs::create_dir(&above).unwrap();
        give(&above, self.uid);
        let disk = Mounted::tmpfs(&above.join("state"), 100)?;
        give(disk.path(), self.uid);
        Ok(disk)
    }

    fn free(&self) {
        fs::remove_file(self.world.home().join(".local/state/filler")).unwrap();
    }
}

fn give(path: &Path, owner: u32) {
    chown(path, Some(owner), Some(owner)).unwrap();
}

#[test]
fn with_a_run_time_directory_every_hook_of_root_is_stored() {
    every_situation(0, true);
}

#[test]
fn with_a_run_time_directory_every_hook_of_an_account_is_stored() {
    every_situation(NOBODY, true);
}

#[test]
fn without_a_run_time_directory_every_hook_of_root_is_accounted_for() {
    every_situation(0, false);
}

#[test]
fn without_a_run_time_directory_every_hook_of_an_account_is_accounted_for() {
    every_situation(NOBODY, false);
}

fn every_situation(uid: u32, run_time_dir: bool) {
    if let Err(why) = machine::root() {
        return skip::skip("hooks without a state directory", &why);
    }
    let own = PathBuf::from(format!("/run/user/{uid}"));
    if !run_time_dir && own.exists() {
        return skip::skip("hooks without a run-time directory", "this account has one");
    }
    let donor = World::new();
    for situation in SITUATIONS.iter().filter(|situation| uid != 0 || situation.root) {
        if let Err(why) = try_out(situation, uid, run_time_dir, &donor) {
            skip::skip(situation.name, &why);
        }
    }
}

fn try_out(
    situation: &Situation,
    uid: u32,
    run_time_dir: bool,
    donor: &World,
) -> Result<(), String> {
    let mut world = World::new().owned_by(uid);
    if !run_time_dir {
        world = world.with_env("XDG_RUNTIME_DIR", "");
    }
    world.borrow_shim(donor);
    let name = format!("{}, user {uid}, run-time directory: {run_time_dir}", situation.name);
    let place = Place { world: &world, uid, state: world.state() };
    let disk = (situation.make)(&place)?;
    let mut ledger = Ledger::default();
    for number in 0..HOOKS {
        let body = ledger::body(number);
        ledger.enter(number, player::hook(&world, "afterAgentThought", &body));
    }
    assert_eq!(ledger.refused(), [], "{name}");
    let (stored, counted) = match situation.without {
        _ if run_time_dir => (HOOKS, 0),
        Without::Stored => (HOOKS, 0),
        Without::Counted => (0, HOOKS),
        Without::Gone => (0, 0),
    };
    // Waiting hooks are reported without a collector, while the state directory is still unusable.
    let status = world.json(&["status", "--json"]);
    assert_eq!(status["backlog"], stored, "{name}: {status:#}");
    let spilled = if situation.without == Without::Stored { 0 } else { stored };
    assert_eq!(status["journal"]["spilled"], spilled, "{name}: {status:#}");
    (situation.repair)(&place);
    let collector = Collector::start(&world);
    // And recording goes on.
    ledger.enter(HOOKS, player::hook(&world, "afterAgentThought", &ledger::body(HOOKS)));
    collector.committed(usize::try_from(stored + 1).unwrap());
    let status = world.json(&["status", "--json"]);
    drop(collector);
    account(&name, &ledger, &verify::raw_bodies(&world), stored + 1);
    drop(disk);
    let lost: u64 = status["losses"].as_object().unwrap().values().filter_map(|n| n.as_u64()).sum();
    assert_eq!(lost, counted, "{name}: {status:#}");
    Ok(())
}

/// Checks that this number of the accepted hooks are stored, once each and byte for byte.
#[track_caller]
fn account(name: &str, ledger: &Ledger, bodies: &[Vec<u8>], stored: u64) {
    let mut comparison = ledger.comparison();
    bodies.iter().for_each(|body| comparison.see(body));
    let found = comparison.stored().len() as u64;
    let verdict = comparison.verdict();
    let lost: BTreeSet<u64> = verdict.lost.iter().copied().collect();
    assert_eq!((found, lost.len() as u64), (stored, HOOKS + 1 - stored), "{name}: {verdict:?}");
    assert_eq!(Verdict { lost: Vec::new(), ..verdict }, Verdict::default(), "{name}");
}

/// A collector whose directory was removed must not continue to store hooks in a deleted database.
#[test]
fn a_collector_whose_directory_is_deleted_or_moved_ends_and_the_next_one_has_the_hooks() {
    let donor = World::new();
    for moved in [false, true] {
        let mut world = World::new();
        world.borrow_shim(&donor);
        let mut collector = Collector::start(&world);
        let send = |ledger: &mut Ledger, number| {
            ledger.enter(number, Reply::from(start(&world, number).wait_with_output().unwrap()));
        };
        let (mut before, mut ledger) = (Ledger::default(), Ledger::default());
        send(&mut before, HOOKS);
        collector.committed(1);
        if moved {
            fs::rename(world.state(), world.scratch("moved")).unwrap();
        } else {
            // The collector may be creating a file in it at this moment.
            eventually("the directory is deleted", SOON, || {
                match fs::remove_dir_all(world.state()) {
                    Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {
                        Err(error.to_string())
                    }
                    done => {
                        done.unwrap();
                        Ok(())
                    }
                }
            });
        }
        (0..HOOKS).for_each(|number| send(&mut ledger, number));
        eventually("the collector ends", SOON, || {
            if collector.is_running() { Err("it runs".to_owned()) } else { Ok(()) }
        });
        assert!(collector::log(&world).contains("was deleted or replaced"), "says why");
        let next = Collector::start(&world);
        next.committed(usize::try_from(HOOKS).unwrap());
        drop(next);
        let bodies = verify::raw_bodies(&world);
        assert_eq!(ledger.compare(bodies.iter().map(Vec::as_slice)), Verdict::default());
    }
}

/// File systems that lack something a collector needs. Hooks are kept, the reason is shown, and a collector elsewhere
/// gets the hooks.
#[test]
fn a_file_system_that_lacks_something_is_named_and_costs_no_hook() {
    if let Err(why) = machine::tool("strace") {
        return skip::skip("file systems that lack something", &why);
    }
    // The errors that these file systems return: 9p and virtiofs, a FUSE program without `fsync`, and vfat.
    for (calls, error, files, said) in [
        ("mmap", "ENODEV", &["hookspan.db-shm"][..], "gives programs no shared memory"),
        ("fsync,fdatasync", "EINVAL", &["hookspan.db", "hookspan.db-wal"], "does not sync files"),
        (
            "?link,linkat",
            "EPERM",
            &["journal", "journal.new", "journal.link"],
            "may have no hard links",
        ),
    ] {
        let world = World::new();
        world.shim();
        let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:error={error}"));
        let log = world.scratch("strace.out");
        let mut wrapper: Vec<String> =
            ["strace", "-f", "-qq", "-o", log.to_str().unwrap(), "-e", &trace, "-e", &inject]
                .map(str::to_owned)
                .to_vec();
        for file in files {
            wrapper.extend(["-P".to_owned(), world.state().join(file).display().to_string()]);
        }
        let wrapper: Vec<&str> = wrapper.iter().map(String::as_str).collect();
        let mut child = collector::spawn_below(&world, &wrapper, "serve", &[]);
        let status = eventually("the start is given up", SOON, || {
            child.try_wait().unwrap().ok_or_else(|| collector::log(&world))
        });
        let log = collector::log(&world);
        assert!(!status.success() && log.contains(said) && log.contains("--dir DIR"), "{log}");
        let mut ledger = Ledger::default();
        for number in 0..HOOKS {
            let body = ledger::body(number);
            ledger.enter(number, player::hook(&world, "afterAgentThought", &body));
        }
        let collector = Collector::start(&world);
        collector.committed(usize::try_from(HOOKS).unwrap());
        drop(collector);
        let bodies = verify::raw_bodies(&world);
        assert_eq!(ledger.compare(bodies.iter().map(Vec::as_slice)), Verdict::default());
    }
}

/// Two hundred hooks and a collector create the same directory at the same moment.
#[test]
fn two_hundred_hooks_and_a_collector_begin_together() {
    let donor = World::new();
    let mut world = World::new();
    world.borrow_shim(&donor);
    let early: Vec<_> = (0..200).map(|number| (number, start(&world, number))).collect();
    let collector = Collector::start(&world);
    let late: Vec<_> = (200..300).map(|number| (number, start(&world, number))).collect();
    let mut ledger = Ledger::default();
    for (number, child) in early.into_iter().chain(late) {
        ledger.enter(number, Reply::from(child.wait_with_output().unwrap()));
    }
    assert_eq!((ledger.refused(), ledger.accepted()), (&[][..], 300));
    collector.committed(300);
    drop(collector);
    let bodies = verify::raw_bodies(&world);
    assert_eq!(ledger.compare(bodies.iter().map(Vec::as_slice)), Verdict::default());
    assert_eq!(world.json(&["status", "--json"])["losses"], serde_json::json!({}));
}

fn start(world: &World, number: u64) -> std::process::Child {
    let mut child = player::start(world, "afterAgentThought");
    player::feed(&mut child, &ledger::body(number));
    child
}
