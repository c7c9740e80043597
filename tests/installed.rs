//! Tests that the entries of `install` work where Cursor runs them: in a bare environment, under any path, beside
//! existing files.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use e2e_support::collector::Collector;
use e2e_support::skip::{announce, skip};
use e2e_support::world::{Finished, World};

const PAYLOAD: &str = r#"{"conversation_id":"8d3f0c52-0000-4000-8000-000000000001","generation_id":"g","hook_event_name":"stop","status":"completed","cursor_version":"3.18.25"}"#;

/// Ways to name a state directory, and variables that only a shell has. A hook started from the desktop must reach the
/// directory in each case.
#[test]
fn hooks_of_a_desktop_reach_the_state_directory_however_it_was_named() {
    for (variable, expected) in [
        (None, "home/.local/state/hookspan"),
        (Some(("HOOKSPAN_DIR", "named")), "named"),
        (Some(("XDG_STATE_HOME", "xdg")), "xdg/hookspan"),
    ] {
        let mut world = World::new();
        if let Some((name, folder)) = variable {
            let value = world.scratch(folder).to_str().unwrap().to_owned();
            world = world.with_env(name, value);
        }
        world.ok(&["install", "--yes"]);
        let command = stop_command(&world.home());
        assert_eq!(command.contains(" --dir "), variable.is_some(), "{command}");
        let reply = bare(Path::new("/bin/sh"), &world.home(), &heredoc(&command));
        assert_eq!(String::from_utf8_lossy(&reply.stdout).trim(), "{}", "{command}: {reply:?}");
        let state = world.scratch(expected);
        assert!(holds_a_record(&state), "{variable:?}: nothing in {}", state.display());
        assert_eq!(world.json(&["status", "--json"])["backlog"], 1, "{variable:?}");
    }
}

#[test]
fn every_shell_runs_the_command_whatever_the_path() {
    let world = World::new();
    let shells: Vec<PathBuf> = ["/bin/sh", "/bin/dash", "/bin/bash", "/bin/zsh", "/usr/bin/zsh"]
        .into_iter()
        .map(PathBuf::from)
        .filter(|shell| shell.exists())
        .collect();
    let names = [
        "a space",
        "it's",
        "ünïcode-日本",
        "d$HOME",
        "a\"b",
        "semi;colon",
        "(paren)",
        "back\\slash",
        "star*?[x]",
        "#hash",
        "-dash",
        "a&b|c",
        "~tilde",
        "`tick`",
        "bang!",
        "{a,b}",
        "=eq",
        "%d",
        "nbsp\u{a0}x",
        "<redirect>",
        "two  spaces",
    ];
    for name in names {
        let state = world.scratch(name);
        world.ok(&["--dir", state.to_str().unwrap(), "install", "--yes"]);
        let command = stop_command(&world.home());
        for shell in &shells {
            drop(fs::remove_file(state.join("journal")));
            let reply = bare(shell, &world.home(), &heredoc(&command));
            let answer = String::from_utf8_lossy(&reply.stdout);
            assert_eq!(answer.trim(), "{}", "{name} in {shell:?}: {command}: {reply:?}");
            assert!(holds_a_record(&state), "{name} in {shell:?}: {command}");
        }
        world.ok(&["--dir", state.to_str().unwrap(), "uninstall", "--purge", "--yes"]);
        assert!(!state.exists(), "{name}: {:?}", fs::read_dir(&state).unwrap().collect::<Vec<_>>());
    }
    for name in ["line\nbreak", "return\rx", "escape\u{1b}[31m"] {
        let state = world.scratch(name);
        let refused = world.run(&["--dir", state.to_str().unwrap(), "install", "--yes"]);
        assert_eq!(refused.code, 1, "{refused:#?}");
        assert!(refused.stderr.contains("control character"), "{refused:#?}");
        assert!(!state.exists() && !world.home().join(".cursor/hooks.json").exists());
    }
}

