//! The `version` of a hooks.json, and which values Cursor accepts.
//!
//! Cursor requires a number and otherwise says "Config version must be a number". Its documentation mentions only
//! version 1. Cursor runs no hook of an invalid file. JSON has only one kind of number, so `1.0` and `1e0` are 1.

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;

use super::document::{Broken, Document, broken};
use crate::config::position;

/// The value of `version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// 1, however it is written.
    Valid,
    /// It is missing. Cursor ignores the file.
    Missing,
    /// A value because of which Cursor ignores the file. `install` replaces it by 1, and `uninstall` restores the old
    /// text.
    Void {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Where the value begins in the text.
        start: usize,
        /// Where the value ends.
        end: usize,
        /// The beginning of the value, as written.
        found: String,
    },
    /// A later version. Its hooks may have another form, so `install` does not change the file.
    Newer(Broken),
}

/// Reads the `version` of a document.
#[must_use]
pub(crate) fn of(document: &Document<'_>) -> Version {
    let Some(root) = &document.root else { return Version::Missing };
    let Some(property) = root.get("version") else { return Version::Missing };
    let (start, end) = (property.value.start(), property.value.end());
    if let Value::NumberLit(number) = &property.value
        && let Ok(number) = number.value.parse::<f64>()
    {
        if number == 1.0 {
            return Version::Valid;
        }
        if number > 1.0 && number.fract() == 0.0 {
            let what = format!(
                "version {number} is newer than this hookspan knows; update hookspan, or change it to 1"
            );
            return Version::Newer(broken(document.text, start, what));
        }
    }
    let (line, column) = position(document.text, start);
    let found = document.text.get(start..end).unwrap_or_default();
    let found = found.chars().take(40).collect();
    Version::Void { line, column, start, end, found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn of_text(value: &str) -> Version {
        of(&Document::parse(&format!("{{\n  \"version\": {value}, \"hooks\": {{}} }}")).unwrap())
    }

    #[test]
    fn one_is_one_however_it_is_written() {
        for one in ["1", "1.0", "1e0", "1.00", "10e-1", "0.1e1"] {
            assert_eq!(of_text(one), Version::Valid, "{one}");
        }
        assert_eq!(of(&Document::parse("{}").unwrap()), Version::Missing);
        assert_eq!(of(&Document::parse("").unwrap()), Version::Missing);
    }

    #[test]
    fn what_is_no_version_voids_the_file_and_has_a_place() {
        for void in ["\"1\"", "null", "0", "1.5", "-1", "true", "[1]", "{ \"a\": 1 }", "0.9999"] {
            let Version::Void { line, column, start, end, .. } = of_text(void) else {
                panic!("{void}");
            };
            assert_eq!((line, column, end - start), (2, 14, void.len()), "{void}");
        }
    }

    #[test]
    fn a_later_version_is_not_touched() {
        for newer in ["2", "3", "2.0", "1e3"] {
            let Version::Newer(broken) = of_text(newer) else { panic!("{newer}") };
            assert_eq!((broken.line, broken.column), (2, 14));
        }
    }
}
