//! Tests signing in: what is admitted, what is refused, and that stolen credentials are useless.

use axum::body::Body;
use serde_json::json;

use crate::support::client::{ADDRESS, TOKEN, World};
use crate::support::page::{Credential, Page, post, second_half};

const LIST: &str = "/api/v1/sessions?limit=2";

async fn code(world: &World) -> Credential {
    let answer = world.post("/api/v1/login/codes", &json!({})).await;
    Credential::of_code(answer.json()["code"].as_str().unwrap())
}

async fn page(world: &World) -> Page {
    Page::sign_in(world, &code(world).await).await.unwrap()
}

#[tokio::test]
async fn a_code_signs_in_once_within_a_minute() {
    let world = World::locked();
    let with = code(&world).await;
    let state = format!("/api/v1/login/codes/{}", with.id);
    assert_eq!(world.get(&state).await.json(), json!({ "used": false }));
    let mut page = Page::sign_in(&world, &with).await.unwrap();
    assert_eq!(page.get(&world, LIST).await.status.as_u16(), 200);
    assert_eq!(world.get(&state).await.json(), json!({ "used": true }));
    let again = Page::sign_in(&world, &with).await.unwrap_err();
    assert_eq!(
        (again.status.as_u16(), again.json()["type"].as_str()),
        (401, Some("/problems/signed-out"))
    );
    assert!(again.json()["hint"].as_str().unwrap().contains("hookspan open"));

    let late = code(&world).await;
    world.source.change("0176a3f0-flaky", |data| data.now_ns += 61_000_000_000);
    assert_eq!(Page::sign_in(&world, &late).await.unwrap_err().status.as_u16(), 401);
    assert_eq!(world.get(&format!("/api/v1/login/codes/{}", late.id)).await.status.as_u16(), 404);
}

#[tokio::test]
async fn two_who_use_one_code_at_once_are_not_both_let_in() {
    let world = World::locked();
    let with = code(&world).await;
    let one = second_half(&world, &with).await.unwrap().body;
    let two = second_half(&world, &with).await.unwrap().body;
    let (one, two) =
        tokio::join!(post(&world, "/api/v1/login", &one), post(&world, "/api/v1/login", &two));
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 401]);
}

#[tokio::test]
async fn a_proof_must_be_right_fresh_and_for_its_nonce() {
    let world = World::locked();
    let with = code(&world).await;
    let wrong = Credential { secret: [1; 32], ..with.clone() };
    let body = second_half(&world, &with).await.unwrap().body;
    for (field, value) in [
        ("proof", "00".repeat(32)),
        ("proof", "zz".to_owned()),
        ("proof", String::new()),
        ("nonce", "0".repeat(48)),
        ("nonce", "é".repeat(30)),
        ("nonce", String::new()),
        ("page_nonce", "fedcba9876543210".to_owned()),
        ("id", wrong.id.replace(char::is_alphanumeric, "0")),
    ] {
        let mut body = body.clone();
        body[field] = json!(value);
        assert_eq!(
            post(&world, "/api/v1/login", &body).await.status.as_u16(),
            401,
            "{field}: {value}"
        );
    }
    for (body, status) in [
        (json!({}), 400),
        (json!([]), 400),
        (json!({"id": with.id, "page_nonce": "short"}), 200),
        (json!({"id": "x".repeat(200), "page_nonce": "0123456789abcdef"}), 200),
    ] {
        let answer = post(&world, "/api/v1/login/challenge", &body).await;
        assert_eq!(answer.status.as_u16(), status, "{body}");
        assert!(status != 200 || answer.json()["challenge"].is_null(), "{body}");
    }
    world.source.change("0176a3f0-flaky", |data| data.now_ns += 31_000_000_000);
    assert_eq!(post(&world, "/api/v1/login", &body).await.status.as_u16(), 401, "the nonce is old");
}

#[tokio::test]
async fn a_signature_is_worth_one_request() {
    let world = World::locked();
    let mut page = page(&world).await;
    let signed = format!("Hookspan {}", page.sign("GET", LIST, ""));
    let headers =
        [("host", ADDRESS), ("authorization", &*signed), ("content-type", "application/json")];
    let send = async |method: &str, target: &str| {
        world.send(method, target, &headers, Body::empty()).await.status.as_u16()
    };
    assert_eq!(send("GET", "/api/v1/sessions?limit=3").await, 401, "another target");
    assert_eq!(send("POST", LIST).await, 401, "another method");
    assert_eq!(send("GET", LIST).await, 200);
    assert_eq!(send("GET", LIST).await, 401, "a second time");
    let body = json!({ "dry_run": true, "project": "api" });
    let target = "/api/v1/privacy/purge";
    let signed = format!("Hookspan {}", page.sign("POST", target, &body.to_string()));
    let headers =
        [("host", ADDRESS), ("authorization", &*signed), ("content-type", "application/json")];
    let changed = json!({ "project": "api" }).to_string();
    assert_eq!(world.send("POST", target, &headers, changed).await.status.as_u16(), 401);
    assert_eq!(page.post(&world, target, &body).await.status.as_u16(), 200);
}

