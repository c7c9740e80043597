//! The programs that hookspan's entries name: which of them are ours, and which of them may be run as a test.
//!
//! An entry is text in a file that may come with a repository. So its program is run only under two conditions: its
//! bytes are those of the hook program inside this binary, or `install` recorded its path; and only this account and
//! the administrator can replace it.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::Finding;
use crate::config::Global;
use crate::hooks_json::record::Record;
use crate::shim_binary;

/// A program that entries name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub path: PathBuf,
    pub verdict: Verdict,
}

/// What it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The hook program of this version.
    Current,
    /// Installed by hookspan, but of another version.
    Outdated,
    /// Ours by its bytes or by the record, but not executable.
    NotExecutable,
    /// Nothing is there.
    Missing,
    /// Some other program.
    Foreign,
    /// Another account could replace it. Contains where and how.
    Untrusted(String),
}

impl Program {
    /// Looks at `path`.
    pub(super) fn look(global: &Global, path: &Path) -> Self {
        Self { path: path.to_path_buf(), verdict: verdict(global, path) }
    }

    /// Whether it may be run.
    pub(super) fn is_runnable(&self) -> bool {
        matches!(self.verdict, Verdict::Current | Verdict::Outdated)
    }

    /// What there is to say about it.
    pub(super) fn finding(&self) -> Finding {
        let shown = self.path.display();
        let install = "hookspan install";
        match &self.verdict {
            Verdict::Current => Finding::ok(
                "program.current",
                format!("{shown}: {}, {}", shim_binary::kind().as_str(), shim_binary::version()),
            ),
            Verdict::Outdated => {
                Finding::warning("program.outdated", format!("{shown} is outdated"), install)
                    .meaning("hooks run the program of another version of hookspan")
            }
            Verdict::NotExecutable => Finding::problem(
                "program.altered",
                format!("{shown} is outdated, damaged or not executable"),
                install,
            )
            .meaning("every hook that runs it fails"),
            Verdict::Missing => {
                Finding::problem("program.missing", format!("{shown} is missing"), install)
                    .meaning("every hook that runs it fails")
            }
            Verdict::Foreign => Finding::problem(
                "program.altered",
                format!("{shown} is not hookspan's hook program, so it was not run"),
                "hookspan install; if you did not put this program there, inspect it first",
            )
            .meaning("Cursor runs it for every event of the entries that name it"),
            Verdict::Untrusted(why) => Finding::warning(
                "program.untrusted",
                format!("{shown} was not run: {why}"),
                "put hookspan into a folder that only you or the administrator can write",
            )
            .meaning("whoever can replace the program decides what Cursor runs"),
        }
    }
}

fn verdict(global: &Global, path: &Path) -> Verdict {
    let Ok(found) = std::fs::metadata(path) else { return Verdict::Missing };
    let recorded = Record::load(global.state.root()).uses(path);
    // The size is checked first, so that no large file is read and no device blocks.
    let same = found.is_file()
        && found.len() == shim_binary::bytes().len() as u64
        && std::fs::read(path).is_ok_and(|bytes| bytes == shim_binary::bytes());
    let ours = same || (recorded && found.is_file());
    if !ours {
        return Verdict::Foreign;
    }
    if let Some(why) = replaceable(path, &found) {
        return Verdict::Untrusted(why);
    }
    match (is_executable(&found), same) {
        (false, _) => Verdict::NotExecutable,
        (true, true) => Verdict::Current,
        (true, false) => Verdict::Outdated,
    }
}

/// How another account could replace the program between this check and the run.
#[cfg(unix)]
fn replaceable(path: &Path, found: &Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let folder = path.parent()?;
    let around = std::fs::metadata(folder).ok()?;
    let me = rustix::process::geteuid().as_raw();
    for (place, meta) in [(path, found), (folder, &around)] {
        let shown = place.display();
        if meta.uid() != me && meta.uid() != 0 {
            return Some(format!("{shown} belongs to another account"));
        }
        if meta.mode() & 0o022 != 0 {
            return Some(format!("{shown} can be written by other accounts"));
        }
    }
    None
}

#[cfg(unix)]
fn is_executable(found: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    found.mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn replaceable(_path: &Path, _found: &Metadata) -> Option<String> {
    None
}

#[cfg(not(unix))]
fn is_executable(_found: &Metadata) -> bool {
    true
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::Environment;
    use crate::hooks_json::edit::Made;
    use crate::hooks_json::record::Installed;

    fn world() -> (tempfile::TempDir, Global, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        let dir = folder.path().join("state");
        fs::create_dir(&dir).unwrap();
        let global =
            Global::new(Environment::of(&[("HOME", home)], home), Some(dir), None).unwrap();
        let program = folder.path().join("hookspan-shim");
        (folder, global, program)
    }

    fn write(path: &Path, bytes: &[u8], mode: u32) {
        fs::write(path, bytes).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn only_our_bytes_run_and_only_where_nobody_else_can_put_others() {
        let (folder, global, program) = world();
        let look = || Program::look(&global, &program);
        assert_eq!(look().verdict, Verdict::Missing);
        write(&program, b"#!/bin/sh\nid > /tmp/x\n", 0o755);
        assert_eq!(look().verdict, Verdict::Foreign);
        write(&program, shim_binary::bytes(), 0o755);
        assert_eq!(look().verdict, Verdict::Current);
        write(&program, shim_binary::bytes(), 0o644);
        assert_eq!(look().verdict, Verdict::NotExecutable);
        write(&program, shim_binary::bytes(), 0o777);
        assert!(matches!(look().verdict, Verdict::Untrusted(_)), "{:?}", look());
        write(&program, shim_binary::bytes(), 0o755);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(look().verdict, Verdict::Untrusted(_)), "{:?}", look());
        assert!(!look().is_runnable());
    }

    #[test]
    fn another_version_is_known_by_the_record_of_install() {
        let (_folder, global, program) = world();
        write(&program, b"an older hook program", 0o755);
        let installed = Installed {
            path: "/h/hooks.json".into(),
            scope: None,
            program: program.clone(),
            was_absent: true,
            folders: Vec::new(),
            backup: None,
            made: Made::default(),
            excluded: None,
        };
        Record { files: vec![installed] }.save(global.state.root()).unwrap();
        assert_eq!(Program::look(&global, &program).verdict, Verdict::Outdated);
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        let (_folder, global, program) = world();
        fs::create_dir(&program).unwrap();
        assert_eq!(Program::look(&global, &program).verdict, Verdict::Foreign);
        assert_eq!(Program::look(&global, Path::new("/dev/zero")).verdict, Verdict::Foreign);
    }
}
