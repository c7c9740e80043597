//! What a hook means, in our words. `normalise` is total: every dialect, every damage.

use std::borrow::Cow;
use std::sync::Arc;

use crate::content::{self, Content, Field};
use crate::contract::unseen;
use crate::digest::{content_key, digest};
use crate::payload::{Fields, Raw, array, decode, first, object, scan, text};
use crate::tool::{ToolFacts, cut, cut_str};
use crate::words::Words;
use crate::{Hook, HookSource, Timestamp, Tokens};

/// A hook, interpreted. Holds facts and sizes; texts stay in the raw body.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Position in the raw log.
    pub seq: u64,
    /// Wall clock of receipt.
    pub at: Timestamp,
    /// `conversation_id`, else `session_id`; empty when the payload has no identity at all.
    pub conversation: Arc<str>,
    /// Normalised generation id; empty when the event belongs to whatever turn is open.
    pub generation: Arc<str>,
    /// Event name for counters: ours for a known event (`preToolUse`), as sent (at most 64 characters) otherwise.
    pub name: Cow<'static, str>,
    /// Whose hook it is.
    pub host: Host,
    /// What every event may say besides its own fields.
    pub about: About,
    /// Fields that no hook of Cursor is known to send, made plain: at most 8 names of at most 64 characters.
    pub unseen: Vec<Box<str>>,
    /// The parent a hook itself names for its conversation.
    pub lineage: Option<Box<Lineage>>,
    /// What happened.
    pub kind: EventKind,
}

/// Which program ran the hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// Cursor, IDE or CLI.
    #[default]
    Cursor,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// VS Code Copilot.
    Copilot,
    /// Windsurf.
    Windsurf,
}

impl Host {
    /// The word in span names, `gen_ai.agent.name` and lists.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cursor => "cursor",
            Self::Claude => "claude-code",
            Self::Codex => "codex",
            Self::Copilot => "vscode-copilot",
            Self::Windsurf => "windsurf",
        }
    }
}

/// The envelope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// `model` as sent; empty is absent.
    pub model: Option<Arc<str>>,
    /// `model_id` and `model_params`, where either is sent.
    pub labels: Option<Box<Labels>>,
    /// `cursor_version`.
    pub cursor_version: Option<Arc<str>>,
    /// First of `workspace_roots`, else `cwd` of other hosts.
    pub workspace: Option<Arc<str>>,
    /// `transcript_path`.
    pub transcript_path: Option<Arc<str>>,
}

/// What only some events say of their model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// `model_id`.
    pub id: Option<String>,
    /// `model_params` as JSON.
    pub params: Option<String>,
}

/// A child conversation's parent, by explicit ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// The parent conversation.
    pub parent: String,
    /// The subagent's id there.
    pub subagent: String,
}

/// The closed set of what can happen.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// `workspaceOpen`: no ids, no span.
    WorkspaceOpen,
    /// `sessionStart`.
    SessionStart {
        /// `is_background_agent`.
        background: Option<bool>,
        /// `composer_mode`.
        mode: Option<String>,
    },
    /// `sessionEnd`.
    SessionEnd(Box<SessionEnd>),
    /// `beforeSubmitPrompt`.
    Prompt(Box<Prompt>),
    /// `preToolUse`.
    ToolStart(Box<ToolFacts>),
    /// `postToolUse`.
    ToolEnd(Box<ToolFacts>),
    /// `postToolUseFailure`.
    ToolFailure(Box<ToolFacts>),
    /// `beforeShellExecution`.
    ShellStart(Box<ToolFacts>),
    /// `afterShellExecution`.
    ShellEnd(Box<ToolFacts>),
    /// `beforeMCPExecution`.
    McpStart(Box<ToolFacts>),
    /// `afterMCPExecution`.
    McpEnd(Box<ToolFacts>),
    /// `beforeReadFile`.
    FileRead(Box<ToolFacts>),
    /// `afterFileEdit`.
    FileEdit(Box<ToolFacts>),
    /// `afterAgentResponse`.
    Response(Box<Response>),
    /// `afterAgentThought`.
    Thought(Box<Thought>),
    /// `stop`.
    Stop(Box<Stop>),
    /// `subagentStart`.
    SubagentStart(Box<SubagentFacts>),
    /// `subagentStop`.
    SubagentStop(Box<SubagentFacts>),
    /// `preCompact`.
    Compaction(Box<Compaction>),
    /// `beforeTabFileRead`.
    TabRead {
        /// File.
        path: Option<String>,
    },
    /// `afterTabFileEdit`.
    TabEdit {
        /// File.
        path: Option<String>,
        /// Lines added.
        added: i64,
        /// Lines removed.
        removed: i64,
    },
    /// An event name hookspan does not know: kept, counted, attached to the open turn.
    Unknown {
        /// The name as sent.
        name: String,
        /// Digest of the body, to know it again when it is delivered twice.
        body: u64,
    },
    /// A body that could not be read: kept, counted.
    Malformed,
    /// Proof of whose child a conversation is, found by the collector.
    Evidence(Box<Evidence>),
}

