//! Compares every endpoint, command and export with an independent model of the truth.

use e2e_support::oracle::run::{Plan, run};

#[test]
fn every_figure_is_right_and_the_same_wherever_it_stands() {
    // Every way into the store: in order, and with jitter and duplicates. The campaign runs more seeds.
    let plan = Plan { first: 1, seeds: 16, chunk: 16 };
    let found = run(plan, |_, _| ());
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}
