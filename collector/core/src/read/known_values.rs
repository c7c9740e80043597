//! Finds words in Cursor's closed lists that hookspan does not know.

use crate::read::payload::Fields;

/// Fields whose value is one word from a fixed list, by event, with the known words.
const KNOWN: [(&str, &str, &[&str]); 9] = [
    ("stop", "status", &["completed", "aborted", "error", "ok"]),
    ("subagentStop", "status", &["completed", "aborted", "error"]),
    (
        "sessionEnd",
        "reason",
        &["completed", "aborted", "error", "window_close", "user_close", "user_exit", "complete"],
    ),
    ("sessionEnd", "final_status", &["completed", "aborted", "error", "none"]),
    ("postToolUseFailure", "failure_type", &["error", "timeout", "permission_denied"]),
    ("preCompact", "trigger", &["auto", "manual"]),
    ("beforeSubmitPrompt", "composer_mode", MODES),
    ("sessionStart", "composer_mode", MODES),
    ("subagentStart", "composer_mode", MODES),
];
const MODES: &[&str] = &["agent", "ask", "edit", "plan", "debug", "search", "chat", "default"];
/// Maximum length of a word. Longer values are free text and are not reported.
const LONGEST: usize = 32;

/// `field=word` for each unknown word of an event. A value that is not a word is reported as `?`.
pub(crate) fn unseen(event: &str, fields: &Fields<'_>) -> Vec<Box<str>> {
    let lists = KNOWN.iter().filter(|(name, _, _)| *name == event);
    let odd = lists.filter_map(|(_, field, known)| {
        let word = fields.said(field)?;
        (!known.contains(&&*word)).then(|| format!("{event}.{field}={}", plain(&word)).into())
    });
    odd.collect()
}

fn plain(word: &str) -> &str {
    let is_word = |c: char| c.is_ascii_lowercase() || c == '_';
    if word.len() <= LONGEST && word.chars().all(is_word) { word } else { "?" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(event: &str, body: &str, expected: &[&str]) {
        let fields = Fields::parse(body).unwrap();
        let found = unseen(event, &fields);
        assert_eq!(found.iter().map(|name| &**name).collect::<Vec<_>>(), expected, "{body}");
    }

    #[test]
    fn a_word_that_was_never_seen_is_told_and_a_text_is_not() {
        check("stop", r#"{"status":"paused"}"#, &["stop.status=paused"]);
        check("stop", r#"{"status":"completed","reason":"x"}"#, &[]);
        check("stop", r#"{"status":"Told him so"}"#, &["stop.status=?"]);
        check("sessionEnd", r#"{"reason":"crash"}"#, &["sessionEnd.reason=crash"]);
        check("stop", r#"{"status":null}"#, &[]);
    }
}
