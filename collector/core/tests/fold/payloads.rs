//! The meaning of single payloads, in every dialect and with every kind of damage.

use hookspan_core::{Event, EventKind, Hook, Tokens, normalise};

fn event(body: &[u8]) -> Event {
    normalise(&Hook { body: body.to_vec(), ..Hook::default() })
}

fn with_argument(argument: &str, body: &str) -> Event {
    let argument = Some(argument.to_owned());
    normalise(&Hook { argument, body: body.as_bytes().to_vec(), ..Hook::default() })
}

/// The event in short: `name host conversation generation`, and its kind.
fn brief(event: &Event) -> String {
    let kind = format!("{:?}", event.kind);
    let kind = kind.split(['(', ' ', '{']).next().unwrap().to_owned();
    let or = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let (conversation, generation) = (or(&event.conversation), or(&event.generation));
    format!("{} {} {conversation} {generation} {kind}", event.name, event.host.as_str())
}

#[test]
fn every_dialect_is_understood() {
    let cases = [
        (
            r#"{"conversation_id":"c","generation_id":"g","hook_event_name":"stop","status":"completed"}"#,
            "stop cursor c g Stop",
        ),
        (
            r#"{"conversation_id":"c","generation_id":"","session_id":"c","hook_event_name":"sessionStart"}"#,
            "sessionStart cursor c - SessionStart",
        ),
        (
            r#"{"conversation_id":"c","generation_id":"c","hook_event_name":"subagentStart"}"#,
            "subagentStart cursor c - SubagentStart",
        ),
        (
            r#"{"conversation_id":"c","generation_id":"a1ee-0-4yib","hook_event_name":"afterAgentThought"}"#,
            "afterAgentThought cursor c a1ee Thought",
        ),
        (
            r#"{"conversation_id":"c","session_id":"s","generation_id":"g","hook_event_name":"sessionEnd"}"#,
            "sessionEnd cursor c g SessionEnd",
        ),
        (
            r#"{"session_id":"s","cursor_version":"3.7.19","hook_event_name":"sessionEnd"}"#,
            "sessionEnd cursor s - SessionEnd",
        ),
        (
            r#"{"hook_event_name":"workspaceOpen","cursor_version":"3.18.25","workspace_roots":["/a","/b"]}"#,
            "workspaceOpen cursor - - WorkspaceOpen",
        ),
        (
            r#"{"hookEventName":"sessionStart","sessionId":"s-1","conversationId":"c-1"}"#,
            "sessionStart cursor c-1 - SessionStart",
        ),
        (
            r#"{"conversation_id":"c","generation_id":"g","hook_event_name":"somethingNew","payload":{"x":1}}"#,
            "somethingNew cursor c g Unknown",
        ),
        (
            r#"{"conversation_id":"c","hook_event_name":"afterTabFileEdit","file_path":"/a"}"#,
            "afterTabFileEdit cursor ~0f1db7a7918ce362 - TabEdit",
        ),
        (
            r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","transcript_path":"/h/.claude/x"}"#,
            "preToolUse claude-code s - ToolStart",
        ),
        (
            r#"{"session_id":"s","agent_id":"a1","hook_event_name":"PreToolUse","tool_name":"Read"}"#,
            "preToolUse claude-code s/a1 - ToolStart",
        ),
        (
            r#"{"session_id":"s","hook_event_name":"PostCompact","trigger":"manual"}"#,
            "PostCompact unknown s - CompactionEnd",
        ),
        (
            r#"{"session_id":"s","conversation_id":"c","hook_event_name":"PreToolUse","cursor_version":"3.7.19"}"#,
            "preToolUse cursor c - ToolStart",
        ),
        (
            r#"{"session_id":"s","turn_id":"t","hook_event_name":"PostToolUse","tool_response":"x"}"#,
            "postToolUse codex s t ToolEnd",
        ),
        (
            r#"{"session_id":"s","timestamp":"2026-06-26T17:17:38.550Z","hook_event_name":"SessionStart"}"#,
            "sessionStart vscode-copilot s - SessionStart",
        ),
        (
            r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","transcript_path":"C:\\Users\\u\\.gemini\\tmp\\s.json"}"#,
            "preToolUse gemini s - ToolStart",
        ),
        (
            r#"{"session_id":"s","hook_event_name":"Stop","permission_mode":"default","transcript_path":"/h/.factory/sessions/s.jsonl"}"#,
            "stop unknown s - Stop",
        ),
        (
            r#"{"sessionId":"s","timestamp":1774281852263,"cwd":"C:\\x","hook_event_name":"sessionStart","source":"new"}"#,
            "sessionStart copilot s - SessionStart",
        ),
        (
            r#"{"conversationId":"c","modelName":"flash","hook_event_name":"PreInvocation","cwd":"/x"}"#,
            "PreInvocation unknown c - Unknown",
        ),
        (r#"{"session_id":"s","cwd":"/w","hook_event_name":"AfterAgent"}"#, "stop gemini s - Stop"),
        (
            r#"{"session_id":"s","prompt_id":"p","turn_id":"m","hook_event_name":"MessageDisplay"}"#,
            "MessageDisplay claude-code s - Unknown",
        ),
        (
            r#"{"agent_action_name":"post_write_code","trajectory_id":"t","execution_id":"e","tool_info":{}}"#,
            "afterFileEdit windsurf t e FileEdit",
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(brief(&event(body.as_bytes())), expected, "{body}");
    }
}

#[test]
fn a_payload_without_a_name_has_that_of_its_argument() {
    let body = r#"{"prompt":"x","context":{"workspaceFolder":"/w/app"}}"#;
    let first = with_argument("BeforeSubmitPrompt", body);
    let second = with_argument(
        "afterAgentResponse",
        r#"{"response":"y","context":{"workspaceFolder":"/w/app"}}"#,
    );
    assert_eq!(first.name, "beforeSubmitPrompt");
    assert_eq!(second.name, "afterAgentResponse");
    assert_eq!(first.conversation, second.conversation);
    let other = with_argument("stop", r#"{"reason":"complete"}"#);
    assert!(matches!(other.kind, EventKind::SessionEnd(_)));
    assert_ne!(other.conversation, first.conversation);
    let named =
        with_argument("stop", r#"{"hook_event_name":"afterAgentResponse","conversation_id":"c"}"#);
    assert_eq!(named.name, "afterAgentResponse");
}

#[test]
fn an_odd_field_costs_only_itself() {
    let body = r#"{"conversation_id":"c","generation_id":7,"hook_event_name":"stop","status":["x"],
        "loop_count":"3","input_tokens":"12","output_tokens":1e400,"cache_read_tokens":-4}"#;
    let event = event(body.as_bytes());
    let EventKind::Stop(stop) = event.kind else { panic!("{event:?}") };
    assert_eq!((stop.status, stop.loop_count), (None, Some(3)));
    assert_eq!(stop.tokens, Tokens { input: Some(12), ..Tokens::default() });
}

#[test]
fn hostile_bodies_are_malformed_or_read_and_never_more() {
    let deep = "[".repeat(100_000);
    let nested = format!(
        r#"{{"conversation_id":"c","hook_event_name":"preToolUse","tool_name":"MCP:x","tool_input":{deep}{}}}"#,
        "]".repeat(100_000)
    );
    let objects = format!("{}1{}", r#"{"a":"#.repeat(50_000), "}".repeat(50_000));
    let id = "i".repeat(1 << 20);
    let long = format!(r#"{{"conversation_id":"{id}","hook_event_name":"{id}"}}"#);
    let bodies: [(&[u8], bool); 16] = [
        (b"", true),
        (b" \r\n", true),
        (b"[1,2]", true),
        (b"null", true),
        (b"{}", false),
        (b"{\"a\":NaN}", true),
        (b"{\"a\":\"\x01\"}", true),
        (b"{}{}", true),
        (b"\xff\xfe{", true),
        (b"\xff\xff\xff", true),
        (b"{\"hook_event_name\":\"stop\",\"conversation_id\":\"\xff\"}", false),
        (br#"{"hook_event_name":"stop","conversation_id":"a\ud83d"}"#, false),
        (br#"{"hook_event_name":"x","hook_event_name":"stop","conversation_id":"c"}"#, false),
        (nested.as_bytes(), false),
        (objects.as_bytes(), false),
        (long.as_bytes(), false),
    ];
    for (body, malformed) in bodies {
        let event = event(body);
        let start = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!(matches!(event.kind, EventKind::Malformed), malformed, "{start}");
        assert!(event.conversation.len() <= 512 && event.name.len() <= 64, "{start}");
    }
}

#[test]
fn ids_are_recovered_from_a_torn_body() {
    let event = event(br#"{"conversation_id":"c","generation_id":"g-0-4yib","prompt":"caf"#);
    assert_eq!(brief(&event), "malformed cursor c g Malformed");
}

#[test]
fn the_folder_of_the_program_is_not_the_project() {
    // Hooks from the user's own configuration run in Cursor's folder.
    let body = br#"{"hook_event_name":"stop","status":"completed","workspace_roots":["/w/app"]}"#;
    let mut hook = Hook { body: body.to_vec(), ..Hook::default() };
    let plain = normalise(&hook);
    hook.context.cwd = Some("/home/u/.cursor".to_owned());
    let told = normalise(&hook);
    assert_eq!(
        (&told.conversation, told.about.workspace.as_deref()),
        (&plain.conversation, Some("/w/app"))
    );
}

#[test]
fn edits_and_results_have_several_spellings() {
    let edit = event(
        br#"{"hook_event_name":"afterFileEdit","conversation_id":"c","file_path":"a.py",
            "edits":[{"oldString":"a","newString":"b\nc"}]}"#,
    );
    let EventKind::FileEdit(facts) = &edit.kind else { panic!("{edit:?}") };
    let edits = facts.more.as_ref().and_then(|more| more.edits).unwrap();
    assert_eq!((edits.count, edits.added, edits.removed), (1, 2, 1));
    let result = event(
        br#"{"hook_event_name":"afterMCPExecution","conversation_id":"c","tool_name":"search",
            "tool_input":{"q":1},"result_json":{"isError":true}}"#,
    );
    let EventKind::McpEnd(facts) = &result.kind else { panic!("{result:?}") };
    assert!(facts.is_error);
}

#[test]
fn a_known_event_that_says_nothing_is_no_news() {
    let news = |body: &[u8]| match event(body).kind {
        EventKind::Unknown { is_new, .. } => is_new,
        other => panic!("{other:?}"),
    };
    for name in ["post_read_code", "pre_write_code", "post_setup_worktree"] {
        let body = format!(
            r#"{{"agent_action_name":"{name}","trajectory_id":"t","execution_id":"e","tool_info":{{}}}}"#
        );
        assert!(!news(body.as_bytes()), "{name}");
    }
    assert!(!news(br#"{"session_id":"s","prompt_id":"p","hook_event_name":"Notification"}"#));
    assert!(news(br#"{"session_id":"s","prompt_id":"p","hook_event_name":"SomethingElse"}"#));
    assert!(news(br#"{"conversation_id":"c","hook_event_name":"Notification"}"#));
}
