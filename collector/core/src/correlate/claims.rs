//! Parents that hooks name explicitly: a stop names its child, and a child's hooks name the call.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::correlate::conversation::Conversation;
use crate::model::time::Timestamp;

/// Delegations by the ids that other hooks use for them: the child conversation in a `subagentStop`, the call in the
/// child's hooks.
#[derive(Default)]
pub(crate) struct Claims<'a> {
    /// For each child that a stop names: the parent, the delegation's key, and the time of the stop.
    by_child: BTreeMap<&'a str, (&'a Arc<str>, &'a str, Timestamp)>,
    /// For each call: the conversation that made it. `None` if several conversations have a call with this id.
    by_call: BTreeMap<&'a str, Option<&'a Arc<str>>>,
    /// Delegations of children. The key is the root that the child's hooks name, and the subagent that the call's
    /// result names.
    by_result: BTreeMap<(&'a str, &'a str), (&'a Arc<str>, &'a str)>,
}

impl<'a> Claims<'a> {
    pub(crate) fn of(conversations: impl Iterator<Item = &'a Conversation> + Clone) -> Self {
        let mut claims = Self::default();
        let asks = |child: &Conversation| lineage_by_call(child).is_some();
        let by_call = conversations.clone().any(asks);
        for parent in conversations.filter(|parent| !parent.delegations.is_empty()) {
            if parent.names_children {
                let named = parent.delegations.iter().filter_map(|(key, one)| {
                    let child = one.child.as_deref().filter(|child| *child != &*parent.id)?;
                    Some((child, (&parent.id, &**key, one.stop?)))
                });
                claims.by_child.extend(named);
            }
            if let Some(lineage) = &parent.lineage {
                let named = parent.delegations.iter().filter_map(|(key, one)| {
                    let named = (lineage.parent.as_str(), one.subagent.as_deref()?);
                    Some((named, (&parent.id, &**key)))
                });
                claims.by_result.extend(named);
            }
            if by_call {
                for key in parent.delegations.keys() {
                    let place = claims.by_call.entry(key).or_insert(Some(&parent.id));
                    *place = place.filter(|other| **other == parent.id);
                }
            }
        }
        claims
    }

    pub(crate) fn of_child(&self, child: &'a Conversation) -> Option<(&'a Arc<str>, &'a str)> {
        if let Some(&(parent, key, said)) = self.by_child.get(&*child.id)
            && said.since(child.last) <= child.session_idle_ns
        {
            return Some((parent, key));
        }
        let call = lineage_by_call(child)?;
        let parent = self.by_call.get(call).copied().flatten()?;
        (**parent != *child.id).then_some((parent, call))
    }

    /// The delegation, made by another child of the same root, whose result names `child`.
    pub(crate) fn of_sibling(&self, child: &'a Conversation) -> Option<(&'a Arc<str>, &'a str)> {
        let lineage = child.lineage.as_ref()?;
        let named = (lineage.parent.as_str(), lineage.subagent.as_str());
        let (parent, key) = *self.by_result.get(&named)?;
        (**parent != *child.id).then_some((parent, key))
    }
}

/// The call that a child's own hooks name. `None` if these hooks also name the parent conversation.
fn lineage_by_call(child: &Conversation) -> Option<&str> {
    let lineage = child.lineage.as_ref().filter(|lineage| lineage.parent.is_empty())?;
    Some(&lineage.subagent)
}
