//! Tests the limits of values, spans and requests.

use super::*;

#[test]
fn long_values_are_cut_and_counted() {
    let mut span = tool();
    span.name = "n".repeat(500);
    span.attributes = vec![
        attribute(
            "cursor.model.params",
            text(&json!(["x".repeat(9_000)]).to_string()),
            Class::Plain,
        ),
        attribute("long", text(&"é".repeat(4_000)), Class::Plain),
    ];
    let span = encoded(&encoding(ContentPolicy::Metadata), &span);
    assert_eq!(span.name.chars().count(), NAME_MAX_CHARS);
    has(&span, "hookspan.truncated=2");
    for line in lines(&span) {
        assert!(line.len() < ATTRIBUTE_MAX_BYTES + 64, "{}", line.len());
        if let Some(json) = line.strip_prefix("cursor.model.params=") {
            serde_json::from_str::<serde_json::Value>(json).expect("still JSON");
        }
    }
}

#[test]
fn a_span_of_any_size_fits_and_its_json_stays_json() {
    let huge = |part: &ContentRef| {
        let text = "\u{1f980}\"\\".repeat(200_000);
        Some(match part.hook {
            7 => Content { text: json!({"command": text}).to_string(), json: true },
            _ => Content { text, json: false },
        })
    };
    let span = message(&encoding(ContentPolicy::Full).bytes(&tool(), &mut |part| huge(part)));
    assert!(span.encoded_len() <= SPAN_MAX_BYTES, "{}", span.encoded_len());
    has(&span, "hookspan.truncated=2");
    let arguments = lines(&span)
        .into_iter()
        .find_map(|line| line.strip_prefix("gen_ai.tool.call.arguments=").map(str::to_owned))
        .expect("arguments");
    assert!(arguments.len() > 10_000, "the room is used: {}", arguments.len());
    serde_json::from_str::<serde_json::Value>(&arguments).expect("still JSON");
}

#[test]
fn attributes_events_and_links_have_their_limits() {
    let mut span = tool();
    span.attributes = (0..200)
        .map(|i| Attribute {
            key: Cow::Owned(format!("k{i:03}")),
            value: Value::Int(i),
            class: Class::Plain,
        })
        .collect();
    span.events = vec![span.events[0].clone(); 100];
    span.links = vec![span.links[0].clone(); 200];
    let span = encoded(&encoding(ContentPolicy::Metadata), &span);
    assert_eq!((span.attributes.len(), span.events.len(), span.links.len()), (96, 64, 128));
    assert!(span.dropped_attributes_count > 100);
    assert_eq!((span.dropped_events_count, span.dropped_links_count), (36, 72));
}

#[test]
fn a_request_stops_before_its_limit_but_takes_one_span_of_any_size() {
    let encoding = encoding(ContentPolicy::Full);
    let mut request = Request::new(&encoding);
    let bytes = encoding.bytes(&tool(), &mut contents);
    assert!(request.push(&tool(), &bytes, 1));
    let limit = 1_024 + 2 * (bytes.len() + 6);
    assert!(request.push(&tool(), &bytes, limit));
    assert!(!request.push(&tool(), &bytes, limit));
    assert_eq!(request.len(), 2);
    assert!(request.finish().len() <= limit);
}
