//! Turns nodes into spans: names, attributes, statuses. Only this file and `tool_span` know the conventions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::assemble::attributes::{Attributes, content};
use crate::assemble::draft::{Node, Tree, What};
use crate::assemble::provider::provider;
use crate::assemble::repository_attributes::repository;
use crate::assemble::tool_span;
use crate::correlate::conversation::Conversation;
use crate::correlate::fact::Fact;
use crate::correlate::parent_link::Link;
use crate::correlate::tool_call::Call;
use crate::correlate::turn::{Agent, Reading, label};
use crate::model::bounded::cut;
use crate::model::content::Field;
use crate::model::event::EventKind;
use crate::model::event::{Compaction, Confidence, Response, Thought};
use crate::model::fingerprint::Fingerprint;
use crate::model::id::{SpanId, TraceId};
use crate::model::path;
use crate::model::repository::Repository;
use crate::model::span::{ContentRef, ErrorType, Span, SpanEvent, SpanKind, Status};
use crate::model::summary::Tokens;
use crate::model::tolerance::MS;
use crate::model::tool::ToolClass;

/// Values that all spans of a turn share.
pub(crate) struct Shared<'a> {
    pub(crate) root: Arc<str>,
    pub(crate) trace: TraceId,
    /// Parent of the turn's span; set only in session mode.
    pub(crate) parent: Option<SpanId>,
    pub(crate) links: Vec<crate::model::span::Link>,
    /// 1-based index of the turn in its session.
    pub(crate) index: u64,
    pub(crate) tool_calls: u64,
    pub(crate) tool_errors: u64,
    /// Number of tool calls below each node.
    pub(crate) calls_below: Vec<u64>,
    pub(crate) model: Option<&'a str>,
    /// Changes whenever the trace changes.
    pub(crate) traced: Fingerprint,
    /// The turn belongs to a child without a known parent. The turn's root span records this.
    pub(crate) ambiguous: bool,
    /// Number of delegations that the turn may belong to, if the span does not link to all of them.
    pub(crate) candidates: Option<u64>,
    /// Number of dropped hooks of the turn.
    pub(crate) lost: u64,
    /// What was seen of the repository.
    pub(crate) repository: Option<Box<Repository>>,
    /// For each node that fits several delegations: how many, and links to those that were kept.
    pub(crate) possible: BTreeMap<usize, (usize, Vec<crate::model::span::Link>)>,
}

/// `hookspan.surface` from the form of `cursor_version`: a date means the CLI, a version number the IDE. Other hosts
/// have neither.
pub(crate) fn surface(version: Option<&str>) -> &'static str {
    let first = version.unwrap_or_default().split('.').next().unwrap_or_default();
    let is_number = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
    match (is_number, first.len()) {
        (true, 4) => "cli",
        (true, _) => "ide",
        _ => "unknown",
    }
}

/// `request.model` of a turn. First choice: the id in the prompt or stop. Then their label, then the label of a tool, a
/// thought or a response.
pub(crate) fn request_model<'a>(reading: &Reading<'a>) -> Option<&'a str> {
    let prompt = reading.prompt.map(|(fact, _)| fact);
    let stop = reading.stop.map(|(fact, _)| fact);
    let said = |fact: &'a Fact| {
        let id = fact.labels.as_ref().and_then(|labels| labels.id.as_deref());
        id.filter(|id| !id.is_empty() && *id != "default").or_else(|| label(fact))
    };
    [prompt, stop].into_iter().flatten().find_map(said).or_else(|| reading.other_model())
}

