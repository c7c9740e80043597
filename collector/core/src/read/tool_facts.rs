//! Reads what one hook says about a tool call.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memmem;
use smol_str::ToSmolStr as _;

use crate::model::bounded::{ID_BYTES, cut, cut_str};
use crate::model::fingerprint::{ContentKey, digest, mix};
use crate::model::path;
use crate::model::tool::{Delegate, Edits, Server, ToolClass, ToolFacts, ToolMore};
use crate::read::commit::commit;
use crate::read::interner::Words;
use crate::read::line_diff::{changed_lines, count_lines};
use crate::read::payload::{Fields, Raw, array, object, text};
use crate::read::pull_request::pull_request;
use crate::read::shell::executable;
use crate::read::test_command::test_codes;

/// The tool through which Cursor calls tools of MCP servers.
const WRAPPER: &str = "CallMcpTool";
/// Fields that hold a call's result.
const OUTPUTS: [&str; 4] = ["tool_output", "tool_response", "tool_result", "result"];
/// Values of Copilot CLI's `resultType`, with the `failure_type` each stands for.
const RESULTS: [(&str, &str); 5] = [
    ("failure", "error"),
    ("error", "error"),
    ("timeout", "timeout"),
    ("denied", "permission_denied"),
    ("rejected", "permission_denied"),
];

impl ToolClass {
    fn of(tool: &str) -> Self {
        match tool {
            "Shell" | "Bash" | "shell" | "local_shell" | "run_terminal_cmd" | "run_in_terminal"
            | "run_command" | "PowerShell" | "bash" | "powershell" | "run_shell_command"
            | "exec_command" | "shell_command" | "AwaitShell" => Self::Shell,
            "Read" | "ReadFile" | "TabRead" | "read_file" | "NotebookRead" | "view"
            | "read_many_files" => Self::Read,
            "Grep"
            | "Glob"
            | "LS"
            | "Search"
            | "SemanticSearch"
            | "WebSearch"
            | "ToolSearch"
            | "codebase_search"
            | "grep_search"
            | "file_search"
            | "list_files"
            | "list_dir"
            | "grep"
            | "glob"
            | "rg"
            | "search_file_content"
            | "list_directory"
            | "google_web_search"
            | "web_search" => Self::Search,
            "Write" | "StrReplace" | "Edit" | "MultiEdit" | "ApplyPatch" | "EditNotebook"
            | "NotebookEdit" | "apply_patch" | "apply_diff" | "write_file" | "edit_file"
            | "search_replace" | "create" | "edit" | "replace" | "str_replace_editor" => Self::Edit,
            "Delete" | "delete_file" => Self::Delete,
            "Task" | "Subagent" | "Agent" | "task" => Self::Task,
            "AskQuestion"
            | "AskUserQuestion"
            | "AskUser"
            | "ask_question"
            | "ask_user"
            | "ask_followup_question"
            | "request_user_input" => Self::Question,
            _ => Self::Other,
        }
    }
}

impl ToolFacts {
    /// Facts from preToolUse, postToolUse, postToolUseFailure and similar events.
    pub(crate) fn generic(fields: &Fields<'_>, words: &mut Words) -> Self {
        let sent = ["tool_name", "tool"].iter().find_map(|name| fields.said(name));
        let sent = sent.as_deref().map_or("unknown", |sent| cut_str(sent, 256));
        let input = fields.first(&["tool_input", "params", "tool_args"]);
        let raw = input.map_or("", Raw::get);
        let id = ["tool_use_id", "tool_call_id"].iter().find_map(|name| fields.said(name));
        let id = id.map(|id| words.get(cut_str(&id, ID_BYTES)));
        let mut facts = Self { id, ..Self::default() };
        let mut more = ToolMore { server: facts.name(sent, words), ..ToolMore::default() };
        facts.read_server(fields, &mut more);
        facts.input_bytes = input.map(|input| input.get().len() as u64);
        if sent != WRAPPER || !facts.unwrap(input, &mut more, words) {
            facts.read_input(input, &mut more, words);
        }
        if facts.id.is_none() {
            facts.fallback = ContentKey::of(&[sent, raw]);
            if let Some(delegate) = &mut more.delegate {
                delegate.key = Some(facts.fallback.to_string());
            }
        }
        facts.duration_ms = milliseconds(fields);
        more.failure = fields.said("failure_type").map(|text| words.get(cut_str(&text, 64)));
        facts.interrupt = fields.flag("is_interrupt");
        facts.has_error_text = fields.first(&["error_message", "error"]).is_some();
        if facts.cwd.is_none() {
            facts.cwd = fields.said("cwd").and_then(|text| said(&text, words));
        }
        let output = fields.first(&OUTPUTS);
        facts.read_output(output, &mut more, words);
        if facts.class == ToolClass::Shell {
            more.commit = made(raw, output, words);
            more.pull_request = opened(raw, output, words);
        }
        facts.more = more.boxed();
        facts
    }

