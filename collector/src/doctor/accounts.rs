//! Checks the directories of other accounts. The machine-wide hooks.json makes hooks of every account run, and these
//! hooks write to the account's own directory, as far as this account can see it.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use super::Finding;
use super::files::Entry;
use crate::hooks_json::Scope;

/// User ids that systems give to people. Services have lower ids, and `nobody` a higher one.
const PEOPLE: std::ops::Range<u32> = 1_000..60_000;

/// An account of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Account {
    name: String,
    uid: u32,
    home: PathBuf,
}

/// Looks at each account's directory when the machine's hooks.json runs hookspan.
pub(super) fn examine(entries: &[Entry]) -> Vec<Finding> {
    let machine = entries.iter().filter(|entry| entry.scope == Some(Scope::Enterprise));
    let forms: Vec<_> = machine.filter_map(|entry| entry.form.as_ref()).collect();
    if forms.is_empty() || !cfg!(unix) {
        return Vec::new();
    }
    if let Some(dir) = forms.iter().find_map(|form| form.dir.as_deref()) {
        return pinned(dir, dir.symlink_metadata()).into_iter().collect();
    }
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let look = |account: &Account| {
        let dir = account.home.join(".local/state/hookspan");
        let found = dir.symlink_metadata();
        judge(account, &dir, found)
    };
    people(&accounts).iter().filter_map(look).collect()
}

/// All accounts share one directory, but only its owner may enter it.
fn pinned(dir: &Path, found: io::Result<Metadata>) -> Option<Finding> {
    let closed = found.ok().is_none_or(|found| !found.is_dir() || mode(&found) & 0o003 != 0o003);
    closed.then(|| {
        Finding::problem(
            "accounts.pinned",
            format!(
                "the machine's hooks.json names the same directory for all accounts: {}",
                dir.display()
            ),
            "hookspan install --scope enterprise without --dir: each account then has its own",
        )
        .meaning("hooks of all accounts except its owner are lost")
    })
}

fn judge(account: &Account, dir: &Path, found: io::Result<Metadata>) -> Option<Finding> {
    // The first hook makes a missing directory. A directory that this account cannot see is not reported.
    let found = found.ok()?;
    let (name, shown) = (&account.name, dir.display());
    let (what, remedy) = if !found.is_dir() {
        (format!("{shown} is not a directory"), format!("move it away: {shown}"))
    } else if owner(&found) != Some(account.uid) {
        (format!("{shown} belongs to another account"), format!("chown -R {name}: '{shown}'"))
    } else if mode(&found) & 0o077 != 0 {
        (format!("{shown} is open to other accounts"), format!("chmod 700 '{shown}'"))
    } else {
        return None;
    };
    let finding = Finding::problem("accounts.directory", what, remedy);
    Some(
        finding.meaning(format!("no collector of {name} uses it, and hooks of {name} may be lost")),
    )
}

/// People among the lines of a password file.
fn people(passwd: &str) -> Vec<Account> {
    let account = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, _, _, home, shell] = fields.as_slice() else { return None };
        let uid: u32 = uid.parse().ok().filter(|uid| PEOPLE.contains(uid))?;
        let may_enter = !shell.ends_with("nologin") && !shell.ends_with("/false");
        may_enter.then(|| Account { name: (*name).to_owned(), uid, home: home.into() })
    };
    passwd.lines().filter_map(account).collect()
}

#[cfg(unix)]
fn owner(found: &Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    Some(found.uid())
}

#[cfg(unix)]
fn mode(found: &Metadata) -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    found.mode()
}

#[cfg(not(unix))]
fn owner(_found: &Metadata) -> Option<u32> {
    None
}

#[cfg(not(unix))]
fn mode(_found: &Metadata) -> u32 {
    0
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn people_are_told_from_services() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\n\
                      daemon:x:1:1::/usr/sbin:/usr/sbin/nologin\n\
                      kim:x:1000:1000:Kim,,,:/home/kim:/bin/zsh\n\
                      backup:x:1001:1001::/srv:/bin/false\n\
                      nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n\
                      broken:x:y\n";
        let names: Vec<String> = people(passwd).into_iter().map(|account| account.name).collect();
        assert_eq!(names, ["kim"]);
    }

    #[test]
    fn a_directory_is_judged_by_owner_and_mode() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("hookspan");
        let me = rustix::process::geteuid().as_raw();
        let judge = |uid: u32| {
            let account = Account { name: "kim".into(), uid, home: "/home/kim".into() };
            judge(&account, &dir, dir.symlink_metadata()).map(|finding| finding.what)
        };
        assert_eq!(judge(me), None, "missing");
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
        assert_eq!(judge(me), None);
        assert!(judge(me + 1).unwrap().ends_with("belongs to another account"));
        fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        assert!(judge(me).unwrap().ends_with("is open to other accounts"));
        let pinned = |mode| {
            fs::set_permissions(&dir, Permissions::from_mode(mode)).unwrap();
            pinned(&dir, dir.symlink_metadata()).is_some()
        };
        assert!(pinned(0o700) && pinned(0o755) && !pinned(0o1777));
    }
}
