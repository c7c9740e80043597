//! Turns whose facts were evicted (sealed turns). For each turn the numbers of its hooks in the raw log are kept, so
//! that the caller can reload them when a late hook arrives. Old turns share entries: a bundle stands for several
//! consecutive turns and takes some 30 bytes per turn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::correlate::fact::Fact;
use crate::model::fingerprint::{digest, mix};
use crate::model::time::Timestamp;

/// The low bits of a key are the number of the bundle. The high bits are a hash.
const BUNDLE_BITS: u32 = 20;
const BUNDLE_MASK: u64 = (1 << BUNDLE_BITS) - 1;
/// Number of bytes that weigh as much as one fact in memory.
const FACT_BYTES: usize = 1_024;

/// The source of a key.
#[derive(Clone, Copy)]
enum Of {
    Generation = 1,
    Call = 2,
    Child = 3,
}

/// The entry of a sealed turn or of a bundle.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// Times of its first fact, last fact and last stop.
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    pub(crate) closed: Option<Timestamp>,
    /// The hooks of each turn and its descendants, in the form that [`pack`] writes.
    hooks: Box<[u8]>,
    /// Children whose conversations were evicted with the turn. For a bundle, only the keys of the children are kept.
    pub(crate) children: Box<[Arc<str>]>,
    /// How many turns it stands for.
    turns: usize,
    bundle: Option<u32>,
}

impl Sealed {
    /// A turn with its own hooks and those of its descendants. `number` is set for a turn without a name.
    pub(crate) fn new(
        (first, last, closed): (Timestamp, Timestamp, Option<Timestamp>),
        number: Option<u64>,
        hooks: &BTreeSet<u64>,
        children: Vec<Arc<str>>,
    ) -> Self {
        let mut bytes = Vec::with_capacity(hooks.len() * 2 + 2);
        pack(number, hooks, &mut bytes);
        let (hooks, children) = (bytes.into_boxed_slice(), children.into_boxed_slice());
        Self { first, last, closed, hooks, children, turns: 1, bundle: None }
    }

    /// The turn's hooks in the raw log, turn by turn.
    pub(crate) fn hooks(&self) -> Vec<u64> {
        unpack(&self.hooks).into_iter().flat_map(|turn| turn.hooks).collect()
    }

    /// How many turns it stands for.
    pub(crate) const fn turns(&self) -> usize {
        self.turns
    }

    /// The entry's weight, as a number of facts in memory.
    pub(crate) const fn weight(&self) -> usize {
        match self.bundle {
            // A key of eight bytes, and one or two bytes per hook.
            Some(_) => 1 + (self.hooks.len() + self.turns * 8) / FACT_BYTES,
            None => 1,
        }
    }
}

/// The hooks of one turn, and its number if it has no name.
#[derive(Debug, PartialEq, Eq)]
struct Packed {
    number: Option<u64>,
    hooks: Vec<u64>,
}

