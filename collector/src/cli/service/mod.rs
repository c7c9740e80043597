//! Starts the collector at login: by a systemd user unit on Linux, or a launchd agent on macOS.

mod text;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use text::{LABEL, MARKER, Run, agent, named_dir, unit};

use super::Global;
use super::output::note;
use crate::dirs::{Unfit, normal, read_regular};
use crate::hooks_json::plan::remove_if_empty;

const UNIT: &str = "hookspan.service";
const MAX_BYTES: u64 = 64 << 10;

/// Which service manager a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manager {
    Systemd,
    Launchd,
}

const MANAGER: Manager =
    if cfg!(target_os = "macos") { Manager::Launchd } else { Manager::Systemd };

/// The unit or agent.
#[derive(Debug)]
pub(crate) struct Service {
    /// Path of the file.
    pub path: PathBuf,
    text: String,
    /// The unit without the settings that need a user namespace.
    plain: Option<String>,
    warning: Option<String>,
}

impl Service {
    /// The service for this program and state directory.
    ///
    /// # Errors
    ///
    /// This system has no service manager that hookspan knows, or the program's own path is not known.
    pub(crate) fn new(global: &Global) -> anyhow::Result<Self> {
        let Some(path) = path(global) else {
            anyhow::bail!(
                "--service is not available here: make your system run `hookspan serve` at login \
                 (on Windows: schtasks /Create /SC ONLOGON /TN hookspan /TR \"hookspan serve\")"
            );
        };
        let program = global.env.program().context("the path of this program is not known")?;
        let run = run(global, program)?;
        let (text, plain) = match MANAGER {
            Manager::Systemd if run.namespace => {
                (unit(&run), Some(unit(&Run { namespace: false, ..run })))
            }
            Manager::Systemd => (unit(&run), None),
            Manager::Launchd => (agent(&run), None),
        };
        let warning = is_in_build_folder(program).then(|| {
            format!(
                "warning: the service runs {}, which lies in a build folder: the next build or `cargo clean` breaks it. \
                 Run `cargo install --locked --path collector`, then `hookspan install --service` with that program.",
                program.display()
            )
        });
        Ok(Self { path, text, plain, warning })
    }

    /// The service that an earlier `install` created for this state directory, if any.
    #[must_use]
    pub(crate) fn installed(global: &Global) -> Option<Self> {
        let path = path(global)?;
        let text = read(&path).ok()??;
        let named = named_dir(&text).and_then(|dir| normal(Path::new(&dir)).ok());
        let same = named.map_or(global.dir_is_default, |dir| dir == global.state.root());
        (text.contains(MARKER) && same).then_some(Self { path, text, plain: None, warning: None })
    }

    /// What would be written.
    #[must_use]
    pub(crate) fn describe(&self) -> String {
        let warning = self.warning.iter().map(|warning| format!("{warning}\n\n"));
        format!("{}write {}\n\n{}\n", warning.collect::<String>(), self.path.display(), self.text)
    }

    /// Writes the file and starts the service. If the service manager does not answer, prints what to run.
    ///
    /// # Errors
    ///
    /// The file was written by somebody else, or cannot be written.
    pub(crate) fn install(&self) -> anyhow::Result<()> {
        let io = || format!("cannot write {}", self.path.display());
        if read(&self.path)?.is_some_and(|text| !text.contains(MARKER)) {
            anyhow::bail!(
                "{}: hookspan did not write this file and does not replace it; move the file away and run this again",
                self.path.display()
            );
        }
        replace(&self.path, &self.text).with_context(io)?;
        note(&format!("Done: {} starts the collector at login.", self.path.display()));
        self.warning.iter().for_each(|warning| note(warning));
        let steps = start(MANAGER, user(), &self.path);
        let failed: Vec<String> = steps.iter().filter_map(Step::failure).collect();
        match &self.plain {
            Some(plain) if !failed.is_empty() && cannot_confine() => {
                replace(&self.path, plain).with_context(io)?;
                note(
                    "This system cannot run your services in a user namespace: the service runs with fewer restrictions.",
                );
                steps.iter().for_each(Step::run);
            }
            _ => failed.iter().for_each(|failure| note(failure)),
        }
        Ok(())
    }

    /// Stops the service and removes its file.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub(crate) fn uninstall(&self) -> anyhow::Result<()> {
        stop(MANAGER, user()).iter().for_each(|step| step.run());
        fs::remove_file(&self.path)
            .with_context(|| format!("cannot remove {}", self.path.display()))?;
        after_removal(MANAGER).iter().for_each(|step| step.run());
        // The folders above the file, up to the folder for configuration. `install` may have created them.
        let folders = if MANAGER == Manager::Systemd { 3 } else { 1 };
        self.path.ancestors().skip(1).take(folders).try_for_each(remove_if_empty)
    }
}

