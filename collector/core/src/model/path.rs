//! Handles paths from hooks of all systems: gives them one spelling, tells which path lies inside which, and finds the
//! project of a folder.
//!
//! Cursor sends a root as `/w/app`, `/d:/code/shop`, `D:\code\shop`, `file:///d%3A/code/shop` or
//! `vscode-remote://ssh-remote+host/home/u/app`. The files below that root may be spelled in any other of these ways.

use std::borrow::Cow;

/// A path in its plain spelling. A URI becomes the path in it, without its host. A path with a drive gets a small drive
/// letter and forward slashes (`d:/code/shop`). A text that is not an absolute path stays as it is.
#[must_use]
pub fn plain(sent: &str) -> Cow<'_, str> {
    if let Some(path) = of_uri(sent) {
        return Cow::Owned(plain_native(&path).into_owned());
    }
    plain_native(sent)
}

/// A path as sent. A URI is reduced to its path, without the host's name.
pub(crate) fn without_host(sent: &str) -> Cow<'_, str> {
    of_uri(sent).map_or(Cow::Borrowed(sent), |path| Cow::Owned(plain_native(&path).into_owned()))
}

/// The form that two spellings of one file share. Systems with drives ignore upper and lower case.
pub(crate) fn key(sent: &str) -> Cow<'_, str> {
    // Every hook about a file runs this, and most files have a plain path of Unix.
    let is_unix = matches!(sent.as_bytes(), [b'/', next, .., last] if *next != b'/' && *last != b'/')
        && with_drive(sent).is_none()
        && memchr::memchr(b'\\', sent.as_bytes()).is_none();
    if is_unix {
        return Cow::Borrowed(sent);
    }
    let path = plain(sent);
    match drive(&path) {
        Some(_) => Cow::Owned(path.to_ascii_lowercase()),
        None if path.contains('\\') => Cow::Owned(path.replace('\\', "/")),
        None => path,
    }
}

/// `path` relative to `root`; `.` for the root itself and `None` outside of it. Both may have any spelling.
#[must_use]
pub fn below(root: &str, path: &str) -> Option<String> {
    let (root, path) = (plain(root), plain(path));
    let has_drive = drive(&root).is_some() || drive(&path).is_some();
    let on_drives = on_drive(&root).zip(on_drive(&path)).filter(|_| has_drive);
    let (root, path) = match on_drives {
        Some(((one, root), (other, path))) if one == other => (root, path),
        Some(_) => return None,
        None if is_absolute(&root) && is_absolute(&path) => (&*root, &*path),
        None => return None,
    };
    let equal = |one: &str, other: &str| match has_drive {
        true => one.eq_ignore_ascii_case(other),
        false => one == other,
    };
    let parts = parts(path)?;
    let mut rest = parts.iter();
    let mut names = root.split('/').filter(|part| !part.is_empty());
    let is_inside = names.all(|name| rest.next().is_some_and(|other| equal(name, other)));
    let rest = rest.as_slice();
    is_inside.then(|| if rest.is_empty() { ".".to_owned() } else { rest.join("/") })
}

/// Whether a path is absolute on any system.
#[must_use]
pub fn is_absolute(path: &str) -> bool {
    path.starts_with(['/', '\\', '~']) || drive(path).is_some() || path.contains("://")
}

/// Whether a root is a URI of another machine. The same path on this machine is a different folder.
#[must_use]
pub fn is_remote(sent: &str) -> bool {
    if sent.starts_with('/') {
        return false;
    }
    let scheme = sent.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| !scheme.eq_ignore_ascii_case("file"))
        || of_uri(sent).is_some_and(|path| path.starts_with("//"))
}

/// The last name of a path.
#[must_use]
pub fn name(path: &str) -> &str {
    let trimmed = path.trim_end_matches(['/', '\\']);
    if trimmed.is_empty() { path } else { trimmed.rsplit(['/', '\\']).next().unwrap_or(trimmed) }
}

/// The repository that a folder belongs to. If the folder is a worktree, also the worktree's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Project<'a> {
    /// The repository's folder. If the path does not contain it, the folder that holds the repository's worktrees.
    pub folder: &'a str,
    /// Name of the worktree.
    pub worktree: Option<&'a str>,
}