/// The result of a call: `hookspan.tool.outcome` and the status.
pub(crate) fn verdict(
    call: &Call<'_>,
    node: &Node<'_>,
    agent: Option<&str>,
) -> (&'static str, Status) {
    let failed = |kind, message: &str| Status::Error { kind, message: message.to_owned() };
    if let Some(post) = call.post
        && let EventKind::ToolFailure(facts) = &post.kind
    {
        return match facts.more().and_then(|more| more.failure.as_deref()) {
            _ if facts.interrupt == Some(true) => ("interrupted", Status::Unset),
            Some("timeout") => ("timeout", failed(ErrorType::Timeout, "timed out")),
            Some("permission_denied") => {
                ("denied", failed(ErrorType::PermissionDenied, "permission denied"))
            }
            // The hook repeats what the subagent reports itself.
            _ if agent == Some("error") => subagent_failed(),
            _ => ("error", failed(ErrorType::ToolFailure, "tool failed")),
        };
    }
    if let Some(code) = call.find(|tool| tool.more()?.exit_code).filter(|code| *code != 0)
        && call.class() == ToolClass::Shell
    {
        return ("error", failed(ErrorType::ExitCode, &format!("exit code {code}")));
    }
    if agent == Some("error") {
        return subagent_failed();
    }
    if call.find(|tool| tool.is_error.then_some(())).is_some() {
        return ("error", failed(ErrorType::ToolError, "the tool reported an error"));
    }
    match agent {
        Some("aborted") => ("interrupted", Status::Unset),
        _ if node.incomplete || node.end.is_none() => ("unknown", Status::Unset),
        _ if call.class() == ToolClass::Shell && call.is_background() => ("running", Status::Unset),
        _ => ("ok", Status::Unset),
    }
}

/// The result of a call whose subagent failed.
fn subagent_failed() -> (&'static str, Status) {
    let message = "subagent failed".to_owned();
    ("error", Status::Error { kind: ErrorType::SubagentError, message })
}

/// Builds the span of the node at `at`.
pub(crate) fn span(tree: &Tree<'_>, shared: &Shared<'_>, at: usize, settled: bool) -> Span {
    let node = &tree.nodes[at];
    let root = &shared.root;
    let mut attributes = Attributes::of_span();
    common(&mut attributes, node, root, agent_name(tree, node));
    let mut contents = Vec::new();
    let mut events = Vec::new();
    let (status, (name, plain_name)) =
        describe(tree, shared, at, &mut attributes, &mut contents, &mut events);
    if let Status::Error { kind, .. } = &status {
        attributes.text("error.type", kind.as_str());
    }
    events.sort_by(|a: &SpanEvent, b| (a.at, &a.name).cmp(&(b.at, &b.name)));
    contents.sort_by(|a: &ContentRef, b| a.key.cmp(b.key));
    Span {
        id: node.id,
        trace: shared.trace,
        parent: node.parent.map(|parent| tree.nodes[parent].id).or(shared.parent),
        links: match shared.possible.get(&at) {
            _ if at == 0 => shared.links.clone(),
            possible => possible.map(|(_, links)| links.clone()).unwrap_or_default(),
        },
        kind: node.kind,
        name: cut(name, 128),
        plain_name,
        root: root.clone(),
        conversation: node.conversation.id.clone(),
        generation: node.generation.clone(),
        workspace: node.conversation.workspace().or(tree.root.workspace()).cloned(),
        cursor_version: node.conversation.version().or(tree.root.version()).cloned(),
        start: node.start,
        end: node.end,
        status,
        attributes: attributes.finish(),
        events,
        contents,
        settled,
    }
}

