//! `hookspan notify`: sends a test notice by each configured way, and prints the result.

use std::process::ExitCode;

use clap::Subcommand;

use super::Global;
use super::output::{note, print};
use crate::clock;
use crate::config::Misuse;
use crate::config::notify::Kind;
use crate::notify::{self, Deliver, Notice};

/// Try the notices of the desktop, the webhook and the command that the configuration asks for
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Send one test notice by each way that is configured for it
    #[command(
        after_help = "Nothing tells anybody unless [notify.desktop], [notify.webhook] or [notify.command] is in the configuration file; \
                      `hookspan config example` shows them. A notice has text of a session only where `content = true` is written.\n\n\
                      Examples:\n  hookspan notify test\n  hookspan notify test --kind finished"
    )]
    Test {
        /// What the notice is about
        #[arg(long, value_name = "KIND", default_value = "waiting", value_parser = kind)]
        kind: Kind,
    },
    /// Send notices until the standard input ends; the collector starts this
    #[command(hide = true, after_help = "Example:\n  hookspan notify run")]
    Run,
}

fn kind(word: &str) -> Result<Kind, Misuse> {
    let all = Kind::ALL.map(Kind::as_str).join(", ");
    Kind::ALL
        .into_iter()
        .find(|kind| kind.as_str() == word)
        .ok_or_else(|| Misuse(format!("one of {all}")))
}

/// Runs the command.
///
/// # Errors
/// The configuration cannot be read, or no way is configured.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    match args.what {
        What::Run => notify::run(global).map(|()| ExitCode::SUCCESS),
        What::Test { kind } => test(global, kind),
    }
}

fn test(global: &Global, kind: Kind) -> anyhow::Result<ExitCode> {
    let config = global.config()?;
    let deliver = Deliver::new(&config.notify, &global.env);
    let ways = deliver.ways(kind);
    if config.notify.is_off() {
        let what = "nothing tells you about agents: write [notify.desktop], [notify.webhook] or [notify.command] into the configuration \
                    file; `hookspan config example` shows them";
        return Err(Misuse(what.to_owned()).into());
    }
    if ways.is_empty() {
        note(&format!(
            "no way is configured for `{kind}`: add it to the kinds of a way, or try --kind"
        ));
    }
    let notice = Notice::test(kind, clock::now());
    let mut all_well = true;
    for way in ways {
        let told = deliver.tell(way, &notice);
        all_well &= told.is_ok();
        let words =
            told.map_or_else(|failure| format!("failed: {failure}"), |()| "sent".to_owned());
        print(&format!("{}: {words}\n", way.as_str()))?;
    }
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
