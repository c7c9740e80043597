//! What one destination gets, and how it is spelled.

use hookspan_core::path::{below, is_absolute};
use hookspan_core::{Span, SpanKind};

use super::hashed::hashed_path;
use super::resource::ResourceBase;
use super::value::base_name;
use crate::config::destination::{ContentPolicy, PathPolicy};
use crate::config::{OpenInference, Profile};
use crate::redaction::Redaction;

/// How spans are written for one destination.
#[derive(Clone, Debug)]
pub(crate) struct Encoding {
    /// What may leave.
    pub content: ContentPolicy,
    /// What becomes of paths.
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
    /// Bytes of content one attribute may hold.
    pub content_max_bytes: usize,
    /// What every resource holds.
    pub resource: ResourceBase,
    /// Blanks secrets in every string. `None` only at `full`, where a person switched redaction off by name.
    pub redaction: Option<Redaction>,
}

impl Encoding {
    /// A path as the policy lets it leave; `None` where it does not.
    pub(super) fn path(&self, key: &str, path: &str, span: &Span) -> Option<String> {
        match self.paths {
            // Relative to itself it would say nothing.
            PathPolicy::Relative if key == "hookspan.file.root" => Some(base_name(path).to_owned()),
            PathPolicy::Off => None,
            PathPolicy::Full => Some(path.to_owned()),
            PathPolicy::Relative => Some(relative(path, span.file_root())),
            PathPolicy::Hash => Some(hashed_path(path)),
        }
    }

    /// The key as the profile spells it; `None` where the profile has no such key on this kind of span.
    pub(super) fn key<'k>(&self, key: &'k str, kind: SpanKind) -> Option<&'k str> {
        let agent = matches!(kind, SpanKind::Generation | SpanKind::Subagent);
        match (self.semconv, key) {
            (_, "openinference.span.kind") if self.openinference == OpenInference::Off => None,
            (Profile::Genai01, "gen_ai.provider.name") if agent => None,
            (Profile::Genai01, key) if agent && key.starts_with("gen_ai.usage.cache_") => None,
            (Profile::Genai01, "gen_ai.usage.cache_creation.input_tokens") => {
                Some("gen_ai.usage.cache_write.input_tokens")
            }
            (_, key) => Some(key),
        }
    }
}

/// `path` below `root`, else its last part: the name of a home directory is nobody's business.
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
