//! Queries of the index. Whole words are searched first. If nothing is found, parts of words are searched: any part of
//! three letters or more, or the first two letters.

use hookspan_core::SpanId;
use hookspan_view::source::Query;
use rusqlite::Connection;

use crate::store::search::{Doc, Table, count, find};

/// Maximum number of texts that are read for one answer. Beyond it, the answer ends with a cursor.
const LOOKED_AT_MAX: usize = 2_000;
const PAGE: usize = 100;
/// Texts are counted up to here.
const COUNTED_MAX: u64 = 1_000;
/// Number of characters of a text that are shown: before the first mark, and in total.
const BEFORE: usize = 60;
const SHOWN: usize = 240;

/// A text that holds every term.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextHit {
    /// Place in the index.
    pub id: i64,
    /// Root conversation.
    pub root: String,
    /// Span.
    pub span: SpanId,
    /// Name of the text.
    pub field: String,
    /// The text around the first mark.
    pub text: String,
    /// Start and end of each mark in `text`, UTF-16 units.
    pub marks: Vec<(u32, u32)>,
}

/// Result of a search in the index, before the store is asked for the spans.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TextHits {
    /// Newest first.
    pub hits: Vec<TextHit>,
    /// Cursor of what follows.
    pub next: Option<i64>,
    /// How many texts hold the words.
    pub total: u64,
    /// There are more.
    pub total_is_more: bool,
}

/// Texts that contain every term of `query` and satisfy `wanted`, at most `limit`, below `before`.
///
/// # Errors
/// Returns SQLite's error if the database cannot be read.
pub(crate) fn search(
    db: &Connection,
    query: &Query,
    before: Option<i64>,
    limit: usize,
    mut wanted: impl FnMut(&Doc) -> bool,
) -> rusqlite::Result<TextHits> {
    let (table, tokens) = plan(db, &query.terms)?;
    if tokens.is_empty() {
        return Ok(TextHits::default());
    }
    let total = count(db, table, &tokens, COUNTED_MAX + 1)?;
    let mut found = TextHits {
        total: total.min(COUNTED_MAX),
        total_is_more: total > COUNTED_MAX,
        ..TextHits::default()
    };
    let (mut at, mut looked_at) = (before.unwrap_or(i64::MAX), 0);
    loop {
        let docs = find(db, table, &tokens, at, PAGE)?;
        let full = docs.len() == PAGE;
        for doc in docs {
            at = doc.id;
            looked_at += 1;
            let field = query.field.as_ref().is_none_or(|field| *field == doc.field);
            if !field || !wanted(&doc) {
                continue;
            }
            let Some(places) = places(&doc.text, &query.terms) else { continue };
            found.hits.push(hit(doc, &places));
            if found.hits.len() == limit {
                found.next = Some(at);
                return Ok(found);
            }
        }
        if !full {
            return Ok(found);
        }
        if looked_at >= LOOKED_AT_MAX {
            found.next = Some(at);
            return Ok(found);
        }
    }
}

/// Chooses the index and its terms. Whole words are found faster and more precisely.
fn plan(db: &Connection, terms: &[String]) -> rusqlite::Result<(Table, Vec<String>)> {
    let words: Vec<String> = terms.iter().flat_map(|term| words(term)).collect();
    let grams: Vec<String> = terms.iter().flat_map(|term| grams(term)).collect();
    let have_words = !words.is_empty() && count(db, Table::Words, &words, 1).unwrap_or(0) > 0;
    let all_long = terms.iter().all(|term| term.chars().count() >= 3);
    if have_words {
        return Ok((Table::Words, words));
    }
    if grams.is_empty() || !all_long {
        return Ok((Table::Beginnings, words));
    }
    Ok((Table::Grams, grams))
}