/// The project of a root in its plain spelling. Agents make worktrees in their own folders:
/// `~/.cursor/worktrees/REPOSITORY/NAME`, `~/.codex/worktrees/NAME/REPOSITORY`, `REPOSITORY/.claude/worktrees/NAME` and
/// `REPOSITORY/.worktrees/NAME`.
#[must_use]
pub fn project(root: &str) -> Project<'_> {
    let whole = Project { folder: root, worktree: None };
    // Every hook runs this check. `memmem::find` is faster here than the standard library's search, whose set-up costs
    // more than searching such a short text.
    if memchr::memmem::find(root.as_bytes(), b"worktrees/").is_none() {
        return whole;
    }
    let found = |marker: &str| {
        let at = root.find(marker)?;
        let mut names = root[at + marker.len()..].split('/');
        Some((at, names.next().filter(|name| !name.is_empty())?, names.next()))
    };
    let until =
        |folder: &'static str, at: usize, name: &str| &root[..at + folder.len() + name.len()];
    let (cursor, codex) = ("/.cursor/worktrees/", "/.codex/worktrees/");
    if let Some((at, repository, Some(name))) = found(cursor) {
        return Project { folder: until(cursor, at, repository), worktree: Some(name) };
    }
    if let Some((at, name, Some(repository))) = found(codex) {
        let end = until(codex, at, name).len() + 1 + repository.len();
        return Project { folder: &root[..end], worktree: Some(name) };
    }
    for marker in ["/.claude/worktrees/", "/.worktrees/"] {
        if let Some((at, name, _)) = found(marker).filter(|(at, _, _)| *at > 0) {
            return Project { folder: &root[..at], worktree: Some(name) };
        }
    }
    whole
}

/// The repository's name, if `project` is a folder that holds its worktrees outside the repository (in
/// `~/.cursor/worktrees` or `~/.codex/worktrees`). Such a path does not tell where the repository itself is.
pub(crate) fn worktrees_of(project: &str) -> Option<&str> {
    let is_apart =
        ["/.cursor/worktrees/", "/.codex/worktrees/"].iter().any(|at| project.contains(at));
    is_apart.then(|| name(project))
}

/// The decoded path in a URI of a file. `None` for anything else, including web addresses.
fn of_uri(sent: &str) -> Option<String> {
    if sent.starts_with('/') {
        return None;
    }
    let (scheme, rest) = sent.split_once(':')?;
    let of_files = scheme.eq_ignore_ascii_case("file")
        || ["vscode-", "cursor-"].iter().any(|start| scheme.starts_with(start));
    if !of_files || !rest.starts_with('/') {
        return None;
    }
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = decoded(if path.is_empty() { "/" } else { path });
    let is_share = scheme.eq_ignore_ascii_case("file") && !matches!(host, "" | "localhost");
    Some(match is_share {
        true if drive(host).is_some() => format!("{host}{path}"),
        true => format!("//{}{path}", decoded(host)),
        false => path,
    })
}

/// Decodes percent escapes. Invalid escapes stay.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn plain_native(sent: &str) -> Cow<'_, str> {
    if let Some(rest) = with_drive(sent) {
        // A path with two drives: some program joined two absolute paths. The second one counts.
        let mut path = rest;
        while let Some(inner) = with_drive(path.1) {
            path = inner;
        }
        let rest = path.1.replace('\\', "/");
        let rest = rest.trim_end_matches('/');
        return Cow::Owned(format!("{}:{}", path.0, if rest.is_empty() { "/" } else { rest }));
    }
    if sent.starts_with("\\\\") || sent.starts_with("//") {
        return Cow::Owned(share(&sent.replace('\\', "/")));
    }
    if !sent.ends_with('/') {
        return Cow::Borrowed(sent);
    }
    let trimmed = sent.trim_end_matches('/');
    Cow::Borrowed(if trimmed.is_empty() && !sent.is_empty() { "/" } else { trimmed })
}

/// A path that begins with two slashes: a share of another machine, or a path with Windows' prefix `\\?\`. Files of a
/// Linux system inside Windows (WSL) get the path that they have inside Linux.
fn share(path: &str) -> String {
    let rest = path.trim_start_matches('/');
    if let Some(inner) = rest.strip_prefix("?/").or_else(|| rest.strip_prefix("./")) {
        let inner = inner.strip_prefix("UNC/").map_or(inner.to_owned(), |rest| format!("//{rest}"));
        return plain_native(&inner).into_owned();
    }
    let (host, inside) = rest.split_once('/').unwrap_or((rest, ""));
    if host.eq_ignore_ascii_case("wsl$") || host.eq_ignore_ascii_case("wsl.localhost") {
        let (_, inside) = inside.split_once('/').unwrap_or((inside, ""));
        return format!("/{}", inside.trim_end_matches('/'));
    }
    format!("//{}", rest.trim_end_matches('/'))
}

