//! Finds the parent of each child conversation.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::correlate::claims::Claims;
use crate::correlate::conversation::Conversation;
use crate::correlate::open_delegations::{Candidate, OpenDelegations, candidates};
use crate::model::event::{Confidence, LinkSource};
use crate::model::fingerprint::{Fingerprint, Made};
use crate::model::path;
use crate::model::time::Timestamp;
use crate::model::tolerance::DISORDER;

/// Maximum number of candidates that a child links to. The others are only counted.
pub(crate) const MAX_CANDIDATES: usize = 8;
/// If more delegations than this were open when a child began, the later events of these delegations are not compared.
pub(crate) const CROWD: usize = 64;

/// A child conversation's place below its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) parent: Arc<str>,
    /// Subagent key in the parent; `None` if several are possible.
    pub(crate) key: Option<Box<str>>,
    pub(crate) confidence: Confidence,
    pub(crate) source: LinkSource,
    /// Key of the parent's turn, if no delegation is known.
    pub(crate) below: Option<Box<str>>,
    /// The candidates, if ambiguous.
    pub(crate) candidates: Candidates,
    /// Later delegations of the parent that resumed the same child, by start.
    pub(crate) resumed: Vec<(Timestamp, Box<str>)>,
}

impl Link {
    fn new(
        parent: Arc<str>,
        key: Option<Box<str>>,
        (confidence, source): (Confidence, LinkSource),
    ) -> Self {
        let (candidates, resumed) = (Candidates::default(), Vec::new());
        Self { parent, key, confidence, source, below: None, candidates, resumed }
    }

    /// The delegations that the child worked for, in order. If none is known: the turn that the child is linked to.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Box<str>> {
        let keys = self.key.iter().chain(self.resumed.iter().map(|(_, key)| key));
        keys.chain(self.below.iter())
    }

    /// The delegation of a turn that began at `at`.
    pub(crate) fn key_at(&self, at: Timestamp) -> Option<&str> {
        let later = self.resumed.partition_point(|(start, _)| *start <= at);
        let resumed = later.checked_sub(1).map(|last| &self.resumed[last].1);
        resumed.or(self.key.as_ref()).map(|key| &**key)
    }
}

/// The key for children that are linked to a turn and not to a delegation.
pub(crate) fn below_turn(generation: &str) -> Box<str> {
    format!("?{generation}").into()
}

/// The turn that such a key names.
pub(crate) fn turn_of_key(key: &str) -> Option<&str> {
    key.strip_prefix('?')
}

/// The turn of `parent` in which `child` began: the turn that it names, otherwise the last turn before it.
fn turn_of_child<'a>(parent: &'a Conversation, child: &Conversation) -> Option<&'a Arc<str>> {
    let named = child.turns.first().map(|turn| &turn.generation);
    let turns = &parent.turns;
    if let Some(turn) = turns.iter().rfind(|turn| Some(&turn.generation) == named) {
        return Some(&turn.generation);
    }
    let before = turns.partition_point(|turn| turn.start <= child.first);
    Some(&turns.get(before.saturating_sub(1))?.generation)
}

/// Delegations that a child may belong to: how many there are, and those that began last before the child, at most
/// [`MAX_CANDIDATES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub(crate) count: usize,
    pub(crate) kept: Vec<(Arc<str>, Box<str>)>,
}

impl Candidates {
    /// Covers the number of candidates, which ones they are, and their starts.
    pub(crate) fn fingerprint(&self, conversations: &Conversations) -> Fingerprint {
        let all = Fingerprint::of(Made::Candidates).with(self.count as u64);
        self.kept.iter().fold(all, |all, (parent, key)| {
            let known = conversations.get(parent).and_then(|parent| parent.delegations.get(key));
            let start = known.and_then(|delegation| delegation.start);
            all.text(parent).text(key).maybe(start)
        })
    }
}

pub(crate) type Conversations = BTreeMap<Arc<str>, Conversation>;
pub(crate) type Links = BTreeMap<Arc<str>, Link>;
/// Children whose candidates have different parents. Each remains a root, and its span says that the link is unclear.
pub(crate) type Unclear = BTreeMap<Arc<str>, Candidates>;
/// Children by parent and subagent key.
pub(crate) type Children = BTreeMap<(Arc<str>, Box<str>), Vec<Arc<str>>>;

