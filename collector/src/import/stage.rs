//! Copies the input of an import to the folder where the collector finds it.

use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use hookspan_core::Timestamp;

use super::copy::{Copied, Found, Remark, Remarks, copy};
use super::sniff::{self, Form, NotHooks};
use super::source::{Damage, Source};
use super::times::Zone;
use crate::dirs::StateDir;
use crate::disk;

/// A staged import. Its file name contains only its time and the name of its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Staged {
    /// Its id in `import_run`.
    pub run: String,
    /// When it was made. Lines without a time get this time.
    pub at: Timestamp,
    /// The copy.
    pub path: PathBuf,
}

/// The result of staging a file.
#[derive(Debug)]
pub(crate) struct Report {
    /// The copy.
    pub staged: Staged,
    /// What was not understood or was left out.
    pub remarks: Remarks,
    /// Why the rest of the file could not be read. The copy contains everything before that.
    pub damage: Option<Damage>,
}

/// A file that can be imported.
#[derive(Debug)]
pub(crate) struct Judged<'a> {
    source: Source<'a>,
    form: Form,
}

/// Recognises a file by its beginning. With `force` any file is accepted, and text that is not JSON becomes malformed hooks,
/// line by line.
///
/// # Errors
/// What the file is instead of recorded hooks, and what to do; or that it cannot be read.
pub(crate) fn judge(source: Source<'_>, force: bool) -> Result<Judged<'_>, Refusal> {
    let form = match sniff::judge(&source.sample, source.whole) {
        Ok(form) => form,
        Err(_) if force => Form::default(),
        Err(reason) => return Err(Refusal::NotHooks(reason)),
    };
    match source.damage() {
        Some(Damage::Archive(error)) if source.sample.is_empty() => {
            Err(Refusal::Damaged(Damage::Archive(error)))
        }
        _ => Ok(Judged { source, form }),
    }
}

/// Why a file is not imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The file is not a recording.
    #[error(transparent)]
    NotHooks(NotHooks),
    /// The archive cannot be decompressed.
    #[error("{0}")]
    Damaged(Damage),
}

/// Copies a file into the state directory. `progress` receives the number of bytes read. `unique` distinguishes imports
/// that are made at the same time.
///
/// # Errors
///
/// The file cannot be read, or the copy cannot be written. In both cases, the copy is removed.
pub(crate) fn stage(
    dir: &StateDir,
    at: Timestamp,
    unique: u64,
    input: Judged<'_>,
    zone: &mut Zone,
    mut progress: impl FnMut(u64),
) -> io::Result<Report> {
    let run = format!("{:020}-{unique:016x}", at.0);
    let part = dir.imports().join(format!("{run}.part"));
    let Judged { source, form } = input;
    let gauge = source.gauge();
    let write = || {
        let file = disk::create(&part)?;
        // The lock shows that the file is still being written.
        file.lock()?;
        let mut out = BufWriter::with_capacity(1 << 18, disk::Writing(file));
        let Copied { mut remarks, end } =
            copy(source, form, zone, &mut out, &mut || progress(gauge.bytes_read()))?;
        let damage = gauge.damage();
        if damage == Some(Damage::Bomb) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, Damage::Bomb.to_string()));
        }
        if let Some((line, number)) = end {
            let remark = if damage.is_some() { Remark::Unfinished } else { Remark::Broken };
            let found = remarks.entry(remark).or_insert(Found { line: number, ..Found::default() });
            found.count += 1;
            if damage.is_none() {
                out.write_all(&line)?;
                out.write_all(b"\n")?;
            }
        }
        out.flush()?;
        let disk::Writing(file) = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        disk::sync(&file)?;
        let path = dir.imports().join(format!("{run}.jsonl"));
        disk::rename(&part, &path)?;
        Ok(Report { staged: Staged { run: run.clone(), at, path }, remarks, damage })
    };
    let done = write();
    if done.is_err() {
        let _gone = disk::remove(&part);
    }
    done
}

/// Removes copies that an interrupted command left behind. They contain payloads, and nobody will complete them. A copy
/// that is still being written is locked by its writer, and stays.
///
/// # Errors
/// The folder cannot be listed, or a file cannot be removed. A missing folder counts as empty.
pub(crate) fn sweep(dir: &StateDir) -> io::Result<()> {
    let names = match disk::list(&dir.imports()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        names => names?,
    };
    for path in names {
        if path.extension().is_none_or(|extension| extension != "part") {
            continue;
        }
        let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let file = match disk::open_private(&path) {
            Err(error) if gone(&error) => continue,
            file => file?,
        };
        match file.try_lock() {
            Err(fs::TryLockError::WouldBlock) => continue,
            Err(fs::TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        disk::remove(&path)?;
    }
    Ok(())
}

/// Imports that wait, oldest first.
///
/// # Errors
/// When the folder cannot be listed; a missing one is empty.
pub(crate) fn pending(dir: &StateDir) -> io::Result<Vec<Staged>> {
    let names = match disk::list(&dir.imports()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names?,
    };
    let mut staged: Vec<Staged> = names.iter().filter_map(|path| named(path)).collect();
    staged.sort_by(|a, b| a.run.cmp(&b.run));
    Ok(staged)
}

fn named(path: &Path) -> Option<Staged> {
    let run = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    let (at, unique) = run.split_once('-')?;
    let at = Timestamp(at.parse().ok()?);
    u64::from_str_radix(unique, 16).ok()?;
    Some(Staged { run: run.to_owned(), at, path: path.to_path_buf() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirs::create_private;

    #[test]
    fn a_copy_that_nobody_writes_any_more_is_swept() {
        let temp = tempfile::tempdir().unwrap();
        let dir = StateDir::at(temp.path().join("s"));
        sweep(&dir).unwrap();
        dir.prepare().unwrap();
        let named = |name: &str| dir.imports().join(name);
        let writing = create_private(&named("1-1.part")).unwrap();
        writing.lock().unwrap();
        for name in ["2-2.part", "3-3.jsonl"] {
            create_private(&named(name)).unwrap();
        }
        sweep(&dir).unwrap();
        assert!(named("1-1.part").exists() && named("3-3.jsonl").exists());
        assert!(!named("2-2.part").exists());
        drop(writing);
        sweep(&dir).unwrap();
        assert!(!named("1-1.part").exists());
    }
}
