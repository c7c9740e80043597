//! `hookspan open`: the dashboard in the browser, signed in.

use std::process::{Command, ExitCode, Stdio};

use super::{Global, output};
use crate::dirs::ServeInfo;

/// Open the dashboard in the browser, signed in
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  hookspan open\n  hookspan open --print")]
pub struct Args {
    /// Print the address instead of starting a browser
    #[arg(long)]
    print: bool,
}

/// Runs the command.
///
/// # Errors
/// No collector runs, or no browser can be started; the address is then in the text.
pub fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let Some(info) = ServeInfo::running(&global.state) else {
        anyhow::bail!("no collector is running: start one with `{}`", global.command("up"));
    };
    let Some(url) = info.signed_in(&global.state) else {
        anyhow::bail!("the collector (process {}) serves no dashboard yet; try again", info.pid);
    };
    if args.print {
        output::print(&format!("{url}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (program, arguments) in openers() {
        let started = Command::new(program)
            .args(*arguments)
            .arg(&url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if started.is_ok_and(|status| status.success()) {
            output::note(&format!("opened {url}"));
            return Ok(ExitCode::SUCCESS);
        }
    }
    anyhow::bail!("no browser could be started; open this yourself: {url}")
}

/// Programs that start a browser, in the order of trying. Other accounts of this
/// computer can see a token in the argument list for a moment. The page removes the token from its address, and `--print` avoids this.
pub(super) fn openers() -> &'static [(&'static str, &'static [&'static str])] {
    if cfg!(target_os = "macos") {
        &[("open", &[])]
    } else if cfg!(windows) {
        &[("rundll32", &["url.dll,FileProtocolHandler"])]
    } else {
        &[("xdg-open", &[]), ("wslview", &[]), ("gio", &["open"])]
    }
}
