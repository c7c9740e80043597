//! The rules of matching, with the change to the source that leaves each of them out. The example `rules` measures how
//! many streams become wrong without each rule.

use std::path::Path;

/// A rule and how it is left out.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// Below `src`.
    pub(crate) file: &'static str,
    /// Text that occurs exactly once in the file, and its replacement.
    pub(crate) with: &'static str,
    pub(crate) without: &'static str,
}

const GENERIC: &str = "correlate/call_match/generic.rs";
const SPECIFIC: &str = "correlate/call_match/specific.rs";
const LEFTOVER: &str = "correlate/call_match/leftover.rs";
const EVIDENCE: &str = "correlate/evidence.rs";
const TURN: &str = "correlate/turn.rs";
const DELEGATIONS: &str = "correlate/delegation_match.rs";
const LINK: &str = "correlate/parent_link.rs";

const fn rule(
    name: &'static str,
    file: &'static str,
    with: &'static str,
    without: &'static str,
) -> Rule {
    Rule { name, file, with, without }
}

pub(crate) const RULES: &[Rule] = &[
    rule(
        "A call id names a call only together with its tool",
        GENERIC,
        "self.calls[at].find(Some).is_none_or(|other| may_be_one_tool(other, tool))",
        "self.calls.len() > at || may_be_one_tool(tool, tool)",
    ),
    rule(
        "A call id names a call only while the call is open",
        GENERIC,
        "(Some(pre), Some(_)) if is_repeat(pre, fact) => {",
        "(Some(_), Some(_)) => {",
    ),
    rule(
        "Hooks without id or equal input join what nothing speaks against",
        "correlate/call_match/mod.rs",
        "leftover::join(&mut calls, known);",
        "let _ = leftover::join;",
    ),
    rule(
        "Equal durations speak for a pairing",
        LEFTOVER,
        "(None, Some(true)) => (0, Strength::Duration),",
        "(None, Some(true)) => (3, Strength::Order),",
    ),
    rule(
        "Two layers with different inputs are one call if their durations are equal",
        LEFTOVER,
        "(Some(false), Some(true)) => (2, Strength::Duration),",
        "(Some(false), Some(true)) => return None,",
    ),
    rule(
        "An MCP tool is named with and without its server",
        EVIDENCE,
        "&& is_one_word(&one.tool, &other.tool),",
        "&& one.tool == other.tool,",
    ),
    rule(
        "Of several edits of one file, the one with the same text goes first",
        SPECIFIC,
        "let found = found.or_else(|| free().filter(opened).find(equal_text));",
        "let _ = equal_text;",
    ),
    rule(
        "A hook that opened a call which is over opens no other call",
        SPECIFIC,
        "    left.close_openings();",
        "    let _ = Left::close_openings;",
    ),
    rule(
        "Equal hooks within five seconds are one",
        EVIDENCE,
        "(-DISORDER..=REPEAT).contains(&second.at.since(first.at)) && first.kind == second.kind",
        "(REPEAT..=-DISORDER).contains(&second.at.since(first.at)) && first.kind == second.kind",
    ),
    rule(
        "An earlier hook is never a copy of a later one",
        EVIDENCE,
        "(-DISORDER..=REPEAT).contains(",
        "(-REPEAT..=REPEAT).contains(",
    ),
    rule(
        "An end that is stamped before its beginning keeps its duration",
        "assemble/draft_subagent.rs",
        "if end.is_some_and(|end| end.at < opened) {",
        "if end.is_none() {",
    ),
    rule(
        "A thought in two wordings is one",
        TURN,
        "if let Some(at) = other_wording(thoughts, fact, thought) {",
        "if let Some(at) = other_wording(&[], fact, thought) {",
    ),
    rule(
        "A response in two wordings is one",
        TURN,
        "if !richer_response(&mut reading.responses, fact, response) {",
        "if !richer_response(&mut [], fact, response) {",
    ),
    rule(
        "A subagent's hook without a known id goes to an open delegation",
        DELEGATIONS,
        ".take(MAX_OPEN)",
        ".take(MAX_OPEN - MAX_OPEN)",
    ),
    rule(
        "A delegation has one span, whatever ids its call and its subagent have",
        DELEGATIONS,
        "let ids = [facts.call.as_deref(), facts.id.as_deref()];",
        "let ids = [facts.id.as_deref(), None];",
    ),
    rule(
        "The last stop of a subagent is its end",
        TURN,
        "let is_new = agents[at].stop.is_none_or(|(first, _)| !is_repeat(first, fact));",
        "let is_new = agents[at].stop.is_none();",
    ),
    rule(
        "A stop that says nothing but an id is no subagent",
        TURN,
        "self.start.is_none() && self.call.is_none() && bare_stop",
        "self.start.is_none() && self.start.is_some() && bare_stop",
    ),
    rule(
        "A delegation is over when the same work is asked for again",
        "assemble/draft_turn.rs",
        "let again = tries.after(&call);",
        "let again = tries.after(&call).and(None);",
    ),
    rule(
        "A subagent lies below the call whose result names it",
        "assemble/nested_agent.rs",
        "named.is_some_and(|at| *at <= settled)",
        "named.is_some_and(|at| *at <= settled && *at > settled)",
    ),
    rule(
        "A stop names its child, and a child's hooks name their call",
        LINK,
        "= claims.of_child(conversation) {",
        "= claims.of_child(conversation).filter(|_| false) {",
    ),
    rule(
        "Without proof, the one open delegation of the folder is the parent",
        LINK,
        "guess(conversations, &mut linked, &mut taken);",
        "let _ = guess;",
    ),
    rule(
        "A delegation of another model is no candidate",
        LINK,
        "if fits.iter().any(|at| !differs(at)) {",
        "if fits.is_empty() && fits.iter().any(differs) {",
    ),
    rule(
        "A delegation that ended before the child's last hook is no candidate",
        LINK,
        "if fits.iter().any(|at| !stopped(at)) {",
        "if fits.is_empty() && fits.iter().any(stopped) {",
    ),
    rule(
        "A delegation without a new child resumed one that had ended",
        LINK,
        "resume(conversations, &mut linked.links, &mut taken);",
        "let _ = resume;",
    ),
    rule(
        "A child in a worktree belongs to the repository",
        LINK,
        "own.or_else(|| of_worktree(child, &names))",
        "own.or_else(|| of_worktree(child, &BTreeMap::new()))",
    ),
    rule(
        "A turn waits for a call that is open",
        "correlate/turn_end.rs",
        "let is_idle = pair[1].since(pair[0]) > idle && !open.ends_after(pair[0]);",
        "let is_idle = idle > 0 && !open.ends_after(Timestamp(i64::MIN));",
    ),
    rule(
        "A start that is received after its end joins it",
        GENERIC,
        "true => equals.first_that_ended_before(fact, calls),",
        "true => equals.first_that_ended_before(fact, calls).and(None),",
    ),
    rule(
        "The input of a call is that of the first hook that has one",
        "correlate/tool_call.rs",
        "self.find(|tool| (tool.content != 0).then_some(tool)).or_else(|| self.find(Some))",
        "self.find(Some)",
    ),
    rule(
        "An edit that a call has already belongs to no other call",
        SPECIFIC,
        ".filter(|_| !equals.iter().any(is_copy))",
        ".filter(|_| !equals.iter().any(is_copy) || !equals.is_empty())",
    ),
    rule(
        "A Write is told from others by what the file holds afterwards",
        EVIDENCE,
        "whole.or_else(|| agree(said(one.new), said(other.new)))",
        "whole.or_else(|| agree(said(one.new), said(other.new)).and(None))",
    ),
    rule(
        "Two ends of one command with two durations are two calls",
        SPECIFIC,
        "(within && same_duration(Call::measured(Some(other)), tool.duration_ms) != Some(false))",
        "(within && same_duration(Call::measured(Some(other)), tool.duration_ms).is_none_or(|_| true))",
    ),
    rule(
        "A copy behind the end of its call is a copy",
        SPECIFIC,
        "            || is_repeat(fact, other)",
        "            || (is_repeat(fact, other) && within && !within)",
    ),
    rule(
        "A file that is read again after a change is another call",
        "read/tool_facts.rs",
        "Some(held) => ContentKey::of(&[tool, &path, held]),",
        "Some(_) => ContentKey::of(&[tool, &path]),",
    ),
    rule(
        "A stop with an id of its own ends no delegation that another stop names",
        DELEGATIONS,
        "if told.owned && has_id {",
        "if told.owned && has_id && self.task != self.task {",
    ),
    rule(
        "A delegation without an end is no candidate hours later",
        "correlate/open_delegations.rs",
        "(None, over) => over.unwrap_or(start.plus(parent.session_idle_ns)),",
        "(None, over) => over.unwrap_or(Timestamp(i64::MAX)),",
    ),
    rule(
        "What a subagent delegated ends with the subagent",
        LINK,
        "fits.retain(|&at| runs(conversations, &linked.links, open.get(at).parent, child.first));",
        "let _ = runs;",
    ),
    rule(
        "A subagent may outlive its turn",
        "assemble/draft_subagent.rs",
        "let lives = over.map_or_else(|| waits || alive > Some(settle), |over| over > settle);",
        "let lives = over.is_none() && waits && alive <= alive;",
    ),
    rule(
        "Who waits for a child works as long as the child",
        "assemble/draft_subagent.rs",
        "own.max(delegated.max()).max(loose.max())",
        "own.max(delegated.max().and(None)).max(loose.max().and(None))",
    ),
    rule(
        "A turn waits for an open call for hooks that name no turn, too",
        "correlate/turn_boundaries.rs",
        "&& OpenCalls::of(&self.facts(&self.turns[turn])).is_any_at(last)",
        "&& OpenCalls::of(&self.facts(&self.turns[turn])).is_any_at(last)\n                && silence < 0",
    ),
    rule(
        "A subagent that starts again in another turn was resumed",
        DELEGATIONS,
        "if !before.stopped || before.generation.is_empty() || before.generation == turn {",
        "if !before.stopped || before.generation.len() <= turn.len() + 512 {",
    ),
];

/// The heading of the part of `SCORECARD.md` that the example `rules` writes.
pub(crate) const HEADING: &str = "\n## Without each rule\n";

/// That part as the file contains it now.
pub(crate) fn section(package: &Path) -> String {
    let written = std::fs::read_to_string(package.join("../../SCORECARD.md")).unwrap_or_default();
    written.split_once(HEADING).map_or_else(String::new, |(_, rest)| format!("{HEADING}{rest}"))
}
