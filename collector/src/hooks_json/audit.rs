//! Inspects a hooks.json: hookspan's entries in any form, and anything that keeps Cursor from running them.
//!
//! Cursor checks the whole file before it runs any hook, and ignores the whole file if one entry is invalid. The checks here are Cursor's, in the
//! words of its settings page ("Config version must be a number", "Unknown hook type"). Cursor's command line reads the text
//! differently: it removes comments without regard to strings, and rejects trailing commas.

use std::path::Path;

use jsonc_parser::ast::{Array, Object, Value};
use jsonc_parser::common::Ranged as _;

use super::document::Document;
use super::events;
use super::file::HooksFile;
use super::line::Line;
use super::own_entries;
use super::recognise::{self, recognise};
use crate::config::position;
use crate::text;

/// Cursor itself warns about a timeout above this, in seconds.
const TIMEOUT_LONG_SECONDS: f64 = 3_600.0;
/// The hook program's own deadline, seconds.
const TIMEOUT_LEAST_SECONDS: f64 = 5.0;

/// A remark about one place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    /// Its consequence.
    pub kind: Kind,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The text there.
    pub what: String,
}

/// The consequence of a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// `version` is missing or not a positive whole number. Cursor ignores the file.
    Version,
    /// `version` is later than the versions that hookspan knows. Cursor accepts any positive whole number, but
    /// `install` does not change such a file.
    NewerVersion,
    /// Cursor ignores the file.
    Void,
    /// Cursor's command line ignores the file.
    VoidForCli,
    /// An event that hookspan does not know. A Cursor that does not know it either ignores the file.
    UnknownEvent,
    /// An option that changes the effect of an entry of ours.
    Altered,
}

/// An entry that runs hookspan or was meant to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ours {
    /// The event it stands under.
    pub event: String,
    /// Its command.
    pub command: String,
    /// How it is written.
    pub shape: Shape,
    /// Whether it stands in a group, as in Claude's settings. Cursor does not read groups.
    pub grouped: bool,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// How an entry of ours is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// An entry as `install` writes it on this system.
    Own(Line),
    /// An entry for another operating system. This system cannot run a program at such a path.
    OtherSystem,
    /// Another text that names the hook program: with a variable before it, inside a shell command, or with something
    /// after it.
    Other,
}

/// The result for one hooks.json.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Audit {
    /// Remarks in the order of the file.
    pub remarks: Vec<Remark>,
    /// Entries of hookspan, in that order.
    pub ours: Vec<Ours>,
    /// How many entries there are in all.
    pub entries: usize,
}

impl Audit {
    /// Inspects a parsed file.
    #[must_use]
    pub(crate) fn of(document: &Document<'_>) -> Self {
        let mut auditor = Auditor { document, audit: Self::default() };
        if let Some(root) = &document.root {
            auditor.version(root);
            auditor.hooks(root);
            auditor.texts(&Value::Object(root.clone()));
        }
        auditor.audit.remarks.sort_by_key(|remark| (remark.line, remark.column));
        auditor.audit
    }

    /// The remarks of one kind.
    pub(crate) fn all(&self, kind: Kind) -> impl Iterator<Item = &Remark> {
        self.remarks.iter().filter(move |remark| remark.kind == kind)
    }
}

/// Number of entries of a hooks.json that run hookspan; 0 if the file is missing or cannot be read.
#[must_use]
pub(crate) fn events(path: &Path) -> usize {
    let text = HooksFile::read(path).ok().and_then(|file| file.text).unwrap_or_default();
    let document = Document::parse(&text);
    document.map_or(0, |document| {
        own_entries::entries(&document).iter().filter(|ours| ours.runs_here()).count()
    })
}

struct Auditor<'a, 'b> {
    document: &'b Document<'a>,
    audit: Audit,
}

