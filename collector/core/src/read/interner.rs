//! Shares the memory of texts that hooks repeat: ids, models, paths.

use std::sync::Arc;

use crate::model::bounded::cut_str;
use crate::model::path;

/// Number of texts kept. Four thousand hooks contain fewer different ones, except for call ids.
const SLOTS: usize = 1_024;
/// Maximum length of a text that is kept. Longer texts are rare, and a forged one must not stay in memory.
const LONGEST: usize = 512;
/// A path is cut at this length.
const LONGEST_PATH: usize = 4_096;

/// The texts of recent hooks. They affect no result: a forgotten text is simply allocated again.
#[derive(Debug, Default)]
pub(crate) struct Words {
    slots: Vec<Option<Arc<str>>>,
    /// The last root as sent, and its plain spelling. The hooks of a session repeat their root.
    last: Option<(Box<str>, Root)>,
    /// A reader for a single hook keeps nothing.
    once: bool,
}

/// A root in its plain spelling.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    /// `None` if it is the folder of the project. Every hook copies this, so one reference less counts.
    pub(crate) root: Option<Arc<str>>,
    /// Folder of the project that it belongs to.
    pub(crate) project: Arc<str>,
    /// Whether it lies on another machine.
    pub(crate) remote: bool,
}

impl Words {
    /// An interner for a single hook.
    pub(crate) fn once() -> Self {
        Self { once: true, ..Self::default() }
    }

    /// The plain spelling of a root, its project, and whether it is on another machine.
    pub(crate) fn root(&mut self, sent: &str) -> Root {
        if let Some((last, root)) = &self.last
            && **last == *sent
        {
            return root.clone();
        }
        let root = self.get(cut_str(&path::plain(sent), LONGEST_PATH));
        let project = match path::project(&root).folder {
            whole if whole.len() == root.len() => root.clone(),
            folder => self.get(folder),
        };
        let root = Some(root).filter(|root| !Arc::ptr_eq(root, &project));
        let root = Root { root, project, remote: path::is_remote(sent) };
        if !self.once && sent.len() <= LONGEST {
            self.last = Some((sent.into(), root.clone()));
        }
        root
    }

    pub(crate) fn get(&mut self, text: &str) -> Arc<str> {
        if self.once || text.is_empty() || text.len() > LONGEST {
            return text.into();
        }
        if self.slots.is_empty() {
            // Unlike `vec![None; SLOTS]`, this compiles to one store for each slot.
            self.slots.resize_with(SLOTS, || None);
        }
        let slot = &mut self.slots[slot(text.as_bytes())];
        match slot {
            Some(known) if **known == *text => known.clone(),
            _ => slot.insert(text.into()).clone(),
        }
    }
}

/// Hashes the length and both ends of a text; ids and paths differ there. After a collision the older text is merely
/// forgotten.
fn slot(text: &[u8]) -> usize {
    let word = |bytes: &[u8]| bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let first = text.first_chunk().map_or_else(|| word(text), |bytes| u64::from_le_bytes(*bytes));
    let last = text.last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let mixed =
        (first.rotate_left(32) ^ last ^ text.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 54) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_memory_and_a_long_one_is_not_kept() {
        let mut words = Words::default();
        let (one, other) = (words.get("/home/dev/app"), words.get("/home/dev/app"));
        assert!(Arc::ptr_eq(&one, &other));
        let long = "x".repeat(LONGEST + 1);
        assert!(!Arc::ptr_eq(&words.get(&long), &words.get(&long)));
        assert_eq!(&*words.get(&long), long);
        assert_eq!(&*words.get(""), "");
    }

    #[test]
    fn more_texts_than_are_remembered_stay_themselves() {
        let mut words = Words::default();
        let texts: Vec<String> = (0..3 * SLOTS).map(|n| format!("call_{n}")).collect();
        for text in texts.iter().chain(&texts) {
            assert_eq!(&*words.get(text), text);
        }
    }
}