/// `sessionEnd`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionEnd {
    /// `reason`.
    pub reason: Option<String>,
    /// `final_status`.
    pub final_status: Option<String>,
    /// `duration_ms`.
    pub duration_ms: Option<i64>,
    /// `is_background_agent`.
    pub background: Option<bool>,
}

/// `beforeSubmitPrompt`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// Bytes of the prompt.
    pub bytes: u64,
    /// Its first 200 characters.
    pub preview: Option<String>,
    /// Number of attachments.
    pub attachments: i64,
    /// Their types, sorted, unique.
    pub attachment_types: Vec<String>,
    /// `composer_mode`.
    pub mode: Option<String>,
}

/// `afterAgentResponse`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// `~` + hash of the text.
    pub key: String,
    /// Bytes of the text.
    pub bytes: u64,
    /// Token counts, when sent.
    pub tokens: Option<Tokens>,
    /// `tokens` of the oldest payloads: one number for all of them.
    pub total: Option<u64>,
    /// `duration_ms`.
    pub duration_ms: Option<f64>,
}

/// `afterAgentThought`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thought {
    /// The step suffix of its generation id, else `~` + hash of the text.
    pub key: String,
    /// Whether `key` is a step.
    pub step: bool,
    /// Bytes of the text.
    pub bytes: u64,
    /// `duration_ms`.
    pub duration_ms: Option<f64>,
}

/// `stop`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// `status`.
    pub status: Option<String>,
    /// `loop_count`.
    pub loop_count: Option<i64>,
    /// Token counts, when sent.
    pub tokens: Option<Tokens>,
}

/// `subagentStart` and `subagentStop`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubagentFacts {
    /// `subagent_id`, else `tool_call_id`.
    pub id: Option<String>,
    /// `subagent_type`.
    pub agent: Option<String>,
    /// `subagent_model`.
    pub model: Option<String>,
    /// `~` + hash of type and task, the key of one without an id.
    pub fallback: String,
    /// Digest of the task.
    pub task: u64,
    /// Whether the body holds a task, a summary, a description.
    pub has: (bool, bool, bool),
    /// `status`.
    pub status: Option<String>,
    /// `duration_ms`.
    pub duration_ms: Option<f64>,
    /// `git_branch`.
    pub branch: Option<String>,
    /// `is_parallel_worker`.
    pub parallel: Option<bool>,
    /// `message_count`.
    pub messages: Option<i64>,
    /// `tool_call_count`.
    pub tool_calls: Option<i64>,
}

impl SubagentFacts {
    /// Its key among the delegations of its conversation.
    pub(crate) fn key(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.fallback)
    }
}

/// `preCompact`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compaction {
    /// `~` + hash of trigger and context tokens.
    pub key: String,
    /// `trigger`.
    pub trigger: Option<String>,
    /// `context_usage_percent`.
    pub usage_percent: Option<f64>,
    /// `context_tokens`.
    pub context_tokens: Option<i64>,
    /// `context_window_size`.
    pub window_size: Option<i64>,
    /// `message_count`.
    pub messages: Option<i64>,
    /// `messages_to_compact`.
    pub to_compact: Option<i64>,
    /// `is_first_compaction`.
    pub first: Option<bool>,
}

/// How sure a link between a child conversation and its parent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Several candidates.
    Ambiguous,
    /// A single candidate by time and workspace.
    Tentative,
    /// The parent's transcript folder proves it.
    Transcript,
    /// An explicit id, or Cursor's own store.
    Exact,
}