/// The drive of a path, as a small letter, and the text after the colon. That text is empty or begins with a slash.
fn with_drive(path: &str) -> Option<(char, &str)> {
    // Every hook runs this. Most paths are paths of Unix, and their bytes decide without a search.
    let bytes = path.as_bytes();
    let at = usize::from(matches!(bytes.first(), Some(b'/' | b'\\')));
    let letter = bytes.get(at).filter(|byte| byte.is_ascii_alphabetic())?;
    let colon = match bytes.get(at + 1)? {
        b':' => 1,
        b'%' if bytes.get(at + 2..at + 4).is_some_and(|head| head.eq_ignore_ascii_case(b"3a")) => 3,
        _ => return None,
    };
    let rest = &path[at + 1 + colon..];
    let letter = char::from(letter.to_ascii_lowercase());
    (rest.is_empty() || rest.starts_with(['/', '\\'])).then_some((letter, rest))
}

fn drive(path: &str) -> Option<char> {
    with_drive(path).map(|(letter, _)| letter)
}

/// A path on a drive. Unix programs on Windows spell the drive as `/c/x`, `/mnt/c/x` or `/cygdrive/c/x`.
fn on_drive(path: &str) -> Option<(char, &str)> {
    if let Some(found) = with_drive(path) {
        return Some(found);
    }
    let rest = path.strip_prefix("/mnt").or_else(|| path.strip_prefix("/cygdrive")).unwrap_or(path);
    let rest = rest.strip_prefix('/')?;
    let mut letters = rest.chars();
    let letter = letters.next().filter(char::is_ascii_alphabetic)?;
    let rest = letters.as_str();
    (rest.is_empty() || rest.starts_with('/')).then(|| (letter.to_ascii_lowercase(), rest))
}

