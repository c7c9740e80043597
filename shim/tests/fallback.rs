//! Tests the failing path: the journal is missing, or something of another user is in its place. Each test runs as an
//! account without rights, and as root too if the tests run as root.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hookspan_shim::losses::Loss;

use crate::support::{
    ALLOW, Folder, Mount, check, copy_program, cursor_body, feed, records, skipped, wait,
};

const NOBODY: u32 = 65_534;
const STRANGER: u32 = 1;
const HOME_STATE: &str = "home/.local/state/hookspan";

/// The home and run-time directory of one account.
struct Machine {
    folder: Folder,
    uid: u32,
}

impl Machine {
    /// One machine for each account that a test can use.
    fn all() -> Vec<Self> {
        let ours = rustix::process::geteuid().as_raw();
        if ours != 0 {
            skipped("only root can become another account");
            return vec![Self::of(ours)];
        }
        vec![Self::of(0), Self::of(NOBODY)]
    }

    /// The machine of the account without rights. `None` if root does not run the tests. Root itself is never refused
    /// access.
    fn powerless() -> Option<Self> {
        Self::all().pop().filter(|machine| machine.uid != 0)
    }

    fn of(uid: u32) -> Self {
        let machine = Self { folder: Folder::for_everyone(), uid };
        copy_program(&machine.program());
        give(&machine.program(), 0o755, uid);
        for name in ["home", "run"] {
            machine.make(name, 0o700, uid);
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A copy of the program in a place where the account can run it.
    fn program(&self) -> PathBuf {
        self.path("hookspan-shim")
    }

    fn make(&self, name: &str, mode: u32, owner: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir(&path).unwrap();
        give(&path, mode, owner);
        path
    }

    fn make_file(&self, name: &str, mode: u32, owner: u32) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, "").unwrap();
        give(&path, mode, owner);
        path
    }

    /// The program with these variables.
    fn command(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(self.program());
        command.args(arguments).arg("preToolUse").env_clear().current_dir(self.folder.path());
        for (name, value) in variables {
            command.env(name, self.path(value));
        }
        self.own(&mut command);
        command
    }

    fn own(&self, command: &mut Command) {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if rustix::process::geteuid().as_raw() != self.uid {
            command.uid(self.uid).gid(self.uid);
        }
    }

    /// Runs one hook. The answer must be the same as in the usual case.
    #[track_caller]
    fn hook(&self, arguments: &[&str], variables: &[(&str, &str)]) {
        check(&feed(self.command(arguments, variables), &cursor_body("preToolUse")), ALLOW);
    }

    /// Runs one hook with `--dir` and with a run-time directory.
    #[track_caller]
    fn hook_in(&self, dir: &str) {
        let dir = self.path(dir);
        self.hook(&["--dir", dir.to_str().unwrap()], &[("XDG_RUNTIME_DIR", "run")]);
    }

    /// Files whose names start with `prefix`, in our folder of the run-time directory.
    fn in_run(&self, prefix: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("run/hookspan")).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix))
            .collect()
    }

    /// Records in spill files.
    #[track_caller]
    fn spilled(&self) -> usize {
        let files = self.in_run("spill-");
        files.iter().for_each(|file| self.check_mode(file, 0o600));
        files.iter().map(|file| records(file).len()).sum()
    }

    /// Error numbers of the losses in the run-time directory.
    #[track_caller]
    fn spare_losses(&self) -> Vec<u32> {
        self.in_run("losses-").iter().flat_map(|file| losses(file)).collect()
    }

    #[track_caller]
    fn check_mode(&self, path: &Path, mode: u32) {
        let found = fs::symlink_metadata(path).unwrap();
        let found = (found.mode() & 0o7777, found.uid());
        assert_eq!(found, (mode, self.uid), "{}", path.display());
    }
}

fn give(path: &Path, mode: u32, owner: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    if fs::metadata(path).unwrap().uid() != owner {
        chown(path, Some(owner), Some(owner)).unwrap();
    }
}

#[track_caller]
fn losses(path: &Path) -> Vec<u32> {
    let bytes = fs::read(path).unwrap();
    bytes.chunks(32).map(|entry| Loss::decode(entry.try_into().unwrap()).unwrap().errno).collect()
}

/// What is below a folder, by name.
fn listing(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        found.push(entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(listing(&entry.path()));
        }
    }
    found.sort();
    found
}

