//! The fingerprint of a failure: its text without numbers, paths and ids. Failures with the same fingerprint form a
//! group.

/// Longest fingerprint, characters.
const MAX_CHARS: usize = 200;
/// Placeholder for a path. It is itself recognised as a path.
const PATH: &str = "/x";

/// `label` and `message` of a failure, with everything blanked that varies from one failure to the next: paths, ids,
/// numbers, quoted text. The message `exit code N` stays as it is, because the exit code distinguishes failures. `path`
/// is the file that the call worked on; its name may contain spaces.
#[must_use]
pub(crate) fn fingerprint(label: &str, message: &str, path: Option<&str>) -> String {
    let blank = |text: &str| match path {
        Some(path) => blank(&without(text, path)),
        None => blank(text),
    };
    let message = match message.strip_prefix("exit code ") {
        Some(code) if code.parse::<i64>().is_ok() => message.to_owned(),
        _ => blank(message),
    };
    let print = format!("{}: {message}", blank(label));
    print.chars().take(MAX_CHARS).collect()
}

/// `text` with `path`, or the end of `path` that occurs in it, replaced by a placeholder. Labels contain paths relative
/// to a workspace, cut off if they are too long.
fn without(text: &str, path: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let path = path.split_whitespace().collect::<Vec<_>>().join(" ");
    let starts = path.match_indices(['/', '\\']).map(|(at, _)| at + 1);
    for tail in [0].into_iter().chain(starts).filter_map(|at| path.get(at..)) {
        // A name without a space is handled word by word elsewhere.
        if !tail.contains(' ') {
            break;
        }
        if text.contains(tail) {
            return text.replace(tail, PATH);
        }
        let cut = text.strip_suffix('…').and_then(|text| {
            let begin = tail.get(..tail.find(' ')?)?;
            let at = text.find(begin)?;
            tail.starts_with(text.get(at..)?)
                .then(|| format!("{}{PATH}", text.get(..at).unwrap_or_default()))
        });
        if let Some(cut) = cut {
            return cut;
        }
    }
    text
}

fn blank(text: &str) -> String {
    let words: Vec<String> = unquoted(text).split_whitespace().map(word).collect();
    words.join(" ")
}

/// Replaces text between two equal quotes by `…`. A quote without a partner counts as a letter.
fn unquoted(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['"', '`']) {
        let quote = &rest[at..=at];
        let Some(end) = rest[at + 1..].find(quote) else { break };
        out.push_str(&rest[..at]);
        out.push_str(quote);
        out.push('…');
        out.push_str(quote);
        rest = &rest[at + end + 2..];
    }
    out.push_str(rest);
    out
}

fn word(word: &str) -> String {
    let bare =
        word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '\\' | '.' | '~'));
    if is_path(bare) {
        return word.replacen(bare, "<path>", 1);
    }
    if is_id(bare) {
        return word.replacen(bare, "<id>", 1);
    }
    let mut out = String::new();
    let mut in_number = false;
    for c in word.chars() {
        if c.is_ascii_digit() {
            if !in_number {
                out.push('#');
            }
        } else {
            out.push(c);
        }
        in_number = c.is_ascii_digit();
    }
    out
}

fn is_path(word: &str) -> bool {
    let file = |word: &str| {
        word.rsplit_once('.').is_some_and(|(name, extension)| {
            !name.is_empty()
                && (1..=5).contains(&extension.len())
                && extension.starts_with(|c: char| c.is_ascii_alphabetic())
                && extension.chars().all(|c| c.is_ascii_alphanumeric())
        })
    };
    word.len() > 1 && (word.contains(['/', '\\']) || word.starts_with('~') || file(word))
}

/// Whether a word is an id: a UUID, or at least eight hexadecimal characters that include a digit.
fn is_id(word: &str) -> bool {
    word.len() >= 8
        && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
        && word.chars().any(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_each_time_is_blanked() {
        for (label, message, expected) in [
            ("Shell cargo test", "exit code 101", "Shell cargo test: exit code 101"),
            ("Shell cargo test", "exit code 1", "Shell cargo test: exit code 1"),
            ("Read src/a.rs", "no such file", "Read <path>: no such file"),
            ("Read /tmp/x y.toml", "no such file", "Read <path> <path>: no such file"),
            (
                "search_issues",
                "request 3f2a91bc failed after 1200 ms",
                "search_issues: request <id> failed after # ms",
            ),
            ("Shell grep \"foo bar\" src", "exit code 2", "Shell grep \"…\" src: exit code 2"),
            (
                "Task",
                "agent d95a19cf-0000-4000-8000-000000000000 (gone)",
                "Task: agent <id> (gone)",
            ),
            ("Shell echo \"", "aborted", "Shell echo \": aborted"),
        ] {
            assert_eq!(fingerprint(label, message, None), expected);
        }
        assert_eq!(fingerprint(&"ü ".repeat(500), "", None).chars().count(), 200);
    }

    #[test]
    fn a_path_with_spaces_is_one_path() {
        let expected = "Read <path>: no such file <path>";
        for (label, message, path) in [
            ("Read src/a.rs", "no such file /w/app/src/a.rs", "/w/app/src/a.rs"),
            (
                "Read my notes/a b.rs",
                "no such file /w/app/my notes/a b.rs",
                "/w/app/my notes/a b.rs",
            ),
            ("Read a b", "no such file /w/app/a b", "/w/app/a b"),
            (
                "Read notes of  b\\c d",
                "no such file C:\\w\\notes of  b\\c d",
                "C:\\w\\notes of  b\\c d",
            ),
            ("Read my not…", "no such file /w/my notes/of/the day", "/w/my notes/of/the day"),
        ] {
            assert_eq!(fingerprint(label, message, Some(path)), expected, "{label}");
        }
    }
}
