//! Sends one notice to the desktop, a webhook or a command. Each of them has a time limit. No redirect is followed, and
//! no shell is used.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use reqwest::blocking::Client;
use reqwest::redirect::Policy;

use super::child::wait_until;
use super::ledger::Way;
use super::notice::Notice;
use crate::clock;
use crate::config::Environment;
use crate::config::destination::is_loopback;
use crate::config::mistake::Mistake;
use crate::config::notify::{Kind, Notify, Webhook};
use crate::tls;

/// Maximum time of a program, and of one request.
const PATIENCE: Duration = Duration::from_secs(10);
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// Pauses before the second and the third attempt of a request.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// Why a notice was not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The program cannot be started.
    #[error("cannot start {0}: {1}")]
    Start(String, #[source] io::Error),
    /// The program cannot be waited for.
    #[error("cannot wait for {0}: {1}")]
    Wait(String, #[source] io::Error),
    /// The program ran too long.
    #[error("{0} did not end within 10 s and was stopped")]
    Slow(String),
    /// The program failed.
    #[error("{0} failed")]
    Failed(String),
    /// No client can be made, or the request failed.
    #[error("{0}")]
    Http(#[from] reqwest::Error),
    /// A header cannot be used.
    #[error("[notify.webhook] {0}")]
    Header(#[from] Mistake),
    /// The server refused.
    #[error("the server answered {status}{}", hint(*.status))]
    Status { status: u16 },
    /// hookspan cannot show desktop notices on this system.
    #[error("notices of the desktop are not built for this system: use [notify.command]")]
    NoDesktop,
}

fn hint(status: u16) -> &'static str {
    match status {
        300..=399 => ": redirects are not followed; write the address that it redirects to",
        401 | 403 => ": check the header with the key",
        404 | 410 => ": check the address",
        _ => "",
    }
}

/// Sends notices by the configured ways.
pub(crate) struct Deliver<'a> {
    config: &'a Notify,
    env: &'a Environment,
}

impl<'a> Deliver<'a> {
    /// Creates a sender for this configuration.
    #[must_use]
    pub(crate) fn new(config: &'a Notify, env: &'a Environment) -> Self {
        Self { config, env }
    }

    /// Whether any configured way sends notices of this kind.
    #[must_use]
    pub(crate) fn wants(&self, kind: Kind) -> bool {
        !self.ways(kind).is_empty()
    }

    /// The configured ways that send notices of this kind.
    #[must_use]
    pub(crate) fn ways(&self, kind: Kind) -> Vec<Way> {
        let Notify { desktop, webhook, command } = self.config;
        let all = [
            (Way::Desktop, desktop.as_ref().map(|one| &one.kinds)),
            (Way::Webhook, webhook.as_ref().map(|one| &one.kinds)),
            (Way::Command, command.as_ref().map(|one| &one.kinds)),
        ];
        let is_wanted =
            |kinds: Option<&Vec<Kind>>| kinds.is_some_and(|kinds| kinds.contains(&kind));
        all.into_iter().filter(|(_, kinds)| is_wanted(*kinds)).map(|(way, _)| way).collect()
    }

    /// Sends a notice by one way. A way that is not configured does nothing.
    ///
    /// # Errors
    /// [`Failure`] says why the notice was not sent.
    pub(crate) fn tell(&self, way: Way, notice: &Notice) -> Result<(), Failure> {
        let Notify { desktop, webhook, command } = self.config;
        match way {
            Way::Desktop => desktop.as_ref().map_or(Ok(()), |one| {
                let (title, text) = notice.desktop(one.content);
                run(&desktop_program(notice.kind, &title, &text).ok_or(Failure::NoDesktop)?, b"")
            }),
            Way::Webhook => webhook
                .as_ref()
                .map_or(Ok(()), |one| self.post(one, &notice.json(one.content).to_string())),
            Way::Command => command.as_ref().map_or(Ok(()), |one| {
                run(&one.argv, notice.json(one.content).to_string().as_bytes())
            }),
        }
    }

    fn post(&self, webhook: &Webhook, body: &str) -> Result<(), Failure> {
        tls::install_crypto();
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_PATIENCE)
            .timeout(PATIENCE)
            .redirect(Policy::none())
            .user_agent(concat!("hookspan/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&webhook.url) {
            builder = builder.no_proxy();
        } else {
            builder = builder.https_only(true);
        }
        let client = builder.build()?;
        let headers = webhook.headers(self.env)?;
        let mut pauses = PAUSES.into_iter();
        loop {
            let mut request = client.post(&webhook.url).header("content-type", "application/json");
            for (name, value) in &headers {
                request = request.header(name, &value.0);
            }
            let answer = request.body(body.to_owned()).send().map_err(reqwest::Error::without_url);
            let failure = match answer {
                Ok(answer) if answer.status().is_success() => return Ok(()),
                Ok(answer) => Failure::Status { status: answer.status().as_u16() },
                Err(error) => Failure::Http(error),
            };
            let may_help = match &failure {
                Failure::Status { status } => *status == 429 || *status >= 500,
                _ => true,
            };
            match pauses.next().filter(|_| may_help) {
                Some(pause) => std::thread::sleep(pause),
                None => return Err(failure),
            }
        }
    }
}

/// Starts the program without a shell, with `input` on its standard input, and waits for it.
fn run(argv: &[String], input: &[u8]) -> Result<(), Failure> {
    let Some((program, arguments)) = argv.split_first() else { return Ok(()) };
    let deadline = clock::instant() + PATIENCE;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| Failure::Start(program.clone(), error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // The input is at most a few kilobytes and fits into the pipe. A program may ignore it, so an error is no
        // failure.
        drop(stdin.write_all(input));
    }
    match wait_until(&mut child, deadline).map_err(|error| Failure::Wait(program.clone(), error))? {
        Some(true) => Ok(()),
        Some(false) => Err(Failure::Failed(program.clone())),
        None => Err(Failure::Slow(program.clone())),
    }
}

/// The program that shows a notice. Title and text are arguments and never part of a script.
#[cfg(target_os = "macos")]
fn desktop_program(_: Kind, title: &str, text: &str) -> Option<Vec<String>> {
    let script =
        "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";
    Some(["osascript", "-e", script, title, text].map(str::to_owned).to_vec())
}

/// The program that shows a notice. Some desktops read the text as markup, so it is escaped.
#[cfg(all(unix, not(target_os = "macos")))]
fn desktop_program(kind: Kind, title: &str, text: &str) -> Option<Vec<String>> {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // A critical notice stays until a person closes it, where the desktop allows that.
    let urgency = if kind == Kind::Finished { "normal" } else { "critical" };
    let urgency = format!("--urgency={urgency}");
    Some(
        ["notify-send", "--app-name=hookspan", &urgency, "--", title, &text]
            .map(str::to_owned)
            .to_vec(),
    )
}

/// The program that shows a notice: none on this system.
#[cfg(not(unix))]
fn desktop_program(_: Kind, _: &str, _: &str) -> Option<Vec<String>> {
    None
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use hookspan_core::Timestamp;

    use super::*;

    fn deliver(text: &str, notice: &Notice, way: Way) -> Result<(), Failure> {
        let config: Notify = toml::from_str(text).unwrap();
        Deliver::new(&config, &Environment::of(&[("KEY", "s3cret")], "/")).tell(way, notice)
    }

    fn notice() -> Notice {
        Notice::test(Kind::Waiting, Timestamp(1_795_996_800_000_000_000))
    }

    #[test]
    fn a_command_gets_its_words_and_the_object_and_no_shell() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let script = format!("printf '%s|' \"$@\" >\"{0}\"; cat >>\"{0}\"", out.display());
        let argv = format!("argv = ['sh', '-c', '''{script}''', 'x', '$(id)', 'a b']");
        deliver(&format!("[command]\n{argv}"), &notice(), Way::Command).unwrap();
        let got = std::fs::read_to_string(&out).unwrap();
        let (words, object) = got.rsplit_once('|').unwrap();
        assert_eq!(words, "$(id)|a b");
        let object: serde_json::Value = serde_json::from_str(object).unwrap();
        assert_eq!(
            (&object["kind"], &object["since"]),
            (&"waiting".into(), &"2026-11-30T00:00:00Z".into())
        );
        assert!(object.get("content").is_none(), "{object}");
    }

    #[test]
    fn failures_of_a_command_say_what_happened() {
        let said = |argv: &str| {
            deliver(&format!("[command]\nargv = {argv}"), &notice(), Way::Command)
                .unwrap_err()
                .to_string()
        };
        assert!(said("['/no/such/program']").starts_with("cannot start /no/such/program"));
        assert_eq!(said("['false']"), "false failed");
    }

    #[test]
    fn markup_of_a_session_is_text_on_the_desktop() {
        let argv = desktop_program(Kind::Waiting, "-t", "<b>&x").unwrap();
        if cfg!(target_os = "linux") {
            assert_eq!(argv[3..], ["--", "-t", "&lt;b&gt;&amp;x"]);
        }
    }

    #[test]
    fn a_redirect_is_not_followed_and_a_missing_key_is_named() {
        let error = deliver(
            "[webhook]\nurl = 'https://h.invalid/'\nheaders = { authorization = 'env:NOT_SET' }",
            &notice(),
            Way::Webhook,
        );
        assert!(error.unwrap_err().to_string().contains("NOT_SET"));
        assert!(Failure::Status { status: 302 }.to_string().contains("redirects are not followed"));
    }
}