impl Confidence {
    /// The value of `hookspan.subagent.link`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ambiguous => "ambiguous",
            Self::Tentative => "tentative",
            Self::Transcript => "transcript",
            Self::Exact => "exact",
        }
    }
}

/// Where a link comes from, `hookspan.subagent.link_source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkSource {
    /// Order and workspace only.
    Window,
    /// A file in the parent's transcript folder.
    TranscriptFolder,
    /// The child's own `transcript_path`.
    TranscriptPath,
    /// Cursor's store.
    Store,
    /// The hook names its parent.
    Hook,
}

impl LinkSource {
    /// Every source.
    pub const ALL: [Self; 5] =
        [Self::Window, Self::TranscriptFolder, Self::TranscriptPath, Self::Store, Self::Hook];

    /// The word in attributes and evidence.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::TranscriptFolder => "transcript_folder",
            Self::TranscriptPath => "transcript_path",
            Self::Store => "store",
            Self::Hook => "hook",
        }
    }
}

/// What the collector found out about a child conversation. It travels as a hook of [`HookSource::Evidence`], so that the
/// raw log alone rebuilds everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The child conversation.
    pub child: String,
    /// Its parent conversation.
    pub parent: String,
    /// `tool_use_id` of the delegating call, if known.
    pub call: Option<String>,
    /// [`Confidence::Exact`] or [`Confidence::Transcript`]; anything less is not evidence.
    pub confidence: Confidence,
    /// Where it was found.
    pub source: LinkSource,
}

impl Evidence {
    /// The body of the hook that carries it.
    #[must_use]
    pub fn to_body(&self) -> Vec<u8> {
        serde_json::json!({
            "hook_event_name": "hookspan.evidence",
            "conversation_id": self.child,
            "parent_conversation_id": self.parent,
            "tool_call_id": self.call,
            "confidence": self.confidence.as_str(),
            "link_source": self.source.as_str(),
        })
        .to_string()
        .into_bytes()
    }

    fn read(fields: &Fields<'_>) -> Option<Self> {
        let confidence = match &*fields.text("confidence")? {
            "exact" => Confidence::Exact,
            "transcript" => Confidence::Transcript,
            _ => return None,
        };
        let source = fields.text("link_source")?;
        Some(Self {
            child: fields.word("conversation_id")?,
            parent: fields.word("parent_conversation_id")?,
            call: fields.word("tool_call_id"),
            confidence,
            source: LinkSource::ALL.into_iter().find(|known| known.as_str() == source)?,
        })
    }
}

/// Reads a hook. Never fails; see [`EventKind::Malformed`]. For more than one, a [`Reader`] takes less time and memory.
#[must_use]
pub fn normalise(hook: &Hook) -> Event {
    Reader { words: Words::once() }.read(hook)
}

/// Reads hooks. What it remembers of earlier ones saves memory and changes nothing.
#[derive(Debug, Default)]
pub struct Reader {
    words: Words,
}

impl Reader {
    /// Reads a hook. Never fails; see [`EventKind::Malformed`].
    pub fn read(&mut self, hook: &Hook) -> Event {
        self.read_with(hook, |_| None).0
    }

    /// Reads a hook, and with it the content that `wanted` names once it is known what happened: the body is read once.
    pub fn read_with(
        &mut self,
        hook: &Hook,
        wanted: impl FnOnce(&EventKind) -> Option<Field>,
    ) -> (Event, Option<Content>) {
        let body = decode(&hook.body);
        let mut content = None;
        let event = match Fields::parse(&body) {
            Some(fields) => {
                let event = read(hook, &fields, &mut self.words);
                content = wanted(&event.kind).and_then(|field| content::of(field, &fields));
                event
            }
            None => malformed(hook, &body, &mut self.words),
        };
        (event, content)
    }
}

/// Ids are compared and stored everywhere: a forged one must not be a megabyte.
const ID_BYTES: usize = 512;

fn blank(hook: &Hook, kind: EventKind, name: Cow<'static, str>) -> Event {
    Event {
        seq: hook.seq,
        at: hook.observed_at,
        conversation: Arc::default(),
        generation: Arc::default(),
        name,
        host: Host::Cursor,
        about: About::default(),
        unseen: Vec::new(),
        lineage: None,
        kind,
    }
}

