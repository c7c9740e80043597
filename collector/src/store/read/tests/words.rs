use hookspan_core::{Change, ErrorType, SessionState, SessionSummary, SpanKind, Status, Timestamp};
use hookspan_view::line::Outcome;
use hookspan_view::outcome::OutcomeFilter;
use hookspan_view::source::{LineFilter, MarkChange, SessionFilter};

use super::{roots, session_at, stored};
use crate::store::read::{lines, sessions};
use crate::store::{marks, sample};

/// Sessions in every combination of what an outcome is made from.
fn outcomes() -> Vec<SessionSummary> {
    let commit = |yes: bool| if yes { vec!["2b".into()] } else { Vec::new() };
    let mut all = Vec::new();
    for bits in 0_u32..512 {
        let is = |bit: u32| bits & (1 << bit) != 0;
        let mut session = sample::session(&format!("s{bits:03}"));
        session.last_at = Timestamp(i64::from(bits));
        session.state = if is(0) { SessionState::Running } else { SessionState::YourTurn };
        session.generations = u64::from(is(1));
        session.work.edits = u64::from(is(2));
        session.work.unclear = u64::from(is(3));
        session.work.pull_request = is(4).then(|| "https://git.example/o/r/pull/1".into());
        let last_test = hookspan_core::outcome::TestRun { at: Timestamp(1), passed: is(8) };
        session.work.last_test = is(7).then_some(last_test);
        session.repository = (is(5) || is(6)).then(|| {
            let seen = hookspan_core::repository::Repository {
                commit: is(5).then(|| "1a".into()),
                commits: commit(is(6)),
                ..Default::default()
            };
            Box::new(seen)
        });
        all.push(session);
    }
    all
}

#[test]
fn the_word_outcome_finds_the_sessions_that_have_it() {
    let all = outcomes();
    let changes = all.iter().map(|one| Change::Session(Box::new(one.clone())));
    let (_dir, _store, readers) = stored(changes);
    for word in OutcomeFilter::ALL {
        let spans = LineFilter { outcome: Some(word), ..LineFilter::default() };
        let filter = SessionFilter { spans, ascending: true, ..SessionFilter::default() };
        let found = readers.with(|db| sessions(db, &filter, None, 1_000)).unwrap();
        let found: Vec<_> = found.iter().map(|one| &*one.root).collect();
        let has = |one: &&SessionSummary| match word {
            OutcomeFilter::Word(word) => one.outcome().contains(&word),
            OutcomeFilter::None => one.outcome().is_empty(),
        };
        let wanted: Vec<_> = all.iter().filter(has).map(|one| &*one.root).collect();
        assert!(!wanted.is_empty() && wanted.len() < all.len(), "{word:?}");
        assert_eq!(found, wanted, "{word:?}");
    }
}

#[test]
fn none_finds_what_has_no_project_model_branch_or_tag() {
    let mut bare = sample::session("bare");
    (bare.workspace, bare.model, bare.repository) = (None, None, None);
    let full = sample::session("full");
    let changes = [&bare, &full].map(|one| Change::Session(Box::new(one.clone())));
    let turn = Change::Turn(Box::new(sample::turn("full")));
    let (dir, _store, readers) = stored(changes.into_iter().chain([turn]));
    let path = dir.path().join("hookspan.db");
    let tagged = [MarkChange::tag("Later").unwrap(), MarkChange::Star(true)];
    marks::change(&path, "full", &tagged).unwrap();
    let found = |word: &str, value: &str| {
        let mut spans = LineFilter::default();
        assert_eq!(spans.set(word, value), Ok(true));
        roots(&readers, &SessionFilter { spans, ..SessionFilter::default() }, None)
    };
    for (word, value) in [
        ("project", "project"),
        ("model", "model-x"),
        ("branch", "FIX/a"),
        ("tag", "later"),
        ("starred", "yes"),
    ] {
        assert_eq!(found(word, value), ["full"], "{word}");
    }
    for word in ["project", "model", "branch", "tag"] {
        assert_eq!(found(word, "none"), ["bare"], "{word}");
        assert_eq!(found(word, "other"), Vec::<String>::new(), "{word}");
    }
}

#[test]
fn the_failure_of_a_subagent_counts_once() {
    let failed = |key: &str, kind: SpanKind| {
        let mut span = sample::span("r", key);
        span.kind = kind;
        let message = "subagent failed".to_owned();
        span.status = Status::Error { kind: ErrorType::SubagentError, message };
        Change::Span(Box::new(span))
    };
    let (_dir, _store, readers) = stored([
        failed("call", SpanKind::Tool),
        failed("agent", SpanKind::Subagent),
        session_at("r", 9),
    ]);
    let filter = LineFilter { failed: true, ..LineFilter::default() };
    let failures = readers.with(|db| lines::failures(db, &filter, 10)).unwrap();
    assert_eq!(failures.len(), 1);
    assert_eq!(readers.with(|db| lines::matching(db, &filter, None, 10)).unwrap().len(), 1);
    let lines = readers.with(|db| lines::of_session(db, "r", None, 100)).unwrap();
    let lines: Vec<_> = lines.into_iter().map(|found| found.line).collect();
    assert_eq!(lines.iter().filter(|line| line.outcome == Outcome::Error).count(), 2);
    assert_eq!(lines.iter().filter(|line| line.is_failure()).count(), 1);
}