/// Appends a turn to `bytes`: its number plus one (0 for a turn with a name), the number of hooks, and the gaps between
/// the hook numbers. Each value takes one byte per seven bits: one or two bytes per hook.
fn pack(number: Option<u64>, hooks: &BTreeSet<u64>, bytes: &mut Vec<u8>) {
    let mut put = |mut value: u64| {
        while value > 0x7f {
            bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    };
    put(number.map_or(0, |number| number.saturating_add(1)));
    put(hooks.len() as u64);
    let mut last = 0;
    for &hook in hooks {
        put(hook - last);
        last = hook;
    }
}

/// The inverse of [`pack`], of one turn after another.
fn unpack(bytes: &[u8]) -> Vec<Packed> {
    let mut bytes = bytes.iter();
    let mut take = || {
        let (mut value, mut shift) = (0_u64, 0);
        for &byte in bytes.by_ref() {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    };
    let mut turns = Vec::new();
    while let (Some(number), Some(count)) = (take(), take()) {
        let mut last = 0_u64;
        let hooks = (0..count).map_while(|_| {
            last = last.wrapping_add(take()?);
            Some(last)
        });
        turns.push(Packed { number: number.checked_sub(1), hooks: hooks.collect() });
    }
    turns
}

/// The name given to a turn without one.
pub(crate) fn numbered(number: u64) -> Arc<str> {
    format!("~{number}").into()
}

fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix('~')?.parse().ok()
}

/// The sealed turns of one conversation.
#[derive(Debug, Default)]
pub(crate) struct SealedTurns {
    /// Entries by name. A bundle has the name of its first turn.
    entries: BTreeMap<Arc<str>, Sealed>,
    /// The turn of each call, by a hash of the call's id. Kept only if hooks come without a generation, and not for
    /// bundles.
    calls: BTreeMap<u64, Arc<str>>,
    /// All sealed turns end before this time.
    until: Timestamp,
    /// Names, calls and children of bundles, as sorted hashes, each with the number of its bundle.
    keys: Vec<u64>,
    bundles: BTreeMap<u32, Arc<str>>,
    /// Number of the last bundle, and the start of the last bundle.
    newest: u32,
    begins: Timestamp,
    /// Number of turns minus number of entries.
    hidden: usize,
    /// Turns without a name that were sealed before. Their facts carry a made-up name now.
    numbered: BTreeSet<Arc<str>>,
    /// How many of `numbered` are in bundles.
    numbers_in_bundles: usize,
}

impl SealedTurns {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Turns with their own entry.
    pub(crate) fn singles(&self) -> usize {
        self.entries.len() - self.bundles.len()
    }

    pub(crate) fn has_bundles(&self) -> bool {
        !self.bundles.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Sealed> {
        self.entries.get(name)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Sealed)> {
        self.entries.iter()
    }

    /// Children that are known by name.
    pub(crate) fn children(&self) -> impl Iterator<Item = &Arc<str>> {
        self.entries.values().flat_map(|sealed| sealed.children.iter())
    }

    /// Whether an unnamed turn was sealed before.
    pub(crate) fn is_numbered(&self, name: &str) -> bool {
        self.numbered.contains(name)
    }

    /// Number of unnamed turns that were sealed before.
    pub(crate) fn numbers(&self) -> usize {
        self.numbered.len() + self.numbers_in_bundles
    }

    /// How many turns share an entry with a previous turn, and the start of the last bundle.
    pub(crate) const fn hidden(&self) -> (usize, Timestamp) {
        (self.hidden, self.begins)
    }

    /// Whether an event at `at` may belong to a sealed turn.
    pub(crate) fn reach(&self, at: Timestamp) -> bool {
        at <= self.until
    }

    /// The entry of a turn.
    pub(crate) fn entry_of(&self, generation: &str) -> Option<&Arc<str>> {
        let own = self.entries.get_key_value(generation).map(|(name, _)| name);
        own.or_else(|| self.bundle_of(Of::Generation, generation))
    }

    /// The entry of the turn of a call, if the call is known.
    pub(crate) fn entry_of_call(&self, id: &str) -> Option<&Arc<str>> {
        let own = self.calls.get(&digest(&[id.as_bytes()])).filter(|turn| self.contains(turn));
        own.or_else(|| self.bundle_of(Of::Call, id))
    }

    /// The bundle of a child conversation.
    pub(crate) fn bundle_of_child(&self, conversation: &str) -> Option<&Arc<str>> {
        self.bundle_of(Of::Child, conversation)
    }

    fn bundle_of(&self, of: Of, id: &str) -> Option<&Arc<str>> {
        if self.keys.is_empty() {
            return None;
        }
        let key = key(of, id, 0);
        let found = self.keys.get(self.keys.partition_point(|other| *other < key))?;
        let bundle = (found & !BUNDLE_MASK == key).then_some((found & BUNDLE_MASK) as u32)?;
        self.bundles.get(&bundle)
    }

    /// Adds a turn. `calls` are the turn's calls; they are needed if hooks come without a generation.
    pub(crate) fn insert<'a>(
        &mut self,
        name: Arc<str>,
        sealed: Sealed,
        calls: impl Iterator<Item = &'a str>,
        synthetic: bool,
    ) {
        let calls = calls.map(|id| (digest(&[id.as_bytes()]), name.clone()));
        self.calls.extend(calls);
        if synthetic {
            self.numbered.insert(name.clone());
        }
        self.until = self.until.max(sealed.last);
        self.entries.insert(name, sealed);
    }

    /// Removes a turn or a bundle whose facts are reloaded.
    pub(crate) fn take(&mut self, name: &str) -> Option<Sealed> {
        let sealed = self.entries.remove(name)?;
        if let Some(bundle) = sealed.bundle {
            self.bundles.remove(&bundle);
            self.keys.retain(|key| key & BUNDLE_MASK != u64::from(bundle));
            self.hidden = self.hidden.saturating_sub(sealed.turns - 1);
            for number in unpack(&sealed.hooks).iter().filter_map(|turn| turn.number) {
                self.numbers_in_bundles = self.numbers_in_bundles.saturating_sub(1);
                self.numbered.insert(numbered(number));
            }
        }
        Some(sealed)
    }

    /// Bundles consecutive turns. Returns by how much the weight decreases, and the children of these turns.
    pub(crate) fn bundle(&mut self, names: &[Arc<str>]) -> Option<(usize, Vec<Arc<str>>)> {
        let bundle = self.free_number()?;
        let mut turns: Vec<(&Arc<str>, Sealed)> = Vec::with_capacity(names.len());
        for name in names {
            turns.extend(self.entries.remove(name).map(|sealed| (name, sealed)));
        }
        let (first, last) = (turns.first()?, turns.last()?);
        let (name, first, closed) = (first.0.clone(), first.1.first, last.1.closed);
        let last = turns.iter().map(|(_, sealed)| sealed.last).max()?;
        let gone: BTreeSet<&Arc<str>> = turns.iter().map(|(name, _)| *name).collect();
        let (calls, rest) = std::mem::take(&mut self.calls)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, turn)| gone.contains(turn));
        self.calls = rest;
        let (mut hooks, mut children) = (Vec::new(), Vec::new());
        for (name, sealed) in &turns {
            self.keys.push(key(Of::Generation, name, bundle));
            self.keys.extend(sealed.children.iter().map(|child| key(Of::Child, child, bundle)));
            self.numbers_in_bundles += usize::from(self.numbered.remove(*name));
            hooks.extend_from_slice(&sealed.hooks);
            children.extend(sealed.children.iter().cloned());
        }
        self.keys.extend(calls.keys().map(|hash| of_hash(Of::Call, *hash, bundle)));
        self.keys.sort();
        self.hidden += turns.len() - 1;
        self.begins = self.begins.max(first);
        let sealed = Sealed {
            first,
            last,
            closed,
            hooks: hooks.into_boxed_slice(),
            children: Box::default(),
            turns: turns.len(),
            bundle: Some(bundle),
        };
        let freed = turns.len().saturating_sub(sealed.weight());
        self.bundles.insert(bundle, name.clone());
        self.entries.insert(name, sealed);
        Some((freed, children))
    }

    fn free_number(&mut self) -> Option<u32> {
        if self.bundles.len() as u64 > BUNDLE_MASK / 2 {
            return None;
        }
        let next = |number: u32| (number + 1) & BUNDLE_MASK as u32;
        self.newest = next(self.newest);
        while self.bundles.contains_key(&self.newest) {
            self.newest = next(self.newest);
        }
        Some(self.newest)
    }
}