    /// Reads a call of a tool that passes the call on to an MCP tool. Its input names the server and the MCP tool.
    fn unwrap(&mut self, input: Option<Raw<'_>>, more: &mut ToolMore, words: &mut Words) -> bool {
        let mut store = String::new();
        let Some(inner) = input.and_then(|input| object(input, &mut store)) else { return false };
        let Some(tool) = inner.said("tool_name") else { return false };
        let tool = cut_str(&tool, 256);
        self.tool = words.get(tool);
        self.class = ToolClass::Mcp;
        self.content = mcp_content(inner.raw("arguments"));
        // Servers from the user's own configuration have a prefix here, but no prefix in their own hooks.
        let name = inner.said("server");
        let name =
            name.map(|name| cut_str(name.strip_prefix("user-").unwrap_or(&name), 256).to_owned());
        more.server = Some(Box::new(Server { name, pipe: true, ..Server::default() }));
        more.wrapped = true;
        true
    }

    /// Facts from beforeShellExecution and afterShellExecution.
    pub(crate) fn shell(fields: &Fields<'_>, words: &mut Words) -> Self {
        let command = fields.first(&["command", "command_line"]).and_then(text);
        let command = command.unwrap_or_default();
        let output = fields.raw("output");
        let more = ToolMore {
            executable: executable(&command).map(|name| words.get(name)),
            sandbox: fields.flag("sandbox"),
            exit_code: fields.int("exit_code"),
            commit: made(&command, output, words),
            tests: test_codes(&command),
            pull_request: opened(&command, output, words),
            ..ToolMore::default()
        };
        Self {
            tool: words.get("Shell"),
            class: ToolClass::Shell,
            content: shell_content(&command),
            fallback: ContentKey::of(&["Shell", &command]),
            input_bytes: Some(command.len() as u64),
            output_bytes: output.map(|output| output.get().len() as u64),
            duration_ms: milliseconds(fields),
            cwd: fields.said("cwd").and_then(|text| said(&text, words)),
            more: more.boxed(),
            ..Self::default()
        }
    }

    /// Facts from beforeMCPExecution and afterMCPExecution.
    pub(crate) fn mcp(fields: &Fields<'_>, words: &mut Words) -> Self {
        let sent = ["tool_name", "tool", "mcp_tool_name"].iter().find_map(|name| fields.said(name));
        let tool = bare(cut_str(sent.as_deref().unwrap_or("unknown"), 256));
        let input = fields.first(&["tool_input", "params", "mcp_tool_arguments"]);
        let mut facts = Self {
            content: mcp_content(input),
            fallback: ContentKey::of(&[tool, input.map_or("", Raw::get)]),
            tool: words.get(tool),
            class: ToolClass::Mcp,
            input_bytes: input.map(|input| input.get().len() as u64),
            duration_ms: milliseconds(fields),
            ..Self::default()
        };
        let server = Some(Box::new(server(fields)));
        let mut more = ToolMore { server, ..ToolMore::default() };
        facts.read_output(
            fields.first(&["result_json", "result", "tool_result", "tool_output", "mcp_result"]),
            &mut more,
            words,
        );
        facts.more = more.boxed();
        facts
    }

    /// Facts from beforeReadFile and afterFileEdit. `tool` is the name that generic hooks use for such a call.
    pub(crate) fn file(fields: &Fields<'_>, tool: &str, words: &mut Words) -> Self {
        let path = fields.first(&["file_path", "file"]).and_then(text).unwrap_or_default();
        let edits = fields.raw("edits").map(edits).or_else(|| changes(fields));
        // The content is part of the key: reading a file again after a change is another call, however soon it comes.
        let held = fields.raw("content").map(|content| new_text(content.get()).to_smolstr());
        let fallback = match &held {
            Some(held) => ContentKey::of(&[tool, &path, held]),
            None => ContentKey::of(&[tool, &path]),
        };
        let mut facts = Self {
            tool: words.get(tool),
            class: ToolClass::of(tool),
            content: path_content(&path),
            fallback,
            more: ToolMore { edits, ..ToolMore::default() }.boxed(),
            ..Self::default()
        };
        if edits.is_some_and(|edits| edits.added == 0 && edits.removed == 0) {
            facts.note_attachment(&path);
        }
        facts.path = said(&path, words);
        facts
    }

