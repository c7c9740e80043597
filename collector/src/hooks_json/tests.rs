//! Tests the promises of `install` and `uninstall` with written and with random documents.

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::document::Document;
use super::edit::{Made, install, uninstall};
use super::{Entry, Events};

fn entry() -> Entry {
    Entry::new(Path::new("/s/bin/hookspan-shim"), None, true).unwrap()
}

fn installed(text: &str, events: &[&str]) -> (String, Made) {
    let mut made = Made::default();
    let text = install(text, &entry(), events, &mut made).unwrap();
    (text, made)
}

#[track_caller]
fn check(before: &str, expected: &str) {
    let (after, made) = installed(before, &["stop"]);
    assert_eq!(after, expected);
    let (again, _) = installed(&after, &["stop"]);
    assert_eq!(again, expected, "a second install changes nothing");
    assert_eq!(uninstall(&after, Some(&made), before.is_empty()).unwrap(), before);
}

const OURS: &str = r#"{ "command": "exec /s/bin/hookspan-shim stop", "timeout": 10 }"#;

#[test]
fn a_missing_file_becomes_a_whole_one() {
    let expected = format!(
        "{{\n  \"version\": 1,\n  \"hooks\": {{\n    \"stop\": [\n      {OURS}\n    ]\n  }}\n}}\n"
    );
    check("", &expected);
}

#[test]
fn an_entry_stands_beside_the_others_in_their_style() {
    check(
        "{\n\t\"version\": 1,\n\t\"hooks\": {\n\t\t\"stop\": [\n\t\t\t{ \"command\": \"a\" } // mine\n\t\t]\n\t}\n}",
        &format!(
            "{{\n\t\"version\": 1,\n\t\"hooks\": {{\n\t\t\"stop\": [\n\t\t\t{{ \"command\": \"a\" }}, // mine\n\t\t\t{OURS}\n\t\t]\n\t}}\n}}"
        ),
    );
}

#[test]
fn trailing_commas_stay_a_habit() {
    check(
        "{\r\n  \"hooks\": {\r\n    \"stop\": [\r\n      {},\r\n    ],\r\n  },\r\n  \"version\": 1,\r\n}\r\n",
        &format!(
            "{{\r\n  \"hooks\": {{\r\n    \"stop\": [\r\n      {{}},\r\n      {OURS},\r\n    ],\r\n  }},\r\n  \"version\": 1,\r\n}}\r\n"
        ),
    );
}

#[test]
fn a_file_on_one_line_stays_on_one_line() {
    check(
        r#"{"version":1,"hooks":{}}"#,
        &format!(r#"{{"version":1,"hooks":{{"stop": [{OURS}]}}}}"#),
    );
    check(
        r#"{"version":1,"hooks":{"stop":[{"command":"a"}]}}"#,
        &format!(r#"{{"version":1,"hooks":{{"stop":[{{"command":"a"}}, {OURS}]}}}}"#),
    );
}

#[test]
fn comments_stay_where_they_are() {
    check(
        "// top\n{\n  // nothing yet\n}\n",
        &format!(
            "// top\n{{\n  // nothing yet\n  \"version\": 1,\n  \"hooks\": {{\n    \"stop\": [\n      {OURS}\n    ]\n  }}\n}}\n"
        ),
    );
    check(
        "// only this",
        &format!(
            "// only this\n{{\n  \"version\": 1,\n  \"hooks\": {{\n    \"stop\": [\n      {OURS}\n    ]\n  }}\n}}\n"
        ),
    );
}

#[test]
fn a_moved_program_and_duplicates_are_put_right_in_place() {
    let text = r#"{
  "version": 1,
  "hooks": {
    "stop": [
      { "command": "/old/hookspan-shim stop", "timeout": 10 },
      { "command": "mine" },
      { "command": "/older/hookspan-shim stop" }
    ],
    "preCompact": [{ "command": "/old/hookspan-shim preCompact" }]
  }
}"#;
    let expected = format!(
        r#"{{
  "version": 1,
  "hooks": {{
    "stop": [
      {OURS},
      {{ "command": "mine" }}
    ],
    "preCompact": []
  }}
}}"#
    );
    assert_eq!(installed(text, &["stop"]).0, expected);
}