/// A term as the tokenizer cuts it.
fn words(term: &str) -> Vec<String> {
    term.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Every three letters in a row.
fn grams(term: &str) -> Vec<String> {
    let letters: Vec<char> = term.to_lowercase().chars().collect();
    letters.windows(3).map(|three| three.iter().collect()).collect()
}

/// Byte ranges of each term in `text`, ignoring case. `None` if a term does not occur as written.
fn places(text: &str, terms: &[String]) -> Option<Vec<(usize, usize)>> {
    const EACH: usize = 20;
    let (lower, offsets) = lowercase(text);
    let mut places = Vec::new();
    for term in terms {
        let term = term.to_lowercase();
        let found: Vec<_> = lower
            .match_indices(&term)
            .take(EACH)
            .map(|(at, _)| (offsets[at], offsets[at + term.len()]))
            .collect();
        if found.is_empty() {
            return None;
        }
        places.extend(found);
    }
    places.sort_unstable();
    Some(places)
}

/// `text` in lower case. For each byte of the result (and for its end) also the offset in `text`, because some letters
/// change their length.
fn lowercase(text: &str) -> (String, Vec<usize>) {
    let mut lower = String::with_capacity(text.len());
    let mut offsets = Vec::with_capacity(text.len() + 1);
    for (at, c) in text.char_indices() {
        for small in c.to_lowercase() {
            lower.push(small);
            offsets.resize(lower.len(), at);
        }
    }
    offsets.push(text.len());
    (lower, offsets)
}

fn hit(doc: Doc, places: &[(usize, usize)]) -> TextHit {
    let first = places.first().map_or(0, |(start, _)| *start);
    let from =
        doc.text[..first].char_indices().rev().take(BEFORE).last().map_or(first, |(at, _)| at);
    let to = doc.text[from..].char_indices().nth(SHOWN).map_or(doc.text.len(), |(at, _)| from + at);
    let shown = &doc.text[from..to];
    let (head, tail) =
        (if from > 0 { "…" } else { "" }, if to < doc.text.len() { "…" } else { "" });
    let units = |text: &str| u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX);
    let shift = units(head);
    let mut marks: Vec<(u32, u32)> = Vec::new();
    for (start, end) in places.iter().filter(|(start, end)| *start >= from && *end <= to) {
        let start = shift + units(&doc.text[from..*start]);
        let end = shift + units(&doc.text[from..*end]);
        match marks.last_mut() {
            Some(last) if last.1 >= start => last.1 = last.1.max(end),
            _ => marks.push((start, end)),
        }
    }
    TextHit {
        id: doc.id,
        root: doc.root,
        span: doc.span,
        field: doc.field,
        text: format!("{head}{shown}{tail}"),
        marks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc(text: &str) -> Doc {
        Doc {
            id: 1,
            root: "r".to_owned(),
            span: SpanId([0; 8]),
            field: "input".to_owned(),
            text: text.to_owned(),
        }
    }

    fn marked(text: &str, terms: &[&str]) -> Option<Vec<String>> {
        let terms: Vec<String> = terms.iter().map(|term| (*term).to_owned()).collect();
        let hit = hit(doc(text), &places(text, &terms)?);
        let units: Vec<u16> = hit.text.encode_utf16().collect();
        let cut = |(start, end): &(u32, u32)| {
            String::from_utf16(&units[*start as usize..*end as usize]).unwrap()
        };
        Some(hit.marks.iter().map(cut).collect())
    }

    /// Text, terms, what is marked.
    type Case<'a> = (&'a str, &'a [&'a str], Option<Vec<&'a str>>);

    #[test]
    fn marks_are_where_a_browser_counts_them() {
        let far = "\u{1F600}x ".repeat(100);
        let cases: [Case<'_>; 6] = [
            ("a Deliver b", &["deliver"], Some(vec!["Deliver"])),
            ("\u{1F600}\u{1F600} time out", &["time", "out"], Some(vec!["time", "out"])),
            ("İstanbul ÄRGER", &["ärger"], Some(vec!["ÄRGER"])),
            (&format!("{far}needle{far}"), &["needle"], Some(vec!["needle"])),
            ("abab", &["ab", "ba"], Some(vec!["abab"])),
            ("time is out", &["time out"], None),
        ];
        for (text, terms, expected) in cases {
            let found = marked(text, terms);
            let expected = expected.map(|all| all.into_iter().map(str::to_owned).collect());
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn what_is_shown_is_short() {
        let text = "x".repeat(9_000) + " needle " + &"y".repeat(9_000);
        let hit = hit(doc(&text), &places(&text, &["needle".to_owned()]).unwrap());
        assert_eq!(hit.text.chars().count(), SHOWN + 2);
        assert!(hit.text.contains("needle"));
    }
}
