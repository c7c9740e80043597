//! Tests what is found in various texts of hooks.json.

use super::*;

fn audit(text: &str) -> Audit {
    Audit::of(&Document::parse(text).unwrap())
}

/// Checks the remarks about a file that has only this entry, under `stop`.
#[track_caller]
fn check(entry: &str, kind: Kind, column: usize, what: &str) {
    let text = format!("{{\n\"version\": 1,\n\"hooks\": {{ \"stop\": [\n{entry}\n] }} }}");
    let remark = Remark { kind, line: 4, column, what: what.to_owned() };
    assert_eq!(audit(&text).remarks, [remark], "{entry}");
}

#[track_caller]
fn fine(entry: &str) {
    let text = format!("{{\"version\": 1, \"hooks\": {{ \"stop\": [{entry}] }} }}");
    assert_eq!(audit(&text).remarks, [], "{entry}");
}

const VOID: Kind = Kind::Void;

#[test]
fn an_entry_that_fails_cursors_check_voids_the_file() {
    check("7", VOID, 1, "an entry is 7, not an object");
    check("{}", VOID, 1, "an entry has no `command`");
    check(r#"{"command": ""}"#, VOID, 13, "`command` is blank");
    check(r#"{"command": " \t"}"#, VOID, 13, "`command` is blank");
    check(r#"{"command": null}"#, VOID, 13, "`command` is null, not a string");
    let known = "; Cursor knows command and prompt";
    let entry = r#"{"type": "http", "command": "a"}"#;
    check(entry, VOID, 10, &format!("`type` is \"http\"{known}"));
    check(r#"{"type": null, "command": "a"}"#, VOID, 10, &format!("`type` is null{known}"));
    check(r#"{"type": "prompt"}"#, VOID, 1, "an entry has no `prompt`");
    check(r#"{"type": "prompt", "prompt": " "}"#, VOID, 30, "`prompt` is blank");
}

#[test]
fn an_option_that_fails_cursors_check_voids_the_file() {
    let seconds = "not a positive number of seconds";
    check(r#"{"command": "a", "timeout": 0}"#, VOID, 29, &format!("`timeout` is 0, {seconds}"));
    check(r#"{"command": "a", "timeout": -1}"#, VOID, 29, &format!("`timeout` is -1, {seconds}"));
    let quoted = format!("`timeout` is \"30\", {seconds}");
    check(r#"{"command": "a", "timeout": "30"}"#, VOID, 29, &quoted);
    check(
        r#"{"command": "a", "timeout": null}"#,
        VOID,
        29,
        &format!("`timeout` is null, {seconds}"),
    );
    let expression = "not a regular expression";
    check(r#"{"command": "a", "matcher": 7}"#, VOID, 29, &format!("`matcher` is 7, {expression}"));
    let open = format!("`matcher` is \"Shell(\", {expression}");
    check(r#"{"command": "a", "matcher": "Shell("}"#, VOID, 29, &open);
    let limit = "`loop_limit` is 0, not a positive whole number or null";
    check(r#"{"command": "a", "loop_limit": 0}"#, VOID, 32, limit);
    let closed = "`failClosed` is \"yes\", not true or false";
    check(r#"{"command": "a", "failClosed": "yes"}"#, VOID, 32, closed);
}

#[test]
fn what_cursor_takes_is_no_remark() {
    fine(r#"{"command": "a"}"#);
    fine(r#"{"type": "command", "command": "a", "timeout": 0.5, "loop_limit": null}"#);
    fine(r#"{"type": "prompt", "prompt": "ok?", "failClosed": true}"#);
    fine(r#"{"command": "a", "own": {"key": [1]}, "loop_limit": 3}"#);
    // JavaScript accepts these patterns, although other languages do not.
    for matcher in
        ["", "*", "Shell|Read", "^(?!x)a", r"(a)\\1", "a{", "{", "[[]", "[]", "[^]", r"\\_"]
    {
        fine(&format!(r#"{{"command": "a", "matcher": "{matcher}"}}"#));
    }
}

#[test]
fn a_version_is_a_positive_whole_number() {
    let remarks =
        |version: &str| audit(&format!("{{\"version\": {version}, \"hooks\": {{}} }}")).remarks;
    for version in ["2", "3.0", "2e0"] {
        let what = format!("\"version\" is {version}");
        let kinds: Vec<_> = remarks(version).into_iter().map(|one| (one.kind, one.what)).collect();
        assert_eq!(kinds, [(Kind::NewerVersion, what)]);
    }
    for version in ["1", "1.0", "1e0", "10E-1"] {
        assert_eq!(remarks(version), [], "{version}");
    }
    for version in ["\"1\"", "null", "0", "1.5", "-1", "[1]"] {
        let what = format!("\"version\" is {version}");
        let remark = Remark { kind: Kind::Version, line: 1, column: 13, what };
        assert_eq!(remarks(version), [remark]);
    }
    let missing = audit("\n {\"hooks\": {}}").remarks;
    assert_eq!((missing[0].line, missing[0].column), (2, 2));
    assert_eq!(missing[0].what, "\"version\" is missing");
}

#[test]
fn an_event_that_nobody_knows_is_named() {
    let found = audit("{\"version\": 1, \"hooks\": {\n \"notification\": [] } }").remarks;
    assert_eq!((found[0].kind, found[0].line, found[0].column), (Kind::UnknownEvent, 2, 2));
    assert_eq!(found[0].what, "the event `notification` is not known");
}

#[test]
fn the_command_line_of_cursor_reads_comments_into_texts() {
    let cli = Kind::VoidForCli;
    let url = r#"{"command": "curl -s https://a.example.invalid/x -d @-"}"#;
    check(url, cli, 13, "a text contains `//`");
    check(r#"{"command": "ls /a/*.b /*/c"}"#, cli, 13, "a text contains `/*`");
    fine(r#"{"command": "ls /a/*.b"}"#);
    check(r#"{"command": "a"},"#, cli, 17, "a comma without a value after it");
    check(r#"{"command": "a",}"#, cli, 16, "a comma without a value after it");
    // Both accept comments outside of strings.
    fine("// mine\n{\"command\": \"a\"} /* too */");
}

#[cfg(unix)]
#[test]
fn entries_of_ours_are_known_in_any_dress() {
    #[track_caller]
    fn shape(command: &str, expected: Option<&str>) {
        let entry =
            serde_json::json!({ "version": 1, "hooks": { "stop": [{ "command": command }] } });
        let found = audit(&entry.to_string());
        let name = found.ours.first().map(|ours| match ours.shape {
            Shape::Own(_) => "own",
            Shape::Other => "other",
            Shape::OtherSystem => "other system",
        });
        assert_eq!(name, expected, "{command}");
    }
    shape("exec /s/hookspan-shim stop", Some("own"));
    shape("exec /s/hookspan-shim --dir '/a b' stop", Some("own"));
    shape("HOOKSPAN_DIR=/x exec /s/hookspan-shim stop", Some("other"));
    shape("env HOOKSPAN_DIR=/x /s/hookspan-shim stop", Some("other"));
    shape("sh -c 'exec /s/hookspan-shim stop'", Some("other"));
    shape("bash -lc \"/s/hookspan-shim stop\"", Some("other"));
    shape("/s/hookspan-shim stop; true", Some("other"));
    shape("/s/hookspan-shim stop || true", Some("other"));
    shape(".cursor/hookspan-shim ; id > /tmp/x", Some("other"));
    shape("\"$HOME\"/bin/hookspan-shim stop", Some("other"));
    shape("(/s/hookspan-shim stop)", Some("other"));
    shape(r"C:\Users\kim\AppData\Local\hookspan\bin\hookspan-shim.exe stop", Some("other system"));
    shape(r"& 'C:\a b\Hookspan-Shim.exe' stop", Some("other system"));
    shape("./mine.sh", None);
    shape("/x/my-hookspan-shim stop", None);
    shape("/x/hookspan-shim-wrapper stop", None);
    shape("/hookspan-shim/run stop", None);
    shape("/x/hookspan-shim.sh stop", None);
}

#[cfg(unix)]
#[test]
fn a_group_as_claude_has_them_voids_the_file_and_its_entries_are_seen() {
    let text = r#"{ "version": 1, "hooks": { "stop": [
      { "hooks": [ { "type": "command", "command": "exec /s/hookspan-shim --dir /s stop" } ] }
    ] } }"#;
    let found = audit(text);
    assert_eq!(found.remarks.len(), 1, "{found:#?}");
    assert_eq!((found.remarks[0].kind, found.remarks[0].line), (Kind::Void, 2));
    assert!(found.ours[0].grouped && found.ours[0].event == "stop", "{found:#?}");
}

#[cfg(unix)]
#[test]
fn options_that_change_what_our_entry_does_are_named() {
    let ours = |more: &str| format!(r#"{{"command": "/s/hookspan-shim stop"{more}}}"#);
    let at = ours("").len() + 2;
    let short = "the `timeout` is shorter than the hook program may take (5 s)";
    check(&ours(r#", "timeout": 2"#), Kind::Altered, at, short);
    let long = "the `timeout` is longer than an hour; Cursor counts seconds";
    check(&ours(r#", "timeout": 10000"#), Kind::Altered, at, long);
    let matcher = "the `matcher` keeps Cursor from running it for every event";
    check(&ours(r#", "matcher": "Shell""#), Kind::Altered, at, matcher);
    let closed = "`failClosed` lets a hook that fails stop Cursor's agent";
    check(&ours(r#", "failClosed": true"#), Kind::Altered, at, closed);
    let elsewhere = "the command names preToolUse, but the entry is under stop";
    check(r#"{"command": "/s/hookspan-shim preToolUse"}"#, Kind::Altered, 1, elsewhere);
    fine(&ours(r#", "timeout": 10, "matcher": "*", "failClosed": false"#));
}
