//! A notice: what it says, with and without text of the session.

use hookspan_core::Timestamp;
use hookspan_view::now::{Standing, Status};
use hookspan_view::{facet, label};
use serde_json::{Value, json};

use crate::config::notify::Kind;
use crate::redaction::Redaction;

/// Maximum length of each text of a session in a notice, characters.
const TEXT_MAX: usize = 200;

/// Something a person wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// What it is about.
    pub kind: Kind,
    /// The session's status, in the words of pages and terminal.
    pub words: &'static str,
    status: &'static str,
    session: String,
    since: Timestamp,
    address: Option<String>,
    content: Content,
}

/// Text of the session. It is sent only if the configuration says `content = true`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    project: Option<String>,
    branch: Option<String>,
    prompt: Option<String>,
    error: Option<String>,
    reason: String,
}

/// The kind of notice that a status asks for, if any.
#[must_use]
pub(super) const fn kind(status: Status) -> Option<Kind> {
    match status {
        Status::ApprovalLikely | Status::Question => Some(Kind::Waiting),
        Status::Failed => Some(Kind::Failed),
        Status::Stalled => Some(Kind::Hanging),
        Status::TurnEnded => Some(Kind::Finished),
        Status::Running | Status::Slow => None,
    }
}

impl Notice {
    /// Creates the notice about a session. `place` is the address of the dashboard.
    pub(super) fn new(
        kind: Kind,
        standing: &Standing,
        place: Option<&str>,
        redaction: &Redaction,
    ) -> Self {
        let Standing { session, verdict, .. } = standing;
        let clean = |text: &str| label::shorten(&redaction.text(text), TEXT_MAX);
        let branch = session.repository.as_ref().and_then(|seen| seen.branch.as_deref());
        let page = place.map(|place| format!("{}/s/{}", place.trim_end_matches('/'), session.root));
        Self {
            kind,
            words: verdict.status.words(),
            status: verdict.status.as_str(),
            session: session.root.to_string(),
            since: verdict.since,
            address: page.filter(|page| page.starts_with("http")),
            content: Content {
                project: session
                    .workspace
                    .as_deref()
                    .and_then(facet::project)
                    .map(|name| clean(&name)),
                branch: branch.map(clean),
                prompt: session.first_prompt.as_deref().map(clean),
                error: session.last_error.as_deref().map(clean),
                reason: clean(&verdict.reason),
            },
        }
    }

    /// Creates a notice for `hookspan notify test`.
    #[must_use]
    pub(crate) fn test(kind: Kind, now: Timestamp) -> Self {
        Self {
            kind,
            words: "this is a test",
            status: "test",
            session: String::new(),
            since: now,
            address: None,
            content: Content { reason: "hookspan notify test".to_owned(), ..Content::default() },
        }
    }

    /// The object that a webhook and a command get.
    #[must_use]
    pub(super) fn json(&self, with_content: bool) -> Value {
        let since = jiff::Timestamp::from_nanosecond(self.since.0.into()).unwrap_or_default();
        let mut object = json!({
            "hookspan": 1,
            "kind": self.kind.as_str(),
            "status": self.status,
            "words": self.words,
            "since": since.to_string(),
            "session": self.session,
            "url": self.address,
        });
        if with_content && let Some(object) = object.as_object_mut() {
            let Content { project, branch, prompt, error, reason } = &self.content;
            let content = json!({
                "project": project, "branch": branch, "prompt": prompt, "error": error, "reason": reason,
            });
            object.insert("content".to_owned(), content);
        }
        object
    }

    /// Title and text of a desktop notice.
    #[must_use]
    pub(super) fn desktop(&self, with_content: bool) -> (String, String) {
        let title = match self.kind {
            Kind::Waiting => "An agent waits for you",
            Kind::Finished => "An agent's turn ended",
            Kind::Failed => "An agent failed",
            Kind::Hanging => "An agent hangs",
        };
        let Content { project, prompt, reason, .. } = &self.content;
        match with_content {
            false => (title.to_owned(), self.words.to_owned()),
            true => {
                let title = project.as_ref().map_or_else(
                    || title.to_owned(),
                    |project| format!("{project}: {}", self.words),
                );
                let prompt = prompt.iter().map(|prompt| format!("\n{prompt}"));
                (title, std::iter::once(reason.clone()).chain(prompt).collect())
            }
        }
    }
}
