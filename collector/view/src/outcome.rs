//! The outcome of a session in plain words.

use hookspan_core::SessionSummary;
use hookspan_core::outcome::OutcomeWord;

use crate::word::NONE;

/// Characters of a commit's name.
const COMMIT_CHARS: usize = 7;

/// A value of the filter word `outcome`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeFilter {
    /// The session has this word.
    Word(OutcomeWord),
    /// The session has no word.
    None,
}

impl OutcomeFilter {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Word(OutcomeWord::TestsFailed),
        Self::Word(OutcomeWord::TestsPassed),
        Self::Word(OutcomeWord::PullRequest),
        Self::Word(OutcomeWord::Committed),
        Self::Word(OutcomeWord::LeftOpen),
        Self::Word(OutcomeWord::Unchanged),
        Self::None,
    ];

    /// The word in a filter.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Word(word) => word.as_str(),
            Self::None => NONE,
        }
    }

    /// The inverse of [`Self::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }
}

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
