//! What people add to sessions (stars, tags, notes), and the filters that they save.

use std::collections::HashMap;

use crate::Result;
use crate::word::{NONE, Unfit};

/// Maximum number of tags of a session.
pub const TAGS_MAX: usize = 16;
/// Maximum number of characters of a tag.
pub const TAG_CHARS: usize = 40;
/// Maximum number of characters of a note.
pub const NOTE_CHARS: usize = 2_000;
/// Maximum number of saved filters of a page.
pub const SAVED_MAX: usize = 24;
/// Maximum number of characters of a saved filter's name, and of its query.
const SAVED_CHARS: (usize, usize) = (40, 1_000);

/// Marks of sessions, and saved filters. Every call is short (it runs on a thread for blocking work) and bounded by its
/// arguments.
pub trait Marks {
    /// The marks of these sessions. A session without any is left out.
    fn marks(&self, roots: &[&str]) -> Result<HashMap<String, SessionMarks>>;
    /// All saved filters, sorted by page and name.
    fn saved_filters(&self) -> Result<Vec<SavedFilter>>;
}

/// What people added to a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionMarks {
    /// It has a star.
    pub starred: bool,
    /// Its tags in alphabetical order.
    pub tags: Vec<String>,
    /// Its note; empty if it has none.
    pub note: String,
}

/// A change of a session's marks. Use [`MarkChange::tag`], [`MarkChange::untag`] and [`MarkChange::note`], which check
/// the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkChange {
    /// Gives the session a star, or takes it.
    Star(bool),
    /// Adds a tag.
    Tag(String),
    /// Removes a tag.
    Untag(String),
    /// Sets the note. An empty one removes it.
    Note(String),
}

/// The result of a change of a session's marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marked {
    /// The session's marks now.
    Done(SessionMarks),
    /// There is no such session.
    NoSession,
    /// The session would have more than [`TAGS_MAX`] tags. Nothing was changed.
    TooManyTags,
}

impl MarkChange {
    /// Adds a tag.
    ///
    /// # Errors
    ///
    /// [`Unfit`] if the text is no tag.
    pub fn tag(text: &str) -> core::result::Result<Self, Unfit> {
        tag(text).map(Self::Tag)
    }

    /// Removes a tag.
    ///
    /// # Errors
    ///
    /// [`Unfit`] if the text is no tag.
    pub fn untag(text: &str) -> core::result::Result<Self, Unfit> {
        tag(text).map(Self::Untag)
    }

    /// Sets the note.
    ///
    /// # Errors
    ///
    /// [`Unfit`] if the text is too long, or contains characters that a terminal obeys.
    pub fn note(text: &str) -> core::result::Result<Self, Unfit> {
        let text = text.trim().replace("\r\n", "\n");
        let plain = text.chars().all(|c| matches!(c, '\n' | '\t') || is_plain(c));
        if !plain || text.chars().count() > NOTE_CHARS {
            let wanted = format!("at most {NOTE_CHARS} characters, and no control characters");
            return Err(Unfit { word: "note", wanted });
        }
        Ok(Self::Note(text))
    }
}

/// A tag is one word, so that `tag:WORD` can name it.
fn tag(text: &str) -> core::result::Result<String, Unfit> {
    let text = text.trim();
    let is_word =
        text.chars().all(|c| is_plain(c) && !c.is_whitespace() && !matches!(c, ',' | '"'));
    let fits = (1..=TAG_CHARS).contains(&text.chars().count());
    if !is_word || !fits || text.eq_ignore_ascii_case(NONE) {
        let wanted = format!(
            "one word of at most {TAG_CHARS} characters, without commas, quotes and control characters, other than \"{NONE}\""
        );
        return Err(Unfit { word: "tag", wanted });
    }
    Ok(text.to_owned())
}

/// Whether a character is neither a control character nor one that hides text or changes its direction.
fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A page that can save filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterPage {
    /// Sessions.
    Sessions,
    /// Files.
    Files,
    /// Errors.
    Errors,
}

impl FilterPage {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sessions, Self::Files, Self::Errors];

    /// The word in addresses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Files => "files",
            Self::Errors => "errors",
        }
    }
}

/// A filter that was saved under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedFilter {
    /// The page that it belongs to.
    pub page: FilterPage,
    /// Its name, unique on its page. Upper and lower case are not distinguished.
    pub name: String,
    /// The query of the page's address, without a question mark.
    pub query: String,
}

impl SavedFilter {
    /// A filter with checked texts.
    ///
    /// # Errors
    ///
    /// [`Unfit`] if the name or the query is not valid.
    pub fn new(page: FilterPage, name: &str, query: &str) -> core::result::Result<Self, Unfit> {
        let (name, query) = (name.trim(), query.trim_start_matches('?'));
        if name.is_empty() || name.chars().count() > SAVED_CHARS.0 || !name.chars().all(is_plain) {
            let wanted = format!("1 to {} characters, and no control characters", SAVED_CHARS.0);
            return Err(Unfit { word: "name", wanted });
        }
        let is_query =
            query.bytes().all(|byte| byte.is_ascii_graphic() && !b"#<>\"".contains(&byte));
        if query.is_empty() || query.len() > SAVED_CHARS.1 || !is_query {
            let wanted = format!(
                "the query of an address, percent-encoded, at most {} bytes",
                SAVED_CHARS.1
            );
            return Err(Unfit { word: "query", wanted });
        }
        Ok(Self { page, name: name.to_owned(), query: query.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_one_plain_word() {
        for (text, fits) in [
            ("later", true),
            ("  flaky-test ", true),
            ("später", true),
            ("#12", true),
            ("", false),
            ("two words", false),
            ("a,b", false),
            ("None", false),
            ("x\u{202e}y", false),
            ("x\u{1b}[2J", false),
            ("x\u{200b}", false),
        ] {
            assert_eq!(tag(text).is_ok(), fits, "{text:?}");
        }
        assert!(tag(&"ü".repeat(TAG_CHARS)).is_ok() && tag(&"ü".repeat(TAG_CHARS + 1)).is_err());
    }

    #[test]
    fn a_note_has_lines_and_an_end() {
        assert_eq!(MarkChange::note(" a\r\nb\t \n"), Ok(MarkChange::Note("a\nb".to_owned())));
        assert!(MarkChange::note(&"x".repeat(NOTE_CHARS + 1)).is_err());
        assert!(MarkChange::note("\u{7}").is_err());
    }

    #[test]
    fn a_kept_filter_is_a_query_with_a_name() {
        let keep = |name: &str, query: &str| SavedFilter::new(FilterPage::Files, name, query);
        assert_eq!(keep(" mine ", "?q=a%20b").unwrap().query, "q=a%20b");
        for (name, query) in [
            ("", "q=a"),
            ("x\ny", "q=a"),
            ("x", ""),
            ("x", "q=a b"),
            ("x", "q=<"),
            ("x", "q=\u{fc}"),
        ] {
            assert!(keep(name, query).is_err(), "{name:?} {query:?}");
        }
        assert!(keep(&"n".repeat(41), "q=a").is_err() && keep("n", &"q".repeat(1_001)).is_err());
    }
}
