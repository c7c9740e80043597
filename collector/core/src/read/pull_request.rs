//! Finds the pull request that a command opened. `gh` and `glab` print its address on a line of its own.

use memchr::memmem;

use crate::read::commit::is_line_start;

/// Longest address that is kept.
const LONGEST: usize = 512;

/// Commands that open a pull request, with the part of the address before the number.
const COMMANDS: [(&[&str], &str); 2] =
    [(&["gh", "pr", "create"], "/pull/"), (&["glab", "mr", "create"], "/-/merge_requests/")];

/// The last address that `output` names, if `command` may have opened a pull request. Both texts may be JSON. They are
/// not decoded, because the address contains no character that JSON escapes.
pub(crate) fn pull_request<'a>(command: &str, output: &'a str) -> Option<&'a str> {
    let (_, place) = COMMANDS.iter().find(|(words, _)| are_in(command, words))?;
    if command.contains("--dry-run") || command.contains("--help") {
        return None;
    }
    memmem::rfind_iter(output.as_bytes(), b"https://")
        .find_map(|at| {
            let line = is_line_start(&output.as_bytes()[..at]).then(|| &output[at..])?;
            let end = line.bytes().take(LONGEST).position(ends)?;
            is_address(&line[..end], place).then(|| &line[..end])
        })
        .or_else(|| last_line(output, place))
}

/// An address at the very end of the output.
fn last_line<'a>(output: &'a str, place: &str) -> Option<&'a str> {
    let at = memmem::rfind(output.as_bytes(), b"https://")?;
    let line = &output[at..];
    let fits = line.len() <= LONGEST && is_line_start(&output.as_bytes()[..at]);
    (fits && is_address(line, place)).then_some(line)
}

/// Whether `words` stand in `text` one after the other, with one blank between them.
fn are_in(text: &str, words: &[&str]) -> bool {
    text.contains(&*words.join(" "))
}

fn ends(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b'"' | b'\\')
}

/// `https://host/owner/repository/pull/7`: plain characters, no user, no query.
fn is_address(address: &str, place: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-/:~".contains(&b);
    let Some((repository, number)) = address.rsplit_once(place) else { return false };
    let path = repository.strip_prefix("https://").unwrap_or_default();
    repository.bytes().all(plain)
        && path.split('/').filter(|part| !part.is_empty()).count() >= 3
        && !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_on_a_line_of_its_own_is_the_pull_request() {
        let address = "https://github.com/acme/app/pull/17";
        for (command, output, expected) in [
            ("gh pr create --fill", "https://github.com/acme/app/pull/17", Some(address)),
            (
                "git push && gh pr create -t x",
                "\nCreating pull request for a into main in acme/app\n\nhttps://github.com/acme/app/pull/17\n",
                Some(address),
            ),
            (
                "gh pr create",
                "\"{\\\"output\\\":\\\"https://github.com/acme/app/pull/17\\\\n\\\"}\"",
                Some(address),
            ),
            (
                "glab mr create -f",
                "!4 x\n https\nhttps://gitlab.example/a/b/c/-/merge_requests/4\n",
                Some("https://gitlab.example/a/b/c/-/merge_requests/4"),
            ),
            // `git push` only proposes this address; no pull request is open yet.
            ("git push", "remote: https://github.com/acme/app/pull/new/x", None),
            ("git push; gh pr create --web", "https://github.com/acme/app/pull/new/x\n", None),
            ("gh pr create --dry-run", "https://github.com/acme/app/pull/17\n", None),
            ("gh pr view 17", "https://github.com/acme/app/pull/17\n", None),
            ("gh pr create", "see https://github.com/acme/app/pull/17\n", None),
            ("gh pr create", "https://user:pw@github.com/acme/app/pull/17\n", None),
            ("gh pr create", "https://github.com/pull/17\n", None),
            ("gh pr create", "https://github.com/acme/app/pull/17?token=x\n", None),
        ] {
            assert_eq!(pull_request(command, output), expected, "{command}: {output}");
        }
    }
}
