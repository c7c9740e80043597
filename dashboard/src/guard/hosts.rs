//! Which names the port answers to.

/// An entry of `--allow-host` that is not `NAME:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadHost(pub String);

impl core::fmt::Display for BadHost {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "allowed host {:?} is not NAME:PORT", self.0)
    }
}

impl core::error::Error for BadHost {}

/// The list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Hosts {
    /// The three loopback names on `port`, and further `NAME:PORT` entries (which may be asked over https, through a proxy).
    ///
    /// # Errors
    ///
    /// The first entry that is not `NAME:PORT`.
    pub fn new(port: u16, allowed: &[String]) -> Result<Self, BadHost> {
        let mut hosts = Self { hosts: Vec::new(), origins: Vec::new() };
        for name in ["127.0.0.1", "localhost", "[::1]"] {
            hosts.add(name, port, &["http"]);
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
            // Clients leave the scheme's own port out.
            if (*scheme, port) == ("http", 80) || (*scheme, port) == ("https", 443) {
                self.hosts.push(name.to_owned());
                self.origins.push(format!("{scheme}://{name}"));
            }
        }
    }

    /// Whether the whole of a Host header (or of a target's authority) is one of the entries.
    #[must_use]
    pub fn lists(&self, host: &str) -> bool {
        self.hosts.iter().any(|entry| entry.eq_ignore_ascii_case(host))
    }

    /// Whether the whole of an Origin header is one of the entries with its scheme.
    #[must_use]
    pub fn lists_origin(&self, origin: &str) -> bool {
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
        Some(address) => address.parse::<core::net::Ipv6Addr>().is_ok(),
        None => !name.is_empty() && plain(name),
    };
    valid.then_some((name, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_names_with_ports() {
        let allow = |entry: &str| Hosts::new(4329, &[entry.to_owned()]);
        assert!(allow("dash.example:8443").is_ok_and(|hosts| hosts.lists("DASH.example:8443")));
        assert!(allow("[fd00::1]:80").is_ok_and(|hosts| hosts.lists("[fd00::1]")));
        for entry in ["dash.example", "dash:0", ":80", "a/b:80", "user@a:80", "*:80", "[x]:80"] {
            assert_eq!(allow(entry), Err(BadHost(entry.to_owned())), "{entry}");
        }
    }

    #[test]
    fn https_is_for_allowed_names_only() {
        let hosts = Hosts::new(4329, &["dash.example:443".to_owned()]).unwrap();
        assert!(hosts.lists_origin("https://dash.example"));
        assert!(hosts.lists("dash.example"));
        assert!(hosts.lists_origin("http://localhost:4329"));
        assert!(!hosts.lists_origin("https://localhost:4329"));
        assert!(!hosts.lists("localhost"));
    }
}
