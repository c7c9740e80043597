//! Finds the regions that each rule searches: those near its keywords.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::rules::{self, Compiled};

/// The rules and an automaton of their keywords.
#[derive(Debug)]
pub(crate) struct Scanner {
    pub(crate) rules: Vec<Compiled>,
    /// `None` only if the automaton cannot be built; a test makes sure that it can. Without it, every text is withheld.
    automaton: Option<AhoCorasick>,
    /// Rules of each keyword.
    owners: Vec<Vec<usize>>,
}

/// A part of a text that a rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) rule: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Scanner {
    pub(crate) fn new() -> Self {
        let rules: Vec<Compiled> = rules::all().map(Compiled::of).collect();
        let mut keywords: Vec<String> = Vec::new();
        let mut owners: Vec<Vec<usize>> = Vec::new();
        for (index, compiled) in rules.iter().enumerate() {
            for keyword in compiled.rule.keywords {
                let keyword = keyword.to_ascii_lowercase();
                let at = keywords.iter().position(|known| *known == keyword).unwrap_or_else(|| {
                    keywords.push(keyword);
                    owners.push(Vec::new());
                    keywords.len() - 1
                });
                if let Some(owners) = owners.get_mut(at) {
                    owners.push(index);
                }
            }
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&keywords);
        Self { rules, automaton: automaton.ok(), owners }
    }

    /// Whether the automaton could be built.
    pub(crate) fn is_ready(&self) -> bool {
        self.automaton.is_some()
    }

    /// Whether `text` holds any keyword.
    pub(crate) fn has_hint(&self, text: &[u8]) -> bool {
        self.automaton.as_ref().is_some_and(|automaton| automaton.is_match(text))
    }

    /// The regions of all rules. The regions of one rule are in order and do not overlap, so a rule sees no byte twice.
    pub(crate) fn regions(&self, text: &[u8]) -> Vec<Region> {
        let mut regions: Vec<Region> = Vec::new();
        let mut last: Vec<Option<usize>> = vec![None; self.rules.len()];
        let Some(automaton) = &self.automaton else { return regions };
        for hit in automaton.find_overlapping_iter(text) {
            for index in self.owners.get(hit.pattern().as_usize()).into_iter().flatten() {
                let Some(rule) = self.rules.get(*index).map(|compiled| compiled.rule) else {
                    continue;
                };
                let start = hit.start().saturating_sub(rule.before);
                let end = hit.end().saturating_add(rule.after).min(text.len());
                let open = last.get(*index).copied().flatten().and_then(|at| regions.get_mut(at));
                match open {
                    Some(region) if start <= region.end => region.end = region.end.max(end),
                    _ => {
                        if let Some(last) = last.get_mut(*index) {
                            *last = Some(regions.len());
                        }
                        regions.push(Region { rule: *index, start, end });
                    }
                }
            }
        }
        regions
    }
}
