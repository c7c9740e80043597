//! Reads a repository's state from its files: which repository a folder belongs to, its HEAD, and its remote.
//!
//! The files of a repository may be hostile. Only regular files of this account are read, each up to a limit. Symbolic
//! links are not followed. A `.git` file is followed only to a folder that refers back to this file, as in worktrees
//! and submodules. Nothing is executed, locked or written.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use hookspan_core::repository::RepositoryState;

use super::address::address;
use super::reflog;
use crate::dirs::{Regular, is_ours, read_regular, read_tail};

/// Maximum number of folders, from the workspace upwards, in which `.git` is searched.
const MOST_FOLDERS: usize = 32;
/// Maximum size of HEAD, a ref, `.git` or `commondir`, each of which is one line.
const LINE: u64 = 4 << 10;
const CONFIG: u64 = 256 << 10;
/// Some 100,000 packed refs.
const PACKED: u64 = 8 << 20;
/// Number of bytes read from the end of the reflog: some 300 lines.
const REFLOG: u64 = 64 << 10;
/// Maximum length of a branch name that is stored.
const LONGEST_NAME: usize = 256;

/// The state of the repository that contains `folder`. If `since` (in seconds) is given, with the commits that its
/// reflog lists from then on. `None` if there is no repository, or if it may not be read.
pub(super) fn look(folder: &Path, since: Option<i64>) -> Option<RepositoryState> {
    let place = find(folder)?;
    let (branch, commit) = place.head();
    let commits = since.map(|since| place.commits(since)).unwrap_or_default();
    let url = place.remote().as_deref().and_then(address).map(Arc::from);
    let state = RepositoryState { url, branch, commit, commits };
    (state != RepositoryState::default()).then_some(state)
}

/// The commits that the reflog of the repository that contains `folder` lists from `since` (in seconds) on.
pub(super) fn commits(folder: &Path, since: i64) -> Vec<Arc<str>> {
    find(folder).map(|place| place.commits(since)).unwrap_or_default()
}

/// Where the files of a repository are.
#[derive(Debug)]
struct Place {
    /// Folder of HEAD and its reflog. Each worktree has its own.
    own: PathBuf,
    /// Branches and configuration.
    common: PathBuf,
}

fn find(folder: &Path) -> Option<Place> {
    let straight = |part: Component<'_>| {
        matches!(part, Component::Prefix(_) | Component::RootDir | Component::Normal(_))
    };
    if !folder.is_absolute() || !folder.components().all(straight) {
        return None;
    }
    for folder in folder.ancestors().take(MOST_FOLDERS) {
        let entry = folder.join(".git");
        let Ok(found) = entry.symlink_metadata() else { continue };
        if !is_ours(&found) {
            return None;
        }
        return match () {
            () if found.is_dir() => Some(Place { own: entry.clone(), common: entry }),
            () if found.is_file() => elsewhere(folder, &entry),
            () => None,
        };
    }
    None
}

/// The repository that a `.git` file refers to, if the repository refers back to the file.
fn elsewhere(folder: &Path, entry: &Path) -> Option<Place> {
    let text = line(entry)?;
    let own = folder.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    if !own.metadata().is_ok_and(|found| found.is_dir() && is_ours(&found)) {
        return None;
    }
    if let Some(back) = line(&own.join("gitdir")) {
        let common = own.join(line(&own.join("commondir"))?).canonicalize().ok()?;
        let names_back = own.join(back).canonicalize().ok()? == entry.canonicalize().ok()?;
        let is_inside = own.parent() == Some(&common.join("worktrees"));
        let ours = common.metadata().is_ok_and(|found| is_ours(&found));
        return (names_back && is_inside && ours).then_some(Place { own, common });
    }
    let config = text_of(&own.join("config"), CONFIG)?;
    let is_core = |head: &str| head.eq_ignore_ascii_case("core");
    let back = own.join(value(&config, is_core, "worktree")?).canonicalize().ok()?;
    let names_back = back == folder.canonicalize().ok()?;
    names_back.then(|| Place { own: own.clone(), common: own })
}

