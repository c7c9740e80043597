//! Finds delegations by the period in which their child may begin.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::correlate::conversation::Conversation;
use crate::correlate::delegation::Delegation;
use crate::model::time::Timestamp;
use crate::model::tolerance::AT_ONCE;

/// A delegation that may have a child.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) parent: &'a Arc<str>,
    pub(crate) key: &'a str,
    pub(crate) delegation: &'a Delegation,
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
}

impl<'a> Candidate<'a> {
    /// The delegation `key` of `parent`. `None` if no hook says when it ran.
    pub(crate) fn of(
        parent: &'a Conversation,
        key: &'a str,
        delegation: &'a Delegation,
    ) -> Option<Self> {
        let start = delegation.start.or(delegation.computed_start).or(delegation.stop)?;
        // A reported end proves that the delegation ran until then, even beyond its turn. An end proves nothing if it
        // comes so late that a child of that time would no longer be in memory.
        let over = parent.over(start, delegation);
        let end = match (delegation.stop, over) {
            (Some(stop), Some(over)) if stop.since(over) > parent.session_idle_ns => over,
            (Some(stop), _) => stop,
            // No hook tells when the delegation ended. It is assumed to end when the session would be idle: a child
            // that begins later belongs to another delegation.
            (None, over) => over.unwrap_or(start.plus(parent.session_idle_ns)),
        };
        Some(Self { parent: &parent.id, key, delegation, start, end })
    }

    /// Ends a delegation when the same work is requested a second time, if nothing shows that the first request ran. In
    /// that case the first request was denied. A reported end does not show that it ran, if the end arrives later than
    /// the session would have ended.
    fn tried_again(mut self, parent: &Conversation, starts: &Starts<'_>) -> Self {
        if is_unproven(parent, self.delegation)
            && !self.delegation.background
            && let Some(again) = starts.next(self.delegation, self.start)
            && self.delegation.stop.is_none_or(|stop| stop.since(again) > parent.session_idle_ns)
        {
            self.end = self.end.min(again);
        }
        self
    }

    pub(crate) fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at <= self.end
    }
}

/// All delegations of a conversation.
pub(crate) fn candidates(parent: &Conversation) -> impl Iterator<Item = Candidate<'_>> {
    let starts = Starts::of(parent);
    let all = parent.delegations.iter();
    all.filter_map(move |(key, delegation)| {
        Some(Candidate::of(parent, key, delegation)?.tried_again(parent, &starts))
    })
}

/// Whether nothing proves that a delegation ran: it has no end, or its end came later than its session would have
/// ended.
fn is_unproven(parent: &Conversation, delegation: &Delegation) -> bool {
    let start = delegation.start;
    delegation
        .stop
        .is_none_or(|stop| start.is_some_and(|start| stop.since(start) > parent.session_idle_ns))
}

/// Times at which equal work was delegated, in order.
struct Starts<'a> {
    by_task: BTreeMap<(u64, Option<&'a str>), Vec<Timestamp>>,
}

impl<'a> Starts<'a> {
    fn of(parent: &'a Conversation) -> Self {
        let mut by_task: BTreeMap<_, Vec<Timestamp>> = BTreeMap::new();
        if parent.delegations.values().any(|delegation| is_unproven(parent, delegation)) {
            for delegation in parent.delegations.values().filter(|one| one.task != 0) {
                let list = by_task.entry((delegation.task, delegation.agent.as_deref()));
                list.or_default().extend(delegation.start);
            }
        }
        by_task.values_mut().for_each(|starts| starts.sort_unstable());
        Self { by_task }
    }

    /// When the same work was requested again after `start`, in a later answer of the model.
    fn next(&self, delegation: &Delegation, start: Timestamp) -> Option<Timestamp> {
        let starts = self.by_task.get(&(delegation.task, delegation.agent.as_deref()))?;
        starts.get(starts.partition_point(|at| *at < start.plus(AT_ONCE))).copied()
    }
}