fn malformed(hook: &Hook, body: &str, words: &mut Words) -> Event {
    let mut event = blank(hook, EventKind::Malformed, Cow::Borrowed("malformed"));
    let id = |names: [&str; 2]| names.into_iter().find_map(|name| scan(body, name));
    let conversation = id(["conversation_id", "conversationId"]);
    let conversation = conversation.or_else(|| id(["session_id", "sessionId"]));
    event.conversation = words.get(cut_str(conversation.unwrap_or_default(), ID_BYTES));
    let generation = id(["generation_id", "generationId"]).unwrap_or_default();
    name_generation(&mut event, split_step(generation).0, words);
    event
}

/// Some hooks outside any turn repeat the conversation's id there.
fn name_generation(event: &mut Event, generation: &str, words: &mut Words) {
    let generation = cut_str(generation, ID_BYTES);
    if generation != &*event.conversation {
        event.generation = words.get(generation);
    }
}

fn read(hook: &Hook, fields: &Fields<'_>, words: &mut Words) -> Event {
    if hook.source == HookSource::Evidence {
        let Some(evidence) = Evidence::read(fields) else {
            return blank(hook, EventKind::Malformed, Cow::Borrowed("malformed"));
        };
        let conversation = words.get(cut_str(&evidence.child, ID_BYTES));
        let kind = EventKind::Evidence(Box::new(evidence));
        return Event { conversation, ..blank(hook, kind, Cow::Borrowed("hookspan.evidence")) };
    }
    let sent = ["hook_event_name", "agent_action_name"].iter().find_map(|name| fields.said(name));
    let in_body = sent.is_some();
    let sent = sent.or_else(|| hook.argument.as_deref().map(Cow::Borrowed)).unwrap_or_default();
    let host = host(hook, fields, &sent);
    let mut store = String::new();
    let tool_info = fields.object("tool_info", &mut store);
    let name = known(&sent);
    let own = tool_info.as_ref().unwrap_or(fields);
    let kind = name.and_then(|name| kind(name, (own, fields), in_body, words));
    let name = match name {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(cut_str(&sent, 64).to_owned()),
    };
    let kind = kind.unwrap_or_else(|| EventKind::Unknown {
        name: cut(sent.into_owned(), 256),
        body: digest(&[hook.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&hook.body)]),
    });
    let mut event = blank(hook, kind, name);
    event.host = host;
    if host == Host::Cursor && !matches!(event.kind, EventKind::Unknown { .. }) {
        event.unseen = unseen(fields.unlisted());
    }
    event.about = about(hook, fields, words);
    identify(&mut event, hook, fields, words);
    event
}

/// Fills conversation, generation and lineage.
fn identify(event: &mut Event, hook: &Hook, fields: &Fields<'_>, words: &mut Words) {
    if matches!(event.kind, EventKind::WorkspaceOpen) {
        return;
    }
    let ids = ["conversation_id", "session_id", "trajectory_id"];
    let conversation = ids.iter().find_map(|name| fields.said(name));
    let conversation =
        conversation.unwrap_or_else(|| Cow::Owned(synthetic_conversation(hook, fields)));
    event.conversation = words.get(cut_str(&conversation, ID_BYTES));
    let about_child =
        matches!(event.kind, EventKind::SubagentStart(_) | EventKind::SubagentStop(_));
    if event.host == Host::Claude
        && !about_child
        && let Some(agent) = fields.word("agent_id")
    {
        let child = format!("{conversation}/{agent}");
        event.conversation = words.get(cut_str(&child, ID_BYTES));
        let lineage = Lineage { parent: conversation.into_owned(), subagent: agent };
        event.lineage = Some(Box::new(lineage));
    }
    let ids = ["generation_id", "turn_id", "execution_id"];
    let sent = ids.iter().find_map(|name| fields.said(name)).unwrap_or_default();
    let (generation, step) = split_step(&sent);
    name_generation(event, generation, words);
    if let (EventKind::Thought(thought), Some(step)) = (&mut event.kind, step) {
        thought.key = step.to_owned();
        thought.step = true;
    }
}

