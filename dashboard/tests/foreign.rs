//! Attacks that broke other local dashboards and development servers, from the advisories about them.

use axum::body::Body;

use crate::support::client::World;

const HOST: (&str, &str) = ("host", "127.0.0.1:4329");
const BEARER: (&str, &str) = ("authorization", "Bearer correct-horse-battery-staple");

async fn status(method: &str, target: &str, headers: &[(&str, &str)]) -> u16 {
    let answer = World::locked().send(method, target, headers, Body::empty()).await;
    let cors = answer.headers.keys().find(|key| key.as_str().starts_with("access-control"));
    assert_eq!(cors, None, "{method} {target}");
    answer.status.as_u16()
}

/// Browsers once sent requests for 0.0.0.0 to this machine from any page; other spellings of the address do the same.
#[tokio::test]
async fn the_address_has_one_spelling() {
    for host in [
        "0.0.0.0:4329",
        "[::]:4329",
        "127.1:4329",
        "2130706433:4329",
        "0x7f000001:4329",
        "0177.0.0.1:4329",
        "[::ffff:127.0.0.1]:4329",
        "127.0.0.1.nip.io:4329",
        "localhost.localdomain:4329",
        "localtest.me:4329",
        "127.0.0.1:4329,evil.example",
        "127.0.0.1:04329",
    ] {
        assert_eq!(status("GET", "/api/v1", &[("host", host), BEARER]).await, 421, "{host}");
    }
}

/// Web views of editors, extensions and files have origins, too, and a name may begin with ours.
#[tokio::test]
async fn pages_that_are_no_web_sites_are_foreign_as_well() {
    for origin in [
        "vscode-webview://1a2b3c",
        "chrome-extension://abcdefghijklmnop",
        "moz-extension://1a2b",
        "file://",
        "app://obsidian.md",
        "http://localhost.evil.example:4329",
        "http://127.0.0.1.evil.example:4329",
        "http://127.0.0.1:43290",
        "http://127.0.0.1:4329 http://evil.example",
    ] {
        assert_eq!(
            status("GET", "/api/v1", &[HOST, BEARER, ("origin", origin)]).await,
            403,
            "{origin}"
        );
    }
}

/// Headers with which a proxy describes the original request. Some servers have believed them from anybody.
#[tokio::test]
async fn headers_of_proxies_change_nothing() {
    for header in [
        ("x-forwarded-host", "127.0.0.1:4329"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-real-ip", "127.0.0.1"),
        ("forwarded", "for=127.0.0.1;host=127.0.0.1:4329"),
        ("x-original-url", "/api/v1/sessions"),
        ("x-rewrite-url", "/api/v1/sessions"),
        ("x-middleware-subrequest", "middleware:middleware:middleware:middleware:middleware"),
        ("x-http-method-override", "POST"),
        ("x-remote-user", "root"),
    ] {
        let evil = [("host", "evil.example:4329"), BEARER, header];
        assert_eq!(status("GET", "/api/v1", &evil).await, 421, "{header:?}");
        assert_eq!(status("GET", "/api/v1/sessions", &[HOST, header]).await, 401, "{header:?}");
        assert_eq!(
            status("GET", "/api/v1/logout", &[HOST, BEARER, header]).await,
            405,
            "{header:?}"
        );
    }
}

/// A browser asks before a public page may access a private address. The answer must not be yes.
#[tokio::test]
async fn a_public_page_is_not_invited() {
    let preflight = [
        HOST,
        ("origin", "https://evil.example"),
        ("access-control-request-method", "GET"),
        ("access-control-request-private-network", "true"),
    ];
    assert_eq!(status("OPTIONS", "/api/v1/sessions", &preflight).await, 405);
}

/// Paths for which development servers returned any file.
#[tokio::test]
async fn no_path_leads_to_a_file_of_the_machine() {
    for target in [
        "/@fs/etc/passwd",
        "/@fs/etc/passwd?import&raw??",
        "/a/x/../../../../etc/passwd",
        "/a/x/..%2f..%2f..%2fetc%2fpasswd",
        "/a/x/..%252f..%252fetc%252fpasswd",
        "/a/x/%2e%2e/%2e%2e/etc/passwd",
        "/a/x/....//....//etc/passwd",
        "/a/x/..%5c..%5cetc%5cpasswd",
        "/a/x//etc/passwd",
        "/a/x/app/main.js%00.svg",
        "/a/x/app/main.js/",
        "/__open-in-editor?file=/etc/passwd",
        "/_next/image?url=http://169.254.169.254/",
        "/proxy/22/",
        "/files/etc/passwd?token=",
        "/.git/config",
    ] {
        let code = status("GET", target, &[HOST, BEARER]).await;
        assert_eq!(code, 404, "{target}");
    }
}