fn key(of: Of, id: &str, bundle: u32) -> u64 {
    of_hash(of, digest(&[id.as_bytes()]), bundle)
}

fn of_hash(of: Of, hash: u64, bundle: u32) -> u64 {
    let hash = mix(hash, of as u64);
    (hash & !BUNDLE_MASK) | u64::from(bundle)
}

/// Turns whose hooks are being reloaded.
#[derive(Debug)]
pub(crate) struct Reload {
    /// For each hook: the index of its turn in `names`. An entry is never removed, because one hook may give several
    /// facts.
    hooks: BTreeMap<u64, usize>,
    /// Names known so far. Most turns of a bundle get their name from their own hooks.
    names: Vec<Option<Arc<str>>>,
    /// Facts that do not name their turn, kept until a hook names it.
    waiting: Vec<(usize, Fact)>,
}

impl Reload {
    pub(crate) fn of(name: &Arc<str>, sealed: &Sealed) -> Self {
        let (mut hooks, mut names) = (BTreeMap::new(), Vec::new());
        for (place, turn) in unpack(&sealed.hooks).into_iter().enumerate() {
            hooks.extend(turn.hooks.into_iter().map(|hook| (hook, place)));
            let own = (sealed.bundle.is_none()).then(|| name.clone());
            names.push(own.or_else(|| turn.number.map(numbered)));
        }
        Self { hooks, names, waiting: Vec::new() }
    }