/// One call of the service manager.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    words: Vec<String>,
    /// Whether the user must be told if this step fails.
    matters: bool,
}

impl Step {
    fn of(words: &[&str], matters: bool) -> Self {
        Self { words: words.iter().map(|word| (*word).to_owned()).collect(), matters }
    }

    fn run(&self) {
        if let Some(failure) = self.failure() {
            note(&failure);
        }
    }

    /// Runs the step. Returns what to tell the user if it failed.
    fn failure(&self) -> Option<String> {
        let (program, arguments) = self.words.split_first()?;
        let reason = match Command::new(program).args(arguments).output() {
            Ok(output) if output.status.success() => return None,
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = said.lines().map(str::trim).find(|line| !line.is_empty());
                said.map_or_else(
                    || output.status.to_string(),
                    |line| crate::text::visible(line, 200),
                )
            }
            Err(error) => error.to_string(),
        };
        let reason = reason.trim_end_matches('.');
        self.matters
            .then(|| format!("`{}` failed: {reason}. Run it yourself.", self.words.join(" ")))
    }
}

/// Whether the service failed because the manager could not set up its restrictions: 217/USER, 218/CAPABILITIES,
/// 226/NAMESPACE and 228/SECCOMP in `systemd.exec(5)`.
fn cannot_confine() -> bool {
    let show = ["--user", "show", "--property=ExecMainStatus", "--value", UNIT];
    let status = Command::new("systemctl").args(show).output();
    let status = status.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    status.is_ok_and(|status| ["217", "218", "226", "228"].contains(&status.as_str()))
}

/// Makes the manager read the file and start the service. A service that is already running is restarted with this
/// program.
fn start(manager: Manager, user: u32, path: &Path) -> Vec<Step> {
    let path = path.display().to_string();
    match manager {
        Manager::Systemd => vec![
            Step::of(&["systemctl", "--user", "daemon-reload"], true),
            Step::of(&["systemctl", "--user", "enable", UNIT], true),
            Step::of(&["systemctl", "--user", "restart", UNIT], true),
        ],
        Manager::Launchd => vec![
            // A loaded agent must be unloaded before it is loaded again. If no agent is loaded, this step fails, so its
            // result is ignored.
            Step::of(&["launchctl", "bootout", &format!("gui/{user}/{LABEL}")], false),
            Step::of(&["launchctl", "enable", &format!("gui/{user}/{LABEL}")], true),
            Step::of(&["launchctl", "bootstrap", &format!("gui/{user}"), &path], true),
        ],
    }
}

fn stop(manager: Manager, user: u32) -> Vec<Step> {
    vec![match manager {
        Manager::Systemd => Step::of(&["systemctl", "--user", "disable", "--now", UNIT], true),
        Manager::Launchd => {
            Step::of(&["launchctl", "bootout", &format!("gui/{user}/{LABEL}")], true)
        }
    }]
}

fn after_removal(manager: Manager) -> Vec<Step> {
    match manager {
        Manager::Systemd => vec![Step::of(&["systemctl", "--user", "daemon-reload"], false)],
        Manager::Launchd => Vec::new(),
    }
}

#[cfg(unix)]
fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

#[cfg(not(unix))]
fn user() -> u32 {
    0
}

