//! Reads commits from a reflog. A line is `OLD NEW NAME <EMAIL> SECONDS ZONE<tab>WHAT: SUBJECT`. Name and subject are
//! not stored.

use std::sync::Arc;

use hookspan_core::repository::MAX_COMMITS;

/// The commits made at or after `since` (in seconds), the oldest first. `log` may begin in the middle of a line.
pub(super) fn commits(log: &[u8], since: i64) -> Vec<Arc<str>> {
    let lines = log.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let mut commits: Vec<Arc<str>> = Vec::new();
    for commit in lines.filter_map(|line| made(line, since)) {
        if commits.iter().all(|known| **known != *commit) {
            commits.push(commit.into());
        }
    }
    let more = commits.len().saturating_sub(MAX_COMMITS);
    commits.drain(..more);
    commits
}

/// The commit of a line, if it was made and not only checked out.
fn made(line: &str, since: i64) -> Option<&str> {
    let (who, what) = line.split_once('\t')?;
    let mut words = who.split(' ');
    let (_, new) = (words.next().filter(|old| is_commit(old))?, words.next()?);
    let (rest, _zone) = who.rsplit_once(' ')?;
    let (_, seconds) = rest.rsplit_once(' ')?;
    let at: i64 = seconds.parse().ok()?;
    (is_made(what) && at >= since && is_commit(new)).then_some(new)
}

/// Whether a step of the reflog makes a commit. `pull` merges or rebases; its own words stand before the step:
/// `pull --rebase origin main (pick): subject`.
fn is_made(what: &str) -> bool {
    let (verb, subject) = what.split_once(':').unwrap_or((what, ""));
    let (command, step) = verb.split_once(" (").unwrap_or((verb, ""));
    let step = step.trim_end_matches(')');
    match command.split(' ').next() {
        Some("commit" | "cherry-pick" | "revert" | "am") => true,
        Some("rebase" | "pull") if !step.is_empty() => {
            !matches!(step, "start" | "finish" | "abort") && !step.starts_with("checkout")
        }
        Some("merge" | "pull") => subject.trim_start().starts_with("Merge made"),
        _ => false,
    }
}

/// Whether a word is the full name of a commit, in either of Git's hashes.
pub(super) fn is_commit(word: &str) -> bool {
    matches!(word.len(), 40 | 64) && word.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(commit: char, at: i64, what: &str) -> String {
        let commit = commit.to_string().repeat(40);
        format!("{} {commit} A. U. Thor <a@b.example> {at} +0100\t{what}\n", "0".repeat(40))
    }

    #[test]
    fn commits_are_told_from_what_only_moves() {
        let log = [
            "half a line\tcommit: x\n".to_owned(),
            line('a', 90, "commit: before"),
            line('b', 100, "commit (initial): one"),
            line('c', 101, "commit (amend): one: again"),
            line('d', 102, "checkout: moving from main to fix"),
            line('e', 103, "merge fix: Merge made by the 'ort' strategy."),
            line('f', 104, "merge fix: Fast-forward"),
            line('1', 105, "rebase (pick): x"),
            line('2', 106, "rebase (finish): returning to refs/heads/fix"),
            line('3', 107, "reset: moving to HEAD~1"),
            line('4', 108, "cherry-pick: y"),
            line('5', 109, "pull: Fast-forward"),
            line('4', 110, "commit: y"),
            line('6', 110, "pull origin main: Merge made by the 'ort' strategy."),
            line('7', 110, "pull --rebase origin main (start): checkout 0123abc"),
            line('8', 110, "pull --rebase origin main (pick): z"),
            line('9', 110, "pull (finish): returning to refs/heads/main"),
            line('9', 111, "clone: from https://user:secret@git.example/o/r"),
        ]
        .concat();
        let found: String = commits(log.as_bytes(), 100).iter().map(|c| &c[..1]).collect();
        assert_eq!(found, "bce1468");
    }

    #[test]
    fn damage_is_no_commit_and_the_last_ones_are_kept() {
        for damage in ["", "\t", "a b c\tcommit: x", "\u{0}\n\n", " \tcommit"] {
            assert!(commits(damage.as_bytes(), 0).is_empty(), "{damage:?}");
        }
        let lines = (0..MAX_COMMITS + 5)
            .map(|n| format!("{} {n:040x} a <b> 5 +0000\tcommit: x\n", "0".repeat(40)));
        let found = commits(lines.collect::<String>().as_bytes(), 0);
        assert_eq!((found.len(), &*found[0]), (MAX_COMMITS, &*format!("{:040x}", 5)));
    }
}
