//! Tests the served files: which they are, and what our scripts must not contain.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use axum::body::Body;
use brotli::Decompressor;
use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};

use crate::support::client::{Answer, World};

/// Maximum number of bytes that a browser loads for the heaviest page on a first visit: styles and scripts of the frame
/// and of the page, as sent, including comments. Vendored modules are not counted.
const FIRST_LOAD: usize = 124 * 1_024;
/// Maximum for all pages together.
const ALL: usize = 200 * 1_024;

/// How much more the files may be in gzip, for browsers that do not accept Brotli.
const GZIP_PER_CENT: usize = 118;

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
    let rows = script.lines().filter_map(|line| line.trim().strip_prefix('"'));
    let pages: Vec<&str> =
        rows.filter_map(|row| row.split_once("\": lazy(")).map(|(path, _)| path).collect();
    assert!(pages.len() > 8, "{pages:?}");
    for page in pages.into_iter().chain(["/login"]) {
        assert_eq!(world.get(page).await.status, 200, "{page}");
    }
}

#[test]
fn no_script_of_ours_uses_a_sink_that_reads_text_as_code() {
    // Each word is split, so that this file does not contain what it searches for.
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
    match answer.header("content-encoding") {
        "gzip" => GzDecoder::new(&*answer.body).read_to_end(&mut bytes).unwrap(),
        "br" => Decompressor::new(&*answer.body, 4_096).read_to_end(&mut bytes).unwrap(),
        other => panic!("a coding that nobody asked for: {other}"),
    };
    bytes
}

/// The files that a script imports: those that come with it, styles too, and those that it fetches when they are needed.
fn imports(script: &str) -> (Vec<String>, Vec<String>) {
    let text = fs::read_to_string(web().join(script)).unwrap();
    let code = text.lines().filter(|line| !line.trim_start().starts_with(['/', '*']));
    let code: Vec<&str> = code.collect();
    let folder = script.rsplit_once('/').unwrap().0;
    let resolve = |path: &str| {
        let mut parts: Vec<&str> = folder.split('/').collect();
        for part in path.split('/') {
            match part {
                "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        parts.join("/")
    };
    let named = |line: &&str, before: &str| {
        let path = line.split_once(before)?.1.split('"').next()?;
        path.starts_with('.').then(|| resolve(path))
    };
    let at_once = code.iter().filter_map(|line| named(line, " from \""));
    let later = code.iter().filter_map(|line| named(line, "import(\""));
    let bare = code.iter().filter(|line| line.starts_with("import \""));
    let bare = bare.filter_map(|line| named(line, "import \""));
    let sheets =
        code.iter().filter_map(|line| line.strip_prefix("await sheet(\"")?.split('"').next());
    let sheets = sheets.map(|name| format!("app/styles/{name}.css"));
    (at_once.chain(bare).chain(sheets).collect(), later.collect())
}

/// Adds a script, and everything that it imports at once, to the loaded files. Returns the files that these scripts may
/// fetch later.
fn load(script: &str, loaded: &mut BTreeSet<String>) -> Vec<String> {
    if !script.starts_with("app/") || !loaded.insert(script.to_owned()) {
        return Vec::new();
    }
    let (at_once, mut later) = imports(script);
    for other in at_once {
        later.extend(load(&other, loaded));
    }
    later
}

/// The heaviest set of scripts that one address can load: the frame, a page, and a part of the page.
fn heaviest(
    script: &str,
    loaded: &BTreeSet<String>,
    sent: &BTreeMap<String, usize>,
) -> (usize, String) {
    let mut loaded = loaded.clone();
    let later = load(script, &mut loaded);
    let own = loaded.iter().map(|name| sent[name]).sum();
    let deeper = later.iter().filter(|name| !loaded.contains(*name));
    let deeper = deeper.map(|name| heaviest(name, &loaded, sent));
    deeper.chain([(own, script.to_owned())]).max().unwrap()
}

#[expect(clippy::print_stdout, reason = "BENCHMARKS.md quotes the figures")]
fn within_the_budget(sent: &BTreeMap<String, usize>, linked: &[String]) {
    let all: usize = sent.values().sum();
    assert!(all <= ALL, "scripts and styles of ours are {all} bytes as sent: budget {ALL}");
    let styles: usize = linked.iter().map(|name| sent[name]).sum();
    let (scripts, page) = heaviest("app/main.js", &BTreeSet::new(), sent);
    let first = styles + sent["app/boot.js"] + scripts;
    println!("first load, with {page}: {first} bytes; all pages: {all} bytes");
    assert!(first <= FIRST_LOAD, "{page} loads {first} bytes: budget {FIRST_LOAD}");
    let mut reached = BTreeSet::from(["app/boot.js".to_owned()]);
    let mut rest = vec!["app/main.js".to_owned()];
    while let Some(script) = rest.pop() {
        rest.extend(load(&script, &mut reached));
    }
    reached.extend(linked.iter().cloned());
    let scripts = sent.keys().filter(|name| name.ends_with(".js") || name.ends_with(".css"));
    let lost: Vec<_> = scripts.filter(|name| !reached.contains(*name)).collect();
    assert!(lost.is_empty(), "no page loads {lost:?}");
}

#[tokio::test]
async fn every_file_is_served_as_it_is_in_the_repository_compressed_and_within_the_budget() {
    let world = World::locked();
    let build = folder(&world).await;
    let mut sent = BTreeMap::new();
    let mut gzip = 0;
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
        let older = ask(&world, &target, ("accept-encoding", "gzip, deflate")).await;
        let packed = ask(&world, &target, ("accept-encoding", "gzip, deflate, br")).await;
        for answer in [&plain, &older, &packed] {
            assert_eq!(answer.header("content-type"), kind, "{name}");
            assert_eq!(answer.header("vary"), "accept-encoding", "{name}");
        }
        if !name.ends_with(".svg") {
            for (answer, coding) in [(&older, "gzip"), (&packed, "br")] {
                assert_eq!(answer.header("content-encoding"), coding, "{name}");
                assert_eq!(unpacked(answer), plain.body, "{name}");
            }
            gzip += older.body.len();
            sent.insert(name, packed.body.len());
        }
    }
    let page = world.get("/").await;
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    let linked = page.split("/app/styles/").skip(1).filter_map(|rest| rest.split('"').next());
    let linked: Vec<_> = linked.map(|name| format!("app/styles/{name}")).collect();
    within_the_budget(&sent, &linked);
    let all: usize = sent.values().sum();
    assert!(gzip * 100 <= all * GZIP_PER_CENT, "{gzip} bytes in gzip, {all} in Brotli");
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
    let smallest = ask(&world, &target, ("accept-encoding", "br, gzip")).await;
    let tag = plain.header("etag");
    // Each encoding has a different body, so their strong tags must differ.
    assert_ne!(tag, packed.header("etag"));
    assert_ne!(tag, smallest.header("etag"));
    assert_ne!(packed.header("etag"), smallest.header("etag"));
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
