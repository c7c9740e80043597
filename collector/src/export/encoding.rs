//! What one destination receives, and how it is spelled.

use std::sync::Arc;

use hookspan_core::path::{below, is_absolute};
use hookspan_core::price::Prices;
use hookspan_core::{Span, SpanKind};

use super::hashed::hashed_path;
use super::resource::ResourceBase;
use super::value::base_name;
use crate::config::destination::{ContentPolicy, PathPolicy};
use crate::config::{OpenInference, Profile};
use crate::redaction::Redaction;

/// Settings for writing spans for one destination.
#[derive(Clone, Debug)]
pub(crate) struct Encoding {
    /// Which content may be sent.
    pub content: ContentPolicy,
    /// How paths are sent.
    pub paths: PathPolicy,
    /// Names of the GenAI attributes.
    pub semconv: Profile,
    /// OpenInference keys.
    pub openinference: OpenInference,
    /// `OPENINFERENCE_HIDE_INPUTS`.
    pub hide_inputs: bool,
    /// `OPENINFERENCE_HIDE_OUTPUTS`.
    pub hide_outputs: bool,
    /// Whether `langfuse.observation.type` is added.
    pub langfuse: bool,
    /// Maximum number of bytes of content in one attribute.
    pub content_max_bytes: usize,
    /// The hash of the person, if the destination gets it.
    pub user: Option<String>,
    /// Attributes of every resource.
    pub resource: ResourceBase,
    /// Prices of tokens. Used by the profile that sends costs.
    pub prices: Arc<Prices>,
    /// Whether each answer has its own span. If so, the span of the turn needs no copy of the answer.
    pub answers_apart: bool,
    /// Redacts secrets in every string. `None` only at `full`, if redaction is explicitly switched off.
    pub redaction: Option<Redaction>,
}

impl Encoding {
    /// A path in the form that the policy allows; `None` if it allows none.
    pub(super) fn path(&self, key: &str, path: &str, span: &Span) -> Option<String> {
        match self.paths {
            // The path of the root relative to itself would be empty.
            PathPolicy::Relative if key == "hookspan.file.root" => Some(base_name(path).to_owned()),
            PathPolicy::Off => None,
            PathPolicy::Full => Some(path.to_owned()),
            PathPolicy::Relative => Some(relative(path, span.file_root())),
            PathPolicy::Hash => Some(hashed_path(path)),
        }
    }

    /// The key in the profile's spelling; `None` if the profile has no such key for this kind of span.
    pub(super) fn key<'k>(&self, key: &'k str, kind: SpanKind) -> Option<&'k str> {
        let agent = matches!(kind, SpanKind::Generation | SpanKind::Subagent);
        match (self.semconv, key) {
            (_, "openinference.span.kind") if self.openinference == OpenInference::Off => None,
            (Profile::Genai01, "gen_ai.provider.name") if agent => None,
            (Profile::Genai01, key) if agent && key.starts_with("gen_ai.usage.cache_") => None,
            // Langfuse would count tokens twice under the newer key.
            (Profile::Genai01, "gen_ai.usage.cache_creation.input_tokens") if !self.langfuse => {
                Some("gen_ai.usage.cache_write.input_tokens")
            }
            (_, key) => Some(key),
        }
    }
}

/// `path` relative to `root`. Outside of `root` only its last part, because the name of a home directory is private.
fn relative(path: &str, root: Option<&str>) -> String {
    if let Some(below) = root.and_then(|root| below(root, path)) {
        return below;
    }
    let leaves = || path.split(['/', '\\']).any(|part| part == "..");
    if is_absolute(path) || path.contains(':') || leaves() {
        return base_name(path).to_owned();
    }
    path.to_owned()
}
