//! Faults around files: another user account tries to use them, and something else stands in the place of a file.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::{Report, send};
use super::system::{answers, stored};
use crate::collector::Collector;
use crate::machine;
use crate::wait::{SOON, eventually};
use crate::world::World;

/// Another account can neither list, read, append to, nor lock the files, nor query the collector.
pub(super) fn other_account(_: u64) -> Result<Report, String> {
    machine::root()?;
    machine::tool("setpriv")?;
    let world = World::new();
    // Only hookspan's own modes may keep others out.
    for folder in ["", "home", "home/.local", "home/.local/state"] {
        let path = world.scratch(folder);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    world.shim();
    let collector = Collector::start(&world);
    let ledger = send(&world, 5, 1);
    let state = world.state();
    let state = state.display();
    let tries = [
        format!("ls {state}"),
        format!("cat {state}/journal"),
        format!("cat {state}/hookspan.db"),
        format!("cat {state}/access.json {state}/serve.json"),
        format!("echo x >> {state}/journal"),
        format!("echo x >> {state}/losses"),
        format!("touch {state}/mine"),
        format!("ln -s /etc/passwd {state}/link"),
        format!("flock -n {state}/lock true"),
    ];
    for attempt in &tries {
        assert!(!as_nobody(attempt), "another account could: {attempt}");
    }
    let url = format!("{}/api/v1/sessions", collector.url);
    let refused = ureq::get(&url).call();
    assert!(matches!(refused, Err(ureq::Error::StatusCode(401))), "{refused:?}");
    let body = "{}";
    let shim = world.scratch("a-shim");
    fs::copy(world.shim(), &shim).unwrap();
    fs::set_permissions(&shim, fs::Permissions::from_mode(0o755)).unwrap();
    let answered = as_nobody(&format!("echo '{body}' | {} --dir {state} stop", shim.display()));
    assert!(answered, "a hook of another account is harmed");
    stored(&world, collector, &ledger);
    Ok(format!(
        "another account: {} attempts refused, API without token 401; its own hook exits 0",
        tries.len()
    ))
}

fn as_nobody(script: &str) -> bool {
    Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

/// In the place of every file stands a symbolic link, a hard link, a FIFO or a directory. The shim must answer and
/// write nowhere else. The collector must name what it refuses, or continue safely.
pub(super) fn planted(_: u64) -> Result<Report, String> {
    let (mut refused, mut went_on) = (0, 0);
    for name in ["journal", "losses", "lock", "access.json", "serve.json", "hookspan.db"] {
        for kind in ["symlink", "hard link", "fifo", "directory"] {
            let world = World::new();
            world.shim();
            let state = world.state();
            let victim = world.scratch("victim");
            fs::write(&victim, "untouched").unwrap();
            let path = state.join(name);
            drop(fs::remove_file(&path));
            plant(kind, &victim, &path);
            answers(&world, &state);
            match serve(&world) {
                Ok(()) => went_on += 1,
                Err(said) => {
                    assert!(said.contains(name), "{kind} at {name}: not named: {said}");
                    refused += 1;
                }
            }
            let now = String::from_utf8_lossy(&fs::read(&victim).unwrap()).into_owned();
            // A hard link is the file itself, so the hook program writes to it. Only the file's owner can make a hard
            // link.
            if kind == "hard link" && name == "journal" {
                continue;
            }
            assert_eq!(now, "untouched", "{kind} at {name}: something was written elsewhere");
        }
    }
    Ok(format!(
        "24 things planted: every shim answered, nothing was written elsewhere; the collector refused {refused} by name and \
         replaced or ignored {went_on}"
    ))
}

fn plant(kind: &str, victim: &Path, path: &Path) {
    match kind {
        "symlink" => symlink(victim, path).unwrap(),
        "hard link" => fs::hard_link(victim, path).unwrap(),
        "fifo" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        _ => fs::create_dir(path).unwrap(),
    }
}

/// Starts a collector. Returns its message if it refuses to start.
fn serve(world: &World) -> Result<(), String> {
    use std::io::{BufRead as _, BufReader};
    let mut child = crate::collector::spawn(world, "serve", &[]);
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let listens = line.contains("http://");
    if listens {
        child.kill().unwrap();
    }
    child.wait().unwrap();
    if listens { Ok(()) } else { Err(crate::collector::log(world)) }
}

/// Only the owner may read, under any umask.
pub(super) fn umasks(seed: u64) -> Result<Report, String> {
    let mut looked_at = 0;
    for umask in ["000", "022", "077", "0777"] {
        let world = World::new();
        // Other programs create the folders above the state directory.
        fs::create_dir_all(world.home().join(".local/state")).unwrap();
        fs::create_dir_all(world.home().join(".cursor")).unwrap();
        world.install_below(&["sh", "-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]);
        let below = ["sh".to_owned(), "-c".into(), format!("umask {umask}; exec \"$0\" \"$@\"")];
        let below: Vec<&str> = below.iter().map(String::as_str).collect();
        let collector = Collector::start_below(&world, &below);
        let ledger = send(&world, 5, seed);
        collector.drained(SOON);
        for path in files(&world.state()) {
            // A temporary file of SQLite may be gone by now.
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            if meta.is_symlink() {
                continue;
            }
            let mode = meta.permissions().mode() & 0o777;
            let runs = path.starts_with(world.state().join("bin"));
            let others = if runs { 0o022 } else { 0o077 };
            assert_eq!(mode & others, 0, "umask {umask}: {} has mode {mode:o}", path.display());
            // Right after creating a file, SQLite restores the owner's rights that a umask removed.
            eventually("the owner may read and write it", SOON, || {
                match fs::symlink_metadata(&path).map(|now| now.permissions().mode()) {
                    Ok(mode) if mode & 0o600 != 0o600 => {
                        Err(format!("umask {umask}: {} has mode {mode:o}", path.display()))
                    }
                    _ => Ok(()),
                }
            });
            looked_at += 1;
        }
        stored(&world, collector, &ledger);
    }
    Ok(format!(
        "umask 000, 022, 077, 0777: {looked_at} files and folders, none open to others, 0 lost"
    ))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

/// The state directory is missing, is a file, or is a link. The hook must be answered.
pub(super) fn missing_directory(_: u64) -> Result<Report, String> {
    let world = World::new();
    world.shim();
    let missing = world.scratch("nothing/here");
    answers(&world, &missing);
    let file = world.scratch("a-file");
    fs::write(&file, "").unwrap();
    answers(&world, &file);
    let real = world.scratch("real");
    fs::create_dir(&real).unwrap();
    let link = world.scratch("a-link");
    symlink(&real, &link).unwrap();
    answers(&world, &link);
    for place in [&file, &link] {
        let place = place.to_str().unwrap();
        let said = world.run(&["--dir", place, "serve", "--listen", "127.0.0.1:0"]);
        assert!(said.code != 0 && said.stderr.contains(place), "{said:#?}");
    }
    Ok("directory missing, a file, a link: exit 0 with the permitted reply; `serve` names it"
        .into())
}
