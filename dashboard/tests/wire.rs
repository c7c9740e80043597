//! Tests requests that only a raw connection can express.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::support::client::World;

/// Sends these bytes to a real server. Returns the status line of the answer.
async fn status(request: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, World::locked().router).await });
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await;
    read.expect("the server closes the connection").unwrap();
    server.abort();
    let text = String::from_utf8_lossy(&answer);
    text.split_whitespace().nth(1).unwrap_or("closed").to_owned()
}

#[tokio::test]
async fn raw_requests_are_refused() {
    let host = "Host: 127.0.0.1:4329\r\n";
    let end = "Connection: close\r\n\r\n";
    for (name, request, expected) in [
        ("fine", format!("GET / HTTP/1.1\r\n{host}{end}"), "200"),
        ("HTTP/1.0", format!("GET / HTTP/1.0\r\n{host}{end}"), "400"),
        ("no host", format!("GET / HTTP/1.1\r\n{end}"), "421"),
        ("two hosts", format!("GET / HTTP/1.1\r\n{host}{host}{end}"), "421"),
        ("absolute", format!("GET http://evil.example/ HTTP/1.1\r\n{host}{end}"), "421"),
        (
            "two origins",
            format!("GET / HTTP/1.1\r\n{host}Origin: null\r\nOrigin: null\r\n{end}"),
            "403",
        ),
        ("connect", format!("CONNECT 127.0.0.1:4329 HTTP/1.1\r\n{host}{end}"), "405"),
        ("trace", format!("TRACE / HTTP/1.1\r\n{host}{end}"), "405"),
        ("NUL in the path", format!("GET /\0 HTTP/1.1\r\n{host}{end}"), "400"),
        ("scheme-relative", format!("GET //evil.example/ HTTP/1.1\r\n{host}{end}"), "404"),
        (
            "CL and TE",
            format!(
                "POST /api/v1/login HTTP/1.1\r\n{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n{end}0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
            ),
            "415",
        ),
        (
            "two lengths",
            format!(
                "POST /api/v1/login HTTP/1.1\r\n{host}Content-Length: 5\r\nContent-Length: 6\r\n{end}"
            ),
            "400",
        ),
        (
            "odd coding",
            format!("POST /api/v1/login HTTP/1.1\r\n{host}Transfer-Encoding: identity\r\n{end}"),
            "400",
        ),
        (
            "folded header",
            format!("GET / HTTP/1.1\r\nHost: evil.example\r\n 127.0.0.1:4329\r\n{end}"),
            "400",
        ),
        (
            "space before the colon",
            format!("GET / HTTP/1.1\r\nHost : 127.0.0.1:4329\r\n{end}"),
            "400",
        ),
        (
            "fragment in the target",
            format!("GET /a/x/#/../../etc/passwd HTTP/1.1\r\n{host}{end}"),
            "404",
        ),
        ("asterisk", format!("OPTIONS * HTTP/1.1\r\n{host}{end}"), "405"),
        (
            "websocket",
            format!(
                "GET /api/v1/stream HTTP/1.1\r\n{host}Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            ),
            "400",
        ),
    ] {
        assert_eq!(status(&request).await, expected, "{name}");
    }
}