impl Place {
    /// Branch and commit, as far as they can be read.
    fn head(&self) -> (Option<Arc<str>>, Option<Arc<str>>) {
        if self.stores_refs_elsewhere() {
            return (None, None);
        }
        let Some(head) = line(&self.own.join("HEAD")) else { return (None, None) };
        let Some(name) = head.strip_prefix("ref:").map(str::trim) else {
            return (None, reflog::is_commit(&head).then(|| head.into()));
        };
        // With `.invalid` a repository says that its refs are stored in another form (reftable).
        if !is_ref(name) {
            return (None, None);
        }
        let branch = name.strip_prefix("refs/heads/").map(Arc::from);
        let loose = inside(&self.common, name).and_then(|path| line(&path));
        let commit = loose.filter(|commit| reflog::is_commit(commit)).or_else(|| self.packed(name));
        (branch, commit.map(Arc::from))
    }

    fn packed(&self, name: &str) -> Option<String> {
        let packed = text_of(&self.common.join("packed-refs"), PACKED)?;
        let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
        let (commit, _) = lines.find(|(_, other)| other.trim_end() == name)?;
        reflog::is_commit(commit).then(|| commit.to_owned())
    }

    /// Whether `extensions.refStorage` names anything but files: a reftable, or another folder. HEAD, refs and reflog
    /// in the usual places are then stubs, or left over from before.
    fn stores_refs_elsewhere(&self) -> bool {
        let config = text_of(&self.common.join("config"), CONFIG).unwrap_or_default();
        let form = value(&config, |head| head.eq_ignore_ascii_case("extensions"), "refstorage");
        form.is_some_and(|form| form != "files")
    }

    fn commits(&self, since: i64) -> Vec<Arc<str>> {
        if self.stores_refs_elsewhere() {
            return Vec::new();
        }
        let log = inside(&self.own, "logs/HEAD").and_then(|path| read_tail(&path, REFLOG).ok()?);
        let log = log.filter(|log| is_ours(&log.metadata));
        log.map(|log| reflog::commits(&log.bytes, since)).unwrap_or_default()
    }

    /// The remote `origin`, else the first.
    fn remote(&self) -> Option<String> {
        let config = text_of(&self.common.join("config"), CONFIG)?;
        let origin = value(&config, |head| head.eq_ignore_ascii_case("remote \"origin\""), "url");
        origin.or_else(|| value(&config, |head| starts_with(head, "remote \""), "url"))
    }
}

/// The first line of a small file.
fn line(path: &Path) -> Option<String> {
    let text = text_of(path, LINE)?;
    Some(text.lines().next()?.trim().to_owned())
}

fn text_of(path: &Path, max: u64) -> Option<String> {
    let Regular { bytes, metadata } = read_regular(path, max).ok()??;
    is_ours(&metadata).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// A file below `folder`. `None` if a folder on the way is a link.
fn inside(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut path = folder.to_owned();
    let mut parts = name.split('/').peekable();
    while let Some(part) = parts.next() {
        path.push(part);
        if parts.peek().is_some() && !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return None;
        }
    }
    Some(path)
}

/// Whether a ref's name is one that Git allows and that does not lead out of the repository.
fn is_ref(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock") && part != "@"
    };
    let odd =
        |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
    name.len() <= LONGEST_NAME
        && name.starts_with("refs/")
        && !name.contains("..")
        && !name.contains(odd)
        && name.split('/').all(is_part)
}

/// The first value of `key` in a section whose bracketed name `fits`. Includes are not followed.
fn value(config: &str, fits: impl Fn(&str) -> bool, key: &str) -> Option<String> {
    let mut is_in = false;
    for line in config.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix('[') {
            is_in = fits(head.split(']').next().unwrap_or_default());
            continue;
        }
        let Some((name, value)) = line.split_once('=').filter(|_| is_in) else { continue };
        if name.trim().eq_ignore_ascii_case(key) {
            let value = value.split([';', '#']).next().unwrap_or_default();
            return Some(value.trim().trim_matches('"').to_owned());
        }
    }
    None
}

fn starts_with(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
}
