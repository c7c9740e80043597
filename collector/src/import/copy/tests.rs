//! Tests what the copy contains for each kind of file, and the remarks about it.

use jiff::tz::TimeZone;

use super::*;
use crate::import::sniff::judge;

const HOOK: &str = r#"{"hook_event_name":"stop","conversation_id":"c","status":"completed"}"#;

fn copied(text: &str) -> (Vec<Line>, Vec<(Remark, u64, u64)>) {
    let form = judge(text.as_bytes(), true).unwrap_or_else(|reason| panic!("{reason}: {text}"));
    let mut zone = Zone::new(TimeZone::get("Europe/Berlin").unwrap(), "Europe/Berlin".to_owned());
    let mut out = Vec::new();
    let copied = copy(text.as_bytes(), form, &mut zone, &mut out, &mut || {}).unwrap();
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(line::read);
    let remarks = copied.remarks.iter().map(|(remark, found)| (*remark, found.count, found.line));
    (lines.collect(), remarks.collect())
}

fn line(at: Option<&str>, body: &str) -> Line {
    let ns = |at: &str| at.parse::<jiff::Timestamp>().unwrap().as_nanosecond();
    let at = at.map(|at| Time::Exact(Timestamp(i64::try_from(ns(at)).unwrap())));
    Line { at, argument: None, body: body.into() }
}

#[test]
fn json_lines_are_copied_byte_for_byte() {
    let text = format!("{HOOK}\n{{ \"event\" : {HOOK}, \"ts\": 7 }}\nno JSON\n{{\"cut\": \"\n");
    let form = judge(text.as_bytes(), true).unwrap();
    let mut zone = Zone::new(TimeZone::UTC, "UTC".to_owned());
    let mut out = Vec::new();
    copy(text.as_bytes(), form, &mut zone, &mut out, &mut || {}).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), text);
}

#[test]
fn the_log_of_an_audit_script_gives_local_times_and_nothing_is_malformed() {
    let text = format!(
        "[2026-10-05 12:00:01] {HOOK}\n[2026-10-05 12:00:02] \n[2026-10-05 12:00:03] {HOOK}\n"
    );
    let (lines, remarks) = copied(&text);
    assert_eq!(
        lines,
        [line(Some("2026-10-05T10:00:01Z"), HOOK), line(Some("2026-10-05T10:00:03Z"), HOOK)]
    );
    assert_eq!(remarks, []);
}

#[test]
fn bodies_over_several_lines_keep_their_bytes() {
    let pretty = "{\n  \"hook_event_name\": \"stop\",\n  \"conversation_id\": \"é\"\n}";
    let (lines, _) = copied(&format!("[2026-10-05 12:00:01] {pretty}\n"));
    assert_eq!(lines, [line(Some("2026-10-05T10:00:01Z"), pretty)]);
    let (lines, _) = copied(&format!("{pretty}\n{pretty}\n"));
    assert_eq!(lines, [line(None, pretty), line(None, pretty)]);
}

#[test]
fn a_time_may_head_its_hook_and_an_event_name_stand_beside_it() {
    let bare = r#"{"command":"ls","cwd":"/w"}"#;
    let text = format!(
        "[2026-10-05T12:00:01Z] stop\n{HOOK}\n---\n[2026-10-05 12:00:02] [beforeShellExecution] {bare}\n"
    );
    let (lines, remarks) = copied(&text);
    let mut named = line(Some("2026-10-05T10:00:02Z"), bare);
    named.argument = Some("beforeShellExecution".to_owned());
    assert_eq!(lines, [line(Some("2026-10-05T12:00:01Z"), HOOK), named]);
    assert_eq!(remarks, []);
}

#[test]
fn a_logs_own_text_and_answers_are_left_out_and_told() {
    let text = format!(
        "Hook execution started\nReceived input: {HOOK}\nParsed command: 'ls'\nOUTPUT: {{\"permission\":\"allow\"}}\n\
         {HOOK}\n"
    );
    let (lines, remarks) = copied(&text);
    assert_eq!(lines.len(), 2);
    assert_eq!(remarks, [(Remark::Text, 2, 1), (Remark::Answer, 1, 4)]);
}

#[test]
fn what_is_broken_is_kept_and_told() {
    let text = format!("{HOOK}\n{{\"cut\": \"of\n\n{HOOK}\nno JSON\n{HOOK}\n");
    let (lines, remarks) = copied(&text);
    assert_eq!(lines.len(), 5);
    assert_eq!(remarks, [(Remark::NotJson, 1, 5), (Remark::Broken, 1, 2)]);
}

#[test]
fn an_object_at_the_very_end_waits_for_the_word_that_the_file_is_whole() {
    let text = format!("{HOOK}\n{{\"cut\": ");
    let mut zone = Zone::new(TimeZone::UTC, "UTC".to_owned());
    let mut out = Vec::new();
    let copied = copy(text.as_bytes(), Form::default(), &mut zone, &mut out, &mut || {}).unwrap();
    assert_eq!(copied.end, Some((b"{\"cut\":".to_vec(), 2)));
    assert_eq!(out, format!("{HOOK}\n").as_bytes());
}