#[tokio::test]
async fn odd_signatures_are_refused() {
    let world = World::locked();
    let mut page = page(&world).await;
    let whole = page.sign("GET", LIST, "");
    let (tab, rest) = whole.split_once(':').unwrap();
    let proof = rest.split_once(':').unwrap().1;
    for signed in [
        format!("{tab}:18446744073709551616:{proof}"),
        format!("{tab}:-1:{proof}"),
        format!("{tab}::{proof}"),
        format!("{tab}:0:{proof}"),
        format!("{tab}:1"),
        format!("x{tab}:1:{proof}"),
        format!("{tab}:1:{proof}:"),
        format!("{tab}:01:{proof}"),
        String::new(),
        ":::".to_owned(),
    ] {
        let signed = format!("Hookspan {signed}");
        let headers = [("host", ADDRESS), ("authorization", &*signed)];
        let answer = world.send("GET", LIST, &headers, Body::empty()).await;
        assert_eq!(answer.status.as_u16(), 401, "{signed}");
    }
    // A header identifies a single sender.
    let bearer = format!("Bearer {TOKEN}");
    let twice = [("host", ADDRESS), ("authorization", &*bearer), ("authorization", &*bearer)];
    assert_eq!(world.send("GET", LIST, &twice, Body::empty()).await.status.as_u16(), 401);
}

#[tokio::test]
async fn a_link_to_a_file_carries_its_signature_once() {
    let world = World::locked();
    let mut page = page(&world).await;
    let target = "/api/v1/sessions/0176a3f0-flaky/export?format=jsonl&content=off";
    let signed = format!("{target}&proof={}", page.sign("GET", target, ""));
    let get = async |target: String| {
        world.send("GET", &target, &[("host", ADDRESS)], Body::empty()).await.status.as_u16()
    };
    assert_eq!(get(target.to_owned()).await, 401);
    let other = signed.replace("content=off", "content=full");
    assert_eq!(get(other).await, 401);
    assert_eq!(get(format!("{signed}&content=full")).await, 401);
    assert_eq!(get(signed.clone()).await, 200);
    assert_eq!(get(signed).await, 401, "a second time");
    let target = "/api/v1/privacy/purge";
    let signed = format!("{target}?proof={}", page.sign("POST", target, "{}"));
    assert_eq!(post(&world, &signed, &json!({})).await.status.as_u16(), 401, "a POST has headers");
}

#[tokio::test]
async fn another_tab_comes_in_until_the_collector_stops_and_an_open_page_stays() {
    let world = World::locked();
    let first = page(&world).await;
    let mut second = Page::sign_in(&world, &first.page).await.unwrap();
    assert_eq!(second.session, first.session);
    assert_eq!(second.get(&world, LIST).await.status.as_u16(), 200);

    let world = world.restarted();
    // Everything that a browser stores on disk, or that somebody has overheard, is worthless now.
    for stale in [&first.page, &second.page] {
        assert_eq!(Page::sign_in(&world, stale).await.unwrap_err().status.as_u16(), 401);
    }
    assert_eq!(second.get(&world, LIST).await.status.as_u16(), 401);
    // The credential in the page's memory signs it in again, once.
    let mut back = Page::sign_in(&world, &second.restart).await.unwrap();
    assert_eq!(back.session, first.session);
    assert_eq!(back.get(&world, LIST).await.status.as_u16(), 200);
    assert_eq!(Page::sign_in(&world, &second.restart).await.unwrap_err().status.as_u16(), 401);
    assert!(Page::sign_in(&world, &back.page).await.is_ok());
}

#[tokio::test]
async fn what_is_kept_is_not_enough_to_sign_in() {
    let world = World::locked();
    page(&world).await;
    let kept =
        serde_json::to_value(&*hookspan_dashboard::Vault::read(&*world.vault).unwrap()).unwrap();
    let key = &kept["sessions"][0]["keys"][0];
    for field in ["stored", "server"] {
        let code = format!("{}.{}", key["id"].as_str().unwrap(), key[field].as_str().unwrap());
        let half = second_half(&world, &Credential::of_code(&code)).await.unwrap();
        assert!(!half.proved);
        let answer = post(&world, "/api/v1/login", &half.body).await;
        assert_eq!(answer.status.as_u16(), 401, "{field}");
    }
    assert_eq!(kept["sessions"][0]["browser"], "Firefox on Linux");
}

