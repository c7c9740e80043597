//! Values that use every column, for tests that read or write rows.

use std::borrow::Cow;
use std::sync::Arc;

use hookspan_core::content::Field;
use hookspan_core::outcome::{TestRun, Work};
use hookspan_core::repository::Repository;
use hookspan_core::{
    Attribute, Class, ContentRef, End, EndReason, ErrorType, Link, Parts, SessionState,
    SessionSummary, Span, SpanEvent, SpanId, SpanKind, Status, Timestamp, Tokens, TraceId,
    TurnSummary, Value,
};

/// A tool call named `key` in session `root`, settled and failed, with every kind of attribute.
pub(crate) fn span(root: &str, key: &str) -> Span {
    let attribute =
        |key: &'static str, value, class| Attribute { key: Cow::Borrowed(key), value, class };
    Span {
        id: SpanId::derive(root, "g1", "tool", key),
        trace: TraceId::derive("generation", root, "g1"),
        parent: Some(SpanId::derive(root, "g1", "generation", "")),
        links: vec![Link {
            trace: TraceId::derive("session", root, "0"),
            span: SpanId::derive(root, "", "session", "0"),
            kind: "generation",
            at: Timestamp(5),
        }],
        kind: SpanKind::Tool,
        name: format!("execute_tool {key} \"\u{1F600}\u{0}"),
        plain_name: Cow::Borrowed("execute_tool"),
        root: root.into(),
        conversation: format!("{root}-child").into(),
        generation: "g1".into(),
        workspace: Some("/home/dev/project".into()),
        cursor_version: Some("3.7.19".into()),
        start: Timestamp(1_780_000_000_123_456_789),
        end: Some(End { at: Timestamp(1_780_000_001_123_456_789), reason: EndReason::Matched }),
        status: Status::Error { kind: ErrorType::ExitCode, message: "exit code 101".into() },
        attributes: vec![
            attribute("cursor.duration_ms", Value::Double(1.0), Class::Plain),
            attribute("cursor.wait_ms", Value::Double(0.1 + 0.2), Class::Plain),
            attribute("error.type", Value::Str("exit_code".into()), Class::Plain),
            attribute("file.path", Value::Str("src/\"main\".rs\n".into()), Class::Path),
            attribute("gen_ai.tool.name", Value::Str(key.into()), Class::Detail),
            attribute("hookspan.flag", Value::Bool(true), Class::Plain),
            attribute("process.exit.code", Value::Int(i64::MIN), Class::Plain),
            attribute("tags", Value::StrList(vec!["a".into(), "".into()]), Class::Plain),
        ],
        events: vec![SpanEvent {
            at: Timestamp(7),
            name: Cow::Borrowed("cursor.hook"),
            attributes: vec![attribute("n", Value::Int(1), Class::Plain)],
        }],
        contents: vec![ContentRef {
            key: "gen_ai.tool.call.arguments",
            hook: 3,
            field: Field::ToolInput,
        }],
        settled: true,
    }
}

fn repository() -> Repository {
    Repository {
        url: Some("https://git.example/o/r".into()),
        from_branch: None,
        from_commit: Some("1a".repeat(20).into()),
        branch: Some("fix/a".into()),
        commit: Some("2b".repeat(20).into()),
        commits: vec!["2b".repeat(20).into(), "3c3c3c3".into()],
    }
}

fn work() -> Work {
    Work {
        edits: 4,
        unclear: 3,
        tests_passed: 2,
        tests_failed: 1,
        last_test: Some(TestRun { at: Timestamp(7), passed: true }),
        pull_request: Some("https://git.example/o/r/pull/1".into()),
    }
}

/// The session `root`.
pub(crate) fn session(root: &str) -> SessionSummary {
    SessionSummary {
        root: root.into(),
        state: SessionState::ToolOpen,
        started_at: Timestamp(1),
        last_at: Timestamp(9),
        ended_at: None,
        workspace: Some("/home/dev/project".into()),
        model: Some("model-x".into()),
        surface: "ide",
        cursor_version: Some("3.7.19".into()),
        first_prompt: Some("do \u{202E} it".into()),
        last_error: None,
        generations: 2,
        tool_calls: 3,
        subagents: 4,
        errors: 5,
        errored_turns: 1,
        active_ns: 77,
        tokens: Some(Tokens {
            input: Some(1),
            output: Some(2),
            cache_read: Some(3),
            cache_write: Some(0),
        }),
        repository: Some(Box::new(repository())),
        work: work(),
    }
}

/// A turn of `root`.
pub(crate) fn turn(root: &str) -> TurnSummary {
    TurnSummary {
        root: root.into(),
        generation: "g1".into(),
        span: SpanId::derive(root, "g1", "generation", ""),
        trace: TraceId::derive("generation", root, "g1"),
        index: 1,
        started_at: Timestamp(1),
        ended_at: Some(Timestamp(8)),
        end_reason: Some(EndReason::Idle),
        prompt: Some("do it".into()),
        model: Some(Arc::from("model-x")),
        status: Some("completed".into()),
        tool_calls: 3,
        errors: 1,
        tokens: None,
        parts: Parts { thinking: 1, shell: 2, other: 4, ..Parts::default() },
        repository: Some(Box::new(repository())),
        work: work(),
    }
}