#[test]
fn on_a_new_machine_the_directory_is_made() {
    for machine in Machine::all() {
        for variables in [&[("HOME", "home")][..], &[("HOME", "home"), ("XDG_RUNTIME_DIR", "run")]]
        {
            machine.hook(&[], variables);
        }
        for made in ["home/.local", "home/.local/state", HOME_STATE] {
            machine.check_mode(&machine.path(made), 0o700);
        }
        for made in ["journal", "losses"] {
            machine.check_mode(&machine.path(HOME_STATE).join(made), 0o600);
        }
        assert_eq!(records(&machine.path(HOME_STATE).join("journal")).len(), 2);
        assert_eq!(listing(&machine.path("run")), [""; 0]);
    }
}

#[test]
fn a_named_directory_is_made_with_its_parents() {
    for machine in Machine::all() {
        let named = machine.path("home/a/b/c");
        machine.hook(&["--dir", named.to_str().unwrap()], &[]);
        machine.hook(&[], &[("HOOKSPAN_DIR", "home/d/e/")]);
        machine.hook(&[], &[("XDG_STATE_HOME", "home/f")]);
        machine.hook(&["--dir", "home/./g//h/"], &[]);
        for made in ["a/b/c", "d/e", "f/hookspan", "g/h"] {
            let made = machine.path("home").join(made);
            machine.check_mode(&made, 0o700);
            assert_eq!(records(&made.join("journal")).len(), 1, "{}", made.display());
        }
    }
}

#[test]
fn two_hundred_at_once_make_it_once_under_any_umask() {
    for machine in Machine::all() {
        for umask in ["022", "777"] {
            let home = format!("home/{umask}");
            machine.make(&home, 0o700, machine.uid);
            let start = || -> Child {
                let mut shell = Command::new("sh");
                let line = format!("umask {umask}; exec \"$0\" preToolUse");
                shell.arg("-c").arg(line).arg(machine.program()).env_clear();
                shell.env("HOME", machine.path(&home));
                machine.own(&mut shell);
                let mut child = shell.spawn().unwrap();
                child.stdin.take().unwrap().write_all(&cursor_body("preToolUse")).unwrap();
                child
            };
            let children: Vec<Child> = (0..200).map(|_| start()).collect();
            for child in children {
                check(&wait(child, std::time::Instant::now()), ALLOW);
            }
            let state = machine.path(&home).join(".local/state/hookspan");
            assert_eq!(records(&state.join("journal")).len(), 200, "umask {umask}");
            machine.check_mode(&state, 0o700);
            machine.check_mode(&state.join("journal"), 0o600);
            assert_eq!(losses(&state.join("losses")), [0; 0]);
        }
    }
}

#[test]
fn in_another_users_home_nothing_is_made_and_the_hook_is_spilled() {
    for machine in Machine::all().into_iter().filter(|_| can_give_away()) {
        machine.make("theirs", 0o777, STRANGER);
        machine.hook(&[], &[("HOME", "theirs"), ("XDG_RUNTIME_DIR", "run")]);
        // Without a run-time directory no place belongs to us. The program answers and does nothing else.
        machine.hook(&[], &[("HOME", "theirs")]);
        assert_eq!(listing(&machine.path("theirs")), [""; 0]);
        assert_eq!(machine.spilled(), 1);
        machine.check_mode(&machine.path("run/hookspan"), 0o700);
    }
}

#[test]
fn a_home_that_does_not_exist_is_not_made() {
    for machine in Machine::all() {
        machine.hook(&[], &[("HOME", "home/nobody"), ("XDG_RUNTIME_DIR", "run")]);
        assert_eq!(listing(&machine.path("home")), [""; 0]);
        assert_eq!(machine.spilled(), 1);
    }
}

/// The state that `sudo` leaves `~/.local` in, and that a container gives to a user without a name.
#[test]
fn below_a_parent_of_another_user_nothing_is_made() {
    for machine in Machine::all().into_iter().filter(|_| can_give_away()) {
        machine.make("home/.local", 0o777, STRANGER);
        machine.hook(&[], &[("HOME", "home"), ("XDG_RUNTIME_DIR", "run")]);
        assert_eq!(listing(&machine.path("home")), [".local"]);
        assert_eq!(machine.spilled(), 1);
    }
    let Some(machine) = Machine::powerless() else { return };
    let mut command = machine.command(&[], &[("XDG_RUNTIME_DIR", "run")]);
    command.env("HOME", "/");
    check(&feed(command, &cursor_body("preToolUse")), ALLOW);
    assert_eq!(machine.spilled(), 1);
}

