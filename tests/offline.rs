//! Tests hooks that happen while no collector runs.

use e2e_support::collector::Collector;
use e2e_support::fixture::Fixture;
use e2e_support::world::World;
use e2e_support::{player, skip, verify};

#[test]
fn a_collector_started_afterwards_makes_the_same_session() {
    play_then_start(&Fixture::own());
}

#[test]
fn a_collector_started_afterwards_makes_the_same_session_of_a_recording() {
    match Fixture::recorded() {
        Ok(fixture) => play_then_start(&fixture),
        Err(reason) => skip::announce("the late start with a recording", &reason),
    }
}

#[test]
fn hooks_between_two_collectors_continue_the_session() {
    let world = World::new();
    let fixture = Fixture::own().settle_in(&world);
    let (before, rest) = fixture.bodies.split_at(20);
    let (away, after) = rest.split_at(20);
    let collector = Collector::start(&world);
    before.iter().for_each(|body| player::play_one(&world, body));
    collector.committed(before.len());
    drop(collector);
    away.iter().for_each(|body| player::play_one(&world, body));
    let collector = Collector::start(&world);
    after.iter().for_each(|body| player::play_one(&world, body));
    collector.committed(fixture.bodies.len());
    verify::session_is_right(&world, &fixture);
}

#[test]
fn sessions_and_export_work_without_a_collector() {
    let world = World::new();
    let fixture = Fixture::own().settle_in(&world);
    let collector = Collector::start(&world);
    player::play(&world, &fixture);
    collector.committed(fixture.bodies.len());
    let running = verify::otlp_json(&world);
    drop(collector);
    assert_eq!(verify::otlp_json(&world), running);
    verify::list_is_right(&world, &fixture);
    assert_eq!(world.json(&["status", "--json"])["running"], false);
}

fn play_then_start(fixture: &Fixture) {
    let world = World::new();
    let fixture = fixture.settle_in(&world);
    player::play(&world, &fixture);
    let collector = Collector::start(&world);
    collector.committed(fixture.bodies.len());
    verify::session_is_right(&world, &fixture);
}
