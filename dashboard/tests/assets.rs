//! Files that are served: what they are, and what our scripts must not contain.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use axum::body::Body;
use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};

use crate::support::client::{Answer, World};

/// What a browser loads of ours the first time: the sum of all scripts and styles as they are sent, comments and types included.
/// Vendored modules are not counted.
const BUDGET: usize = 124 * 1_024;

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("web")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
fn vendored_files_are_the_ones_that_were_published() {
    let sums = fs::read_to_string(web().join("vendor/SHA256SUMS")).unwrap();
    let mut listed = Vec::new();
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        let bytes = fs::read(web().join("vendor").join(name)).unwrap();
        let found: String =
            Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, sum, "{name}");
        listed.push(name.to_owned());
    }
    let scripts = files(&web().join("vendor"));
    let scripts = scripts.iter().filter(|path| path.extension().is_some_and(|end| end == "js"));
    for path in scripts {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(listed.iter().any(|one| one == name), "{name} has no sum");
    }
}

#[tokio::test]
async fn the_server_knows_every_page_that_the_script_draws() {
    let script = fs::read_to_string(web().join("app/routes.js")).unwrap();
    let world = World::locked();
    let cases = script.split("case \"").skip(1).filter_map(|rest| rest.split('"').next());
    let pages: Vec<&str> = cases.filter(|path| path.starts_with('/')).collect();
    assert!(pages.len() > 8, "{pages:?}");
    for page in pages {
        assert_eq!(world.get(page).await.status, 200, "{page}");
    }
}

#[test]
fn no_script_of_ours_uses_a_sink_that_reads_text_as_code() {
    // Split, so that this file does not contain what it looks for.
    let banned = [
        ("inner", "HTML"),
        ("outer", "HTML"),
        ("insertAdjacent", "HTML"),
        ("dangerouslySet", "InnerHTML"),
        ("set", "HTML"),
        ("setHTML", "Unsafe"),
        ("DOM", "Parser"),
        ("createContextual", "Fragment"),
        ("document.", "write"),
        ("ev", "al("),
        ("new Fun", "ction"),
        ("srcd", "oc"),
        ("javascript", ":"),
        ("setAttribute(\"st", "yle"),
        ("setAttribute(\"o", "n"),
        ("import", "Scripts"),
        ("http:", "//"),
        ("https:", "//"),
    ];
    let scripts = files(&web().join("app"));
    assert!(scripts.len() > 15);
    for path in scripts {
        let text = fs::read_to_string(&path).unwrap();
        for (left, right) in banned {
            let word = format!("{left}{right}");
            let namespace = "http://www.w3.org/2000/svg";
            let found = text.replace(namespace, "").contains(&word);
            assert!(!found, "{} contains {word}", path.display());
        }
    }
}

/// The folder of this build, as the page names it.
async fn folder(world: &World) -> String {
    let page = world.get("/").await;
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    format!("/a/{}", page.split("/a/").nth(1).unwrap().split('/').next().unwrap())
}

async fn ask(world: &World, target: &str, header: (&str, &str)) -> Answer {
    world.send("GET", target, &[("host", "127.0.0.1:4329"), header], Body::empty()).await
}

fn unpacked(answer: &Answer) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(&*answer.body).read_to_end(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn every_file_is_served_as_it_is_in_the_repository_compressed_and_within_the_budget() {
    let world = World::locked();
    let build = folder(&world).await;
    let mut sent = 0;
    for path in files(&web().join("app")) {
        let name = path.strip_prefix(web()).unwrap().to_str().unwrap().to_owned();
        let target = format!("{build}/{name}");
        let plain = world.get(&target).await;
        assert_eq!(plain.status.as_u16(), 200, "{name}");
        assert!(plain.headers.get("content-encoding").is_none(), "{name}");
        assert_eq!(plain.body, fs::read(&path).unwrap(), "{name}");
        let kind = match path.extension().unwrap().to_str().unwrap() {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            other => panic!("{name}: nobody serves .{other}"),
        };
        let packed = ask(&world, &target, ("accept-encoding", "gzip, deflate, br")).await;
        for answer in [&plain, &packed] {
            assert_eq!(answer.header("content-type"), kind, "{name}");
            assert_eq!(answer.header("vary"), "accept-encoding", "{name}");
        }
        if !name.ends_with(".svg") {
            assert_eq!(packed.header("content-encoding"), "gzip", "{name}");
            assert_eq!(unpacked(&packed), plain.body, "{name}");
            sent += packed.body.len();
        }
    }
    assert!(sent <= BUDGET, "scripts and styles of ours are {sent} bytes as sent: budget {BUDGET}");
    for (target, why) in [
        (format!("{build}/app/nothing.js"), "unknown file"),
        ("/a/000000000000/app/main.js".to_owned(), "another build"),
        (format!("{build}/package.json"), "not part of the application"),
        (format!("{build}/types/api.d.ts"), "not for browsers"),
        (format!("{build}/vendor/preact.d.ts"), "not for browsers"),
        (format!("{build}/vendor/LICENSE.preact"), "not a script"),
    ] {
        assert_eq!(world.get(&target).await.status.as_u16(), 404, "{why}");
    }
    assert_eq!(world.get("/favicon.ico").await.header("content-type"), "image/svg+xml");
}

#[tokio::test]
async fn a_file_that_the_browser_has_already_is_not_sent_again() {
    let world = World::locked();
    let target = format!("{}/app/main.js", folder(&world).await);
    let plain = world.get(&target).await;
    let packed = ask(&world, &target, ("accept-encoding", "gzip")).await;
    let tag = plain.header("etag");
    // Two encodings are two bodies: a strong tag must tell them apart.
    assert_ne!(tag, packed.header("etag"));
    for (known, status) in [
        (tag.to_owned(), 304),
        (format!("W/{tag}"), 304),
        (format!("\"other\", {tag}"), 304),
        ("*".to_owned(), 304),
        (packed.header("etag").to_owned(), 200),
        ("\"other\"".to_owned(), 200),
    ] {
        let answer = ask(&world, &target, ("if-none-match", &known)).await;
        assert_eq!(answer.status.as_u16(), status, "{known}");
        assert_eq!(answer.body.is_empty(), status == 304, "{known}");
        for name in ["etag", "vary", "cache-control"] {
            assert_eq!(answer.header(name), plain.header(name), "{known}");
        }
    }
}

#[tokio::test]
async fn the_page_holds_no_data_and_no_inline_script() {
    let world = World::locked();
    let one = world.get("/").await.body;
    assert_eq!(world.get("/s/0176a3f0-hostile").await.body, one);
    let text = String::from_utf8(one.to_vec()).unwrap();
    for part in text.split("<script").skip(1) {
        assert!(part.split_once('>').unwrap().1.starts_with("</script>"), "{part}");
    }
    assert!(!text.contains("style=") && !text.contains(" on"), "{text}");
}