#[test]
fn any_spelling_of_the_home_gives_one_path_without_doubled_slashes() {
    let world = World::new();
    let path = without_services(&world);
    let home = world.scratch("Hôme of Kim");
    fs::create_dir(&home).unwrap();
    symlink(&home, world.scratch("link")).unwrap();
    let plain = home.to_str().unwrap().to_owned();
    let link = world.scratch("link").to_str().unwrap().to_owned();
    for spelled in
        [plain.clone(), format!("{plain}/"), format!("/{}//", plain.replace('/', "//")), link]
    {
        let hookspan = |arguments: &[&str]| {
            let mut command = bare_command(&world.hookspan(), Path::new(&spelled));
            Finished::from(command.env("PATH", &path).args(arguments).output().unwrap())
        };
        let done = hookspan(&["install", "--service", "--yes"]);
        assert_eq!(done.code, 0, "{spelled}: {done:#?}");
        for written in [".cursor/hooks.json", ".config/systemd/user/hookspan.service"] {
            let text = fs::read_to_string(home.join(written)).unwrap();
            assert!(!text.replace("http://", "").contains("//"), "{spelled}: {text}");
            assert!(!text.contains("--dir"), "{spelled} leads there by itself: {text}");
        }
        let reply = bare(Path::new("/bin/sh"), Path::new(&spelled), &heredoc(&stop_command(&home)));
        assert_eq!(String::from_utf8_lossy(&reply.stdout).trim(), "{}", "{spelled}: {reply:?}");
        let state = home.join(".local/state/hookspan");
        assert!(holds_a_record(&state), "{spelled}");
        let gone = hookspan(&["uninstall", "--purge", "--yes"]);
        assert_eq!(gone.code, 0, "{spelled}: {gone:#?}");
        let left: Vec<_> =
            fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, Vec::<PathBuf>::new(), "{spelled}: {gone:#?}");
    }
}

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

/// "Text file busy" would end a hook with exit code 126. Each round installs another program, and then the right one
/// again.
#[test]
fn hooks_that_run_while_the_program_is_replaced_all_answer() {
    const ROUNDS: usize = 60;
    let world = World::new();
    world.ok(&["install", "--yes"]);
    let (home, command) = (world.home(), stop_command(&world.home()));
    let program = world.state().join("bin/hookspan-shim");
    let right = fs::read(&program).unwrap();
    let other = world.scratch("other");
    let over = AtomicBool::new(false);
    let failures = std::thread::scope(|scope| {
        let runners: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let (mut ran, mut failures) = (0, Vec::new());
                    while !over.load(Ordering::Relaxed) {
                        let reply = bare(Path::new("/bin/sh"), &home, &heredoc(&command));
                        ran += 1;
                        if !reply.status.success() {
                            failures.push(format!("{reply:?}"));
                        }
                    }
                    (ran, failures)
                })
            })
            .collect();
        for _ in 0..ROUNDS {
            // Done by another process, because a child forked by this one would keep our descriptor open for writing.
            let script =
                "cp \"$1\" \"$2\" && printf x >> \"$2\" && chmod 755 \"$2\" && mv \"$2\" \"$1\"";
            let mut damage = world.command(Path::new("/bin/sh"));
            damage.args(["-c", script, "sh"]).args([&program, &other]);
            assert!(damage.status().unwrap().success());
            world.ok(&["install", "--yes"]);
            assert_eq!(fs::read(&program).unwrap(), right);
        }
        over.store(true, Ordering::Relaxed);
        let ended: Vec<_> = runners.into_iter().map(|runner| runner.join().unwrap()).collect();
        let ran: usize = ended.iter().map(|(ran, _)| ran).sum();
        assert!(ran > ROUNDS, "hooks ran all the time");
        eprintln!("{ran} hooks ran while the program was replaced {ROUNDS} times");
        ended.into_iter().flat_map(|(_, failures)| failures).collect::<Vec<_>>()
    });
    assert_eq!(failures, Vec::<String>::new());
}

