//! Finds the model that a label means. Cursor's labels include how much a model thinks and use their own word order
//! (`claude-4.6-sonnet-medium-thinking`). Price lists use the maker's name (`claude-sonnet-4-6`).

use std::borrow::Cow;

/// Words of a label that describe how much a model thinks. They change how many tokens it uses, but not the price of a
/// token.
const EFFORT: [&str; 9] =
    ["none", "minimal", "low", "medium", "high", "xhigh", "max", "thinking", "preview"];

/// Labels that are not model names, with the model each stands for.
const ALIASES: [(&str, &str); 4] = [
    ("default", "auto"),
    ("agent_review", "gpt-5.4"),
    ("grok-code-fast-1", "grok-code-fast"),
    ("composer", "composer-2.5"),
];

/// Families of Claude. Cursor writes the family after the version, Anthropic before it.
const FAMILIES: [&str; 5] = ["opus", "sonnet", "haiku", "fable", "mythos"];

/// Model names that a label may stand for, the likeliest first: the label as it is, then the label without its effort,
/// then with words removed one by one from the end. A word is removed only if no list has the longer name:
/// `gpt-5.1-codex-max` is a model of its own.
pub(crate) fn names(label: &str) -> Vec<String> {
    let plain = plain(label);
    let mut names = Vec::new();
    let mut note = |name: String| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    let mut words: Vec<&str> = plain.split('-').collect();
    loop {
        let name = words.join("-");
        note(name.clone());
        note(makers(&words));
        if let Some((_, meant)) = ALIASES.iter().find(|(alias, _)| *alias == name) {
            note((*meant).to_owned());
        }
        match words.iter().rposition(|word| EFFORT.contains(word)) {
            Some(at) if words.len() > 1 => drop(words.remove(at)),
            _ => return names,
        }
    }
}

/// The name of a model in a price list, changed to the form that labels are compared with: lower case, without the
/// maker, brackets and release date.
pub(crate) fn plain(name: &str) -> Cow<'_, str> {
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.split(['[', '@']).next().unwrap_or(name).trim();
    let name = without_date(name);
    let name = name.strip_prefix("cursor-").unwrap_or(name);
    if name.bytes().any(|b| b.is_ascii_uppercase()) {
        return Cow::Owned(name.to_ascii_lowercase());
    }
    Cow::Borrowed(name)
}

/// The maker's spelling of a name: `claude-sonnet-4-6` for `claude-4.6-sonnet`. Other names keep the order of their
/// words.
fn makers(words: &[&str]) -> String {
    let version = |word: &str| word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let dashed = |word: &str| word.replace('.', "-");
    match words {
        ["claude", number, family, rest @ ..] if FAMILIES.contains(family) && version(number) => {
            [&["claude", *family, &dashed(number)], rest].concat().join("-")
        }
        ["claude", family, number, rest @ ..] if FAMILIES.contains(family) && version(number) => {
            [&["claude", *family, &dashed(number)], rest].concat().join("-")
        }
        _ => words.join("-"),
    }
}

/// The name without `-20251101` or `-2026-03-05` at its end.
fn without_date(name: &str) -> &str {
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    match name.rsplit_once('-') {
        Some((rest, date)) if digits(date, 8) => rest,
        Some((rest, day)) if digits(day, 2) => match rest.rsplit_once('-') {
            Some((rest, month)) if digits(month, 2) => match rest.rsplit_once('-') {
                Some((rest, year)) if digits(year, 4) => rest,
                _ => name,
            },
            _ => name,
        },
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_seen_in_hooks_stands_for_the_makers_name() {
        for (label, name) in [
            ("default", "auto"),
            ("gpt-5.5-medium", "gpt-5.5"),
            ("gpt-5.5", "gpt-5.5"),
            ("gpt-5.1-codex-max-high", "gpt-5.1-codex-max"),
            ("gpt-5-high-fast", "gpt-5-fast"),
            ("composer-2.5-fast", "composer-2.5-fast"),
            ("claude-4.6-sonnet-medium-thinking", "claude-sonnet-4-6"),
            ("claude-4.5-sonnet-thinking", "claude-sonnet-4-5"),
            ("claude-4.6-opus-high-thinking-fast", "claude-opus-4-6-fast"),
            ("claude-opus-4-8[1m]", "claude-opus-4-8"),
            ("claude-opus-4-7-thinking-xhigh", "claude-opus-4-7"),
            ("claude-4-sonnet", "claude-sonnet-4"),
            ("claude-sonnet-4-20250514", "claude-sonnet-4"),
            ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
            ("Gemini-2.5-Pro", "gemini-2.5-pro"),
            ("gemini-3.1-pro-preview", "gemini-3.1-pro"),
            ("gpt-5.4-2026-03-05", "gpt-5.4"),
            ("cursor-grok-4.5-high", "grok-4.5"),
            ("o3", "o3"),
        ] {
            assert!(names(label).iter().any(|found| found == name), "{label}: {:?}", names(label));
        }
    }

    #[test]
    fn a_label_is_itself_first_and_nothing_is_guessed() {
        assert_eq!(names("gpt-5.1-codex-max")[0], "gpt-5.1-codex-max");
        assert!(!names("gpt-5.5-fast").contains(&"gpt-5.5".to_owned()), "fast is priced apart");
        assert!(!names("gpt-5.5-mini").contains(&"gpt-5.5".to_owned()));
        assert_eq!(names("high"), ["high"]);
        assert_eq!(names(""), [""]);
        assert_eq!(names("x-2026-03-5"), ["x-2026-03-5"]);
    }
}
