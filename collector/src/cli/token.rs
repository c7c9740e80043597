//! `hookspan token`: manages who may read the dashboard.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::anyhow;
use serde_json::json;

use super::{Global, output};
use crate::access::{AccessFile, BadToken, Vault as _};
use crate::audit::{AuditFile, What};
use crate::clock;
use crate::config::Misuse;
use crate::text;

/// Manage access to the dashboard: tokens for scripts, and signed-in browsers
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a token for a script and print it; the token is not stored and cannot be shown again
    #[command(
        after_help = "A script sends it as `Authorization: Bearer TOKEN`. It reads and changes what the dashboard does, but \
                      manages no access. With --receive it only sends telemetry, so it may stand in the environment of \
                      builds.\n\nExamples:\n  hookspan token create backup-job\n  hookspan token create builds --receive\n  \
                      curl -H \"Authorization: Bearer $(cat token)\" http://127.0.0.1:4329/api/v1/sessions"
    )]
    Create {
        /// What the token is for: letters, digits, `.`, `-` and `_`
        name: String,
        /// The token may only send telemetry to `[receive]`; it reads nothing
        #[arg(long)]
        receive: bool,
    },
    /// List tokens and signed-in browsers
    #[command(after_help = "Examples:\n  hookspan token list\n  hookspan token list --json")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token or sign a browser out, at once
    #[command(
        after_help = "Examples:\n  hookspan token revoke backup-job\n  hookspan token revoke 3f9c21aa\n  \
                      hookspan token revoke --browsers"
    )]
    Revoke {
        /// Name of a token, or the beginning of a browser's id
        #[arg(required_unless_present = "browsers")]
        name: Option<String>,
        /// Sign every browser out
        #[arg(long, conflicts_with = "name")]
        browsers: bool,
    },
    /// Give a token a new text; the old text becomes invalid at once
    #[command(after_help = "Example:\n  hookspan token rotate backup-job")]
    Rotate {
        /// Name of the token
        name: String,
    },
}

/// Runs the command, with or without a running collector.
///
/// # Errors
/// There is no such token, or `access.json` cannot be read or written.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let audit = Arc::new(AuditFile::new(&global.state));
    let file = AccessFile::new(&global.state, Arc::clone(&audit));
    let told = |what, detail: &str| output::audited(audit.add(what, detail));
    match args.command {
        Command::Create { name, receive } => {
            global.state.prepare()?;
            create(&file, &name, receive)?;
            told(What::TokenMade, &name);
        }
        Command::List { json } => {
            if global.state.root().exists() {
                global.state.verify()?;
            }
            list(&file, json)?;
        }
        Command::Revoke { name, .. } => {
            global.state.verify()?;
            let ended = revoke(&file, name.as_deref())?;
            told(if ended.is_token { What::TokenEnded } else { What::SignedOut }, &ended.words);
        }
        Command::Rotate { name } => {
            global.state.verify()?;
            rotate(&file, &name)?;
            told(What::TokenRotated, &name);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn now_s() -> i64 {
    clock::now().0 / 1_000_000_000
}

fn create(file: &AccessFile, name: &str, sends_only: bool) -> anyhow::Result<()> {
    let random = file.random().map_err(|error| anyhow!(error))?;
    let mut made = Err(BadToken::Name);
    file.change(&mut |access| {
        made = match sends_only {
            true => access.create_sending_token(name, random, now_s()),
            false => access.create_token(name, random, now_s()),
        };
    })
    .map_err(|error| anyhow!(error))?;
    let text = made.map_err(|error| Misuse(error.to_string()))?;
    output::print(&format!("{text}\n"))
}

fn rotate(file: &AccessFile, name: &str) -> anyhow::Result<()> {
    let random = file.random().map_err(|error| anyhow!(error))?;
    let mut made = None;
    file.change(&mut |access| made = access.rotate_token(name, random, now_s()))
        .map_err(|error| anyhow!(error))?;
    let text = made.ok_or_else(|| unknown(name))?;
    output::print(&format!("{text}\n"))
}

/// What was revoked.
struct Ended {
    is_token: bool,
    words: String,
}

/// Revokes the token or browser with this name, or all browsers.
fn revoke(file: &AccessFile, name: Option<&str>) -> anyhow::Result<Ended> {
    let browsers = |words: String| Ended { is_token: false, words };
    let mut ended = Err(None);
    let change = file.change(&mut |access| {
        let Some(name) = name else {
            ended = Ok(browsers(format!("{} browsers signed out", access.sessions.len())));
            access.sessions.clear();
            return;
        };
        if access.revoke_token(name) {
            ended = Ok(Ended { is_token: true, words: format!("token {name} ended") });
            return;
        }
        let ids: Vec<String> = access
            .sessions
            .iter()
            .filter(|session| name.len() >= 4 && session.id.starts_with(name))
            .map(|session| session.id.clone())
            .collect();
        if let [id] = &*ids {
            access.revoke_session(id);
            ended = Ok(browsers("browser signed out".to_owned()));
        }
    });
    change.map_err(|error| anyhow!(error))?;
    let told = ended.map_err(|_: Option<()>| unknown(name.unwrap_or_default()))?;
    output::note(&told.words);
    Ok(told)
}

fn unknown(name: &str) -> Misuse {
    let name = text::visible(name, 80);
    Misuse(format!(
        "no token and no single browser matches `{name}`: `hookspan token list` shows all"
    ))
}

fn list(file: &AccessFile, json: bool) -> anyhow::Result<()> {
    let access = file.read().map_err(|error| anyhow!(error))?;
    let now_s = now_s();
    if json {
        let tokens: Vec<_> = access
            .tokens
            .iter()
            .map(|one| {
                json!({
                    "name": one.name, "created_s": one.created_s, "used_s": one.used_s,
                    "sends_only": one.sends_only,
                })
            })
            .collect();
        let browsers: Vec<_> = access
            .living(now_s)
            .map(|one| {
                json!({
                    "id": one.id, "browser": one.browser, "created_s": one.created_s,
                    "used_s": one.used_s, "expires_s": one.expires_s(),
                })
            })
            .collect();
        return output::print_json(&json!({ "tokens": tokens, "browsers": browsers }));
    }
    let ago = |at_s: i64| {
        format!(
            "{} ago",
            text::age(now_s.saturating_sub(at_s).max(0).saturating_mul(1_000_000_000))
        )
    };
    let mut out = String::new();
    for one in &access.tokens {
        let used =
            one.used_s.map_or_else(|| "not used yet".to_owned(), |at| format!("used {}", ago(at)));
        let rights = if one.sends_only { ", only sends telemetry" } else { "" };
        out += &format!("token    {:<24} made {}, {used}{rights}\n", one.name, ago(one.created_s));
    }
    for one in access.living(now_s) {
        let id = one.id.get(..8).unwrap_or(&one.id);
        let browser = text::visible(&one.browser, 40);
        out += &format!(
            "browser  {id}  {browser:<24} signed in {}, used {}\n",
            ago(one.created_s),
            ago(one.used_s)
        );
    }
    if out.is_empty() {
        out = "no token, and no browser is signed in: `hookspan open` signs one in\n".to_owned();
    }
    output::print(&out)
}