    /// Records the tool's name as sent. Returns the server that the name contains, if any.
    fn name(&mut self, sent: &str, words: &mut Words) -> Option<Box<Server>> {
        self.tool = words.get(bare(sent));
        let is_mcp = bare(sent) != sent;
        self.class = if is_mcp { ToolClass::Mcp } else { ToolClass::of(sent) };
        let claude = sent.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        let name = Some(claude?.0.to_owned());
        Some(Box::new(Server { name, pipe: true, ..Server::default() }))
    }

    /// Gemini CLI names the server beside the tool.
    fn read_server(&mut self, fields: &Fields<'_>, more: &mut ToolMore) {
        let mut store = String::new();
        let Some(context) = fields.object("mcp_context", &mut store) else { return };
        let name = context.said("server_name").map(|name| cut_str(&name, 256).to_owned());
        self.class = ToolClass::Mcp;
        let pipe = context.raw("url").is_none();
        more.server.get_or_insert_with(|| Box::new(Server { name, pipe, ..Server::default() }));
    }

    fn read_input(&mut self, input: Option<Raw<'_>>, more: &mut ToolMore, words: &mut Words) {
        let mut store = String::new();
        let fields = input.and_then(|input| object(input, &mut store)).unwrap_or_default();
        let names = ["file_path", "path", "target_file", "notebook_path", "absolute_path"];
        let path = fields.first(&names);
        let is_edit = self.class == ToolClass::Edit;
        let patched =
            || is_edit.then(|| patch(&fields)).flatten().and_then(patch_path).map(Cow::Owned);
        let path = path.and_then(text).or_else(patched).unwrap_or_default();
        match self.class {
            ToolClass::Shell => self.read_shell_input(&fields, more, words),
            ToolClass::Mcp => self.content = mcp_content(input),
            ToolClass::Task => more.delegate = Some(Box::new(delegate(&fields))),
            ToolClass::Edit => more.edits = self.read_edit_input(&fields, input, &path),
            ToolClass::Search => {
                let mode = fields.said("output_mode");
                more.output_mode = mode.map(|text| words.get(cut_str(&text, 64)));
                self.content = path_content(&path);
            }
            _ => self.content = path_content(&path),
        }
        self.path = said(&path, words);
    }

    fn read_shell_input(&mut self, fields: &Fields<'_>, more: &mut ToolMore, words: &mut Words) {
        let command = command_line(fields).unwrap_or_default();
        self.content = shell_content(&command);
        more.executable = executable(&command).map(|name| words.get(name));
        more.tests = test_codes(&command);
        let cwd = fields.first(&["cwd", "working_directory", "workdir"]).and_then(text);
        self.cwd = cwd.and_then(|cwd| said(&cwd, words));
        more.timeout_ms = fields.int("timeout");
        let background = ["is_background", "run_in_background"];
        more.background = background.iter().find_map(|name| fields.flag(name)).filter(|set| *set);
    }

    fn read_edit_input(
        &mut self,
        fields: &Fields<'_>,
        input: Option<Raw<'_>>,
        path: &str,
    ) -> Option<Edits> {
        self.content = path_content(path);
        let content = fields.first(&["content", "contents"]).and_then(text);
        let edits = if let Some(list) = fields.raw("edits") {
            Some(edits(list))
        } else if let Some(content) = &content {
            let (added, new) = (count_lines(content), new_text(content));
            Some(Edits { count: 1, added, new, ..Edits::default() })
        } else if fields.raw("new_string").is_some() {
            Some(edit(fields))
        } else {
            patch(fields).or_else(|| input.and_then(text)).map(|patch| patch_edits(&patch))
        };
        if content.is_some_and(|content| content.is_empty()) {
            self.note_attachment(path);
        }
        edits
    }

    /// Whether the tool waits for a command that was started before.
    fn is_await(&self) -> bool {
        &*self.tool == "AwaitShell"
    }

