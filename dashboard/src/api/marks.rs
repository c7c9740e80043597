//! What people add: stars, tags and notes of sessions, and filters that they keep by name.

use std::sync::Arc;

use axum::extract::State;
use hookspan_view::item::MarkItem;
use hookspan_view::source::{FilterPage, MarkChange, Marked, SAVED_MAX, SavedFilter, TAGS_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::extract::{Body, Route};
use super::query::{OneOf, Words};
use super::{Answer, Page, json, read};
use crate::App;
use crate::problem::Problem;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    /// Gives it a star, or takes it.
    starred: Option<bool>,
    /// Tags to add: each one word of at most 40 characters.
    #[serde(default)]
    add_tags: Vec<String>,
    /// Tags to remove.
    #[serde(default)]
    remove_tags: Vec<String>,
    /// The note from now on, at most 2,000 characters; an empty one removes it.
    note: Option<String>,
}

impl Change {
    fn changes(&self) -> Result<Vec<MarkChange>, Problem> {
        if self.add_tags.len() > TAGS_MAX || self.remove_tags.len() > TAGS_MAX {
            return Err(too_many_tags());
        }
        let mut changes: Vec<_> = self.starred.map(MarkChange::Star).into_iter().collect();
        for tag in &self.remove_tags {
            changes.push(MarkChange::untag(tag)?);
        }
        for tag in &self.add_tags {
            changes.push(MarkChange::tag(tag)?);
        }
        if let Some(note) = &self.note {
            changes.push(MarkChange::note(note)?);
        }
        if changes.is_empty() {
            return Err(Problem::bad_parameter(
                "body",
                "give starred, add_tags, remove_tags or note",
            ));
        }
        Ok(changes)
    }
}

fn too_many_tags() -> Problem {
    Problem::bad_parameter(
        "add_tags",
        format!("a session has at most {TAGS_MAX} tags: remove one first"),
    )
}

pub(super) async fn mark(
    State(app): State<Arc<App>>,
    Route(root): Route<String>,
    Body(change): Body<Change>,
) -> Answer<MarkItem> {
    let changes = change.changes()?;
    let control = Arc::clone(&app.control);
    match read(&app, move |_| control.mark(&root, &changes)).await? {
        Marked::Done(marks) => json(marks.into()),
        Marked::NoSession => Err(Problem::not_found("session")),
        Marked::TooManyTags => Err(too_many_tags()),
    }
}

impl Words for FilterPage {
    fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

/// A filter that was kept by name.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SavedFilter")]
pub(super) struct FilterItem {
    /// sessions, files, errors
    page: &'static str,
    name: String,
    /// Of the page's address.
    query: String,
    url: String,
}

impl From<SavedFilter> for FilterItem {
    fn from(SavedFilter { page, name, query }: SavedFilter) -> Self {
        let page = page.as_str();
        Self { page, name, url: format!("/{page}?{query}"), query }
    }
}

pub(super) async fn filters(State(app): State<Arc<App>>) -> Answer<Page<FilterItem>> {
    let filters = read(&app, |source| source.saved_filters()).await?;
    json(Page { items: filters.into_iter().map(FilterItem::from).collect(), next: None })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    /// The page that it is for.
    page: OneOf<FilterPage>,
    /// At most 40 characters.
    name: String,
    /// The query of the page's address, at most 1,000 bytes.
    query: String,
}

pub(super) async fn save(
    State(app): State<Arc<App>>,
    Body(kept): Body<Kept>,
) -> Answer<Page<FilterItem>> {
    let filter = SavedFilter::new(kept.page.0, &kept.name, &kept.query)?;
    let control = Arc::clone(&app.control);
    if !read(&app, move |_| control.save_filter(&filter)).await? {
        let detail = format!("it has {SAVED_MAX} filters already: remove one first");
        return Err(Problem::bad_parameter("page", detail));
    }
    filters(State(app)).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Gone {
    /// The page that it is for.
    page: OneOf<FilterPage>,
    name: String,
}

pub(super) async fn forget(
    State(app): State<Arc<App>>,
    Body(Gone { page, name }): Body<Gone>,
) -> Answer<Page<FilterItem>> {
    let control = Arc::clone(&app.control);
    if !read(&app, move |_| control.forget_filter(page.0, &name)).await? {
        return Err(Problem::not_found("filter"));
    }
    filters(State(app)).await
}
