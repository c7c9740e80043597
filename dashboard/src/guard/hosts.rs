//! The host names that the port answers to.

use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// An entry of `--allow-host` that is not `NAME:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadHost(pub String);

impl core::fmt::Display for BadHost {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "allowed host `{}` is not NAME:PORT, like build.lan:4329", self.0.escape_debug())
    }
}

impl core::error::Error for BadHost {}

/// The list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hosts {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Hosts {
    /// Accepts the three loopback names on the port of `address`, the address itself if it is a loopback address, and
    /// further `NAME:PORT` entries (which may be used over https, through a proxy).
    ///
    /// # Errors
    ///
    /// The first entry that is not `NAME:PORT`.
    pub(crate) fn new(address: Option<SocketAddr>, allowed: &[String]) -> Result<Self, BadHost> {
        let mut hosts = Self { hosts: Vec::new(), origins: Vec::new() };
        if let Some(address) = address {
            for name in ["127.0.0.1", "localhost", "[::1]"] {
                hosts.add(name, address.port(), &["http"]);
            }
            let own = address.ip();
            if own.is_loopback() && own != Ipv4Addr::LOCALHOST && own != Ipv6Addr::LOCALHOST {
                hosts.add(&own.to_string(), address.port(), &["http"]);
            }
        }
        for entry in allowed {
            let (name, port) = parse(entry).ok_or_else(|| BadHost(entry.clone()))?;
            hosts.add(name, port, &["http", "https"]);
        }
        Ok(hosts)
    }

    fn add(&mut self, name: &str, port: u16, schemes: &[&str]) {
        self.hosts.push(format!("{name}:{port}"));
        for scheme in schemes {
            self.origins.push(format!("{scheme}://{name}:{port}"));
            // Clients omit the scheme's default port.
            if (*scheme, port) == ("http", 80) || (*scheme, port) == ("https", 443) {
                self.hosts.push(name.to_owned());
                self.origins.push(format!("{scheme}://{name}"));
            }
        }
    }

    /// Whether a complete Host header (or the authority of a target) is one of the entries.
    #[must_use]
    pub(crate) fn lists(&self, host: &str) -> bool {
        self.hosts.iter().any(|entry| entry.eq_ignore_ascii_case(host))
    }

    /// Whether a complete Origin header is one of the entries with its scheme.
    #[must_use]
    pub(crate) fn lists_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|entry| entry.eq_ignore_ascii_case(origin))
    }
}

fn parse(entry: &str) -> Option<(&str, u16)> {
    let (name, port) = entry.rsplit_once(':')?;
    let port = port.parse().ok().filter(|&port| port != 0)?;
    let plain = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
    };
    let bracketed = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let valid = match bracketed {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !name.is_empty() && plain(name),
    };
    valid.then_some((name, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4329);

    #[test]
    fn a_loopback_address_other_than_the_usual_one_is_a_name_too() {
        let of = |address: &str| Hosts::new(Some(address.parse().unwrap()), &[]).unwrap();
        let hosts = of("127.0.0.5:80");
        assert!(
            hosts.lists("127.0.0.5") && hosts.lists("127.0.0.5:80") && hosts.lists("localhost")
        );
        assert!(hosts.lists_origin("http://127.0.0.5"));
        assert!(!of("127.0.0.1:80").lists("127.0.0.5"));
        // For other addresses, names must be configured. An address alone does not protect against DNS rebinding.
        assert!(!of("192.0.2.7:80").lists("192.0.2.7"));
        assert!(!Hosts::new(None, &[]).unwrap().lists("localhost"));
    }

    #[test]
    fn entries_are_names_with_ports() {
        let allow = |entry: &str| Hosts::new(Some(ADDRESS), &[entry.to_owned()]);
        assert!(allow("dash.example:8443").is_ok_and(|hosts| hosts.lists("DASH.example:8443")));
        assert!(allow("[fd00::1]:80").is_ok_and(|hosts| hosts.lists("[fd00::1]")));
        for entry in ["dash.example", "dash:0", ":80", "a/b:80", "user@a:80", "*:80", "[x]:80"] {
            assert_eq!(allow(entry), Err(BadHost(entry.to_owned())), "{entry}");
        }
    }

    #[test]
    fn https_is_for_allowed_names_only() {
        let hosts = Hosts::new(Some(ADDRESS), &["dash.example:443".to_owned()]).unwrap();
        assert!(hosts.lists_origin("https://dash.example"));
        assert!(hosts.lists("dash.example"));
        assert!(hosts.lists_origin("http://localhost:4329"));
        assert!(!hosts.lists_origin("https://localhost:4329"));
        assert!(!hosts.lists("localhost"));
    }
}
