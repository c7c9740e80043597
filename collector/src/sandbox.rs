//! Restricts the running collector. It may not start programs, gain privileges, write outside of its data folders, open
//! further ports, or connect to ports other than those of its destinations.
//!
//! Only Linux offers this to programs without privileges (Landlock, `landlock(7)`). An older kernel enforces the part
//! that it supports. Reading is not restricted, because hooks name transcripts in any folder, and without a port to
//! send to, the content stays on this machine. The restrictions apply to the calling thread and to all threads that it
//! starts, so call [`enter`] before starting threads.

use std::path::PathBuf;

/// The rights that the collector needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    /// Folders in which it writes. Missing ones are skipped.
    pub writable: Vec<PathBuf>,
    /// Folders in which it removes its sockets when it ends.
    pub sockets: Vec<PathBuf>,
    /// TCP ports that it connects to; `None` for any port.
    pub ports: Option<Vec<u16>>,
}

/// The restrictions in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// No program that it starts can gain privileges.
    pub no_new_privileges: bool,
    /// It may write only in its own folders, and may not start programs.
    pub files: bool,
    /// It may not open a port, and may connect only to the ports of its destinations.
    pub network: bool,
}

impl Held {
    /// A description for `serve.json` and `doctor`.
    #[must_use]
    pub(crate) fn words(self) -> String {
        let parts = [
            (self.no_new_privileges, "no new privileges"),
            (self.files, "writes and programs restricted"),
            (self.network, "network restricted"),
        ];
        let held: Vec<_> = parts.iter().filter(|part| part.0).map(|part| part.1).collect();
        if held.is_empty() { "none".to_owned() } else { held.join(", ") }
    }
}

/// Gives up the right to new privileges and, with `needs`, every right that is not needed. If the kernel refuses,
/// nothing changes.
#[must_use]
pub(crate) fn enter(needs: Option<&Needs>) -> Held {
    let no_new_privileges = system::give_up_privileges();
    let Some(needs) = needs else { return Held { no_new_privileges, ..Held::default() } };
    let (files, network) = system::restrict(needs).unwrap_or_else(|error| {
        tracing::warn!(%error, "sandbox.not_entered");
        (false, false)
    });
    Held { no_new_privileges, files, network }
}

#[cfg(target_os = "linux")]
mod system {
    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _,
        LandlockStatus, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
        RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    };

    use super::Needs;

    /// Rights that only later kernels know are not restricted, because the collector was never tested without them.
    const KNOWN: ABI = ABI::V6;
    /// The first Landlock version that can restrict ports.
    const WITH_PORTS: ABI = ABI::V4;

    pub(super) fn give_up_privileges() -> bool {
        rustix::thread::set_no_new_privs(true).is_ok()
    }

    /// Restricts files and network. Returns which of the two restrictions are in force.
    ///
    /// There must be only one Landlock domain: a second one would forbid every rename from one folder to another.
    pub(super) fn restrict(needs: &Needs) -> Result<(bool, bool), RulesetError> {
        let writing = AccessFs::from_write(KNOWN);
        let special = AccessFs::MakeChar | AccessFs::MakeBlock;
        let mut ports = BitFlags::from(AccessNet::BindTcp);
        if needs.ports.is_some() {
            ports |= AccessNet::ConnectTcp;
        }
        // The first Landlock version (Linux 5.13 to 5.18) forbids renames from one folder to another, but moving a damaged
        // database aside needs one.
        let renames = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        if renames.handle_access(AccessFs::Refer).is_err() {
            return Ok((false, false));
        }
        let ruleset = Ruleset::default()
            .handle_access(writing | AccessFs::Execute)?
            .handle_access(ports)?
            .scope(Scope::from_all(KNOWN))?;
        let mut ruleset = ruleset.create()?;
        let folders = needs.writable.iter().map(|path| (path, writing & !special));
        let sockets = needs.sockets.iter().map(|path| (path, AccessFs::RemoveFile.into()));
        for (path, rights) in folders.chain(sockets) {
            let Ok(folder) = PathFd::new(path) else { continue };
            let rights: BitFlags<AccessFs> = rights;
            ruleset = ruleset.add_rule(PathBeneath::new(folder, rights))?;
        }
        for port in needs.ports.iter().flatten() {
            ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
        let status = ruleset.restrict_self()?;
        let is_entered = status.ruleset != RulesetStatus::NotEnforced;
        let knows_ports = match status.landlock {
            LandlockStatus::Available { effective_abi, .. } => effective_abi >= WITH_PORTS,
            _ => false,
        };
        Ok((is_entered, is_entered && knows_ports))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::Needs;

    pub(super) fn give_up_privileges() -> bool {
        false
    }

    pub(super) fn restrict(_: &Needs) -> Result<(bool, bool), std::convert::Infallible> {
        Ok((false, false))
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;

    use super::*;

    /// The restrictions end with the test's thread.
    #[test]
    fn what_is_not_needed_is_gone_for_the_thread_and_those_it_starts() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("read"), "x").unwrap();
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [allowed, other] = listeners.each_ref().map(|one| one.local_addr().unwrap());
        let needs = Needs {
            writable: vec![inside.path().to_owned(), "/not/there".into()],
            sockets: vec![outside.path().to_owned()],
            ports: Some(vec![allowed.port()]),
        };
        let tried = std::thread::spawn(move || {
            let held = enter(Some(&needs));
            let tried = std::thread::spawn(move || {
                let (inside, outside) = (&needs.writable[0], &needs.sockets[0]);
                fs::create_dir(inside.join("d")).unwrap();
                fs::write(inside.join("d/a"), "1").unwrap();
                fs::rename(inside.join("d/a"), inside.join("b")).unwrap();
                fs::remove_file(inside.join("b")).unwrap();
                assert_eq!(fs::read(outside.join("read")).unwrap(), b"x", "reading is free");
                [
                    ("write", fs::write(outside.join("w"), "1").is_err()),
                    (
                        "change",
                        fs::OpenOptions::new().append(true).open(outside.join("read")).is_err(),
                    ),
                    ("program", Command::new("/bin/true").status().is_err()),
                    ("connect", TcpStream::connect(other).is_err()),
                    ("listen", TcpListener::bind("127.0.0.1:0").is_err()),
                    ("its port", TcpStream::connect(allowed).is_ok()),
                    ("its socket", fs::remove_file(outside.join("read")).is_ok()),
                ]
            });
            (held, tried.join().unwrap())
        });
        let (held, tried) = tried.join().unwrap();
        assert!(held.no_new_privileges, "{held:?}");
        for (what, is_right) in tried {
            let part = if matches!(what, "connect" | "listen") { held.network } else { held.files };
            let is_free = matches!(what, "its port" | "its socket");
            assert_eq!(is_right, part || is_free, "{what}: {held:?}");
        }
        eprintln!("this kernel: {}", held.words());
    }

    #[test]
    fn switched_off_it_still_gives_up_privileges() {
        let held = std::thread::spawn(|| {
            let held = enter(None);
            assert!(Command::new("/bin/true").status().unwrap().success());
            held
        });
        assert_eq!(held.join().unwrap().words(), "no new privileges");
        assert_eq!(Held::default().words(), "none");
    }
}
