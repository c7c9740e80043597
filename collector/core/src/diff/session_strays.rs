//! Reports children that fit several delegations. Each of their turns has its own trace.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::assemble::draft_turn::grow;
use crate::correlate::snapshot::World;
use crate::diff::group::Group;
use crate::diff::stray::Stray;
use crate::diff::trace_position::{Place, Possible, fingerprint};
use crate::diff::turn::{Shown, tell};
use crate::model::change::Change;
use crate::model::id::TraceId;

impl Group {
    /// Reports children that fit several delegations, each turn in its own trace. Returns the number of items read.
    pub(super) fn tell_strays(
        &mut self,
        id: &Arc<str>,
        world: World<'_>,
        strays: &[Arc<str>],
        gone: &mut Shown,
        changes: &mut VecDeque<Change>,
    ) -> usize {
        let mut old = std::mem::take(&mut self.strays);
        let mut work = strays.len();
        for child in strays {
            let (Some(conversation), Some(link)) =
                (world.conversations.get(child), world.links.get(child))
            else {
                continue;
            };
            let candidates = link.candidates.fingerprint(world.conversations);
            work += link.candidates.kept.len();
            for turn in &conversation.turns {
                let key = (child.clone(), turn.generation.clone());
                let mut old = old.remove(&key);
                let is_same =
                    |old: &mut Stray| old.is_current(conversation, candidates, self.clock);
                if let Some(same) = old.take_if(is_same) {
                    self.strays.insert(key, same);
                    continue;
                }
                let place = Place {
                    root: id.clone(),
                    trace: TraceId::derive("generation", child, &turn.generation),
                    index: 0,
                    previous: None,
                    segment: 0,
                    candidates: Some(Possible::of(&link.candidates, world)),
                    stray: true,
                };
                let made_of = fingerprint(conversation, turn, &place);
                let tree = grow(world, conversation, turn, None);
                work += tree.nodes.len() + tree.facts;
                let state =
                    tell(&tree, world, (place, made_of), old.map(|old| old.state), gone, changes);
                self.strays.insert(key, Stray::new(state, conversation, candidates));
            }
        }
        for stray in old.values_mut() {
            gone.extend(std::mem::take(&mut stray.state.shown));
        }
        work
    }
}
