//! The changes that a page may request, without any effect.

use hookspan_view::Result;
use hookspan_view::source::{
    Control, Deleted, FilterPage, MarkChange, Marked, SavedFilter, SessionMarks,
};

/// Knows the destination `datadog` only.
#[derive(Debug)]
pub struct OneDestination;

impl Control for OneDestination {
    fn retry(&self, destination: &str) -> Result<bool> {
        Ok(destination == "datadog")
    }

    fn delete(&self, roots: &[String]) -> Result<Deleted> {
        let sessions = roots.len() as u64;
        Ok(Deleted { sessions, spans: sessions * 10, hooks: sessions * 20, ..Deleted::default() })
    }

    fn mark(&self, root: &str, changes: &[MarkChange]) -> Result<Marked> {
        if root == "full" {
            return Ok(Marked::TooManyTags);
        }
        if root == "nobody" {
            return Ok(Marked::NoSession);
        }
        let mut marks = SessionMarks::default();
        for change in changes.iter().cloned() {
            match change {
                MarkChange::Star(starred) => marks.starred = starred,
                MarkChange::Tag(tag) => marks.tags.push(tag),
                MarkChange::Untag(tag) => marks.tags.retain(|one| *one != tag),
                MarkChange::Note(note) => marks.note = note,
            }
        }
        Ok(Marked::Done(marks))
    }

    fn save_filter(&self, filter: &SavedFilter) -> Result<bool> {
        Ok(filter.name != "one too many")
    }

    fn forget_filter(&self, _: FilterPage, name: &str) -> Result<bool> {
        Ok(name == "mine")
    }
}