fn path(global: &Global) -> Option<PathBuf> {
    let home = global.env.home()?;
    if cfg!(target_os = "macos") {
        return Some(home.join("Library/LaunchAgents").join(format!("{LABEL}.plist")));
    }
    if !cfg!(target_os = "linux") {
        return None;
    }
    let config = global.env.path("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let path = config.unwrap_or_else(|| home.join(".config")).join("systemd/user").join(UNIT);
    Some(normal(&path).unwrap_or(path))
}

/// The command of the service. A login has a home folder and little else, so everything that this shell's variables
/// change is written into the file.
fn run(global: &Global, program: &Path) -> anyhow::Result<Run> {
    let mut words = vec![unicode(program)?, "serve".to_owned()];
    if !global.dir_is_default {
        words.extend(["--dir".to_owned(), unicode(global.state.root())?]);
    }
    let mut variables = Vec::new();
    if let (true, Some(config)) = (global.config_required, &global.config_file) {
        let config = normal(&global.env.current_dir().join(config))?;
        words.extend(["--config".to_owned(), unicode(&config)?]);
    } else if let Some(config) = global.env.path("XDG_CONFIG_HOME").filter(|p| p.is_absolute()) {
        variables.push(("XDG_CONFIG_HOME", unicode(&config)?));
    }
    let state = global.state.root();
    let config = global.config()?;
    let sockets = config.dashboard.sockets().filter_map(Path::parent);
    let writable = std::iter::once(state).chain(sockets).map(unicode);
    // With a private `/tmp`, the service would not see the real one.
    let file = global.config_file.as_deref();
    let in_tmp = |path: &Path| ["/tmp", "/var/tmp"].iter().any(|tmp| path.starts_with(tmp));
    let needed = std::iter::once(state).chain(file).chain([program]);
    let private_tmp = !needed.chain(config.dashboard.sockets()).any(in_tmp);
    let writable = writable.collect::<Result<_, _>>()?;
    // `allow_uids` names accounts, and inside a user namespace all other accounts look the same. Also, a socket in the
    // run-time directory cannot be created from inside (tried with systemd 252).
    let mut sockets = config.dashboard.sockets();
    let namespace =
        config.dashboard.allow_uids.is_empty() && sockets.all(|path| path.starts_with(state));
    Ok(Run { words, variables, writable, private_tmp, namespace })
}

/// A path as text in a unit or an agent.
fn unicode(path: &Path) -> anyhow::Result<String> {
    let text =
        path.to_str().with_context(|| format!("{}: the path is not Unicode", path.display()))?;
    if text.contains(char::is_control) {
        anyhow::bail!(
            "{}: a path in a service file must not contain a line break or another control character",
            text.escape_debug()
        );
    }
    Ok(text.to_owned())
}

/// Whether a program is in a folder that cargo builds into. Such a folder has the compiler's own folders beside the
/// program.
fn is_in_build_folder(program: &Path) -> bool {
    program
        .parent()
        .is_some_and(|folder| folder.join("deps").is_dir() && folder.join(".fingerprint").is_dir())
}

fn read(path: &Path) -> anyhow::Result<Option<String>> {
    let unfit = |unfit| match unfit {
        Unfit::Kind(kind) => anyhow::anyhow!("{} is {kind}, not a regular file", path.display()),
        Unfit::TooLarge(bytes) => anyhow::anyhow!("{}: {bytes} bytes are too many", path.display()),
        Unfit::Io(error) => anyhow::anyhow!("cannot read {}: {error}", path.display()),
    };
    let found = read_regular(path, MAX_BYTES).map_err(unfit)?;
    Ok(found.map(|found| String::from_utf8_lossy(&found.bytes).into_owned()))
}

/// Writes the file in one step, because the service manager may read it at any moment.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut new = tempfile::Builder::new().prefix(".hookspan-service-").tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        new.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    #[test]
    fn the_managers_are_called_as_they_are_today() {
        let words = |steps: Vec<Step>| -> Vec<String> {
            steps.iter().map(|step| step.words.join(" ")).collect()
        };
        assert_eq!(
            words(start(Manager::Launchd, 501, Path::new("/a.plist"))),
            [
                "launchctl bootout gui/501/dev.hookspan.collector",
                "launchctl enable gui/501/dev.hookspan.collector",
                "launchctl bootstrap gui/501 /a.plist",
            ]
        );
        assert_eq!(
            words(stop(Manager::Launchd, 501)),
            ["launchctl bootout gui/501/dev.hookspan.collector"]
        );
        assert_eq!(
            words(start(Manager::Systemd, 501, Path::new("/a"))),
            [
                "systemctl --user daemon-reload",
                "systemctl --user enable hookspan.service",
                "systemctl --user restart hookspan.service",
            ]
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_service_belongs_to_its_state_directory() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().to_str().unwrap();
        let global = |dir: Option<&str>, variables: &[(&str, &str)]| {
            let variables = [&[("HOME", home)], variables].concat();
            Global::new(Environment::of(&variables, "/"), dir.map(PathBuf::from), None).unwrap()
        };
        let state_home = format!("{home}/state");
        let by_variable = global(None, &[("XDG_STATE_HOME", &state_home)]);
        let run = run(&by_variable, Path::new("/usr/bin/hookspan")).unwrap();
        let expected = format!("{home}/state/hookspan");
        assert_eq!(run.words, ["/usr/bin/hookspan", "serve", "--dir", &expected]);

        let path = path(&by_variable).unwrap();
        replace(&path, &unit(&run)).unwrap();
        assert!(Service::installed(&by_variable).is_some());
        assert!(Service::installed(&global(Some(&expected), &[])).is_some());
        assert!(Service::installed(&global(None, &[])).is_none(), "the default directory");
        assert!(Service::installed(&global(Some("/elsewhere"), &[])).is_none());
    }

    #[test]
    fn a_program_beside_the_compilers_folders_is_in_a_build_folder() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("hookspan");
        assert!(!is_in_build_folder(&program));
        for name in ["deps", ".fingerprint"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        assert!(is_in_build_folder(&program));
    }
}