    /// A pasted image arrives as a Write of an empty file into the editor's own asset folder.
    fn note_attachment(&mut self, path: &str) {
        let image = [".png", ".jpg", ".jpeg", ".gif", ".webp"];
        let path = path.replace('\\', "/").to_ascii_lowercase();
        if path.contains("/.cursor/projects/")
            && path.contains("/assets/")
            && image.iter().any(|end| path.ends_with(end))
        {
            self.class = ToolClass::Attachment;
        }
    }

    fn read_output(&mut self, output: Option<Raw<'_>>, more: &mut ToolMore, words: &mut Words) {
        let Some(output) = output else { return };
        self.output_bytes = Some(output.get().len() as u64);
        let is_read_anyway = matches!(
            self.class,
            ToolClass::Shell | ToolClass::Mcp | ToolClass::Read | ToolClass::Task
        );
        if !is_read_anyway && !may_tell_failure(output.get()) {
            return;
        }
        let mut store = String::new();
        let Some(fields) = object(output, &mut store) else {
            self.read_text_output(&text(output).unwrap_or_default(), more);
            return;
        };
        more.exit_code = ["exitCode", "exit_code"].iter().find_map(|name| fields.int(name));
        if self.class == ToolClass::Shell && more.exit_code.is_none() {
            more.exit_code = fields.text("text_result_for_llm").and_then(|text| told_code(&text));
        }
        let ended_well = self.class == ToolClass::Shell && more.exit_code == Some(0);
        self.is_error = !ended_well && tells_failure(&fields, &self.tool);
        more.failure = more.failure.take().or_else(|| {
            let kind = fields.said("result_type")?;
            let failure = RESULTS.iter().find(|(sent, _)| *sent == kind)?.1;
            Some(words.get(failure))
        });
        self.interrupt = self.interrupt.or(fields.flag("interrupted").filter(|is_so| *is_so));
        if self.class == ToolClass::Shell && more.exit_code.is_none() {
            // A receipt names the background job that was started.
            let receipt = ["shell_id", "backgroundTaskId"];
            let started = fields.first(&receipt).is_some() && !self.is_await();
            more.background = started.then_some(true).or(more.background);
        }
        self.content_length = fields.int("content_length");
        if let Some(delegate) = &mut more.delegate {
            delegate.subagent = fields.word("agent_id").map(|id| cut(id, ID_BYTES));
        }
    }
}

/// The command in a shell call's input. Codex sends a list of words: a shell, its flag and a script, or a program and its
/// arguments.
fn command_line<'a>(fields: &Fields<'a>) -> Option<Cow<'a, str>> {
    const MOST_WORDS: usize = 256;
    let command = fields.raw("command")?;
    if !command.get().starts_with('[') {
        return text(command);
    }
    let words: Vec<Cow<'_, str>> =
        array(command).into_iter().take(MOST_WORDS).filter_map(text).collect();
    match words.as_slice() {
        [_, flag, script] if matches!(&**flag, "-c" | "-lc") => Some(script.clone()),
        words => Some(Cow::Owned(words.join(" "))),
    }
}

/// The commit that a command made, if its output says so.
fn made(command: &str, output: Option<Raw<'_>>, words: &mut Words) -> Option<Arc<str>> {
    commit(command, output?.get()).map(|commit| words.get(commit))
}

/// The pull request that a command opened, if its output says so.
fn opened(command: &str, output: Option<Raw<'_>>, words: &mut Words) -> Option<Arc<str>> {
    pull_request(command, output?.get()).map(|address| words.get(address))
}

/// The exit code in the first line of a text (Codex): `Exit code: 1`, and below it `Wall time: 0.2 seconds`.
fn leading_code(text: &str) -> Option<i64> {
    let (code, rest) = text.strip_prefix("Exit code: ")?.split_once('\n')?;
    rest.starts_with("Wall time: ").then(|| code.trim().parse().ok()).flatten()
}

/// Whether an output says by itself that the call failed.
fn tells_failure(fields: &Fields<'_>, tool: &str) -> bool {
    let flags = fields.flag("is_error") == Some(true) || fields.flag("success") == Some(false);
    let signal = fields.said("signal").is_some();
    // A fetched page is someone else's document, not the tool's own message.
    let is_page = || tool.to_ascii_lowercase().contains("fetch");
    let error = fields.raw("error").filter(|_| !is_page()).is_some_and(|error| match text(error) {
        Some(text) => !text.trim().is_empty(),
        None => error.get().starts_with('{') && error.get() != "{}",
    });
    flags || signal || error
}

