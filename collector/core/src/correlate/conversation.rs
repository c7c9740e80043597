//! A conversation: its facts, divided into turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::correlate::call_home::{Homes, call_id, note_home};
use crate::correlate::delegation::Delegation;
use crate::correlate::delegation_match::{Names, tells};
use crate::correlate::event_time::Steady;
use crate::correlate::fact::{Fact, Roots, insert};
use crate::correlate::said_at::{SaidAt, latest, note_first};
use crate::correlate::sealed_turns::{Reload, SealedTurns};
use crate::correlate::tool_call::tool_facts;
use crate::correlate::turn::{label, repeats};
use crate::correlate::turn_layout::Placed;
pub(crate) use crate::correlate::turn_layout::Turn;
use crate::model::event::EventKind;
use crate::model::event::{About, Evidence, Host, Lineage};
use crate::model::fingerprint::{Fingerprint, Made, digest, mix};
use crate::model::time::Timestamp;

/// Maximum number of turns with a counter of dropped events.
const MAX_LOST: usize = 1_024;
/// Number of earlier facts that a fact is compared with to detect a repeated delivery.
pub(crate) const MAX_REPEATS: usize = 8;

/// Everything in memory about one conversation.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) id: Arc<str>,
    pub(crate) host: Host,
    /// First workspace root with its time. The earliest wins.
    workspace: Option<SaidAt>,
    /// Values of `cursor_version` with their first time, in that order. The last value wins, so two alternating values
    /// do not change the winner.
    versions: Vec<SaidAt>,
    /// `transcript_path`; the latest wins.
    transcript: Option<SaidAt>,
    /// Roots of its facts.
    pub(crate) roots: Roots,
    /// Facts that name their generation.
    pub(crate) explicit: BTreeMap<Arc<str>, Vec<Fact>>,
    /// Loose facts: they name no generation and belong to the open turn.
    pub(crate) loose: Vec<Fact>,
    /// `sessionStart`, `sessionEnd`.
    pub(crate) session: Vec<Fact>,
    /// Tab events.
    pub(crate) tabs: Vec<Fact>,
    /// The generation that first named each call id. Filled only if needed: for events without a generation, or
    /// delegations.
    pub(super) homes: Option<Homes>,
    /// Delegations, by subagent key.
    pub(crate) delegations: BTreeMap<Box<str>, Delegation>,
    /// A session without a hook for this long has ended, see [`Config`](crate::model::config::Config).
    pub(crate) session_idle_ns: i64,
    /// For each hook that does not name its delegation: the delegation that it was matched with.
    pub(crate) names: Names,
    /// Other ids of subagents, each with the subagent's delegation.
    pub(crate) aliases: BTreeMap<Box<str>, Box<str>>,
    /// Whether some delegation names its child.
    pub(crate) names_children: bool,
    /// Whether some hooks name their delegation incompletely. Then each new hook causes all hooks of delegations to be
    /// matched again.
    pub(super) vague: bool,
    /// Whether hooks arrived since they were last matched.
    pub(super) unresolved: bool,
    /// Stops and prompts, each with a digest of its content. A foreground delegation ends with the next one at the
    /// latest.
    pub(super) breaks: Vec<(Timestamp, u64)>,
    /// Thoughts. If nothing else ends a foreground delegation, the next thought does.
    pub(super) thoughts: Vec<Timestamp>,
    /// Start of the latest delegation.
    pub(super) delegated: Timestamp,
    /// Prompts by (time, hook), with their generation.
    pub(super) prompts: BTreeMap<(Timestamp, u64), Arc<str>>,
    /// Session ends.
    ends: Vec<Timestamp>,
    /// The first hook with a usable model label.
    label: Option<((Timestamp, u8, u64), Arc<str>)>,
    /// Changes whenever a transcript path names another parent.
    transcripts: u32,
    /// Number of dropped events of each known turn.
    lost: BTreeMap<Arc<str>, u64>,
    /// Number of facts since the session was last reported.
    pub(crate) fresh: usize,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    pub(crate) steady: Steady,
    /// Whether the conversation has events that only a root can have: prompt, response, stop, session events.
    pub(crate) root_only: bool,
    pub(crate) evidence: Option<(u64, Evidence)>,
    pub(crate) lineage: Option<Lineage>,
    /// Turns in order of their start; see [`Self::lay_out`].
    pub(crate) turns: Vec<Turn>,
    /// Indexes of loose facts outside any turn.
    pub(crate) outside: Vec<usize>,
    /// Number of facts, including evicted ones.
    pub(crate) count: usize,
    /// Number of facts in memory. A sealed turn counts as one.
    pub(crate) held: usize,
    /// Turns whose facts were evicted.
    pub(crate) sealed: SealedTurns,
    pub(super) reload: Option<Reload>,
    /// Whether new facts may move turns, so that the layout must be computed again.
    pub(super) moved: bool,
    pub(super) placed: Placed,
    /// Generations that got a new first fact. If [`Self::moved`] is false, only their turns are placed again.
    pub(super) begun: Vec<Arc<str>>,
    /// Turns that start before this have not changed since the last [`Self::take_changed`].
    pub(super) changed: Timestamp,
    /// Increases with every new layout. A turn may have disappeared then.
    pub(crate) layout: u64,
    /// Fingerprint of facts about the whole conversation: workspace, host, version.
    pub(crate) described: Fingerprint,
    /// The values that `described` covers.
    description: ((Option<u64>, Host), Option<Arc<str>>),
    /// Whether the conversation is in the list of conversations with new facts.
    pub(crate) touched: bool,
}