/// A span's name: the name as shown, and the name without anything that the user chose.
type Name = (String, Cow<'static, str>);

/// Adds what is known about the node at `at`. Returns its status and its name.
fn describe(
    tree: &Tree<'_>,
    shared: &Shared<'_>,
    at: usize,
    attributes: &mut Attributes,
    contents: &mut Vec<ContentRef>,
    events: &mut Vec<SpanEvent>,
) -> (Status, Name) {
    let node = &tree.nodes[at];
    let mut status = Status::Unset;
    let name = match &node.what {
        What::Turn => {
            status = turn(tree, shared, attributes, contents, events);
            turn_name(node.conversation, shared.ambiguous)
        }
        What::Call(call) => {
            let (outcome, verdict) = verdict(call, node, agent_status(tree, at));
            status = verdict;
            describe_call(tree, node, call, outcome, attributes, contents);
            if outcome == "denied" {
                events.push(denial(node));
            }
            tool_span::name(call)
        }
        What::Thought(fact, facts) => {
            thought(fact, facts, attributes, contents);
            ("agent_thought".to_owned(), Cow::Borrowed("agent_thought"))
        }
        What::Response(fact, facts, usage) => {
            response(tree, shared, (fact, facts), *usage, attributes, contents);
            let name = shared.model.map_or("chat".to_owned(), |model| format!("chat {model}"));
            (name.clone(), Cow::Owned(name))
        }
        What::Agent(agent, link, child) => {
            let calls = shared.calls_below.get(at).copied().unwrap_or_default();
            let size = (node.depth + 1, calls);
            status = subagent(agent, (*link, *child), size, attributes, contents);
            if let Some((count, links)) = shared.possible.get(&at)
                && *count > links.len()
            {
                attributes.count("hookspan.subagent.candidates", *count as u64);
            }
            let name = format!("invoke_agent {}", agent_type(agent).unwrap_or("subagent"));
            (name.clone(), Cow::Owned(name))
        }
        What::Compaction(fact, facts) => {
            compaction(fact, facts, attributes);
            ("context_compaction".to_owned(), Cow::Borrowed("context_compaction"))
        }
    };
    (status, name)
}

/// The name of the agent that did a node's work.
fn agent_name<'a>(tree: &Tree<'a>, node: &Node<'a>) -> &'a str {
    let agent = match &node.what {
        What::Agent(agent, _, _) => agent_type(agent),
        _ => node.agent.and_then(|agent| match &tree.nodes[agent].what {
            What::Agent(agent, _, _) => agent_type(agent),
            _ => None,
        }),
    };
    let host = node.conversation.host.as_str();
    agent.unwrap_or(if node.agent.is_some() { "subagent" } else { host })
}

/// Adds what a call's hooks say.
fn describe_call(
    tree: &Tree<'_>,
    node: &Node<'_>,
    call: &Call<'_>,
    outcome: &'static str,
    attributes: &mut Attributes,
    contents: &mut Vec<ContentRef>,
) {
    tool_span::describe(call, outcome, attributes, contents);
    let is_damaged = call.hooks().any(|fact| fact.damaged);
    attributes.flag("hookspan.hook_damaged", is_damaged.then_some(true));
    let project = node.conversation.workspace().or(tree.root.workspace());
    let own = tool_span::own_root(call, &node.conversation.roots, project);
    attributes.path("hookspan.file.root", own);
}

fn turn_name(conversation: &Conversation, ambiguous: bool) -> (String, Cow<'static, str>) {
    if ambiguous {
        return ("invoke_agent subagent".to_owned(), Cow::Borrowed("invoke_agent subagent"));
    }
    let name = format!("invoke_agent {}", conversation.host.as_str());
    (name.clone(), Cow::Owned(name))
}

/// Adds the attributes that every span has, in alphabetical order of their keys.
fn common(attributes: &mut Attributes, node: &Node<'_>, root: &Arc<str>, agent: &str) {
    attributes.text("cursor.conversation.id", node.conversation.id.clone());
    if !node.generation.is_empty() {
        attributes.text("cursor.generation.id", node.generation.clone());
    }
    attributes.text("gen_ai.agent.name", agent);
    attributes.text("gen_ai.conversation.id", root.clone());
    if let Some(end) = node.end {
        attributes.text("hookspan.end_reason", end.reason.as_str());
    }
    attributes.flag("hookspan.duration_unknown", node.length_is_unknown().then_some(true));
    attributes.flag("hookspan.incomplete", node.incomplete.then_some(true));
    attributes.text("hookspan.kind", node.kind.as_str());
    attributes.flag("hookspan.late", node.late.then_some(true));
    let version = node.conversation.version().map(|version| &**version);
    attributes.text("hookspan.surface", surface(version));
    attributes.text("hookspan.timing", timing(node.start_inferred, node.end_inferred));
    attributes.text("openinference.span.kind", openinference(node.kind));
    attributes.text("session.id", root.clone());
}

pub(crate) fn timing(start_inferred: bool, end_inferred: bool) -> &'static str {
    match (start_inferred, end_inferred) {
        (false, false) => "measured",
        (true, false) => "inferred_start",
        (false, true) => "inferred_end",
        (true, true) => "inferred",
    }
}

pub(crate) fn openinference(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Session | SpanKind::Thought | SpanKind::Compaction | SpanKind::Tab => "CHAIN",
        SpanKind::Generation | SpanKind::Subagent => "AGENT",
        SpanKind::Response => "LLM",
        SpanKind::Tool => "TOOL",
    }
}

fn finish_reason(status: &str) -> Option<&'static str> {
    match status {
        "completed" => Some("stop"),
        "aborted" => Some("cancelled"),
        "error" => Some("error"),
        _ => None,
    }
}

