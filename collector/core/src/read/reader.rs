//! From a hook to an event, in every dialect and whatever its damage: who speaks, in which conversation and turn.

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
use crate::read::content;
use crate::read::event_kind::{kind, known};
use crate::read::interner::Words;
use crate::read::known_fields::unseen;
use crate::read::payload::{Fields, decode, first, scan, text};

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

/// Reads what the collector found out about a child conversation.
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
