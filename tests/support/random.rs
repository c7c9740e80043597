//! Random numbers from a seed that a failing test prints.

use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64: enough to choose points in time and lengths.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Takes the seed from `HOOKSPAN_SEED`, else from the clock, and prints it, so that a failing run can be repeated.
    #[must_use]
    pub fn printed(what: &str) -> Self {
        let seed = match std::env::var("HOOKSPAN_SEED") {
            Ok(text) => text.parse().unwrap(),
            Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64,
        };
        eprintln!("{what}: HOOKSPAN_SEED={seed}");
        Self(seed)
    }

    /// A generator that starts from `seed`.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `from..to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.bits() % (to - from)
    }
}
