//! A parsed hooks.json that knows the position of everything in the text.

use std::collections::BTreeSet;

use jsonc_parser::ast::{Array, Object, Value};
use jsonc_parser::common::{Range, Ranged as _};
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};

use super::recognise::{self, Form};
use crate::config::position;

/// Why a hooks.json cannot be edited. Line and column count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {what}")]
pub struct Broken {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
    /// What is wrong there.
    pub what: String,
}

/// The text and its structure. `root` is `None` if the text contains only space and comments.
pub struct Document<'a> {
    /// The text.
    pub text: &'a str,
    /// The outermost object.
    pub root: Option<Object<'a>>,
    tokens: Vec<TokenAndRange<'a>>,
}

/// A `{}` or `[]` and its content, with offsets.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    /// Offset of the opening bracket, and offset after the closing bracket.
    pub range: Range,
    /// Properties or elements.
    pub items: Vec<Range>,
}

/// A configured hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The event it stands under.
    pub event: String,
    /// Its `command`, where it has one.
    pub command: Option<String>,
    /// The hook's index in the array of its event.
    pub index: usize,
    /// Its keys, in order.
    pub keys: Vec<String>,
    /// Line in the file.
    pub line: usize,
}

impl Found {
    /// Whether it is an entry of ours in the form that `install` writes. `own_entries` finds other forms.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        let found = self.command.as_deref().and_then(recognise::recognise);
        found.is_some_and(|found| found.form == Form::Plain)
    }
}

/// A command in hooks.json. It may be one level deeper than Cursor reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The event it stands under.
    pub event: String,
    /// The command's index in the array of its event, or in its group if it is in one.
    pub index: usize,
    /// Number of hooks in its group; `None` if it is in no group.
    pub group: Option<usize>,
    /// Line in the file.
    pub line: usize,
    /// Column in the file.
    pub column: usize,
    /// The command.
    pub command: String,
}

/// Converts offsets to lines and columns. Offsets must be given in ascending order, so that the text is counted only
/// once.
struct Places<'a> {
    text: &'a str,
    offset: usize,
    place: (usize, usize),
}

impl<'a> Places<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text, offset: 0, place: (1, 1) }
    }

    fn at(&mut self, offset: usize) -> (usize, usize) {
        for c in self.text.get(self.offset..offset).unwrap_or_default().chars() {
            self.place = match c {
                '\n' => (self.place.0 + 1, 1),
                _ => (self.place.0, self.place.1 + 1),
            };
        }
        self.offset = self.offset.max(offset);
        self.place
    }
}

impl<'a> Document<'a> {
    /// Parses JSON with comments and trailing commas, as Cursor does. `text` has no byte order mark.
    ///
    /// # Errors
    /// The text is invalid, or `hooks` is not an object of arrays.
    pub fn parse(text: &'a str) -> Result<Self, Broken> {
        let collect =
            CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed = parse_to_ast(text, &collect, &options).map_err(|error| {
            let what = lower_first(&error.kind().to_string());
            broken(text, error.range().start, what)
        })?;
        let root = match parsed.value {
            None => None,
            Some(Value::Object(root)) => Some(root),
            Some(other) => {
                return Err(broken(text, other.start(), "expected an object `{ ... }`".to_owned()));
            }
        };
        let document = Self { text, root, tokens: parsed.tokens.unwrap_or_default() };
        document.check_shape()?;
        Ok(document)
    }

    fn check_shape(&self) -> Result<(), Broken> {
        let Some(root) = &self.root else { return Ok(()) };
        self.check_unique(root)?;
        let Some(hooks) = root.get("hooks") else { return Ok(()) };
        let Value::Object(hooks) = &hooks.value else {
            let what = "\"hooks\" must be an object".to_owned();
            return Err(broken(self.text, hooks.value.start(), what));
        };
        self.check_unique(hooks)?;
        for property in &hooks.properties {
            if !matches!(property.value, Value::Array(_)) {
                let what =
                    format!("\"hooks.{}\" must be an array", shorten(property.name.as_str()));
                return Err(broken(self.text, property.value.start(), what));
            }
        }
        Ok(())
    }

    /// If a key occurs twice, programs disagree about which one counts. So editing one of them might have no effect.
    fn check_unique(&self, object: &Object<'_>) -> Result<(), Broken> {
        let mut seen = BTreeSet::new();
        for property in &object.properties {
            let name = property.name.as_str();
            if !seen.insert(name) {
                let what = format!("the key \"{}\" occurs twice", shorten(name));
                return Err(broken(self.text, property.start(), what));
            }
        }
        Ok(())
    }

