//! `hookspan export --to NAME --dry-run`: what a destination would get.

use std::io::{self, BufWriter};
use std::process::ExitCode;

use anyhow::Context as _;
use rusqlite::Connection;

use super::{Args, BUFFER_BYTES, is_broken_pipe, private_file};
use crate::cli::Global;
use crate::cli::destinations::unknown;
use crate::cli::output::note;
use crate::config::Misuse;
use crate::config::destination::{self, Destination};
use crate::export::Settings;
use crate::export::preview::{self, Preview};
use crate::redaction::Redaction;
use crate::store::whole::SessionRow;

pub(super) fn run(
    global: &Global,
    args: &Args,
    db: &Connection,
    sessions: &[SessionRow],
) -> anyhow::Result<ExitCode> {
    let name = args.to.as_deref().unwrap_or_default();
    let config = global.config()?;
    let all = destination::all(&config, &global.env).map_err(|error| Misuse(error.to_string()))?;
    let Some(destination) = all.iter().find(|one| one.name == name) else {
        let known: Vec<String> = all.iter().map(|one| one.name.clone()).collect();
        return Err(unknown(name, &known).into());
    };
    let redaction = Redaction::load(&global.state, &config.redact)?;
    let settings = Settings::of(&global.env, &config, redaction)?;
    let shown = if let Some(path) = &args.output {
        let told = || format!("cannot write {}", path.display());
        let mut out =
            BufWriter::with_capacity(BUFFER_BYTES, private_file(path).with_context(told)?);
        preview::write(db, destination, &settings, sessions, &mut out).with_context(told)?
    } else {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock());
        match preview::write(db, destination, &settings, sessions, &mut out) {
            Err(error) if is_broken_pipe(&error) => return Ok(ExitCode::SUCCESS),
            written => written?,
        }
    };
    note(&words(destination, &shown));
    Ok(ExitCode::SUCCESS)
}

fn words(destination: &Destination, shown: &Preview) -> String {
    let Destination { name, content, .. } = destination;
    let mut out = format!(
        "Nothing was sent. {name} ({}, content {}) would get {} spans",
        destination.endpoint_host(),
        content.as_str(),
        shown.spans
    );
    if shown.left_out > 0 {
        out += &format!("; `sample` or `max_span_age` leaves {} out", shown.left_out);
    }
    out += "; spans that may still change wait.\n";
    out += &match shown.redacted.is_empty() {
        _ if !destination.redact => "`redact = false`: secrets are not redacted.".to_owned(),
        true => "No secrets were found.".to_owned(),
        false => {
            let rules = shown.redacted.iter().map(|(rule, count)| format!("{count} {rule}"));
            let rules = rules.collect::<Vec<_>>().join(", ");
            format!("Redacted, each marked as [redacted:RULE:DIGITS]: {rules}.")
        }
    };
    out
}