#[test]
fn what_a_person_added_in_between_stays() {
    let before = "{\n  \"version\": 1,\n  \"hooks\": {}\n}\n";
    let (after, made) = installed(before, &Events::Standard.names());
    let edited = after.replace(
        "\"exec /s/bin/hookspan-shim stop\", \"timeout\": 10 }",
        "\"exec /s/bin/hookspan-shim stop\", \"timeout\": 10 },\n      // mine\n      { \"command\": \"mine\" }",
    );
    assert_ne!(edited, after);
    assert_eq!(
        uninstall(&edited, Some(&made), false).unwrap(),
        "{\n  \"version\": 1,\n  \"hooks\": {\n    \"stop\": [\n      // mine\n      { \"command\": \"mine\" }\n    ]\n  }\n}\n"
    );
}

#[test]
fn without_a_record_only_what_is_surely_ours_goes() {
    let (after, _) = installed("", &["stop"]);
    assert_eq!(
        uninstall(&after, None, false).unwrap(),
        "{\n  \"version\": 1,\n  \"hooks\": {\n  }\n}\n"
    );
}

#[test]
fn a_file_of_ours_keeps_its_version_while_others_need_it() {
    let (after, made) = installed("", &["stop"]);
    let edited =
        after.replace("    ]\n", "    ],\n    \"sessionEnd\": [{ \"command\": \"mine\" }]\n");
    let left = uninstall(&edited, Some(&made), true).unwrap();
    assert_eq!(
        left,
        "{\n  \"version\": 1,\n  \"hooks\": {\n    \"sessionEnd\": [{ \"command\": \"mine\" }]\n  }\n}\n"
    );
}

#[test]
fn a_smaller_preset_takes_back_what_the_larger_one_made() {
    let before = "{\n  \"hooks\": {\n    \"preToolUse\": [ ]\n  }\n}";
    let mut made = Made::default();
    let all = install(before, &entry(), &Events::All.names(), &mut made).unwrap();
    let small = install(&all, &entry(), &Events::Minimal.names(), &mut made).unwrap();
    assert_eq!(small, installed(before, &Events::Minimal.names()).0);
    assert_eq!(uninstall(&small, Some(&made), false).unwrap(), before);
}

#[test]
fn a_broken_file_is_refused_with_its_place() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = install(text, &entry(), &["stop"], &mut Made::default()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    check("{\n  \"hooks\": {\n", "2:12: unterminated object");
    check("{\n  \"hooks\": [],\n}", "2:12: \"hooks\" must be an object");
    check("{ \"hooks\": { \"stop\": {} } }", "1:22: \"hooks.stop\" must be an array");
    check("[]", "1:1: expected an object `{ ... }`");
    check("{ \"hooks\": {}, \"hooks\": {} }", "1:16: the key \"hooks\" occurs twice");
    check("{ 'hooks': {} }", "1:3: single-quoted strings are not allowed");
    check("{} {}", "1:4: text cannot contain more than one JSON value");
}

#[test]
fn a_void_version_is_repaired_and_comes_back() {
    for void in ["\"1\"", "null", "0", "1.5", "-1", "true", "[ 1 ]", "{ \"a\": // b\n 1 }"] {
        let before = format!("{{\n  \"hooks\": {{}},\n  \"version\" : {void} // mine\n}}\n");
        let (after, made) = installed(&before, &["stop"]);
        assert!(after.contains("\"version\" : 1 // mine\n"), "{after}");
        assert_eq!(made.version.as_deref(), Some(void));
        let (again, _) = installed(&after, &["stop"]);
        assert_eq!(again, after);
        assert_eq!(uninstall(&after, Some(&made), false).unwrap(), before);
        let corrected = after.replace(": 1 // mine", ": 1.0 // mine");
        let left = uninstall(&corrected, Some(&made), false).unwrap();
        assert_eq!(left, before.replace(void, "1.0"), "somebody wrote another one");
    }
}

#[test]
fn a_version_that_is_one_stays_as_it_is_written() {
    for one in ["1.0", "1e0", "1"] {
        let before = format!("{{ \"version\": {one}, \"hooks\": {{}} }}");
        let (after, made) = installed(&before, &["stop"]);
        assert!(after.starts_with(&format!("{{ \"version\": {one}, ")), "{after}");
        assert_eq!(uninstall(&after, Some(&made), false).unwrap(), before);
    }
}

