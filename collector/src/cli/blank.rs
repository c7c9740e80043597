//! `--redact`: removes secrets from the output of a command.

use std::borrow::Cow;
use std::sync::Arc;

use hookspan_core::repository::Repository;
use hookspan_core::{SessionSummary, TurnSummary};
use hookspan_view::source::SessionMarks;
use serde_json::Value;

use crate::config::{Misuse, Redact};
use crate::dirs::StateDir;
use crate::redaction::Redaction;

/// Replaces secrets, if the user asked for it.
pub(super) struct Blank(Option<Redaction>);

impl Blank {
    /// # Errors
    /// Returns [`Misuse`] if a rule of the configuration cannot be used.
    pub(super) fn new(wanted: bool, dir: &StateDir, rules: &Redact) -> Result<Self, Misuse> {
        wanted.then(|| Redaction::load(dir, rules)).transpose().map(Self)
    }

    pub(super) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.as_ref().map_or(Cow::Borrowed(text), |redaction| redaction.text(text))
    }

    /// Redacts a line's label. Labels are stored cut off. The last word of a cut label may be the beginning of a
    /// secret, so it is removed.
    pub(super) fn label(&self, label: &mut String) {
        let Some(redaction) = &self.0 else { return };
        redaction.in_place(label);
        if let Some(kept) = label.strip_suffix('…')
            && let Some(end) = kept.rfind(char::is_whitespace)
        {
            label.truncate(end + 1);
            label.push('…');
        }
    }

    pub(super) fn json(&self, value: &mut Value) {
        if let Some(redaction) = &self.0 {
            redaction.json(value);
        }
    }

    pub(super) fn session(&self, session: &mut SessionSummary) {
        for text in [&mut session.workspace, &mut session.model, &mut session.cursor_version] {
            self.shared(text);
        }
        for text in [&mut session.first_prompt, &mut session.last_error].into_iter().flatten() {
            self.label(text);
        }
        self.shared(&mut session.work.pull_request);
        if let Some(repository) = &mut session.repository {
            self.repository(repository);
        }
    }

    pub(super) fn marks(&self, marks: &mut SessionMarks) {
        let SessionMarks { starred: _, tags, note } = marks;
        for text in tags.iter_mut().chain([note]) {
            *text = self.text(text).into_owned();
        }
    }

    fn repository(&self, repository: &mut Repository) {
        for text in [&mut repository.url, &mut repository.from_branch, &mut repository.branch] {
            self.shared(text);
        }
    }

    pub(super) fn turn(&self, turn: &mut TurnSummary) {
        self.shared(&mut turn.model);
        for text in [&mut turn.prompt, &mut turn.status].into_iter().flatten() {
            self.label(text);
        }
        self.shared(&mut turn.work.pull_request);
        if let Some(repository) = &mut turn.repository {
            self.repository(repository);
        }
    }

    fn shared(&self, text: &mut Option<Arc<str>>) {
        if let (Some(redaction), Some(text)) = (&self.0, text.as_mut())
            && let Cow::Owned(redacted) = redaction.text(text)
        {
            *text = redacted.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_label_loses_the_word_that_was_cut() {
        let blank = Blank(Some(Redaction::default()));
        let cut = |label: &str| {
            let mut label = label.to_owned();
            blank.label(&mut label);
            label
        };
        // A GitHub token has 36 characters after its prefix. These 20 match no rule.
        assert_eq!(cut("git clone x ghp_16C7e42F292c6912E771…"), "git clone x …");
        assert_eq!(cut("cargo test"), "cargo test");
        assert!(cut("mysql --password=hunter2hunter2").contains("[redacted:"));
        let mut open = "ghp_16C7e42F292c6912E7710c838347Ae178B4a".to_owned();
        Blank(None).label(&mut open);
        assert_eq!(open, "ghp_16C7e42F292c6912E7710c838347Ae178B4a");
    }
}
