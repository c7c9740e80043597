//! The hook program that is embedded in this program, and its installation.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::path::Path;

use hookspan_shim::hash::xxh64;

use crate::dirs::sync_folder;

const BINARY: &[u8] = include_bytes!(env!("HOOKSPAN_SHIM_BINARY"));

/// How the embedded hook program was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Without libc and std, on Linux x86_64 and aarch64. The fast build.
    Freestanding,
    /// The same logic on std. It takes several times as long to start.
    Std,
}

impl Kind {
    /// A description for a person.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Freestanding => "freestanding",
            Self::Std => "std",
        }
    }
}

/// The program's bytes.
#[must_use]
pub(crate) fn bytes() -> &'static [u8] {
    BINARY
}

/// The version of the program, which is that of this package.
#[must_use]
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Identifies the exact program: XXH64 of its bytes as sixteen hexadecimal digits.
#[must_use]
pub(crate) fn digest() -> String {
    digest_of(BINARY)
}

/// The digest of another program, to be compared with [`digest`].
#[must_use]
pub(crate) fn digest_of(binary: &[u8]) -> String {
    format!("{:016x}", xxh64(binary, 0))
}

/// How the embedded program was built.
#[must_use]
pub(crate) fn kind() -> Kind {
    let target = cfg!(target_os = "linux")
        && (cfg!(target_arch = "x86_64") || cfg!(target_arch = "aarch64"));
    if target { Kind::Freestanding } else { Kind::Std }
}

/// Installs the program at `path` in one step and with mode 0755. A hook that starts at this moment runs either the old
/// program or the new one. Does nothing if the file there is already this program.
///
/// The kernel refuses to start a program that any process has open for writing ("Text file busy"). So the program is
/// written under another name and closed, and only then gets its own name. The descriptor is close-on-exec, but a child
/// process has a copy of it between fork and exec. So no other thread of the caller may start processes meanwhile.
///
/// Returns whether anything was changed.
///
/// # Errors
/// The folder cannot be created or written to. Nothing is left behind.
pub(crate) fn install_to(path: &Path) -> io::Result<bool> {
    if is_installed_at(path) {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let mut file = tempfile::Builder::new().prefix(".hookspan-shim").tempfile_in(folder)?;
    file.write_all(BINARY)?;
    make_executable(file.path())?;
    file.as_file().sync_all()?;
    let closed = file.into_temp_path();
    closed.persist(path)?;
    sync_folder(folder)?;
    Ok(true)
}

/// Hooks of every account may run the program, and only its owner may replace it, no matter what the umask is.
#[cfg(unix)]
fn make_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt};

    if folder.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Whether the file at `path` is this program, byte for byte, and can be run.
#[must_use]
pub(crate) fn is_installed_at(path: &Path) -> bool {
    let same = fs::read(path).is_ok_and(|installed| installed == BINARY);
    same && fs::metadata(path).is_ok_and(|metadata| is_executable(&metadata.permissions()))
}

#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    fs::set_permissions(path, Permissions::from_mode(0o755))
}

#[cfg(unix)]
fn is_executable(permissions: &Permissions) -> bool {
    use std::os::unix::fs::PermissionsExt;

    permissions.mode() & 0o755 == 0o755
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn is_executable(_: &Permissions) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_installed_program_answers_and_keeps_the_hook() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("bin/hookspan-shim");
        assert!(install_to(&program).unwrap());
        assert!(!install_to(&program).unwrap(), "a second time changes nothing");
        let output = Command::new(&program)
            .args(["--dir".as_ref(), folder.path().as_os_str(), "preToolUse".as_ref()])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"permission\":\"allow\"}\n");
        assert!(fs::metadata(folder.path().join("journal")).unwrap().len() > 40);
    }

    #[test]
    fn a_damaged_or_unrunnable_program_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("hookspan-shim");
        fs::write(&program, b"something else").unwrap();
        assert!(install_to(&program).unwrap());
        assert!(is_installed_at(&program));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&program, Permissions::from_mode(0o644)).unwrap();
            assert!(install_to(&program).unwrap());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    /// Tests the kernel's rule for which [`install_to`] is made. In the former order of steps, a hook could find the
    /// file open.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_program_that_is_open_for_writing_does_not_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hookspan-shim");
        let mut file = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
        file.write_all(BINARY).unwrap();
        make_executable(file.path()).unwrap();
        let still_open = file.persist(&path).unwrap();
        let error = Command::new(&path).stdin(Stdio::null()).spawn().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ExecutableFileBusy);
        drop(still_open);
    }

    #[test]
    fn the_digest_names_the_bytes() {
        assert_eq!(digest().len(), 16);
        assert_ne!(digest(), digest_of(b""));
    }

    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn the_embedded_program_is_the_small_one() {
        assert_eq!(kind(), Kind::Freestanding);
        assert!(bytes().len() <= 32 << 10, "{} bytes", bytes().len());
    }
}
