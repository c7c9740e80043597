//! Computes where a turn's time went, by a sweep over its leaf nodes.

use crate::assemble::draft::{Node, Tree, What};
use crate::assemble::tool_span::{hook_part, wait_ms};
use crate::model::summary::Parts;
use crate::model::time::Timestamp;
use crate::model::time::nanos;
use crate::model::tool::ToolClass;

/// Index of each kind of part. `SUBAGENT` counts only while none of the subagent's own leaves runs.
const THINKING: usize = 0;
const TOOLS: usize = 1;
const SHELL: usize = 2;
const MCP: usize = 3;
const EDITS: usize = 4;
const WAIT: usize = 5;
const HOOKS: usize = 6;
const RESPONDING: usize = 7;
const SUBAGENT: usize = 8;
const KINDS: usize = 9;

/// Divides the time from `start` to `end` among the leaf nodes. Parallel leaves get equal shares, so the parts add up
/// to the whole.
pub(crate) fn parts(tree: &Tree<'_>, start: Timestamp, end: Timestamp) -> Parts {
    let Some((window, swept)) = tree.window.and_then(|w| Some((w, w.swept?))) else {
        return sweep_nodes(tree, start, end);
    };
    let mut parts = window.parts;
    parts += sweep_nodes(tree, swept, end);
    parts
}

/// Start of a node's first leaf; `None` if it has none.
pub(crate) fn first_instant(node: &Node<'_>) -> Option<Timestamp> {
    match &node.what {
        What::Thought(..) | What::Agent(..) | What::Response(..) => Some(node.start),
        What::Call(call) if kind_of(call.class()).is_some() => {
            Some(node.start.plus(-wait_ms(call).map_or(0, nanos)))
        }
        _ => None,
    }
}

/// Divides one period among the leaves of these nodes.
pub(crate) fn sweep_nodes(tree: &Tree<'_>, start: Timestamp, end: Timestamp) -> Parts {
    let mut edges: Vec<(Timestamp, usize, i64)> = Vec::with_capacity(tree.nodes.len() * 2);
    let mut leaf = |from: Timestamp, to: Timestamp, kind: usize| {
        let (from, to) = (from.max(start), to.min(end));
        if from < to {
            edges.push((from, kind, 1));
            edges.push((to, kind, -1));
        }
    };
    // A node of unknown duration gets no time.
    for node in tree.nodes.iter().filter(|node| !(node.incomplete && node.end.is_some())) {
        let until = node.end.map_or(end, |end| end.at);
        match &node.what {
            What::Thought(..) => leaf(node.start, until, THINKING),
            What::Response(..) => leaf(node.start, until, RESPONDING),
            What::Agent(..) => leaf(node.start, until, SUBAGENT),
            What::Call(call) => {
                if let Some(kind) = kind_of(call.class()) {
                    let mut from = node.start;
                    // While an MCP server asks a person, its call waits for the answer.
                    let asks = if kind == MCP { &*tree.reading.questions } else { &[] };
                    for &(asked, answered) in asks.iter().filter(|(asked, _)| *asked >= node.start)
                    {
                        let answered = answered.unwrap_or(until).min(until);
                        leaf(from, asked.min(until), kind);
                        leaf(asked.max(from), answered, WAIT);
                        from = from.max(answered);
                    }
                    leaf(from, until, kind);
                    if let Some(wait) = wait_ms(call) {
                        let from = node.start.plus(-nanos(wait));
                        let asked =
                            from.plus(hook_part(call, wait).map_or(0, nanos)).min(node.start);
                        leaf(from, asked, HOOKS);
                        leaf(asked, node.start, WAIT);
                    }
                }
            }
            _ => {}
        }
    }
    edges.sort_unstable();
    sweep(&edges, start, end)
}

fn kind_of(class: ToolClass) -> Option<usize> {
    match class {
        ToolClass::Shell => Some(SHELL),
        ToolClass::Mcp => Some(MCP),
        ToolClass::Edit | ToolClass::Delete => Some(EDITS),
        ToolClass::Task => None,
        ToolClass::Question => Some(WAIT),
        _ => Some(TOOLS),
    }
}

fn sweep(edges: &[(Timestamp, usize, i64)], start: Timestamp, end: Timestamp) -> Parts {
    let mut active = [0_i64; KINDS];
    let mut sums = [0_i64; KINDS];
    let mut at = start;
    let mut spent = 0_i64;
    for &(time, kind, change) in edges {
        spent += share(&active, time.since(at), &mut sums);
        at = time;
        active[kind] += change;
    }
    Parts {
        thinking: sums[THINKING],
        responding: sums[RESPONDING],
        tools: sums[TOOLS],
        shell: sums[SHELL],
        mcp: sums[MCP],
        edits: sums[EDITS],
        subagent: sums[SUBAGENT],
        wait: sums[WAIT],
        hooks: sums[HOOKS],
        other: end.since(start).max(0).saturating_sub(spent),
    }
}

/// Gives each active leaf its share of `length`. The first one also gets the remainder. Returns the distributed time.
fn share(active: &[i64; KINDS], length: i64, sums: &mut [i64; KINDS]) -> i64 {
    let leaves: i64 = active[..SUBAGENT].iter().sum();
    if length <= 0 || (leaves == 0 && active[SUBAGENT] == 0) {
        return 0;
    }
    if leaves == 0 {
        sums[SUBAGENT] += length;
        return length;
    }
    let mut rest = length;
    if leaves == 1 {
        // In the usual case there is a single leaf. It gets everything, and no division is needed.
        rest = 0;
        let kind = active[..SUBAGENT].iter().position(|count| *count == 1);
        sums[kind.unwrap_or_default()] += length;
    }
    for kind in (0..SUBAGENT).rev().filter(|_| leaves > 1) {
        let given = (i128::from(length) * i128::from(active[kind]) / i128::from(leaves)) as i64;
        sums[kind] += given;
        rest -= given;
    }
    let first = active[..SUBAGENT].iter().position(|count| *count > 0).unwrap_or_default();
    sums[first] += rest;
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_time_is_shared_and_the_parts_add_up() {
        let edge = |at, kind, change| (Timestamp(at), kind, change);
        let mut edges = vec![
            edge(10, SUBAGENT, 1),
            edge(20, TOOLS, 1),
            edge(20, TOOLS, 1),
            edge(30, SHELL, 1),
            edge(41, TOOLS, -1),
            edge(41, TOOLS, -1),
            edge(50, SHELL, -1),
            edge(60, SUBAGENT, -1),
        ];
        edges.sort_unstable();
        let parts = sweep(&edges, Timestamp(0), Timestamp(100));
        assert_eq!(parts.subagent, 20);
        assert_eq!(parts.tools, 10 + 8);
        assert_eq!(parts.shell, 3 + 9);
        assert_eq!(parts.other, 50);
    }
}
