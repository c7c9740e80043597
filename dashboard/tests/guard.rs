//! Tests every request that must be refused, with its status, and the headers of every answer.

use axum::body::Body;

use crate::support::client::{Answer, TOKEN, World};

const HOST: (&str, &str) = ("host", "127.0.0.1:4329");
const BEARER: (&str, &str) = ("authorization", "Bearer correct-horse-battery-staple");
const JSON: (&str, &str) = ("content-type", "application/json");

/// Name, method, target, headers, expected status.
type Case<'a> = (&'a str, &'a str, &'a str, &'a [(&'a str, &'a str)], u16);

async fn check(cases: &[Case<'_>]) {
    let world = World::locked();
    for (name, method, target, headers, status) in cases {
        let answer = world.send(method, target, headers, Body::empty()).await;
        assert_eq!(answer.status.as_u16(), *status, "{name}: {:?}", answer.body);
        assert_protected(name, &answer);
        if *status >= 400
            && *method != "HEAD"
            && answer.header("content-type") != "text/html; charset=utf-8"
        {
            let problem = answer.json();
            assert_eq!(problem["status"], *status, "{name}");
            for field in ["type", "title", "detail", "hint"] {
                assert!(!problem[field].as_str().unwrap().is_empty(), "{name}: {field}");
            }
        }
    }
}

fn assert_protected(name: &str, answer: &Answer) {
    for (header, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
        ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
        ("cache-control", "no-store"),
        ("hookspan-version", env!("CARGO_PKG_VERSION")),
        (
            // A download may add `sandbox` to the policy.
            "content-security-policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'",
        ),
    ] {
        let found = answer.header(header);
        let found = found.strip_suffix("; sandbox").unwrap_or(found);
        assert_eq!(found, value, "{name}: {header}");
    }
    let cors = answer.headers.keys().find(|key| key.as_str().starts_with("access-control"));
    assert_eq!(cors, None, "{name}");
}

#[tokio::test]
async fn the_host_must_be_one_of_ours() {
    let host = |value| [("host", value), BEARER];
    check(&[
        ("address", "GET", "/api/v1", &host("127.0.0.1:4329"), 200),
        ("name", "GET", "/api/v1", &host("LOCALHOST:4329"), 200),
        ("IPv6", "GET", "/api/v1", &host("[::1]:4329"), 200),
        ("allowed", "GET", "/api/v1", &host("dash.example:8443"), 200),
        ("rebinding", "GET", "/api/v1", &host("evil.example:4329"), 421),
        ("without port", "GET", "/api/v1", &host("127.0.0.1"), 421),
        ("wrong port", "GET", "/api/v1", &host("127.0.0.1:4330"), 421),
        ("allowed name, our port", "GET", "/api/v1", &host("dash.example:4329"), 421),
        ("suffix", "GET", "/api/v1", &host("127.0.0.1:4329.evil.example"), 421),
        ("user", "GET", "/api/v1", &host("user@127.0.0.1:4329"), 421),
        ("trailing dot", "GET", "/api/v1", &host("localhost.:4329"), 421),
        ("empty", "GET", "/api/v1", &host(""), 421),
        ("none", "GET", "/api/v1", &[BEARER], 421),
        ("two", "GET", "/api/v1", &[HOST, HOST, BEARER], 421),
        ("page", "GET", "/", &host("evil.example:4329"), 421),
        ("asset", "GET", "/a/x/app/main.js", &host("evil.example:4329"), 421),
        ("unknown path", "GET", "/nothing", &host("evil.example:4329"), 421),
        ("stream", "GET", "/api/v1/stream", &host("evil.example:4329"), 421),
    ])
    .await;
}

#[tokio::test]
async fn the_authority_of_an_absolute_target_counts_too() {
    check(&[
        ("ours", "GET", "http://localhost:4329/api/v1", &[HOST, BEARER], 200),
        ("evil", "GET", "http://evil.example/api/v1", &[HOST, BEARER], 421),
        ("user", "GET", "http://u@127.0.0.1:4329/api/v1", &[HOST, BEARER], 421),
    ])
    .await;
}

#[tokio::test]
async fn the_origin_must_be_ours_or_absent() {
    let origin = |value| [HOST, BEARER, ("origin", value)];
    check(&[
        ("ours", "GET", "/api/v1", &origin("http://127.0.0.1:4329"), 200),
        ("another of our names", "GET", "/api/v1", &origin("http://localhost:4329"), 200),
        ("proxy", "GET", "/api/v1", &origin("https://dash.example:8443"), 200),
        ("evil", "GET", "/api/v1", &origin("http://evil.example"), 403),
        ("null", "GET", "/api/v1", &origin("null"), 403),
        ("empty", "GET", "/api/v1", &origin(""), 403),
        ("suffix", "GET", "/api/v1", &origin("http://127.0.0.1:4329.evil.example"), 403),
        ("https on loopback", "GET", "/api/v1", &origin("https://127.0.0.1:4329"), 403),
        ("other port", "GET", "/api/v1", &origin("http://127.0.0.1:3000"), 403),
        ("path", "GET", "/api/v1", &origin("http://127.0.0.1:4329/"), 403),
        (
            "two",
            "GET",
            "/api/v1",
            &[HOST, BEARER, ("origin", "http://127.0.0.1:4329"), ("origin", "http://evil.example")],
            403,
        ),
        ("page", "GET", "/", &origin("http://evil.example"), 403),
    ])
    .await;
}

#[tokio::test]
async fn another_site_may_follow_a_link_to_a_page_and_nothing_else() {
    let from = |site, mode, dest| {
        [HOST, BEARER, ("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)]
    };
    check(&[
        ("own", "GET", "/api/v1", &from("same-origin", "cors", "empty"), 200),
        ("typed", "GET", "/", &from("none", "navigate", "document"), 200),
        ("link", "GET", "/s/abc", &from("cross-site", "navigate", "document"), 200),
        ("link from another port", "GET", "/", &from("same-site", "navigate", "document"), 200),
        ("img", "GET", "/a/x/app/icon.svg", &from("cross-site", "no-cors", "image"), 403),
        ("script", "GET", "/a/x/app/main.js", &from("cross-site", "no-cors", "script"), 403),
        ("iframe", "GET", "/", &from("cross-site", "navigate", "iframe"), 403),
        ("fetch", "GET", "/", &from("cross-site", "cors", "empty"), 403),
        ("stream", "GET", "/api/v1/stream", &from("cross-site", "cors", "empty"), 403),
        ("api by link", "GET", "/api/v1", &from("cross-site", "navigate", "document"), 403),
        ("unknown path by link", "GET", "/sx", &from("cross-site", "navigate", "document"), 403),
        ("form", "POST", "/", &from("cross-site", "navigate", "document"), 403),
        ("other port", "GET", "/api/v1", &from("same-site", "cors", "empty"), 403),
        ("nonsense", "GET", "/", &from("nonsense", "cors", "empty"), 403),
        (
            "two",
            "GET",
            "/",
            &[HOST, ("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")],
            403,
        ),
    ])
    .await;
}

#[tokio::test]
async fn methods_versions_and_upgrades_are_few() {
    let upgrade = [HOST, BEARER, ("connection", "upgrade"), ("upgrade", "websocket")];
    check(&[
        ("head", "HEAD", "/api/v1", &[HOST, BEARER], 200),
        ("trace", "TRACE", "/", &[HOST], 405),
        ("options", "OPTIONS", "/api/v1/sessions", &[HOST], 405),
        ("connect", "CONNECT", "127.0.0.1:4329", &[HOST], 405),
        ("put", "PUT", "/api/v1/sessions", &[HOST, BEARER, JSON], 405),
        ("delete", "DELETE", "/api/v1/sessions/x", &[HOST, BEARER], 405),
        ("post to a list", "POST", "/api/v1/sessions", &[HOST, BEARER, JSON], 405),
        ("get of an action", "GET", "/api/v1/logout", &[HOST, BEARER], 405),
        ("websocket", "GET", "/api/v1/stream", &upgrade, 400),
    ])
    .await;
}

#[tokio::test]
async fn a_post_is_json() {
    let post = |kind| [HOST, BEARER, ("content-type", kind)];
    let login = "/api/v1/login";
    check(&[
        ("none", "POST", login, &[HOST], 415),
        ("text", "POST", login, &post("text/plain"), 415),
        ("form", "POST", login, &post("application/x-www-form-urlencoded"), 415),
        ("multipart", "POST", login, &post("multipart/form-data; boundary=x"), 415),
        ("prefix", "POST", login, &post("application/json-patch+json"), 415),
        ("two", "POST", login, &[HOST, JSON, JSON], 415),
        ("to a page", "POST", "/", &post("text/plain"), 415),
        (
            "parameters are fine",
            "POST",
            "/api/v1/logout",
            &post("Application/JSON; charset=utf-8"),
            200,
        ),
        ("empty body", "POST", login, &[HOST, JSON], 400),
    ])
    .await;
    let world = World::locked();
    let large = world.send("POST", login, &[HOST, JSON], vec![b' '; 64 * 1024 + 1]).await;
    assert_eq!(large.status.as_u16(), 413);
    assert_protected("large", &large);
    let fits = world.send("POST", login, &[HOST, JSON], vec![b' '; 64 * 1024]).await;
    assert_eq!(fits.status.as_u16(), 400);
}

#[tokio::test]
async fn data_needs_the_token_and_pages_do_not() {
    let bearer = |value| [HOST, ("authorization", value)];
    let long = format!("Bearer {}", "a".repeat(5_000));
    let extended = format!("Bearer {TOKEN}{}", "x".repeat(400));
    check(&[
        ("page", "GET", "/", &[HOST], 200),
        ("session page", "GET", "/s/0176a3f0-flaky", &[HOST], 200),
        ("unknown page", "GET", "/nothing", &[HOST], 404),
        ("api", "GET", "/api/v1", &[HOST], 401),
        ("metrics", "GET", "/metrics", &[HOST], 401),
        ("unknown api", "GET", "/api/v1/nothing", &[HOST], 401),
        ("api root", "GET", "/api", &[HOST], 401),
        ("api of the future", "GET", "/api/v2/sessions", &[HOST], 401),
        ("stream", "GET", "/api/v1/stream", &[HOST], 401),
        ("logout", "POST", "/api/v1/logout", &[HOST, JSON], 401),
        ("retry", "POST", "/api/v1/exporters/datadog/retry", &[HOST, JSON], 401),
        ("wrong", "GET", "/api/v1", &bearer("Bearer wrong"), 401),
        ("short", "GET", "/api/v1", &bearer("Bearer correct-horse"), 401),
        ("empty", "GET", "/api/v1", &bearer("Bearer "), 401),
        ("long", "GET", "/api/v1", &bearer(&long), 401),
        ("longer than right", "GET", "/api/v1", &bearer(&extended), 401),
        ("basic", "GET", "/api/v1", &bearer("Basic correct-horse-battery-staple"), 401),
        ("in the query", "GET", "/api/v1?t=correct-horse-battery-staple", &[HOST], 401),
        ("right", "GET", "/api/v1", &bearer("bearer correct-horse-battery-staple"), 200),
        (
            "cookie",
            "GET",
            "/api/v1",
            &[HOST, ("cookie", "a=b; hookspan_4329=correct-horse-battery-staple")],
            401,
        ),
        ("known, then 404", "GET", "/api/v1/nothing", &[HOST, BEARER], 404),
    ])
    .await;
}

#[tokio::test]
async fn odd_paths_reach_no_data() {
    check(&[
        ("double slash", "GET", "//api/v1/sessions", &[HOST], 404),
        ("dots", "GET", "/x/../api/v1/sessions", &[HOST], 404),
        ("encoded dots", "GET", "/x/%2e%2e/api/v1/sessions", &[HOST], 404),
        ("encoded letter", "GET", "/%61pi/v1/sessions", &[HOST], 404),
        ("encoded slash", "GET", "/api%2fv1%2fsessions", &[HOST], 404),
        ("asset above", "GET", "/a/x/../../Cargo.toml", &[HOST], 404),
        ("asset above, encoded", "GET", "/a/x/%2e%2e%2f%2e%2e%2fCargo.toml", &[HOST], 404),
        ("NUL", "GET", "/api/v1/sessions/%00", &[HOST, BEARER], 404),
        ("not UTF-8", "GET", "/api/v1/sessions/%ff", &[HOST, BEARER], 404),
        ("slash in an id", "GET", "/api/v1/sessions/a%2Fb", &[HOST, BEARER], 404),
    ])
    .await;
}

#[tokio::test]
async fn without_a_token_the_other_rules_hold() {
    let world = World::open();
    let read = world.send("GET", "/api/v1/health", &[HOST], Body::empty()).await;
    assert_eq!(read.json()["token_required"], false);
    let evil = [("host", "evil.example:4329")];
    let refused = world.send("GET", "/api/v1/health", &evil, Body::empty()).await;
    assert_eq!(refused.status.as_u16(), 421);
}

#[tokio::test]
async fn every_listed_endpoint_answers_with_its_headers() {
    let world = World::locked();
    let list = world.get("/api/v1").await.json();
    let items = list["items"].as_array().unwrap();
    assert!(items.len() >= 15);
    for item in items {
        let (method, url) = (item["method"].as_str().unwrap(), item["url"].as_str().unwrap());
        if url.ends_with("/stream") {
            continue;
        }
        let target = url
            .replace("{session}", "0176a3f0-flaky")
            .replace("{span}", "2")
            .replace("{part}", "prompt")
            .replace("{trace}", "00")
            .replace("{name}", "datadog")
            .replace("{code}", "none");
        let target = if url.ends_with("/compare") {
            format!("{target}?a=0176a3f0-flaky&b=0176a3f0-live")
        } else if url.ends_with("/preview") {
            format!("{target}?destination=jaeger")
        } else {
            target
        };
        let answer = world.send(method, &target, &[HOST, BEARER, JSON], "{}").await;
        assert_protected(url, &answer);
        let status = answer.status.as_u16();
        assert!(matches!(status, 200 | 400 | 404), "{method} {target}: {status}");
        let needs_more = [
            "login",
            "/api/v1/file",
            "trace",
            "/diff",
            "/delete",
            "/purge",
            "/revoke",
            "/marks",
            "/filters",
        ];
        assert!(status == 200 || needs_more.iter().any(|one| url.contains(one)), "{target}");
    }
}