/// WSL creates the run-time directory with mode 755 or 777. Our folder in it is closed to others nevertheless.
#[test]
fn an_open_run_time_directory_of_ours_is_used() {
    for machine in Machine::all() {
        fs::write(machine.path("home/file"), "").unwrap();
        for mode in [0o755, 0o777] {
            give(&machine.path("run"), mode, machine.uid);
            machine.hook_in("home/file");
        }
        machine.check_mode(&machine.path("run/hookspan"), 0o700);
        assert_eq!(machine.spilled(), 2);
    }
}

#[test]
fn a_directory_of_another_user_is_not_written_to() {
    for machine in Machine::all().into_iter().filter(|_| can_give_away()) {
        machine.make("theirs", 0o777, STRANGER);
        machine.hook_in("theirs");
        assert_eq!(listing(&machine.path("theirs")), [""; 0]);
        assert_eq!(machine.spilled(), 1);
    }
}

#[test]
fn planted_files_of_another_user_are_not_written_to() {
    let Some(machine) = Machine::powerless() else { return };
    machine.make("theirs", 0o777, STRANGER);
    let journal = machine.make_file("theirs/journal", 0o666, STRANGER);
    let losses = machine.make_file("theirs/losses", 0o666, STRANGER);
    machine.hook_in("theirs");
    machine.hook(&[], &[("HOOKSPAN_DIR", "theirs")]);
    assert_eq!(machine.spilled(), 1);
    // The same in the run-time directory: first the spill file belongs to another user, then the whole folder does.
    let spill = machine.in_run("spill-").remove(0);
    fs::remove_file(&spill).unwrap();
    fs::write(&spill, "").unwrap();
    give(&spill, 0o666, STRANGER);
    machine.hook_in("theirs");
    assert_eq!(fs::metadata(&spill).unwrap().len(), 0);
    assert_eq!(machine.spare_losses(), [1], "counted beside it: not permitted");
    give(&machine.path("run/hookspan"), 0o777, STRANGER);
    machine.hook_in("theirs");
    assert_eq!(machine.spare_losses(), [1]);
    for planted in [journal, losses, spill] {
        assert_eq!(fs::metadata(planted).unwrap().len(), 0);
    }
}

#[test]
fn a_pipe_that_another_user_reads_gets_nothing() {
    let Some(machine) = Machine::powerless() else { return };
    machine.make("theirs", 0o777, STRANGER);
    let pipe = machine.path("theirs/journal");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    give(&pipe, 0o666, STRANGER);
    // The FIFO is opened for reading and writing, so that a writer is not refused for lack of a reader.
    let mut reader = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    machine.hook_in("theirs");
    reader.write_all(b"!").unwrap();
    let mut first = [0; 8];
    let count = std::io::Read::read(&mut reader, &mut first).unwrap();
    assert_eq!(&first[..count], b"!");
    assert_eq!(machine.spilled(), 1);
}

#[test]
fn a_directory_that_its_owner_closed_is_left_as_it_is() {
    let Some(machine) = Machine::powerless() else { return };
    let state = machine.make("home/state", 0o500, machine.uid);
    machine.hook_in("home/state");
    machine.check_mode(&state, 0o500);
    assert_eq!(machine.spilled(), 1);
    // Without a run-time directory nothing can be stored. A loss file that already exists still counts losses.
    machine.make_file("home/state/losses", 0o600, machine.uid);
    machine.hook(&[], &[("HOOKSPAN_DIR", "home/state")]);
    assert_eq!(losses(&state.join("losses")), [13]);
}

#[test]
fn links_of_others_are_not_followed_and_our_own_are() {
    for machine in Machine::all().into_iter().filter(|_| can_give_away()) {
        machine.make("real", 0o700, machine.uid);
        let link = |name: &str, owner: u32| {
            let path = machine.path(name);
            symlink(machine.path("real"), &path).unwrap();
            std::os::unix::fs::lchown(path, Some(owner), Some(owner)).unwrap();
        };
        machine.make("shared", 0o755, machine.uid);
        link("shared/theirs", STRANGER);
        link("shared/ours", machine.uid);
        machine.hook_in("shared/theirs/state");
        assert_eq!((listing(&machine.path("real")).len(), machine.spilled()), (0, 1));
        // The collector refuses a state directory that is a link, so the program creates nothing there.
        machine.hook_in("shared/ours");
        assert_eq!((listing(&machine.path("real")).len(), machine.spilled()), (0, 2));
        machine.hook_in("shared/ours/state");
        assert_eq!(records(&machine.path("real/state/journal")).len(), 1);
    }
}