/// Children that fit several delegations of one parent, by root.
pub(crate) type Strays = BTreeMap<Arc<str>, Vec<Arc<str>>>;

/// Delegations that have a child, by parent and key.
type Taken = BTreeSet<(Arc<str>, Box<str>)>;

/// Result of [`link`].
#[derive(Default)]
pub(crate) struct Linked {
    pub(crate) links: Links,
    pub(crate) unclear: Unclear,
    /// A child names a parent that is not in memory.
    pub(crate) waits: bool,
    /// Number of conversations, delegations and candidates read.
    pub(crate) work: usize,
}

/// Links all children among `conversations`. The result depends only on their content.
pub(crate) fn link(conversations: &Conversations) -> Linked {
    let mut linked = Linked { work: conversations.len(), ..Linked::default() };
    let claims = Claims::of(conversations.values());
    let mut taken = Taken::new();
    let mut parents: BTreeMap<Arc<str>, OpenDelegations<'_>> = BTreeMap::new();
    for conversation in conversations.values() {
        // A session with evicted settled turns is never linked as a child.
        if !conversation.sealed.is_empty() {
            continue;
        }
        if let Some((parent, key)) = claims.of_child(conversation) {
            taken.insert((parent.clone(), key.into()));
            let how = (Confidence::Exact, LinkSource::Hook);
            let link = Link::new(parent.clone(), Some(key.into()), how);
            linked.links.insert(conversation.id.clone(), link);
            continue;
        }
        let Some((name, confidence)) = named_parent(conversation) else { continue };
        let Some(parent) = conversations.get(&*name).filter(|p| p.id != conversation.id) else {
            linked.waits |= !conversations.contains_key(&*name);
            continue;
        };
        let told = told_call(conversation, parent);
        // No hook of the root describes this call. If the result of another child's call names this child, that call is
        // used.
        if told.as_ref().is_some_and(|key| !parent.delegations.contains_key(key))
            && let Some((parent, key)) = claims.of_sibling(conversation)
        {
            taken.insert((parent.clone(), key.into()));
            let link = Link::new(parent.clone(), Some(key.into()), confidence);
            linked.links.insert(conversation.id.clone(), link);
            continue;
        }
        let key = told.or_else(|| {
            let open = parents
                .entry(parent.id.clone())
                .or_insert_with(|| OpenDelegations::new(candidates(parent)));
            only_delegation(open, conversation)
        });
        if let Some(key) = &key {
            taken.insert((parent.id.clone(), key.clone()));
        }
        let mut link = Link::new(parent.id.clone(), key, confidence);
        // A call cannot be shown if no hook describes it.
        if link.key.as_ref().is_none_or(|key| !parent.delegations.contains_key(key)) {
            let turn = turn_of_child(parent, conversation).map(|turn| below_turn(turn));
            let is_told = link.key.is_some();
            *(if is_told { &mut link.key } else { &mut link.below }) = turn;
        }
        linked.links.insert(conversation.id.clone(), link);
    }
    guess(conversations, &mut linked, &mut taken);
    break_cycles(&mut linked.links);
    resume(conversations, &mut linked.links, &mut taken);
    linked.work += linked.links.len();
    linked
}

/// The parent that explicit ids or evidence name.
fn named_parent(child: &Conversation) -> Option<(Cow<'_, str>, (Confidence, LinkSource))> {
    if let Some(lineage) = child.lineage.as_ref().filter(|lineage| !lineage.parent.is_empty()) {
        return Some((lineage.parent.as_str().into(), (Confidence::Exact, LinkSource::Hook)));
    }
    if let Some((_, evidence)) = &child.evidence {
        return Some((evidence.parent.as_str().into(), (evidence.confidence, evidence.source)));
    }
    // `…/agent-transcripts/<parent>/subagents/<child>.jsonl`
    let path = child.transcript()?;
    if !path.contains("subagents") {
        return None;
    }
    let path = path.replace('\\', "/");
    let (folder, _) = path.rsplit_once("/subagents/")?;
    let parent = folder.rsplit('/').next()?.to_owned();
    Some((parent.into(), (Confidence::Transcript, LinkSource::TranscriptPath)))
}

