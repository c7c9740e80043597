//! The whole way of one session.

use e2e_support::collector::Collector;
use e2e_support::fixture::Fixture;
use e2e_support::wait::{SOON, eventually};
use e2e_support::world::World;
use e2e_support::{player, skip, verify};

#[test]
fn a_session_played_through_the_shim_comes_out_right_everywhere() {
    play_into_a_running_collector(&Fixture::own());
}

#[test]
fn a_recorded_session_played_through_the_shim_comes_out_right_everywhere() {
    match Fixture::recorded() {
        Ok(fixture) => play_into_a_running_collector(&fixture),
        Err(reason) => skip::announce("the replay of a recording", &reason),
    }
}

#[test]
fn import_and_rebuild_give_the_spans_of_the_live_session() {
    import_and_rebuild(&Fixture::own());
}

#[test]
fn import_and_rebuild_give_the_spans_of_the_live_session_for_a_recording() {
    match Fixture::recorded() {
        Ok(fixture) => import_and_rebuild(&fixture),
        Err(reason) => skip::announce("the import of a recording", &reason),
    }
}

#[test]
fn up_installs_the_hooks_and_serves_without_a_question() {
    let world = World::new();
    let collector = Collector::up(&world, &["--yes"]);
    let hooks = world.home().join(".cursor/hooks.json");
    assert!(hooks.exists(), "no hooks\n{}", world.describe());
    let fixture = Fixture::own().settle_in(&world);
    player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    verify::list_is_right(&world, &fixture);
}

#[test]
fn show_draws_the_session_in_the_terminal() {
    let world = World::new();
    let fixture = Fixture::own().settle_in(&world);
    world.ok(&["import", fixture.path.to_str().unwrap()]);
    let shown = world.ok(&["show", "last"]);
    for part in ["explore", "Shell", "lamp.rs", "package.json"] {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
    assert!(!shown.contains('\u{1b}'), "escape sequences without a terminal:\n{shown}");
    let beginning = &fixture.text("root")[..8];
    assert_eq!(world.ok(&["show", beginning]), shown, "the beginning of an id is enough");
}

#[test]
fn the_raw_log_holds_every_payload_byte_for_byte_and_imports_elsewhere() {
    let (first, second) = (World::new(), World::new());
    let fixture = Fixture::own().settle_in(&first);
    let collector = Collector::start(&first);
    player::play(&first, &fixture);
    collector.committed(fixture.bodies.len());
    let played: Vec<_> = fixture.bodies.iter().map(|body| body.bytes.clone()).collect();
    assert_eq!(verify::raw_bodies(&first), played);

    let log = verify::export_log(&first);
    second.ok(&["import", log.to_str().unwrap()]);
    assert_eq!(verify::raw_bodies(&second), played);
    verify::places_are_equal(&verify::exported(&second), &verify::exported(&first));
}

#[test]
fn sigterm_ends_the_collector_within_a_second_of_work() {
    let world = World::new();
    let fixture = Fixture::own().settle_in(&world);
    let collector = Collector::start(&world);
    player::play(&world, &fixture);
    let (status, took) = collector.stop();
    assert_eq!(status.code(), Some(0));
    // Ten times the promised time, because this machine may be busy with other tests.
    assert!(took.as_secs() < 10, "it took {took:?}");
    Collector::start(&world).committed(fixture.bodies.len());
}

fn play_into_a_running_collector(fixture: &Fixture) {
    let world = World::new();
    let fixture = fixture.settle_in(&world);
    let collector = Collector::start(&world);
    player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    wait_for_the_last_answer(&world);
    let spans = verify::session_is_right(&world, &fixture);
    verify::api_is_right(&collector, &fixture, &spans);
    let status = world.json(&["status", "--json"]);
    assert_eq!(status["running"], true, "{status:#}");
    assert_eq!(status["backlog"], 0, "{status:#}");
    assert_eq!(status["malformed"], 0, "{status:#}");
}

fn import_and_rebuild(fixture: &Fixture) {
    let live_world = World::new();
    let live = fixture.settle_in(&live_world);
    let collector = Collector::start(&live_world);
    player::play(&live_world, &live);
    collector.committed(live.bodies.len());
    wait_for_the_last_answer(&live_world);
    let live_spans = verify::exported(&live_world);

    // Imports exactly the bytes that were played, because a call without an id is identified by its input, and inputs
    // contain paths.
    let world = World::new();
    let file = live.path.to_str().unwrap();
    let events = fixture.number("events");
    let counts = world.json(&["import", file, "--json"]);
    assert_eq!((counts["new"].as_u64(), counts["duplicate"].as_u64()), (Some(events), Some(0)));
    assert_eq!(counts["malformed"], 0);
    let spans = verify::session_is_right(&world, &live);
    verify::places_are_equal(&spans, &live_spans);

    let again = world.json(&["import", file, "--json"]);
    assert_eq!((again["new"].as_u64(), again["duplicate"].as_u64()), (Some(0), Some(events)));

    let before = verify::otlp_json(&world);
    world.ok(&["rebuild"]);
    assert_eq!(verify::otlp_json(&world), before, "rebuild changed the export");
}

/// A child's proof is searched on disk a moment after its hooks. Waits until the tree is complete.
#[track_caller]
fn wait_for_the_last_answer(world: &World) {
    eventually("the turn has ended and the child is bound", SOON, || {
        let sessions = world.json(&["sessions", "--json"]);
        match sessions[0]["state"].as_str() {
            Some("your_turn") if sessions.as_array().map(Vec::len) == Some(1) => Ok(()),
            _ => Err(format!("{sessions:#}")),
        }
    });
    eventually("the transcript proves whose child it is", SOON, || {
        let spans = verify::exported(world);
        let subagent = spans.iter().find(|span| span.kind() == "subagent");
        match subagent.map(|span| span.attribute("hookspan.subagent.link")) {
            Some("transcript") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}
