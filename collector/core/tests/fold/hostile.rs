//! Plays bodies that someone crafted, or that were damaged on the way, through the whole fold.

use hookspan_core::content::{Field, extract};
use hookspan_core::{Config, Event, EventKind, Hook, normalise};

use crate::support::fold;

fn event(body: &[u8]) -> Event {
    normalise(&Hook { body: body.to_vec(), ..Hook::default() })
}

#[test]
fn utf_16_of_both_orders_is_read() {
    let text =
        "\u{feff}{\"conversation_id\":\"c\",\"hook_event_name\":\"stop\",\"status\":\"completed\"}";
    let units = || text.encode_utf16();
    let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
    for body in [little, big] {
        let event = event(&body);
        assert_eq!((event.name.as_ref(), &*event.conversation), ("stop", "c"));
        assert!(matches!(event.kind, EventKind::Stop(_)));
    }
}

#[test]
fn ten_megabytes_in_one_string_are_read_and_given_back() {
    let prompt = "caf\u{e9} ".repeat(10 << 17);
    let body = format!(
        r#"{{"conversation_id":"c","generation_id":"g","hook_event_name":"beforeSubmitPrompt","prompt":"{prompt}"}}"#
    );
    assert!(matches!(event(body.as_bytes()).kind, EventKind::Prompt(_)));
    let content = extract(Field::Prompt, body.as_bytes()).unwrap();
    assert!(content.text.len() > prompt.len());
}

#[test]
fn wrong_types_everywhere_make_spans_all_the_same() {
    for value in ["[]", "{}", "null", "\"7\"", "7", "true", "1e999", "-0.0", "[[[]]]"] {
        let hooks: Vec<Hook> = (1..)
            .zip(["beforeSubmitPrompt", "preToolUse", "postToolUse", "subagentStart", "stop"])
            .map(|(seq, name)| {
                let body = format!(
                    r#"{{"conversation_id":"c","generation_id":"g","hook_event_name":"{name}","prompt":{value},
                    "tool_name":{value},"tool_input":{value},"tool_output":{value},"duration":{value},"model":{value},
                    "workspace_roots":{value},"subagent_id":{value},"status":{value},"input_tokens":{value}}}"#
                );
                Hook { seq, body: body.into_bytes(), ..Hook::default() }
            })
            .collect();
        let store = fold(Config::default(), &hooks, 1);
        store.check();
        assert_eq!(store.sessions.len(), 1, "{value}");
        assert!(!store.spans.is_empty(), "{value}");
    }
}

#[test]
fn the_ids_of_a_broken_document_are_recovered() {
    let open = "[".repeat(100_000);
    for rest in [r#""prompt":"caf"#, r#""a":NaN}"#, "\"a\":\"\u{1}\"}", r#""a":1}{"b":2}"#] {
        let body = format!(r#"{{"conversation_id":"c","generation_id":"g",{rest}"#);
        let event = event(body.as_bytes());
        let ids = (&*event.conversation, &*event.generation);
        assert_eq!(ids, ("c", "g"), "{rest}");
        assert!(matches!(event.kind, EventKind::Malformed), "{rest}");
    }
    let body = format!(r#"{{"conversation_id":"c","tool_input":{open}"#);
    assert_eq!(&*event(body.as_bytes()).conversation, "c");
}
