//! Makes up sessions and lives through each of them in every way a stream can arrive; the tests do so with the first few.
//!
//! ```sh
//! cargo run --release -p hookspan-core --example campaign -- 100000          # seeds 0 to 99,999
//! cargo run --release -p hookspan-core --example campaign -- 1 4711          # one seed again
//! ```

#![expect(clippy::unwrap_used, reason = "a broken session is a bug to be seen")]

#[path = "../tests/fold/campaign.rs"]
mod campaign;
#[expect(dead_code, reason = "support of the tests, of which this needs a part")]
#[path = "../tests/fold/support.rs"]
mod support;
#[expect(dead_code, reason = "the text form is for streams")]
#[path = "../tests/fold/truth.rs"]
mod truth;
#[path = "../tests/fold/world.rs"]
mod world;

use std::panic::catch_unwind;
use std::process::ExitCode;

#[expect(clippy::print_stdout, reason = "the result is for the terminal")]
#[expect(clippy::disallowed_methods, reason = "a command has arguments")]
fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse::<u64>().unwrap());
    let count = numbers.next().unwrap_or(1_000);
    let first = numbers.next().unwrap_or(0);
    let mut wrong = 0_u64;
    for seed in first..first + count {
        let what = match catch_unwind(|| campaign::live(seed)) {
            Ok(Ok(())) => continue,
            Ok(Err(what)) => what,
            Err(_) => "a panic, see above".to_owned(),
        };
        wrong += 1;
        if wrong <= 10 {
            println!("seed {seed}: {what}\n");
        }
    }
    println!("{count} sessions from seed {first}: {wrong} wrong");
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