fn turn(
    tree: &Tree<'_>,
    shared: &Shared<'_>,
    attributes: &mut Attributes,
    contents: &mut Vec<ContentRef>,
    events: &mut Vec<SpanEvent>,
) -> Status {
    let reading = &tree.reading;
    let stop = reading.stop.map(|(_, stop)| stop);
    let status = stop.and_then(|stop| stop.status.as_deref());
    attributes.text("gen_ai.operation.name", "invoke_agent");
    attributes.text("gen_ai.provider.name", provider(shared.model));
    attributes.some_text("gen_ai.request.model", shared.model);
    if let Some(reason) = status.and_then(finish_reason) {
        attributes.list("gen_ai.response.finish_reasons", vec![reason.into()]);
    }
    attributes.some_text("cursor.status", status);
    attributes.int("cursor.loop_count", stop.and_then(|stop| stop.loop_count));
    attributes.some_text("cursor.stop.error", stop.and_then(|stop| stop.error.as_deref()));
    let facts = [reading.prompt.map(|(fact, _)| fact), reading.stop.map(|(fact, _)| fact)];
    let sent = facts.into_iter().flatten().find_map(|fact| fact.model.as_deref());
    attributes.some_text("cursor.model", sent.filter(|model| !model.is_empty()));
    let params =
        facts.into_iter().flatten().find_map(|fact| fact.labels.as_ref()?.params.as_deref());
    attributes.some_text("cursor.model.params", params);
    let root = facts.into_iter().flatten().find_map(|fact| tree.root.roots.of(fact));
    attributes.detail("hookspan.worktree", root.and_then(|root| path::project(root).worktree));
    attributes.some_text(
        "cursor.composer_mode",
        reading.prompt.and_then(|(_, prompt)| prompt.mode.as_deref()),
    );
    if let Some(tokens) = reading.tokens() {
        turn_usage(tree, attributes, tokens);
    }
    let is_damaged = facts.into_iter().flatten().any(|fact| fact.damaged);
    attributes.flag("hookspan.hook_damaged", is_damaged.then_some(true));
    let step = reading.prompt.zip(reading.stop).and_then(|(from, to)| to.0.clock_step(from.0));
    attributes.int("hookspan.clock_step_ms", step.map(|ns| ns / MS));
    if tree.turn.synthetic {
        attributes.flag("hookspan.generation.synthetic", Some(true));
    }
    turn_place(shared, attributes);
    if reading.unknown_count > reading.unknown.len() as u64 {
        attributes.count("hookspan.unknown_hooks", reading.unknown_count);
    }
    turn_events(reading, contents, events);
    if status == Some("error") {
        return Status::Error { kind: ErrorType::AgentError, message: "agent error".to_owned() };
    }
    Status::Unset
}

/// Adds the turn's token counts. The turn gets the GenAI attributes only if no response carries them.
fn turn_usage(tree: &Tree<'_>, attributes: &mut Attributes, tokens: Tokens) {
    attributes.some_count("cursor.usage.input_tokens", tokens.input);
    attributes.some_count("cursor.usage.output_tokens", tokens.output);
    attributes.some_count("cursor.usage.cache_read_tokens", tokens.cache_read);
    attributes.some_count("cursor.usage.cache_write_tokens", tokens.cache_write);
    let cache = tokens.cache_read.unwrap_or(0).saturating_add(tokens.cache_write.unwrap_or(0));
    if tokens.input.is_some_and(|input| cache > input) {
        attributes.flag("hookspan.usage.exclusive", Some(true));
    }
    if !tree.nodes.iter().any(|node| matches!(node.what, What::Response(_, _, Some(_)))) {
        usage(attributes, tokens);
    }
}

/// Adds the turn's place in its session, and its counts.
fn turn_place(shared: &Shared<'_>, attributes: &mut Attributes) {
    attributes.count("hookspan.generation.index", shared.index);
    if let Some(candidates) = shared.candidates {
        attributes.count("hookspan.subagent.candidates", candidates);
    }
    if shared.lost > 0 {
        attributes.count("hookspan.hooks_left_out", shared.lost);
    }
    if shared.ambiguous {
        attributes.text("hookspan.subagent.link", Confidence::Ambiguous.as_str());
    }
    attributes.count("hookspan.tool_calls", shared.tool_calls);
    attributes.count("hookspan.tool_errors", shared.tool_errors);
    repository(attributes, shared.repository.as_deref());
}

