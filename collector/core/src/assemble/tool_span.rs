//! Describes a call: name, timing, attributes by class of tool, contents.

use std::borrow::Cow;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::assemble::attributes::{Attributes, content};
use crate::correlate::fact::{Fact, Roots};
use crate::correlate::tool_call::{Call, tool_facts};
use crate::model::content::{EDIT_CHANGES, Field};
use crate::model::event::EventKind;
use crate::model::path;
use crate::model::span::ContentRef;
use crate::model::tolerance::{HOOKS, MS};
use crate::model::tool::{Edits, Server, ToolClass, ToolFacts};

/// `execute_tool {tool}`, followed by the program or the agent type.
pub(crate) fn name(call: &Call<'_>) -> (String, Cow<'static, str>) {
    let tool = call.tool();
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

pub(crate) fn describe(
    call: &Call<'_>,
    outcome: &'static str,
    attributes: &mut Attributes,
    contents: &mut Vec<ContentRef>,
) {
    let class = call.class();
    let tool = call.tool();
    let edits = edits(call);
    attributes.double("cursor.duration_ms", call.duration_ms());
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
    attributes.int("hookspan.clock_step_ms", call.clock_step().map(|ns| ns / MS));
    attributes.int("hookspan.edit.lines_added", edits.map(|edits| edits.added));
    attributes.int("hookspan.edit.lines_removed", edits.map(|edits| edits.removed));
    let wait = wait_ms(call);
    attributes.double("hookspan.hook_ms", wait.and_then(|wait| hook_part(call, wait)));
    let mut hooks: Vec<SmolStr> =
        call.hooks().map(|fact| SmolStr::new_static(hook_name(&fact.kind))).collect();
    hooks.sort();
    attributes.list("hookspan.hooks", hooks);
    let bytes = |count: Option<u64>| count.and_then(|count| i64::try_from(count).ok());
    attributes.text("hookspan.tool.class", class.as_str());
    attributes.int("hookspan.tool.input_bytes", bytes(call.find(|tool| tool.input_bytes)));
    attributes.text("hookspan.tool.outcome", outcome);
    attributes.some_text("hookspan.tool.match", call.strength.as_str());
    attributes.int("hookspan.tool.output_bytes", bytes(call.find(|tool| tool.output_bytes)));
    attributes.double("hookspan.wait_ms", wait);
    match class {
        ToolClass::Shell => process(call, attributes),
        ToolClass::Mcp => server(call, attributes),
        _ => {}
    }
    contents_of(call, contents);
}

/// The change that an edit made. The hook after the edit compares the file before and after the edit. The call's input
/// may have only the new text.
fn edits(call: &Call<'_>) -> Option<Edits> {
    told_after(call).or_else(|| call.find(|tool| tool.more()?.edits))
}

fn told_after(call: &Call<'_>) -> Option<Edits> {
    call.after.and_then(|fact| tool_facts(&fact.kind)?.more()?.edits)
}

/// Time between the pre hook and the post hook of a call, minus the call's duration. `None` if the call needs no
/// approval and this time is longer than hooks can run: then the machine slept, or the cause is unknown.
pub(crate) fn wait_ms(call: &Call<'_>) -> Option<f64> {
    let (opened, ended) = call.opened().zip(call.ended())?;
    let duration = call.duration_ms()?;
    let wait = (ended.since(opened) as f64 / 1e6 - duration).max(0.0);
    Some(wait).filter(|wait| *wait <= (HOOKS / MS) as f64 || !asks_nobody(call))
}

/// Whether the call needs no approval. Cursor never asks before reading and searching.
fn asks_nobody(call: &Call<'_>) -> bool {
    matches!(call.class(), ToolClass::Read | ToolClass::Search)
}

/// The part of `wait`, which is [`wait_ms`], in which only hooks can have run: between the opening hooks of both layers,
/// and between the closing hooks. If the call needs no approval, this is all of it. `None` if the hooks do not tell.
pub(crate) fn hook_part(call: &Call<'_>, wait: f64) -> Option<f64> {
    if asks_nobody(call) {
        return Some(wait);
    }
    let between = |from: Option<&Fact>, to: Option<&Fact>| {
        let (from, to) = from.zip(to)?;
        Some((to.since(from) as f64 / 1e6).max(0.0))
    };
    let pairs = [between(call.pre, call.before), between(call.after, call.post)];
    let known = pairs.into_iter().flatten().reduce(|sum, more| sum + more)?;
    Some(known.min(wait))
}

fn class_attributes(call: &Call<'_>, class: ToolClass, attributes: &mut Attributes) {
    match class {
        ToolClass::Shell => {
            let background = call.is_background();
            attributes.flag("cursor.shell.background", background.then_some(true));
            // The generic end event of a background command is only a receipt. The specific end event comes later and
            // has the command's own duration.
            let own =
                call.after.filter(|after| background && call.post.is_some_and(|p| p.at < after.at));
            attributes.double("cursor.shell.background_ms", Call::measured(own));
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

/// The root that contains a call's file, if the project's folder does not contain it: another root, or a worktree.
pub(crate) fn own_root(
    call: &Call<'_>,
    roots: &Roots,
    project: Option<&Arc<str>>,
) -> Option<Arc<str>> {
    let root = call.hooks().find_map(|fact| roots.of(fact))?;
    if project == Some(root) {
        return None;
    }
    let file = call.find(|tool| tool.path.as_deref())?;
    let is_worktree = path::project(root).worktree.is_some();
    let tells = !is_worktree && project.is_some_and(|project| path::below(project, file).is_some());
    (!tells && path::below(root, file).is_some()).then(|| root.clone())
}

fn process(call: &Call<'_>, attributes: &mut Attributes) {
    let executable = call.find(|tool| tool.more()?.executable.as_deref());
    attributes.detail("process.executable.name", executable);
    attributes.int("process.exit.code", call.find(|tool| tool.more()?.exit_code));
    attributes.path("process.working_directory", call.find(|tool| tool.cwd.clone()));
}

/// The server, from each of the call's hooks. The hook before the call has the most details; the hook after it may omit
/// them.
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

fn contents_of(call: &Call<'_>, contents: &mut Vec<ContentRef>) {
    // The generic pre hook has the input first, and the post hook repeats it.
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
    let input = call.pre.or(call.post).and_then(|fact| tool_facts(&fact.kind)?.more()?.edits);
    if let (Some(after), Some(told)) = (call.after, told_after(call))
        && input.is_some_and(|input| input != told)
    {
        content(contents, EDIT_CHANGES, after, Field::ToolInput);
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