/// Payloads without any identity share one conversation per folder.
fn synthetic_conversation(hook: &Hook, fields: &Fields<'_>) -> String {
    let mut store = String::new();
    let context = fields.object("context", &mut store);
    let folder = context.and_then(|context| context.word("workspaceFolder"));
    let known = [&hook.context.project_dir, &hook.context.cwd];
    let folder = folder.or_else(|| known.into_iter().flatten().next().cloned());
    let folder = folder.or_else(|| fields.word("cwd")).unwrap_or_default();
    content_key(&["folder", &folder])
}

/// Takes the step suffix `-<digits>-<4 of [a-z0-9]>` off a generation id.
fn split_step(sent: &str) -> (&str, Option<&str>) {
    let suffix = || {
        let (rest, tail) = sent.rsplit_once('-')?;
        let (base, step) = rest.rsplit_once('-')?;
        let is_tail =
            tail.len() == 4 && tail.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let is_step = !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit());
        (is_tail && is_step && !base.is_empty()).then(|| (base, &sent[base.len() + 1..]))
    };
    suffix().map_or((sent, None), |(base, step)| (base, Some(step)))
}

fn host(hook: &Hook, fields: &Fields<'_>, sent: &str) -> Host {
    let cursor = fields.first(&["cursor_version", "conversation_id"]).is_some();
    if cursor || hook.context.cursor_version.is_some() {
        return Host::Cursor;
    }
    if fields.first(&["trajectory_id", "agent_action_name"]).is_some() {
        return Host::Windsurf;
    }
    if !sent.starts_with(|c: char| c.is_ascii_uppercase()) || fields.raw("session_id").is_none() {
        return Host::Cursor;
    }
    let transcript = fields.text("transcript_path").unwrap_or_default();
    if transcript.contains("/.codex/") || fields.raw("turn_id").is_some() {
        Host::Codex
    } else if fields.raw("timestamp").is_some() || transcript.contains("copilot") {
        Host::Copilot
    } else {
        Host::Claude
    }
}

/// Our name for an event, whoever spelled it.
fn known(sent: &str) -> Option<&'static str> {
    const NAMES: [&str; 21] = [
        "workspaceOpen",
        "sessionStart",
        "sessionEnd",
        "beforeSubmitPrompt",
        "preToolUse",
        "postToolUse",
        "postToolUseFailure",
        "beforeShellExecution",
        "afterShellExecution",
        "beforeMCPExecution",
        "afterMCPExecution",
        "beforeReadFile",
        "afterFileEdit",
        "afterAgentResponse",
        "afterAgentThought",
        "stop",
        "subagentStart",
        "subagentStop",
        "preCompact",
        "beforeTabFileRead",
        "afterTabFileEdit",
    ];
    const OTHERS: [(&str, &str); 10] = [
        ("UserPromptSubmit", "beforeSubmitPrompt"),
        ("pre_user_prompt", "beforeSubmitPrompt"),
        ("post_cascade_response", "afterAgentResponse"),
        ("pre_run_command", "beforeShellExecution"),
        ("post_run_command", "afterShellExecution"),
        ("pre_mcp_tool_use", "beforeMCPExecution"),
        ("post_mcp_tool_use", "afterMCPExecution"),
        ("pre_read_code", "beforeReadFile"),
        ("post_write_code", "afterFileEdit"),
        ("SubagentStarted", "subagentStart"),
    ];
    let (first, rest) = (sent.get(..1)?, sent.get(1..)?);
    NAMES
        .into_iter()
        .find(|name| name.get(1..) == Some(rest) && name[..1].eq_ignore_ascii_case(first))
        .or_else(|| OTHERS.into_iter().find(|(other, _)| *other == sent).map(|(_, name)| name))
}

