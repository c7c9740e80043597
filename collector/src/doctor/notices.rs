//! Checks whether notices about agents can be sent.

use super::Finding;
use crate::config::Global;
use crate::notify::{Way, WayState};
use crate::status::Status;
use crate::text;

/// Judges each way that was used, if a way is configured.
pub(super) fn examine(global: &Global, status: &Status) -> Vec<Finding> {
    if global.config().is_ok_and(|config| config.notify.is_off()) {
        return Vec::new();
    }
    status.notices.iter().map(|(way, state)| judge(*way, state)).collect()
}

fn judge(way: Way, state: &WayState) -> Finding {
    let (way, sent) = (way.as_str(), text::count(state.sent));
    if state.failing == 0 {
        return Finding::ok("notices.fine", format!("notices: {way}: {sent} sent"));
    }
    let error = state.last_error.as_deref().unwrap_or("no details");
    let what = format!(
        "notices: {way}: the last {} failed, {sent} sent: {error}",
        text::count(state.failing)
    );
    Finding::warning(
        "notices.failing",
        text::visible(&what, 300),
        "correct [notify], then hookspan notify test",
    )
    .meaning("you are not told when an agent needs you")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn a_way_that_fails_is_a_warning_until_it_works_again() {
        let failed = WayState { sent: 3, failed: 2, failing: 2, ..WayState::default() };
        assert_eq!(judge(Way::Webhook, &failed).severity, Severity::Warning);
        assert_eq!(judge(Way::Webhook, &WayState { failing: 0, ..failed }).severity, Severity::Ok);
    }
}