/// The call that explicit ids or evidence name.
fn told_call(child: &Conversation, parent: &Conversation) -> Option<Box<str>> {
    if let Some(lineage) = &child.lineage {
        let subagent = lineage.subagent.as_str();
        return Some(parent.aliases.get(subagent).map_or(subagent, |key| &**key).into());
    }
    let (_, evidence) = child.evidence.as_ref()?;
    // A call could not be shown if no hook describes it.
    let told = |call: &&str| parent.delegations.contains_key(*call);
    evidence.call.as_deref().filter(told).map(Into::into)
}

/// The only delegation of a parent that was open when `child` began.
fn only_delegation(open: &OpenDelegations<'_>, child: &Conversation) -> Option<Box<str>> {
    let found = open.open_at(child.first, 2);
    (found.len() == 1).then(|| open.get(found[0]).key.into())
}

/// Links a child that ended and works again to a delegation that has no child of its own: the delegation resumed the
/// child.
fn resume(conversations: &Conversations, links: &mut Links, taken: &mut Taken) {
    let mut siblings: BTreeMap<Arc<str>, Vec<Arc<str>>> = BTreeMap::new();
    for (id, link) in &*links {
        let works_on = conversations.get(id).is_some_and(|child| child.turns.len() > 1);
        if link.key.is_some() && works_on {
            siblings.entry(link.parent.clone()).or_default().push(id.clone());
        }
    }
    for (parent, children) in siblings {
        let Some(parent) = conversations.get(&parent) else { continue };
        let free = OpenDelegations::new(candidates(parent).filter(|c| is_free(taken, c)));
        if free.len() == 0 {
            continue;
        }
        for id in children {
            let (Some(child), Some(link)) = (conversations.get(&id), links.get_mut(&id)) else {
                continue;
            };
            resume_child(parent, child, link, &free, taken);
        }
    }
}

fn resume_child(
    parent: &Conversation,
    child: &Conversation,
    link: &mut Link,
    free: &OpenDelegations<'_>,
    taken: &mut Taken,
) {
    let Some(key) = &link.key else { return };
    let own = parent.delegations.get(key).and_then(|own| Candidate::of(parent, key, own));
    let Some(mut ended) = own.map(|own| own.end) else { return };
    let first = child.turns.partition_point(|turn| turn.start < ended);
    for turn in &child.turns[first..] {
        if turn.start < ended {
            continue;
        }
        let open = free.open_at(turn.start, CROWD).into_iter().rev().map(|at| free.get(at));
        let mut later = open.filter(|next| next.start >= ended);
        let next = later.find(|c| is_free(taken, c));
        if let Some(next) = next {
            ended = next.end;
            link.resumed.push((next.start, next.key.into()));
            taken.insert((parent.id.clone(), next.key.into()));
        }
    }
}

fn is_free(taken: &Taken, delegation: &Candidate<'_>) -> bool {
    !taken.contains(&(delegation.parent.clone(), delegation.key.into()))
}

fn names_itself(child: &Conversation) -> bool {
    named_parent(child).is_some_and(|(name, _)| *name == *child.id)
}

/// An unproven child, and the indexes of delegations that fit it.
struct Guess<'a> {
    child: &'a Conversation,
    open: &'a OpenDelegations<'a>,
    workspace: usize,
    fits: Vec<usize>,
}