/// `own` holds the event's own fields, `envelope` everything; they differ only for Windsurf.
fn kind(
    name: &str,
    (own, envelope): (&Fields<'_>, &Fields<'_>),
    in_body: bool,
    words: &mut Words,
) -> Option<EventKind> {
    let kind = match name {
        "workspaceOpen" => EventKind::WorkspaceOpen,
        "sessionStart" => EventKind::SessionStart {
            background: own.flag("is_background_agent"),
            mode: own.word("composer_mode").map(|text| cut(text, 64)),
        },
        "sessionEnd" => EventKind::SessionEnd(Box::new(session_end(own))),
        "beforeSubmitPrompt" => EventKind::Prompt(Box::new(prompt(own))),
        "preToolUse" => EventKind::ToolStart(Box::new(ToolFacts::generic(own, words))),
        "postToolUse" => EventKind::ToolEnd(Box::new(ToolFacts::generic(own, words))),
        "postToolUseFailure" => EventKind::ToolFailure(Box::new(ToolFacts::generic(own, words))),
        "beforeShellExecution" => EventKind::ShellStart(Box::new(ToolFacts::shell(own, words))),
        "afterShellExecution" => EventKind::ShellEnd(Box::new(ToolFacts::shell(own, words))),
        "beforeMCPExecution" => EventKind::McpStart(Box::new(ToolFacts::mcp(own, words))),
        "afterMCPExecution" => EventKind::McpEnd(Box::new(ToolFacts::mcp(own, words))),
        "beforeReadFile" => EventKind::FileRead(Box::new(ToolFacts::file(own, "Read", words))),
        "afterFileEdit" => EventKind::FileEdit(Box::new(ToolFacts::file(own, "Write", words))),
        "afterAgentResponse" => EventKind::Response(Box::new(response(own))),
        "afterAgentThought" => EventKind::Thought(Box::new(thought(own))),
        // Without an envelope, `stop` is the end of the session: the oldest beta meant it so.
        "stop" if !in_body && envelope.raw("status").is_none() => {
            EventKind::SessionEnd(Box::new(session_end(own)))
        }
        "stop" => EventKind::Stop(Box::new(stop(own))),
        "subagentStart" => EventKind::SubagentStart(Box::new(subagent(own, true))),
        "subagentStop" => EventKind::SubagentStop(Box::new(subagent(own, false))),
        "preCompact" => EventKind::Compaction(Box::new(compaction(own))),
        "beforeTabFileRead" => EventKind::TabRead { path: path(own) },
        "afterTabFileEdit" => {
            let edits = ToolFacts::file(own, "Write", words)
                .more()
                .and_then(|more| more.edits)
                .unwrap_or_default();
            EventKind::TabEdit { path: path(own), added: edits.added, removed: edits.removed }
        }
        _ => return None,
    };
    Some(kind)
}

fn about(hook: &Hook, fields: &Fields<'_>, words: &mut Words) -> About {
    let root = fields.raw("workspace_roots").and_then(first).and_then(text);
    let root = root.filter(|root| !root.is_empty()).or_else(|| {
        // Only other hosts name their project by `cwd`; Cursor's is the shell's.
        fields.raw("conversation_id").is_none().then(|| fields.said("cwd")).flatten()
    });
    let root = root.as_deref().or(hook.context.project_dir.as_deref());
    let transcript = fields.said("transcript_path");
    let transcript = transcript.as_deref().or(hook.context.transcript_path.as_deref());
    let model = ["model", "subagent_model"].iter().find_map(|name| fields.said(name));
    let id = fields.word("model_id").map(|text| cut(text, 128));
    let params = fields.raw("model_params").map(|raw| cut_str(raw.get(), 1_024).to_owned());
    About {
        model: model.map(|text| words.get(cut_str(&text, 128))),
        labels: (id.is_some() || params.is_some()).then(|| Box::new(Labels { id, params })),
        cursor_version: fields.said("cursor_version").map(|text| words.get(cut_str(&text, 64))),
        workspace: root.map(|text| words.get(cut_str(text, 4_096))),
        transcript_path: transcript.map(|text| words.get(cut_str(text, 4_096))),
    }
}

fn path(fields: &Fields<'_>) -> Option<String> {
    fields.word("file_path").map(|text| cut(text, 4_096))
}

fn session_end(fields: &Fields<'_>) -> SessionEnd {
    SessionEnd {
        reason: fields.word("reason").map(|text| cut(text, 64)),
        final_status: fields.word("final_status").map(|text| cut(text, 64)),
        duration_ms: fields.int("duration_ms"),
        background: fields.flag("is_background_agent"),
    }
}

