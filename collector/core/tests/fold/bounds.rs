//! What a hook costs however many there are, and what the fold holds.

use hookspan_core::sessions::MAX_CONVERSATIONS;
use hookspan_core::{Config, Sessions};

use crate::shapes::{self, SHAPES};

/// More than a session at work has open at once, and three times as many.
const HOOKS: [usize; 2] = [2_000, 6_000];
/// Hooks between two polls.
const BATCH: usize = 10;
/// How much more a hook of the longer stream may take. It would be three times as much if each poll read all that is open.
const MOST: f64 = 1.8;

/// One of each kind; `examples/hostile.rs` measures all of them, and larger.
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

#[test]
fn no_stream_makes_the_fold_hold_more_than_its_bounds() {
    let config = Config { held_hooks: 400, session_hooks: 200, ..Config::default() };
    for shape in SHAPES {
        let hooks = (shape.hooks)(1_000);
        let (cost, _) = shapes::cost(&hooks, 50, Sessions::new(config.clone()));
        let room = config.held_hooks + config.held_hooks / 8;
        // A batch is filed before anybody can leave.
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
