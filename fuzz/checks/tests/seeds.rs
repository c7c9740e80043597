//! Runs the checks on inputs that the fuzzer found, and on the inputs that it starts from.

#![expect(clippy::unwrap_used, reason = "support code of tests fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

fn seeds(check: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../seeds").join(check);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_check_holds_on_every_kept_input() {
    for (name, check) in hookspan_checks::all() {
        let files = seeds(name);
        assert!(!files.is_empty(), "{name} has no inputs");
        for file in files {
            check(&fs::read(&file).unwrap());
        }
    }
}

/// Makes many small changes to the kept inputs: the changes that the fuzzer would try first. They are the same in every
/// run.
#[test]
fn every_check_holds_on_changed_inputs() {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below.max(1) as u64) as usize
    };
    for (name, check) in hookspan_checks::all() {
        for file in seeds(name) {
            let kept = fs::read(&file).unwrap();
            for _ in 0..4 {
                let mut changed = kept.clone();
                for _ in 0..=next(4) {
                    let at = next(changed.len());
                    match next(4) {
                        0 => changed.truncate(at),
                        1 => changed.insert(at.min(changed.len()), next(256) as u8),
                        2 if at < changed.len() => changed[at] ^= 1 << next(8),
                        _ => changed.extend_from_slice(&kept[..at.min(kept.len())]),
                    }
                }
                check(&changed);
            }
        }
    }
}