/// Delegations, ordered so that those open at a time are found without reading the others.
#[derive(Default)]
pub(crate) struct OpenDelegations<'a> {
    /// Delegations in the order of start, parent and key.
    list: Vec<Candidate<'a>>,
    /// All ends, sorted.
    ends: Vec<Timestamp>,
    /// A binary tree over `list` as an array: the latest end in each part of the list.
    latest: Vec<Timestamp>,
}

impl<'a> OpenDelegations<'a> {
    pub(crate) fn new(candidates: impl Iterator<Item = Candidate<'a>>) -> Self {
        // A delegation that ends before it starts is never open.
        let mut list: Vec<Candidate<'a>> = candidates.filter(|c| c.start <= c.end).collect();
        list.sort_by(|a, b| (a.start, a.parent, a.key).cmp(&(b.start, b.parent, b.key)));
        let mut ends: Vec<Timestamp> = list.iter().map(|c| c.end).collect();
        let size = list.len().next_power_of_two();
        let mut latest = vec![Timestamp(i64::MIN); size];
        latest.extend(&ends);
        latest.resize(2 * size, Timestamp(i64::MIN));
        for node in (1..size).rev() {
            latest[node] = latest[2 * node].max(latest[2 * node + 1]);
        }
        ends.sort_unstable();
        Self { list, ends, latest }
    }

    pub(crate) fn get(&self, index: usize) -> &Candidate<'a> {
        &self.list[index]
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Number of delegations open at `at`.
    pub(crate) fn count_at(&self, at: Timestamp) -> usize {
        let begun = self.list.partition_point(|c| c.start <= at);
        begun - self.ends.partition_point(|end| *end < at)
    }

    /// Indexes of delegations open at `at`: the `most` that began last, newest first.
    pub(crate) fn open_at(&self, at: Timestamp, most: usize) -> Vec<usize> {
        let begun = self.list.partition_point(|c| c.start <= at);
        let size = self.latest.len() / 2;
        let mut found = Vec::new();
        // Parts of the list, by node and first index; the rightmost is on top.
        let mut parts = vec![(1_usize, 0_usize, size)];
        while let Some((node, first, length)) = parts.pop() {
            if found.len() == most {
                break;
            }
            if first >= begun || self.latest[node] < at {
                continue;
            }
            if length == 1 {
                found.push(first);
                continue;
            }
            let half = length / 2;
            parts.push((2 * node, first, half));
            parts.push((2 * node + 1, first + half, half));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_found_as_by_looking_at_all() {
        let (parent, delegation) = (Arc::<str>::from("p"), Delegation::default());
        let spans = [(0, 9), (1, 3), (2, i64::MAX), (2, 2), (5, 4), (5, 6), (8, 8)];
        let candidate = |&(start, end): &(i64, i64)| Candidate {
            parent: &parent,
            key: "",
            delegation: &delegation,
            start: Timestamp(start),
            end: Timestamp(end),
        };
        for count in 0..=spans.len() {
            let all = OpenDelegations::new(spans[..count].iter().map(candidate));
            for at in (-1..11).map(Timestamp) {
                let mut open: Vec<Timestamp> = spans[..count]
                    .iter()
                    .map(candidate)
                    .filter(|c| c.contains(at))
                    .map(|c| c.end)
                    .collect();
                open.sort_unstable();
                let found = all.open_at(at, 99);
                assert!(found.is_sorted_by(|a, b| a > b), "{found:?}");
                let mut ends: Vec<Timestamp> = found.iter().map(|&i| all.get(i).end).collect();
                ends.sort_unstable();
                assert_eq!((ends, all.count_at(at)), (open.clone(), open.len()), "at {at:?}");
                let few = all.open_at(at, 2);
                assert_eq!(few, found[..found.len().min(2)], "at {at:?}");
            }
        }
    }
}
