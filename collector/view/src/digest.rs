//! Sums up what was done in a period, by project. Its figures come from sums by day and from the outcomes of turns.

use std::collections::BTreeMap;

use hookspan_core::price::{Estimate, Prices};

use crate::source::{DayTime, ProjectWork};

/// Maximum number of listed projects. The others count only in the total.
pub const PROJECTS_MAX: usize = 50;

/// A period in figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Digest {
    /// All projects together.
    pub total: Done,
    /// Projects, most active first, at most [`PROJECTS_MAX`].
    pub projects: Vec<Done>,
    /// Projects that are not listed.
    pub more: u64,
}

/// What was done in a project, in finished turns that began in the period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// `None` if Cursor named no workspace, and in the total.
    pub project: Option<String>,
    /// Sessions with such a turn.
    pub sessions: u64,
    /// Turns.
    pub turns: u64,
    /// Tool calls.
    pub calls: u64,
    /// Spans with status error.
    pub errors: u64,
    /// Time inside turns, nanoseconds.
    pub active_ns: i64,
    /// The part of `active_ns` in which a person may have been asked for approval.
    pub wait_ns: i64,
    /// Edits.
    pub edits: u64,
    /// Test runs that passed.
    pub tests_passed: u64,
    /// Test runs that failed.
    pub tests_failed: u64,
    /// Commits.
    pub commits: u64,
    /// Pull requests.
    pub pull_requests: u64,
    /// Input tokens including cached ones; `None` if no turn reported any.
    pub input: Option<u64>,
    /// Output tokens; `None` if no turn reported any.
    pub output: Option<u64>,
    /// What the tokens cost; `None` without prices or tokens.
    pub cost: Option<Estimate>,
}

impl Digest {
    /// The digest of a period, from its sums by day and its work by project.
    #[must_use]
    pub fn of(times: &[DayTime], work: Vec<ProjectWork>, prices: &Prices) -> Self {
        let mut projects: BTreeMap<Option<String>, Done> = BTreeMap::new();
        for day in times {
            let done = projects.entry(day.project.clone()).or_default();
            done.turns += day.turns;
            done.calls += day.calls;
            done.errors += day.errors;
            done.active_ns = done.active_ns.saturating_add(day.active_ns);
            done.wait_ns = done.wait_ns.saturating_add(day.parts.wait);
            done.input = sum(done.input, day.input);
            done.output = sum(done.output, day.output);
        }
        for one in work {
            let done = projects.entry(one.project).or_default();
            done.sessions += one.sessions;
            done.edits += one.edits;
            done.tests_passed += one.tests_passed;
            done.tests_failed += one.tests_failed;
            done.commits += one.commits;
            done.pull_requests += one.pull_requests;
            let costs = one
                .usage
                .iter()
                .filter_map(|(model, usage)| prices.estimate(model.as_deref(), *usage));
            done.cost = costs.chain(done.cost).reduce(Estimate::plus);
        }
        let mut projects: Vec<Done> =
            projects.into_iter().map(|(project, done)| Done { project, ..done }).collect();
        projects.sort_by_key(|done| (core::cmp::Reverse(done.active_ns), done.project.clone()));
        let mut total = Done::default();
        projects.iter().for_each(|done| total.add(done));
        let more = projects.len().saturating_sub(PROJECTS_MAX) as u64;
        projects.truncate(PROJECTS_MAX);
        Self { total, projects, more }
    }
}

impl Done {
    fn add(&mut self, more: &Self) {
        self.sessions += more.sessions;
        self.turns += more.turns;
        self.calls += more.calls;
        self.errors += more.errors;
        self.active_ns = self.active_ns.saturating_add(more.active_ns);
        self.wait_ns = self.wait_ns.saturating_add(more.wait_ns);
        self.edits += more.edits;
        self.tests_passed += more.tests_passed;
        self.tests_failed += more.tests_failed;
        self.commits += more.commits;
        self.pull_requests += more.pull_requests;
        self.input = sum(self.input, more.input);
        self.output = sum(self.output, more.output);
        self.cost = [self.cost, more.cost].into_iter().flatten().reduce(Estimate::plus);
    }
}

fn sum(one: Option<u64>, more: Option<u64>) -> Option<u64> {
    match (one, more) {
        (Some(one), Some(more)) => Some(one.saturating_add(more)),
        (one, more) => one.or(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_work_of_a_project_come_together_and_the_total_has_all() {
        let day = |project: &str, day, active_ns, input| DayTime {
            project: Some(project.to_owned()),
            day,
            turns: 1,
            active_ns,
            input,
            ..DayTime::default()
        };
        let mut times =
            vec![day("web", 1, 5, None), day("web", 2, 7, Some(3)), day("api", 1, 100, None)];
        times.extend((0..60).map(|n| day(&format!("p{n}"), 1, 1, Some(1))));
        let work = ProjectWork {
            project: Some("web".to_owned()),
            sessions: 2,
            tests_failed: 1,
            ..ProjectWork::default()
        };
        let digest = Digest::of(&times, vec![work], &Prices::default());
        let names: Vec<_> =
            digest.projects.iter().take(2).map(|done| done.project.as_deref()).collect();
        assert_eq!(names, [Some("api"), Some("web")]);
        let web = &digest.projects[1];
        assert_eq!((web.turns, web.sessions, web.active_ns, web.input), (2, 2, 12, Some(3)));
        assert_eq!((digest.projects[0].input, digest.projects[0].cost), (None, None));
        assert_eq!((digest.projects.len(), digest.more), (PROJECTS_MAX, 12));
        assert_eq!(
            (digest.total.turns, digest.total.active_ns, digest.total.input),
            (63, 172, Some(63))
        );
    }
}
