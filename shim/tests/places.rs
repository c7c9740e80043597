use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use hookspan_shim::losses::Loss;

use crate::support::{
    ALLOW, Folder, Mount, NEUTRAL, check, copy_program, cursor_body, feed, program, records, run,
    skipped,
};

/// The program with only these environment variables.
fn with_environment(variables: &[(&str, &Path)]) -> Command {
    let mut command = Command::new(program());
    command.arg("preToolUse").env_clear().envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn the_state_directory_is_found_by_flag_then_variable_then_home() {
    let folder = Folder::new();
    let home = folder.join("home");
    let state = folder.join("state");
    let own = folder.join("own");
    let places = [own.clone(), state.join("hookspan"), home.join(".local/state/hookspan")];
    for place in &places {
        fs::create_dir_all(place).unwrap();
    }
    let relative = Path::new("relative");
    let variables: [(&str, &Path); 3] =
        [("HOOKSPAN_DIR", &own), ("XDG_STATE_HOME", &state), ("HOME", &home)];
    for from in 0..3 {
        check(&feed(with_environment(&variables[from..]), b""), ALLOW);
        assert_eq!(records(&places[from].join("journal")).len(), 1, "{from}");
    }
    // A relative path is ignored, and an empty one counts as unset.
    let odd = [("HOOKSPAN_DIR", Path::new("")), ("XDG_STATE_HOME", relative), ("HOME", &home)];
    check(&feed(with_environment(&odd), b""), ALLOW);
    assert_eq!(records(&places[2].join("journal")).len(), 2);
    check(&feed(with_environment(&[]), b""), ALLOW);
}

#[test]
fn the_journal_is_closed_to_others_under_any_umask() {
    for umask in ["000", "022", "077", "777"] {
        let folder = Folder::new();
        let mut shell = Command::new("sh");
        let line = format!("umask {umask}; exec \"$0\" --dir \"$1\" stop");
        shell.arg("-c").arg(line).arg(program()).arg(folder.path());
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        check(&feed(shell, b""), NEUTRAL);
        let mode = fs::metadata(folder.join("journal")).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o600, "umask {umask}");
    }
}

#[track_caller]
fn losses(folder: &Folder) -> Vec<Loss> {
    let bytes = fs::read(folder.join("losses")).unwrap_or_default();
    bytes.chunks(32).map(|entry| Loss::decode(entry.try_into().unwrap()).unwrap()).collect()
}

#[test]
fn whatever_stands_in_the_journals_place_is_left_alone_and_counted() {
    type Maker = fn(&Path);
    let makers: [(&str, Maker); 5] = [
        ("link", |path| symlink("elsewhere", path).unwrap()),
        ("dangling", |path| symlink("/nowhere/at/all", path).unwrap()),
        ("directory", |path| fs::create_dir(path).unwrap()),
        ("fifo", |path| {
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }),
        ("socket", |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap())),
    ];
    for (what, make) in makers {
        let folder = Folder::new();
        fs::write(folder.join("elsewhere"), b"mine").unwrap();
        make(&folder.join("journal"));
        let body = cursor_body("preToolUse");
        let ran = run(&folder, "stop", &body);
        check(&ran, ALLOW);
        assert!(ran.took.as_millis() < 1_000, "{what}: {:?}", ran.took);
        assert_eq!(fs::read(folder.join("elsewhere")).unwrap(), b"mine", "{what}");
        let losses = losses(&folder);
        assert_eq!(losses.len(), 1, "{what}");
        assert_eq!(losses[0].bytes as usize, body.len(), "{what}");
        assert_ne!(losses[0].errno, 0, "{what}");
    }
}

#[test]
fn without_rights_the_hook_is_answered() {
    // Root may write anywhere, so the test runs as another account.
    let as_nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"];
    let mut attempt = Command::new("setpriv");
    attempt.args(as_nobody).arg("true").stdin(Stdio::null()).stderr(Stdio::null());
    if !attempt.status().is_ok_and(|status| status.success()) {
        return skipped("cannot become another account with setpriv");
    }
    let folder = Folder::new();
    let copy = folder.join("program");
    copy_program(&copy);
    for (mode, file_mode) in [(0o500, 0o600), (0o700, 0o400), (0o000, 0o600)] {
        let state = Folder::new();
        fs::write(state.join("journal"), b"").unwrap();
        fs::set_permissions(state.join("journal"), Permissions::from_mode(file_mode)).unwrap();
        fs::set_permissions(state.path(), Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(as_nobody).arg(&copy).arg("--dir").arg(state.path()).arg("preToolUse");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        check(&feed(command, b""), ALLOW);
        fs::set_permissions(state.path(), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(fs::read(state.join("journal")).unwrap(), b"");
    }
}

#[test]
fn a_limit_on_the_size_of_files_does_not_kill() {
    let folder = Folder::new();
    check(&run(&folder, "stop", b"{}"), NEUTRAL);
    for limit in [0, 50] {
        let mut command = Command::new("prlimit");
        command.arg(format!("--fsize={limit}")).arg(program()).arg("--dir").arg(folder.path());
        command.arg("preToolUse").env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        check(&feed(command, b""), ALLOW);
    }
    assert_eq!(folder.records().len(), 1);
    assert_eq!(losses(&folder).len(), 1, "the one that had room for its loss");
}

#[test]
fn no_descriptors_left_does_not_kill() {
    let folder = Folder::new();
    let mut command = Command::new("prlimit");
    command.arg("--nofile=3").arg(program()).arg("--dir").arg(folder.path()).arg("preToolUse");
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    check(&feed(command, b""), ALLOW);
}

#[test]
fn on_a_full_disk_the_hook_is_spilled_then_counted() {
    let folder = Folder::new();
    let mounted = Mount::tmpfs(&folder.join("small"), "size=64k");
    let Some(mounted) = mounted else { return skipped("cannot mount a tmpfs here") };
    let state = mounted.0.join("state");
    fs::create_dir(&state).unwrap();
    let runtime = folder.join("run");
    fs::create_dir(&runtime).unwrap();
    fs::write(state.join("losses"), b"").unwrap();
    let body = vec![b'x'; 200_000];
    let full = |runtime: &Path| {
        let mut full = Command::new(program());
        full.arg("--dir").arg(&state).arg("stop").env_clear().env("XDG_RUNTIME_DIR", runtime);
        full.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        feed(full, &body)
    };
    check(&full(&runtime), NEUTRAL);
    let spilled: Vec<_> = fs::read_dir(runtime.join("hookspan")).unwrap().collect();
    assert_eq!(spilled.len(), 1);
    let spill = spilled[0].as_ref().unwrap();
    let mode = spill.metadata().unwrap().mode() & 0o777;
    let folder_mode = fs::metadata(runtime.join("hookspan")).unwrap().mode() & 0o777;
    assert_eq!((mode, folder_mode), (0o600, 0o700));
    let record = |path: &Path| fs::read(path).unwrap().len();
    assert!(record(&spill.path()) > 100_000, "from the frame that did not fit to the end");
}
