//! The truth that a crash test compares with: what was handed over, recorded outside the system.

use std::collections::{BTreeMap, BTreeSet};

use crate::player::Reply;
use crate::random::Random;

/// All shims that were started. The body of a hook can be computed from its number, so the ledger needs no copy of it.
#[derive(Clone, Debug)]
pub struct Ledger {
    make: fn(u64) -> Vec<u8>,
    accepted: Vec<u64>,
    killed: BTreeSet<u64>,
    refused: Vec<(u64, Reply)>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::of(body)
    }
}

/// The comparison of a ledger with what the system stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Accepted, and not stored.
    pub lost: Vec<u64>,
    /// Stored more than once.
    pub duplicate: Vec<u64>,
    /// Bodies that were stored and differ from what was handed over, or that were never handed over.
    pub different: Vec<String>,
}

impl Ledger {
    /// A ledger whose bodies `make` computes from their numbers.
    #[must_use]
    pub fn of(make: fn(u64) -> Vec<u8>) -> Self {
        Self { make, accepted: Vec::new(), killed: BTreeSet::new(), refused: Vec::new() }
    }

    /// Records a finished shim. It was accepted if it exited with 0 and the right answer.
    pub fn enter(&mut self, number: u64, reply: Reply) {
        let right = Reply { code: Some(0), stdout: "{}\n".into(), stderr: String::new() };
        if reply == right { self.accepted.push(number) } else { self.refused.push((number, reply)) }
    }

    /// Records a shim that the test killed before its body was complete. Its beginning may be stored, but not all of
    /// it.
    pub fn enter_killed(&mut self, number: u64) {
        self.killed.insert(number);
    }

    /// Adds the entries of another ledger.
    pub fn join(&mut self, other: &Self) {
        self.accepted.extend(&other.accepted);
        self.killed.extend(&other.killed);
        self.refused.extend(other.refused.iter().cloned());
    }

    /// How many were killed.
    #[must_use]
    pub fn killed(&self) -> usize {
        self.killed.len()
    }

    /// How many were accepted.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.accepted.len()
    }

    /// Shims that did not exit with 0 and the right answer. There may be some only if a test kills shims.
    #[must_use]
    pub fn refused(&self) -> &[(u64, Reply)] {
        &self.refused
    }

    /// Compares with the stored bodies, byte for byte.
    #[must_use]
    pub fn compare<'a>(&self, stored: impl IntoIterator<Item = &'a [u8]>) -> Verdict {
        let mut comparison = self.comparison();
        stored.into_iter().for_each(|bytes| comparison.see(bytes));
        comparison.verdict()
    }

    /// The same for more bodies than fit into memory: pass the stored bodies one after another.
    #[must_use]
    pub fn comparison(&self) -> Comparison<'_> {
        Comparison { ledger: self, seen: BTreeMap::new(), different: Vec::new() }
    }
}

/// A comparison under way.
#[derive(Debug)]
pub struct Comparison<'a> {
    ledger: &'a Ledger,
    seen: BTreeMap<u64, u32>,
    different: Vec<String>,
}

impl Comparison<'_> {
    /// Takes one stored body.
    pub fn see(&mut self, bytes: &[u8]) {
        let whole = number(bytes).map(|number| (number, (self.ledger.make)(number)));
        match whole {
            Some((number, body)) if bytes == body => *self.seen.entry(number).or_default() += 1,
            Some((number, body))
                if self.ledger.killed.contains(&number) && body.starts_with(bytes) => {}
            // A shim that was killed before it wrote its number leaves a beginning that cannot be assigned.
            None if !self.ledger.killed.is_empty() && is_beginning(bytes) => {}
            _ => {
                let shown = String::from_utf8_lossy(bytes).chars().take(200).collect();
                self.different.push(shown);
            }
        }
    }

    /// Which numbers were stored.
    #[must_use]
    pub fn stored(&self) -> BTreeSet<u64> {
        self.seen.keys().copied().collect()
    }

    /// The result of the comparison.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        let Self { ledger, seen, different } = self;
        let mut verdict = Verdict { different, ..Verdict::default() };
        verdict.lost =
            ledger.accepted.iter().copied().filter(|id| !seen.contains_key(id)).collect();
        verdict.duplicate =
            seen.iter().filter(|(_, times)| **times > 1).map(|(id, _)| *id).collect();
        verdict
    }
}

/// The body of hook `number`: a valid thought in one of eight conversations, of 200 bytes to 70 KiB, so that some take
/// one frame of the journal and some take several.
#[must_use]
pub fn body(number: u64) -> Vec<u8> {
    let mut random = Random::from_seed(number);
    let words = random.between(1, 20);
    let words = if random.between(0, 8) == 0 { words * 200 } else { words };
    let text: Vec<_> = (0..words).map(|_| format!("{:x}", random.bits())).collect();
    let conversation = number % 8;
    format!(
        "{{\"conversation_id\":\"00000000-0000-4000-8000-00000000000{conversation}\",\
         \"generation_id\":\"g{conversation}\",\"number\":{number},\"text\":\"{}\",\
         \"hook_event_name\":\"afterAgentThought\",\"cursor_version\":\"3.7.19\"}}",
        text.join(" ")
    )
    .into_bytes()
}

/// The body of hook `number` for campaigns: 300 bytes to 400 KB, mostly small. Forty hooks form a conversation that
/// ends with a `stop`, so that in a long campaign sessions end and are evicted.
#[must_use]
pub fn mixed(number: u64) -> Vec<u8> {
    let mut random = Random::from_seed(number ^ 0x00c0_ffee);
    let bytes = match random.between(0, 100) {
        0..80 => random.between(100, 4_000),
        80..95 => random.between(4_000, 40_000),
        95..99 => random.between(40_000, 120_000),
        _ => random.between(120_000, 400_000),
    };
    let mut text = String::with_capacity(bytes as usize);
    while (text.len() as u64) < bytes {
        text.push_str(&format!("{:x} ", random.bits()));
    }
    let conversation = number / MIXED_SESSION;
    let last = number % MIXED_SESSION == MIXED_SESSION - 1;
    let event = if last { "stop" } else { "afterAgentThought" };
    format!(
        "{{\"conversation_id\":\"00000000-0000-4000-8000-{conversation:012}\",\
         \"generation_id\":\"00000000-0000-4000-9000-{conversation:012}\",\"number\":{number},\"text\":\"{text}\",\
         \"status\":\"completed\",\"hook_event_name\":\"{event}\",\"cursor_version\":\"3.7.19\"}}"
    )
    .into_bytes()
}

/// Hooks of one conversation of [`mixed`].
pub const MIXED_SESSION: u64 = 40;

/// The number in the body of a hook.
#[must_use]
pub fn number(bytes: &[u8]) -> Option<u64> {
    let head = bytes.get(..bytes.len().min(400))?;
    let text = String::from_utf8_lossy(head);
    let rest = text.split_once("\"number\":")?.1;
    rest.split_once(',')?.0.parse().ok()
}

fn is_beginning(bytes: &[u8]) -> bool {
    bytes.len() < 200 && body(0).starts_with(bytes.get(..40.min(bytes.len())).unwrap_or_default())
}
