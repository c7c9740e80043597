//! Tests that need something this machine may not have.

use std::env;

/// Prints to standard error why a test did nothing. In CI (`CI=true`) a skip is a failure: the gate has installed
/// everything, and a skip would hide that something is missing.
#[track_caller]
pub fn skip(test: &str, reason: &str) {
    assert!(!in_ci(), "{test} was skipped, which CI forbids: {reason}");
    announce(test, reason);
}

/// Says why an extra check was left out, even in CI, because the check needs a recording that cannot be published.
pub fn announce(test: &str, reason: &str) {
    eprintln!("SKIPPED {test}: {reason}");
}

/// Whether the gate is running the tests.
#[must_use]
pub fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true")
}
