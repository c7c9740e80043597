//! Measures how fast the dashboard answers over a large store. It fills the store in the same way as a collector, and
//! then sends every request that a page sends.
//!
//! ```text
//! cargo run --release -p hookspan --example api_latency -- fill DIR 64000 8000000
//! cargo run --release -p hookspan --example api_latency -- ask DIR
//! ```
//!
//! `fill DIR SESSIONS HOOKS` makes a store in `DIR`, and `index DIR` makes its search index. `ask DIR` prints the
//! median and the slowest time of each request, from the call to the finished JSON. Answers that depend on the current
//! time are computed as of the last hook.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measuring program stops at what is broken, and prints"
)]

mod ask;
mod fill;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookspan::parts::{Extras, Readers, Redaction, Search};

const USAGE: &str = "api_latency fill DIR SESSIONS HOOKS | index DIR | ask DIR";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["fill", dir, sessions, hooks] => {
            let dir = Path::new(dir);
            std::fs::create_dir_all(dir).unwrap();
            let now = hookspan::parts::now().0;
            let started = Instant::now();
            fill::fill(
                &dir.join("hookspan.db"),
                sessions.parse().unwrap(),
                hooks.parse().unwrap(),
                now,
            );
            std::fs::write(dir.join("now"), now.to_string()).unwrap();
            println!("filled in {:.0?}", started.elapsed());
        }
        ["index", dir] => {
            index(Path::new(dir));
        }
        ["ask", dir] => {
            let dir = Path::new(dir);
            let now = std::fs::read_to_string(dir.join("now")).unwrap().parse().unwrap();
            let search = dir.join("search.db");
            let extras =
                Extras { search_path: search.exists().then_some(search), ..Extras::default() };
            ask::ask(&dir.join("hookspan.db"), extras, now);
        }
        _ => println!("{USAGE}"),
    }
}

/// Waits until the index has all texts.
fn index(dir: &Path) {
    let started = Instant::now();
    let database = dir.join("hookspan.db");
    let (readers, own) = (Readers::new(&database), dir.join("search.db"));
    let search = Search::start(
        readers,
        &own,
        Redaction::default(),
        crossbeam_channel::never(),
        Arc::default(),
    )
    .unwrap();
    // First waits until the indexer reports a backlog, which shows that it has started. Then waits until the backlog is
    // empty.
    for behind in [true, false] {
        let deadline = Instant::now() + Duration::from_secs(if behind { 20 } else { 36_000 });
        while (search.handle().lag() > 0) != behind && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(500));
        }
    }
    println!("indexed in {:.0?}", started.elapsed());
    for file in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        println!("{:?} {} MiB", file.file_name(), file.metadata().unwrap().len() >> 20);
    }
}
