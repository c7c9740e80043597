//! Finds what `uninstall --purge` deletes: files with the names that hookspan gives to recorded data.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::dirs::{ServeInfo, StateDir};
use crate::journal;

/// Names of hookspan's files in a state directory.
const NAMES: [&str; 12] = [
    "journal",
    "journal.stop",
    "losses",
    "torn",
    "lock",
    "token",
    "access.json",
    "audit.json",
    "redact.key",
    "serve.json",
    "imports",
    "ballast",
];

/// The files in which `install` records installations. They are deleted last, and only if every recorded installation
/// is undone.
const MEMORY: [&str; 2] = ["install.json", "hooks-before"];

/// Prefixes of the names of hookspan's files. A leading dot marks a file that was being written.
const BEGINNINGS: [&str; 12] = [
    "seg-",
    "damaged-",
    "hookspan.db",
    "search.db",
    ".serve.json-",
    ".token-",
    ".access.json-",
    ".audit.json-",
    "open-",
    ".redact.key-",
    ".install.json-",
    ".folders-",
];

/// The state directory, and the state directory of `hookspan demo`.
pub(super) fn directories(state: &StateDir) -> Vec<StateDir> {
    let demo = demo(state.root()).map(StateDir::at);
    [Some(state.clone()), demo].into_iter().flatten().collect()
}

/// Where `hookspan demo` keeps its sample data.
pub(super) fn demo(root: &Path) -> Option<PathBuf> {
    let mut name = root.file_name()?.to_owned();
    name.push("-demo");
    Some(root.with_file_name(name))
}

/// The recorded files in the state directory, found by name. A directory named by `--dir` may hold other files too.
pub(super) fn data_files(state: &StateDir) -> anyhow::Result<Vec<PathBuf>> {
    let root = state.root();
    let cannot = || format!("cannot read {}", root.display());
    let entries = match fs::read_dir(root) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(cannot)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.with_context(cannot)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let begins = BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
        if begins || NAMES.contains(&name.as_ref()) {
            files.push(entry.path());
        }
    }
    files.extend(journal::spilled(state));
    files.extend(journal::spare_losses(state));
    files.sort();
    Ok(files)
}

/// The files in which `install` remembers hooks.json files.
pub(super) fn memory(state: &StateDir) -> impl Iterator<Item = PathBuf> {
    MEMORY.iter().map(|name| state.root().join(name))
}

/// Deletes these files, then the directory if nothing else is in it.
pub(super) fn delete(state: &StateDir, files: &[PathBuf]) -> anyhow::Result<()> {
    for path in files {
        let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot delete {}", path.display()));
            }
            _ => {}
        }
    }
    state.remove_if_unused().with_context(|| format!("cannot remove {}", state.root().display()))
}

/// Describes a running collector to a person: its process, its command, and how to stop it.
pub(super) fn running(state: &StateDir) -> String {
    let Some(info) = ServeInfo::running(state) else {
        return format!(
            "another hookspan command uses {}; wait until it has finished",
            state.root().display()
        );
    };
    let pid = info.pid;
    let command = command_of(pid).map(|command| format!(" (`{command}`)")).unwrap_or_default();
    format!("a collector is running: process {pid}{command}; stop it first, with `kill {pid}`")
}

/// The command line of a process, if the system tells it.
fn command_of(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<_> = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let line = words.join(" ");
    let line = line.trim();
    (!line.is_empty()).then(|| crate::text::visible(line, 200))
}
