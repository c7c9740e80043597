//! Full-text search over what was said and done.

use std::sync::Arc;

use axum::extract::State;
use hookspan_view::source::{Hit, LineFilter, Query};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::columns::LineItem;
use super::extract::Params;
use super::query::{OneOf, Paging, SpanQuery, Words, words};
use super::{Answer, cursor, json, read};
use crate::App;
use crate::problem::Problem;

/// Longest query, characters.
const QUERY_MAX: usize = 500;
/// Maximum number of words in a query. More words do not make it more precise.
const TERMS_MAX: usize = 16;

/// One text that was found.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SearchHit")]
struct HitItem {
    span: LineItem,
    session: String,
    field: String,
    text: String,
    /// Positions of the words in `text`: start and end in UTF-16 units.
    marks: Vec<(u32, u32)>,
    url: String,
}

impl From<Hit> for HitItem {
    fn from(hit: Hit) -> Self {
        let Hit { root, line, field, text, marks } = hit;
        let span = LineItem::new(&root, line);
        Self { url: span.url.clone(), span, session: root, field, text, marks }
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
    /// words, "phrases", tool: kind: model: project: status:error from: to: field:
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
    let found = read(&app, move |source| source.search(&query, before, limit)).await?;
    let items: Vec<_> = found.hits.into_iter().map(HitItem::from).collect();
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
