//! Writes each path in one way, so that paths can be compared and stored.

use std::io;
use std::path::{Component, Path, PathBuf};

/// `path` as an absolute path: without `.` and `..`, and without doubled or trailing separators.
///
/// After a symbolic link, `..` means the parent of the link's target. So the file system resolves everything up to the
/// last `..`. If nothing exists there, `..` removes the folder before it.
///
/// # Errors
///
/// The path is empty, or it is relative and the current folder is gone.
pub(crate) fn normal(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let last = path.components().collect::<Vec<_>>();
    let Some(climbs) = last.iter().rposition(|part| *part == Component::ParentDir) else {
        return Ok(collapsed(&path));
    };
    let (head, tail) = last.split_at(climbs + 1);
    let head: PathBuf = head.iter().collect();
    let head = head.canonicalize().unwrap_or_else(|_| collapsed(&head));
    Ok(tail.iter().fold(head, |path, part| path.join(part)))
}

fn collapsed(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(result.pop()),
            Component::CurDir => {}
            part => result.push(part),
        }
    }
    result
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: &str) {
        let found = normal(Path::new(path)).unwrap();
        assert_eq!(found.to_str(), Some(expected));
    }

    #[test]
    fn a_path_has_one_spelling() {
        check("/a/b", "/a/b");
        check("/a/b/", "/a/b");
        check("//a//b///", "/a/b");
        check("/a/./b/.", "/a/b");
        check("/nowhere-a/b/../c", "/nowhere-a/c");
        check("/../..", "/");
        check("/", "/");
        assert!(normal(Path::new("a")).unwrap().is_absolute());
        assert!(normal(Path::new("")).is_err());
    }

    #[test]
    fn a_step_up_from_a_link_leads_where_the_kernel_goes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("real/inner")).unwrap();
        std::os::unix::fs::symlink("real/inner", root.join("link")).unwrap();
        let found = normal(&root.join("link/../state")).unwrap();
        assert_eq!(found, root.join("real/state"));
    }
}
