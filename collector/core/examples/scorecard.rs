//! Writes `SCORECARD.md`: compares the result for every stream of the repository with what really happened.
//!
//! ```sh
//! cargo run -p hookspan-core --example scorecard                          # all streams of the repository
//! cargo run -p hookspan-core --example scorecard -- hooks.jsonl a.truth   # the row of a recording of your own
//! cargo run -p hookspan-core --example scorecard -- folder                # the rows and trees of all recordings in a
//! folder
//! ```
//!
//! The rows of your own recordings are only printed. The file contains only streams that everybody can run.

#![expect(clippy::unwrap_used, reason = "a broken stream is a bug to be seen")]
#![expect(clippy::print_stdout, reason = "the result is for the terminal")]

#[expect(dead_code, reason = "the rules themselves are for another example")]
#[path = "../tests/fold/rules.rs"]
mod rules;
#[path = "../tests/fold/scorecard.rs"]
mod scorecard;
#[expect(dead_code, reason = "support of the tests, of which this needs a part")]
#[path = "../tests/fold/support.rs"]
mod support;
#[path = "../tests/fold/truth.rs"]
mod truth;

use std::hash::{Hash as _, Hasher as _};
use std::panic::catch_unwind;
use std::path::Path;

#[expect(clippy::disallowed_methods, reason = "a command has arguments")]
fn main() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(stream), Some(truth)) => {
            print!("{}", scorecard::HEAD);
            print_recording("recording", Path::new(&stream), Path::new(&truth));
        }
        (Some(word), None) if word == "--faults" => print_faults(package),
        (Some(folder), None) => {
            print!("{}", scorecard::HEAD);
            for stream in scorecard::streams(Path::new(&folder)) {
                let name = stream.file_stem().unwrap().to_string_lossy();
                print_recording(&name, &stream, &stream.with_extension("truth"));
            }
        }
        _ => {
            std::fs::write(package.join("../../SCORECARD.md"), scorecard::document(package))
                .unwrap();
            println!("SCORECARD.md is written.");
        }
    }
}

/// Prints the number of faults of each stream and a hash of its tree, for the example `rules`. A stream that cannot be
/// compared counts as one fault.
#[expect(clippy::disallowed_types, reason = "the hashes are compared within one run")]
fn print_faults(package: &Path) {
    for folder in [package.join("../../tests/fixtures"), package.join("tests/streams")] {
        for stream in scorecard::streams(&folder) {
            let name = stream.file_stem().unwrap().to_string_lossy();
            let truth = std::fs::read_to_string(stream.with_extension("truth")).unwrap_or_default();
            let text = std::fs::read_to_string(&stream).unwrap();
            let line = catch_unwind(|| {
                let (line, store) = scorecard::line(&name, &text, &truth);
                let mut tree = std::hash::DefaultHasher::new();
                support::render(&store).hash(&mut tree);
                (faults(&line.score), tree.finish())
            });
            let (faults, tree) = line.unwrap_or((1, 0));
            println!("{name} {faults} {tree}");
        }
    }
}

/// Number of spans that are wrong. Wrong tokens count as one more.
fn faults(score: &truth::Score) -> usize {
    let spans = [&score.missing, &score.extra, &score.wrong_parents, &score.wrong_durations];
    let wrong: usize = spans.iter().map(|list| list.len()).sum();
    wrong + score.orphans + usize::from(score.token_error > 0)
}

/// Prints the row of a recording. If the row is not right, it also prints the differences and the tree.
fn print_recording(name: &str, stream: &Path, truth: &Path) {
    let text = std::fs::read_to_string(stream).unwrap();
    let truth = std::fs::read_to_string(truth).unwrap_or_default();
    let (line, store) = scorecard::line(name, &text, &truth);
    print!("{}", scorecard::row(&line));
    if !line.score.is_right() {
        println!("{:#?}\n{}", line.score, support::render(&store));
    }
}
