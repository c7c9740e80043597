//! Keeps extended attributes when a file is replaced: the owner's notes, labels of a security module, the access
//! control list.

use std::fs::File;
use std::io;
use std::path::Path;

/// Maximum length of a list of names, and of a value, on Linux file systems.
#[cfg(target_os = "linux")]
const MAX_BYTES: usize = 64 << 10;

/// Copies the attributes of the file at `old`, which need not exist, to `new`. If this account may not set a system
/// attribute, the new file keeps the value that the system gave it.
#[cfg(target_os = "linux")]
pub(super) fn keep(old: &Path, new: &File) -> io::Result<()> {
    use rustix::fs::{XattrFlags, fsetxattr, lgetxattr, llistxattr};
    use rustix::io::Errno;

    let mut names = vec![0_u8; MAX_BYTES];
    let len = match llistxattr(old, &mut names[..]) {
        // There is no such file, or its file system has no attributes.
        Err(Errno::NOENT | Errno::NOTSUP) => return Ok(()),
        len => len?,
    };
    let mut value = vec![0_u8; MAX_BYTES];
    for name in names.get(..len).unwrap_or_default().split(|byte| *byte == 0) {
        if name.is_empty() {
            continue;
        }
        let done = lgetxattr(old, name, &mut value[..]).and_then(|len| {
            fsetxattr(new, name, value.get(..len).unwrap_or_default(), XattrFlags::empty())
        });
        let is_own = name.starts_with(b"user.") || name.starts_with(b"system.");
        if is_own {
            done?;
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn keep(_: &Path, _: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::fs::{XattrFlags, getxattr, setxattr};

    use crate::hooks_json::file::{FileError, HooksFile};

    #[test]
    fn attributes_and_mode_stay_when_the_text_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks.json");
        std::fs::write(&path, "{}").unwrap();
        if setxattr(&path, "user.note", b"mine", XattrFlags::empty()).is_err() {
            eprintln!("left out: the file system has no attributes");
            return;
        }
        HooksFile::read(&path).unwrap().write("{ }").unwrap();
        let mut value = [0; 16];
        let len = getxattr(&path, "user.note", &mut value[..]).unwrap();
        assert_eq!(&value[..len], b"mine");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ }");
    }

    #[test]
    fn a_file_with_two_names_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hooks.json");
        std::fs::write(&path, "{}").unwrap();
        std::fs::hard_link(&path, folder.path().join("dotfiles.json")).unwrap();
        let error = HooksFile::read(&path).unwrap().check_owner().unwrap_err();
        assert!(matches!(error, FileError::Linked { names: 2, .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("has 2 names") && text.contains("hooks.json.new"), "{text}");
    }
}
