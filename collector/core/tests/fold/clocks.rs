//! Tests how the wall clock and the time since boot are used together.

use hookspan_core::{Config, Hook, Span, SpanKind, Value};
use serde_json::json;

use crate::support::{Player, fold, hooks};

const SECOND: i64 = 1_000_000_000;
const KEY: &str = "hookspan.clock_step_ms";

/// A turn of four seconds with a call of two seconds. During the call the wall clock is set by `step` seconds. `boot`
/// holds the seconds since the last boot at each hook.
fn turn(step: i64, boot: [u64; 4]) -> Vec<Hook> {
    let line = |name: &str, more: serde_json::Value| {
        let mut event =
            json!({"hook_event_name": name, "conversation_id": "c", "generation_id": "g"});
        if let (Some(event), Some(more)) = (event.as_object_mut(), more.as_object()) {
            event.extend(more.clone());
        }
        json!({"observed_at": "2026-06-09T10:00:00Z", "event": event}).to_string()
    };
    let call = json!({"tool_name": "Shell", "tool_use_id": "x", "tool_input": {"command": "make"}});
    let lines = [
        line("beforeSubmitPrompt", json!({"prompt": "go"})),
        line("preToolUse", call.clone()),
        line("postToolUse", call),
        line("stop", json!({"status": "completed"})),
    ];
    let mut hooks = hooks(&lines.join("\n"));
    let times = [0, 1, 3 + step, 4 + step];
    for ((hook, at), boot) in hooks.iter_mut().zip(times).zip(boot) {
        hook.observed_at = hook.observed_at.plus(at * SECOND);
        hook.boottime_ns = Some(boot * 1_000_000_000);
    }
    hooks
}

fn spans(hooks: &[Hook]) -> (Span, Span) {
    let store = fold(Config::default(), hooks, 1);
    store.check();
    let one = |kind| store.spans.values().find(|span| span.kind == kind).cloned().unwrap();
    (one(SpanKind::Tool), one(SpanKind::Generation))
}

fn step(span: &Span) -> Option<&Value> {
    span.attributes.iter().find(|attribute| attribute.key == KEY).map(|one| &one.value)
}

fn took(span: &Span) -> i64 {
    span.end.unwrap().at.since(span.start)
}

#[test]
fn a_call_takes_as_long_as_it_ran_whoever_sets_the_clock_meanwhile() {
    let awake = [100, 101, 103, 104];
    for seconds in [-7_000, -3_600, -60, -3, 2, 600] {
        let (call, turn) = spans(&turn(seconds, awake));
        assert_eq!(took(&call), 2 * SECOND, "{seconds}");
        let marked = Value::Int(seconds * 1_000);
        assert_eq!([step(&call), step(&turn)], [Some(&marked); 2], "{seconds}");
    }
    let (call, turn) = spans(&turn(0, awake));
    assert_eq!((took(&call), step(&call), step(&turn)), (2 * SECOND, None, None));
}

#[test]
fn a_restart_while_the_clock_is_set_changes_nothing() {
    for seconds in [-3_600, 600] {
        let hooks = turn(seconds, [100, 101, 103, 104]);
        let whole = fold(Config::default(), &hooks, 1);
        for cut in 1..hooks.len() {
            let mut player = Player::new(Config::default());
            player.feed(&hooks[..cut]);
            player.restart();
            player.feed(&hooks[cut..]);
            assert_eq!(player.finish().spans, whole.spans, "{seconds}, {cut}");
        }
    }
}

#[test]
fn a_machine_that_slept_was_not_set() {
    // The time since boot continues while the machine sleeps.
    let (call, turn) = spans(&turn(600, [100, 101, 703, 704]));
    assert_eq!((took(&call), step(&call), step(&turn)), (602 * SECOND, None, None));
}

#[test]
fn another_boot_says_nothing_of_the_clock() {
    let (call, turn) = spans(&turn(600, [100, 101, 9, 10]));
    assert_eq!((took(&call), step(&call), step(&turn)), (602 * SECOND, None, None));
}

#[test]
fn a_clock_set_by_a_day_ends_the_turn_and_nothing_before_it_began() {
    for seconds in [-86_400, 86_400] {
        let (call, turn) = spans(&turn(seconds, [100, 101, 103, 104]));
        assert!(took(&call) >= 0 && took(&turn) >= took(&call), "{seconds}");
    }
}