/// Facts that decide the parent of a conversation, or its possible children.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KinFacts {
    pub(crate) first: Timestamp,
    pub(crate) root_only: bool,
    /// The hook that named the workspace.
    pub(crate) workspace: Option<u64>,
    pub(crate) transcript: u32,
    pub(crate) generations: usize,
    pub(crate) delegations: usize,
}

impl Conversation {
    pub(crate) fn new(id: Arc<str>, host: Host) -> Self {
        Self {
            id,
            host,
            workspace: None,
            versions: Vec::new(),
            transcript: None,
            roots: Roots::default(),
            explicit: BTreeMap::new(),
            loose: Vec::new(),
            session: Vec::new(),
            tabs: Vec::new(),
            homes: None,
            delegations: BTreeMap::new(),
            session_idle_ns: 0,
            names: Names::new(),
            aliases: BTreeMap::new(),
            names_children: false,
            vague: false,
            unresolved: false,
            breaks: Vec::new(),
            thoughts: Vec::new(),
            delegated: Timestamp(i64::MIN),
            prompts: BTreeMap::new(),
            ends: Vec::new(),
            label: None,
            transcripts: 0,
            lost: BTreeMap::new(),
            fresh: 0,
            first: Timestamp(i64::MAX),
            last: Timestamp(i64::MIN),
            steady: Steady::default(),
            root_only: false,
            evidence: None,
            lineage: None,
            turns: Vec::new(),
            outside: Vec::new(),
            count: 0,
            held: 0,
            sealed: SealedTurns::default(),
            reload: None,
            moved: false,
            placed: Placed::default(),
            begun: Vec::new(),
            changed: Timestamp(i64::MIN),
            layout: 0,
            described: Fingerprint::of(Made::Conversation),
            description: ((None, host), None),
            touched: false,
        }
    }

    pub(crate) fn workspace(&self) -> Option<&Arc<str>> {
        self.workspace.as_ref().map(|(_, _, value)| value)
    }

    pub(crate) fn version(&self) -> Option<&Arc<str>> {
        self.versions.last().map(|(_, _, value)| value)
    }

    pub(crate) fn transcript(&self) -> Option<&Arc<str>> {
        self.transcript.as_ref().map(|(_, _, value)| value)
    }

