//! Rows and what a person may configure.

use hookspan_core::sessions::{TabMode, TraceMode};
use hookspan_core::{Config, EndReason, Hook, Sessions, SpanKind, Timestamp, normalise};
use serde_json::json;

use crate::support::{Player, Store, fold, hooks, render};

fn stream() -> Vec<Hook> {
    let line = |second: u32, name: &str, more: serde_json::Value| {
        let mut event =
            json!({"hook_event_name": name, "conversation_id": "c", "generation_id": "g"});
        if let (Some(event), Some(more)) = (event.as_object_mut(), more.as_object()) {
            event.extend(more.clone());
        }
        json!({"observed_at": format!("2026-06-09T10:00:{second:02}Z"), "event": event}).to_string()
    };
    let edits = json!({"generation_id": "", "file_path": "/a.rs",
        "edits": [{"old_string": "a", "new_string": "b"}]});
    let lines = [
        line(0, "beforeSubmitPrompt", json!({"prompt": "go"})),
        line(3, "afterAgentThought", json!({"text": "hm", "duration_ms": 60_000})),
        line(
            4,
            "afterAgentResponse",
            json!({"text": "done", "input_tokens": 5, "output_tokens": 1}),
        ),
        line(5, "stop", json!({"status": "completed", "input_tokens": 5, "output_tokens": 1})),
        line(6, "afterTabFileEdit", edits.clone()),
        line(7, "afterTabFileEdit", edits),
    ];
    hooks(&lines.join("\n"))
}

fn played(config: Config) -> Store {
    let store = fold(config, &stream(), 2);
    store.check();
    store
}

fn count(store: &Store, kind: SpanKind) -> usize {
    store.spans.values().filter(|span| span.kind == kind).count()
}

#[test]
fn rows_begin_with_the_first_event_and_spans_cover_their_children() {
    let store = played(Config::default());
    let first = stream()[0].observed_at;
    let turn = store.turns.values().next().unwrap();
    assert_eq!((store.sessions["c"].started_at, turn.started_at), (first, first));
    assert_eq!(store.sessions["c"].active_ns, 5_000_000_000);
    assert_eq!(turn.parts.thinking, 3_000_000_000);
    assert_eq!(store.spans[&turn.span].start, Timestamp(first.0 - 57_000_000_000));
}

#[test]
fn a_session_can_be_one_trace() {
    let store = played(Config { trace_mode: TraceMode::Session, ..Config::default() });
    let session = store.spans.values().find(|span| span.kind == SpanKind::Session).unwrap();
    let turn = store.spans.values().find(|span| span.kind == SpanKind::Generation).unwrap();
    assert_eq!((turn.trace, turn.parent), (session.trace, Some(session.id)));
    assert!(session.links.iter().all(|link| link.kind != "generation"));
}

#[test]
fn without_session_spans_a_turn_is_a_root_in_either_mode() {
    for trace_mode in [TraceMode::Generation, TraceMode::Session] {
        let store = played(Config { trace_mode, session_span: false, ..Config::default() });
        assert_eq!(count(&store, SpanKind::Session), 0);
        let turn = store.spans.values().find(|span| span.kind == SpanKind::Generation).unwrap();
        assert_eq!(turn.parent, None);
    }
}

#[test]
fn usage_is_on_the_turn_when_there_are_no_response_spans() {
    let store = played(Config { llm_spans: false, ..Config::default() });
    assert_eq!(count(&store, SpanKind::Response), 0);
    let with_usage = store.spans.values().filter(|span| {
        span.attributes.iter().any(|attribute| attribute.key == "gen_ai.usage.input_tokens")
    });
    let kinds: Vec<SpanKind> = with_usage.map(|span| span.kind).collect();
    assert_eq!(kinds, [SpanKind::Generation]);
}

#[test]
fn calls_below_a_child_leave_a_long_turn_early_once_the_child_is_proven() {
    let stream = include_str!("../streams/subagent-evidence.jsonl");
    let (evidence, rest): (Vec<&str>, Vec<&str>) =
        stream.lines().partition(|line| line.contains("hookspan.evidence"));
    let hooks = hooks(&rest.into_iter().chain(evidence).collect::<Vec<_>>().join("\n"));
    let (evidence, hooks) = hooks.split_last().unwrap();
    let running: Vec<Hook> = hooks
        .iter()
        .filter(|hook| hook.observed_at.since(hooks[0].observed_at) < 9_000_000_000)
        .cloned()
        .collect();
    let now = hooks[0].observed_at.plus(100_000_000_000);
    let left = |player: &Player| {
        let spans = player.store.spans.values().filter(|span| span.settled);
        spans.map(|span| span.name.clone()).collect::<Vec<_>>()
    };
    let mut player = Player::new(Config::default());
    player.feed(&running);
    player.pass(now);
    assert_eq!(left(&player), ["agent_thought"], "a guess may still be taken back");
    player.feed(std::slice::from_ref(evidence));
    player.pass(now);
    let mut names = left(&player);
    names.sort();
    assert_eq!(
        names,
        ["agent_thought", "execute_tool Grep", "execute_tool Read", "execute_tool Read"]
    );
}