/// Adds the prompt, the last answer, and hooks of unknown events.
fn turn_events(reading: &Reading<'_>, contents: &mut Vec<ContentRef>, events: &mut Vec<SpanEvent>) {
    if let Some((fact, prompt)) = reading.prompt {
        content(contents, "gen_ai.input.messages", fact, Field::Prompt);
        let mut own = Attributes::default();
        own.count("hookspan.prompt.bytes", prompt.bytes);
        own.int("cursor.prompt.attachments", Some(prompt.attachments));
        if !prompt.attachment_types.is_empty() {
            own.list(
                "cursor.prompt.attachment_types",
                prompt.attachment_types.iter().map(SmolStr::from).collect(),
            );
        }
        events.push(event(fact, "cursor.prompt.submit", own));
    }
    if let Some((_, fact, _)) = reading.responses.last() {
        content(contents, "gen_ai.output.messages", fact, Field::Response);
    }
    for (fact, name) in &reading.unknown {
        let mut own = Attributes::default();
        own.text("cursor.hook.name", *name);
        events.push(event(fact, "cursor.hook", own));
    }
}

fn event(fact: &Fact, name: &'static str, attributes: Attributes) -> SpanEvent {
    SpanEvent { at: fact.at, name: Cow::Borrowed(name), attributes: attributes.finish() }
}

fn denial(node: &Node<'_>) -> SpanEvent {
    let mut own = Attributes::default();
    own.text("cursor.permission.decision", "deny");
    let at = node.end.map_or(node.start, |end| end.at);
    SpanEvent { at, name: Cow::Borrowed("cursor.permission"), attributes: own.finish() }
}

fn usage(attributes: &mut Attributes, tokens: Tokens) {
    attributes.some_count("gen_ai.usage.input_tokens", tokens.input);
    attributes.some_count("gen_ai.usage.output_tokens", tokens.output);
    attributes.some_count("gen_ai.usage.cache_read.input_tokens", tokens.cache_read);
    attributes.some_count("gen_ai.usage.cache_creation.input_tokens", tokens.cache_write);
}

fn thought(
    fact: &Fact,
    facts: &Thought,
    attributes: &mut Attributes,
    contents: &mut Vec<ContentRef>,
) {
    attributes.double("cursor.duration_ms", facts.duration_ms);
    attributes.count("hookspan.text.bytes", facts.bytes);
    content(contents, "gen_ai.output.messages", fact, Field::Thought);
}

fn response(
    tree: &Tree<'_>,
    shared: &Shared<'_>,
    (fact, facts): (&Fact, &Response),
    tokens: Option<Tokens>,
    attributes: &mut Attributes,
    contents: &mut Vec<ContentRef>,
) {
    attributes.text("gen_ai.operation.name", "chat");
    attributes.text("gen_ai.provider.name", provider(shared.model));
    attributes.some_text("gen_ai.request.model", shared.model);
    let status = tree.reading.stop.and_then(|(_, stop)| stop.status.as_deref());
    if let Some(reason) = status.and_then(finish_reason) {
        attributes.list("gen_ai.response.finish_reasons", vec![reason.into()]);
    }
    attributes.flag("hookspan.synthetic", Some(true));
    attributes.count("hookspan.text.bytes", facts.bytes);
    attributes.double("cursor.duration_ms", facts.duration_ms);
    if let Some(total) = facts.total {
        attributes.count("cursor.usage.total_tokens", total);
    }
    if let Some(tokens) = tokens {
        usage(attributes, tokens);
    }
    content(contents, "gen_ai.output.messages", fact, Field::Response);
}

pub(crate) fn agent_type<'a>(agent: &Agent<'a>) -> Option<&'a str> {
    agent.find(|facts| facts.agent.as_deref())
}

/// The status from the `subagentStop` of the agent that the call at `at` started.
pub(crate) fn agent_status<'a>(tree: &'a Tree<'_>, at: usize) -> Option<&'a str> {
    let next = tree.nodes.get(at + 1).filter(|node| node.parent == Some(at))?;
    match &next.what {
        What::Agent(agent, _, _) => agent.stop.and_then(|(_, facts)| facts.status.as_deref()),
        _ => None,
    }
}

