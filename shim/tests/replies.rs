use crate::support::{ALLOW, CONTINUE, Folder, NEUTRAL, check, command, cursor_body, feed, run};

#[test]
fn every_hook_of_cursor_is_answered_by_its_body_and_by_its_argument() {
    for (name, answer) in [
        ("preToolUse", ALLOW),
        ("beforeShellExecution", ALLOW),
        ("beforeMCPExecution", ALLOW),
        ("subagentStart", ALLOW),
        ("beforeReadFile", ALLOW),
        ("beforeTabFileRead", ALLOW),
        ("beforeSubmitPrompt", CONTINUE),
        ("UserPromptSubmit", CONTINUE),
        ("sessionStart", NEUTRAL),
        ("sessionEnd", NEUTRAL),
        ("postToolUse", NEUTRAL),
        ("postToolUseFailure", NEUTRAL),
        ("afterShellExecution", NEUTRAL),
        ("afterMCPExecution", NEUTRAL),
        ("afterFileEdit", NEUTRAL),
        ("afterAgentResponse", NEUTRAL),
        ("afterAgentThought", NEUTRAL),
        ("stop", NEUTRAL),
        ("subagentStop", NEUTRAL),
        ("preCompact", NEUTRAL),
        ("afterTabFileEdit", NEUTRAL),
        ("workspaceOpen", NEUTRAL),
        ("notYetInvented", NEUTRAL),
    ] {
        let folder = Folder::new();
        check(&run(&folder, "unrelated", &cursor_body(name)), answer);
        check(&run(&folder, name, b""), answer);
        check(&run(&folder, name, b"{\"broken\": "), answer);
        let records = folder.records();
        assert_eq!(records.len(), 3);
        assert_eq!(records[0].body, cursor_body(name));
        assert_eq!(records[0].texts[0].1, "unrelated");
        assert_eq!(records[1].texts[0].1, name);
        assert_eq!(records[0].stamp.event, records[1].stamp.event);
        assert_eq!(records[0].stamp.host, 1);
    }
}

#[test]
fn another_host_reads_nothing_and_is_kept_all_the_same() {
    let folder = Folder::new();
    let body = br#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash"}"#;
    check(&run(&folder, "preToolUse", body), "");
    let record = folder.record();
    assert_eq!((record.body.as_slice(), record.stamp.host), (&body[..], 2));
}

#[test]
fn cursor_in_the_environment_makes_it_cursor() {
    let folder = Folder::new();
    let mut command = command(&folder, "preToolUse");
    command.env("CURSOR_VERSION", "3.18.25").env("CURSOR_USER_EMAIL", "somebody@example.org");
    let body = br#"{"session_id":"s","hook_event_name":"PreToolUse"}"#;
    check(&feed(command, body), ALLOW);
    let texts = folder.record().texts;
    assert_eq!(texts, [(1, "preToolUse".into()), (2, "3.18.25".into())], "and no address");
}

#[test]
fn a_name_behind_the_first_frame_is_left_to_the_argument() {
    let folder = Folder::new();
    let body = format!(
        r#"{{"conversation_id":"c","content":"{}","hook_event_name":"preToolUse"}}"#,
        "x".repeat(100_000)
    );
    check(&run(&folder, "preToolUse", body.as_bytes()), ALLOW);
    check(&run(&folder, "stop", body.as_bytes()), NEUTRAL);
}

#[test]
fn any_command_line_is_answered() {
    let folder = Folder::new();
    let long = "x".repeat(100_000);
    for arguments in [
        &[][..],
        &["--dir"],
        &["--help"],
        &["--version", "stop"],
        &["--dir", "/nowhere/at/all", "--dir", "stop"],
        &["--dir", "", "stop"],
        &[long.as_str()],
        &["--dir", long.as_str(), "stop"],
    ] {
        let mut command = std::process::Command::new(crate::support::program());
        command.args(arguments).env_clear().env("HOOKSPAN_DIR", folder.path());
        command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
        command.stderr(std::process::Stdio::piped());
        check(&feed(command, b""), NEUTRAL);
    }
    let arguments: Vec<usize> =
        folder.records().iter().map(|r| r.texts.first().map_or(0, |t| t.1.len())).collect();
    assert!(arguments.contains(&1_024), "a long name is cut: {arguments:?}");
}

#[test]
fn everything_known_about_the_run_is_kept() {
    let folder = Folder::new();
    let mut command = command(&folder, "stop");
    command.env("CURSOR_PROJECT_DIR", "/p").env("CURSOR_TRANSCRIPT_PATH", "/t");
    command.env("CURSOR_CODE_REMOTE", "true").env("PWD", "/w").env("PWDX", "no");
    check(&feed(command, &cursor_body("stop")), NEUTRAL);
    let record = folder.record();
    let expected = [(1, "stop"), (3, "/p"), (4, "/t"), (5, "true"), (6, "/w")];
    assert_eq!(record.texts, expected.map(|(tag, text)| (tag, text.to_owned())));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let age = now.as_nanos() - u128::from(record.stamp.wall_ns);
    assert!(age < 60_000_000_000, "{age} ns");
    assert!(record.stamp.boottime_ns > 0);
}
