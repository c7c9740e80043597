//! What the collector saw of a workspace's Git repository. It is stored as a hook of [`crate::HookSource::Evidence`],
//! so a rebuild uses what was seen then and reads no repository.

use std::sync::Arc;

use crate::model::time::Timestamp;

/// Maximum number of commits kept per turn. The last ones are kept.
pub const MAX_COMMITS: usize = 32;

/// Which repository, branch and commit a workspace was at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryState {
    /// Address of the remote as a browser opens it: no credentials, no `.git`. `None`: the repository has no such
    /// remote.
    pub url: Option<Arc<str>>,
    /// Branch; `None` if no branch is checked out.
    pub branch: Option<Arc<str>>,
    /// Commit; `None` before the first one, or where it cannot be read.
    pub commit: Option<Arc<str>>,
    /// Commits in the repository's reflog since the turn began, the oldest first.
    pub commits: Vec<Arc<str>>,
}

/// The hook because of which the collector looked at the repository. What it saw belongs to the turn of that hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occasion {
    /// Conversation of the hook.
    pub conversation: Arc<str>,
    /// The hook's generation; empty if it has none.
    pub generation: Arc<str>,
    /// When it was received.
    pub at: Timestamp,
    /// Time since boot then.
    pub boottime_ns: Option<u64>,
}

impl RepositoryState {
    /// The body of the hook that carries this state.
    #[must_use]
    pub fn to_body(&self, occasion: &Occasion) -> Vec<u8> {
        let commits: Vec<&str> = self.commits.iter().map(|commit| &**commit).collect();
        serde_json::json!({
            "hook_event_name": "hookspan.repository",
            "conversation_id": &*occasion.conversation,
            "generation_id": &*occasion.generation,
            // The time makes two looks in one turn two different hooks, even if they saw the same.
            "at_ns": occasion.at.0,
            "url": self.url.as_deref(),
            "branch": self.branch.as_deref(),
            "commit": self.commit.as_deref(),
            "commits": commits,
        })
        .to_string()
        .into_bytes()
    }
}

/// The branch and commit at which a turn or a session began and ended, and the commits in between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repository {
    /// See [`RepositoryState::url`].
    pub url: Option<Arc<str>>,
    /// Branch at the start.
    pub from_branch: Option<Arc<str>>,
    /// Commit at the start.
    pub from_commit: Option<Arc<str>>,
    /// Branch at the end, or when it was last looked at.
    pub branch: Option<Arc<str>>,
    /// Commit at the end, or when it was last looked at.
    pub commit: Option<Arc<str>>,
    /// Commits made in between, the oldest first, at most [`MAX_COMMITS`]. A commit known only from a command's output
    /// is abbreviated.
    pub commits: Vec<Arc<str>>,
}

impl Repository {
    /// Combines states, from the first to the last. `told` are the commits that the output of commands names.
    #[must_use]
    pub fn of<'a>(
        states: impl IntoIterator<Item = &'a RepositoryState>,
        told: impl IntoIterator<Item = &'a Arc<str>>,
    ) -> Option<Self> {
        let mut states = states.into_iter();
        let mut found = states.next().map(|first| Self {
            url: first.url.clone(),
            from_branch: first.branch.clone(),
            from_commit: first.commit.clone(),
            branch: first.branch.clone(),
            commit: first.commit.clone(),
            commits: first.commits.clone(),
        });
        for state in states {
            let found = found.get_or_insert_default();
            found.url = state.url.clone().or(found.url.take());
            (found.branch, found.commit) = (state.branch.clone(), state.commit.clone());
            // The reflog counts whole seconds. It may therefore list the commit at the start, and commits before it,
            // again.
            let before =
                state.commits.iter().position(|one| found.from_commit.as_ref() == Some(one));
            let later = before.map_or(0, |at| at + 1);
            found.commits.extend(state.commits[later..].iter().cloned());
        }
        for commit in told {
            found.get_or_insert_default().commits.push(Arc::clone(commit));
        }
        if let Some(found) = &mut found {
            found.commits = distinct(std::mem::take(&mut found.commits));
        }
        found
    }

    /// Combines this state with a later one.
    #[must_use]
    pub fn then(self, later: Self) -> Self {
        let known = later.branch.is_some() || later.commit.is_some();
        let (branch, commit) =
            if known { (later.branch, later.commit) } else { (self.branch, self.commit) };
        let began = self.from_branch.is_some() || self.from_commit.is_some();
        let (from_branch, from_commit) = if began {
            (self.from_branch, self.from_commit)
        } else {
            (later.from_branch, later.from_commit)
        };
        let commits = distinct(self.commits.into_iter().chain(later.commits).collect());
        Self { url: later.url.or(self.url), from_branch, from_commit, branch, commit, commits }
    }
}

