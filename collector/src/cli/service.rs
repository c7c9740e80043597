//! Starting the collector at login: a systemd user unit on Linux, a launchd agent on macOS.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::Global;
use super::output::note;
use crate::hooks_json::plan::remove_if_empty;

/// Tells a file of ours from one that somebody wrote.
const MARKER: &str = "Written by `hookspan install --service`";
#[cfg(not(target_os = "macos"))]
const UNIT: &str = "hookspan.service";
const LABEL: &str = "dev.hookspan.collector";

/// The unit or agent.
#[derive(Debug)]
pub struct Service {
    /// Where its file is.
    pub path: PathBuf,
    text: String,
}

impl Service {
    /// The service for this program and state directory.
    ///
    /// # Errors
    /// This system has none that hookspan knows, or the program's own path is not known.
    pub fn new(global: &Global) -> anyhow::Result<Self> {
        let Some(path) = path(global) else {
            anyhow::bail!(
                "--service is not available here: make your system run `hookspan serve` at login \
                 (on Windows: schtasks /Create /SC ONLOGON /TN hookspan /TR \"hookspan serve\")"
            );
        };
        let program = global.env.program().context("cannot tell where this program is")?;
        let mut command = vec![program.display().to_string(), "serve".to_owned()];
        if !global.dir_is_default {
            command.extend(["--dir".to_owned(), global.state.root().display().to_string()]);
        }
        if let (true, Some(config)) = (global.config_required, &global.config_file) {
            let config = global.env.current_dir().join(config);
            command.extend(["--config".to_owned(), config.display().to_string()]);
        }
        let text = if cfg!(target_os = "macos") { agent(&command) } else { unit(&command) };
        Ok(Self { path, text })
    }

    /// The service that an earlier `install` left, if any.
    #[must_use]
    pub fn installed(global: &Global) -> Option<Self> {
        let path = path(global)?;
        let text = fs::read_to_string(&path).ok()?;
        text.contains(MARKER).then_some(Self { path, text })
    }

    /// What would be written.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("write {}\n\n{}\n", self.path.display(), self.text)
    }

    /// Writes the file and starts the service. When the service manager does not answer, says what to run.
    ///
    /// # Errors
    /// The file is somebody else's or cannot be written.
    pub fn install(&self) -> anyhow::Result<()> {
        let io = || format!("cannot write {}", self.path.display());
        if fs::read_to_string(&self.path).is_ok_and(|text| !text.contains(MARKER)) {
            anyhow::bail!("{}: is not ours; remove it first", self.path.display());
        }
        fs::create_dir_all(self.path.parent().unwrap_or(Path::new("."))).with_context(io)?;
        fs::write(&self.path, &self.text).with_context(io)?;
        note(&format!("Done: {} starts the collector at login.", self.path.display()));
        for command in self.commands(true) {
            attempt(&command);
        }
        Ok(())
    }

    /// Stops the service and removes its file.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn uninstall(&self) -> anyhow::Result<()> {
        for command in self.commands(false) {
            attempt(&command);
        }
        fs::remove_file(&self.path)
            .with_context(|| format!("cannot remove {}", self.path.display()))?;
        self.path.parent().map_or(Ok(()), remove_if_empty)
    }

    #[cfg(target_os = "macos")]
    fn commands(&self, start: bool) -> Vec<Vec<String>> {
        let verb = if start { "load" } else { "unload" };
        let path = self.path.display().to_string();
        vec![["launchctl", verb, "-w", &path].map(str::to_owned).to_vec()]
    }

    #[cfg(not(target_os = "macos"))]
    #[expect(clippy::unused_self, reason = "the launchd variant needs the path")]
    fn commands(&self, start: bool) -> Vec<Vec<String>> {
        let verb = if start { "enable" } else { "disable" };
        let systemctl = |rest: &[&str]| {
            ["systemctl", "--user"].iter().chain(rest).map(|word| (*word).to_owned()).collect()
        };
        let mut commands = vec![systemctl(&[verb, "--now", UNIT])];
        if start {
            commands.insert(0, systemctl(&["daemon-reload"]));
        }
        commands
    }
}

fn attempt(command: &[String]) {
    let Some((program, arguments)) = command.split_first() else { return };
    let ran = Command::new(program).args(arguments).output();
    if !ran.is_ok_and(|output| output.status.success()) {
        note(&format!("This did not work, run it yourself: {}", command.join(" ")));
    }
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
    Some(config.unwrap_or_else(|| home.join(".config")).join("systemd/user/hookspan.service"))
}

fn unit(command: &[String]) -> String {
    // systemd expands % and $ in ExecStart, also between quotes.
    let quoted: Vec<String> = command
        .iter()
        .map(|word| {
            word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$")
        })
        .map(|word| format!("\"{word}\""))
        .collect();
    format!(
        "# {MARKER}; `hookspan uninstall` removes it.\n\
         [Unit]\nDescription=hookspan collector and dashboard\n\n\
         [Service]\nExecStart={}\nRestart=on-failure\nRestartSec=5\n\n\
         [Install]\nWantedBy=default.target\n",
        quoted.join(" ")
    )
}

fn agent(command: &[String]) -> String {
    let escape =
        |word: &String| word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let words: String =
        command.iter().map(|word| format!("    <string>{}</string>\n", escape(word))).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <!-- {MARKER}; `hookspan uninstall` removes it. -->\n\
         <plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>{LABEL}</string>\n  \
         <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n  \
         <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <dict>\n    \
         <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n</dict>\n</plist>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_quotes_what_systemd_would_expand() {
        let command = ["/a b/hookspan", "serve", "--dir", "/100%$x\"y"].map(str::to_owned);
        let text = unit(&command);
        assert!(
            text.contains(r#"ExecStart="/a b/hookspan" "serve" "--dir" "/100%%$$x\"y""#),
            "{text}"
        );
    }

    #[test]
    fn an_agent_is_xml_whatever_the_path() {
        let text = agent(&["/a&b/<hookspan>".to_owned(), "serve".to_owned()]);
        assert!(text.contains("<string>/a&amp;b/&lt;hookspan&gt;</string>"), "{text}");
    }
}
