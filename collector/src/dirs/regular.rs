//! Reads files that a person may have replaced by something else: a link to a device, a FIFO, a folder.
//!
//! The kind is checked twice: by name before opening, because opening some devices has effects, and on the open
//! descriptor, because the name may by then belong to another file. `O_NONBLOCK` prevents a FIFO without a writer from
//! blocking the open.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// What lies at a path.
#[derive(Debug)]
pub(crate) struct Regular {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Metadata of the open file.
    pub metadata: Metadata,
}

/// Why a file is not read.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// Not a regular file: "a FIFO", "a directory" and so on.
    Kind(&'static str),
    /// The file is longer than the maximum. Holds its length, if known.
    TooLarge(u64),
    /// The file system refused.
    Io(io::Error),
}

/// Reads the regular file at `path`, which must not be a symbolic link; `None` if nothing is there.
///
/// # Errors
/// Something else than a regular file is there, the file has more than `max` bytes, or it cannot be read.
pub(crate) fn read_regular(path: &Path, max: u64) -> Result<Option<Regular>, Unfit> {
    match path.symlink_metadata() {
        Ok(found) => check(&found)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unfit::Io(error)),
    }
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unfit::Io(error)),
    };
    let metadata = file.metadata().map_err(Unfit::Io)?;
    check(&metadata)?;
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(Unfit::Io)?;
    if bytes.len() as u64 > max {
        return Err(Unfit::TooLarge(metadata.len()));
    }
    Ok(Some(Regular { bytes, metadata }))
}

/// Reads the last `max` bytes of the regular file at `path`, as [`read_regular`] does.
///
/// # Errors
/// Something else than a regular file is there, or it cannot be read.
pub(crate) fn read_tail(path: &Path, max: u64) -> Result<Option<Regular>, Unfit> {
    match path.symlink_metadata() {
        Ok(found) => check(&found)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unfit::Io(error)),
    }
    let mut file = open(path).map_err(Unfit::Io)?;
    let metadata = file.metadata().map_err(Unfit::Io)?;
    check(&metadata)?;
    let start = metadata.len().saturating_sub(max);
    file.seek(SeekFrom::Start(start)).map_err(Unfit::Io)?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes).map_err(Unfit::Io)?;
    Ok(Some(Regular { bytes, metadata }))
}

fn check(found: &Metadata) -> Result<(), Unfit> {
    if found.is_file() { Ok(()) } else { Err(Unfit::Kind(kind(found.file_type()))) }
}

#[cfg(unix)]
fn kind(found: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    match () {
        () if found.is_dir() => "a directory",
        () if found.is_symlink() => "a symbolic link",
        () if found.is_fifo() => "a FIFO",
        () if found.is_socket() => "a socket",
        () => "a device",
    }
}

#[cfg(not(unix))]
fn kind(found: FileType) -> &'static str {
    if found.is_dir() { "a directory" } else { "a symbolic link" }
}

#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_are_read_and_nothing_hangs() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        mknodat(CWD, at("fifo"), Kind::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();

        assert_eq!(read_regular(&at("file"), 4).unwrap().unwrap().bytes, b"text");
        assert!(read_regular(&at("none"), 4).unwrap().is_none());
        assert!(matches!(read_regular(&at("file"), 3), Err(Unfit::TooLarge(4))));
        assert_eq!(read_tail(&at("file"), 3).unwrap().unwrap().bytes, b"ext");
        assert_eq!(read_tail(&at("file"), 9).unwrap().unwrap().bytes, b"text");
        assert!(matches!(read_tail(&at("fifo"), 3), Err(Unfit::Kind("a FIFO"))));
        for (name, expected) in [
            ("link", "a symbolic link"),
            ("fifo", "a FIFO"),
            ("socket", "a socket"),
            (".", "a directory"),
        ] {
            let Err(Unfit::Kind(kind)) = read_regular(&at(name), 4) else { panic!("{name}") };
            assert_eq!(kind, expected);
        }
        let Err(Unfit::Kind(kind)) = read_regular(Path::new("/dev/null"), 4) else { panic!() };
        assert_eq!(kind, "a device");
    }
}
