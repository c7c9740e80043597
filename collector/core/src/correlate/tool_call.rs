//! One tool call: the hooks that belong together. `call_match` finds them.

use std::borrow::Cow;

use crate::correlate::evidence::{Strength, is_name};
use crate::correlate::fact::Fact;
use crate::model::event::EventKind;
use crate::model::time::Timestamp;
use crate::model::tolerance::DISORDER;
use crate::model::tool::{ToolClass, ToolFacts};

/// One tool call. Any part of its hooks may be missing.
#[derive(Debug, Default)]
pub(crate) struct Call<'a> {
    /// Key of its span id.
    pub(crate) key: Cow<'a, str>,
    /// `preToolUse`.
    pub(crate) pre: Option<&'a Fact>,
    /// `postToolUse` or `postToolUseFailure`.
    pub(crate) post: Option<&'a Fact>,
    /// The hook of the specific layer that opened the call.
    pub(crate) before: Option<&'a Fact>,
    /// The hook of the specific layer that came after the call.
    pub(crate) after: Option<&'a Fact>,
    /// The weakest evidence that joined two of its hooks.
    pub(crate) strength: Strength,
    /// Class, once all its hooks are known.
    class: ToolClass,
}

impl<'a> Call<'a> {
    /// A call without hooks.
    pub(crate) fn named(key: Cow<'a, str>) -> Self {
        Self { key, ..Self::default() }
    }

    /// Hooks in order of preference: generic post, specific after, generic pre, specific before.
    pub(crate) fn hooks(&self) -> impl Iterator<Item = &'a Fact> {
        [self.post, self.after, self.pre, self.before].into_iter().flatten()
    }

    /// The first value that its hooks give.
    pub(crate) fn find<T>(&self, get: impl Fn(&'a ToolFacts) -> Option<T>) -> Option<T> {
        self.hooks().find_map(|hook| tool_facts(&hook.kind).and_then(&get))
    }

    /// The facts of the first hook that has the input, because an end may lack it; otherwise those of the first hook.
    pub(crate) fn said(&self) -> Option<&'a ToolFacts> {
        self.find(|tool| (tool.content != 0).then_some(tool)).or_else(|| self.find(Some))
    }

    /// The duration that the call's hooks report. If the agent called an MCP tool through another tool, the duration in
    /// the MCP tool's own hook is preferred.
    pub(crate) fn duration_ms(&self) -> Option<f64> {
        let is_wrapped = || self.find(|tool| tool.more()?.wrapped.then_some(())).is_some();
        let inner = Self::measured(self.after).filter(|_| is_wrapped());
        inner.or_else(|| self.find(|tool| tool.duration_ms))
    }

    /// The duration that a hook of a call reports.
    pub(crate) fn measured(hook: Option<&Fact>) -> Option<f64> {
        tool_facts(&hook?.kind)?.duration_ms
    }

    /// When the hook that opened the call was received.
    pub(crate) fn opened(&self) -> Option<Timestamp> {
        self.opening().map(|fact| fact.at)
    }

    /// When the hook that ended the call was received. If the clock was set in between, this is [`Self::opened`] plus
    /// the time that has passed since then, measured by the time since boot.
    pub(crate) fn ended(&self) -> Option<Timestamp> {
        let closing = self.post.or(self.after)?;
        match self.opening().filter(|opening| closing.clock_step(opening).is_some()) {
            Some(opening) => Some(opening.at.plus(closing.since(opening))),
            None => Some(closing.at),
        }
    }

    /// Whether the call left something running in the background.
    pub(crate) fn is_background(&self) -> bool {
        self.find(|tool| tool.more()?.background) == Some(true)
    }

    /// How far the clock was set during the call, see [`Fact::clock_step`].
    pub(crate) fn clock_step(&self) -> Option<i64> {
        self.post.or(self.after)?.clock_step(self.opening()?)
    }

    fn opening(&self) -> Option<&'a Fact> {
        self.pre.or(self.before.filter(|fact| !matches!(fact.kind, EventKind::FileRead(_))))
    }

    pub(crate) fn first(&self) -> Timestamp {
        self.hooks().map(|fact| fact.at).min().unwrap_or_default()
    }

    pub(crate) fn class(&self) -> ToolClass {
        self.class
    }

    /// The tool's name, from the first hook that has it.
    pub(crate) fn tool(&self) -> &'a str {
        let named = |tool: &'a ToolFacts| Some(&*tool.tool).filter(|name| is_name(name));
        self.find(named).or_else(|| self.find(|tool| Some(&*tool.tool))).unwrap_or("unknown")
    }

    pub(crate) fn classify(&mut self) {
        let facts = || self.hooks().filter_map(|hook| tool_facts(&hook.kind));
        let is_named = facts().any(|tool| is_name(&tool.tool));
        let telling = || facts().filter(|tool| !is_named || is_name(&tool.tool));
        let classes = || telling().map(|tool| tool.class);
        let attachment = classes().any(|class| class == ToolClass::Attachment);
        self.class =
            if attachment { ToolClass::Attachment } else { classes().next().unwrap_or_default() };
    }

    pub(crate) fn overlaps(&self, at: Timestamp) -> bool {
        self.pre.is_none_or(|pre| pre.at <= at.plus(DISORDER))
            && self.post.is_none_or(|post| post.at.plus(DISORDER) >= at)
    }

    pub(crate) fn slot(&mut self, kind: &EventKind) -> &mut Option<&'a Fact> {
        if is_start(kind) { &mut self.before } else { &mut self.after }
    }

    pub(crate) fn has(&self, kind: &EventKind) -> bool {
        if is_start(kind) { self.before.is_some() } else { self.after.is_some() }
    }
}

/// The call facts of a tool event of either layer.
pub(crate) fn tool_facts(kind: &EventKind) -> Option<&ToolFacts> {
    use EventKind as K;
    match kind {
        K::ToolStart(facts)
        | K::ToolEnd(facts)
        | K::ToolFailure(facts)
        | K::ShellStart(facts)
        | K::ShellEnd(facts)
        | K::McpStart(facts)
        | K::McpEnd(facts)
        | K::FileRead(facts)
        | K::FileEdit(facts) => Some(facts),
        _ => None,
    }
}

pub(crate) fn is_generic(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ToolStart(_) | EventKind::ToolEnd(_) | EventKind::ToolFailure(_))
}

/// Whether a hook of the specific layer opens a call.
pub(crate) fn is_start(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ShellStart(_) | EventKind::McpStart(_) | EventKind::FileRead(_))
}
