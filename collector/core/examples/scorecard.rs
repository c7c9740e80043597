//! Writes `SCORECARD.md`: every stream of the repository beside what really happened in it.
//!
//! ```sh
//! cargo run -p hookspan-core --example scorecard                          # all streams of the repository
//! cargo run -p hookspan-core --example scorecard -- hooks.jsonl a.truth   # and the row of a recording of your own
//! ```
//!
//! The row of a recording is printed, and not written: the file is about what everybody can run.

#![expect(clippy::unwrap_used, reason = "a broken stream is a bug to be seen")]

#[path = "../tests/fold/scorecard.rs"]
mod scorecard;
#[expect(dead_code, reason = "support of the tests, of which this needs a part")]
#[path = "../tests/fold/support.rs"]
mod support;
#[path = "../tests/fold/truth.rs"]
mod truth;

use std::path::Path;

#[expect(clippy::print_stdout, reason = "the result is for the terminal")]
#[expect(clippy::disallowed_methods, reason = "a command has arguments")]
fn main() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = package.join("../../SCORECARD.md");
    std::fs::write(&file, scorecard::document(package)).unwrap();
    println!("SCORECARD.md is written.");
    let mut arguments = std::env::args().skip(1);
    if let (Some(stream), Some(truth)) = (arguments.next(), arguments.next()) {
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        let (line, _) = scorecard::line("recording", &read(&stream), &read(&truth));
        print!("\n{}{}", scorecard::HEAD, scorecard::row(&line));
        if !line.score.is_right() {
            println!("{:#?}", line.score);
        }
    }
}
