//! What one destination gets, and how it is spelled.

use hookspan_core::{Span, SpanKind};
use sha2::{Digest as _, Sha256};

use super::resource::ResourceBase;
use super::value::base_name;
use crate::config::destination::{ContentPolicy, PathPolicy};
use crate::config::{OpenInference, Profile};
use crate::redaction::Redaction;

/// How spans are written for one destination.
#[derive(Clone, Debug)]
pub struct Encoding {
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
    pub(super) fn path(&self, path: &str, span: &Span) -> Option<String> {
        match self.paths {
            PathPolicy::Off => None,
            PathPolicy::Full => Some(path.to_owned()),
            PathPolicy::Relative => Some(relative(path, span.workspace.as_deref())),
            PathPolicy::Hash => {
                let digest = Sha256::digest(path.as_bytes());
                let hex: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
                Some(format!("sha256:{hex}"))
            }
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

/// `path` below `workspace`, else its last part: the name of a home directory is nobody's business.
fn relative(path: &str, workspace: Option<&str>) -> String {
    let below = workspace
        .map(|root| root.trim_end_matches(['/', '\\']))
        .filter(|root| !root.is_empty())
        .and_then(|root| path.strip_prefix(root));
    match below {
        Some("") => ".".to_owned(),
        Some(rest) if rest.starts_with(['/', '\\']) => rest[1..].to_owned(),
        _ if !path.starts_with(['/', '~']) && !path.contains(':') && !path.starts_with('\\') => {
            // Already relative; a way out of the workspace is cut to its last part all the same.
            if path.split(['/', '\\']).any(|part| part == "..") {
                base_name(path).to_owned()
            } else {
                path.to_owned()
            }
        }
        _ => base_name(path).to_owned(),
    }
}
