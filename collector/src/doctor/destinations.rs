//! Checks of the destinations: their state, and whether they can be reached now.

use super::Finding;
use crate::config::Global;
use crate::config::destination;
use crate::export::probe::{self, Step};
use crate::status::{self, Status};
use crate::text;

/// Tries all configured destinations at once, and judges each by its state and by the result. If the configuration is
/// wrong, that was reported before.
pub(super) fn examine(global: &Global, status: &Status) -> Vec<Finding> {
    let configured =
        global.config().ok().and_then(|config| destination::all(&config, &global.env).ok());
    let configured = configured.unwrap_or_default();
    let probed = std::thread::scope(|scope| {
        let running: Vec<_> =
            configured.iter().map(|one| scope.spawn(|| probe::probe(one))).collect();
        // A probe that panicked has no result.
        running.into_iter().map(|one| one.join().unwrap_or_default()).collect::<Vec<_>>()
    });
    let steps = |name: &str| {
        configured.iter().zip(&probed).find(|(one, _)| one.name == name).map(|(_, steps)| &**steps)
    };
    let states = status.destinations.iter().filter(|one| one.state != "off");
    states.map(|one| judge(one, steps(&one.name).unwrap_or_default())).collect()
}

fn judge(one: &status::Destination, steps: &[Step]) -> Finding {
    let failed = steps.iter().find(|step| !step.ok);
    let name = &one.name;
    let delivered = text::count(one.delivered);
    if one.stopped {
        let what = format!("{name}: paused by hand, {} spans wait", text::count(one.pending));
        return Finding::warning(
            "export.stopped",
            what,
            format!("hookspan destinations resume {name}"),
        );
    }
    if let Some(step) = failed {
        let waiting = text::count(one.pending);
        let what = format!("{name}: {}: {}; {waiting} spans wait", step.step, step.what);
        let remedy = step.advice.clone().unwrap_or_else(|| retry(name));
        return Finding::problem("export.unreachable", text::visible(&what, 300), remedy);
    }
    let error = one.last_error.as_deref().unwrap_or("no details");
    match one.state.as_str() {
        "paused" => {
            let waiting = text::count(one.pending);
            let what = format!("{name}: paused, {waiting} spans wait: {error}");
            let advice = one.advice.clone().unwrap_or_else(|| retry(name));
            Finding::problem("export.paused", text::visible(&what, 300), advice)
                .meaning("nothing is sent to it")
        }
        _ if one.losing => {
            let lost: u64 = one.lost.values().sum();
            let loss = one.last_loss.as_deref().unwrap_or_default();
            let what =
                format!("{name}: {} spans lost, {delivered} delivered: {loss}", text::count(lost));
            Finding::problem("export.losing", text::visible(&what, 300), retry(name))
                .meaning("these spans are in the database, but not at the destination")
        }
        _ if one.has_no_metrics() => {
            let metrics = one.metrics.as_ref();
            let error = metrics.and_then(|own| own.last_error.as_deref()).unwrap_or("no details");
            let what =
                format!("{name}: {delivered} delivered, but it does not accept metrics: {error}");
            let advice = metrics.and_then(|own| own.advice.clone());
            let advice = advice.unwrap_or_else(|| retry(name));
            Finding::problem("export.metrics", text::visible(&what, 300), advice)
        }
        "retry" => {
            let what = format!("{name}: the last attempt failed: {error}");
            let remedy = "nothing to do: hookspan tries again by itself";
            Finding::warning("export.retry", text::visible(&what, 300), remedy)
        }
        state => {
            Finding::ok("export.fine", format!("{name}: {state}, reachable, {delivered} delivered"))
        }
    }
}

fn retry(name: &str) -> String {
    format!("`hookspan destinations test {name}` tests each step")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn a_destination_is_judged_by_its_state_and_by_what_a_probe_found() {
        let one = |state: &str, losing, stopped| status::Destination {
            name: "a".to_owned(),
            state: state.to_owned(),
            losing,
            stopped,
            last_error: Some("HTTP 401: no".to_owned()),
            ..status::Destination::default()
        };
        let step = |ok| Step {
            step: "connection",
            ok,
            what: "refused".to_owned(),
            advice: Some("start it".to_owned()),
            took_ms: 1,
        };
        let level =
            |destination: &status::Destination, ok| judge(destination, &[step(ok)]).severity;
        assert_eq!(level(&one("ok", false, false), true), Severity::Ok);
        assert_eq!(level(&one("new", false, false), true), Severity::Ok);
        assert_eq!(level(&one("ok", false, false), false), Severity::Problem);
        assert_eq!(level(&one("ok", true, false), true), Severity::Problem);
        assert_eq!(level(&one("retry", false, false), true), Severity::Warning);
        assert_eq!(level(&one("paused", false, false), true), Severity::Problem);
        assert_eq!(level(&one("paused", false, true), false), Severity::Warning);
        let found = judge(&one("ok", false, false), &[step(true), step(false)]);
        assert_eq!(found.what, "a: connection: refused; 0 spans wait");
        assert_eq!(found.remedy.as_deref(), Some("start it"));
    }
}
