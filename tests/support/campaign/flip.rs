//! Flips every byte of a segment with three records, and cuts the segment after every byte. Each variant is read by the
//! real collector.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use super::{Report, bar, frames};
use crate::collector::Collector;
use crate::ledger;
use crate::verify;
use crate::wait::eventually;
use crate::world::World;

/// Number of segments for one collector.
const SEGMENTS: usize = 200;

/// What is done to a segment.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip(usize),
    Cut(usize),
}

/// Flips and cuts at every byte, or at every `step`th.
#[track_caller]
pub fn run(step: usize) -> Report {
    let (length, _) = segment(0);
    let whole = length.len();
    let flips = (0..whole).step_by(step).map(Damage::Flip);
    let all: Vec<Damage> = flips.chain((0..whole).step_by(step).map(Damage::Cut)).collect();
    let bar = bar("flip and cut", all.len() as u64);
    let mut delivered = 0;
    for (batch, damages) in all.chunks(SEGMENTS).enumerate() {
        delivered += one(batch as u64 * SEGMENTS as u64 * 3, damages);
        bar.inc(damages.len() as u64);
    }
    bar.finish_and_clear();
    format!(
        "flip: {} segments of 3 records, each with one byte flipped or cut after one: {delivered} sound records, 0 of them \
         lost, 0 changed; torn ones counted",
        all.len()
    )
}

/// Three records, and where each ends.
fn segment(first: u64) -> (Vec<u8>, [usize; 3]) {
    let mut bytes = Vec::new();
    let ends = [0, 1, 2].map(|one| {
        let number = first + one;
        let body = format!(
            "{{\"conversation_id\":\"c{number:09}\",\"number\":{number:09},\"hook_event_name\":\"stop\",\"status\":\"completed\"}}"
        );
        let wall = 1_780_000_000_000_000_000 + number;
        bytes.extend(frames::record(number + 1, wall, "stop", body.as_bytes()));
        bytes.len()
    });
    (bytes, ends)
}

#[track_caller]
fn one(first: u64, damages: &[Damage]) -> usize {
    let world = World::new();
    world.shim();
    let mut expected = Vec::new();
    let mut torn = 0;
    for (index, damage) in (1_u64..).zip(damages) {
        let number = first + (index - 1) * 3;
        let (mut bytes, ends) = segment(number);
        let hit = |at: usize| ends.iter().filter(|end| **end <= at).count() as u64;
        match *damage {
            Damage::Flip(at) => {
                bytes[at] ^= 0xff;
                expected.extend((0..3).filter(|one| *one != hit(at)).map(|one| number + one));
                torn += 1;
            }
            Damage::Cut(at) => {
                bytes.truncate(at);
                expected.extend((0..hit(at)).map(|one| number + one));
                torn += u64::from(at > 0 && !ends.contains(&at));
            }
        }
        let path = world.state().join(format!("seg-{index}"));
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
    }
    let collector = Collector::start(&world);
    let counted = eventually("every segment is given up on", Duration::from_secs(90), || {
        let counters = world.json(&["status", "--json"])["counters"].clone();
        let counted = counters["torn_frame"].as_u64().unwrap_or(0);
        if counted >= torn {
            Ok(counted)
        } else {
            Err(format!("{torn} torn expected, {counters:#}"))
        }
    });
    assert_eq!(counted, torn, "torn stretches");
    drop(collector);
    let mut found = Vec::new();
    let mut odd = Vec::new();
    verify::each_raw_body(&world, |body| {
        let number = ledger::number(body);
        match number {
            Some(number) if segment(number).0.windows(body.len()).any(|part| part == body) => {
                found.push(number);
            }
            _ => odd.push(String::from_utf8_lossy(body).into_owned()),
        }
    });
    found.sort_unstable();
    assert_eq!(odd, [""; 0], "changed bodies were stored");
    assert_eq!(found, expected);
    expected.len()
}