    pub(crate) fn kin_facts(&self) -> KinFacts {
        KinFacts {
            first: self.first,
            root_only: self.root_only,
            workspace: self.workspace.as_ref().map(|(_, seq, _)| *seq),
            transcript: self.transcripts,
            generations: self.explicit.len(),
            delegations: self.delegations.len().max(usize::from(self.vague)),
        }
    }

    /// Records the host that an event names, see [`Host::weight`].
    pub(crate) fn meet(&mut self, host: Host) {
        if host.weight() > self.host.weight() {
            self.host = host;
        }
    }

    /// Records what the envelope says about the whole conversation.
    pub(crate) fn describe(&mut self, (at, seq): (Timestamp, u64), host: Host, about: &About) {
        self.first = self.first.min(at);
        self.last = self.last.max(at);
        if let Some(value) = &about.workspace
            && self.workspace.as_ref().is_none_or(|&(t, s, _)| (at, seq) < (t, s))
        {
            self.workspace = Some((at, seq, value.clone()));
        }
        if let Some(value) = &about.cursor_version {
            note_first(&mut self.versions, (at, seq), value, || value.clone());
        } else if !matches!(host, Host::Cursor | Host::Unknown) {
            let host = host.as_str();
            note_first(&mut self.versions, (at, seq), host, || host.into());
        }
        if let Some(value) = &about.transcript_path {
            let known = self.transcript().is_some_and(|known| known == value);
            latest(&mut self.transcript, (at, seq), value);
            self.transcripts += u32::from(!known && value.contains("subagents"));
        }
        let workspace = self.workspace.as_ref().map(|(_, seq, _)| *seq);
        let version = self.versions.last().map(|(_, _, version)| version);
        let description = (workspace, self.host);
        if description != self.description.0 || version != self.description.1.as_ref() {
            self.description = (description, version.cloned());
            self.described = Fingerprint::of(Made::Conversation)
                .with(workspace.map_or(0, |seq| seq.wrapping_add(1)))
                .with(self.host as u64)
                .text(version.map(|version| &**version).unwrap_or_default());
            self.touch(Timestamp(i64::MIN));
        }
    }

    /// Records evidence. The strongest stays; among equals, the earliest.
    pub(crate) fn consider(&mut self, seq: u64, evidence: Evidence) {
        let rank = |seq: u64, e: &Evidence| (e.confidence, e.source, std::cmp::Reverse(seq));
        if self.evidence.as_ref().is_none_or(|(s, old)| rank(seq, &evidence) > rank(*s, old)) {
            self.evidence = Some((seq, evidence));
        }
    }

    /// Adds a fact. Returns the increase in facts: none if that hook is known already.
    pub(crate) fn add(&mut self, generation: &Arc<str>, fact: Fact) -> usize {
        let again = self.reload.as_mut().and_then(|reload| reload.takes(fact.seq, generation));
        self.note(generation, &fact);
        if let Some(place) = again {
            return self.put_back(place, fact);
        }
        let is_new = usize::from(self.file(generation, fact));
        self.count += is_new;
        self.held += is_new;
        self.fresh += is_new;
        is_new
    }

    /// Records what a fact says beyond its own turn.
    fn note(&mut self, generation: &Arc<str>, fact: &Fact) {
        use EventKind as K;
        self.note_delegation(fact);
        if let Some(label) = label(fact)
            && self.label.as_ref().is_none_or(|(key, _)| fact.key() < *key)
        {
            self.label = Some((fact.key(), label.into()));
        }
        if let Some(said) = said(&fact.kind) {
            let place = (fact.at, mix(said, digest(&[generation.as_bytes()])));
            if let Err(at) = self.breaks.binary_search(&place) {
                self.breaks.insert(at, place);
            }
        } else if matches!(fact.kind, K::Thought(_))
            && let Err(at) = self.thoughts.binary_search(&fact.at)
        {
            self.thoughts.insert(at, fact.at);
        }
        if matches!(fact.kind, K::Prompt(_)) {
            // This prompt becomes the next prompt for every turn that began since the previous one.
            let before = self.prompts.range(..(fact.at, fact.seq)).next_back();
            let since = before.map(|(&(at, _), generation)| self.start_around(generation, at));
            self.touch(since.unwrap_or(Timestamp(i64::MIN)));
            self.prompts.entry((fact.at, fact.seq)).or_insert_with(|| generation.clone());
        }
        if self.homes.is_none() && (generation.is_empty() || !self.delegations.is_empty()) {
            self.homes = Some(self.find_homes());
        }
        self.root_only |= matches!(
            fact.kind,
            K::Prompt(_) | K::Response(_) | K::Stop(_) | K::SessionStart { .. } | K::SessionEnd(_)
        );
    }