#[test]
fn an_event_that_is_recorded_in_another_form_gets_no_second_entry() {
    for command in [
        "HOOKSPAN_DIR=/d /s/bin/hookspan-shim stop",
        "sh -c 'exec /s/bin/hookspan-shim --dir /d stop'",
        "env HOOKSPAN_DIR=/d /s/bin/hookspan-shim stop",
    ] {
        let before = format!(
            "{{ \"version\": 1, \"hooks\": {{ \"stop\": [{{ \"command\": \"{command}\" }}] }} }}"
        );
        let (after, made) = installed(&before, &["stop"]);
        assert_eq!(after, before, "{command}");
        let (more, made_more) = installed(&before, &["stop", "preToolUse"]);
        assert_eq!(more.matches("hookspan-shim").count(), 2, "{more}");
        assert_eq!(uninstall(&after, Some(&made), false).unwrap(), before);
        assert_eq!(uninstall(&more, Some(&made_more), false).unwrap(), before);
    }
}

#[test]
fn an_entry_of_another_system_is_kept_beside_ours() {
    let before = r#"{ "version": 1, "hooks": { "stop": [
  { "command": "C:\\Users\\kim\\hookspan\\bin\\hookspan-shim.exe stop", "timeout": 10 }
] } }"#;
    if cfg!(windows) {
        return;
    }
    let (after, made) = installed(before, &["stop"]);
    assert!(is_subsequence(before, &after), "{after}");
    assert!(after.contains(OURS), "{after}");
    assert_eq!(uninstall(&after, Some(&made), false).unwrap(), before);
}