#[test]
fn twenty_projects_installed_at_once_are_all_known_and_all_undone() {
    let world = World::new();
    let projects: Vec<PathBuf> = (0..20).map(|n| world.scratch(&format!("project-{n}"))).collect();
    for project in &projects {
        fs::create_dir_all(project.join(".git")).unwrap();
    }
    let install = |project: &PathBuf| {
        let mut command = world.command(&world.hookspan());
        command.args(["install", "--scope", "project", "--yes"]).current_dir(project);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let running: Vec<_> = projects.iter().map(install).collect();
    for child in running {
        let done = Finished::from(child.wait_with_output().unwrap());
        assert_eq!(done.code, 0, "{done:#?}");
        assert!(!done.stderr.contains("hookspan up"), "`up` would double the hooks: {done:#?}");
        assert!(done.stderr.contains("hookspan serve"), "{done:#?}");
    }
    let record = fs::read(world.state().join("install.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    assert_eq!(record["files"].as_array().unwrap().len(), 20);
    let shown = world.ok(&["uninstall", "--purge", "--dry-run"]);
    for project in &projects {
        assert!(shown.contains(project.join(".cursor/hooks.json").to_str().unwrap()), "{shown}");
    }
    world.ok(&["uninstall", "--all", "--yes"]);
    for project in &projects {
        assert!(!project.join(".cursor").exists(), "{}", project.display());
    }
    assert!(!world.home().join(".local").exists(), "{}", world.describe());
}

#[test]
fn purge_in_the_user_scope_leaves_no_project_recording() {
    let world = World::new();
    let project = world.scratch("project");
    fs::create_dir_all(project.join(".git")).unwrap();
    let mut command = world.command(&world.hookspan());
    command.args(["install", "--scope", "project", "--yes"]).current_dir(&project);
    assert!(command.status().unwrap().success());
    world.ok(&["install", "--yes"]);
    world.ok(&["demo", "--sessions", "3", "--no-serve"]);
    let demo = world.state().with_file_name("hookspan-demo");
    assert!(demo.exists());

    let collector = Collector::start(&world);
    let refused = world.run(&["uninstall", "--purge", "--yes"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    let pid = collector.pid().as_raw_nonzero().to_string();
    assert!(refused.stderr.contains(&format!("process {pid}")), "{refused:#?}");
    assert!(refused.stderr.contains(" serve "), "which command it is: {refused:#?}");
    assert!(project.join(".cursor/hooks.json").exists(), "nothing was changed");
    drop(collector);

    let gone = world.run(&["uninstall", "--purge", "--yes"]);
    assert_eq!(gone.code, 0, "{gone:#?}");
    assert!(!project.join(".cursor").exists() && !demo.exists(), "{}", world.describe());
    assert!(!world.home().join(".cursor").exists() && !world.home().join(".local").exists());
}

#[test]
fn a_projects_uninstall_and_another_directorys_leave_the_service_alone() {
    let world = World::new();
    let path = without_services(&world);
    let world = world.with_env("PATH", path);
    world.ok(&["install", "--service", "--yes"]);
    let calls = || fs::read_to_string(world.scratch("calls")).unwrap();
    assert_eq!(
        calls(),
        "--user daemon-reload\n--user enable hookspan.service\n--user restart hookspan.service\n"
    );
    let unit = world.home().join(".config/systemd/user/hookspan.service");
    let text = fs::read_to_string(&unit).unwrap();
    assert!(text.contains("RestartPreventExitStatus=2"), "{text}");
    let project = world.scratch("project");
    fs::create_dir_all(project.join(".git")).unwrap();
    for words in
        [["install", "--scope", "project", "--yes"], ["uninstall", "--scope", "project", "--yes"]]
    {
        let mut command = world.command(&world.hookspan());
        assert!(command.args(words).current_dir(&project).status().unwrap().success());
    }
    assert_eq!(fs::read_to_string(&unit).unwrap(), text);
    let other = world.scratch("other");
    world.ok(&["--dir", other.to_str().unwrap(), "uninstall", "--all", "--yes"]);
    assert_eq!(fs::read_to_string(&unit).unwrap(), text);
    assert!(!calls().contains("disable"), "{}", calls());
    world.ok(&["uninstall", "--all", "--yes"]);
    assert!(!unit.exists());
    assert!(calls().contains("--user disable --now hookspan.service\n"), "{}", calls());
}

/// What systemd's own tool says about the unit.
#[test]
fn systemd_accepts_the_unit() {
    let test = "systemd_accepts_the_unit";
    if !machine_has("systemd-analyze") {
        return skip(test, "there is no systemd-analyze");
    }
    let world = World::new();
    let path = without_services(&world);
    let state = world.scratch("a 100% $odd \"place\"");
    let world = world.with_env("PATH", path).with_env("XDG_CONFIG_HOME", "/c d/100%$x");
    let shown = world.ok(&["--dir", state.to_str().unwrap(), "install", "--service", "--dry-run"]);
    let (_, text) = shown.split_once("# Written by").unwrap();
    let unit = world.scratch("hookspan.service");
    fs::write(&unit, format!("# Written by{text}")).unwrap();
    let mut analyze = world.command(Path::new("systemd-analyze"));
    let said = Finished::from(analyze.args(["verify", "--user"]).arg(&unit).output().unwrap());
    let about = |line: &&str| line.contains("hookspan.service");
    let complaints: Vec<_> = said.stderr.lines().filter(about).collect();
    assert_eq!(complaints, Vec::<&str>::new(), "{text}\n{said:#?}");
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
fn up_beside_a_running_collector_prints_its_address() {
    let world = World::new();
    let collector = Collector::up(&world, &["--yes"]);
    let again = world.run(&["up", "--yes"]);
    assert_eq!(again.code, 0, "{again:#?}");
    assert!(again.stdout.contains(&collector.url), "{again:#?}");
    let pid = collector.pid().as_raw_nonzero().to_string();
    assert!(again.stderr.contains(&pid), "{again:#?}");
    assert!(!again.stderr.contains("version"), "it is the same: {again:#?}");

    let path = world.state().join("serve.json");
    let text = fs::read_to_string(&path).unwrap();
    let version = serde_json::from_str::<Value>(&text).unwrap()["version"].clone();
    let older = text.replace(version.as_str().unwrap(), "0.0.9");
    fs::write(&path, older).unwrap();
    let again = world.run(&["up", "--yes"]);
    assert_eq!(again.code, 0, "{again:#?}");
    assert!(again.stderr.contains("0.0.9"), "{again:#?}");
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

/// A `PATH` with a `systemctl` that writes its arguments to the file `calls` and does nothing, so that the test leaves
/// the machine's services alone.
fn without_services(world: &World) -> String {
    let folder = world.scratch("services");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("systemctl");
    let calls = world.scratch("calls");
    fs::write(&program, format!("#!/bin/sh\necho \"$*\" >> '{}'\n", calls.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:/usr/bin:/bin", folder.display())
}

/// What Cursor does with a command on POSIX systems: it adds the payload in a here-document.
fn heredoc(command: &str) -> String {
    format!("{command} <<'CURSOR_HOOK_EOF'\n{PAYLOAD}\nCURSOR_HOOK_EOF\n")
}

/// Runs a script with the environment of a program that the desktop started.
fn bare(shell: &Path, home: &Path, script: &str) -> Output {
    bare_command(shell, home).args(["-c", script]).output().unwrap()
}

fn bare_command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir("/");
    command.stdin(Stdio::null());
    command
}

#[track_caller]
fn stop_command(home: &Path) -> String {
    let text = fs::read_to_string(home.join(".cursor/hooks.json")).unwrap();
    let hooks: Value = serde_json::from_str(&text).unwrap();
    hooks["hooks"]["stop"][0]["command"].as_str().unwrap().to_owned()
}

/// Whether a hook was stored: the journal is longer than its header.
fn holds_a_record(state: &Path) -> bool {
    fs::read(state.join("journal"))
        .is_ok_and(|bytes| bytes.windows(12).any(|window| window == b"8d3f0c52-000"))
}

fn machine_has(program: &str) -> bool {
    Command::new("which").arg(program).output().is_ok_and(|found| found.status.success())
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
