//! Cuts values to a backend's limits without making them invalid.
//!
//! Backends cut values silently, in the middle of a JSON document or of a character. So hookspan cuts them visibly:
//! plain text ends at a character boundary with `…[+N bytes]`, and JSON stays a valid document.

use serde_json::Value as Json;

/// Minimum length of a shortened text in JSON. A shorter one would consist of the marker alone.
const MIN_LEAF_BYTES: usize = 32;

/// Cuts plain text to `max` bytes, marker included. Returns whether it was cut.
pub(super) fn cut_text(text: &mut String, max: usize) -> bool {
    if text.len() <= max {
        return false;
    }
    // The marker's length depends on where the text is cut, so its maximum length is reserved.
    let reserve = marker(text.len()).len();
    let mut keep = max.saturating_sub(reserve);
    while !text.is_char_boundary(keep) {
        keep -= 1;
    }
    let dropped = text.len() - keep;
    text.truncate(keep);
    text.push_str(&marker(dropped));
    true
}

/// Cuts a JSON document to `max` bytes. Text that is not JSON becomes a JSON string. Returns whether it was cut.
pub(super) fn cut_json(text: &mut String, max: usize) -> bool {
    if text.len() <= max {
        return false;
    }
    *text = match serde_json::from_str::<Json>(text) {
        Ok(document) => shorten(document, max),
        Err(_) => as_string(text, max),
    };
    true
}

fn marker(bytes: usize) -> String {
    format!("…[+{bytes} bytes]")
}

/// Shortens texts in the document, the longest first, to one common length. If that is not enough, halves arrays, and
/// finally gives up the structure.
fn shorten(mut document: Json, max: usize) -> String {
    let longest = longest_leaf(&document);
    if longest > MIN_LEAF_BYTES {
        let (mut low, mut high) = (MIN_LEAF_BYTES, longest);
        let mut best = None;
        while low <= high {
            let middle = low.midpoint(high);
            let candidate = capped(&document, middle).to_string();
            if candidate.len() <= max {
                best = Some(candidate);
                low = middle + 1;
            } else {
                high = middle - 1;
            }
        }
        if let Some(best) = best {
            return best;
        }
        document = capped(&document, MIN_LEAF_BYTES);
    }
    while halve_largest_array(&mut document) {
        let candidate = document.to_string();
        if candidate.len() <= max {
            return candidate;
        }
    }
    as_string(&document.to_string(), max)
}

fn longest_leaf(value: &Json) -> usize {
    match value {
        Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(longest_leaf).max().unwrap_or(0),
        Json::Object(map) => map.values().map(longest_leaf).max().unwrap_or(0),
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
    }
}

fn capped(value: &Json, cap: usize) -> Json {
    match value {
        Json::String(text) => {
            let mut text = text.clone();
            cut_text(&mut text, cap);
            Json::String(text)
        }
        Json::Array(items) => Json::Array(items.iter().map(|item| capped(item, cap)).collect()),
        Json::Object(map) => {
            Json::Object(map.iter().map(|(key, item)| (key.clone(), capped(item, cap))).collect())
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => value.clone(),
    }
}

/// Drops the second half of the array with the most items (at least one item). Returns false if no array has any item.
fn halve_largest_array(document: &mut Json) -> bool {
    fn largest(value: &Json) -> usize {
        match value {
            Json::Array(items) => items.iter().map(largest).max().unwrap_or(0).max(items.len()),
            Json::Object(map) => map.values().map(largest).max().unwrap_or(0),
            _ => 0,
        }
    }
    fn halve(value: &mut Json, size: usize) -> bool {
        match value {
            Json::Array(items) if items.len() == size => {
                items.truncate(size / 2);
                true
            }
            Json::Array(items) => items.iter_mut().any(|item| halve(item, size)),
            Json::Object(map) => map.values_mut().any(|item| halve(item, size)),
            _ => false,
        }
    }
    match largest(document) {
        0 => false,
        size => halve(document, size),
    }
}

/// A JSON string of at most `max` bytes. Escapes may multiply the length, so the text is shortened until the document
/// fits.
fn as_string(text: &str, max: usize) -> String {
    let mut budget = max.saturating_sub(2);
    loop {
        let mut part = text.to_owned();
        cut_text(&mut part, budget);
        let document = Json::String(part).to_string();
        if document.len() <= max || budget <= MIN_LEAF_BYTES {
            return document;
        }
        budget /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn text(input: &str, max: usize, expected: &str) {
        let mut text = input.to_owned();
        let cut = cut_text(&mut text, max);
        assert_eq!(text, expected);
        assert_eq!(cut, input != expected);
    }

    #[test]
    fn text_that_fits_stays() {
        text("naïve", 6, "naïve");
    }

    #[test]
    fn text_ends_on_a_character_with_a_count() {
        text(&"x".repeat(100), 30, &format!("{}…[+85 bytes]", "x".repeat(15)));
        text(&"é".repeat(50), 29, &format!("{}…[+86 bytes]", "é".repeat(7)));
    }

    #[test]
    fn json_stays_json_whatever_the_budget() {
        let document = serde_json::json!([{
            "role": "user",
            "parts": [{"type": "text", "content": "\"\\\n".repeat(3_000)}],
            "many": (0..400).collect::<Vec<_>>(),
            "other": "short",
        }]);
        for max in [8_000, 2_048, 512, 200, 64] {
            let mut text = document.to_string();
            assert!(cut_json(&mut text, max));
            assert!(text.len() <= max, "{} > {max}", text.len());
            serde_json::from_str::<Json>(&text).expect("still a document");
        }
    }

    #[test]
    fn the_longest_string_gives_way_first() {
        let mut text =
            serde_json::json!({"long": "a".repeat(5_000), "short": "b".repeat(50)}).to_string();
        assert!(cut_json(&mut text, 1_000));
        let document: Json = serde_json::from_str(&text).expect("a document");
        assert_eq!(document["short"], "b".repeat(50));
        assert!(text.len() > 900, "the budget is used: {}", text.len());
    }

    #[test]
    fn what_is_no_json_becomes_a_json_string() {
        let mut text = format!("{{broken {}", "x".repeat(500));
        assert!(cut_json(&mut text, 100));
        assert!(serde_json::from_str::<Json>(&text).expect("a document").is_string());
    }
}
