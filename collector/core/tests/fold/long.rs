//! Sessions longer than the fold's memory: settled turns are evicted, and the numbers stay right.

use hookspan_core::sessions::TraceMode;
use hookspan_core::{Config, Hook, Timestamp};
use serde_json::json;

use crate::shapes::{self, SHAPES};
use crate::support::{Player, Store, render};

/// Keeps so few hooks that a short session already counts as a long one.
fn few() -> Config {
    Config { settled_hooks: 16, ..Config::default() }
}

/// Plays hooks in batches, letting time pass between them.
fn play(config: Config, hooks: &[Hook], batch: usize) -> (Store, usize, u64) {
    let mut player = Player::new(config);
    let mut held = 0;
    for chunk in hooks.chunks(batch) {
        // Time passes even while no hook arrives.
        player.pass(chunk[0].observed_at.plus(-1_000_000_000));
        player.feed(chunk);
        let last = chunk.iter().map(|hook| hook.observed_at).max().unwrap_or_default();
        player.pass(last.plus(-250_000_000));
        held = held.max(player.held());
    }
    let reloads = player.reloads();
    let store = player.finish();
    store.check();
    (store, held, reloads)
}

#[track_caller]
fn same(one: &Store, other: &Store) {
    assert_eq!(render(one), render(other));
    assert!(one.spans == other.spans && one.turns == other.turns);
    assert_eq!(one.sessions, other.sessions);
}

const LONG: [&str; 3] = [
    "turns of a long session",
    "turns of a long session, without generations",
    "turns of a long session, each with a subagent",
];

#[test]
fn a_session_that_leaves_memory_turn_by_turn_has_the_same_spans_turns_and_totals() {
    for shape in SHAPES.iter().filter(|shape| LONG.contains(&shape.name)) {
        let hooks = (shape.hooks)(1_600);
        let (whole, all, _) = play(Config::default(), &hooks, 1_600);
        assert!(all >= 1_500, "{}: {all}", shape.name);
        for batch in [1, 7, 50, 400] {
            let (left, held, reloads) = play(few(), &hooks, batch);
            same(&whole, &left);
            assert_eq!(reloads, 0, "{}", shape.name);
            // At most the configured number of hooks, one batch, and one entry for each turn.
            let turns = left.turns.len();
            assert!(held <= 32 + 2 * batch + turns + 32, "{}: {held} by {batch}", shape.name);
        }
    }
}

/// Maximum number of characters that an old evicted turn takes in a printout of the fold. A byte takes four characters;
/// the key of a turn, a call or a child takes 22. A turn with its facts in memory takes about 5,000.
const MOST_WRITTEN: usize = 300;