    /// Adds a fact to the list of its kind. False if the list has it already.
    fn file(&mut self, generation: &Arc<str>, fact: Fact) -> bool {
        use EventKind as K;
        match &fact.kind {
            K::SessionStart { .. } => {
                self.touch(Timestamp(i64::MIN));
                insert(&mut self.session, fact)
            }
            K::SessionEnd(_) => {
                // Loose facts after a session end belong to another turn than those before it.
                if self.loose.last().is_some_and(|last| last.at >= fact.at) {
                    self.move_turns();
                }
                self.touch(Timestamp(i64::MIN));
                self.ends.insert(self.ends.partition_point(|at| *at < fact.at), fact.at);
                insert(&mut self.session, fact)
            }
            K::TabRead { .. } | K::TabEdit { .. } => insert(&mut self.tabs, fact),
            K::WorkspaceOpen | K::Malformed | K::Evidence(_) => false,
            _ if generation.is_empty() => {
                // If this fact is the last one in order, the other loose facts keep their turns.
                if self.loose.last().is_some_and(|last| last.key() >= fact.key()) {
                    self.move_turns();
                }
                insert(&mut self.loose, fact)
            }
            _ => self.file_named(generation, fact),
        }
    }

    /// Adds a fact to the facts of the generation that it names.
    fn file_named(&mut self, generation: &Arc<str>, fact: Fact) -> bool {
        if self.moves_loose(generation, &fact) {
            self.move_turns();
        }
        if let Some(homes) = &mut self.homes {
            note_home(homes, &fact, generation);
        }
        let facts = match self.explicit.get_mut(generation) {
            Some(facts) => facts,
            None => self.explicit.entry(generation.clone()).or_default(),
        };
        if facts.first().is_none_or(|first| fact.key() < first.key()) {
            self.begun.push(generation.clone());
        }
        let start = facts.first().map_or(fact.at, |first| first.at.min(fact.at));
        let is_new = insert(facts, fact);
        self.touch(start);
        is_new
    }

    /// Adds a fact that is reloaded together with its turn. The fact need not name the turn. Returns the increase in
    /// facts.
    fn put_back(&mut self, place: usize, fact: Fact) -> usize {
        let ready = self.reload.as_mut().map(|reload| reload.file(place, fact)).unwrap_or_default();
        let mut filed = 0;
        for (generation, fact) in ready {
            if let Some(homes) = &mut self.homes {
                note_home(homes, &fact, &generation);
            }
            self.touch(fact.at);
            if !self.placed.named.contains(&generation) {
                self.begun.push(generation.clone());
            }
            filed += usize::from(insert(self.explicit.entry(generation).or_default(), fact));
        }
        self.held += filed;
        self.fresh += filed;
        filed
    }

    /// Number of turns before the entry at `position`.
    pub(crate) fn turns_before(&self, position: usize) -> usize {
        let (hidden, last) = self.sealed.hidden();
        let turns = self.turns.get(..position).unwrap_or(&self.turns);
        if hidden == 0 || turns.last().is_some_and(|turn| turn.start > last) {
            return position + hidden;
        }
        let more =
            |turn: &Turn| self.sealed.get(&turn.generation).map_or(1, |sealed| sealed.turns());
        turns.iter().map(more).sum()
    }

