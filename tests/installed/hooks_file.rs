//! Tests what `install` and `uninstall` do with hooks.json: which files they refuse, and how they keep edits of others.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use e2e_support::skip::{announce, skip};
use e2e_support::world::{Finished, World};

use super::{bare_command, heredoc, holds_a_record, machine_has, stop_command};

#[test]
fn what_is_no_regular_file_is_refused_by_name_and_stays() {
    let world = World::new();
    let folder = world.home().join(".cursor");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("hooks.json");
    let make: [(&str, &dyn Fn()); 5] = [
        ("a device", &|| symlink("/dev/null", &path).unwrap()),
        ("a FIFO", &|| {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        }),
        ("a socket", &|| drop(std::os::unix::net::UnixListener::bind(&path).unwrap())),
        ("a directory", &|| fs::create_dir(&path).unwrap()),
        ("a directory", &|| symlink("..", &path).unwrap()),
    ];
    for (kind, make) in make {
        make();
        let before = path.symlink_metadata().unwrap();
        for command in ["install", "uninstall"] {
            // Waiting for the FIFO would never end. `timeout` would then end the command with 124.
            let mut below = world.command(Path::new("timeout"));
            let below = below.arg("60").arg(world.hookspan()).args([command, "--yes"]);
            let refused = Finished::from(below.output().unwrap());
            assert_eq!(refused.code, 1, "{command} on {kind}: {refused:#?}");
            assert!(refused.stderr.contains(kind), "{command} on {kind}: {refused:#?}");
            assert!(refused.stderr.contains("hooks.json"), "{command} on {kind}: {refused:#?}");
        }
        let mut below = world.command(Path::new("timeout"));
        let doctor =
            Finished::from(below.arg("60").arg(world.hookspan()).arg("doctor").output().unwrap());
        assert_eq!(doctor.code, 1, "{kind}: {doctor:#?}");
        let after = path.symlink_metadata().unwrap();
        assert_eq!((before.ino(), before.file_type()), (after.ino(), after.file_type()), "{kind}");
        if before.is_dir() {
            fs::remove_dir(&path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
    }
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    assert!(!world.state().exists(), "a refusal makes nothing");
}

#[test]
fn another_accounts_file_is_refused_and_ones_own_is_installed() {
    let test = "another_accounts_file_is_refused_and_ones_own_is_installed";
    if !rustix::process::geteuid().is_root() {
        return announce(test, "only root can be two accounts");
    }
    const NOBODY: u32 = 65_534;
    let world = World::new();
    let root = world.home().parent().unwrap().to_owned();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    let program = world.scratch("hookspan");
    fs::copy(world.hookspan(), &program).unwrap();
    let home = world.scratch("nobody");
    fs::create_dir_all(home.join(".cursor")).unwrap();
    for folder in [&home, &home.join(".cursor")] {
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let hookspan = |arguments: &[&str]| {
        let mut command = bare_command(&program, &home);
        Finished::from(command.uid(NOBODY).gid(NOBODY).args(arguments).output().unwrap())
    };
    let path = home.join(".cursor/hooks.json");
    fs::write(&path, "{ \"version\": 1, \"hooks\": {} }").unwrap();
    let refused = hookspan(&["install", "--yes"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(refused.stderr.contains("belongs to another account (uid 0)"), "{refused:#?}");
    assert!(!home.join(".local").exists());

    // A folder that cannot be written stops the installation before it creates anything.
    std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(home.join(".cursor"), fs::Permissions::from_mode(0o500)).unwrap();
    let refused = hookspan(&["install", "--yes"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(refused.stderr.contains("cannot write beside"), "{refused:#?}");
    assert!(!home.join(".local").exists());
    fs::set_permissions(home.join(".cursor"), fs::Permissions::from_mode(0o700)).unwrap();

    // The account's own file keeps its owner and its mode.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let done = hookspan(&["install", "--yes"]);
    assert_eq!(done.code, 0, "{done:#?}");
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.uid(), found.mode() & 0o777), (NOBODY, 0o640));
    let mut shell = bare_command(Path::new("/bin/sh"), &home);
    shell.uid(NOBODY).gid(NOBODY).args(["-c", &heredoc(&stop_command(&home))]);
    let reply = shell.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&reply.stdout).trim(), "{}", "{reply:?}");
    assert!(holds_a_record(&home.join(".local/state/hookspan")));
    let gone = hookspan(&["uninstall", "--purge", "--yes"]);
    assert_eq!(gone.code, 0, "{gone:#?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{ \"version\": 1, \"hooks\": {} }");
    assert!(!home.join(".local").exists(), "{gone:#?}");
}

#[test]
fn an_edit_made_while_install_asks_is_kept() {
    let test = "an_edit_made_while_install_asks_is_kept";
    if !machine_has("script") {
        return skip(test, "there is no `script` to make a terminal with");
    }
    let world = World::new();
    let path = world.write_home(".cursor/hooks.json", "{ \"version\": 1, \"hooks\": {} }\n");
    let mut terminal = world
        .command(Path::new("timeout"))
        .args([
            "--foreground",
            "120",
            "script",
            "-qec",
            &format!("'{}' install", world.hookspan().display()),
            "/dev/null",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut keys, mut screen) = (terminal.stdin.take().unwrap(), terminal.stdout.take().unwrap());
    let mut seen = until(&mut screen, "[y/N]");
    assert!(!seen.contains("hookspan-shim stop"), "the lines come on request: {seen}");
    assert!(seen.contains("adds 15 entries"), "{seen}");
    let edited = "{ \"version\": 1, \"hooks\": { \"stop\": [{ \"command\": \"./mine.sh\" }] } }\n";
    fs::write(&path, edited).unwrap();
    keys.write_all(b"y\n").unwrap();
    seen = until(&mut screen, "[y/N]");
    assert!(seen.contains("was changed in the meantime"), "{seen}");
    assert!(seen.contains("keeps the one that is there"), "{seen}");
    keys.write_all(b"y\n").unwrap();
    seen = until(&mut screen, "uninstall");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("./mine.sh") && text.contains("hookspan-shim"), "{seen}\n{text}");
    drop(keys);
    assert!(terminal.wait().unwrap().success());
    world.ok(&["uninstall", "--yes"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), edited);
}

#[test]
fn a_link_out_of_the_repository_is_not_followed() {
    let world = World::new();
    let project = world.scratch("project");
    fs::create_dir_all(project.join(".git")).unwrap();
    let mine = world.write_home(".cursor/hooks.json", "{ \"version\": 1, \"hooks\": {} }\n");
    symlink(mine.parent().unwrap(), project.join(".cursor")).unwrap();
    for words in
        [["install", "--scope", "project", "--yes"], ["uninstall", "--scope", "project", "--yes"]]
    {
        let mut command = world.command(&world.hookspan());
        let refused = Finished::from(command.args(words).current_dir(&project).output().unwrap());
        assert_eq!(refused.code, 1, "{refused:#?}");
        assert!(refused.stderr.contains("outside the project"), "{refused:#?}");
    }
    assert_eq!(fs::read_to_string(&mine).unwrap(), "{ \"version\": 1, \"hooks\": {} }\n");
}

#[test]
fn a_projects_file_is_kept_out_of_git_on_request() {
    let test = "a_projects_file_is_kept_out_of_git_on_request";
    if !machine_has("git") {
        return skip(test, "there is no git");
    }
    let world = World::new();
    let project = world.scratch("project");
    fs::create_dir(&project).unwrap();
    let run = |program: &Path, words: &[&str]| {
        Finished::from(world.command(program).args(words).current_dir(&project).output().unwrap())
    };
    let git = |words: &[&str]| run(Path::new("git"), words).stdout;
    git(&["init", "-q"]);
    let exclude = project.join(".git/info/exclude");
    let before = fs::read(&exclude).unwrap_or_default();

    let said = run(&world.hookspan(), &["install", "--scope", "project", "--dry-run"]).stderr;
    assert!(said.contains("--git-exclude"), "it says so first: {said}");
    let done = run(&world.hookspan(), &["install", "--scope", "project", "--git-exclude", "--yes"]);
    assert_eq!(done.code, 0, "{done:#?}");
    assert_eq!(git(&["status", "--porcelain"]), "");
    let gone = run(&world.hookspan(), &["uninstall", "--scope", "project", "--yes"]);
    assert_eq!(gone.code, 0, "{gone:#?}");
    assert_eq!(fs::read(&exclude).unwrap_or_default(), before);

    fs::create_dir_all(project.join(".cursor")).unwrap();
    fs::write(project.join(".cursor/hooks.json"), "{ \"version\": 1, \"hooks\": {} }").unwrap();
    git(&["add", "-A"]);
    let said = run(&world.hookspan(), &["install", "--scope", "project", "--dry-run"]).stderr;
    assert!(said.contains("do not commit"), "git tracks it: {said}");
}

#[test]
fn a_later_version_is_refused_with_line_and_column_and_a_void_one_repaired() {
    let world = World::new();
    let path = world.write_home(".cursor/hooks.json", "{\n  \"version\": 2,\n  \"hooks\": {}\n}\n");
    let refused = world.run(&["install", "--yes"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    assert!(refused.stderr.contains("hooks.json:2:14: version 2"), "{refused:#?}");
    let void = "{\n  \"version\": \"1\",\n  \"hooks\": {}\n}\n";
    fs::write(&path, void).unwrap();
    let done = world.run(&["install"]);
    assert_eq!(done.code, 0, "{done:#?}");
    assert!(done.stdout.contains("line 2, column 14"), "{done:#?}");
    assert!(done.stderr.contains("Not a terminal"), "{done:#?}");
    let hooks: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(hooks["version"], 1);
    world.ok(&["uninstall", "--yes"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), void);
}

#[test]
fn the_copy_of_before_stays_when_somebody_edited_the_file() {
    let world = World::new();
    let before = "{ \"version\": 1, \"hooks\": {} }\n";
    let path = world.write_home(".cursor/hooks.json", before);
    world.ok(&["install", "--yes"]);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"version\": 1", "\"version\":   1")).unwrap();
    let gone = world.run(&["uninstall", "--yes"]);
    assert_eq!(gone.code, 0, "{gone:#?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before.replace(": 1", ":   1"));
    let kept = fs::read_dir(world.state().join("hooks-before")).unwrap().next().unwrap().unwrap();
    assert_eq!(fs::read_to_string(kept.path()).unwrap(), before);
    assert!(gone.stderr.contains(kept.path().to_str().unwrap()), "{gone:#?}");
}

/// What a terminal shows, up to `end`.
#[track_caller]
fn until(screen: &mut impl std::io::Read, end: &str) -> String {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while !String::from_utf8_lossy(&seen).contains(end) {
        match screen.read(&mut byte) {
            Ok(1) => seen.push(byte[0]),
            ended => panic!("{ended:?} after {}", String::from_utf8_lossy(&seen)),
        }
    }
    String::from_utf8_lossy(&seen).into_owned()
}
