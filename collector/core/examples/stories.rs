//! Generates sessions and plays each of them in every way in which a stream can arrive. The tests play the first few of
//! these sessions.
//!
//! ```sh
//! cargo run --release -p hookspan-core --example stories -- 100000          # seeds 0 to 99,999
//! cargo run --release -p hookspan-core --example stories -- 1 4711          # one seed again
//! ```

#![expect(clippy::unwrap_used, reason = "a broken session is a bug to be seen")]

#[path = "../tests/fold/accounting.rs"]
mod accounting;
#[path = "../tests/fold/campaign.rs"]
mod campaign;
#[expect(dead_code, reason = "support of the tests, of which this needs a part")]
#[path = "../tests/fold/support.rs"]
mod support;
#[expect(dead_code, reason = "the text form is for streams")]
#[path = "../tests/fold/truth.rs"]
mod truth;
#[expect(dead_code, reason = "which odd things a session holds is for a test")]
#[path = "../tests/fold/world.rs"]
mod world;

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Maximum number of wrong sessions that are printed.
const SHOWN: u64 = 10;
/// Number of sessions between two lines of progress.
const STEP: u64 = 5_000;

/// The first fault in the session of `seed`; `None` if it is right.
fn fault(seed: u64) -> Option<String> {
    match catch_unwind(|| campaign::live(seed)) {
        Ok(Ok(())) => None,
        Ok(Err(what)) => Some(what),
        Err(_) => Some("a panic, see above".to_owned()),
    }
}

#[expect(clippy::print_stdout, reason = "the result is for the terminal")]
#[expect(clippy::disallowed_methods, reason = "a command has arguments")]
fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse::<u64>().unwrap());
    let count = numbers.next().unwrap_or(1_000);
    let first = numbers.next().unwrap_or(0);
    let (next, wrong) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= count {
            break;
        }
        if index > 0 && index.is_multiple_of(STEP) {
            println!("{index} begun, {} wrong", wrong.load(Ordering::Relaxed));
        }
        let seed = first + index;
        if let Some(what) = fault(seed)
            && wrong.fetch_add(1, Ordering::Relaxed) < SHOWN
        {
            println!("seed {seed}: {what}\n");
        }
    };
    let workers = thread::available_parallelism().map_or(1, |count| count.get());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner();
    println!("{count} sessions from seed {first}: {wrong} wrong");
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
