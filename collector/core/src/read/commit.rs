//! Finds the commit that a command made, from the line that Git prints: `[main 1a2b3c4] the subject`.

use memchr::memmem;

/// Maximum length of a branch name in that line.
const LONGEST: usize = 256;

/// The last commit that `output` names, if `command` may have made one. Both texts may be JSON. They are not decoded,
/// because the line contains no character that JSON escapes.
pub(crate) fn commit<'a>(command: &str, output: &'a str) -> Option<&'a str> {
    let holds = |word: &[u8]| memmem::find(command.as_bytes(), word).is_some();
    let commits = holds(b"git") && (holds(b"commit") || holds(b"cherry-pick") || holds(b"revert"));
    if !commits {
        return None;
    }
    memmem::rfind_iter(output.as_bytes(), b"[").find_map(|at| {
        let line = is_line_start(&output.as_bytes()[..at]).then(|| &output[at + 1..])?;
        let end = line.bytes().take(LONGEST).position(|byte| byte == b']')?;
        named(&line[..end])
    })
}

/// Whether a line begins behind these bytes, in a text or in JSON.
pub(super) fn is_line_start(before: &[u8]) -> bool {
    matches!(before, [] | [.., b'\n' | b'"'] | [.., b'\\', b'n'])
}

/// The commit in `main 1a2b3c4`, `main (root-commit) 1a2b3c4` or `detached HEAD 1a2b3c4`.
fn named(words: &str) -> Option<&str> {
    let (branch, commit) = words.rsplit_once(' ')?;
    let is_hex = commit.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_branch = !branch.is_empty() && !branch.contains(['"', '\\', '[', '\n']);
    (is_hex && is_branch && (7..=64).contains(&commit.len())).then_some(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gits_own_line_names_the_commit_in_text_and_in_json() {
        for (command, output, expected) in [
            ("git commit -m x", "[main 1a2b3c4] x\n 1 file changed", Some("1a2b3c4")),
            (
                "git commit",
                "\"{\\\"output\\\":\\\"hint\\n[fix/a (root-commit) 1a2b3c4d] x\"",
                Some("1a2b3c4d"),
            ),
            ("cd a && git cherry-pick b", "[detached HEAD 1a2b3c4] x", Some("1a2b3c4")),
            ("git commit; git commit", "[a 1111111] x\n[a 2222222] y", Some("2222222")),
            ("git commit", "see [main 1a2b3c4]", None),
            ("git commit", "[main 1a2b3] too short", None),
            ("git commit", "[main nothex7] x", None),
            ("git commit", "[", None),
            ("echo", "[main 1a2b3c4] x", None),
            ("git log", "[main 1a2b3c4] x", None),
        ] {
            assert_eq!(commit(command, output), expected, "{output}");
        }
    }
}
