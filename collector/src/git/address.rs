//! Converts the address of a remote to one that a browser opens. Everything else that a clone needs (a user, a
//! password, an SSH port) is left out, so that no credential is ever stored.

/// Longest address that is kept.
const LONGEST: usize = 512;

/// `https://host/owner/name` of `https://user:token@host/owner/name.git`, `ssh://git@host:2222/owner/name` or
/// `git@host:owner/name.git`. `None` for a path of this machine, and for anything else.
pub(super) fn address(remote: &str) -> Option<String> {
    let remote = remote.trim();
    if remote.len() > LONGEST || remote.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return None;
    }
    let (web, authority, path) = match remote.split_once("://") {
        Some((scheme, rest)) => {
            let web = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
            let known = ["ssh", "git", "git+ssh", "ssh+git"];
            if !web && !known.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
                return None;
            }
            let (authority, path) = rest.split_once('/')?;
            (web, authority, path)
        }
        None => {
            let (authority, path) = remote.split_once(':')?;
            let host = authority.rsplit('@').next().unwrap_or_default();
            // A single letter before the colon is a drive, and a slash before it means a path. A second colon belongs
            // to the name of a helper of Git.
            if host.len() < 2 || authority.contains(['/', '\\']) || path.starts_with(':') {
                return None;
            }
            (false, authority, path)
        }
    };
    let host = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (name, Some(port)),
        _ => (host.as_str(), None),
    };
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']' | ':');
    if name.is_empty() || !name.chars().all(plain) {
        return None;
    }
    let port = port.filter(|port| web && !matches!(*port, "" | "80" | "443"));
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let is_plain =
        |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '"', '<', '>']);
    if !path.split('/').all(is_plain) {
        return None;
    }
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("https://{name}{port}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_remote_is_one_address_without_credentials() {
        for remote in [
            "https://git.example/o/r",
            "https://git.example/o/r.git",
            "https://user:pa@ss@Git.Example/o/r.git",
            "https://token@git.example:443/o/r.git?token=1#x",
            "http://git.example/o/r/",
            "ssh://git@git.example:2222/o/r.git",
            "git+ssh://git@git.example/o/r",
            "git://git.example/o/r.git",
            "git@git.example:o/r.git",
            "git.example:/o/r.git",
            " git@git.example:o/r \n",
        ] {
            assert_eq!(address(remote).as_deref(), Some("https://git.example/o/r"), "{remote}");
        }
        let port = address("https://me:secret@git.example:8443/a/b/r.git");
        assert_eq!(port.as_deref(), Some("https://git.example:8443/a/b/r"));
    }

    #[test]
    fn paths_of_this_machine_and_oddities_have_no_address() {
        for remote in [
            "/srv/git/r.git",
            "../r.git",
            "C:\\repos\\r",
            "c:/repos/r",
            "file:///srv/git/r.git",
            "ext::sh -c evil",
            "ext::evil",
            "https://git.example/",
            "https://git.example/../r",
            "https:///o/r",
            "https://git.example/<script>/r",
            "",
            &format!("https://git.example/{}", "a".repeat(LONGEST)),
        ] {
            assert_eq!(address(remote), None, "{remote}");
        }
    }
}
