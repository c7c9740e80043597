//! Turning nodes into spans: names, attributes, statuses. The one place that knows the conventions.

use std::borrow::Cow;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::attributes::Attributes;
use crate::call::{Call, tool_facts};
use crate::content::Field;
use crate::conversation::Conversation;
use crate::event::{Compaction, Confidence, Response, Thought};
use crate::fact::Fact;
use crate::link::Link;
use crate::model::provider;
use crate::tool::{Server, ToolClass, ToolFacts, cut};
use crate::tree::{Node, Tree, What};
use crate::turn::{Agent, Reading, label};
use crate::{
    ContentRef, ErrorType, EventKind, Span, SpanEvent, SpanId, SpanKind, Status, Tokens, TraceId,
};

/// What a turn's spans share.
pub(crate) struct Shared<'a> {
    pub(crate) root: Arc<str>,
    pub(crate) trace: TraceId,
    /// Parent of the turn's own span, in session mode.
    pub(crate) parent: Option<SpanId>,
    pub(crate) links: Vec<crate::Link>,
    /// 1-based index of the turn in its session.
    pub(crate) index: u64,
    pub(crate) tool_calls: u64,
    pub(crate) tool_errors: u64,
    pub(crate) model: Option<&'a str>,
    /// Changes whenever the trace does.
    pub(crate) mark: u64,
    /// The turn of an unbound child: its root span says so.
    pub(crate) ambiguous: bool,
}

/// `hookspan.surface` from the form of `cursor_version`: a date is the CLI, another number the IDE; other hosts have neither.
pub(crate) fn surface(version: Option<&str>) -> &'static str {
    let first = version.unwrap_or_default().split('.').next().unwrap_or_default();
    let is_number = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
    match (is_number, first.len()) {
        (true, 4) => "cli",
        (true, _) => "ide",
        _ => "unknown",
    }
}

/// `request.model` of a turn: of prompt or stop the id, else the label; else that of a tool, a thought or a response.
pub(crate) fn request_model<'a>(reading: &Reading<'a>) -> Option<&'a str> {
    let prompt = reading.prompt.map(|(fact, _)| fact);
    let stop = reading.stop.map(|(fact, _)| fact);
    let said = |fact: &'a Fact| {
        let id = fact.labels.as_ref().and_then(|labels| labels.id.as_deref());
        id.filter(|id| !id.is_empty() && *id != "default").or_else(|| label(fact))
    };
    [prompt, stop].into_iter().flatten().find_map(said).or_else(|| reading.other_model())
}

/// How a call came out: `hookspan.tool.outcome` and the status.
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
            _ => ("error", failed(ErrorType::ToolFailure, "tool failed")),
        };
    }
    if let Some(code) = call.find(|tool| tool.more()?.exit_code).filter(|code| *code != 0)
        && call.class() == ToolClass::Shell
    {
        return ("error", failed(ErrorType::ExitCode, &format!("exit code {code}")));
    }
    if call.find(|tool| tool.is_error.then_some(())).is_some() && call.class() == ToolClass::Mcp {
        return ("error", failed(ErrorType::ToolError, "the tool reported an error"));
    }
    match agent {
        Some("error") => ("error", failed(ErrorType::SubagentError, "subagent failed")),
        Some("aborted") => ("interrupted", Status::Unset),
        _ if node.incomplete || node.end.is_none() => ("unknown", Status::Unset),
        _ => ("ok", Status::Unset),
    }
}

