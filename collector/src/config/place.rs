//! Line and column of each destination and its keys in the configuration file, for error messages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::position;

/// Position of one `[[destination]]` in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    file: PathBuf,
    /// Line and column of the table itself.
    table: (usize, usize),
    /// Line and column of each key, as `sample` or `headers.x-key` in lower case.
    keys: BTreeMap<String, (usize, usize)>,
}

impl Place {
    /// Returns `FILE:LINE:COLUMN: ` for a problem whose text begins with a key, as in `sample: 1.5 is not …`. If the
    /// key is not in the file, returns the position of the table.
    #[must_use]
    pub(super) fn of(&self, problem: &str) -> String {
        let key = problem.split(": ").next().unwrap_or_default().to_ascii_lowercase();
        let (line, column) = self
            .keys
            .get(&key)
            .or_else(|| self.keys.get(key.split('.').next().unwrap_or_default()))
            .unwrap_or(&self.table);
        format!("{}:{line}:{column}: ", self.file.display())
    }
}

/// The positions of the destinations in `text`, in order. Empty if `text` is not valid TOML.
pub(super) fn destinations(file: &Path, text: &str) -> Vec<Place> {
    let Ok(root) = DeTable::parse(text) else { return Vec::new() };
    let tables = root.get_ref().get("destination").map(Spanned::get_ref);
    let Some(DeValue::Array(tables)) = tables else { return Vec::new() };
    let place = |table: &Spanned<DeValue<'_>>| {
        let mut keys = BTreeMap::new();
        if let DeValue::Table(inner) = table.get_ref() {
            collect(text, "", inner, &mut keys);
        }
        Place { file: file.to_owned(), table: position(text, table.span().start), keys }
    };
    tables.iter().map(place).collect()
}

fn collect(
    text: &str,
    prefix: &str,
    table: &DeTable<'_>,
    keys: &mut BTreeMap<String, (usize, usize)>,
) {
    for (key, value) in table {
        let name = format!("{prefix}{}", key.get_ref()).to_ascii_lowercase();
        if let DeValue::Table(inner) = value.get_ref() {
            collect(text, &format!("{name}."), inner, keys);
        }
        keys.insert(name, position(text, key.span().start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_with_the_line_of_its_key() {
        let text = "[dashboard]\n\n[[destination]]\nname = \"a\"\n  sample = 3\n\n[[destination]]\nname = \"b\"\n\
                    headers = { X-Key = \"env:A\" }\n[destination.values]\nui = 1\n";
        let places = destinations(Path::new("c.toml"), text);
        assert_eq!(places.len(), 2);
        assert_eq!(places[0].of("sample: 3 is not between 0 and 1"), "c.toml:5:3: ");
        assert_eq!(places[0].of("endpoint: is missing"), "c.toml:3:1: ");
        assert_eq!(places[1].of("headers.x-key: the variable A is not set"), "c.toml:9:13: ");
        assert_eq!(places[1].of("headers.other: is missing"), "c.toml:9:1: ");
        assert_eq!(places[1].of("values.ui: is wrong"), "c.toml:11:1: ");
        assert!(destinations(Path::new("c.toml"), "[[destination").is_empty());
    }
}
