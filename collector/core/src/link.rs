//! Whose child a conversation is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::Timestamp;
use crate::conversation::{Conversation, Delegation};
use crate::event::{Confidence, LinkSource};

/// A child conversation's place below its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) parent: Arc<str>,
    /// Subagent key in the parent; `None` while several are possible.
    pub(crate) key: Option<Box<str>>,
    pub(crate) confidence: Confidence,
    pub(crate) source: LinkSource,
    /// What else was possible, when ambiguous.
    pub(crate) candidates: Candidates,
    /// Later delegations of the parent that went on with the same child, by start.
    pub(crate) resumed: Vec<(Timestamp, Box<str>)>,
}

impl Link {
    /// All delegations the child worked for, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Box<str>> {
        self.key.iter().chain(self.resumed.iter().map(|(_, key)| key))
    }

    /// The delegation a turn that began at `at` belongs to.
    pub(crate) fn key_at(&self, at: Timestamp) -> Option<&str> {
        let later = self.resumed.partition_point(|(start, _)| *start <= at);
        let resumed = later.checked_sub(1).map(|last| &self.resumed[last].1);
        resumed.or(self.key.as_ref()).map(|key| &**key)
    }
}

/// What a child may belong to.
type Candidates = Vec<(Arc<str>, Box<str>)>;

pub(crate) type Conversations = BTreeMap<Arc<str>, Conversation>;
pub(crate) type Links = BTreeMap<Arc<str>, Link>;
/// Children whose candidates have different parents: each stays a root of its own, and says so.
pub(crate) type Unclear = BTreeMap<Arc<str>, Candidates>;
/// Children by parent and subagent key.
pub(crate) type Children = BTreeMap<(Arc<str>, Box<str>), Vec<Arc<str>>>;

/// A delegation that may have a child.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    parent: &'a Arc<str>,
    key: &'a str,
    delegation: &'a Delegation,
    start: Timestamp,
    end: Timestamp,
}

/// Links all children among `conversations`. A pure function of what they hold.
pub(crate) fn link(conversations: &Conversations) -> (Links, Unclear) {
    let mut links = Links::new();
    let mut unclear = Unclear::new();
    let mut taken: BTreeSet<(Arc<str>, Box<str>)> = BTreeSet::new();
    for conversation in conversations.values() {
        let Some(link) = proven(conversation, conversations) else { continue };
        if let Some(key) = &link.key {
            taken.insert((link.parent.clone(), key.clone()));
        }
        links.insert(conversation.id.clone(), link);
    }
    guess(conversations, &mut links, &mut unclear, &mut taken);
    links.retain(|child, link| conversations.contains_key(&link.parent) && *child != link.parent);
    break_cycles(&mut links);
    resume(conversations, &mut links, &mut taken);
    (links, unclear)
}

/// A delegation that no child of its own answers, while one that had ended works again: the call resumed that child.
fn resume(
    conversations: &Conversations,
    links: &mut Links,
    taken: &mut BTreeSet<(Arc<str>, Box<str>)>,
) {
    for (id, link) in links.iter_mut() {
        let (Some(key), Some(parent)) = (&link.key, conversations.get(&link.parent)) else {
            continue;
        };
        let Some(child) = conversations.get(id).filter(|child| child.turns.len() > 1) else {
            continue;
        };
        let Some(mut ended) = candidates(parent).find(|c| *c.key == **key).map(|c| c.end) else {
            continue;
        };
        let mut later: Vec<Candidate<'_>> =
            candidates(parent).filter(|c| c.start >= ended).collect();
        later.sort_by_key(|c| c.start);
        for next in later {
            let place = (parent.id.clone(), Box::from(next.key));
            let works = |at: Timestamp| next.start <= at && at <= next.end;
            if next.start >= ended
                && !taken.contains(&place)
                && child.turns.iter().any(|turn| works(turn.start))
            {
                ended = next.end;
                link.resumed.push((next.start, place.1.clone()));
                taken.insert(place);
            }
        }
    }
}

/// A link by explicit ids or by evidence.
fn proven(child: &Conversation, all: &Conversations) -> Option<Link> {
    if let Some(lineage) = &child.lineage {
        return Some(Link {
            parent: lineage.parent.as_str().into(),
            key: Some(lineage.subagent.as_str().into()),
            confidence: Confidence::Exact,
            source: LinkSource::Hook,
            candidates: Vec::new(),
            resumed: Vec::new(),
        });
    }
    if let Some((_, evidence)) = &child.evidence {
        let parent = all.get(evidence.parent.as_str())?;
        // A call that no hook told of would be a place nobody can show.
        let told = |call: &&str| parent.delegations.contains_key(*call);
        let call = evidence.call.as_deref().filter(told).map(Into::into);
        let key = call.or_else(|| only_delegation(parent, child));
        return Some(Link {
            parent: parent.id.clone(),
            key,
            confidence: evidence.confidence,
            source: evidence.source,
            candidates: Vec::new(),
            resumed: Vec::new(),
        });
    }
    // `…/agent-transcripts/<parent>/subagents/<child>.jsonl`
    let path = child.transcript()?.replace('\\', "/");
    let (folder, _) = path.rsplit_once("/subagents/")?;
    let parent = all.get(folder.rsplit('/').next()?)?;
    Some(Link {
        parent: parent.id.clone(),
        key: only_delegation(parent, child),
        confidence: Confidence::Transcript,
        source: LinkSource::TranscriptPath,
        candidates: Vec::new(),
        resumed: Vec::new(),
    })
}