#[test]
fn a_group_of_ours_becomes_an_entry_and_a_shared_one_stays() {
    let group = |more: &str| {
        format!(
            r#"{{ "version": 1, "hooks": {{ "stop": [ {{ "hooks": [ {{ "type": "command", "command": "/o/hookspan-shim stop" }}{more} ] }} ] }} }}"#
        )
    };
    let before = group("");
    let (after, mut made) = installed(&before, &["stop"]);
    assert_eq!(after, format!(r#"{{ "version": 1, "hooks": {{ "stop": [ {OURS} ] }} }}"#));
    let again = install(&after, &entry(), &["stop"], &mut made).unwrap();
    assert_eq!(again, after);
    assert_eq!(uninstall(&after, Some(&made), false).unwrap(), before);
    assert!(!uninstall(&after, None, false).unwrap().contains("hookspan-shim"));
    let shared = group(r#", { "command": "./mine.sh" }"#);
    let (after, made) = installed(&shared, &["stop"]);
    assert!(is_subsequence(&shared, &after) && after.contains(OURS), "{after}");
    assert_eq!(uninstall(&after, Some(&made), false).unwrap(), shared);
}

/// Groups in several places and forms: in lines of their own, between other entries, under a void version, and beside
/// a comment.
#[test]
fn a_group_of_ours_comes_back_byte_for_byte() {
    let ours = r#"{ "matcher": "", "hooks": [ { "type": "command", "command": "exec /o/hookspan-shim stop" }, ] }"#;
    for before in [
        format!(
            "{{\n  \"version\": 1,\n  \"hooks\": {{\n    \"stop\": [\n      {ours}\n    ]\n  }}\n}}\n"
        ),
        format!(
            "{{\"hooks\":{{\"stop\":[{{\"command\":\"./a.sh\"}},{ours},{{\"command\":\"./b.sh\"}}]}},\"version\":1}}"
        ),
        format!("{{ \"version\": \"1\", \"hooks\": {{ \"stop\": [ // mine\n {ours}, ] }} }}"),
        format!("{{\r\n\"hooks\": {{ \"stop\": [\r\n{ours} /* last */\r\n] }} }}"),
    ] {
        let (after, made) = installed(&before, &Events::Standard.names());
        assert!(!after.contains("\"type\""), "{after}");
        let moved = after.replace("/s/bin/", "/moved/");
        for text in [after, moved] {
            assert_eq!(uninstall(&text, Some(&made), false).unwrap(), before, "{text}");
        }
    }
}

/// A file with `count` entries of others and one third as many old entries of ours, all under `stop`.
fn large(count: usize) -> String {
    let foreign = (0..count)
        .map(|n| format!("      {{ \"command\": \"/opt/tool-{n}/run --with some --arguments\" }}"));
    let stale =
        (0..count / 3).map(|n| format!("      {{ \"command\": \"/old-{n}/hookspan-shim stop\" }}"));
    let (foreign, stale): (Vec<_>, Vec<_>) = (foreign.collect(), stale.collect());
    format!(
        "{{\n  \"version\": 1,\n  \"hooks\": {{\n    \"beforeReadFile\": [\n{}\n    ],\n    \"stop\": [\n{}\n    ]\n  }}\n}}\n",
        foreign.join(",\n"),
        stale.join(",\n"),
    )
}

#[test]
fn stale_entries_leave_together_and_the_first_is_brought_up_to_date() {
    let (after, _) = installed(&large(300), &Events::Standard.names());
    let found = Document::parse(&after).unwrap().found();
    assert_eq!(found.iter().filter(|found| found.is_ours()).count(), 15);
    assert_eq!(found.len(), 315);
    assert!(after.contains(&format!("    \"stop\": [\n      {OURS}\n    ],\n")), "{after}");
}

/// With four times the entries, editing takes about four times as long. An editor that searched the whole text for each
/// entry would take sixteen times as long. The shortest of several runs counts, because other programs can only make a
/// run longer.
#[test]
fn a_large_file_takes_as_much_longer_as_it_is_larger() {
    let time = |text: &str| {
        let run = || {
            let started = crate::clock::instant();
            installed(text, &Events::Standard.names());
            crate::clock::instant().duration_since(started)
        };
        (0..5).map(|_| run()).min().unwrap()
    };
    let (small, large) = (large(600), large(2_400));
    assert!(large.len() > 180_000);
    let (short, long) = (time(&small), time(&large));
    assert!(long < short * 9, "{short:?} for {} bytes, {long:?} for {}", small.len(), large.len());
}

/// Space and comments that may stand between two tokens, with the document's line breaks.
fn trivia(newline: &'static str) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => Just(String::new()),
        3 => Just(" ".to_owned()),
        1 => Just("\t".to_owned()),
        3 => (0..4_usize).prop_map(move |depth| format!("{newline}{}", "  ".repeat(depth))),
        1 => Just(" /* a, \"b\" ] */ ".to_owned()),
        1 => Just(format!("/* two{newline} lines */")),
        1 => (0..3_usize).prop_map(move |d| format!(" // }} c, é{newline}{}", " ".repeat(d))),
    ];
    prop::collection::vec(piece, 0..3).prop_map(|pieces| pieces.concat())
}

/// Items between `open` and `close` with arbitrary trivia, with or without a trailing comma.
fn container(
    newline: &'static str,
    open: &'static str,
    close: &'static str,
    items: impl Strategy<Value = Vec<String>>,
) -> impl Strategy<Value = String> {
    let gaps = prop::collection::vec(trivia(newline), 40);
    (items, gaps, any::<bool>()).prop_map(move |(items, gaps, trailing)| {
        let mut gaps = gaps.into_iter();
        let mut gap = || gaps.next().unwrap_or_default();
        let mut text = open.to_owned();
        let count = items.len();
        for (index, item) in items.into_iter().enumerate() {
            text += &(gap() + &item + &gap());
            if index + 1 < count || trailing {
                text += ",";
            }
        }
        text + &gap() + close
    })
}

fn foreign_entry(newline: &'static str) -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just(r#""command": "./x.sh \"q\" é""#.to_owned()),
        Just(r#""command": "echo hookspan-shim""#.to_owned()),
        Just(r#""timeout":5"#.to_owned()),
        Just(r#""matcher" : "Shell|Write""#.to_owned()),
        Just(r#""extra": [1, {"a": null}]"#.to_owned()),
    ];
    container(newline, "{", "}", prop::collection::hash_set(key, 0..3).prop_map(Vec::from_iter))
}

fn document(newline: &'static str) -> impl Strategy<Value = String> {
    let entries = prop::collection::vec(foreign_entry(newline), 0..3);
    let event = (trivia(newline), container(newline, "[", "]", entries));
    let names = prop::sample::subsequence(
        vec!["stop", "preToolUse", "sessionStart", "workspaceOpen", "madeUpEvent", "sessionEnd"],
        0..=4,
    );
    let events =
        (names.prop_shuffle(), prop::collection::vec(event, 4)).prop_map(|(names, events)| {
            names
                .into_iter()
                .zip(events)
                .map(|(name, (gap, array))| format!("\"{name}\"{gap}:{gap}{array}"))
                .collect::<Vec<_>>()
        });
    let hooks = container(newline, "{", "}", events);
    let keys = prop::sample::subsequence(vec!["version", "hooks", "other"], 0..=3).prop_shuffle();
    let properties = (keys, hooks, trivia(newline)).prop_map(|(keys, hooks, gap)| {
        keys.into_iter()
            .map(|key| match key {
                "version" => format!("\"version\"{gap}: 1"),
                "hooks" => format!("\"hooks\":{gap}{hooks}"),
                _ => "\"other\": {\"hooks\": {\"stop\": []}}".to_owned(),
            })
            .collect::<Vec<_>>()
    });
    let root = prop_oneof![
        12 => container(newline, "{", "}", properties),
        1 => Just(String::new()),
    ];
    (trivia(newline), root, trivia(newline))
        .prop_map(|(before, root, after)| before + &root + &after)
}

fn any_document() -> impl Strategy<Value = String> {
    prop_oneof![3 => document("\n"), 2 => document("\r\n")]
}

/// Every foreign hook, as (event, place among the foreign ones, text).
fn foreign(text: &str) -> Vec<(String, Option<String>, Vec<String>)> {
    let document = Document::parse(text).unwrap();
    let found = document.found().into_iter().filter(|found| !found.is_ours());
    found.map(|found| (found.event, found.command, found.keys)).collect()
}

fn is_subsequence(part: &str, whole: &str) -> bool {
    let mut whole = whole.chars();
    part.chars().all(|c| whole.any(|w| w == c))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, rng_seed: RngSeed::Fixed(0), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn install_then_uninstall_gives_the_same_bytes(
        before in any_document(),
        events in prop::sample::select(vec![Events::Minimal, Events::Standard, Events::All]),
    ) {
        let names = events.names();
        let (after, made) = installed(&before, &names);
        prop_assert!(is_subsequence(&before, &after), "a foreign byte went:\n{before}\n---\n{after}");
        prop_assert_eq!(foreign(&after), foreign(&before));
        let ours: Vec<_> = Document::parse(&after).unwrap().found().into_iter()
            .filter(|found| found.is_ours()).collect();
        prop_assert_eq!(ours.len(), names.len());
        for found in ours {
            prop_assert_eq!(found.keys, ["command", "timeout"]);
            prop_assert_eq!(found.command.unwrap(), entry().command(&found.event));
        }
        let (again, _) = installed(&after, &names);
        prop_assert_eq!(&again, &after, "a second install changed something");
        let restored = uninstall(&after, Some(&made), false).unwrap();
        prop_assert_eq!(&restored, &before, "installed:\n{}", after);
    }

    #[test]
    fn a_moved_program_changes_commands_only_and_still_uninstalls(before in any_document()) {
        let mut made = Made::default();
        let names = Events::Standard.names();
        let other = Entry::new(Path::new("/elsewhere/hookspan-shim"), Some(Path::new("/d")), false).unwrap();
        let first = install(&before, &entry(), &names, &mut made).unwrap();
        let moved = install(&first, &other, &names, &mut made).unwrap();
        prop_assert_eq!(
            moved.replace("/elsewhere/hookspan-shim --dir /d ", "exec /s/bin/hookspan-shim "), first);
        prop_assert_eq!(uninstall(&moved, Some(&made), false).unwrap(), before);
    }

    #[test]
    fn any_text_is_edited_or_refused(text in "[ \\[\\]{}:,\"a/*\n1]{0,24}") {
        let mut made = Made::default();
        if let Ok(after) = install(&text, &entry(), &["stop"], &mut made) {
            prop_assert_eq!(uninstall(&after, Some(&made), false).unwrap(), text);
        }
    }
}
