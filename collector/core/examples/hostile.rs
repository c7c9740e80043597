//! Measures the cost of a hook in streams made to be expensive, at one length and at four times that length:
//!
//! ```sh
//! cargo run --release -p hookspan-core --example hostile -- 25000           # every shape, at 25,000 and 100,000 hooks
//! cargo run --release -p hookspan-core --example hostile -- 25000 unknown   # the shapes whose name has this word
//! ```

#[path = "../tests/fold/shapes.rs"]
mod shapes;

use hookspan_core::{Config, Sessions};
use shapes::{SHAPES, cost};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Resident memory of this process in bytes. Known on Linux only.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or_default() * 1_024
}

/// Folds one shape at one length and prints its line. Memory is measured in a process of its own, because the allocator
/// keeps memory of earlier shapes.
#[expect(clippy::print_stdout, reason = "the result is for the terminal")]
fn one(shape: &shapes::Shape, n: usize) {
    let hooks = (shape.hooks)(n);
    let before = resident();
    let (cost, sessions) = cost(&hooks, 50, Sessions::new(Config::default()));
    let held = resident().saturating_sub(before) as f64 / f64::from(1 << 20);
    println!(
        "{:<62}|{:>8} |{:>8.2} |{:>8.1} |{:>6.1} |{:>6.0} |{:>8} |{:>8}",
        shape.name,
        cost.hooks,
        cost.time.as_secs_f64(),
        cost.time.as_secs_f64() * 1e6 / cost.hooks.max(1) as f64,
        cost.work as f64 / cost.hooks.max(1) as f64,
        held,
        cost.held,
        cost.left_out
    );
    drop(sessions);
}

#[expect(clippy::print_stdout, reason = "the result is for the terminal")]
#[expect(clippy::disallowed_methods, reason = "a command has arguments, and starts itself")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let n = arguments.get(1).and_then(|n| n.parse::<usize>().ok()).unwrap_or(10_000);
    let words = arguments.get(2).cloned().unwrap_or_default();
    if arguments.get(3).is_some() {
        SHAPES.iter().filter(|shape| shape.name == words).for_each(|shape| one(shape, n));
        return;
    }
    println!(
        "{:<62}|{:>8} |{:>8} |{:>8} |{:>6} |{:>6} |{:>8} |{:>8}",
        "shape", "hooks", "s", "µs/hook", "work", "MiB", "held", "left out"
    );
    for shape in SHAPES.iter().filter(|shape| shape.name.contains(&words)) {
        for n in [n, 4 * n] {
            let own = std::process::Command::new(&arguments[0])
                .args([&n.to_string(), shape.name, "alone"])
                .status();
            if own.is_err() {
                one(shape, n);
            }
        }
    }
}
