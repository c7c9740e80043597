//! The truth a crash test compares with: what was handed over, kept outside the system.

use std::collections::{BTreeMap, BTreeSet};

use crate::player::Reply;
use crate::random::Random;

/// Every shim that was started: its body can be made again from its number, so comparing needs no copy of it.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accepted: Vec<u64>,
    killed: BTreeSet<u64>,
    refused: Vec<(u64, Reply)>,
}

/// The comparison of a ledger with what the system stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Accepted, and not stored.
    pub lost: Vec<u64>,
    /// Stored more than once.
    pub duplicate: Vec<u64>,
    /// Stored, but not the bytes that were handed over, or never handed over at all.
    pub different: Vec<String>,
}

impl Ledger {
    /// Writes down one finished shim. Accepted means: exit 0 with the right answer.
    pub fn enter(&mut self, number: u64, reply: Reply) {
        let right = Reply { code: Some(0), stdout: "{}\n".into(), stderr: String::new() };
        if reply == right { self.accepted.push(number) } else { self.refused.push((number, reply)) }
    }

    /// Writes down a shim that the test itself killed before its body was complete: its beginning may be stored, its whole
    /// may not.
    pub fn enter_killed(&mut self, number: u64) {
        self.killed.insert(number);
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

    /// Shims that did not exit 0 with the right answer. Only a test that kills shims may see any.
    #[must_use]
    pub fn refused(&self) -> &[(u64, Reply)] {
        &self.refused
    }

    /// Compares with the stored bodies, byte for byte.
    #[must_use]
    pub fn compare<'a>(&self, stored: impl IntoIterator<Item = &'a [u8]>) -> Verdict {
        let mut verdict = Verdict::default();
        let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
        for bytes in stored {
            match number(bytes) {
                Some(number)
                    if self.killed.contains(&number) && body(number).starts_with(bytes) => {}
                Some(number) if bytes == body(number) => *seen.entry(number).or_default() += 1,
                _ => verdict
                    .different
                    .push(String::from_utf8_lossy(bytes).chars().take(200).collect()),
            }
        }
        verdict.lost = self.accepted.iter().copied().filter(|id| !seen.contains_key(id)).collect();
        verdict.duplicate =
            seen.iter().filter(|(_, times)| **times > 1).map(|(id, _)| *id).collect();
        verdict
    }
}

/// The body of hook `number`: a valid thought of one of eight conversations, 200 bytes to 70 KiB, so that some take one
/// frame of the journal and some take several.
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

fn number(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let rest = text.split_once("\"number\":")?.1;
    rest.split_once(',')?.0.parse().ok()
}
