//! Tests that the cost of a hook does not grow with the stream, and the limits of the fold's memory.

use hookspan_core::sessions::MAX_CONVERSATIONS;
use hookspan_core::{Config, Hook, Sessions, Span, SpanKind, Timestamp};
use serde_json::json;

use crate::shapes::{self, SHAPES};
use crate::support::{self, Store};

/// Lengths of the streams. The first is more than a busy session has open at once, the second is three times as long.
const HOOKS: [usize; 2] = [2_000, 6_000];
/// Hooks between two polls.
const BATCH: usize = 10;
/// Maximum ratio of the cost per hook between the longer and the shorter stream. It would be three if each poll read
/// everything that is open.
const MOST: f64 = 1.8;

/// One shape of each kind. `examples/hostile.rs` measures all shapes, at greater lengths.
const COSTLY: [&str; 8] = [
    "delegations, then as many children that nothing proves",
    "few delegations, many children",
    "subagents of one turn, each with its child, by transcript",
    "parents in a circle",
    "unknown events in one turn",
    "open calls in one turn",
    "compactions outside turns",
    "late calls of a turn that was left",
];

#[test]
fn a_hook_costs_about_the_same_in_any_stream_however_long() {
    let mut wrong = Vec::new();
    for shape in SHAPES.iter().filter(|shape| COSTLY.contains(&shape.name)) {
        let work = HOOKS.map(|count| {
            let hooks = (shape.hooks)(count);
            let (cost, _) = shapes::cost(&hooks, BATCH, Sessions::new(Config::default()));
            cost.work as f64 / cost.hooks as f64
        });
        if work[1] > work[0] * MOST {
            wrong.push(format!("{}: {work:.0?} for each hook", shape.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Each child causes a search for links and a new reading of the open turn. Both are delayed in proportion to their
/// cost.
#[test]
fn a_child_costs_as_much_however_many_there_were_before() {
    let shape =
        SHAPES.iter().find(|shape| shape.name.starts_with("children of delegations")).unwrap();
    let work = [3_000, 12_000].map(|count| {
        let hooks = (shape.hooks)(count);
        let (cost, _) = shapes::cost(&hooks, 50, Sessions::new(Config::default()));
        cost.work as f64 / cost.hooks as f64
    });
    assert!(work[1] < work[0] * 1.3 && work[1] < 30.0, "{work:.1?} for each hook");
}

/// Earlier, each evicted turn searched all call ids in memory. That took ten times as long in this stream.
#[test]
fn what_stays_of_a_long_session_costs_its_next_hooks_next_to_nothing() {
    let shape = SHAPES.iter().find(|shape| shape.name == "turns of a long session").unwrap();
    let hooks = (shape.hooks)(16_000);
    let took = [256, 4_096].map(|settled_hooks| {
        let config = Config { settled_hooks, ..Config::default() };
        shapes::cost(&hooks, 50, Sessions::new(config)).0.time
    });
    assert!(took[1] < took[0] * 4, "{took:?}");
}

#[test]
fn no_stream_makes_the_fold_hold_more_than_its_bounds() {
    let config = Config { held_hooks: 400, session_hooks: 200, ..Config::default() };
    for shape in SHAPES {
        let hooks = (shape.hooks)(1_000);
        let (cost, _) = shapes::cost(&hooks, 50, Sessions::new(config.clone()));
        let room = config.held_hooks + config.held_hooks / 8;
        // All hooks of a batch are filed before anything is evicted.
        assert!(cost.held <= room + 64, "{}: {cost:?}", shape.name);
    }
}

#[test]
fn conversations_beyond_their_bound_leave_the_longest_idle_first() {
    let mut sessions = Sessions::new(Config::default());
    let shape = SHAPES.iter().find(|shape| shape.name == "conversations begun in one second");
    let hooks = (shape.unwrap().hooks)(MAX_CONVERSATIONS + 500);
    (_, sessions) = shapes::cost(&hooks, 50, sessions);
    assert!(!sessions.holds("c0") && sessions.holds(&format!("c{}", MAX_CONVERSATIONS + 499)));
    assert!(sessions.held() <= MAX_CONVERSATIONS && sessions.evicted() > 0, "{}", sessions.held());
    assert_eq!(sessions.left_out(), 0);
}

/// A hook of a workspace, `at` milliseconds after the first hook.
fn hook(at: u64, name: &str, conversation: &str, more: serde_json::Value) -> Hook {
    let mut body = json!({"hook_event_name": name, "conversation_id": conversation,
        "generation_id": "g", "workspace_roots": ["/w/app"]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Hook {
        seq: at + 1,
        observed_at: Timestamp(1_780_000_000_000_000_000 + at as i64 * 1_000_000),
        body: body.to_string().into_bytes(),
        ..Hook::default()
    }
}

/// A root with this number of subagents at once, and a child that may be any of them.
fn one_of(delegations: u64) -> Store {
    let mut hooks = vec![hook(0, "beforeSubmitPrompt", "root", json!({"prompt": "go"}))];
    hooks.extend((1..=delegations).map(|at| {
        let id = format!("s{at}");
        let more = json!({"subagent_id": id, "subagent_type": "explore", "task": id});
        hook(at, "subagentStart", "root", more)
    }));
    let call = json!({"tool_name": "Read", "tool_use_id": "t", "tool_input": {"file_path": "/x"}});
    hooks.push(hook(delegations + 1, "preToolUse", "child", call));
    support::fold(Config::default(), &hooks, 10)
}

/// The span of a turn, and the value of one of its attributes.
fn turn<'a>(store: &'a Store, conversation: &str, key: &str) -> (&'a Span, Option<String>) {
    // A child without a known delegation is a subagent below the turn.
    let kinds = [SpanKind::Generation, SpanKind::Subagent];
    let is_it = |span: &&Span| kinds.contains(&span.kind) && *span.conversation == *conversation;
    let span = store.spans.values().find(is_it).unwrap();
    let attribute = span.attributes.iter().find(|attribute| attribute.key == key);
    (span, attribute.map(|attribute| format!("{:?}", attribute.value)))
}

#[test]
fn an_ambiguous_child_links_to_eight_delegations_and_says_how_many_there_were() {
    for (delegations, links) in [(2, 2), (8, 8), (9, 8), (30, 8), (200, 8)] {
        let store = one_of(delegations);
        let (span, candidates) = turn(&store, "child", "hookspan.subagent.candidates");
        let possible: Vec<_> =
            span.links.iter().filter(|link| link.kind == "subagent_candidate").collect();
        assert_eq!(possible.len(), links, "of {delegations}");
        // The links lead to the delegations that began last before the child.
        let first = 1_780_000_000_000 + (delegations as i64 + 1 - links as i64);
        assert!(possible.iter().all(|link| link.at.0 / 1_000_000 >= first), "{possible:?}");
        let all_linked = delegations == links as u64;
        let said = candidates.map(|count| count.contains(&delegations.to_string()));
        assert_eq!(said, (!all_linked).then_some(true), "of {delegations}");
    }
}

#[test]
fn a_turn_that_lost_hooks_to_a_bound_says_how_many() {
    let config = Config { session_hooks: 64, ..Config::default() };
    let mut hooks = vec![hook(0, "beforeSubmitPrompt", "c", json!({"prompt": "go"}))];
    hooks.extend((1..=100).map(|at| {
        let more = json!({"tool_name": "Read", "tool_use_id": format!("t{at}")});
        hook(at, "preToolUse", "c", more)
    }));
    hooks.push(hook(101, "stop", "c", json!({"status": "completed"})));
    for batch in [1, 10, 200] {
        let store = support::fold(config.clone(), &hooks, batch);
        let (_, lost) = turn(&store, "c", "hookspan.hooks_left_out");
        // The prompt and 63 calls are kept. The stop is a lifecycle event and has extra room.
        assert!(lost.as_deref().is_some_and(|lost| lost.contains("37")), "{lost:?} by {batch}");
    }
    let whole = support::fold(Config::default(), &hooks, 10);
    assert_eq!(turn(&whole, "c", "hookspan.hooks_left_out").1, None);
}

#[test]
fn versions_said_by_turns_do_not_tell_settled_turns_again() {
    let shape = SHAPES.iter().find(|shape| shape.name == "versions of Cursor by turns").unwrap();
    let work = HOOKS.map(|count| {
        let hooks = (shape.hooks)(count);
        let (cost, _) = shapes::cost(&hooks, BATCH, Sessions::new(Config::default()));
        cost.work as f64 / cost.hooks as f64
    });
    assert!(work[1] < work[0] * 1.2 && work[1] < 10.0, "{work:?} for each hook");
}

#[test]
fn the_version_of_a_session_is_the_last_new_one_in_whatever_order_hooks_come() {
    let version = |at: u64, version: &str| {
        hook(at, "afterAgentThought", "c", json!({"text": "hm", "cursor_version": version}))
    };
    let mut hooks: Vec<Hook> = (0..40)
        .map(|at| version(at, ["3.0.1", "3.1.4"][usize::from(at >= 9 && at % 2 == 0)]))
        .collect();
    let forward = support::fold(Config::default(), &hooks, 3);
    hooks.reverse();
    let backward = support::fold(Config::default(), &hooks, 3);
    for store in [forward, backward] {
        let versions = store.spans.values().map(|span| span.cursor_version.clone().unwrap());
        assert!(versions.into_iter().all(|version| *version == *"3.1.4"));
    }
}

#[test]
fn children_beyond_twice_the_bound_of_conversations_are_left_out_and_counted() {
    let mut hooks = vec![hook(0, "beforeSubmitPrompt", "root", json!({"prompt": "go"}))];
    hooks.extend((1..2 * MAX_CONVERSATIONS as u64 + 2_000).map(|at| {
        let child = format!("child-{at}");
        let path = format!("/t/root/subagents/{child}.jsonl");
        let more = json!({"tool_name": "Read", "tool_use_id": "t", "transcript_path": path});
        hook(at, "preToolUse", &child, more)
    }));
    let (cost, sessions) = shapes::cost(&hooks, 500, Sessions::new(Config::default()));
    assert_eq!(cost.held, 2 * MAX_CONVERSATIONS);
    assert_eq!(sessions.left_out(), hooks.len() as u64 - cost.held as u64);
}

#[test]
fn a_name_of_a_megabyte_in_any_field_is_cut_before_the_fold_holds_it() {
    let fields = [
        "conversation_id",
        "generation_id",
        "hook_event_name",
        "model",
        "cursor_version",
        "transcript_path",
        "user_email",
        "tool_name",
        "tool_use_id",
        "command",
        "cwd",
        "file_path",
        "subagent_id",
        "subagent_type",
        "task",
        "text",
        "prompt",
        "status",
        "reason",
        "trigger",
    ];
    let events = [
        "preToolUse",
        "subagentStart",
        "beforeShellExecution",
        "beforeReadFile",
        "afterAgentThought",
        "stop",
        "preCompact",
        "sessionEnd",
        "afterNobodyKnows",
    ];
    let mut wrong = Vec::new();
    for field in fields {
        let long = format!("{field} {}", "x".repeat(1 << 20));
        let hooks: Vec<Hook> = (0..)
            .zip(events)
            .map(|(at, event)| {
                let mut fields = json!({"tool_name": "Read", "tool_use_id": "t"});
                fields[field] = long.clone().into();
                hook(at, event, "c", fields)
            })
            .collect();
        let store = support::fold(Config::default(), &hooks, 3);
        let told = format!("{:?}{:?}{:?}", store.spans, store.sessions, store.turns);
        // Nine hooks make few spans, with ids of 512 bytes and paths of 4 KiB.
        if told.len() >= 128 << 10 {
            wrong.push(format!("{field}: {} bytes", told.len()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
