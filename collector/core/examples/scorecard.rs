//! Writes `SCORECARD.md`: every stream of the repository beside what really happened in it.
//!
//! ```sh
//! cargo run -p hookspan-core --example scorecard                          # all streams of the repository
//! cargo run -p hookspan-core --example scorecard -- hooks.jsonl a.truth   # the row of a recording of your own
//! cargo run -p hookspan-core --example scorecard -- folder                # the rows and trees of all recordings in a folder
//! ```
//!
//! Rows of recordings are printed, and not written: the file is about what everybody can run.

#![expect(clippy::unwrap_used, reason = "a broken stream is a bug to be seen")]
#![expect(clippy::print_stdout, reason = "the result is for the terminal")]

#[path = "../tests/fold/scorecard.rs"]
mod scorecard;
#[expect(dead_code, reason = "support of the tests, of which this needs a part")]
#[path = "../tests/fold/support.rs"]
mod support;
#[path = "../tests/fold/truth.rs"]
mod truth;

use std::path::Path;

#[expect(clippy::disallowed_methods, reason = "a command has arguments")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(stream), Some(truth)) => {
            print!("{}", scorecard::HEAD);
            print_recording("recording", Path::new(&stream), Path::new(&truth));
        }
        (Some(folder), None) => {
            print!("{}", scorecard::HEAD);
            for stream in scorecard::streams(Path::new(&folder)) {
                let name = stream.file_stem().unwrap().to_string_lossy();
                print_recording(&name, &stream, &stream.with_extension("truth"));
            }
        }
        _ => {
            let package = Path::new(env!("CARGO_MANIFEST_DIR"));
            std::fs::write(package.join("../../SCORECARD.md"), scorecard::document(package))
                .unwrap();
            println!("SCORECARD.md is written.");
        }
    }
}

/// Prints the row of a recording. If it is not right, also what is wrong, and the tree.
fn print_recording(name: &str, stream: &Path, truth: &Path) {
    let text = std::fs::read_to_string(stream).unwrap();
    let truth = std::fs::read_to_string(truth).unwrap_or_default();
    let (line, store) = scorecard::line(name, &text, &truth);
    print!("{}", scorecard::row(&line));
    if !line.score.is_right() {
        println!("{:#?}\n{}", line.score, support::render(&store));
    }
}