#[test]
fn tab_events_are_rolled_up_or_single_or_nothing() {
    for (tab, expected) in [(TabMode::Rollup, 1), (TabMode::Span, 2), (TabMode::Off, 0)] {
        let store = played(Config { tab, ..Config::default() });
        assert_eq!(count(&store, SpanKind::Tab), expected, "{tab:?}");
    }
}

/// A call in `conversation` that begins and does not end.
fn begin(conversation: &str, seq: u64, second: i64) -> Hook {
    let body = json!({"hook_event_name": "preToolUse", "conversation_id": conversation, "generation_id": "g",
        "tool_name": "Read", "tool_use_id": format!("call-{seq}"), "tool_input": {"file_path": "/a.rs"}});
    Hook {
        seq,
        observed_at: Timestamp(second * 1_000_000_000),
        body: body.to_string().into_bytes(),
        ..Hook::default()
    }
}

#[test]
fn a_session_between_turns_makes_room_as_if_its_time_had_passed() {
    let mut sessions = Sessions::with_bound(Config::default(), 8);
    let mut store = Store::default();
    let stop = |conversation: &str, seq: u64, s: i64| {
        let body = format!(
            "{{\"hook_event_name\":\"stop\",\"conversation_id\":\"{conversation}\",\
             \"generation_id\":\"g-{conversation}\",\"status\":\"completed\"}}"
        );
        Hook { body: body.into_bytes(), ..begin(conversation, seq, s) }
    };
    let mut hooks: Vec<Hook> = Vec::new();
    for (index, conversation) in ["a", "b", "c", "d", "e", "f"].into_iter().enumerate() {
        let at = index as i64 * 10;
        hooks.push(stop(conversation, hooks.len() as u64 + 1, at));
        hooks.push(stop(conversation, hooks.len() as u64 + 1, at + 1));
    }
    for hook in &hooks {
        sessions.handle(normalise(hook));
        sessions.handle_deadline(hook.observed_at);
        store.drain(&mut sessions);
        store.check();
    }
    assert!(sessions.held() <= 9 && sessions.evicted() > 0, "{}", sessions.held());
    let session = store.spans.values().find(|span| *span.root == *"a" && span.parent.is_none());
    assert!(store.forgotten.contains(&"a".to_owned()), "{:?}", store.forgotten);
    let reasons: Vec<_> = store
        .spans
        .values()
        .filter(|span| *span.root == *"a")
        .map(|span| (span.end.map(|end| end.reason), span.settled))
        .collect();
    assert!(
        session.is_some()
            && reasons
                .iter()
                .all(|(reason, settled)| { *settled && *reason != Some(EndReason::Evicted) }),
        "{reasons:?}"
    );
}

#[test]
fn the_longest_idle_session_makes_room_and_says_so() {
    let mut sessions = Sessions::with_bound(Config::default(), 8);
    let mut store = Store::default();
    let mut hooks = vec![begin("old", 1, 0), begin("older", 2, -60)];
    hooks.extend((0..20).map(|index| begin("busy", index + 3, 301 + index as i64)));
    for hook in &hooks {
        sessions.handle(normalise(hook));
        store.drain(&mut sessions);
        store.check();
    }
    assert_eq!((sessions.evicted(), sessions.held()), (2, 20), "what is at work stays");
    assert_eq!(store.forgotten, ["older", "old"]);
    let ended = store.spans.values().filter(|span| *span.root != *"busy");
    let reasons: Vec<_> =
        ended.map(|span| (span.end.map(|end| end.reason), span.settled)).collect();
    assert_eq!(reasons, [(Some(EndReason::Evicted), true); 6]);
    assert!(!sessions.holds("old") && sessions.holds("busy"));
}

