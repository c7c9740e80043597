//! Tests what is imported, and with which words everything else is refused.

use super::*;

const HOOK: &str = r#"{"hook_event_name":"stop","conversation_id":"c","status":"completed"}"#;

fn check(text: &str) -> Result<bool, NotHooks> {
    judge(text.as_bytes(), true).map(|form| form.log)
}

#[track_caller]
fn refused(bytes: &[u8], words: &[&str]) {
    let reason = judge(bytes, true).expect_err("it is taken").to_string();
    for word in words {
        assert!(reason.contains(word), "{word}: {reason}");
    }
}

#[test]
fn recordings_and_logs_are_told_apart() {
    for text in
        ["", "\n", HOOK, "{\"a\":1}\n", "{\"cut\": ", "{\n  \"hook_event_name\": \"stop\"\n}\n"]
    {
        assert_eq!(check(text), Ok(false), "{text}");
    }
    assert_eq!(check(&format!("{HOOK}\nno JSON\n{HOOK}\n")), Ok(false));
    for text in [
        format!("[2026-10-05 12:00:01] {HOOK}\n"),
        "[2026-10-05T12:00:01Z] stop\n{\n  \"hook_event_name\": \"stop\"\n}\n---\n".to_owned(),
        format!("Hook execution started\nReceived input: {HOOK}\nParsed command: 'ls'\n"),
    ] {
        assert_eq!(check(&text), Ok(true), "{text}");
    }
}

#[test]
fn what_is_something_else_has_a_sentence_of_its_own() {
    refused(b"PK\x03\x04....", &["ZIP"]);
    refused(b"\x7fELF\x02\x01", &["program"]);
    refused(b"SQLite format 3\0", &["SQLite", "export"]);
    refused(b"\xfd7zXZ\0...", &["xz", "import -"]);
    refused(b"<!doctype HTML><html>", &["HTML"]);
    refused(b"{\"a\": 1}\n\0\0", &["line 2", "binary"]);
    refused(
        b"#!/bin/bash\njson_input=$(cat)\necho \"[$t] $json_input\" >> log\nexit 0\n",
        &["line 1", "#!/bin/bash"],
    );
    refused(b"time,event,command\n1,stop,\"a\"\n2,stop,b\n", &["CSV", "line 1"]);
    refused(b"{\"resourceSpans\":[{\"scopeSpans\":[]}]}\n", &["OTLP"]);
    refused(b"{\"traceEvents\":[{\"ph\":\"X\"}]}", &["Chrome trace"]);
    refused(b"{\"version\":1,\"hooks\":{\"stop\":[{\"command\":\"x\"}]}}", &["hooks.json"]);
    refused(b"{\"role\":\"user\",\"message\":{\"content\":[]}}\n", &["transcript of Cursor"]);
    let claude = br#"{"parentUuid":null,"sessionId":"s","type":"user","message":{},"uuid":"u","timestamp":"2026-01-01T00:00:00Z"}"#;
    refused(claude, &["Claude Code"]);
    refused(
        br#"{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{}}"#,
        &["Codex"],
    );
}

#[test]
fn hostile_text_is_shown_without_what_a_terminal_obeys() {
    let reason = judge(b"\x1b]0;owned\x07 no JSON at all\nmore\n", true).unwrap_err().to_string();
    assert!(!reason.contains('\x1b') && !reason.contains('\x07'), "{reason:?}");
}

#[test]
fn the_beginning_of_one_large_object_is_no_reason_to_refuse() {
    let large =
        format!("{{\"hook_event_name\":\"postToolUse\",\"tool_output\":\"{}", "x".repeat(1 << 20));
    assert!(judge(large.as_bytes(), false).is_ok());
}
