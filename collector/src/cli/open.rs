//! `hookspan open`: opens the dashboard in the browser, signed in.
//!
//! The browser gets a file that only its owner may read. The file redirects the browser to the dashboard with a code
//! for one sign-in. The code is not in the arguments of a process, where other accounts of this computer could read it.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use super::{Global, output};
use crate::clock;
use crate::dirs::{ServeInfo, StateDir, create_private};
use crate::status::{is_code_used, login_code};

/// How long a browser may take to sign in. After that the command says what may be wrong.
const PATIENCE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(100);

/// Open the dashboard in the browser, signed in
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Examples:\n  hookspan open\n  hookspan open --print")]
pub(crate) struct Args {
    /// Print an address that signs one browser in within a minute, instead of starting a browser
    #[arg(long)]
    print: bool,
}

/// Runs the command.
///
/// # Errors
/// No collector runs, or no browser can be started.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let Some(info) = ServeInfo::running(&global.state) else {
        anyhow::bail!("no collector is running: start one with `{}`", global.command("up"));
    };
    let url = url(&info)?;
    if args.print {
        // Whoever requests the address wants it, no matter where standard output goes.
        output::print(&format!("{}\n", signed_in(&info)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !info.token_required {
        if !start(url.as_ref()) {
            anyhow::bail!("no browser could be started; open this address yourself: {url}");
        }
        output::note(&format!("opened {url}"));
        return Ok(ExitCode::SUCCESS);
    }
    let code = login_code(&info)
        .map_err(|error| anyhow!("the collector did not make a sign-in code: {error}"))?;
    let page = Redirect::write(&global.state, &with_code(&url, &code))?;
    if !start(page.path.as_os_str()) {
        anyhow::bail!(
            "no browser could be started; `{}` prints an address to open yourself",
            global.command("open --print")
        );
    }
    let started = clock::instant();
    while clock::instant().duration_since(started) < PATIENCE {
        if is_code_used(&info, &code).unwrap_or(false) {
            output::note(&format!("opened {url}"));
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(STEP);
    }
    output::note(&format!(
        "The browser has not signed in. One that runs in a sandbox (snap, flatpak) may not read {}: open the address that `{}` \
         prints.",
        page.path.display(),
        global.command("open --print")
    ));
    Ok(ExitCode::FAILURE)
}

/// The dashboard's address. It signs in only if it is printed to a terminal, because anything else may be a log.
pub(super) fn address(info: &ServeInfo) -> anyhow::Result<String> {
    match info.url() {
        Some(_) if output::is_terminal() => signed_in(info),
        Some(url) => Ok(url),
        None => Ok(info
            .socket
            .as_ref()
            .map_or_else(String::new, |path| format!("unix:{}", path.display()))),
    }
}

/// An address that signs one browser in.
fn signed_in(info: &ServeInfo) -> anyhow::Result<String> {
    let url = url(info)?;
    if !info.token_required {
        return Ok(url);
    }
    let code = login_code(info)
        .map_err(|error| anyhow!("the collector did not make a sign-in code: {error}"))?;
    Ok(with_code(&url, &code))
}

/// The address of the page that takes the code. The code is in the fragment, which a browser never sends.
fn with_code(url: &str, code: &str) -> String {
    format!("{}/login#c={code}", url.trim_end_matches('/'))
}

fn url(info: &ServeInfo) -> anyhow::Result<String> {
    if let Some(url) = info.url() {
        return Ok(url);
    }
    let pid = info.pid;
    Err(match &info.socket {
        Some(path) => anyhow!(
            "the dashboard (process {pid}) listens on unix:{} alone, which browsers do not reach: put a proxy in front of it, or \
             start it with --listen 127.0.0.1:4329 too",
            path.display()
        ),
        None => anyhow!("the collector (process {pid}) serves no dashboard yet; try again"),
    })
}

/// A file that redirects the browser. Only its owner may read it, and it is removed when the command ends.
pub(super) struct Redirect {
    pub(super) path: PathBuf,
}

impl Redirect {
    pub(super) fn write(state: &StateDir, url: &str) -> anyhow::Result<Self> {
        use std::io::Write as _;
        let name = format!("open-{:016x}.html", fastrand::u64(..));
        let path = state.root().join(name);
        let told = || format!("cannot write {}", path.display());
        let text = format!(
            "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\"><title>hookspan</title>\n\
             <meta http-equiv=\"refresh\" content=\"0;url={url}\">\n<p><a href=\"{url}\">Open the dashboard</a>\n"
        );
        let mut file = create_private(&path).with_context(told)?;
        file.write_all(text.as_bytes()).with_context(told)?;
        Ok(Self { path })
    }
}

impl Drop for Redirect {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }
}

/// Starts a browser. Returns false if none can be started.
pub(super) fn start(what: &std::ffi::OsStr) -> bool {
    openers().iter().any(|(program, arguments)| {
        let started = Command::new(program)
            .args(*arguments)
            .arg(what)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        started.is_ok_and(|status| status.success())
    })
}

/// Programs that start a browser, in the order in which they are tried.
fn openers() -> &'static [(&'static str, &'static [&'static str])] {
    if cfg!(target_os = "macos") {
        &[("open", &[])]
    } else if cfg!(windows) {
        &[("rundll32", &["url.dll,FileProtocolHandler"])]
    } else {
        &[("xdg-open", &[]), ("wslview", &[]), ("gio", &["open"])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_redirect_is_its_owners_and_goes_with_the_command() {
        use std::os::unix::fs::PermissionsExt as _;
        let temp = tempfile::tempdir().unwrap();
        let state = StateDir::at(temp.path().join("s"));
        state.prepare().unwrap();
        let url = with_code("http://127.0.0.1:4329/", "id.secret");
        assert_eq!(url, "http://127.0.0.1:4329/login#c=id.secret");
        let page = Redirect::write(&state, &url).unwrap();
        assert_eq!(page.path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&page.path).unwrap();
        assert!(text.contains(&format!("content=\"0;url={url}\"")), "{text}");
        let path = page.path.clone();
        drop(page);
        assert!(!path.exists());
    }
}
