//! Turns a hook into an event, in every dialect and however damaged: finds its host, conversation and turn.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::model::bounded::{ID_BYTES, cut, cut_str};
use crate::model::content::{Content, Field};
use crate::model::event::{
    About, Confidence, Event, EventKind, Evidence, Host, Labels, Lineage, LinkSource,
};
use crate::model::fingerprint::{content_key, digest};
use crate::model::hook::{Hook, HookSource};
use crate::model::path;
use crate::model::repository::{MAX_COMMITS, RepositoryState};
use crate::model::tolerance::HOUR;
use crate::read::content;
use crate::read::event_kind::{kind, known};
use crate::read::host::host;
use crate::read::interner::{Root, Words};
use crate::read::known_fields::unseen;
use crate::read::known_values;
use crate::read::other_hosts;
use crate::read::payload::{Fields, Raw, array, decode, first, scan, text};
use crate::read::repair::repair;

/// Maximum number of a hook's roots that are searched for its file.
const MAX_ROOTS: usize = 32;

/// Reads a single hook. Never fails; see [`EventKind::Malformed`]. For several hooks, use a [`Reader`]: it takes less
/// time and memory.
#[must_use]
pub fn normalise(hook: &Hook) -> Event {
    Reader { words: Words::once() }.read(hook)
}

/// Reads hooks. A reader remembers texts of earlier hooks to save memory; this changes no result.
#[derive(Debug, Default)]
pub struct Reader {
    words: Words,
}

impl Reader {
    /// Reads a hook. Never fails; see [`EventKind::Malformed`].
    pub fn read(&mut self, hook: &Hook) -> Event {
        self.read_with(hook, |_| None).0
    }

    /// Reads a hook together with content, so that the body is parsed only once. `wanted` names the content after the
    /// event is known.
    pub fn read_with(
        &mut self,
        hook: &Hook,
        wanted: impl FnOnce(&EventKind) -> Option<Field>,
    ) -> (Event, Option<Content>) {
        let body = decode(&hook.body);
        let mut content = None;
        if let Some(fields) = Fields::parse(&body) {
            let event = read(hook, &fields, &mut self.words);
            content = wanted(&event.kind).and_then(|field| content::of(field, &fields));
            return (event, content);
        }
        let sound = repair(&body);
        let event = sound.as_deref().and_then(|sound| damaged(hook, sound, &mut self.words));
        (event.unwrap_or_else(|| malformed(hook, &body, &mut self.words)), content)
    }
}

/// Reads a damaged body, if the readable part still says which event happened and in which conversation.
fn damaged(hook: &Hook, sound: &str, words: &mut Words) -> Option<Event> {
    use EventKind as K;
    let fields = Fields::parse(sound)?;
    let named = fields.first(&["hook_event_name", "agent_action_name"]).is_some();
    let known = fields.first(&["conversation_id", "session_id", "trajectory_id"]).is_some();
    if !known || !(named || hook.argument.is_some()) || hook.source == HookSource::Evidence {
        return None;
    }
    let event = read(hook, &fields, words);
    let is_told = match &event.kind {
        K::Unknown { .. } | K::WorkspaceOpen => false,
        // Without the tool's name nobody knows which call this was.
        K::ToolStart(_) | K::ToolEnd(_) | K::ToolFailure(_) => {
            fields.first(&["tool_name", "tool"]).is_some()
        }
        _ => true,
    };
    is_told.then(|| Event { damaged: true, unseen: Vec::new(), ..event })
}

