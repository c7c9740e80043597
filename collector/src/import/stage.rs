//! A copy of the file to import, where the collector finds it.

use std::fs;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use hookspan_core::Timestamp;

use crate::dirs::{StateDir, create_private};
use crate::disk;

/// An import that waits to be taken in. Its file's name says when it was made and what its run is called, nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    /// Its id in `import_run`.
    pub run: String,
    /// When it was made: the time of lines that have none.
    pub at: Timestamp,
    /// The copy.
    pub path: PathBuf,
}

/// Copies `input` into the state directory. `progress` is told how many bytes are copied. `unique` tells apart imports that
/// are made at the same time.
///
/// # Errors
/// When `input` cannot be read or the copy not written; then nothing of it stays.
pub fn stage(
    dir: &StateDir,
    at: Timestamp,
    unique: u64,
    input: &mut dyn Read,
    mut progress: impl FnMut(u64),
) -> io::Result<Staged> {
    let run = format!("{:020}-{unique:016x}", at.0);
    let part = dir.imports().join(format!("{run}.part"));
    let mut copy = || {
        let mut file = create_private(&part)?;
        let mut buffer = vec![0; 1 << 20];
        let mut total = 0;
        loop {
            let read = match input.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            file.write_all(buffer.get(..read).unwrap_or_default())?;
            total += read as u64;
            progress(total);
        }
        file.sync_all()?;
        let path = dir.imports().join(format!("{run}.jsonl"));
        fs::rename(&part, &path)?;
        Ok(path)
    };
    match copy() {
        Ok(path) => Ok(Staged { run, at, path }),
        Err(error) => {
            let _gone = fs::remove_file(&part);
            Err(error)
        }
    }
}

/// Imports that wait, oldest first.
///
/// # Errors
/// When the folder cannot be listed; a missing one is empty.
pub fn pending(dir: &StateDir) -> io::Result<Vec<Staged>> {
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
