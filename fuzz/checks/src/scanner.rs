//! Compares the byte scan that finds a hook's name with a real parser.

use std::collections::BTreeMap;

use hookspan_shim::event::Event;
use hookspan_shim::reply::Verdict;
use hookspan_shim::scan::{Name, Scan, Scanner};
use serde_json::value::RawValue;

/// Checks the scanner on one hook. The first byte of `data` is the size of the pieces in which the body arrives. The
/// rest is the body.
pub fn scanner(data: &[u8]) {
    let Some((step, body)) = data.split_first() else { return };
    let whole = Scan::of(body);
    assert_eq!(whole, in_pieces(body, usize::from(*step) + 1), "pieces of {step} + 1");
    for argument in [&b"preToolUse"[..], b"", body] {
        let reply = Verdict::of(whole, argument, false).reply();
        assert!(reply.is_empty() || reply.ends_with(b"}\n"));
    }
    // A parser may read a key with an escape as the name, whereas the scan takes it for another key. Such bodies are
    // not compared.
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

/// For a complete document, the scan must find what a parser finds.
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
    // If the name occurs in one spelling, both use the last occurrence. If it occurs in two spellings, their order
    // matters, and the body is not compared.
    let ([Some(value), None] | [None, Some(value)]) = names else { return };
    if let Ok(name) = serde_json::from_str::<&str>(value.get()) {
        let expected = Event::named(name.as_bytes()).map_or(Name::Unknown, Name::Known);
        assert_eq!(found.name, Some(expected), "name");
    }
}
