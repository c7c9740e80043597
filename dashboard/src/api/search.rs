//! Full-text search over what was said and done.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use hookspan_core::{SessionSummary, TurnSummary};
use hookspan_view::Source;
use hookspan_view::facet::turn_of;
use hookspan_view::label::shorten;
use hookspan_view::source::{Hit, LineFilter, Query};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::columns::LineItem;
use super::extract::Params;
use super::query::{OneOf, Paging, SpanQuery, Words, words};
use super::sessions::project;
use super::{Answer, cursor, json, read};
use crate::App;
use crate::problem::Problem;

/// Maximum length of a query in characters.
const QUERY_MAX: usize = 500;
/// Maximum length of a session's title in characters.
const TITLE_MAX: usize = 120;
/// Words of a query; more do not make it more precise.
const TERMS_MAX: usize = 16;

/// One text that was found.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SearchHit")]
struct HitItem {
    span: LineItem,
    session: String,
    project: Option<String>,
    /// First prompt of the session, shortened.
    title: Option<String>,
    /// Number of the turn. Null if the text is not in a turn.
    turn: Option<u64>,
    field: String,
    text: String,
    /// Positions of the words in `text`: start and end in UTF-16 units.
    marks: Vec<(u32, u32)>,
    url: String,
}

/// What is known about the sessions of a page of hits. Most hits of a page are in a few sessions.
#[derive(Default)]
struct Places(HashMap<String, (Option<SessionSummary>, Vec<TurnSummary>)>);

impl Places {
    fn item(&mut self, source: &dyn Source, hit: Hit) -> hookspan_view::Result<HitItem> {
        let Hit { root, line, field, text, marks } = hit;
        if !self.0.contains_key(&root) {
            let known = (source.session(&root)?, source.turns(&root)?);
            drop(self.0.insert(root.clone(), known));
        }
        let (session, turns) = self
            .0
            .get(&root)
            .map_or((None, &[][..]), |(session, turns)| (session.as_ref(), turns.as_slice()));
        let whole = source.span_row(line.row)?;
        let turn = whole.as_ref().and_then(|(_, span)| turn_of(span, turns));
        let turn = turn.map(|turn| turn.index);
        let prompt = session.and_then(|session| session.first_prompt.as_deref());
        let workspace = session.and_then(|session| session.workspace.as_deref());
        let span = LineItem::new(&root, line);
        Ok(HitItem {
            url: span.url.clone(),
            span,
            project: workspace.and_then(project),
            title: prompt.map(|prompt| shorten(prompt, TITLE_MAX)),
            turn,
            session: root,
            field,
            text,
            marks,
        })
    }
}