/// In a rebuild, late hooks delay the passing of time. Sessions that are idle by then must end as they did the first
/// time.
#[test]
fn a_session_that_is_idle_by_the_clock_is_not_called_evicted() {
    let config = Config {
        generation_idle_ns: 1_000_000_000,
        session_idle_ns: 2_000_000_000,
        ..Config::default()
    };
    let mut sessions = Sessions::with_bound(config, 8);
    let mut store = Store::default();
    let mut hooks = vec![begin("old", 1, 0)];
    hooks.extend((0..20).map(|index| begin("busy", index + 2, 400 + index as i64)));
    for hook in &hooks {
        sessions.handle(normalise(hook));
        store.drain(&mut sessions);
    }
    assert_eq!(store.forgotten, ["old"]);
    let ended = store.spans.values().filter(|span| *span.root == *"old");
    let reasons: Vec<_> = ended.map(|span| span.end.map(|end| end.reason)).collect();
    assert_eq!(reasons, [Some(EndReason::Idle); 3]);
}

#[test]
fn only_sessions_at_work_hold_more_than_the_bound() {
    const BOUND: usize = 64;
    let mut sessions = Sessions::with_bound(Config::default(), BOUND);
    let mut store = Store::default();
    let (mut seq, mut beyond) = (0, 0);
    let end = |conversation: &str, seq: u64, second: i64| {
        let body = json!({"hook_event_name": "stop", "conversation_id": conversation,
            "generation_id": "g", "status": "completed"});
        Hook { body: body.to_string().into_bytes(), ..begin(conversation, seq, second) }
    };
    for second in 0..600_i64 {
        // Each second a new session with one turn begins and ends. Every fourth of these sessions stops in the middle
        // of its turn. For the first 100 s, another session is at work in one open turn.
        let short = format!("short-{second}");
        let mut hooks = vec![begin(&short, seq + 1, second)];
        if second % 4 != 0 {
            hooks.push(end(&short, seq + 2, second));
        }
        if second < 100 {
            hooks.push(begin("at work", seq + 3, second));
        }
        seq += 3;
        for hook in &hooks {
            sessions.handle(normalise(hook));
        }
        sessions.handle_deadline(Timestamp(second * 1_000_000_000));
        store.drain(&mut sessions);
        let worked = if sessions.holds("at work") { 100.min(second as usize + 1) } else { 0 };
        // Every fourth session of the last five minutes was left in the middle of its turn. A session between turns
        // settles within two seconds.
        let left_open = 300 / 4 + 1;
        let room = BOUND.max(worked + left_open + 8);
        assert!(sessions.held() <= room, "{} at {second}, {worked} at work", sessions.held());
        beyond += usize::from(sessions.held() > BOUND);
    }
    assert!(beyond > 0 && sessions.evicted() > 300, "{beyond} {}", sessions.evicted());
    // No session has had a hook for a while. After one more event, the idle sessions have been evicted.
    sessions.handle(normalise(&begin("last", seq + 1, 1_000)));
    store.drain(&mut sessions);
    assert!(sessions.held() <= BOUND, "{}", sessions.held());
    assert!(!sessions.holds("at work"));
}

#[test]
fn a_session_at_work_holds_so_many_hooks_and_what_ends_it_after_them() {
    let config = Config { session_hooks: 64, ..Config::default() };
    let mut sessions = Sessions::new(config);
    let mut store = Store::default();
    let mut seq = 0;
    let mut hand = |sessions: &mut Sessions, name: &str, own: serde_json::Value| {
        seq += 1;
        let mut body =
            json!({"hook_event_name": name, "conversation_id": own["of"], "generation_id": "g"});
        body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        let mut hook = begin("", seq, seq as i64);
        hook.body = body.to_string().into_bytes();
        sessions.handle(normalise(&hook));
        store.drain(sessions);
    };
    hand(&mut sessions, "beforeSubmitPrompt", json!({"of": "busy", "prompt": "go"}));
    for call in 0..100 {
        let call = json!({"of": "busy", "tool_name": "Read", "tool_use_id": format!("c{call}")});
        hand(&mut sessions, "preToolUse", call.clone());
        hand(&mut sessions, "postToolUse", call);
    }
    assert_eq!((sessions.held(), sessions.left_out()), (64, 137));
    // Other sessions are not affected, and the session does not end.
    hand(&mut sessions, "beforeSubmitPrompt", json!({"of": "other", "prompt": "go"}));
    let stop = json!({"of": "busy", "status": "completed", "input_tokens": 7, "output_tokens": 1});
    hand(&mut sessions, "stop", stop);
    assert_eq!((sessions.held(), sessions.left_out(), sessions.evicted()), (66, 137, 0));
    let turns =
        (0..20).map(|at| json!({"of": "busy", "generation_id": format!("g{at}"), "prompt": "go"}));
    turns.for_each(|turn| hand(&mut sessions, "beforeSubmitPrompt", turn));
    assert_eq!((sessions.held(), sessions.left_out()), (64 + 8 + 1, 137 + 13));
    store.check();
    let turn = &store.turns[&("busy".to_owned(), "g".to_owned())];
    assert_eq!((turn.tool_calls, turn.status.as_deref()), (32, Some("completed")));
    assert_eq!(turn.tokens.and_then(|tokens| tokens.input), Some(7));
    let open: Vec<_> = store.spans.values().filter(|span| span.kind == SpanKind::Tool).collect();
    assert_eq!(open.len(), 32);
}

