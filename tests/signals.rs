//! Tests that a collector that is told to end at any moment leaves no files behind.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};

use e2e_support::collector::{self, Collector};
use e2e_support::wait::{SOON, eventually, pause};
use e2e_support::world::World;

/// Starts a collector on a socket of the world, and a port.
fn start(world: &World, socket: &Path) -> Child {
    collector::spawn(world, "serve", &["--listen", &format!("unix:{}", socket.display())])
}

/// Tells the collector to end, and measures how long that takes. It must end by itself, with exit code 0.
#[track_caller]
fn end(world: &World, mut child: Child, signal: Signal) -> Duration {
    let asked = Instant::now();
    kill_process(Pid::from_child(&child), signal).unwrap();
    let status = eventually("it ends", SOON, || {
        child.try_wait().unwrap().ok_or_else(|| collector::log(world))
    });
    assert!(status.success(), "{status}: {}", collector::log(world));
    asked.elapsed()
}

#[track_caller]
fn nothing_is_left(world: &World, socket: &Path, when: &str) {
    let left: Vec<_> = [world.state().join("serve.json"), socket.to_owned()]
        .into_iter()
        .filter(|path| path.symlink_metadata().is_ok())
        .collect();
    assert!(left.is_empty(), "{when}: {left:?}");
    // No staged socket either.
    let beside = fs::read_dir(socket.parent().unwrap()).unwrap().flatten();
    let staged = beside.filter(|entry| entry.file_name().to_string_lossy().starts_with(".hs-"));
    assert_eq!(staged.count(), 0, "{when}");
}

/// Earlier, the database was opened between the first socket and the signal handlers.
#[test]
fn a_signal_at_any_moment_of_the_start_leaves_neither_socket_nor_serve_json() {
    let world = World::new();
    drop(Collector::start(&world));
    let socket = world.scratch("run").join("door");
    for round in 0..24 {
        let child = start(&world, &socket);
        // The signal is sent as soon as the socket exists or, in every second round, as soon as `serve.json` exists.
        // Each pair of rounds waits 0.3 ms longer after that.
        let sign = if round % 2 == 0 { socket.clone() } else { world.state().join("serve.json") };
        let began = Instant::now();
        while sign.symlink_metadata().is_err() {
            assert!(began.elapsed() < SOON, "{}", collector::log(&world));
            std::hint::spin_loop();
        }
        pause(Duration::from_micros(300 * (round / 2)));
        let signal = if round % 4 < 2 { Signal::TERM } else { Signal::INT };
        end(&world, child, signal);
        nothing_is_left(&world, &socket, &format!("round {round}"));
    }
    drop(Collector::start(&world));
}

/// The collector waits for a lock for up to a minute. A person who stops it need not wait.
#[test]
fn a_signal_while_the_database_is_locked_ends_the_start_at_once() {
    let world = World::new();
    drop(Collector::start(&world));
    let socket = world.scratch("run").join("door");
    let db = Connection::open(world.state().join("hookspan.db")).unwrap();
    db.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let child = start(&world, &socket);
    eventually("it listens", SOON, || {
        if socket.exists() { Ok(()) } else { Err(collector::log(&world)) }
    });
    pause(Duration::from_millis(300));
    let took = end(&world, child, Signal::TERM);
    assert!(took < Duration::from_secs(5), "{took:?}");
    nothing_is_left(&world, &socket, "while the database was locked");
    drop(db);
    drop(Collector::start(&world));
}