words! {
    /// Texts of a span.
    Text {
        Prompt = "prompt",
        Response = "response",
        Thought = "thought",
        Input = "input",
        Output = "output",
        Task = "task",
        Result = "result",
        Error = "error",
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Wanted {
    /// words, "phrases", tool: kind: model: project: status:error branch: outcome: tag: starred:yes from: to: field:
    q: Option<String>,
    /// only texts of this kind
    field: Option<OneOf<Text>>,
}

/// What was found.
#[derive(Serialize, JsonSchema, Default)]
#[schemars(rename = "SearchAnswer")]
pub(super) struct FoundItems {
    items: Vec<HitItem>,
    /// Cursor of the next page; null at the end.
    next: Option<String>,
    /// Number of texts that contain the words, without regard to filters; null if they were not counted.
    total: Option<u64>,
    /// There are more than `total`.
    total_is_more: bool,
    /// Changes that are not in the index yet.
    lag: u64,
    /// Words and phrases that were searched for.
    terms: Vec<String>,
}

pub(super) async fn search(
    State(app): State<Arc<App>>,
    Params(wanted): Params<Wanted>,
    Params(paging): Params<Paging>,
    Params(filter): Params<SpanQuery>,
) -> Answer<FoundItems> {
    let text = wanted.q.as_deref().unwrap_or_default();
    if text.chars().count() > QUERY_MAX {
        return Err(Problem::bad_parameter("q", format!("at most {QUERY_MAX} characters")));
    }
    let mut query = parse(text)?;
    // A parameter takes precedence over the same word in the query.
    let filter = LineFilter::from(filter);
    query.filter = LineFilter {
        session: filter.session,
        project: filter.project.or(query.filter.project),
        model: filter.model.or(query.filter.model),
        tool: filter.tool.or(query.filter.tool),
        kind: filter.kind.or(query.filter.kind),
        failed: filter.failed || query.filter.failed,
        branch: filter.branch.or(query.filter.branch),
        outcome: filter.outcome.or(query.filter.outcome),
        tag: filter.tag.or(query.filter.tag),
        starred: filter.starred || query.filter.starred,
        from_ns: filter.from_ns.or(query.filter.from_ns),
        to_ns: filter.to_ns.or(query.filter.to_ns),
        ..filter
    };
    if let Some(OneOf(field)) = wanted.field {
        query.field = Some(field.word().to_owned());
    }
    let limit = paging.limit();
    let before = paging.position()?.map(|(at, _)| at);
    let shown = query.terms.clone();
    if query.terms.is_empty() {
        return json(FoundItems { total: Some(0), ..FoundItems::default() });
    }
    let found = read(&app, move |source| {
        let mut found = source.search(&query, before, limit)?;
        let mut places = Places::default();
        let hits = std::mem::take(&mut found.hits).into_iter();
        let items = hits.map(|hit| places.item(source, hit));
        Ok((items.collect::<hookspan_view::Result<Vec<_>>>()?, found))
    });
    let (items, found) = found.await?;
    json(FoundItems {
        items,
        next: found.next.map(|at| cursor::encode(at, "")),
        total: found.total,
        total_is_more: found.total_is_more,
        lag: found.lag,
        terms: shown,
    })
}

/// Parses words, and phrases in quotes. A filter word ([`hookspan_view::filter`]) or `field` before a colon makes a
/// filter. Any other colon is text, and so is everything in quotes.
pub(super) fn parse(text: &str) -> Result<Query, Problem> {
    let mut query = Query::default();
    for term in terms(text) {
        match term {
            Term::Phrase(phrase) => query.terms.push(phrase),
            Term::Word(word) => {
                let Some((name, value)) =
                    word.split_once(':').filter(|(_, value)| !value.is_empty())
                else {
                    query.terms.push(word);
                    continue;
                };
                if name == "field" {
                    query.field = Some(value.to_owned());
                } else if !query.filter.set(name, value)? {
                    query.terms.push(word);
                }
            }
        }
    }
    query.terms.retain(|term| term.chars().any(char::is_alphanumeric));
    query.terms.truncate(TERMS_MAX);
    Ok(query)
}

enum Term {
    Word(String),
    Phrase(String),
}

/// A quote begins a phrase that ends at the next quote. The last phrase may lack its closing quote.
fn terms(text: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    for (index, part) in text.split('"').enumerate() {
        if index % 2 == 1 {
            terms.push(Term::Phrase(part.trim().to_owned()));
        } else {
            terms.extend(part.split_whitespace().map(|word| Term::Word(word.to_owned())));
        }
    }
    terms
}

#[cfg(test)]
mod tests {
    use hookspan_view::line::LineKind;

    use super::*;

    #[test]
    fn a_query_is_words_phrases_and_a_few_filters() {
        let query =
            parse("deliver \"time out\" kind:shell status:error src:main.rs tool:Shell").unwrap();
        assert_eq!(query.terms, ["deliver", "time out", "src:main.rs"]);
        assert_eq!(query.filter.kind, Some(LineKind::Shell));
        assert_eq!(query.filter.tool.as_deref(), Some("Shell"));
        assert!(query.filter.failed);
    }

    #[test]
    fn operators_of_the_index_are_text() {
        let terms = |text| parse(text).unwrap().terms;
        assert_eq!(terms("\" OR * NEAR("), ["OR * NEAR("]);
        assert_eq!(terms("a AND NOT b*"), ["a", "AND", "NOT", "b*"]);
        assert_eq!(terms("* \"\" -- ; '"), Vec::<String>::new());
    }
}