/// Links unproven children by workspace and time, if exactly one delegation fits.
fn guess(conversations: &Conversations, linked: &mut Linked, taken: &mut Taken) {
    let mut by_workspace: BTreeMap<Option<&Arc<str>>, Vec<Candidate<'_>>> = BTreeMap::new();
    for parent in conversations.values().filter(|c| !c.delegations.is_empty()) {
        let free = candidates(parent).filter(|c| is_free(taken, c));
        by_workspace.entry(parent.workspace()).or_default().extend(free);
        linked.work += parent.delegations.len();
    }
    if by_workspace.is_empty() {
        return;
    }
    let names: BTreeMap<Option<&Arc<str>>, usize> =
        by_workspace.keys().enumerate().map(|(index, name)| (*name, index)).collect();
    let open: Vec<OpenDelegations<'_>> = by_workspace
        .into_values()
        .map(|candidates| OpenDelegations::new(candidates.into_iter()))
        .collect();
    let mut guesses: Vec<Guess<'_>> = Vec::new();
    for child in conversations.values() {
        if child.root_only || linked.links.contains_key(&child.id) || child.count == 0 {
            continue;
        }
        // The child's own hooks name a different parent that has not arrived yet, or name the child itself.
        if child.lineage.as_ref().is_some_and(|lineage| !lineage.parent.is_empty())
            || names_itself(child)
        {
            continue;
        }
        let own = names.get(&child.workspace()).copied();
        let Some(workspace) = own.or_else(|| of_worktree(child, &names)) else { continue };
        let open = &open[workspace];
        let own =
            candidates(child).filter(|c| c.contains(child.first) && is_free(taken, c)).count();
        let count = open.count_at(child.first).saturating_sub(own);
        let mut fits = open.open_at(child.first, CROWD + own);
        fits.retain(|&at| *open.get(at).parent != child.id);
        linked.work += fits.len();
        if count > CROWD {
            undecided(conversations, child, open, (count, &fits), linked);
        } else if !fits.is_empty() {
            guesses.push(Guess { child, open, workspace, fits });
        }
    }
    guesses.sort_by(|a, b| (a.child.first, &a.child.id).cmp(&(b.child.first, &b.child.id)));
    decide(conversations, &mut guesses, linked, taken);
    for Guess { child, open, fits, .. } in guesses.iter().filter(|guess| !guess.fits.is_empty()) {
        undecided(conversations, child, open, (fits.len(), fits), linked);
    }
}

/// The workspace of the repository in whose worktree a child works, if exactly one workspace matches.
fn of_worktree(child: &Conversation, names: &BTreeMap<Option<&Arc<str>>, usize>) -> Option<usize> {
    let repository = path::worktrees_of(child.workspace()?)?;
    let is_its = |name: &Option<&Arc<str>>| name.is_some_and(|name| path::name(name) == repository);
    let mut fits = names.iter().filter(|(name, _)| is_its(name)).map(|(_, at)| *at);
    let only = fits.next()?;
    fits.next().is_none().then_some(only)
}

