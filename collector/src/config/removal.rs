//! Removes a destination from the configuration file. All other text stays, including comments.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Returns `text` without the `[[destination]]` of this name. Returns `None` if there is no such table, or if the rest
/// would be read differently without it (an array on one line, or a table in several places).
#[must_use]
pub(crate) fn without(text: &str, name: &str) -> Option<String> {
    let mut expected: toml::Table = text.parse().ok()?;
    let written = expected.get_mut("destination")?.as_array_mut()?;
    let is_it = |table: &toml::Value| table.get("name").and_then(toml::Value::as_str) == Some(name);
    let at = written.iter().position(is_it)?;
    written.remove(at);
    if written.is_empty() {
        expected.remove("destination");
    }
    let root = DeTable::parse(text).ok()?;
    let DeValue::Array(tables) = root.get_ref().get("destination")?.get_ref() else { return None };
    let table = tables.get(at)?;
    let start = text.get(..table.span().start)?.rfind('\n').map_or(0, |line| line + 1);
    let end = last(table);
    let end = text.get(end..)?.find('\n').map_or(text.len(), |line| end + line + 1);
    let (before, after) = (text.get(..start)?, text.get(end..)?);
    // One of the two empty lines around the table is removed, too.
    let after = match before.is_empty() || before.ends_with("\n\n") || before.ends_with("\r\n\r\n")
    {
        true => after.strip_prefix("\r\n").or_else(|| after.strip_prefix('\n')).unwrap_or(after),
        false => after,
    };
    let rest = format!("{before}{after}");
    let found: toml::Table = rest.parse().ok()?;
    (found == expected).then_some(rest)
}

/// Offset of the end of the last value in `value`.
fn last(value: &Spanned<DeValue<'_>>) -> usize {
    let own = value.span().end;
    match value.get_ref() {
        DeValue::Table(table) => table.values().map(last).fold(own, usize::max),
        _ => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_the_file_stays() {
        let text = "# mine\n[trace]\nmode = \"session\" # why\n\n[[destination]]\nname = \"a\" # first\n\
                    endpoint = \"http://h\"\n\n# second\n[[destination]]\nname = \"b\"\nendpoint = \"http://i\"\n\
                    [destination.values]\nui = \"[[destination]]\"\n";
        let without_a = "# mine\n[trace]\nmode = \"session\" # why\n\n# second\n[[destination]]\nname = \"b\"\n\
                         endpoint = \"http://i\"\n[destination.values]\nui = \"[[destination]]\"\n";
        assert_eq!(without(text, "a").as_deref(), Some(without_a));
        let without_b = "# mine\n[trace]\nmode = \"session\" # why\n\n[[destination]]\nname = \"a\" # first\n\
                         endpoint = \"http://h\"\n\n# second\n";
        assert_eq!(without(text, "b").as_deref(), Some(without_b));
        assert_eq!(without(text, "c"), None);
        let windows = text.replace('\n', "\r\n");
        assert_eq!(without(&windows, "a"), Some(without_a.replace('\n', "\r\n")));
    }

    #[test]
    fn what_cannot_be_cut_out_is_left_to_a_person() {
        for text in [
            "destination = [{ name = \"a\", endpoint = \"http://h\" }]\n",
            "[[destination]]\nname = \"a\"\n[destination.values]\n",
            "[[destination",
        ] {
            assert!(without(text, "a").is_none_or(|rest| rest.trim().is_empty()), "{text}");
        }
    }
}