/// Whether an output must be checked with [`tells_failure`]: it contains the words, and is not a document.
fn may_tell_failure(output: &str) -> bool {
    const SHORT: usize = 65_536;
    let holds = |word: &[u8]| memmem::find(output.as_bytes(), word).is_some();
    output.len() <= SHORT
        && (holds(b"rror") || holds(b"success") || holds(b"resultType") || holds(b"Exit code: "))
}

/// The exit code at the end of a text for the model: `<shellId: 0 completed with exit code 1>`.
fn told_code(text: &str) -> Option<i64> {
    const WORDS: &str = "exit code ";
    let rest = &text[text.rfind(WORDS)? + WORDS.len()..];
    let (code, end) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '-')?);
    (end.trim_end().len() <= 1).then(|| code.parse().ok()).flatten()
}

impl ToolFacts {
    /// Reads an output that is plain text.
    fn read_text_output(&mut self, output: &str, more: &mut ToolMore) {
        let Some(code) = leading_code(output) else { return };
        self.is_error = code != 0;
        if self.class == ToolClass::Shell {
            more.exit_code = Some(code);
        }
    }
}

impl ToolMore {
    /// `None` if there are no facts.
    fn boxed(self) -> Option<Box<Self>> {
        // Every hook of a call comes here, and most have none of these facts.
        let is_empty = matches!(
            self,
            Self {
                executable: None,
                sandbox: None,
                timeout_ms: None,
                exit_code: None,
                commit: None,
                tests: None,
                pull_request: None,
                wrapped: false,
                background: None,
                failure: None,
                edits: None,
                output_mode: None,
                server: None,
                delegate: None,
            }
        );
        (!is_empty).then(|| Box::new(self))
    }
}

fn delegate(fields: &Fields<'_>) -> Delegate {
    let task = fields.text("prompt");
    Delegate {
        agent: ["subagent_type", "agent_type"]
            .iter()
            .find_map(|name| fields.word(name))
            .map(|text| cut(text, 128)),
        background: fields.flag("run_in_background"),
        task: task.map_or(0, |task| digest(&[task.as_bytes()])),
        key: None,
        subagent: None,
    }
}

/// A path, if there is one.
fn said(sent: &str, words: &mut Words) -> Option<Arc<str>> {
    (!sent.is_empty()).then(|| words.get(cut_str(&path::without_host(sent), 4_096)))
}

/// The name of an MCP tool without its server; any other name as it is.
fn bare(sent: &str) -> &str {
    if let Some(tool) = sent.strip_prefix("MCP:") {
        return if tool.is_empty() { "unknown" } else { tool };
    }
    let claude = sent.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    claude.map_or(sent, |(_, tool)| tool)
}

/// `duration` (milliseconds, also as text), else `duration_ms`.
fn milliseconds(fields: &Fields<'_>) -> Option<f64> {
    ["duration", "duration_ms"]
        .iter()
        .find_map(|name| fields.number(name))
        .filter(|duration| *duration >= 0.0)
}

fn shell_content(command: &str) -> u64 {
    if command.is_empty() { 0 } else { digest(&[b"shell", command.as_bytes()]) }
}

/// 0 for an empty input.
fn mcp_content(input: Option<Raw<'_>>) -> u64 {
    // One hook sends the input as an object, the other as JSON in a string. So their parsed content is compared.
    let raw = input.map_or("", Raw::get);
    let inner = input.and_then(text);
    let written = inner.as_deref().unwrap_or(raw);
    let value = serde_json::from_str::<serde_json::Value>(written).map(|value| value.to_string());
    match value.as_deref().unwrap_or(written) {
        "" | "{}" | "null" | "\"\"" => 0,
        said => digest(&[b"mcp", said.as_bytes()]),
    }
}

fn path_content(sent: &str) -> u64 {
    if sent.is_empty() { 0 } else { digest(&[path::key(sent).as_bytes()]) }
}

fn server(fields: &Fields<'_>) -> Server {
    let url = fields.first(&["mcp_server_url", "url"]).and_then(text);
    let (address, port) = url.as_deref().map_or((None, None), host_and_port);
    let command = fields.word("command");
    let name = ["mcp_server_name", "server"].iter().find_map(|name| fields.word(name));
    Server {
        name: name.map(|text| cut(text, 256)),
        pipe: url.is_none(),
        address,
        port,
        has_command: command.is_some(),
    }
}