#[test]
fn a_turn_that_left_long_ago_takes_next_to_nothing() {
    let mut wrong = Vec::new();
    for shape in SHAPES.iter().filter(|shape| LONG.contains(&shape.name)) {
        let hooks = (shape.hooks)(9_600);
        let mut player = Player::new(Config { settled_hooks: 512, ..Config::default() });
        let (mut written, mut turns) = (Vec::new(), Vec::new());
        for (at, chunk) in hooks.chunks(40).enumerate() {
            player.feed(chunk);
            player.pass(chunk[chunk.len() - 1].observed_at.plus(-250_000_000));
            if at % 6 == 5 {
                written.push(player.written());
                turns.push(player.store.turns.len());
            }
        }
        // The number of evicted facts varies from batch to batch, so means over many batches are compared.
        let middle = |list: &[usize]| list.iter().sum::<usize>() / list.len();
        let quarter = written.len() / 4;
        let (early, late) = (quarter..2 * quarter, 3 * quarter..written.len());
        let grown = middle(&written[late.clone()]).saturating_sub(middle(&written[early.clone()]));
        let each = grown / (middle(&turns[late]) - middle(&turns[early]));
        if each > MOST_WRITTEN {
            wrong.push(format!("{}: {each} for each turn, {written:?}", shape.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_session_that_is_one_trace_leaves_memory_the_same_way() {
    for shape in SHAPES.iter().filter(|shape| LONG.contains(&shape.name)) {
        let hooks = (shape.hooks)(480);
        let in_one = |config: Config| Config { trace_mode: TraceMode::Session, ..config };
        let (whole, ..) = play(in_one(Config::default()), &hooks, 10);
        let (left, ..) = play(in_one(few()), &hooks, 10);
        same(&whole, &left);
    }
}

#[test]
fn late_hooks_of_turns_that_left_memory_do_what_they_do_in_a_short_session() {
    for shape in SHAPES.iter().filter(|shape| LONG.contains(&shape.name)) {
        let mut hooks = (shape.hooks)(400);
        let last = hooks.last().unwrap().observed_at;
        let named = shape.name != LONG[1];
        let late = |number: u64, turn: usize, name: &str, more: serde_json::Value| {
            let generation = if named { format!("g{turn}") } else { String::new() };
            let mut body = json!({"hook_event_name": name, "conversation_id": "c",
                "generation_id": generation, "workspace_roots": ["/w/app"]});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Hook {
                seq: 10_000 + number,
                observed_at: last.plus(number as i64 * 1_000_000_000),
                body: body.to_string().into_bytes(),
                ..Hook::default()
            }
        };
        let call = |id: &str| json!({"tool_name": "Read", "tool_use_id": id, "duration": 2});
        hooks.push(late(1, 2, "postToolUse", call("t2-1")));
        hooks.push(late(2, 5, "postToolUse", call("t5-0")));
        if named {
            hooks.push(late(3, 3, "postToolUse", call("never-begun")));
            hooks.push(late(4, 3, "stop", json!({"status": "completed", "input_tokens": 99})));
        }
        if shape.name == LONG[2] {
            let body = json!({"hook_event_name": "postToolUse", "conversation_id": "child-4",
                "generation_id": "cg", "workspace_roots": ["/w/app"], "tool_name": "Read",
                "tool_use_id": "of a child"});
            hooks.push(Hook { body: body.to_string().into_bytes(), ..late(5, 4, "", json!({})) });
        }
        let (whole, ..) = play(Config::default(), &hooks, 10);
        for batch in [1, 10, 90] {
            let (left, _, reloads) = play(few(), &hooks, batch);
            same(&whole, &left);
            assert!(reloads > 0, "{}", shape.name);
        }
    }
}

#[test]
fn a_hook_out_of_order_finds_its_turn_though_that_has_left() {
    let mut hooks = shapes::long_session(400);
    let moved = hooks.remove(83);
    hooks.push(Hook { seq: 9_000, ..moved });
    let (whole, ..) = play(Config::default(), &hooks, 10);
    let (left, _, reloads) = play(few(), &hooks, 10);
    same(&whole, &left);
    assert_eq!(reloads, 1);
}

/// A prompt one second after the end of the session belongs to the ended session.
#[test]
fn a_session_that_is_ended_and_goes_on_at_once_leaves_memory_as_well() {
    let mut hooks = shapes::long_session(800);
    let ends: Vec<Hook> = hooks
        .iter()
        .skip(40)
        .step_by(40)
        .map(|prompt| Hook {
            observed_at: prompt.observed_at.plus(-1_000_000_000),
            body: json!({"hook_event_name": "sessionEnd", "conversation_id": "c",
                "reason": "closed", "workspace_roots": ["/w/app"]})
            .to_string()
            .into_bytes(),
            ..Hook::default()
        })
        .collect();
    hooks.extend(ends);
    hooks.sort_by_key(|hook| hook.observed_at);
    for (hook, seq) in hooks.iter_mut().zip(1..) {
        hook.seq = seq;
    }
    let (whole, ..) = play(Config::default(), &hooks, 10);
    for batch in [1, 10, 90] {
        let (left, held, _) = play(few(), &hooks, batch);
        same(&whole, &left);
        assert!(held < 120 + 2 * batch, "{held} by {batch}");
    }
}

/// The fold evicts a session that is idle for an hour. Its next hook causes a replay of its history, which is longer
/// than what the fold keeps.
#[test]
fn a_long_session_that_comes_back_after_hours_counts_every_turn_once() {
    for shape in SHAPES.iter().filter(|shape| LONG.contains(&shape.name)) {
        let mut hooks = (shape.hooks)(480);
        for from in [160, 320] {
            let later =
                |hook: &mut Hook| hook.observed_at = hook.observed_at.plus(10_800_000_000_000);
            hooks[from..].iter_mut().for_each(later);
        }
        let (whole, ..) = play(Config::default(), &hooks, 10);
        let (left, held, _) = play(few(), &hooks, 10);
        assert!(whole.forgotten.len() >= 2 && left.forgotten.len() >= 2, "{}", shape.name);
        same(&whole, &left);
        assert!(held < 160, "{}: {held}", shape.name);
    }
}

/// An old recording is imported while a long session continues. The recording's hooks are older than the session's
/// history.
#[test]
fn a_long_history_lets_no_time_pass_for_other_sessions() {
    let mut hooks = (SHAPES.iter().find(|shape| shape.name == LONG[0]).unwrap().hooks)(480);
    let back = hooks.split_off(470);
    let first = hooks[0].observed_at;
    let old = |second: i64, name: &str, more: serde_json::Value| {
        let mut body =
            json!({"hook_event_name": name, "conversation_id": "old", "generation_id": "o"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let observed_at = first.plus(-1_000_000_000_000 + second * 1_000_000_000);
        Hook { observed_at, body: body.to_string().into_bytes(), ..Hook::default() }
    };
    let call =
        json!({"tool_name": "Read", "tool_use_id": "t", "tool_input": {"file_path": "/old"}});
    let story = |config: Config, goes_on: bool| {
        let mut player = Player::new(config);
        let mut seq = 0;
        let mut feed = |player: &mut Player, hooks: &[Hook]| {
            let number = |hook: &Hook| {
                seq += 1;
                Hook { seq, ..hook.clone() }
            };
            player.feed(&hooks.iter().map(number).collect::<Vec<_>>());
        };
        feed(&mut player, &hooks);
        player.pass(first.plus(86_400_000_000_000));
        assert!(player.held() == 0, "{} held", player.held());
        let prompt = old(0, "beforeSubmitPrompt", json!({"prompt": "long ago"}));
        let stop = old(10, "stop", json!({"status": "completed"}));
        feed(&mut player, &[prompt, stop, back[0].clone()]);
        let unsettled =
            player.store.spans.values().filter(|span| &*span.root == "old" && !span.settled);
        assert!(unsettled.count() > 0, "its turn may still change");
        if goes_on {
            feed(&mut player, &[old(11, "preToolUse", call.clone())]);
        }
        feed(&mut player, &back[1..2]);
        player.finish()
    };
    for goes_on in [true, false] {
        same(&story(Config::default(), goes_on), &story(few(), goes_on));
    }
}

#[test]
fn a_long_session_goes_on_after_a_restart() {
    for shape in SHAPES.iter().filter(|shape| LONG.contains(&shape.name)) {
        let hooks = (shape.hooks)(600);
        let (whole, ..) = play(Config::default(), &hooks, 10);
        let mut player = Player::new(few());
        let (before, after) = hooks.split_at(333);
        for (part, restarts) in [(before, true), (after, false)] {
            for chunk in part.chunks(10) {
                player.feed(chunk);
                player.pass(Timestamp(chunk[chunk.len() - 1].observed_at.0 - 250_000_000));
            }
            if restarts {
                player.restart();
            }
        }
        same(&whole, &player.finish());
    }
}
