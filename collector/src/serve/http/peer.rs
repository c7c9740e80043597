//! Finds which account has connected to a port of this machine.
//!
//! Every account can reach the port. On Linux the kernel tells who owns the socket at the other end (`sock_diag(7)`).
//! The owner, root and the accounts in `allow_uids` are admitted; all others get a refusal with the reason. Other
//! systems do not tell, and neither does Linux for a socket in another network namespace. There, only signing in
//! protects the dashboard.

use std::net::SocketAddr;

use axum::Router;
use axum::http::StatusCode;
use hookspan_dashboard::Problem;

#[cfg(target_os = "linux")]
mod linux;

/// Who may connect.
#[derive(Debug)]
pub(super) struct Peers {
    /// `None` if the system does not tell.
    own: Option<u32>,
    allowed: Vec<u32>,
    /// A service manager may run the collector in a user namespace. Inside it, all other accounts have this number.
    unknown: Option<u32>,
}

impl Peers {
    pub(super) fn new(allowed: &[u32]) -> Self {
        let unknown = unknown_uid();
        if unknown.is_some() && !allowed.is_empty() {
            tracing::warn!(
                "allow_uids has no effect here: accounts cannot be distinguished in this user namespace; listen on a Unix socket instead"
            );
        }
        Self { own: own_uid(), allowed: allowed.to_vec(), unknown }
    }

    /// Whether the account behind a connection from `peer` to `own` may connect.
    pub(super) fn admits(&self, peer: SocketAddr, own: SocketAddr) -> bool {
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let own = SocketAddr::new(own.ip().to_canonical(), own.port());
        if !peer.ip().is_loopback() {
            return true;
        }
        uid(peer, own).is_none_or(|uid| self.admits_uid(uid))
    }

    pub(super) fn admits_uid(&self, uid: u32) -> bool {
        let is_known = self.unknown != Some(uid);
        self.own.is_none_or(|own| own == uid)
            || uid == 0
            || (is_known && self.allowed.contains(&uid))
    }
}

/// The answer to an account that may not connect.
pub(super) fn refusal() -> Router {
    Router::new().fallback(async || {
        Problem::new(
            StatusCode::FORBIDDEN,
            "another-account",
            "another account",
            "only the account that started hookspan may use this port, and this program runs as another account",
            "to admit a proxy of another account, add it to `allow_uids` in [dashboard]",
        )
    })
}

#[cfg(target_os = "linux")]
fn uid(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    linux::uid(peer, own)
}

#[cfg(not(target_os = "linux"))]
fn uid(_: SocketAddr, _: SocketAddr) -> Option<u32> {
    None
}

#[cfg(unix)]
fn own_uid() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn own_uid() -> Option<u32> {
    None
}

/// The number that unknown accounts have in a user namespace, if the collector runs in one.
#[cfg(target_os = "linux")]
fn unknown_uid() -> Option<u32> {
    let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
    if knows_all(&map) {
        return None;
    }
    let number = std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok();
    Some(number.and_then(|text| text.trim().parse().ok()).unwrap_or(65_534))
}

#[cfg(not(target_os = "linux"))]
fn unknown_uid() -> Option<u32> {
    None
}

/// Whether a `uid_map` maps every account to itself.
#[cfg(any(target_os = "linux", test))]
fn knows_all(map: &str) -> bool {
    let words: Vec<&str> = map.split_whitespace().collect();
    words == ["0", "0", "4294967295"]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_that_the_namespace_does_not_know_is_not_let_in_by_its_number() {
        assert!(knows_all("         0          0 4294967295\n"));
        assert!(!knows_all("      1000       1000          1\n"));
        let peers = |unknown| Peers { own: Some(1_000), allowed: vec![65_534, 33], unknown };
        assert!(peers(None).admits_uid(65_534) && peers(None).admits_uid(33));
        let inside = peers(Some(65_534));
        assert!(!inside.admits_uid(65_534), "it stands for every other account");
        assert!(inside.admits_uid(1_000) && !inside.admits_uid(5));
    }
}