/// The one delegation of `parent` that was open when `child` began.
fn only_delegation(parent: &Conversation, child: &Conversation) -> Option<Box<str>> {
    let mut open = candidates(parent).filter(|c| c.start <= child.first && child.first <= c.end);
    let only = open.next()?;
    open.next().is_none().then(|| only.key.into())
}

fn candidates(parent: &Conversation) -> impl Iterator<Item = Candidate<'_>> {
    parent.delegations.iter().filter_map(move |(key, delegation)| {
        let start = delegation.start.or(delegation.computed_start).or(delegation.stop)?;
        let end = [delegation.stop, parent.over(start, delegation)].into_iter().flatten().min();
        let end = end.unwrap_or(Timestamp(i64::MAX));
        Some(Candidate { parent: &parent.id, key, delegation, start, end })
    })
}

/// Links what looks like a child and nothing proves: by workspace and time, while exactly one delegation fits.
fn guess(
    conversations: &Conversations,
    links: &mut Links,
    unclear: &mut Unclear,
    taken: &mut BTreeSet<(Arc<str>, Box<str>)>,
) {
    let mut open: Vec<(&Conversation, Vec<Candidate<'_>>)> = Vec::new();
    let parents: Vec<&Conversation> =
        conversations.values().filter(|c| !c.delegations.is_empty()).collect();
    if parents.is_empty() {
        return;
    }
    for child in conversations.values() {
        if child.root_only || links.contains_key(&child.id) || child.count == 0 {
            continue;
        }
        let fits: Vec<Candidate<'_>> = parents
            .iter()
            .filter(|parent| parent.id != child.id && parent.workspace() == child.workspace())
            .flat_map(|parent| candidates(parent))
            .filter(|c| c.start <= child.first && child.first <= c.end)
            .filter(|c| !taken.contains(&(c.parent.clone(), Box::from(c.key))))
            .collect();
        if !fits.is_empty() {
            open.push((child, fits));
        }
    }
    open.sort_by_key(|(child, _)| (child.first, child.id.clone()));
    while let Some(at) = open.iter_mut().position(|(child, fits)| narrow(child, fits)) {
        let (child, fits) = open.remove(at);
        let only = fits[0];
        taken.insert((only.parent.clone(), only.key.into()));
        links.insert(
            child.id.clone(),
            Link {
                parent: only.parent.clone(),
                key: Some(only.key.into()),
                confidence: Confidence::Tentative,
                source: LinkSource::Window,
                candidates: Vec::new(),
                resumed: Vec::new(),
            },
        );
        for (_, fits) in &mut open {
            fits.retain(|c| c.parent != only.parent || c.key != only.key);
        }
        open.retain(|(_, fits)| !fits.is_empty());
    }
    for (child, fits) in open {
        let all = fits.iter().map(|c| (c.parent.clone(), c.key.into())).collect();
        let parent = fits[0].parent;
        if fits.iter().any(|c| c.parent != parent) {
            unclear.insert(child.id.clone(), all);
            continue;
        }
        links.insert(
            child.id.clone(),
            Link {
                parent: parent.clone(),
                key: None,
                confidence: Confidence::Ambiguous,
                source: LinkSource::Window,
                candidates: all,
                resumed: Vec::new(),
            },
        );
    }
}

/// Drops delegations that ended while the child still worked, and those of another model. True if one is left.
fn narrow(child: &Conversation, fits: &mut Vec<Candidate<'_>>) -> bool {
    if fits.len() > 1 {
        let stopped = |c: &Candidate<'_>| c.delegation.stop.is_some_and(|stop| stop < child.last);
        if fits.iter().any(|c| !stopped(c)) {
            fits.retain(|c| !stopped(c));
        }
        // The label of the child supports one of them when every start named its model.
        let label = child.label();
        let agrees = |c: &Candidate<'_>| label.is_some() && c.delegation.model.as_deref() == label;
        if fits.iter().all(|c| c.delegation.model.is_some())
            && fits.iter().filter(|c| agrees(c)).count() == 1
        {
            fits.retain(agrees);
        }
    }
    fits.len() == 1
}

/// A forged circle of parents is cut at its smallest id.
fn break_cycles(links: &mut Links) {
    let children: Vec<Arc<str>> = links.keys().cloned().collect();
    for child in children {
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