    /// `hooks`.
    #[must_use]
    pub fn hooks(&self) -> Option<&Object<'a>> {
        self.root.as_ref()?.get_object("hooks")
    }

    /// The array of an event.
    #[must_use]
    pub fn event(&self, name: &str) -> Option<&Array<'a>> {
        self.hooks()?.get_array(name)
    }

    /// Every configured hook, in the order of the file.
    #[must_use]
    pub fn found(&self) -> Vec<Found> {
        let mut places = Places::new(self.text);
        let mut found = Vec::new();
        for (event, index, element) in self.elements() {
            let object = element.as_object();
            found.push(Found {
                event: event.to_owned(),
                command: object.and_then(command_of),
                index,
                keys: object.map_or_else(Vec::new, |object| {
                    object.properties.iter().map(|key| key.name.as_str().to_owned()).collect()
                }),
                line: places.at(element.start()).0,
            });
        }
        found
    }

    /// Every command in the order of the file: those of hooks, and those in groups as in Claude's settings.
    #[must_use]
    pub fn commands(&self) -> Vec<Command> {
        let mut places = Places::new(self.text);
        let mut commands = Vec::new();
        for (event, index, element) in self.elements() {
            let Some(object) = element.as_object() else { continue };
            let group = object.get_array("hooks").map(|hooks| hooks.elements.as_slice());
            let alone = std::slice::from_ref(element);
            for hook in group.filter(|_| command_of(object).is_none()).unwrap_or(alone) {
                let Some(command) = hook.as_object().and_then(command_of) else { continue };
                let (line, column) = places.at(hook.start());
                commands.push(Command {
                    event: event.to_owned(),
                    index,
                    group: group.filter(|_| !std::ptr::eq(hook, element)).map(<[_]>::len),
                    line,
                    column,
                    command,
                });
            }
        }
        commands
    }

    /// Event, place and value of every element of every event's array.
    fn elements(&self) -> impl Iterator<Item = (&str, usize, &Value<'a>)> {
        let properties = self.hooks().map(|hooks| hooks.properties.as_slice()).unwrap_or_default();
        properties.iter().flat_map(|property| {
            let elements = match &property.value {
                Value::Array(array) => array.elements.as_slice(),
                _ => &[],
            };
            let numbered = elements.iter().enumerate();
            numbered.map(|(index, element)| (property.name.as_str(), index, element))
        })
    }

    /// The comma that follows the item ending at `end`, and whether a comment stands before it.
    #[must_use]
    pub fn comma_after(&self, end: usize) -> Option<Range> {
        let next = self.after(end).find(|token| !is_comment(&token.token))?;
        matches!(next.token, Token::Comma).then_some(next.range)
    }

    /// End of the last comment that begins on the line of `from`, otherwise `from`. Such a comment belongs to what
    /// stands before it.
    #[must_use]
    pub fn end_of_line_comments(&self, from: usize) -> usize {
        let mut end = from;
        for token in self.after(from).take_while(|token| is_comment(&token.token)) {
            if self.text.get(end..token.range.start).is_none_or(|gap| gap.contains(['\n', '\r'])) {
                break;
            }
            end = token.range.end;
        }
        end
    }

    /// End of the last comment after `from`, or `from`.
    #[must_use]
    pub fn end_of_comments(&self, from: usize) -> usize {
        self.after(from)
            .take_while(|token| is_comment(&token.token))
            .last()
            .map_or(from, |token| token.range.end)
    }

    /// End of the token or comment before `start`.
    #[must_use]
    pub fn end_before(&self, start: usize) -> usize {
        let before = self.first_from(start).checked_sub(1);
        before.and_then(|index| self.tokens.get(index)).map_or(0, |token| token.range.end)
    }

    fn after(&self, end: usize) -> impl Iterator<Item = &TokenAndRange<'a>> {
        self.tokens.get(self.first_from(end)..).unwrap_or_default().iter()
    }

    /// The first token that does not begin before `offset`.
    fn first_from(&self, offset: usize) -> usize {
        self.tokens.partition_point(|token| token.range.start < offset)
    }
}

impl Container {
    /// The properties of an object.
    #[must_use]
    pub(crate) fn object(object: &Object<'_>) -> Self {
        Self { range: object.range, items: object.properties.iter().map(|p| p.range).collect() }
    }

    /// The elements of an array.
    #[must_use]
    pub(crate) fn array(array: &Array<'_>) -> Self {
        Self { range: array.range, items: array.elements.iter().map(|e| e.range()).collect() }
    }

    /// Offset behind the opening bracket.
    #[must_use]
    pub(crate) fn inside(&self) -> usize {
        self.range.start + 1
    }

    /// Offset of the closing bracket.
    #[must_use]
    pub(crate) fn close(&self) -> usize {
        self.range.end - 1
    }
}

fn command_of(object: &Object<'_>) -> Option<String> {
    object.get_string("command").map(|command| command.value.to_string())
}

fn is_comment(token: &Token<'_>) -> bool {
    matches!(token, Token::CommentLine(_) | Token::CommentBlock(_))
}

pub(super) fn broken(text: &str, offset: usize, what: String) -> Broken {
    let (line, column) = position(text, offset);
    Broken { line, column, what }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// A name from the file, shortened and made safe for an error message.
fn shorten(name: &str) -> String {
    name.chars().take(60).flat_map(char::escape_default).collect()
}