fn blank(hook: &Hook, kind: EventKind, name: Cow<'static, str>) -> Event {
    Event {
        seq: hook.seq,
        at: hook.observed_at,
        boottime_ns: hook.boottime_ns.and_then(NonZeroU64::new),
        conversation: Arc::default(),
        generation: Arc::default(),
        name,
        host: Host::Cursor,
        about: About::default(),
        unseen: Vec::new(),
        unseen_values: Vec::new(),
        damaged: false,
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

/// Some hooks outside any turn repeat the conversation's id as their generation id.
fn name_generation(event: &mut Event, generation: &str, words: &mut Words) {
    let generation = cut_str(generation, ID_BYTES);
    if generation != &*event.conversation {
        event.generation = words.get(generation);
    }
}

fn read(hook: &Hook, fields: &Fields<'_>, words: &mut Words) -> Event {
    if hook.source == HookSource::Evidence {
        if fields.said("hook_event_name").as_deref() == Some("hookspan.repository") {
            return repository(hook, fields, words);
        }
        let Some(evidence) = evidence(fields) else {
            return blank(hook, EventKind::Malformed, Cow::Borrowed("malformed"));
        };
        let conversation = words.get(cut_str(&evidence.child, ID_BYTES));
        let kind = EventKind::Evidence(Box::new(evidence));
        return Event { conversation, ..blank(hook, kind, Cow::Borrowed("hookspan.evidence")) };
    }
    let sent = ["hook_event_name", "agent_action_name"].iter().find_map(|name| fields.said(name));
    let in_body = sent.is_some();
    let sent = sent.or_else(|| hook.argument.as_deref().map(Cow::Borrowed)).unwrap_or_default();
    let host = host(hook, fields, &sent, in_body);
    let mut store = String::new();
    let tool_info = fields.object("tool_info", &mut store);
    let own = tool_info.as_ref().unwrap_or(fields);
    let other = other_hosts::kind(&sent, host, fields, words);
    let name = known(&sent).filter(|_| other.is_none());
    let kind = match other {
        Some(kind) => kind.ok(),
        None => name.and_then(|name| kind(name, (own, fields), in_body, words)),
    };
    let name = match name {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(cut_str(&sent, 64).to_owned()),
    };
    let kind = kind.unwrap_or_else(|| EventKind::Unknown {
        is_new: host == Host::Cursor || !other_hosts::is_noted(&sent),
        name: cut(sent.into_owned(), 256),
        body: digest(&[hook.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&hook.body)]),
    });
    let mut event = blank(hook, kind, name);
    event.host = host;
    if host == Host::Cursor && !matches!(event.kind, EventKind::Unknown { .. }) {
        event.unseen = unseen(fields.unlisted());
        event.unseen_values = known_values::unseen(&event.name, own);
    }
    event.about = about(hook, fields, file(&event.kind), words);
    identify(&mut event, hook, fields, words);
    event
}

/// Fills conversation, generation and lineage.
fn identify(event: &mut Event, hook: &Hook, fields: &Fields<'_>, words: &mut Words) {
    if matches!(event.kind, EventKind::WorkspaceOpen) {
        return;
    }
    if matches!(event.kind, EventKind::TabRead { .. } | EventKind::TabEdit { .. }) {
        event.conversation = words.get(&tab_conversation(event));
        return;
    }
    let ids = ["conversation_id", "session_id", "trajectory_id"];
    let conversation = ids.iter().find_map(|name| fields.said(name));
    let conversation =
        conversation.unwrap_or_else(|| Cow::Owned(synthetic_conversation(hook, fields)));
    event.conversation = words.get(cut_str(&conversation, ID_BYTES));
    let about_child =
        matches!(event.kind, EventKind::SubagentStart(_) | EventKind::SubagentStop(_));
    if matches!(event.host, Host::Claude | Host::Codex)
        && !about_child
        && let Some(agent) = fields.word("agent_id")
    {
        let child = format!("{conversation}/{agent}");
        event.conversation = words.get(cut_str(&child, ID_BYTES));
        let lineage = Lineage { parent: conversation.into_owned(), subagent: agent };
        event.lineage = Some(Box::new(lineage));
    }
    if event.host == Host::Cursor
        && !about_child
        && let Some(call) = fields.word("parent_tool_call_id")
    {
        let parent = fields.word("parent_conversation_id").unwrap_or_default();
        if parent != *event.conversation {
            let subagent = cut_str(&call, ID_BYTES).to_owned();
            event.lineage = Some(Box::new(Lineage { parent, subagent }));
        }
    }
    let ids: &[&str] = match event.host {
        Host::Claude if is_beside_turns(&event.kind) => &[],
        // Claude Code's `turn_id` identifies a message, not a turn.
        Host::Claude => &["generation_id", "prompt_id"],
        // The turn belongs to the child.
        Host::Codex if about_child => &[],
        _ => &["generation_id", "turn_id", "execution_id"],
    };
    let sent = ids.iter().find_map(|name| fields.said(name)).unwrap_or_default();
    let (generation, step) = split_step(&sent);
    name_generation(event, generation, words);
    if let (EventKind::Thought(thought), Some(step)) = (&mut event.kind, step) {
        thought.key = step.to_owned();
        thought.step = true;
    }
}

/// Tab completions have no conversation, and each hook has a new id. They are grouped by workspace and hour, so that
/// each group ends and retention can delete it.
fn tab_conversation(event: &Event) -> String {
    let hour = event.at.0.div_euclid(HOUR).to_string();
    content_key(&["tab", event.about.workspace.as_deref().unwrap_or_default(), &hour])
}

/// Whether this is an event of Claude Code that names the last prompt without being part of its turn. Such an event
/// belongs to the open turn, or to no turn.
fn is_beside_turns(kind: &EventKind) -> bool {
    use EventKind as K;
    matches!(kind, K::Compaction(_) | K::CompactionEnd | K::Unknown { .. } | K::SessionEnd(_))
}

/// Payloads without any identity share one conversation per folder.
fn synthetic_conversation(hook: &Hook, fields: &Fields<'_>) -> String {
    let mut store = String::new();
    let context = fields.object("context", &mut store);
    let folder = context.and_then(|context| context.word("workspaceFolder"));
    let root = || fields.raw("workspace_roots").and_then(first).and_then(text).map(Cow::into_owned);
    let folder = folder.or_else(root).filter(|folder| !folder.is_empty());
    let known = [&hook.context.project_dir, &hook.context.cwd];
    let folder = folder.or_else(|| known.into_iter().flatten().next().cloned());
    let folder = folder.or_else(|| fields.word("cwd")).unwrap_or_default();
    content_key(&["folder", &path::plain(&folder)])
}

/// Removes the step suffix `-<digits>-<4 of [a-z0-9]>` from a generation id.
fn split_step(sent: &str) -> (&str, Option<&str>) {
    // Every hook runs this, and most ids have no suffix: the byte before the last four decides.
    let suffix = || {
        let (rest, tail) = sent.as_bytes().split_last_chunk::<4>()?;
        let is_tail = tail.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let rest = rest.strip_suffix(b"-").filter(|_| is_tail)?;
        let digits = rest.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let base = rest[..rest.len() - digits].strip_suffix(b"-").filter(|_| digits > 0)?.len();
        (base > 0).then(|| (&sent[..base], &sent[base + 1..]))
    };
    suffix().map_or((sent, None), |(base, step)| (base, Some(step)))
}

fn about(hook: &Hook, fields: &Fields<'_>, file: Option<&str>, words: &mut Words) -> About {
    let roots = fields.raw("workspace_roots");
    let root = roots.and_then(first).and_then(text).filter(|root| !root.is_empty()).or_else(|| {
        // Only other hosts name their project by `cwd`. In Cursor's hooks, `cwd` is the shell's folder.
        fields.raw("conversation_id").is_none().then(|| fields.said("cwd")).flatten()
    });
    let root = root.as_deref().or(hook.context.project_dir.as_deref());
    let known = root.map(|root| words.root(root));
    let (root, project, remote) = match known {
        Some(Root { root, project, remote }) => (root, Some(project), remote),
        None => (None, None, false),
    };
    let own = roots.zip(file).and_then(|(roots, file)| root_of(roots, file, words));
    let transcript = fields.said("transcript_path");
    let transcript = transcript.as_deref().or(hook.context.transcript_path.as_deref());
    let model = ["model", "subagent_model"].iter().find_map(|name| fields.said(name));
    let id = fields.word("model_id").map(|text| cut(text, 128));
    let params = fields.raw("model_params").map(|raw| cut_str(raw.get(), 1_024).to_owned());
    About {
        model: model.map(|text| words.get(cut_str(&text, 128))),
        labels: (id.is_some() || params.is_some()).then(|| Box::new(Labels { id, params })),
        cursor_version: fields.said("cursor_version").map(|text| words.get(cut_str(&text, 64))),
        own_root: match own {
            Some(own) => Some(own).filter(|own| Some(own) != project.as_ref()),
            None => root,
        },
        workspace: project,
        transcript_path: transcript.map(|text| words.get(cut_str(text, 4_096))),
        remote,
    }
}

/// The workspace roots that a hook names, in their plain spelling and without those on other machines. Empty if the body
/// cannot be read.
#[must_use]
pub fn workspace_roots(hook: &Hook) -> Vec<String> {
    let body = decode(&hook.body);
    let fields = Fields::parse(&body);
    let roots = fields.as_ref().and_then(|fields| fields.raw("workspace_roots"));
    let roots = roots.map(array).unwrap_or_default().into_iter().take(MAX_ROOTS).filter_map(text);
    let here = roots.filter(|root| !root.is_empty() && !path::is_remote(root));
    here.map(|root| path::plain(&root).into_owned()).collect()
}

/// Of several roots, the first one that contains `file`.
fn root_of(roots: Raw<'_>, file: &str, words: &mut Words) -> Option<Arc<str>> {
    // Usually there is only one root, and no list is needed.
    if !roots.get().contains(',') {
        return None;
    }
    let roots = array(roots);
    let roots = if roots.len() > 1 { &roots[..roots.len().min(MAX_ROOTS)] } else { &[] };
    let root = roots
        .iter()
        .filter_map(|root| text(*root))
        .find(|root| !root.is_empty() && path::below(root, file).is_some())?;
    Some(words.get(cut_str(&path::plain(&root), 4_096)))
}

/// The file an event is about.
fn file(kind: &EventKind) -> Option<&str> {
    use EventKind as K;
    match kind {
        K::ToolStart(tool) | K::ToolEnd(tool) | K::ToolFailure(tool) => tool.path.as_deref(),
        K::FileRead(tool) | K::FileEdit(tool) => tool.path.as_deref(),
        K::TabRead { path } | K::TabEdit { path, .. } => path.as_deref(),
        _ => None,
    }
}

/// Reads what the collector saw of a repository.
fn repository(hook: &Hook, fields: &Fields<'_>, words: &mut Words) -> Event {
    let mut word = |name: &str| {
        let said = fields.word(name).filter(|word| !word.is_empty());
        said.map(|word| words.get(cut_str(&word, ID_BYTES)))
    };
    let (url, branch, commit) = (word("url"), word("branch"), word("commit"));
    let (conversation, generation) = (word("conversation_id"), word("generation_id"));
    let commits = fields.raw("commits").map(array).unwrap_or_default();
    let commits = commits.into_iter().take(MAX_COMMITS).filter_map(text);
    let commits = commits.map(|commit| Arc::from(cut_str(&commit, ID_BYTES))).collect();
    let state = RepositoryState { url, branch, commit, commits };
    let kind = EventKind::Repository(Box::new(state));
    Event {
        conversation: conversation.unwrap_or_default(),
        generation: generation.unwrap_or_default(),
        ..blank(hook, kind, Cow::Borrowed("hookspan.repository"))
    }
}

/// Reads the collector's evidence about a child conversation.
fn evidence(fields: &Fields<'_>) -> Option<Evidence> {
    let confidence = match &*fields.text("confidence")? {
        "exact" => Confidence::Exact,
        "transcript" => Confidence::Transcript,
        _ => return None,
    };
    let source = fields.text("link_source")?;
    Some(Evidence {
        child: fields.word("conversation_id")?,
        parent: fields.word("parent_conversation_id")?,
        call: fields.word("tool_call_id").map(|id| cut_str(&id, ID_BYTES).to_owned()),
        confidence,
        source: LinkSource::ALL.into_iter().find(|known| known.as_str() == source)?,
    })
}