/// Builds the span of the node at `at`.
pub(crate) fn span(tree: &Tree<'_>, shared: &Shared<'_>, at: usize, settled: bool) -> Span {
    let node = &tree.nodes[at];
    let agent = match &node.what {
        What::Agent(agent, _, _) => agent_type(agent),
        _ => node.agent.and_then(|agent| match &tree.nodes[agent].what {
            What::Agent(agent, _, _) => agent_type(agent),
            _ => None,
        }),
    };
    let host = node.conversation.host.as_str();
    let agent = agent.unwrap_or(if node.agent.is_some() { "subagent" } else { host });
    let root = &shared.root;
    let mut attributes = Attributes::of_span();
    common(&mut attributes, node, root, agent);
    let mut contents = Vec::new();
    let mut events = Vec::new();
    let mut status = Status::Unset;
    let (name, plain_name): (String, Cow<'static, str>) = match &node.what {
        What::Turn => {
            status = turn(tree, shared, &mut attributes, &mut contents, &mut events);
            turn_name(node.conversation, shared.ambiguous)
        }
        What::Call(call) => {
            let (outcome, verdict) = verdict(call, node, agent_status(tree, at));
            status = verdict;
            tool(call, outcome, &mut attributes, &mut contents);
            if outcome == "denied" {
                events.push(denial(node));
            }
            tool_name(call)
        }
        What::Thought(fact, facts) => {
            thought(fact, facts, &mut attributes, &mut contents);
            ("agent_thought".to_owned(), Cow::Borrowed("agent_thought"))
        }
        What::Response(fact, facts, usage) => {
            response(tree, shared, (fact, facts), *usage, &mut attributes, &mut contents);
            let name = shared.model.map_or("chat".to_owned(), |model| format!("chat {model}"));
            (name.clone(), Cow::Owned(name))
        }
        What::Agent(agent, link, child) => {
            let calls = calls_below(tree, at);
            status = subagent(
                agent,
                (*link, *child),
                (node.depth + 1, calls),
                &mut attributes,
                &mut contents,
            );
            let name = format!("invoke_agent {}", agent_type(agent).unwrap_or("subagent"));
            (name.clone(), Cow::Owned(name))
        }
        What::Compaction(fact, facts) => {
            compaction(fact, facts, &mut attributes);
            ("context_compaction".to_owned(), Cow::Borrowed("context_compaction"))
        }
    };
    if let Status::Error { kind, .. } = &status {
        attributes.text("error.type", kind.as_str());
    }
    events.sort_by(|a: &SpanEvent, b| (a.at, &a.name).cmp(&(b.at, &b.name)));
    contents.sort_by(|a: &ContentRef, b| a.key.cmp(b.key));
    Span {
        id: node.id,
        trace: shared.trace,
        parent: node.parent.map(|parent| tree.nodes[parent].id).or(shared.parent),
        links: if at == 0 { shared.links.clone() } else { Vec::new() },
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

fn turn_name(conversation: &Conversation, ambiguous: bool) -> (String, Cow<'static, str>) {
    if ambiguous {
        return ("invoke_agent subagent".to_owned(), Cow::Borrowed("invoke_agent subagent"));
    }
    let name = format!("invoke_agent {}", conversation.host.as_str());
    (name.clone(), Cow::Owned(name))
}

/// The keys of §2.3, in order.
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

fn content(contents: &mut Vec<ContentRef>, key: &'static str, fact: &Fact, field: Field) {
    contents.push(ContentRef { key, hook: fact.seq, field });
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
    let facts = [reading.prompt.map(|(fact, _)| fact), reading.stop.map(|(fact, _)| fact)];
    let sent = facts.into_iter().flatten().find_map(|fact| fact.model.as_deref());
    attributes.some_text("cursor.model", sent.filter(|model| !model.is_empty()));
    let params =
        facts.into_iter().flatten().find_map(|fact| fact.labels.as_ref()?.params.as_deref());
    attributes.some_text("cursor.model.params", params);
    attributes.some_text(
        "cursor.composer_mode",
        reading.prompt.and_then(|(_, prompt)| prompt.mode.as_deref()),
    );
    if let Some(tokens) = reading.tokens() {
        attributes.count("cursor.usage.input_tokens", tokens.input);
        attributes.count("cursor.usage.output_tokens", tokens.output);
        attributes.count("cursor.usage.cache_read_tokens", tokens.cache_read);
        attributes.count("cursor.usage.cache_write_tokens", tokens.cache_write);
        if tokens.cache_read.saturating_add(tokens.cache_write) > tokens.input {
            attributes.flag("hookspan.usage.exclusive", Some(true));
        }
        if !tree.nodes.iter().any(|node| matches!(node.what, What::Response(_, _, Some(_)))) {
            usage(attributes, tokens);
        }
    }
    attributes.count("hookspan.generation.index", shared.index);
    if tree.turn.synthetic {
        attributes.flag("hookspan.generation.synthetic", Some(true));
    }
    if shared.ambiguous {
        attributes.text("hookspan.subagent.link", Confidence::Ambiguous.as_str());
    }
    attributes.count("hookspan.tool_calls", shared.tool_calls);
    attributes.count("hookspan.tool_errors", shared.tool_errors);
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
    if status == Some("error") {
        return Status::Error { kind: ErrorType::AgentError, message: "agent error".to_owned() };
    }
    Status::Unset
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
    attributes.count("gen_ai.usage.input_tokens", tokens.input);
    attributes.count("gen_ai.usage.output_tokens", tokens.output);
    attributes.count("gen_ai.usage.cache_read.input_tokens", tokens.cache_read);
    attributes.count("gen_ai.usage.cache_creation.input_tokens", tokens.cache_write);
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

/// `execute_tool {tool}` and its program or agent type.
fn tool_name(call: &Call<'_>) -> (String, Cow<'static, str>) {
    let tool = call.find(|tool| Some(&*tool.tool)).unwrap_or("unknown");
    let more = match call.class() {
        ToolClass::Shell => call.find(|tool| tool.more()?.executable.as_deref()),
        ToolClass::Task => call.find(|tool| tool.delegate()?.agent.as_deref()),
        _ => None,
    };
    let name = match more {
        Some(more) => format!("execute_tool {tool} {more}"),
        None => format!("execute_tool {tool}"),
    };
    let plain = match call.class() {
        ToolClass::Mcp => Cow::Borrowed("execute_tool mcp"),
        ToolClass::Shell => Cow::Owned(format!("execute_tool {tool}")),
        _ => Cow::Owned(name.clone()),
    };
    (name, plain)
}

fn tool(
    call: &Call<'_>,
    outcome: &'static str,
    attributes: &mut Attributes,
    contents: &mut Vec<ContentRef>,
) {
    let class = call.class();
    let tool = call.find(|tool| Some(&*tool.tool)).unwrap_or("unknown");
    let edits = call.after.and_then(|fact| tool_facts(&fact.kind)?.more()?.edits);
    let edits = edits.or_else(|| call.find(|tool| tool.more()?.edits));
    attributes.double("cursor.duration_ms", call.find(|tool| tool.duration_ms));
    attributes.int("cursor.edit.count", edits.map(|edits| edits.count));
    attributes.some_text("cursor.failure_type", call.find(|tool| tool.more()?.failure.as_deref()));
    attributes.flag("cursor.is_interrupt", call.find(|tool| tool.interrupt));
    class_attributes(call, class, attributes);
    attributes.text("gen_ai.operation.name", "execute_tool");
    attributes.some_text("gen_ai.tool.call.id", call.find(|tool| tool.id.clone()));
    let mcp = class == ToolClass::Mcp;
    if mcp {
        attributes.detail("gen_ai.tool.name", Some(tool));
    } else {
        attributes.text("gen_ai.tool.name", tool);
    }
    attributes.text("gen_ai.tool.type", if mcp { "extension" } else { "function" });
    attributes.int("hookspan.edit.lines_added", edits.map(|edits| edits.added));
    attributes.int("hookspan.edit.lines_removed", edits.map(|edits| edits.removed));
    attributes.double("hookspan.hook_ms", hook_ms(call));
    let mut hooks: Vec<SmolStr> =
        call.hooks().map(|fact| SmolStr::new_static(hook_name(&fact.kind))).collect();
    hooks.sort();
    attributes.list("hookspan.hooks", hooks);
    let bytes = |count: Option<u64>| count.and_then(|count| i64::try_from(count).ok());
    attributes.text("hookspan.tool.class", class.as_str());
    attributes.int("hookspan.tool.input_bytes", bytes(call.find(|tool| tool.input_bytes)));
    attributes.text("hookspan.tool.outcome", outcome);
    attributes.int("hookspan.tool.output_bytes", bytes(call.find(|tool| tool.output_bytes)));
    attributes.double("hookspan.wait_ms", wait_ms(call));
    match class {
        ToolClass::Shell => process(call, attributes),
        ToolClass::Mcp => server(call, attributes),
        _ => {}
    }
    tool_contents(call, contents);
}

/// Receipt of post − receipt of pre − duration.
pub(crate) fn wait_ms(call: &Call<'_>) -> Option<f64> {
    let (opened, ended) = call.opened().zip(call.ended())?;
    let duration = call.find(|tool| tool.duration_ms)?;
    Some((ended.since(opened) as f64 / 1e6 - duration).max(0.0))
}

/// The part of [`wait_ms`] in which only hooks can have run: between the opening hooks of both layers and between the closing
/// ones; and all of it where nobody is asked. `None` when the hooks that arrived tell no part of it.
pub(crate) fn hook_ms(call: &Call<'_>) -> Option<f64> {
    let wait = wait_ms(call)?;
    if matches!(call.class(), ToolClass::Read | ToolClass::Search) {
        return Some(wait);
    }
    let between = |from: Option<&Fact>, to: Option<&Fact>| {
        let (from, to) = from.zip(to)?;
        Some((to.at.since(from.at) as f64 / 1e6).max(0.0))
    };
    let pairs = [between(call.pre, call.before), between(call.after, call.post)];
    let known = pairs.into_iter().flatten().reduce(|sum, more| sum + more)?;
    Some(known.min(wait))
}

fn class_attributes(call: &Call<'_>, class: ToolClass, attributes: &mut Attributes) {
    match class {
        ToolClass::Shell => {
            attributes.flag("cursor.shell.sandbox", call.find(|tool| tool.more()?.sandbox));
            attributes.int("cursor.shell.timeout_ms", call.find(|tool| tool.more()?.timeout_ms));
        }
        ToolClass::Mcp => {
            let name = servers(call).find_map(|server| server.name.as_deref());
            attributes.detail("cursor.mcp.server.name", name);
        }
        ToolClass::Task => {
            let delegate = call.find(ToolFacts::delegate);
            let background = delegate.and_then(|delegate| delegate.background);
            attributes.flag("cursor.subagent.run_in_background", background);
            attributes.some_text("cursor.subagent.type", delegate.and_then(|d| d.agent.as_deref()));
        }
        _ => {
            let path = call.find(|tool| tool.path.as_ref());
            attributes.int("cursor.read.content_length", call.find(|tool| tool.content_length));
            let mode = call.find(|tool| tool.more()?.output_mode.as_deref());
            attributes.some_text("cursor.search.output_mode", mode);
            attributes.some_text("file.extension", path.and_then(|path| extension(path)));
            attributes.path("file.path", path.cloned());
        }
    }
}

fn process(call: &Call<'_>, attributes: &mut Attributes) {
    let executable = call.find(|tool| tool.more()?.executable.as_deref());
    attributes.detail("process.executable.name", executable);
    attributes.int("process.exit.code", call.find(|tool| tool.more()?.exit_code));
    attributes.path("process.working_directory", call.find(|tool| tool.cwd.clone()));
}

/// What its hooks say of the server. The one before the call names it best; the one after it may leave it out.
fn servers<'a>(call: &Call<'a>) -> impl Iterator<Item = &'a Server> {
    let hooks = [call.before, call.after, call.post, call.pre];
    hooks.into_iter().flatten().filter_map(|fact| tool_facts(&fact.kind)?.more()?.server.as_deref())
}

fn server(call: &Call<'_>, attributes: &mut Attributes) {
    attributes.text("mcp.method.name", "tools/call");
    let transport = servers(call).next().map(|server| if server.pipe { "pipe" } else { "tcp" });
    attributes.some_text("network.transport", transport);
    let address = servers(call).find_map(|server| server.address.as_deref());
    attributes.detail("server.address", address);
    attributes.detail_int("server.port", servers(call).find_map(|server| server.port));
}

fn tool_contents(call: &Call<'_>, contents: &mut Vec<ContentRef>) {
    // The generic pre has the input from the start; a post repeats it.
    if let Some(fact) = [call.pre, call.post, call.before, call.after].into_iter().flatten().next()
    {
        content(contents, "gen_ai.tool.call.arguments", fact, Field::ToolInput);
    }
    if let Some(fact) = call.post.or(call.after) {
        let has_error = tool_facts(&fact.kind).is_some_and(|tool| tool.has_error_text);
        if has_error {
            content(contents, "cursor.error_message", fact, Field::ErrorMessage);
        }
        content(contents, "gen_ai.tool.call.result", fact, Field::ToolOutput);
    }
    let server = |fact: &&Fact| {
        let server = tool_facts(&fact.kind).and_then(|tool| tool.more()?.server.as_deref());
        server.is_some_and(|server| server.has_command)
    };
    if let Some(fact) = [call.before, call.after].into_iter().flatten().find(server) {
        content(contents, "cursor.mcp.command", fact, Field::McpCommand);
    }
}

/// A file's extension: a short, plain word.
fn extension(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?;
    let (stem, extension) = name.rsplit_once('.')?;
    let plain =
        (1..=16).contains(&extension.len()) && extension.bytes().all(|b| b.is_ascii_alphanumeric());
    (plain && !stem.is_empty()).then_some(extension)
}

/// Our name of a tool event.
fn hook_name(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::ToolStart(_) => "preToolUse",
        EventKind::ToolEnd(_) => "postToolUse",
        EventKind::ToolFailure(_) => "postToolUseFailure",
        EventKind::ShellStart(_) => "beforeShellExecution",
        EventKind::ShellEnd(_) => "afterShellExecution",
        EventKind::McpStart(_) => "beforeMCPExecution",
        EventKind::McpEnd(_) => "afterMCPExecution",
        EventKind::FileRead(_) => "beforeReadFile",
        EventKind::FileEdit(_) => "afterFileEdit",
        _ => "other",
    }
}

pub(crate) fn agent_type<'a>(agent: &Agent<'a>) -> Option<&'a str> {
    agent.find(|facts| facts.agent.as_deref())
}

/// The status `subagentStop` gave the agent that the call at `at` started.
pub(crate) fn agent_status<'a>(tree: &'a Tree<'_>, at: usize) -> Option<&'a str> {
    let next = tree.nodes.get(at + 1).filter(|node| node.parent == Some(at))?;
    match &next.what {
        What::Agent(agent, _, _) => agent.stop.and_then(|(_, facts)| facts.status.as_deref()),
        _ => None,
    }
}

/// Tool calls inside the subagent at `at`, without delegating ones.
fn calls_below(tree: &Tree<'_>, at: usize) -> u64 {
    let is_below = |node: &Node<'_>| {
        let mut agent = node.agent;
        while let Some(index) = agent {
            if index == at {
                return true;
            }
            agent = tree.nodes[index].agent;
        }
        false
    };
    let counts = |node: &&Node<'_>| is_call(node) && is_below(node);
    tree.nodes[at..].iter().filter(counts).count() as u64
}

/// Whether a node counts as a tool call; a delegating one does not.
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
    attributes.some_text("cursor.subagent.id", agent.find(|facts| facts.id.as_deref()));
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
