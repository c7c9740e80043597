//! Evidence about a conversation's parent, and its certainty.

/// How sure the link between a child conversation and its parent is.
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

/// The collector's evidence about a child conversation. It is stored as a hook of [`crate::HookSource::Evidence`], so
/// the raw log alone is enough to rebuild everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The child conversation.
    pub child: String,
    /// Its parent conversation.
    pub parent: String,
    /// `tool_use_id` of the delegating call, if known.
    pub call: Option<String>,
    /// [`Confidence::Exact`] or [`Confidence::Transcript`]. Lower confidence does not count as evidence.
    pub confidence: Confidence,
    /// Where it was found.
    pub source: LinkSource,
}

impl Evidence {
    /// The body of the hook that carries this evidence.
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
}
