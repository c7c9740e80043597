//! Keeps JSON documents valid when secrets in them are replaced.
//!
//! Matches stay within strings, so a document is rarely broken. If a document is broken, each of its strings is
//! redacted on its own.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::WITHHELD;

/// Whether `before` was a JSON document and `after` is none.
pub(crate) fn is_broken(before: &str, after: &str) -> bool {
    let looks = before.trim_start().starts_with(['{', '[', '"']);
    looks && is_document(before) && !is_document(after)
}

fn is_document(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Redacts each string of the document `text`.
pub(crate) fn by_string(
    text: &str,
    redact: impl Fn(&str) -> (String, usize),
) -> (Cow<'_, str>, usize) {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else {
        return (Cow::Borrowed(WITHHELD), 1);
    };
    let count = walk(&mut value, &mut |text| {
        let (redacted, count) = redact(text);
        *text = redacted;
        count
    });
    (Cow::Owned(value.to_string()), count.max(1))
}

/// Applies `redact` to every string of `value`. A document has at most 128 levels.
pub(crate) fn walk(value: &mut Value, redact: &mut impl FnMut(&mut String) -> usize) -> usize {
    match value {
        Value::String(text) => redact(text),
        Value::Array(items) => items.iter_mut().map(|item| walk(item, redact)).sum(),
        Value::Object(members) => {
            let mut count = 0;
            let all = std::mem::take(members);
            for (mut name, mut member) in all {
                count += redact(&mut name) + member_of(&name, &mut member, redact);
                members.insert(name, member);
            }
            count
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// A member's text is redacted together with the member's name: `"password": "x"` is a secret, `"x"` alone is not.
fn member_of(
    name: &str,
    member: &mut Value,
    redact: &mut impl FnMut(&mut String) -> usize,
) -> usize {
    let Value::String(text) = member else { return walk(member, redact) };
    let count = redact(text);
    if count > 0 || name.len() > 128 {
        return count;
    }
    let lead = format!("{{\"{name}\":");
    let mut pair = format!("{lead}{}}}", Value::from(text.as_str()));
    if redact(&mut pair) == 0 {
        return 0;
    }
    let inside = pair.strip_prefix(&lead).and_then(|rest| rest.strip_suffix('}'));
    let replaced = inside.and_then(|inside| serde_json::from_str::<String>(inside).ok());
    *text = replaced.unwrap_or_else(|| WITHHELD.to_owned());
    1
}
