//! Which account has connected to a port of this machine.
//!
//! Every account can reach the port. On Linux the kernel tells whose socket is at the other end (`sock_diag(7)`), and every
//! account but the owner, root and those in `allow_uids` gets a refusal with the reason. Other systems do not tell, and neither
//! does Linux for a socket in another network namespace: there, only signing in protects.

use std::net::SocketAddr;

use axum::Router;
use axum::http::StatusCode;
use hookspan_dashboard::problem::Problem;

#[cfg(target_os = "linux")]
mod linux;

/// Who may connect.
#[derive(Debug)]
pub(super) struct Peers {
    /// `None` if the system does not tell.
    own: Option<u32>,
    allowed: Vec<u32>,
}

impl Peers {
    pub(super) fn new(allowed: &[u32]) -> Self {
        Self { own: own_uid(), allowed: allowed.to_vec() }
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
        self.own.is_none_or(|own| own == uid) || uid == 0 || self.allowed.contains(&uid)
    }
}

/// Answers an account that may not connect.
pub(super) fn refusal() -> Router {
    Router::new().fallback(async || {
        Problem::new(
            StatusCode::FORBIDDEN,
            "another-account",
            "another account",
            "this port serves the account that started hookspan, and the program that connects runs as another one",
            "a proxy of another account is let in by `allow_uids` in [dashboard]",
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