fn prompt(fields: &Fields<'_>) -> Prompt {
    let sent = fields.first(&["prompt", "user_prompt"]).and_then(text).unwrap_or_default();
    let attachments = fields.raw("attachments").map(array).unwrap_or_default();
    let mut types: Vec<String> =
        attachments.iter().filter_map(|one| attachment_type(*one)).collect();
    types.sort();
    types.dedup();
    types.truncate(16);
    Prompt {
        bytes: sent.len() as u64,
        preview: preview(&sent),
        attachments: i64::try_from(attachments.len()).unwrap_or(i64::MAX),
        attachment_types: types,
        mode: fields.word("composer_mode").map(|text| cut(text, 64)),
    }
}

fn attachment_type(attachment: Raw<'_>) -> Option<String> {
    let mut store = String::new();
    object(attachment, &mut store)?.word("type").map(|text| cut(text, 64))
}

fn preview(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.chars().take(200).collect())
}

fn tokens(fields: &Fields<'_>) -> Option<Tokens> {
    let input = fields.count("input_tokens");
    let output = fields.count("output_tokens");
    (input.is_some() || output.is_some()).then(|| Tokens {
        input: input.unwrap_or_default(),
        output: output.unwrap_or_default(),
        cache_read: fields.count("cache_read_tokens").unwrap_or_default(),
        cache_write: fields.count("cache_write_tokens").unwrap_or_default(),
    })
}

fn response(fields: &Fields<'_>) -> Response {
    let sent = fields.first(&["text", "response"]).and_then(text).unwrap_or_default();
    Response {
        key: content_key(&[&sent]),
        bytes: sent.len() as u64,
        tokens: tokens(fields),
        total: fields.count("tokens"),
        duration_ms: fields.number("duration_ms"),
    }
}

fn thought(fields: &Fields<'_>) -> Thought {
    let sent = fields.text("text").unwrap_or_default();
    Thought {
        key: content_key(&[&sent]),
        step: false,
        bytes: sent.len() as u64,
        duration_ms: fields.number("duration_ms").filter(|duration| *duration >= 0.0),
    }
}

fn stop(fields: &Fields<'_>) -> Stop {
    Stop {
        status: fields.word("status").map(|text| cut(text, 64)),
        loop_count: fields.int("loop_count"),
        tokens: tokens(fields),
    }
}

fn subagent(fields: &Fields<'_>, start: bool) -> SubagentFacts {
    let word = |names: [&str; 2], max| {
        names.iter().find_map(|name| fields.word(name)).map(|text| cut(text, max))
    };
    let agent = word(["subagent_type", "agent_type"], 128);
    let task = fields.first(&["task", "prompt"]).and_then(text);
    let fallback =
        content_key(&[agent.as_deref().unwrap_or_default(), task.as_deref().unwrap_or_default()]);
    let has_summary = fields.first(&["summary", "result", "last_assistant_message"]).is_some();
    SubagentFacts {
        id: ["subagent_id", "tool_call_id", "agent_id"].iter().find_map(|name| fields.word(name)),
        model: if start { word(["subagent_model", "model"], 128) } else { None },
        fallback,
        task: digest(&[task.as_deref().unwrap_or_default().as_bytes()]),
        has: (task.is_some(), has_summary, fields.raw("description").is_some()),
        agent,
        status: word(["status", "final_status"], 64),
        duration_ms: ["duration_ms", "duration"]
            .iter()
            .find_map(|name| fields.number(name))
            .filter(|duration| *duration >= 0.0),
        branch: word(["git_branch", "branch"], 256),
        parallel: fields.flag("is_parallel_worker"),
        messages: fields.int("message_count"),
        tool_calls: fields.int("tool_call_count"),
    }
}

fn compaction(fields: &Fields<'_>) -> Compaction {
    let trigger = fields.word("trigger").map(|text| cut(text, 64));
    let context_tokens = fields.int("context_tokens");
    let count = context_tokens.map(|count| count.to_string()).unwrap_or_default();
    Compaction {
        key: content_key(&[trigger.as_deref().unwrap_or_default(), &count]),
        trigger,
        usage_percent: fields.number("context_usage_percent"),
        context_tokens,
        window_size: fields.int("context_window_size"),
        messages: fields.int("message_count"),
        to_compact: fields.int("messages_to_compact"),
        first: fields.flag("is_first_compaction"),
    }
}