/// Host and port of a URL, without user, path or query.
fn host_and_port(url: &str) -> (Option<String>, Option<i64>) {
    let Some((scheme, rest)) = url.split_once("://") else { return (None, None) };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()),
        _ => (authority, None),
    };
    let default = match scheme {
        "https" | "wss" => Some(443),
        "http" | "ws" => Some(80),
        _ => None,
    };
    let host = Some(cut(host.to_owned(), 256)).filter(|host| !host.is_empty());
    let port = port.or(default).filter(|_| host.is_some());
    (host, port)
}

fn edits(list: Raw<'_>) -> Edits {
    let mut sum = Edits::default();
    for item in array(list) {
        let mut store = String::new();
        let one = object(item, &mut store).map(|fields| edit(&fields)).unwrap_or_default();
        sum.count = sum.count.saturating_add(1);
        sum.added = sum.added.saturating_add(one.added);
        sum.removed = sum.removed.saturating_add(one.removed);
        sum.text = if sum.count == 1 { one.text } else { mix(sum.text, one.text) };
        sum.new = if sum.count == 1 { one.new } else { 0 };
    }
    sum
}

fn edit(fields: &Fields<'_>) -> Edits {
    let old = fields.first(&["old_string", "oldText"]).and_then(text).unwrap_or_default();
    let new = fields.first(&["new_string", "newText"]).and_then(text).unwrap_or_default();
    let (added, removed) = changed_lines(&old, &new);
    let text = if old.is_empty() { 0 } else { digest(&[old.as_bytes(), new.as_bytes()]) };
    Edits { count: 1, added, removed, text, new: new_text(&new) }
}

/// Digest of a text's length and end, which tell two edits of a file apart.
fn new_text(text: &str) -> u64 {
    const END: usize = 512;
    let end = &text.as_bytes()[text.len().saturating_sub(END)..];
    digest(&[end, &text.len().to_le_bytes()])
}

fn changes(fields: &Fields<'_>) -> Option<Edits> {
    let mut store = String::new();
    let changes = fields.object("changes", &mut store)?;
    let modified = changes.int("modified").unwrap_or_default();
    let lines = |name| changes.int(name).unwrap_or_default().saturating_add(modified);
    Some(Edits { count: 1, added: lines("added"), removed: lines("removed"), ..Edits::default() })
}

/// A patch in a field of the input (Codex).
fn patch<'a>(fields: &Fields<'a>) -> Option<Cow<'a, str>> {
    fields.text("command").filter(|patch| patch.starts_with("*** Begin Patch"))
}

/// The file that a patch changes, if it changes only one.
fn patch_path(patch: Cow<'_, str>) -> Option<String> {
    let named = |line: &str| Some(line.strip_prefix("*** ")?.split_once(" File: ")?.1.to_owned());
    let mut files = patch.lines().filter_map(named);
    files.next().filter(|_| files.next().is_none())
}

fn patch_edits(patch: &str) -> Edits {
    let mut sum = Edits::default();
    for line in patch.lines() {
        sum.count += i64::from(line.starts_with("*** ") && line.contains(" File: "));
        sum.added += i64::from(line.starts_with('+') && !line.starts_with("+++"));
        sum.removed += i64::from(line.starts_with('-') && !line.starts_with("---"));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_url_gives_host_and_port_and_nothing_else() {
        let cases = [
            ("https://u:p@mcp.example.com/sse?k=1", (Some("mcp.example.com"), Some(443))),
            ("http://[::1]:8080/x", (Some("[::1]"), Some(8_080))),
            ("http://[::1]/x", (Some("[::1]"), Some(80))),
            ("notion", (None, None)),
        ];
        for (url, (host, port)) in cases {
            assert_eq!(host_and_port(url), (host.map(str::to_owned), port), "{url}");
        }
    }

    #[test]
    fn both_layers_spell_one_path() {
        let paths = ["/d:/App/a.rs", "D:\\App\\a.rs", "d:/App/a.rs"];
        assert!(paths.iter().all(|path| path_content(path) == path_content("d:\\App\\a.rs")));
        assert_ne!(path_content("/App/a.rs"), path_content("/app/a.rs"));
    }
}