#[tokio::test]
async fn a_session_is_listed_and_revoked() {
    let world = World::locked();
    let (mut one, mut two) = (page(&world).await, page(&world).await);
    let list = one.get(&world, "/api/v1/access").await.json();
    let sessions = list["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    assert!(
        sessions
            .iter()
            .all(|session| session["current"] == (session["id"] == one.session.as_str()))
    );
    let target = "/api/v1/access/revoke";
    let revoke = json!({ "session": two.session });
    assert_eq!(one.post(&world, target, &revoke).await.status.as_u16(), 200);
    assert_eq!(one.post(&world, target, &revoke).await.status.as_u16(), 404);
    assert_eq!(two.get(&world, LIST).await.status.as_u16(), 401);
    for gone in [&two.page, &two.restart] {
        assert_eq!(Page::sign_in(&world, gone).await.unwrap_err().status.as_u16(), 401);
    }
    assert_eq!(one.post(&world, "/api/v1/logout", &json!({})).await.status.as_u16(), 200);
    assert_eq!(one.get(&world, LIST).await.status.as_u16(), 401);
    for body in [json!({}), json!({"session": "x", "token": "y"}), json!({"all": true})] {
        assert_eq!(world.post(target, &body).await.status.as_u16(), 400, "{body}");
    }
}

#[tokio::test]
async fn a_session_expires() {
    let world = World::locked();
    let mut page = page(&world).await;
    world.source.change("0176a3f0-flaky", |data| data.now_ns += 8 * 86_400 * 1_000_000_000);
    assert_eq!(page.get(&world, LIST).await.status.as_u16(), 401);
    assert_eq!(Page::sign_in(&world, &page.restart).await.unwrap_err().status.as_u16(), 401);
}

#[tokio::test]
async fn a_script_reads_data_and_manages_nothing() {
    let world = World::locked();
    let mut text = String::new();
    let vault = &*world.vault;
    hookspan_dashboard::Vault::change(vault, &mut |access| {
        text = access.create_token("ci", [42; 32], 0).unwrap();
    })
    .unwrap();
    let bearer = format!("Bearer {text}");
    let headers =
        [("host", ADDRESS), ("authorization", &*bearer), ("content-type", "application/json")];
    for (method, target, status) in [
        ("GET", LIST, 200),
        ("GET", "/api/v1/access", 403),
        ("POST", "/api/v1/access/revoke", 403),
        ("POST", "/api/v1/login/codes", 403),
        ("GET", "/api/v1/login/codes/x", 403),
    ] {
        let body = if method == "POST" { r#"{"token":"ci"}"# } else { "" };
        let answer = world.send(method, target, &headers, body).await;
        assert_eq!(answer.status.as_u16(), status, "{method} {target}");
    }
    let list = world.get("/api/v1/access").await.json();
    assert_eq!(list["tokens"][0]["name"], "ci");
    assert!(list["tokens"][0]["used_us"].is_i64());
    assert_eq!(
        world.post("/api/v1/access/revoke", &json!({ "token": "ci" })).await.status.as_u16(),
        200
    );
    let answer = world.send("GET", LIST, &headers, Body::empty()).await;
    assert_eq!(answer.status.as_u16(), 401);
}

#[tokio::test]
async fn a_page_is_signed_in_by_its_own_codes_only() {
    let world = World::locked();
    let mut page = page(&world).await;
    let answer = page.post(&world, "/api/v1/login/codes", &json!({})).await;
    assert_eq!(answer.status.as_u16(), 403, "a browser cannot make another one");
    let open = World::open();
    let hello = json!({ "id": "", "page_nonce": "" });
    let answer = post(&open, "/api/v1/login/challenge", &hello).await;
    assert_eq!(answer.json()["token_required"], false);
}

#[tokio::test]
async fn the_cookie_of_an_earlier_version_is_refused_and_removed() {
    let world = World::locked();
    let cookie = format!("a=b; hookspan_4329={}", "ab".repeat(32));
    let headers = [("host", ADDRESS), ("cookie", &*cookie)];
    let answer = world.send("GET", LIST, &headers, Body::empty()).await;
    assert_eq!(answer.status.as_u16(), 401);
    let problem = answer.json();
    assert!(
        problem["detail"].as_str().unwrap().contains("no longer uses a cookie to sign in"),
        "{problem}"
    );
    assert!(problem["hint"].as_str().unwrap().contains("hookspan open"), "{problem}");
    assert!(answer.header("set-cookie").starts_with("hookspan_4329=; Max-Age=0;"));
    let page = world.send("GET", "/", &headers, Body::empty()).await;
    assert_eq!(page.status.as_u16(), 200);
    assert!(page.header("set-cookie").starts_with("hookspan_4329=; Max-Age=0;"));
    // No answer sets a cookie with a value.
    assert_eq!(world.get(LIST).await.headers.get("set-cookie"), None);
}

#[tokio::test]
async fn a_service_worker_that_is_not_ours_removes_itself() {
    let world = World::locked();
    for target in ["/sw.js", "/", "/a/x/evil.js", "/api/v1/sw"] {
        let headers =
            [("host", ADDRESS), ("service-worker", "script"), ("sec-fetch-dest", "serviceworker")];
        let answer = world.send("GET", target, &headers, Body::empty()).await;
        assert_eq!(answer.status.as_u16(), 200, "{target}");
        assert_eq!(answer.header("content-type"), "text/javascript");
        assert_eq!(answer.headers.get("service-worker-allowed"), None);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(text.contains("registration.unregister()") && !text.contains("fetch"), "{text}");
    }
}