#[test]
fn what_is_no_directory_is_left_alone() {
    for machine in Machine::all() {
        fs::write(machine.path("home/file"), "mine").unwrap();
        machine.hook_in("home/file");
        machine.hook_in("home/file/below");
        symlink("loop", machine.path("home/loop")).unwrap();
        machine.hook_in("home/loop/below");
        assert_eq!(fs::read(machine.path("home/file")).unwrap(), b"mine");
        assert_eq!(machine.spilled(), 3);
    }
}

#[test]
fn what_cannot_be_kept_anywhere_is_counted_beside_the_spill() {
    for machine in Machine::all() {
        fs::write(machine.path("home/file"), "").unwrap();
        machine.hook_in("home/file");
        let spill = machine.in_run("spill-").remove(0);
        let full = fs::OpenOptions::new().write(true).open(&spill).unwrap();
        full.set_len(hookspan_shim::program::SPILL_MAX_BYTES).unwrap();
        machine.hook_in("home/file");
        assert_eq!(machine.spare_losses(), [20], "not a directory");
        machine.in_run("losses-").iter().for_each(|file| machine.check_mode(file, 0o600));
    }
}

#[test]
fn at_its_bound_the_journal_is_not_spilled() {
    for machine in Machine::all() {
        machine.make("home/state", 0o700, machine.uid);
        symlink("journal-is-full", machine.path("home/state/journal")).unwrap();
        machine.hook_in("home/state");
        assert_eq!(losses(&machine.path("home/state/losses")), [40]);
        assert_eq!(machine.spilled(), 0);
        // Another link in this place does not mean that the bound is reached.
        fs::remove_file(machine.path("home/state/journal")).unwrap();
        symlink("elsewhere", machine.path("home/state/journal")).unwrap();
        machine.hook_in("home/state");
        assert_eq!(machine.spilled(), 1);
    }
}

#[test]
fn on_a_disk_that_was_full_before_the_first_start_the_hook_is_spilled() {
    for machine in Machine::all() {
        for (name, options) in [("blocks", "size=4k"), ("names", "nr_inodes=2")] {
            let disk = Mount::tmpfs(&machine.path(name), options);
            let Some(disk) = disk else { return skipped("cannot mount a tmpfs here") };
            give(&disk.0, 0o700, machine.uid);
            if name == "blocks" {
                fs::write(disk.0.join("filler"), [0; 4_096]).unwrap();
            } else {
                fs::write(disk.0.join("filler"), "").unwrap();
            }
            let before = machine.spilled();
            machine.hook_in(&format!("{name}/state"));
            assert_eq!(machine.spilled(), before + 1, "{name}");
        }
    }
}

#[test]
fn a_run_time_directory_of_another_user_is_passed_over() {
    for machine in Machine::all().into_iter().filter(|_| can_give_away()) {
        fs::write(machine.path("home/file"), "").unwrap();
        machine.make("theirs", 0o777, STRANGER);
        symlink(machine.path("run"), machine.path("link")).unwrap();
        for run_time_dir in ["theirs", "link", "nowhere"] {
            machine.hook(&[], &[("HOOKSPAN_DIR", "home/file"), ("XDG_RUNTIME_DIR", run_time_dir)]);
        }
        assert_eq!(listing(&machine.path("theirs")), [""; 0]);
        assert_eq!(machine.spilled(), 0);
    }
}

/// Runs in a mount namespace of its own, where `/run` can be set up like on a desktop.
#[test]
fn without_the_variable_the_users_own_run_time_directory_is_found() {
    for machine in Machine::all() {
        let file = machine.make_file("home/file", 0o600, machine.uid);
        let script = "mount -t tmpfs tmpfs /run && mkdir -p /run/user/$3 && chown $3 /run/user/$3 || exit 9
            setpriv --reuid $3 --regid $3 --clear-groups \"$1\" --dir \"$2\" preToolUse </dev/null || exit 8
            cp -r /run/user/$3/hookspan \"$4\" || exit 7";
        let mut alone = Command::new("unshare");
        alone.args(["--mount", "sh", "-c", script, "sh"]).arg(machine.program()).arg(&file);
        alone.arg(machine.uid.to_string()).arg(machine.path("run")).stderr(Stdio::null());
        match alone.output().map(|output| output.status.code()) {
            Ok(Some(0)) => assert_eq!(machine.in_run("spill-").len(), 1),
            Ok(Some(7)) => panic!("nothing was kept"),
            Ok(Some(8)) => panic!("no answer"),
            _ => return skipped("cannot make a name space of mounts here"),
        }
    }
}

/// Only root can make files of other users.
fn can_give_away() -> bool {
    rustix::process::geteuid().is_root()
}