/// The names in an absolute path, with each `..` resolved. `None` if a `..` leads above the top.
fn parts(path: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_spelling_of_a_path_has_one_plain_spelling() {
        let cases = [
            ("/w/app", "/w/app"),
            ("/w/app/", "/w/app"),
            ("/", "/"),
            ("", ""),
            ("src/a.rs", "src/a.rs"),
            ("/d:/code/shop", "d:/code/shop"),
            ("D:\\code\\shop\\", "d:/code/shop"),
            ("d:/code/shop", "d:/code/shop"),
            ("/d%3A/code/shop", "d:/code/shop"),
            ("file:///d%3A/code/my%20shop", "d:/code/my shop"),
            ("file:///d:/code/shop", "d:/code/shop"),
            ("file:/home/u/a", "/home/u/a"),
            ("file://localhost/home/u/a", "/home/u/a"),
            ("file://d:/code", "d:/code"),
            ("file://server/share/a", "//server/share/a"),
            ("file:///home/u/100%", "/home/u/100%"),
            ("c:\\c:\\src\\app", "c:/src/app"),
            ("/c:/d:/src", "d:/src"),
            ("C:", "c:/"),
            ("c:\\", "c:/"),
            ("\\\\server\\share\\dir\\", "//server/share/dir"),
            ("\\\\?\\C:\\src\\app", "c:/src/app"),
            ("\\\\?\\UNC\\server\\share\\a", "//server/share/a"),
            ("\\\\wsl$\\Ubuntu\\home\\u\\app", "/home/u/app"),
            ("//wsl.localhost/Ubuntu-24.04/home/u", "/home/u"),
            ("vscode-remote://ssh-remote+build01/home/u/app", "/home/u/app"),
            ("vscode-remote://wsl%2Bubuntu/home/u/app", "/home/u/app"),
            ("vscode-remote://dev-container%2B7b22/workspaces/app/", "/workspaces/app"),
            ("vscode-remote://wsl+Ubuntu", "/"),
            ("vscode-notebook-cell:/home/u/a.ipynb#W0s", "/home/u/a.ipynb"),
            ("https://example.com/a/", "https://example.com/a"),
            ("untitled:Untitled-1", "untitled:Untitled-1"),
            ("/home/u/a%20b", "/home/u/a%20b"),
            ("/home/u/a\\b", "/home/u/a\\b"),
        ];
        for (sent, expected) in cases {
            assert_eq!(plain(sent), expected, "{sent}");
        }
    }

    #[track_caller]
    fn check_below(root: &str, path: &str, expected: Option<&str>) {
        assert_eq!(below(root, path).as_deref(), expected, "{path} below {root}");
    }

    #[test]
    fn a_file_is_found_below_its_root_in_any_spelling() {
        for root in
            ["/d:/code/shop", "D:\\code\\shop", "file:///d%3A/code/shop", "/mnt/d/code/shop"]
        {
            for path in
                ["d:\\code\\shop\\lib\\a.ts", "/d:/code/shop/lib/a.ts", "D:/Code/Shop/lib/a.ts"]
            {
                check_below(root, path, Some("lib/a.ts"));
            }
        }
        check_below("c:/src", "/c/src/a.rs", Some("a.rs"));
        check_below("c:/", "C:\\a.rs", Some("a.rs"));
        check_below("/", "/etc/hosts", Some("etc/hosts"));
        check_below("/w/app", "/w/app", Some("."));
        check_below("/w/app/", "/w/app/./src//a.rs", Some("src/a.rs"));
        check_below("vscode-remote://wsl+x/home/u", "/home/u/a", Some("a"));
        check_below("//server/share", "\\\\SERVER\\share\\a", None);
        check_below("//server/share", "\\\\server\\share\\a", Some("a"));
    }

    #[test]
    fn what_lies_beside_a_root_is_outside() {
        check_below("/w/app", "/w/app-two/a.rs", None);
        check_below("/w/app", "/w/app/../other/a.rs", None);
        check_below("/w/app", "/w/App/a.rs", None);
        check_below("d:/code", "e:/code/a.rs", None);
        check_below("/w/app", "src/a.rs", None);
        check_below("/c/src", "/d/src/a", None);
        check_below("/mnt/c/src", "/c/src/a", None);
        check_below("/w", "https://w/a", None);
    }

    #[test]
    fn a_worktree_belongs_to_its_repository() {
        let cases = [
            ("/w/odoo", "/w/odoo", None),
            ("/home/u/.cursor/worktrees/odoo/pcf", "/home/u/.cursor/worktrees/odoo", Some("pcf")),
            ("c:/u/.cursor/worktrees/odoo/pcf/sub", "c:/u/.cursor/worktrees/odoo", Some("pcf")),
            ("/home/u/.cursor/worktrees/odoo", "/home/u/.cursor/worktrees/odoo", None),
            ("/w/odoo/.claude/worktrees/fix-1", "/w/odoo", Some("fix-1")),
            ("/w/odoo/.worktrees/fix/addons", "/w/odoo", Some("fix")),
            (
                "/home/u/.codex/worktrees/1a2b/odoo",
                "/home/u/.codex/worktrees/1a2b/odoo",
                Some("1a2b"),
            ),
            ("/w/worktrees/x", "/w/worktrees/x", None),
            ("/.worktrees/x", "/.worktrees/x", None),
        ];
        for (root, folder, worktree) in cases {
            assert_eq!(project(root), Project { folder, worktree }, "{root}");
        }
    }

    proptest! {
        /// A plain spelling stays the same when it is normalised again, and a root contains every path below it.
        #[test]
        fn spellings_agree(sent in "(file://|vscode-remote://h|)[/\\\\]{0,3}([cD](:|%3A)[/\\\\])?[a-b./\\\\%:]{0,16}") {
            let once = plain(&sent).into_owned();
            prop_assert_eq!(plain(&once), once.as_str(), "{}", sent);
            let _ = (below(&sent, &once), project(&sent), key(&sent), name(&sent));
        }

        #[test]
        fn a_root_holds_what_is_below_it(names in prop::collection::vec("[a-c]{1,3}", 1..5), cut in 0_usize..5) {
            let path = format!("/{}", names.join("/"));
            let cut = cut.min(names.len());
            let root = format!("/{}", names[..cut].join("/"));
            let rest = names[cut..].join("/");
            let expected = if rest.is_empty() { "." } else { &rest };
            prop_assert_eq!(below(&root, &path), Some(expected.to_owned()));
        }
    }
}