impl<'a> Auditor<'a, '_> {
    fn remark(&mut self, kind: Kind, at: usize, what: impl Into<String>) {
        let (line, column) = position(self.document.text, at);
        self.audit.remarks.push(Remark { kind, line, column, what: what.into() });
    }

    fn version(&mut self, root: &Object<'a>) {
        let Some(version) = root.get("version") else {
            return self.remark(Kind::Version, root.start(), "\"version\" is missing");
        };
        let number = number(&version.value);
        let kind = match number {
            Some(1.0) => return,
            Some(number) if number > 1.0 && number.fract() == 0.0 => Kind::NewerVersion,
            _ => Kind::Version,
        };
        let what = format!("\"version\" is {}", self.shown(&version.value));
        self.remark(kind, version.value.start(), what);
    }

    fn hooks(&mut self, root: &Object<'a>) {
        let Some(hooks) = root.get_object("hooks") else { return };
        for property in &hooks.properties {
            let event = property.name.as_str();
            if !events::KNOWN.contains(&event) {
                let what = format!("the event `{}` is not known", text::visible(event, 40));
                self.remark(Kind::UnknownEvent, property.start(), what);
            }
            let Value::Array(array) = &property.value else { continue };
            for element in &array.elements {
                self.audit.entries += 1;
                self.element(event, element);
            }
        }
    }

    fn element(&mut self, event: &str, element: &Value<'a>) {
        let Value::Object(object) = element else {
            let what = format!("an entry is {}, not an object", self.shown(element));
            return self.remark(Kind::Void, element.start(), what);
        };
        if let (Some(group), None) = (object.get_array("hooks"), object.get("command")) {
            self.remark(
                Kind::Void,
                object.start(),
                "a group as in Claude's settings, without a `command`",
            );
            return self.group(event, group);
        }
        self.kind(object);
        self.options(object);
        let Some(command) = object.get_string("command") else { return };
        let at = object.start();
        if let Some(ours) = self.ours(event, &command.value, at, false) {
            self.altered(object, &ours);
            self.audit.ours.push(ours);
        }
    }

    /// Entries one level deeper.
    fn group(&mut self, event: &str, group: &Array<'a>) {
        for object in group.elements.iter().filter_map(Value::as_object) {
            let Some(command) = object.get_string("command") else { continue };
            self.audit.ours.extend(self.ours(event, &command.value, object.start(), true));
        }
    }

    /// Checks `type` and the keys that it needs.
    fn kind(&mut self, object: &Object<'a>) {
        let kind = object.get("type").map(|property| &property.value);
        match kind {
            None => self.wants_text(object, "command"),
            Some(Value::StringLit(kind)) if kind.value == "command" => {
                self.wants_text(object, "command");
            }
            Some(Value::StringLit(kind)) if kind.value == "prompt" => {
                self.wants_text(object, "prompt");
            }
            Some(other) => {
                let what =
                    format!("`type` is {}; Cursor knows command and prompt", self.shown(other));
                self.remark(Kind::Void, other.start(), what);
            }
        }
    }

    fn wants_text(&mut self, object: &Object<'a>, key: &str) {
        match object.get(key).map(|property| &property.value) {
            None => self.remark(Kind::Void, object.start(), format!("an entry has no `{key}`")),
            Some(Value::StringLit(text)) if text.value.trim().is_empty() => {
                self.remark(Kind::Void, text.start(), format!("`{key}` is blank"));
            }
            Some(Value::StringLit(_)) => {}
            Some(other) => {
                let what = format!("`{key}` is {}, not a string", self.shown(other));
                self.remark(Kind::Void, other.start(), what);
            }
        }
    }

    fn options(&mut self, object: &Object<'a>) {
        for property in &object.properties {
            let (name, value) = (property.name.as_str(), &property.value);
            let rule = match name {
                "timeout" if number(value).is_none_or(|seconds| seconds <= 0.0) => {
                    "a positive number of seconds"
                }
                "loop_limit" if !is_loop_limit(value) => "a positive whole number or null",
                "failClosed" if !matches!(value, Value::BooleanLit(_)) => "true or false",
                "matcher" if !is_matcher(value) => "a regular expression",
                _ => continue,
            };
            let what = format!("`{name}` is {}, not {rule}", self.shown(value));
            self.remark(Kind::Void, value.start(), what);
        }
    }

    /// Options beside an entry of ours that change when or how it runs.
    fn altered(&mut self, object: &Object<'a>, ours: &Ours) {
        if let Shape::Own(line) = &ours.shape
            && line.event != ours.event
        {
            let what =
                format!("the command names {}, but the entry is under {}", line.event, ours.event);
            self.remark(Kind::Altered, object.start(), what);
        }
        for property in &object.properties {
            let value = &property.value;
            let what = match (property.name.as_str(), number(value)) {
                ("timeout", Some(seconds)) if seconds > 0.0 && seconds < TIMEOUT_LEAST_SECONDS => {
                    "the `timeout` is shorter than the hook program may take (5 s)"
                }
                ("timeout", Some(seconds)) if seconds > TIMEOUT_LONG_SECONDS => {
                    "the `timeout` is longer than an hour; Cursor counts seconds"
                }
                ("matcher", _) if !is_everything(value) => {
                    "the `matcher` keeps Cursor from running it for every event"
                }
                ("failClosed", _) if matches!(value, Value::BooleanLit(lit) if lit.value) => {
                    "`failClosed` lets a hook that fails stop Cursor's agent"
                }
                _ => continue,
            };
            self.remark(Kind::Altered, property.start(), what);
        }
    }

    fn ours(&self, event: &str, command: &str, at: usize, grouped: bool) -> Option<Ours> {
        let shape = shape(command)?;
        let (line, column) = position(self.document.text, at);
        let (event, command) = (event.to_owned(), command.to_owned());
        Some(Ours { event, command, shape, grouped, line, column })
    }

    /// Text anywhere in the file that Cursor's command line misreads.
    fn texts(&mut self, value: &Value<'a>) {
        match value {
            Value::StringLit(text) => self.comment_in_text(&text.value, text.start()),
            Value::Object(object) => {
                for property in &object.properties {
                    self.comment_in_text(property.name.as_str(), property.start());
                    self.texts(&property.value);
                }
                self.trailing_comma(object.properties.last().map(|last| last.end()));
            }
            Value::Array(array) => {
                array.elements.iter().for_each(|element| self.texts(element));
                self.trailing_comma(array.elements.last().map(|last| last.end()));
            }
            Value::NumberLit(_) | Value::BooleanLit(_) | Value::NullKeyword(_) => {}
        }
    }

    fn comment_in_text(&mut self, text: &str, at: usize) {
        let sign = if text.contains("//") { "//" } else { "/*" };
        if !text.contains(sign) {
            return;
        }
        // A block comment does harm only if it is closed.
        let rest = self.document.text.get(at..).unwrap_or_default();
        let ends = rest.split_once("/*").is_some_and(|(_, behind)| behind.contains("*/"));
        if sign == "//" || ends {
            self.remark(Kind::VoidForCli, at, format!("a text contains `{sign}`"));
        }
    }

    fn trailing_comma(&mut self, end: Option<usize>) {
        if let Some(comma) = end.and_then(|end| self.document.comma_after(end)) {
            self.remark(Kind::VoidForCli, comma.start, "a comma without a value after it");
        }
    }

    /// A value as written, shortened.
    fn shown(&self, value: &Value<'a>) -> String {
        let written = self.document.text.get(value.start()..value.end()).unwrap_or_default();
        text::visible(written, 40)
    }
}

