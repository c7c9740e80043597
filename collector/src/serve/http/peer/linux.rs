//! Asks the kernel whose socket it is.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::Once;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

const AF_NETLINK: i32 = 16;
const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const IPPROTO_TCP: u8 = 6;
/// State of a listening socket, which is not a connection.
const TCP_LISTEN: u8 = 10;
/// Maximum wait. The kernel answers a question about a single socket at once.
const PATIENCE: Duration = Duration::from_millis(50);
/// Size of `struct nlmsghdr` and `struct inet_diag_req_v2`.
const QUESTION_BYTES: usize = 16 + 56;
/// Offsets of `idiag_state` and `idiag_uid` in an answer. They are in `struct inet_diag_msg`, after the header.
const STATE_AT: usize = 16 + 1;
const UID_AT: usize = 16 + 64;

/// The account that owns the socket at `peer` which is connected to `own`. Both are on this machine. `None` if there is
/// no such socket, or if the kernel does not support the question. It takes 50 µs, with one connection or with 2,000.
/// (Reading `/proc/net/tcp` would take 100 ms.)
pub(super) fn uid(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    static TOLD: Once = Once::new();
    asked(peer, own).unwrap_or_else(|error| {
        TOLD.call_once(|| tracing::warn!(%error, "dashboard.accounts_unknown"));
        None
    })
}

fn asked(peer: SocketAddr, own: SocketAddr) -> std::io::Result<Option<u32>> {
    let protocol = Protocol::from(NETLINK_SOCK_DIAG);
    let mut socket = Socket::new(Domain::from(AF_NETLINK), Type::DGRAM, Some(protocol))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(&question(peer, own))?;
    let mut answer = [0; 1_024];
    let length = socket.read(&mut answer)?;
    let answer = answer.get(..length).unwrap_or_default();
    let kind = answer.get(4..6).and_then(|kind| kind.try_into().ok()).map(u16::from_ne_bytes);
    if kind != Some(SOCK_DIAG_BY_FAMILY) {
        // An error means that there is no such socket, or that the kernel does not know the question.
        let code = answer.get(16..20).and_then(|code| code.try_into().ok()).map(i32::from_ne_bytes);
        let code = code.unwrap_or_default().saturating_neg();
        const NO_ENTRY: i32 = 2;
        return if code == NO_ENTRY {
            Ok(None)
        } else {
            Err(std::io::Error::from_raw_os_error(code))
        };
    }
    let uid = answer.get(UID_AT..UID_AT + 4).and_then(|uid| uid.try_into().ok());
    let listens = answer.get(STATE_AT) == Some(&TCP_LISTEN);
    Ok(uid.filter(|_| !listens).map(u32::from_ne_bytes))
}

/// The question about the socket whose own address is `peer`. Addresses and ports are in network byte order.
fn question(peer: SocketAddr, own: SocketAddr) -> Vec<u8> {
    const AF_INET: u8 = 2;
    const AF_INET6: u8 = 10;
    let mut out = Vec::with_capacity(QUESTION_BYTES);
    out.extend((QUESTION_BYTES as u32).to_ne_bytes());
    out.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out.extend(NLM_F_REQUEST.to_ne_bytes());
    out.extend([0; 8]);
    let family = if peer.is_ipv4() { AF_INET } else { AF_INET6 };
    out.extend([family, IPPROTO_TCP, 0, 0]);
    // All states.
    out.extend(u32::MAX.to_ne_bytes());
    out.extend(peer.port().to_be_bytes());
    out.extend(own.port().to_be_bytes());
    for address in [peer.ip(), own.ip()] {
        match address {
            IpAddr::V4(address) => {
                out.extend(address.octets());
                out.extend([0; 12]);
            }
            IpAddr::V6(address) => out.extend(address.octets()),
        }
    }
    out.extend([0; 4]);
    // No cookie.
    out.extend([0xff; 8]);
    out
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_account_of_a_connection_is_told() {
        let own_uid = rustix::process::geteuid().as_raw();
        for place in ["127.0.0.1:0", "127.0.0.5:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(place) else { continue };
            let mut target = listener.local_addr().unwrap();
            if target.ip().is_unspecified() {
                // An IPv4 address that is connected to a socket for both protocols.
                target.set_ip([127, 0, 0, 1].into());
            }
            let client = TcpStream::connect(target).unwrap();
            let (stream, peer) = listener.accept().unwrap();
            let canonical = |at: SocketAddr| SocketAddr::new(at.ip().to_canonical(), at.port());
            let (peer, own) = (canonical(peer), canonical(stream.local_addr().unwrap()));
            assert_eq!(uid(peer, own), Some(own_uid), "{place}");
            // No socket, and a listening socket.
            assert_eq!(uid(SocketAddr::new(peer.ip(), 1), own), None, "{place}");
            assert_eq!(uid(own, SocketAddr::new(own.ip(), 1)), None, "{place}");
            drop(client);
        }
    }
}