    /// The index of a reloaded hook; `None` for other hooks. Records its turn's name if the hook has it.
    pub(crate) fn takes(&mut self, seq: u64, generation: &Arc<str>) -> Option<usize> {
        let place = *self.hooks.get(&seq)?;
        if let Some(name) = self.names.get_mut(place)
            && name.is_none()
            && !generation.is_empty()
        {
            *name = Some(generation.clone());
        }
        Some(place)
    }

    /// Adds the fact of a hook that [`Self::takes`] gave an index. Returns facts that can be added now.
    pub(crate) fn file(&mut self, place: usize, fact: Fact) -> Vec<(Arc<str>, Fact)> {
        let Some(Some(name)) = self.names.get(place) else {
            self.waiting.push((place, fact));
            return Vec::new();
        };
        let ready = self.waiting.extract_if(.., |(other, _)| *other == place);
        let mut facts: Vec<(Arc<str>, Fact)> =
            ready.map(|(_, fact)| (name.clone(), fact)).collect();
        facts.push((name.clone(), fact));
        facts
    }
}

/// The number of an unnamed turn.
pub(crate) fn number(name: &str, synthetic: bool) -> Option<u64> {
    number_of(name).filter(|_| synthetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(number: Option<u64>, hooks: &[u64]) -> Sealed {
        let at = Timestamp::default();
        Sealed::new((at, at, None), number, &hooks.iter().copied().collect(), Vec::new())
    }

    #[test]
    fn numbers_are_packed_without_loss() {
        let numbers = [0, 1, 2, 129, 130, 70_000, u64::MAX];
        assert_eq!(sealed(None, &numbers).hooks(), numbers);
        assert!(sealed(Some(7), &[]).hooks().is_empty());
    }

    #[test]
    fn a_bundle_is_found_by_every_name_and_comes_apart_as_it_was() {
        let names: Vec<Arc<str>> = ["g0", "~0", "g2"].map(Arc::from).into();
        let mut turns = SealedTurns::default();
        for (at, name) in names.iter().enumerate() {
            let synthetic = name.starts_with('~');
            let at = at as u64 * 10;
            let one = sealed(number(name, synthetic), &[at + 1, at + 5]);
            let child = Arc::from(format!("child of {name}"));
            let one = Sealed { children: [child].into(), ..one };
            turns.insert(
                name.clone(),
                one,
                [format!("call {at}")].iter().map(|id| &**id),
                synthetic,
            );
        }
        let (_, children) = turns.bundle(&names).unwrap();
        assert_eq!(
            (children.len(), turns.hidden().0, turns.singles(), turns.numbers()),
            (3, 2, 0, 1)
        );
        let of = |turns: &SealedTurns| {
            let names = ["g0", "~0", "g2"].map(|name| turns.entry_of(name).cloned());
            let calls = ["call 0", "call 10", "call 20"].map(|id| turns.entry_of_call(id).cloned());
            let child = turns.bundle_of_child("child of g2").cloned();
            names.into_iter().chain(calls).chain([child]).collect::<Vec<_>>()
        };
        assert_eq!(of(&turns), vec![Some(Arc::from("g0")); 7]);
        assert_eq!(turns.entry_of("g1"), None);
        let bundle = turns.take("g0").unwrap();
        assert_eq!(bundle.hooks(), [1, 5, 11, 15, 21, 25]);
        assert_eq!(of(&turns), vec![None; 7]);
        assert!(turns.is_numbered("~0") && turns.is_empty() && turns.hidden().0 == 0);
        let mut reload = Reload::of(&names[0], &bundle);
        let place = |reload: &mut Reload, seq, name: &str| reload.takes(seq, &name.into());
        assert_eq!(place(&mut reload, 21, ""), Some(2));
        assert_eq!(place(&mut reload, 25, "g2"), Some(2));
        assert_eq!(place(&mut reload, 26, "g2"), None);
        assert_eq!(reload.names, [None, Some(Arc::from("~0")), Some(Arc::from("g2"))]);
    }
}