/// Each commit once, with its full name if that is known.
fn distinct(commits: Vec<Arc<str>>) -> Vec<Arc<str>> {
    let mut distinct: Vec<Arc<str>> = Vec::new();
    for commit in commits {
        let same = |other: &Arc<str>| other.starts_with(&*commit) || commit.starts_with(&**other);
        match distinct.iter_mut().find(|other| same(other)) {
            Some(known) if known.len() < commit.len() => *known = commit,
            Some(_) => {}
            None => distinct.push(commit),
        }
    }
    let more = distinct.len().saturating_sub(MAX_COMMITS);
    distinct.drain(..more);
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(branch: &str, commit: &str, commits: &[&str]) -> RepositoryState {
        RepositoryState {
            url: None,
            branch: Some(branch.into()),
            commit: Some(commit.into()),
            commits: commits.iter().map(|commit| Arc::from(*commit)).collect(),
        }
    }

    #[test]
    fn a_turn_goes_from_its_first_state_to_its_last_and_counts_a_commit_once() {
        let told: [Arc<str>; 2] = ["bbbb".into(), "dddd".into()];
        let states = [state("main", "aaaa", &[]), state("fix", "cccc", &["bbbb11", "cccc22"])];
        let found = Repository::of(&states, &told).unwrap();
        assert_eq!(found.from_branch.as_deref(), Some("main"));
        assert_eq!(found.branch.as_deref(), Some("fix"));
        let commits: Vec<&str> = found.commits.iter().map(|commit| &**commit).collect();
        assert_eq!(commits, ["bbbb11", "cccc22", "dddd"]);
        assert_eq!(Repository::of(&[], &[]), None);
    }

    #[test]
    fn a_session_goes_from_the_start_of_its_first_turn_to_the_end_of_its_last() {
        let one = Repository::of(&[state("main", "aaaa", &["aaaa"])], &[]).unwrap();
        let two = Repository::of(&[state("main", "bbbb", &["bbbb"])], &[]).unwrap();
        let blind = Repository::of(&[], &["cccc".into()]).unwrap();
        let whole = one.then(two).then(blind);
        assert_eq!(whole.from_commit.as_deref(), Some("aaaa"));
        assert_eq!(whole.commit.as_deref(), Some("bbbb"), "what was not looked at says nothing");
        assert_eq!(whole.commits.len(), 3);
    }

    #[test]
    fn what_was_committed_in_the_second_before_the_start_is_left_out() {
        let states = [state("main", "bbbb", &[]), state("main", "cccc", &["aaaa", "bbbb", "cccc"])];
        assert_eq!(Repository::of(&states, &[]).unwrap().commits, ["cccc".into()]);
        let states = [state("main", "bbbb", &[]), state("main", "bbbb", &["bbbb"])];
        assert_eq!(Repository::of(&states, &[]).unwrap().commits, [""; 0].map(Arc::from));
    }

    #[test]
    fn the_last_commits_are_kept() {
        let many: Vec<Arc<str>> = (100..200).map(|n| Arc::from(format!("{n}"))).collect();
        let kept = Repository::of(&[], &many).unwrap().commits;
        assert_eq!((kept.len(), &*kept[0]), (MAX_COMMITS, "168"));
    }
}