/// For each subagent node, the number of tool calls below it, without delegating calls.
pub(crate) fn calls_below(nodes: &[Node<'_>]) -> Vec<u64> {
    let mut calls = vec![0; nodes.len()];
    for node in nodes.iter().filter(|node| is_call(node)) {
        let mut agent = node.agent;
        while let Some(at) = agent {
            calls[at] += 1;
            agent = nodes[at].agent;
        }
    }
    calls
}

/// Whether a node counts as a tool call. A delegating call does not.
pub(crate) fn is_call(node: &Node<'_>) -> bool {
    matches!(&node.what, What::Call(call) if call.class() != ToolClass::Task)
}

fn subagent(
    agent: &Agent<'_>,
    (link, child): (Option<&Link>, Option<&Conversation>),
    (depth, calls): (u32, u64),
    attributes: &mut Attributes,
    contents: &mut Vec<ContentRef>,
) -> Status {
    attributes.text("gen_ai.operation.name", "invoke_agent");
    let model = agent.find(|facts| facts.model.as_deref());
    attributes.text("gen_ai.provider.name", provider(model));
    attributes.some_text("gen_ai.request.model", model.filter(|model| *model != "default"));
    attributes.some_text(
        "cursor.subagent.id",
        agent.find(|facts| facts.id.as_deref().or(facts.call.as_deref())),
    );
    attributes.some_text("cursor.subagent.type", agent_type(agent));
    attributes.some_text("cursor.subagent.model", model);
    let status = agent.stop.and_then(|(_, facts)| facts.status.as_deref());
    attributes.some_text("cursor.subagent.status", status);
    attributes.detail("cursor.subagent.git_branch", agent.find(|facts| facts.branch.as_deref()));
    attributes.flag("cursor.subagent.parallel", agent.find(|facts| facts.parallel));
    attributes.int("cursor.subagent.message_count", agent.find(|facts| facts.messages));
    attributes.int("cursor.subagent.tool_call_count", agent.find(|facts| facts.tool_calls));
    attributes.double("cursor.duration_ms", agent.stop.and_then(|(_, facts)| facts.duration_ms));
    attributes.some_text("hookspan.subagent.conversation.id", child.map(|child| &*child.id));
    attributes.int("hookspan.subagent.depth", Some(i64::from(depth)));
    attributes.count("hookspan.subagent.tool_calls", calls);
    if let Some(link) = link {
        attributes.text("hookspan.subagent.link", link.confidence.as_str());
        attributes.text("hookspan.subagent.link_source", link.source.as_str());
    }
    subagent_contents(agent, contents);
    if status == Some("error") {
        let message = "subagent failed".to_owned();
        return Status::Error { kind: ErrorType::SubagentError, message };
    }
    Status::Unset
}

fn subagent_contents(agent: &Agent<'_>, contents: &mut Vec<ContentRef>) {
    let hooks = [agent.start, agent.stop];
    let with = |has: fn(&(bool, bool, bool)) -> bool| {
        hooks.into_iter().flatten().find(|(_, facts)| has(&facts.has)).map(|(fact, _)| fact)
    };
    if let Some(fact) = with(|has| has.0) {
        content(contents, "gen_ai.input.messages", fact, Field::Task);
    }
    if let Some(fact) = with(|has| has.1) {
        content(contents, "gen_ai.output.messages", fact, Field::Summary);
    }
    if let Some(fact) = with(|has| has.2) {
        content(contents, "gen_ai.agent.description", fact, Field::Description);
    }
}

pub(crate) fn compaction(fact: &Fact, facts: &Compaction, attributes: &mut Attributes) {
    attributes.some_text("cursor.compaction.trigger", facts.trigger.as_deref());
    attributes.int("cursor.compaction.context_tokens", facts.context_tokens);
    attributes.int("cursor.compaction.context_window_size", facts.window_size);
    attributes.int("cursor.compaction.message_count", facts.messages);
    attributes.int("cursor.compaction.messages_to_compact", facts.to_compact);
    attributes.double("cursor.compaction.context_usage_percent", facts.usage_percent);
    attributes.flag("cursor.compaction.first", facts.first);
    attributes.some_text("cursor.compaction.model", fact.model.as_deref());
}
