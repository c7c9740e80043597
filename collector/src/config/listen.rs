//! Where the dashboard listens, and whether that is safe.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Misuse;

/// Maximum length in bytes of a Unix socket's path. Systems accept 103 or 107 bytes, and the socket is first created
/// under a slightly longer name.
const SOCKET_PATH_MAX: usize = 90;

/// `[dashboard]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dashboard {
    /// Where to listen: at most one address, and any number of Unix sockets.
    pub listen: Vec<Place>,
    /// Whether the API requires a sign-in or a token.
    pub token: bool,
    /// Additional `NAME:PORT` under which a browser may use the dashboard.
    pub allow_hosts: Vec<String>,
    /// Accounts of this computer that may connect in addition to the owner and root, for example accounts of proxies.
    pub allow_uids: Vec<u32>,
    /// Whether the dashboard may listen without TLS on an address that other machines can reach.
    pub insecure: bool,
}

impl Default for Dashboard {
    fn default() -> Self {
        Self {
            listen: vec![Place::Tcp(SocketAddr::from(([127, 0, 0, 1], 4329)))],
            token: true,
            allow_hosts: Vec::new(),
            allow_uids: Vec::new(),
            insecure: false,
        }
    }
}

/// One place to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Address and port.
    Tcp(SocketAddr),
    /// A Unix socket, by its path.
    Unix(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A text that names no [`Place`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is neither ADDRESS:PORT, like 127.0.0.1:4329, nor unix:PATH", .0.escape_debug())]
pub struct NoPlace(String);

impl FromStr for Place {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Self, NoPlace> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        text.parse().map(Self::Tcp).map_err(|_| NoPlace(text.to_owned()))
    }
}

/// Whether an address can be reached only from this machine.
#[must_use]
pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The first address among places.
pub(super) fn tcp(places: &[Place]) -> Option<SocketAddr> {
    places.iter().find_map(|place| match place {
        Place::Tcp(address) => Some(*address),
        Place::Unix(_) => None,
    })
}

/// The Unix sockets among places.
pub(super) fn sockets(places: &[Place]) -> impl Iterator<Item = &Path> {
    places.iter().filter_map(|place| match place {
        Place::Unix(path) => Some(path.as_path()),
        Place::Tcp(_) => None,
    })
}

impl Dashboard {
    /// The TCP address to listen on, if one is configured.
    #[must_use]
    pub fn tcp(&self) -> Option<SocketAddr> {
        tcp(&self.listen)
    }

    /// The Unix sockets.
    pub fn sockets(&self) -> impl Iterator<Item = &Path> {
        sockets(&self.listen)
    }

    /// Refuses settings that would not work, or that would let others read the data.
    ///
    /// # Errors
    /// [`Misuse`], with the reason and what to do.
    pub fn check(&self) -> Result<(), Misuse> {
        let addresses = self.listen.iter().filter(|place| matches!(place, Place::Tcp(_))).count();
        if self.listen.is_empty() || addresses > 1 {
            return Err(Misuse(
                "the dashboard listens on one ADDRESS:PORT, on Unix sockets (unix:PATH), or on both".to_owned(),
            ));
        }
        self.sockets().try_for_each(check_socket)?;
        if let Some(wrong) = self.allow_hosts.iter().find(|host| !super::is_host_and_port(host)) {
            let wrong = wrong.escape_debug();
            return Err(Misuse(format!(
                "allowed host `{wrong}` is not NAME:PORT, like build.lan:4329"
            )));
        }
        match self.tcp() {
            Some(address) if !is_loopback(address.ip()) => self.check_remote(address),
            _ => Ok(()),
        }
    }

    fn check_remote(&self, address: SocketAddr) -> Result<(), Misuse> {
        let port = address.port();
        if !self.token {
            return Err(Misuse(format!(
                "without a token the dashboard listens on this machine only, not on {address}: leave out --no-token, or use \
                 --listen 127.0.0.1:{port}"
            )));
        }
        if self.insecure {
            return Ok(());
        }
        Err(Misuse(format!(
            "{address} is reached from other machines, and hookspan speaks no TLS: whoever is on the way would read prompts \
             and code, and could change the pages. Put a proxy with TLS in front of it (--listen 127.0.0.1:{port} --allow-host \
             NAME:PORT) or a tunnel (ssh -L {port}:127.0.0.1:{port} HOST). Where the network is as safe as this machine, as \
             between a container and its host, say --insecure (`insecure = true`)"
        )))
    }
}

pub(super) fn check_socket(path: &Path) -> Result<(), Misuse> {
    let shown = path.display();
    if !cfg!(unix) {
        return Err(Misuse(format!("unix:{shown}: this system has no Unix sockets")));
    }
    if !path.is_absolute() {
        return Err(Misuse(format!("unix:{shown}: name the socket by its whole path, from /")));
    }
    let bytes = path.as_os_str().len();
    if bytes > SOCKET_PATH_MAX {
        return Err(Misuse(format!(
            "unix:{shown}: the path of a socket may have {SOCKET_PATH_MAX} bytes, not {bytes}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(listen: &[&str], change: impl FnOnce(&mut Dashboard), expected: Option<&str>) {
        let listen = listen.iter().map(|place| place.parse().unwrap()).collect();
        let mut dashboard = Dashboard { listen, ..Dashboard::default() };
        change(&mut dashboard);
        let found = dashboard.check().map_err(|error| error.0);
        match expected {
            None => assert_eq!(found, Ok(())),
            Some(part) => {
                assert!(found.as_ref().is_err_and(|text| text.contains(part)), "{found:?}");
            }
        }
    }

    #[test]
    fn only_this_machine_is_served_without_tls() {
        for loopback in ["127.0.0.1:1", "127.0.0.5:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "unix:/s"]
        {
            check(&[loopback], |_| {}, None);
            check(&[loopback], |it| it.token = false, None);
        }
        for remote in ["0.0.0.0:1", "[::]:1", "192.0.2.7:1", "[fd00::1]:1", "[::ffff:192.0.2.7]:1"]
        {
            check(&[remote], |_| {}, Some("speaks no TLS"));
            check(&[remote], |it| it.insecure = true, None);
            let open = |it: &mut Dashboard| (it.token, it.insecure) = (false, true);
            check(&[remote], open, Some("without a token"));
        }
    }

    #[test]
    fn places_are_checked_before_anything_listens() {
        check(&["127.0.0.1:1", "unix:/run/a", "unix:/run/b"], |_| {}, None);
        check(&[], |_| {}, Some("listens on one ADDRESS:PORT"));
        check(&["127.0.0.1:1", "127.0.0.1:2"], |_| {}, Some("listens on one ADDRESS:PORT"));
        check(&["unix:a"], |_| {}, Some("whole path"));
        check(&["unix:"], |_| {}, Some("whole path"));
        check(&[&format!("unix:/{}", "a".repeat(200))], |_| {}, Some("90 bytes, not 201"));
        check(
            &["127.0.0.1:1"],
            |it| it.allow_hosts.push("*:80".to_owned()),
            Some("allowed host `*:80` is not NAME:PORT"),
        );
    }

    #[test]
    fn a_place_that_is_none_says_what_one_is() {
        for text in ["nonsense", "127.0.0.1", ":4329", "localhost:4329", "unix"] {
            let error = text.parse::<Place>().unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("unix:PATH"), "{error}");
        }
        assert_eq!("unix:/a b".parse::<Place>().unwrap().to_string(), "unix:/a b");
    }
}
