//! The outcome of a session in plain words.

use hookspan_core::SessionSummary;
use hookspan_core::outcome::OutcomeWord;

/// Characters of a commit's name.
const COMMIT_CHARS: usize = 7;

/// The outcome of `session`, the most important word first: `tests failed`, `committed 1a2b3c4`. Empty if nothing is
/// known.
#[must_use]
pub fn words(session: &SessionSummary) -> Vec<String> {
    session.outcome().into_iter().map(|word| said(word, session)).collect()
}

fn said(word: OutcomeWord, session: &SessionSummary) -> String {
    match word {
        OutcomeWord::TestsFailed => "tests failed".to_owned(),
        OutcomeWord::TestsPassed => "tests passed".to_owned(),
        OutcomeWord::PullRequest => match pull_request_number(session) {
            Some(number) => format!("PR #{number}"),
            None => "PR".to_owned(),
        },
        OutcomeWord::Committed => {
            let commits = session.repository.as_ref().map(|seen| seen.commits.as_slice());
            let last = commits.and_then(<[_]>::last).map(|commit| &**commit).unwrap_or_default();
            format!("committed {}", last.chars().take(COMMIT_CHARS).collect::<String>())
        }
        OutcomeWord::LeftOpen => "not committed".to_owned(),
        OutcomeWord::Unchanged => "nothing changed".to_owned(),
    }
}

fn pull_request_number(session: &SessionSummary) -> Option<&str> {
    let number = session.work.pull_request.as_deref()?.rsplit('/').next()?;
    Some(number).filter(|number| number.bytes().all(|b| b.is_ascii_digit()))
}
