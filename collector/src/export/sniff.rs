//! Finds out which protocol a port speaks, if the failed requests do not tell.
//!
//! A server may hang up on a client that uses another protocol. Go's HTTP server does so for gRPC: the client then
//! sees, by chance, either a meaningless answer or a broken pipe. A plain HTTP/1.1 request gets a clear answer.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use super::cause::Cause;
use crate::config::destination::{Destination, Protocol};

const PATIENCE: Duration = Duration::from_secs(2);

/// Sends a plain HTTP/1.1 request to the port of `destination`. Returns what is wrong with the configuration, if the
/// answer tells. Blocks.
pub(super) fn sniff(destination: &Destination) -> Option<Cause> {
    let answer = ask(destination)?;
    let is_tls = destination.connection.endpoint.starts_with("https://");
    cause(&answer, is_tls, destination.connection.protocol)
}

fn ask(destination: &Destination) -> Option<Vec<u8>> {
    let url = reqwest::Url::parse(&destination.connection.endpoint).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
    let address = (host.as_str(), url.port_or_known_default()?).to_socket_addrs().ok()?.next()?;
    let mut socket = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    socket.set_write_timeout(Some(PATIENCE)).ok()?;
    let request = format!("GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).ok()?;
    let mut answer = vec![0; 512];
    let read = socket.read(&mut answer).ok()?;
    answer.truncate(read);
    Some(answer)
}

/// Judges the first bytes of the answer.
fn cause(answer: &[u8], is_tls: bool, protocol: Protocol) -> Option<Cause> {
    let is_http1 = answer.starts_with(b"HTTP/1.");
    // Every HTTP/2 server begins with a SETTINGS frame on stream 0.
    let is_http2 = answer.get(3..9) == Some(&[4, 0, 0, 0, 0, 0]);
    let is_alert = answer.starts_with(&[0x15, 3]);
    // A TLS server may say in plain HTTP that it requires TLS.
    let wants_tls = String::from_utf8_lossy(answer).to_ascii_lowercase().contains("https");
    match protocol {
        _ if is_tls => ((is_http1 && !wants_tls) || is_http2).then_some(Cause::NotTls),
        _ if is_alert || (is_http1 && wants_tls) => Some(Cause::WantsTls),
        Protocol::Grpc => is_http1.then_some(Cause::NotHttp2),
        Protocol::Http => is_http2.then_some(Cause::NotHttp1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_what_a_port_speaks() {
        let http1: &[u8] = b"HTTP/1.1 404 Not Found\r\n";
        let go_tls: &[u8] =
            b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
        let http2: &[u8] = b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00";
        let alert: &[u8] = b"\x15\x03\x01\x00\x02\x02\x46";
        for (answer, is_tls, protocol, expected) in [
            (http1, false, Protocol::Grpc, Some(Cause::NotHttp2)),
            (http1, false, Protocol::Http, None),
            (http1, true, Protocol::Http, Some(Cause::NotTls)),
            (go_tls, true, Protocol::Grpc, None),
            (go_tls, false, Protocol::Grpc, Some(Cause::WantsTls)),
            (http2, false, Protocol::Http, Some(Cause::NotHttp1)),
            (http2, false, Protocol::Grpc, None),
            (http2, true, Protocol::Grpc, Some(Cause::NotTls)),
            (alert, false, Protocol::Http, Some(Cause::WantsTls)),
            (alert, true, Protocol::Http, None),
            (b"SSH-2.0-x\r\n", false, Protocol::Http, None),
            (b"", false, Protocol::Grpc, None),
        ] {
            assert_eq!(
                cause(answer, is_tls, protocol),
                expected,
                "{answer:?} {is_tls} {protocol:?}"
            );
        }
    }
}