fn number(value: &Value<'_>) -> Option<f64> {
    let Value::NumberLit(number) = value else { return None };
    number.value.parse().ok()
}

fn is_loop_limit(value: &Value<'_>) -> bool {
    matches!(value, Value::NullKeyword(_))
        || number(value).is_some_and(|limit| limit >= 1.0 && limit.fract() == 0.0)
}

fn is_everything(value: &Value<'_>) -> bool {
    matches!(value, Value::StringLit(text) if text.value.is_empty() || text.value == "*")
}

/// Whether JavaScript accepts the value as a regular expression, or whether it is one of the two values that match
/// everything.
fn is_matcher(value: &Value<'_>) -> bool {
    let Value::StringLit(text) = value else { return false };
    is_everything(value) || is_regular_expression(&text.value)
}

/// Whether JavaScript may accept the pattern. Returns `false` only for errors that Rust and JavaScript both reject. The
/// two differ about other patterns, such as lookaround or an unescaped brace.
fn is_regular_expression(pattern: &str) -> bool {
    use regex_syntax::ast::ErrorKind;
    let Err(error) = regex_syntax::ast::parse::Parser::new().parse(pattern) else { return true };
    let refused = match error.kind() {
        ErrorKind::GroupUnclosed | ErrorKind::GroupUnopened | ErrorKind::EscapeUnexpectedEof => {
            true
        }
        // JavaScript reads a brace that repeats nothing as a literal character.
        ErrorKind::RepetitionMissing => {
            pattern.as_bytes().get(error.span().start.offset) != Some(&b'{')
        }
        // A second bracket inside a class is a literal character in JavaScript, and a nested class in Rust.
        ErrorKind::ClassUnclosed => pattern.matches('[').count() == 1 && !pattern.contains(']'),
        _ => false,
    };
    !refused
}

/// The form of a command that runs the hook program; `None` if it does not run it.
fn shape(command: &str) -> Option<Shape> {
    let found = recognise(command)?;
    Some(match (Line::read(command), found.form) {
        (Some(line), _) => Shape::Own(line),
        (None, recognise::Form::Elsewhere(_)) => Shape::OtherSystem,
        (None, recognise::Form::Plain | recognise::Form::Wrapped) => Shape::Other,
    })
}

#[cfg(test)]
mod tests;
