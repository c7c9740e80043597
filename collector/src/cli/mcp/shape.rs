//! Shapes an answer: times in a form that a model can read, no hidden characters, and a maximum size.

use hookspan_core::Timestamp;
use serde_json::{Map, Value};

use crate::cli::sessions::rfc3339;
use crate::text;

/// Maximum size of an answer in bytes.
pub(super) const ANSWER_MAX_BYTES: usize = 8 * 1_024;
/// Maximum number of characters of a text in an answer that would be too large. The next smaller limit is tried if
/// necessary.
const TEXT_CHARS: [usize; 3] = [600, 200, 60];
/// Members that contain a point in time. Other members that end in `_us` contain durations.
const MOMENTS: [&str; 7] =
    ["start_us", "last_us", "end_us", "at_us", "first_us", "from_us", "to_us"];
/// The year 1980 in microseconds since 1970. A larger number is a point in time; a smaller one is a duration.
const MOMENT_MIN_US: i64 = 315_532_800_000_000;

/// Writes points in time in ISO form, names hidden characters, and removes what is useless to a model: links of the
/// dashboard and members without a value.
pub(super) fn tidy(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(spelled) = text::spelled(text) {
                *text = spelled;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(map) => {
            let members = std::mem::take(map).into_iter();
            *map = members.filter_map(|(key, value)| member(key, value)).collect::<Map<_, _>>();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn member(key: String, mut value: Value) -> Option<(String, Value)> {
    if key == "url" || value.is_null() {
        return None;
    }
    let moment = value.as_i64().filter(|us| *us >= MOMENT_MIN_US && MOMENTS.contains(&&*key));
    if let Some(us) = moment {
        let at = rfc3339(Timestamp(us.saturating_mul(1_000)));
        return Some((key.trim_end_matches("_us").to_owned(), Value::String(at)));
    }
    tidy(&mut value);
    Some((key, value))
}

/// The size of an answer as it is sent.
pub(super) fn size(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |bytes| bytes.len())
}

/// Cuts texts until the answer is small enough, and says so. An answer that is still too large has too many members.
pub(super) fn shorten(value: &mut Value) {
    for chars in TEXT_CHARS {
        if size(value) <= ANSWER_MAX_BYTES {
            return;
        }
        cut(value, chars);
    }
}

fn cut(value: &mut Value, chars: usize) {
    match value {
        Value::String(text) => {
            if let Some((at, _)) = text.char_indices().nth(chars) {
                let left = text[at..].chars().count();
                text.truncate(at);
                text.push_str(&format!("… [{left} characters more]"));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut(item, chars)),
        Value::Object(map) => map.values_mut().for_each(|item| cut(item, chars)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// How many items to request after `limit` items made an answer of `bytes`.
pub(super) fn fewer(limit: usize, bytes: usize) -> usize {
    let share = limit.saturating_mul(ANSWER_MAX_BYTES) / bytes.max(1);
    share.saturating_sub(share / 8).clamp(1, limit.saturating_sub(1).max(1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn moments_are_iso_times_and_durations_stay_numbers() {
        let mut value = json!({
            "start_us": 1_781_078_400_000_000_i64, "dur_us": 5, "end_us": null, "url": "/x",
            "steps": [{"from_us": 1_781_078_400_000_001_i64, "label": "a\u{e0041}\u{202e}b\nc"}],
        });
        tidy(&mut value);
        let expected = json!({
            "start": "2026-06-10T08:00:00.000000Z", "dur_us": 5,
            "steps": [{"from": "2026-06-10T08:00:00.000001Z", "label": "a[U+E0041][U+202E]b\nc"}],
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let mut value = json!({"prompt": "é".repeat(20_000), "n": 1});
        shorten(&mut value);
        assert!(size(&value) <= ANSWER_MAX_BYTES);
        assert!(value["prompt"].as_str().unwrap().ends_with(" characters more]"), "{value}");
        assert!(fewer(10, ANSWER_MAX_BYTES * 2) <= 5 && fewer(1, usize::MAX) == 1);
        assert_eq!(fewer(2, ANSWER_MAX_BYTES + 1), 1);
    }
}
