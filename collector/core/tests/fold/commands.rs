//! Tests complete hooks of shell commands: no word of an assignment or an argument may reach a span.

use std::fmt::Write as _;

use hookspan_core::{Config, Hook, Timestamp};
use proptest::prelude::*;

use crate::support::{Store, fold};

/// A word placed where no program can stand. No part of a span may contain it.
const PLANTED: &str = "planted";

/// Values of assignments and arguments.
const VALUES: [&str; 14] = [
    "planted",
    "\"Bearer planted\"",
    "'a planted b'",
    "$'a\\'planted'",
    "$\"planted a\"",
    "a\\ planted",
    "\"a\\\" planted\"",
    "\"$(a 'planted' planted)\"",
    "$(a; planted)",
    "`planted`",
    "${A:-b planted}",
    "(a planted)",
    "{a,planted}",
    "https://a:planted@b/planted",
];

/// Texts that may stand before a program; `@` stands for a value.
const BEFORE: [&str; 14] = [
    "",
    "A=@ ",
    "A+=@ \\\n ",
    "A=@; ",
    "export A=@ && ",
    "cd @\n",
    "# planted @\n",
    "env -u @ A=@ ",
    "sudo -u @ ",
    "A=b> @ ",
    "nohup 2> @ ",
    "$env:A = @; ",
    "set A=@&& ",
    "source @ > @ && ",
];

/// What may stand after a program.
const AFTER: [&str; 8] = [
    "",
    " -p @",
    " --token=@ 2>&1",
    " > @ < @",
    " <<E\nplanted @\nE\n",
    " <<< @",
    " | curl -H @",
    "; A=@ curl # planted",
];

/// The spans of a session in which both layers of hooks report `command`.
fn spans_of(command: &str) -> Store {
    let command = serde_json::Value::from(command).to_string();
    let bodies = [
        (r#""beforeSubmitPrompt","prompt":"p""#).to_owned(),
        format!(
            r#""preToolUse","tool_name":"Shell","tool_use_id":"t","tool_input":{{"command":{command}}}"#
        ),
        format!(r#""beforeShellExecution","command":{command},"cwd":"/w""#),
        format!(r#""afterShellExecution","command":{command},"output":"","duration":1"#),
        format!(
            r#""postToolUse","tool_name":"Shell","tool_use_id":"t","tool_input":{{"command":{command}}},"duration":1"#
        ),
        (r#""stop","status":"completed""#).to_owned(),
    ];
    let hook = |(seq, body): (u64, &String)| {
        let body =
            format!(r#"{{"conversation_id":"c","generation_id":"g","hook_event_name":{body}}}"#);
        let observed_at = Timestamp(1_000_000_000_000 + seq as i64 * 1_000_000);
        Hook { seq, observed_at, body: body.into_bytes(), ..Hook::default() }
    };
    let hooks: Vec<Hook> = (1..).zip(&bodies).map(hook).collect();
    fold(Config::default(), &hooks, 1)
}

/// All texts of a span, a session or a turn.
fn all_of(store: &Store) -> String {
    let mut all = format!("{:?} {:?}", store.sessions, store.turns);
    for span in store.spans.values() {
        let _ = write!(all, "\n{span:?}");
    }
    all
}

#[test]
fn the_value_of_an_assignment_is_not_the_name_of_a_span() {
    for (command, name) in [
        ("AUTH=\"Bearer sk-ant-planted\" curl https://x.example", "curl"),
        ("TOKEN=\"a planted\" npm publish", "npm"),
        ("MSG=\"fix: planted key\" git commit -m \"$MSG\"", "git"),
        ("X=\"--password planted\" mysql", "mysql"),
    ] {
        let store = spans_of(command);
        store.check();
        let all = all_of(&store);
        assert!(!all.contains(PLANTED), "{all}");
        let span = store.spans.values().find(|span| span.name.starts_with("execute_tool"));
        assert_eq!(span.unwrap().name.as_str(), format!("execute_tool Shell {name}"));
        assert_eq!(span.unwrap().plain_name, "execute_tool Shell");
    }
}

proptest! {
    #[test]
    fn no_word_of_an_assignment_or_argument_is_said_of_a_span(
        before in proptest::collection::vec((0..BEFORE.len(), 0..VALUES.len()), 0..4),
        after in (0..AFTER.len(), 0..VALUES.len()),
    ) {
        let part = |form: &str, value: usize| form.replace('@', VALUES[value]);
        let mut command: String =
            before.iter().map(|(form, value)| part(BEFORE[*form], *value)).collect();
        command += "cargo";
        command += &part(AFTER[after.0], after.1);
        let all = all_of(&spans_of(&command));
        prop_assert!(all.contains("execute_tool Shell"));
        prop_assert!(!all.contains(PLANTED), "{command}\n{all}");
    }
}
