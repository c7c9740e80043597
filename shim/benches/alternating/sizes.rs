//! Measures bodies of several sizes, and checks the project's limits for them.

use std::fs;
use std::io::{Write, stdout};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::measure::{Channel, Folder, Program, Result, Times, body, measure, ours};
use crate::options::Options;

const FLOOR: usize = 0;
const DRAIN: usize = 1;
const SHIM: usize = 2;

pub(crate) fn run(options: &Options, folder: &Folder) -> Result<bool> {
    let mut programs = ours(folder)?;
    let others = options.with.iter().map(|(name, path)| Program::like_ours(name, path, folder));
    programs.extend(others);
    let mut out = stdout();
    writeln!(out, "{} rounds, alternated; medians; microseconds", options.rounds)?;
    writeln!(
        out,
        "| body | stdin | program | floor | drain | program | / floor | / drain | p99 / floor's p99 |\n\
         |---|---|---|---|---|---|---|---|---|"
    )?;
    let mut within = true;
    for size in &options.sizes {
        for channel in [Channel::Socket, Channel::Pipe] {
            let mut good = false;
            for _ in 0..if options.gate { 3 } else { 1 } {
                let journal = folder.state().join("journal");
                let empty = || reserve(&journal, (100 * programs.len() * (*size + 512)) as u64);
                let times = measure(options.rounds, &programs, &body(*size), channel, empty)?;
                for index in SHIM..programs.len() {
                    writeln!(out, "{}", row(*size, channel, &programs, &times, index))?;
                }
                good = is_within(*size, channel, &times);
                if good {
                    break;
                }
            }
            within &= good || !options.gate;
        }
    }
    Ok(within)
}

/// Creates an empty journal with space reserved after its end, as the collector leaves it.
fn reserve(journal: &Path, bytes: u64) -> Result<()> {
    fs::write(journal, b"")?;
    let mut fallocate = Command::new("fallocate");
    fallocate.args(["--keep-size", "--length", &bytes.to_string()]).arg(journal);
    // Some file systems cannot reserve space. There the benchmark runs without it.
    let _ = fallocate.stderr(Stdio::null()).status();
    Ok(())
}

fn row(size: usize, channel: Channel, programs: &[Program], times: &Times, of: usize) -> String {
    let name = programs.get(of).map_or("", |program| program.name.as_str());
    format!(
        "| {size} | {channel:?} | {name} | {:.0} | {:.0} | {:.0} | {:.3} | {:.3} | {:.2} |",
        times.median(FLOOR),
        times.median(DRAIN),
        times.median(of),
        times.ratio(of, FLOOR),
        times.ratio(of, DRAIN),
        times.tail_ratio(of, FLOOR),
    )
}

/// Whether the ratios are within the limits. The p99 has no limit, because it is meaningful only at real-time priority.
fn is_within(size: usize, channel: Channel, times: &Times) -> bool {
    let (floor_limit, drain_limit) = match (size, channel) {
        (..=16_384, _) => (1.2, 1.08),
        (..=131_072, _) => (1.5, 1.2),
        (_, Channel::Socket) => (6.0, 2.6),
        (_, Channel::Pipe) => (f64::INFINITY, 2.6),
    };
    times.ratio(SHIM, FLOOR) <= floor_limit && times.ratio(SHIM, DRAIN) <= drain_limit
}
