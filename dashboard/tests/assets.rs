//! Files that are served: what they are, and what our scripts must not contain.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use crate::support::client::World;

/// All scripts and styles of ours as they are served, in one compressed piece; vendored ones are not counted.
const BUDGET: usize = 60 * 1_024;

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
    let script = fs::read_to_string(web().join("app/main.js")).unwrap();
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

#[tokio::test]
async fn every_file_of_the_application_is_served_with_its_type_and_all_fit_the_budget() {
    let world = World::locked();
    let mut code = GzEncoder::new(Vec::new(), Compression::best());
    let page = world.get("/").await;
    let page = String::from_utf8(page.body.to_vec()).unwrap();
    let build = page.split("/a/").nth(1).unwrap().split('/').next().unwrap().to_owned();
    for path in files(&web().join("app")) {
        let name = path.strip_prefix(web()).unwrap().to_str().unwrap().to_owned();
        let answer = world.get(&format!("/a/{build}/{name}")).await;
        assert_eq!(answer.status.as_u16(), 200, "{name}");
        let source = fs::read_to_string(&path).unwrap();
        let served = str::from_utf8(&answer.body).unwrap();
        assert_eq!(served.lines().count(), source.lines().count(), "{name}: lines moved");
        for (at, (line, written)) in served.lines().zip(source.lines()).enumerate() {
            let comment =
                ["//", "/*", "*"].iter().any(|mark| written.trim_start().starts_with(mark));
            let dense = |text: &str| text.replace([' ', ';'], "");
            let fits = line == written.trim_start()
                || (comment && line.is_empty())
                || (name.ends_with(".css") && dense(line) == dense(written));
            assert!(fits, "{name}:{}: {line}", at + 1);
        }
        if !name.ends_with(".svg") {
            code.write_all(&answer.body).unwrap();
        }
        let kind = match path.extension().unwrap().to_str().unwrap() {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            other => panic!("{name}: nobody serves .{other}"),
        };
        assert_eq!(answer.header("content-type"), kind, "{name}");
    }
    let size = code.finish().unwrap().len();
    assert!(
        size <= BUDGET,
        "scripts and styles of ours are {size} bytes compressed: budget {BUDGET}"
    );
    for (target, why) in [
        (format!("/a/{build}/app/nothing.js"), "unknown file"),
        ("/a/000000000000/app/main.js".to_owned(), "another build"),
        (format!("/a/{build}/tests/ui/package.json"), "not part of the application"),
        (format!("/a/{build}/vendor/LICENSE.preact"), "not a script"),
    ] {
        assert_eq!(world.get(&target).await.status.as_u16(), 404, "{why}");
    }
    assert_eq!(world.get("/favicon.ico").await.header("content-type"), "image/svg+xml");
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