    /// The position of a turn, if `number` is the number of turns before that turn. Otherwise `None`.
    pub(crate) fn position_of(&self, generation: &Arc<str>, number: usize) -> Option<usize> {
        let at = number.checked_sub(self.sealed.hidden().0)?;
        self.turns.get(at).filter(|turn| turn.generation == *generation).map(|_| at)
    }

    /// Counts a dropped event of a turn. An event that names no turn counts for the last turn.
    pub(crate) fn lose(&mut self, generation: &Arc<str>) {
        let last = self.turns.last().map(|turn| &turn.generation);
        let named = Some(generation).filter(|generation| !generation.is_empty());
        let Some(turn) = named.or(last).cloned() else { return };
        if self.lost.len() < MAX_LOST || self.lost.contains_key(&turn) {
            *self.lost.entry(turn.clone()).or_default() += 1;
            let start = self.explicit.get(&turn).and_then(|facts| facts.first());
            let start = start.map_or(Timestamp(i64::MIN), |first| first.at);
            self.touch(start);
        }
    }

    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Number of dropped events of a turn.
    pub(crate) fn lost(&self, generation: &Arc<str>) -> u64 {
        self.lost.get(generation).copied().unwrap_or_default()
    }

    /// Marks the whole layout as changed.
    pub(super) fn move_turns(&mut self) {
        self.moved = true;
        self.touch(Timestamp(i64::MIN));
    }

    /// Start of the turn that a prompt belongs to; never later than the prompt.
    fn start_around(&self, generation: &Arc<str>, at: Timestamp) -> Timestamp {
        if let Some(first) = self.explicit.get(generation).and_then(|facts| facts.first()) {
            return first.at.min(at);
        }
        // A loose prompt belongs to a turn that this prompt, or another loose prompt, began.
        let before = self.turns.partition_point(|turn| turn.start <= at);
        let own = self.turns[..before].iter().rfind(|turn| turn.synthetic);
        own.map_or(at, |turn| turn.start)
    }

    /// Marks turns that start at `from` or later as changed.
    pub(super) fn touch(&mut self, from: Timestamp) {
        self.changed = self.changed.min(from);
    }

    /// Returns a time. Turns that start before it have not changed since the last call, neither their facts nor their
    /// order.
    pub(crate) fn take_changed(&mut self) -> Timestamp {
        std::mem::replace(&mut self.changed, Timestamp(i64::MAX))
    }

    /// Time of its last hook, without repeated deliveries.
    pub(crate) fn last_sign(&self) -> Timestamp {
        let own = |facts: &[Fact]| {
            let is_new = |at: &usize| {
                let earlier = facts[..*at].iter().rev();
                !earlier.take(MAX_REPEATS).any(|other| repeats(other, &facts[*at]))
            };
            (0..facts.len()).rev().find(is_new).map(|at| facts[at].at)
        };
        let lists = self.explicit.values().chain([&self.loose]);
        lists.filter_map(|facts| own(facts)).max().unwrap_or(self.last)
    }

    /// The model label of its first hook that has one.
    pub(crate) fn label(&self) -> Option<&str> {
        self.label.as_ref().map(|(_, label)| &**label)
    }

    /// The generation a call id belongs to.
    pub(crate) fn home(&self, id: &str) -> Option<Arc<str>> {
        if let Some(homes) = &self.homes {
            return homes.get(id).map(|(_, generation)| generation.clone());
        }
        let first = |(generation, facts): (&Arc<str>, &Vec<Fact>)| {
            let named = facts.iter().filter(|fact| call_id(&fact.kind) == Some(id));
            named.map(|fact| (fact.at, generation.clone())).min()
        };
        self.explicit.iter().filter_map(first).min().map(|(_, generation)| generation)
    }

    fn find_homes(&self) -> Homes {
        let mut homes = Homes::new();
        for (generation, facts) in &self.explicit {
            facts.iter().for_each(|fact| note_home(&mut homes, fact, generation));
        }
        homes
    }

    /// Whether there is a prompt at this time.
    pub(crate) fn has_prompt_at(&self, at: Timestamp) -> bool {
        self.prompts.range((at, 0)..=(at, u64::MAX)).next().is_some()
    }

