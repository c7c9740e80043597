//! Asks the collector to look for evidence on disk.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::assemble::draft::{Tree, What};
use crate::correlate::conversation::Conversation;
use crate::correlate::snapshot::World;
use crate::diff::group::Group;
use crate::model::change::{Change, Question};
use crate::model::event::Confidence;
use crate::model::fingerprint::{Fingerprint, Made};

impl Group {
    /// Asks for evidence about subagents whose conversation is not proven, when they stop and when the turn ends. For
    /// each conversation and turn it asks once, and again only if something about the subagents changed.
    pub(super) fn ask(
        &mut self,
        tree: &Tree<'_>,
        world: World<'_>,
        changes: &mut VecDeque<Change>,
    ) {
        struct Unproven<'a> {
            parent: &'a Conversation,
            occasion: Fingerprint,
            candidates: Vec<Arc<str>>,
        }
        let mut open: BTreeMap<(&Arc<str>, &Arc<str>), Unproven<'_>> = BTreeMap::new();
        for node in &tree.nodes {
            let What::Agent(agent, link, child) = &node.what else { continue };
            let proven = link.is_some_and(|link| link.confidence >= Confidence::Transcript);
            let unasked = agent.stop.is_none() && tree.close.is_none();
            if proven || unasked || node.is_loose() {
                continue;
            }
            let parent = node.conversation;
            let state = u64::from(agent.stop.is_some()) * 2 + u64::from(tree.close.is_some());
            let unproven = open.entry((&parent.id, &node.generation)).or_insert_with(|| Unproven {
                parent,
                occasion: Fingerprint::of(Made::Question),
                candidates: Vec::new(),
            });
            unproven.occasion = unproven.occasion.and(node.made_of).with(state);
            unproven.candidates.extend(child.iter().map(|c| c.id.clone()));
        }
        for ((id, generation), Unproven { parent, occasion, mut candidates }) in open {
            let asked = self.asked.insert((id.clone(), generation.clone()), occasion);
            if asked.is_some_and(|asked| occasion.is(asked)) {
                continue;
            }
            let others = world.perhaps_children.iter();
            let others = others.filter_map(|id| world.conversations.get(id)).filter(|other| {
                !other.root_only
                    && other.workspace() == parent.workspace()
                    && world
                        .links
                        .get(&other.id)
                        .is_none_or(|l| l.confidence < Confidence::Transcript || l.key.is_none())
            });
            for other in others.take(64) {
                if other.id != parent.id && !candidates.contains(&other.id) {
                    candidates.push(other.id.clone());
                }
            }
            changes.push_back(Change::Ask(Question {
                parent: id.clone(),
                transcript_path: parent.transcript().map(ToString::to_string).unwrap_or_default(),
                candidates,
            }));
        }
    }
}
