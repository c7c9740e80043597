//! Remembers the turn in which a call was first named.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::correlate::fact::Fact;
use crate::correlate::tool_call::tool_facts;
use crate::model::event::EventKind;
use crate::model::time::Timestamp;

/// Time and generation of the first hook that named a call, by call id.
pub(super) type Homes = BTreeMap<Arc<str>, (Timestamp, Arc<str>)>;

/// Notes the generation in which a hook names its call. The first one counts.
pub(super) fn note_home(homes: &mut Homes, fact: &Fact, generation: &Arc<str>) {
    let Some(id) = call_id(&fact.kind) else { return };
    match homes.get_mut(id) {
        Some(home) if (home.0, &home.1) <= (fact.at, generation) => {}
        Some(home) => *home = (fact.at, generation.clone()),
        None => {
            homes.insert(id.into(), (fact.at, generation.clone()));
        }
    }
}

/// The call or subagent id an event carries.
pub(crate) fn call_id(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::SubagentStart(agent) | EventKind::SubagentStop(agent) => agent.named(),
        kind => tool_facts(kind)?.id.as_deref(),
    }
}