    /// The next prompt that is not the turn's own.
    pub(crate) fn next_prompt(&self, turn: &Turn) -> Option<Timestamp> {
        let own = |at: Timestamp, seq: u64, generation: &Arc<str>| {
            if turn.synthetic {
                let is_it = |fact: &Fact| (fact.at, fact.seq) == (at, seq);
                let named = self.explicit.get(&turn.generation);
                turn.loose.iter().any(|&i| is_it(&self.loose[i]))
                    || named.is_some_and(|facts| facts.iter().any(is_it))
            } else {
                *generation == turn.generation
            }
        };
        self.prompts
            .range((turn.start, 0)..)
            .find(|&(&(at, seq), generation)| !own(at, seq, generation))
            .map(|(&(at, _), _)| at)
    }

    /// The first session end since a turn started.
    pub(crate) fn session_end_after(&self, start: Timestamp) -> Option<Timestamp> {
        self.ends.get(self.ends.partition_point(|at| *at < start)).copied()
    }

    /// Whether the conversation called a tool, thought, answered or delegated.
    pub(crate) fn does_something(&self) -> bool {
        let mut facts = self.explicit.values().flatten().chain(&self.loose);
        facts.any(|fact| {
            let is_text = matches!(fact.kind, EventKind::Thought(_) | EventKind::Response(_));
            is_text || tells(&fact.kind) || tool_facts(&fact.kind).is_some()
        })
    }

    /// Whether the conversation consists only of the editor's completions.
    pub(crate) fn is_tab(&self) -> bool {
        !self.tabs.is_empty() && self.tabs.len() == self.count
    }

    /// Whether a turn may come from print mode: its conversation has no prompts, and no hook names the turn.
    pub(crate) fn is_printed(&self, turn: &Turn) -> bool {
        turn.synthetic && self.prompts.is_empty()
    }

    /// Start of the session whose first turn this is.
    pub(crate) fn session_start_before(&self, turn: &Turn) -> Option<Timestamp> {
        let before = self.turns.partition_point(|other| other.start < turn.start);
        let start = |turn: &Turn| {
            let bundle = self.sealed.get(&turn.generation).filter(|sealed| sealed.turns() > 1);
            bundle.map_or(turn.start, |bundle| bundle.last)
        };
        let earlier = before.checked_sub(1).map(|last| start(&self.turns[last]));
        let started = self.session.iter().rev().find(|fact| fact.at <= turn.start)?;
        let is_start = matches!(started.kind, EventKind::SessionStart { .. });
        (is_start && earlier.is_none_or(|earlier| earlier < started.at)).then_some(started.at)
    }

    /// The facts of a turn, in order.
    pub(crate) fn facts(&self, turn: &Turn) -> Vec<&Fact> {
        let explicit = self.explicit.get(&turn.generation).map(Vec::as_slice).unwrap_or_default();
        let mut facts: Vec<&Fact> = explicit.iter().collect();
        if !turn.loose.is_empty() {
            facts.extend(turn.loose.iter().map(|&index| &self.loose[index]));
            facts.sort_by_key(|fact| fact.key());
        }
        facts
    }
}

/// Digest of a stop or a prompt, to recognise a repeated delivery.
fn said(kind: &EventKind) -> Option<u64> {
    let digest = |text: Option<&str>| digest(&[text.unwrap_or_default().as_bytes()]);
    match kind {
        EventKind::Prompt(prompt) => {
            Some(mix(mix(1, prompt.bytes), digest(prompt.preview.as_deref())))
        }
        EventKind::Stop(stop) => {
            let loops = stop.loop_count.map_or(u64::MAX, i64::unsigned_abs);
            let count = |count: Option<u64>| count.unwrap_or(u64::MAX);
            let tokens = mix(count(stop.tokens.input), count(stop.tokens.output));
            Some(mix(mix(mix(2, loops), tokens), digest(stop.status.as_deref())))
        }
        _ => None,
    }
}