#[test]
fn sessions_at_work_hold_so_many_hooks_together() {
    let config = Config { held_hooks: 64, ..Config::default() };
    let mut sessions = Sessions::new(config);
    let mut store = Store::default();
    let mut seq = 0;
    let mut hand = |sessions: &mut Sessions, conversation: &str, second: i64| {
        seq += 1;
        let body = json!({"hook_event_name": "preToolUse", "conversation_id": conversation,
            "generation_id": "g", "tool_name": "Read", "tool_use_id": format!("c{seq}")});
        let hook = Hook { body: body.to_string().into_bytes(), ..begin("", seq, second) };
        sessions.handle(normalise(&hook));
        store.drain(sessions);
    };
    (0..30).for_each(|second| hand(&mut sessions, "paused", second));
    (0..33).for_each(|at| hand(&mut sessions, "busy", 30 + at / 2));
    assert_eq!((sessions.held(), sessions.evicted()), (63, 0));
    // Both are busy. The one that paused is evicted, and its history is replayed when it continues.
    hand(&mut sessions, "busy", 46);
    assert_eq!((sessions.held(), sessions.evicted(), sessions.left_out()), (34, 1, 0));
    assert!(!sessions.holds("paused") && sessions.holds("busy"));
    // No session pauses. The fold holds no more than its limit, and counts what it drops.
    (0..100).for_each(|at| hand(&mut sessions, if at % 2 == 0 { "busy" } else { "third" }, 47));
    assert_eq!((sessions.held(), sessions.evicted(), sessions.left_out()), (64, 1, 70));
    store.check();
    let ended: Vec<_> = store.spans.values().filter(|span| *span.root == *"paused").collect();
    assert!(ended.iter().all(|span| span.settled) && ended.len() == 32, "{}", ended.len());
    assert!(ended.iter().all(|span| span.end.map(|end| end.reason) == Some(EndReason::Evicted)));
}

#[test]
fn settled_turns_that_were_taken_together_are_parted_by_what_comes_late() {
    let hook = |seq: u64, second: i64, turn: i64, name: &str, more: serde_json::Value| {
        let generation = if name == "sessionEnd" { String::new() } else { format!("g{turn}") };
        let mut body = json!({"hook_event_name": name, "conversation_id": "c", "generation_id": generation,
            "cursor_version": "3.7.19", "workspace_roots": ["/w"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Hook { body: body.to_string().into_bytes(), ..begin("c", seq, second) }
    };
    let mut hooks = Vec::new();
    for turn in 0..8 {
        let counts = json!({"status": "completed", "input_tokens": 10 + turn, "output_tokens": 1});
        hooks.push(hook(
            2 * turn as u64 + 1,
            turn * 60,
            turn,
            "beforeSubmitPrompt",
            json!({"prompt": "go"}),
        ));
        hooks.push(hook(2 * turn as u64 + 2, turn * 60 + 9, turn, "stop", counts));
    }
    let call = json!({"tool_name": "Read", "tool_use_id": "r", "duration": 5});
    let late = [
        hook(100, 65, 1, "postToolUse", call),
        hook(101, 3 * 60 + 20, 0, "sessionEnd", json!({"reason": "user_close"})),
    ];
    let mut player = Player::new(Config::default());
    for hook in hooks.iter().chain(&late) {
        player.feed(std::slice::from_ref(hook));
        player.pass(hooks.last().unwrap().observed_at.min(hook.observed_at.plus(5_000_000_000)));
    }
    let live = player.finish();
    live.check();
    hooks.extend(late);
    let whole = fold(Config::default(), &hooks, 1_000);
    assert_eq!(render(&live), render(&whole));
    assert_eq!(count(&live, SpanKind::Session), 2);
    assert_eq!((live.sessions["c"].generations, live.sessions["c"].tool_calls), (8, 1));
}