/// Assigns delegations to children. A child that fits only one delegation gets that delegation, which then fits no
/// other child. This may leave only one delegation for another child. If several children are ready, the first one is
/// next.
fn decide(
    conversations: &Conversations,
    guesses: &mut [Guess<'_>],
    linked: &mut Linked,
    taken: &mut Taken,
) {
    let mut wanted: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (index, Guess { workspace, fits, .. }) in guesses.iter().enumerate() {
        for &fit in fits {
            wanted.entry((*workspace, fit)).or_default().push(index);
        }
    }
    let mut todo: BTreeSet<usize> = (0..guesses.len()).collect();
    while let Some(index) = todo.pop_first() {
        let Guess { child, open, workspace, fits } = &mut guesses[index];
        fits.retain(|&at| runs(conversations, &linked.links, open.get(at).parent, child.first));
        if !narrow(child, open, fits) {
            continue;
        }
        let (only, workspace) = (fits[0], *workspace);
        fits.clear();
        let Candidate { parent, key, .. } = *open.get(only);
        taken.insert((parent.clone(), key.into()));
        let how = (Confidence::Tentative, LinkSource::Window);
        let link = Link::new(parent.clone(), Some(key.into()), how);
        linked.links.insert(child.id.clone(), link);
        for other in wanted.remove(&(workspace, only)).unwrap_or_default() {
            let fits = &mut guesses[other].fits;
            let before = fits.len();
            fits.retain(|&fit| fit != only);
            if fits.is_empty() {
                todo.remove(&other);
            } else if fits.len() < before {
                todo.insert(other);
            }
        }
    }
}

/// Whether the delegations above `conversation` were open at `at`. Unknown ancestors count as open. A subagent's own
/// delegations end with the subagent.
fn runs(
    conversations: &Conversations,
    links: &Links,
    conversation: &Arc<str>,
    at: Timestamp,
) -> bool {
    let above = |link: &&Link| links.get(&link.parent);
    let mut links = std::iter::successors(links.get(conversation), above).take(32);
    links.all(|link| {
        let parent = conversations.get(&link.parent);
        let key = link.key_at(at).filter(|key| turn_of_key(key).is_none());
        let known = parent
            .zip(key)
            .and_then(|(parent, key)| Candidate::of(parent, key, parent.delegations.get(key)?));
        known.is_none_or(|delegation| at <= delegation.end)
    })
}

/// Records that several delegations fit a child. If all of them have one parent, or lie below one root, the child is
/// linked there. Otherwise it remains a root.
fn undecided(
    conversations: &Conversations,
    child: &Conversation,
    open: &OpenDelegations<'_>,
    (count, fits): (usize, &[usize]),
    linked: &mut Linked,
) {
    let mut last = fits.to_vec();
    last.sort_unstable_by(|a, b| b.cmp(a));
    last.truncate(MAX_CANDIDATES);
    let place = |&at: &usize| (open.get(at).parent.clone(), Box::from(open.get(at).key));
    let mut kept: Vec<_> = last.iter().map(place).collect();
    kept.sort_unstable();
    let newest = last.first().map(|&at| (open.get(at).parent, open.get(at).key));
    let candidates = Candidates { count, kept };
    let mut parent = open.get(fits[0]).parent;
    if fits.iter().any(|&at| open.get(at).parent != parent) {
        let top = |at: &usize| top(&linked.links, open.get(*at).parent);
        parent = top(&fits[0]);
        if *parent == child.id || fits.iter().any(|at| top(at) != parent) {
            linked.unclear.insert(child.id.clone(), candidates);
            return;
        }
    }
    let below = conversations.get(parent).and_then(|own| {
        let newest = newest.filter(|(other, _)| *other == parent);
        let home = newest.and_then(|(_, key)| own.home(key));
        home.or_else(|| turn_of_child(own, child).cloned()).map(|turn| below_turn(&turn))
    });
    let link = Link::new(parent.clone(), None, (Confidence::Ambiguous, LinkSource::Window));
    linked.links.insert(child.id.clone(), Link { candidates, below, ..link });
}

/// The topmost ancestor of a conversation. The search stops at the maximum chain length.
fn top<'a>(links: &'a Links, conversation: &'a Arc<str>) -> &'a Arc<str> {
    let above = |at: &&'a Arc<str>| links.get(*at).map(|link| &link.parent);
    std::iter::successors(Some(conversation), above).take(32).last().unwrap_or(conversation)
}

/// Drops delegations with a different model, and delegations that ended while the child still worked. Returns whether
/// any is left.
fn narrow(child: &Conversation, open: &OpenDelegations<'_>, fits: &mut Vec<usize>) -> bool {
    if fits.len() > 1 {
        let model = |at: &usize| open.get(*at).delegation.model.as_deref();
        let label = child.label();
        let differs = |at: &usize| {
            label.zip(model(at)).is_some_and(|(label, model)| !is_one_model(label, model))
        };
        if fits.iter().any(|at| !differs(at)) {
            fits.retain(|at| !differs(at));
        }
        // The child works until its last hook, without repeated deliveries. [`DISORDER`] is subtracted because hooks of
        // one moment may arrive in any order.
        let last = child.last_sign().plus(-DISORDER);
        let stopped = |at: &usize| open.get(*at).delegation.stop.is_some_and(|at| at < last);
        if fits.iter().any(|at| !stopped(at)) {
            fits.retain(|at| !stopped(at));
        }
        // The child's model label is evidence for a delegation only if the start of every delegation named a model.
        let agrees = |at: &usize| label.is_some() && model(at) == label;
        if fits.iter().all(|at| model(at).is_some())
            && fits.iter().filter(|at| agrees(at)).count() == 1
        {
            fits.retain(agrees);
        }
    }
    fits.len() == 1
}

/// Whether two labels may mean one model. Hooks of one turn name the model with and without its effort.
fn is_one_model(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let rest = long.strip_prefix(short);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Cuts a circle of parents, which only forged hooks can make, at its smallest id. A chain of more than 32 is cut, too.
fn break_cycles(links: &mut Links) {
    let is_nested = |link: &Link| links.contains_key(&link.parent);
    let nested = links.iter().filter(|(_, link)| is_nested(link)).map(|(child, _)| child.clone());
    for child in nested.collect::<Vec<_>>() {
        let mut at = child.clone();
        let mut depth = 0;
        while let Some(link) = links.get(&at) {
            at = link.parent.clone();
            depth += 1;
            if at == child || depth > 32 {
                links.remove(&child);
                break;
            }
        }
    }
}

/// The topmost ancestor of a conversation.
pub(crate) fn root<'a>(links: &'a Links, conversation: &'a Arc<str>) -> &'a Arc<str> {
    let mut at = conversation;
    while let Some(link) = links.get(at) {
        at = &link.parent;
    }
    at
}
