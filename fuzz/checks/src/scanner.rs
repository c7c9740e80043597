//! The byte scan that finds a hook's name, against a real parser.

use std::collections::BTreeMap;

use hookspan_shim::event::Event;
use hookspan_shim::reply::Verdict;
use hookspan_shim::scan::{Name, Scan, Scanner};
use serde_json::value::RawValue;

/// The first byte says in how large pieces the rest, a hook's body, comes in.
pub fn scanner(data: &[u8]) {
    let Some((step, body)) = data.split_first() else { return };
    let whole = Scan::of(body);
    assert_eq!(whole, in_pieces(body, usize::from(*step) + 1), "pieces of {step} + 1");
    for argument in [&b"preToolUse"[..], b"", body] {
        let reply = Verdict::of(whole, argument, false).reply();
        assert!(reply.is_empty() || reply.ends_with(b"}\n"));
    }
    // A key with an escape is "another key" to the scan and may be the name to a parser: that one is left alone.
    if !body.contains(&b'\\') {
        compare(whole, body);
    }
}

fn in_pieces(body: &[u8], step: usize) -> Scan {
    let mut scanner = Scanner::default();
    for end in (0..body.len()).step_by(step).chain([body.len()]) {
        scanner.advance(body.get(..end).unwrap_or_default());
    }
    scanner.found
}

/// What a parser says of a whole document, the scan must say too.
fn compare(found: Scan, body: &[u8]) {
    let Ok(document) = serde_json::from_slice::<&RawValue>(body) else { return };
    let opens = document.get().as_bytes().first().copied().unwrap_or_default();
    assert_eq!(found.complete, matches!(opens, b'{' | b'[' | b'"'), "complete");
    let Ok(fields) = serde_json::from_slice::<BTreeMap<&str, &RawValue>>(body) else {
        assert_eq!(found, Scan { complete: found.complete, ..Scan::default() });
        return;
    };
    let cursor = ["conversation_id", "conversationId", "cursor_version"];
    assert_eq!(found.cursor, cursor.iter().any(|key| fields.contains_key(key)), "host");
    let names = ["hook_event_name", "hookEventName"].map(|key| fields.get(key));
    // With one spelling only, the last occurrence counts for both; with two, their order does.
    let ([Some(value), None] | [None, Some(value)]) = names else { return };
    if let Ok(name) = serde_json::from_str::<&str>(value.get()) {
        let expected = Event::named(name.as_bytes()).map_or(Name::Unknown, Name::Known);
        assert_eq!(found.name, Some(expected), "name");
    }
}
