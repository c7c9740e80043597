//! `hookspan destinations add`: adds a `[[destination]]` to the configuration file.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::Error;

use super::super::Global;
use super::super::output::{ask_for, can_ask, note, print};
use crate::config::addition::Need;
use crate::config::destination::{Backfill, ContentPolicy, Destination, DestinationForm};
use crate::config::preset::Preset;
use crate::config::{Misuse, Profile};
use crate::dirs::ServeInfo;
use crate::hooks_json::file::HooksFile;

/// Add a destination to the configuration file; on a terminal, asks for missing values
#[derive(Debug, Default, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan destinations add\n  hookspan destinations add jaeger\n  hookspan destinations add honeycomb \
                  --content full\n  hookspan destinations add otlp --name lab --endpoint https://otel.example.com \\\n      --header \
                  'authorization=Bearer env:LAB_TOKEN'\n  hookspan destinations add grafana-cloud --value zone=prod-eu-west-2 \\\n      \
                  --header 'authorization=Basic file:/home/me/.grafana-token' --dry-run\n\nThe file's own text and comments stay. \
                  A destination that would not be valid is not written."
)]
pub(super) struct Args {
    /// The receiver: otlp, jaeger, tempo, grafana-cloud, datadog-agent, datadog, datadog-llmobs, honeycomb, langfuse,
    /// phoenix or mlflow
    #[arg(value_name = "PRESET")]
    preset: Option<String>,
    /// Name of the destination [default: the preset's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// URL of the receiver [default: the preset's]
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// "http/protobuf" or "grpc" [default: the preset's]
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<String>,
    /// A header: NAME=env:VARIABLE or NAME=file:PATH; a word may come first, as in "authorization=Bearer env:TOKEN";
    /// repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    header: Vec<String>,
    /// A value for a placeholder of the preset's endpoint or link; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    value: Vec<String>,
    /// Which content may be sent: off, metadata or full [default: metadata]
    #[arg(long, value_name = "POLICY")]
    content: Option<String>,
    /// Which spans of the past are sent: none, 24h or all [default: none]
    #[arg(long, value_name = "TIME")]
    backfill: Option<String>,
    /// Send metrics, too
    #[arg(long)]
    metrics: bool,
    /// Send prompts and answers as log records, too
    #[arg(long)]
    logs: bool,
    /// PEM file of a certificate to trust
    #[arg(long, value_name = "FILE")]
    certificate: Option<String>,
    /// Print what would be added, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
///
/// # Errors A value is missing or not valid, or the file cannot be written. The file is not changed then.
pub(super) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let Some(path) = &global.config_file else {
        return Err(Misuse(
            "there is no folder for a configuration file: set HOME, or name a file with --config"
                .into(),
        )
        .into());
    };
    let dry_run = args.dry_run;
    let ask = |question: &str, default: &str, flag: &str| {
        if can_ask() {
            ask_for(question, default)
        } else {
            Err(Misuse(format!("{flag} is missing")).into())
        }
    };
    let form = form(global, args, &ask)?;
    let file = HooksFile::read(path)?;
    let (text, added) =
        form.appended(path, file.text.as_deref().unwrap_or_default(), &global.env)?;
    if dry_run {
        note(&format!("{} would get:", path.display()));
        print(&form.written())?;
    } else {
        file.check_owner()?;
        file.write(&text)?;
        print(&format!("{}: {} was added\n", path.display(), added.name))?;
    }
    tell(global, &added, dry_run, path);
    Ok(ExitCode::SUCCESS)
}

/// Asks for a line. Takes the question, the default, and the flag to name if nobody can be asked.
type Ask<'a> = dyn Fn(&str, &str, &str) -> anyhow::Result<String> + 'a;

const WHICH_PRESET: &str = "What receives (otlp, jaeger, tempo, grafana-cloud, datadog-agent, datadog, datadog-llmobs, \
                            honeycomb, langfuse, phoenix, mlflow)";

fn form(global: &Global, args: Args, ask: &Ask<'_>) -> anyhow::Result<DestinationForm> {
    let Args {
        preset,
        name,
        endpoint,
        protocol,
        header,
        value,
        content,
        backfill,
        metrics,
        logs,
        certificate,
        ..
    } = args;
    let preset = match (preset, &endpoint) {
        (Some(word), _) => word,
        (None, Some(_)) => Preset::Otlp.as_str().to_owned(),
        (None, None) => ask(WHICH_PRESET, "otlp", "PRESET")?,
    };
    let mut form = DestinationForm {
        name: name.unwrap_or_else(|| preset.clone()),
        preset: word("PRESET", &preset, Preset::deserialize)?,
        endpoint,
        protocol,
        headers: pairs("--header", &header)?,
        values: pairs("--value", &value)?,
        content: content
            .map(|text| word("--content", &text, ContentPolicy::deserialize))
            .transpose()?,
        backfill: backfill
            .map(|text| word("--backfill", &text, Backfill::deserialize))
            .transpose()?,
        certificate,
        metrics: metrics.then_some(true),
        logs: logs.then_some(true),
        // Existing destinations keep their profile. New destinations get the newest profile.
        semconv: Some(Profile::Genai141Strict.as_str().to_owned()),
        ..DestinationForm::default()
    };
    while let Some(need) = form.need(&global.env).map_err(Misuse::from)? {
        ask_for_need(&mut form, need, ask)?;
    }
    Ok(form)
}

/// Asks for one missing value of the form.
fn ask_for_need(form: &mut DestinationForm, need: Need, ask: &Ask<'_>) -> anyhow::Result<()> {
    match need {
        Need::Endpoint => {
            form.endpoint =
                Some(ask("URL of the receiver", "http://127.0.0.1:4318", "--endpoint URL")?);
        }
        Need::Value(key) => {
            let question = format!("{key} (in {})", form.preset.as_str());
            let answer = ask(&question, "", &format!("--value {key}=VALUE"))?;
            if answer.is_empty() {
                let nothing = format!("{key}: nothing was given; nothing was changed");
                return Err(Misuse(nothing).into());
            }
            form.values.insert(key, answer);
        }
        Need::Header(name) => {
            let question =
                format!("Where the value of the header {name} is: env:NAME or file:PATH");
            let answer =
                ask(&question, "env:OTLP_TOKEN", &format!("--header '{name}=Basic env:NAME'"))?;
            let is_reference = answer.starts_with("env:") || answer.starts_with("file:");
            let value = if is_reference { format!("Basic {answer}") } else { answer };
            form.headers.insert(name.to_owned(), value);
        }
    }
    Ok(())
}

/// A word of the configuration.
fn word<'a, T>(
    flag: &str,
    text: &'a str,
    read: impl FnOnce(serde::de::value::StrDeserializer<'a, Error>) -> Result<T, Error>,
) -> Result<T, Misuse> {
    read(text.into_deserializer()).map_err(|error: Error| Misuse(format!("{flag}: {error}")))
}

fn pairs(flag: &str, texts: &[String]) -> Result<BTreeMap<String, String>, Misuse> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(Misuse(format!("{flag} {text:?}: write NAME=VALUE"))),
    };
    texts.iter().map(pair).collect()
}

/// Prints the next steps.
fn tell(global: &Global, added: &Destination, dry_run: bool, path: &Path) {
    if let Some(problem) = &added.unready {
        let problem =
            problem.strip_prefix(&*path.display().to_string()).map_or(problem.as_str(), |rest| {
                rest.trim_start_matches(|c: char| c == ':' || c == ' ' || c.is_ascii_digit())
            });
        note(&format!("Still missing: {problem}. Until then it is paused, and its spans wait."));
    }
    if dry_run {
        return;
    }
    note(&format!("Try it: {}", global.command(&format!("destinations test {}", added.name))));
    if ServeInfo::running(&global.state).is_some() {
        note(
            "The running collector does not know this destination yet: restart the collector (`systemctl --user restart hookspan`, or end it and start it again).",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    fn global(variables: &[(&str, &str)]) -> Global {
        let variables = [&[("HOME", "/home/u")][..], variables].concat();
        Global::new(Environment::of(&variables, "/w"), None, None).unwrap()
    }

    fn nobody(_: &str, _: &str, flag: &str) -> anyhow::Result<String> {
        anyhow::bail!("{flag} is missing")
    }

    fn args(preset: &str) -> Args {
        Args { preset: Some(preset.to_owned()), ..Args::default() }
    }

    #[test]
    fn a_preset_alone_is_enough_where_it_knows_the_rest() {
        let form = form(&global(&[]), args("jaeger"), &nobody).unwrap();
        assert_eq!(
            form.written(),
            "[[destination]]\nname = \"jaeger\"\npreset = \"jaeger\"\nsemconv = \"genai-1.41-strict\"\n"
        );
    }

    #[test]
    fn where_nobody_can_be_asked_the_flag_is_named() {
        let error = |args| form(&global(&[]), args, &nobody).unwrap_err().to_string();
        assert_eq!(error(Args::default()), "PRESET is missing");
        assert_eq!(error(args("otlp")), "--endpoint URL is missing");
        assert_eq!(error(args("grafana-cloud")), "--value zone=VALUE is missing");
        assert!(error(args("jeager")).starts_with("PRESET: unknown variant `jeager`"));
        let wrong = Args { header: vec!["authorization".to_owned()], ..args("jaeger") };
        assert_eq!(error(wrong), "--header \"authorization\": write NAME=VALUE");
    }

    #[test]
    fn a_person_is_asked_for_what_is_missing_and_nothing_else() {
        let answer = |question: &str, default: &str, _: &str| {
            Ok(match question {
                question if question.starts_with("What receives") => "grafana-cloud".to_owned(),
                question if question.starts_with("zone") => "prod-eu-west-2".to_owned(),
                question if question.starts_with("Where the value") => default.to_owned(),
                other => panic!("{other}"),
            })
        };
        let form = form(&global(&[]), Args::default(), &answer).unwrap();
        let expected = "[[destination]]\nname = \"grafana-cloud\"\npreset = \"grafana-cloud\"\n\
                        semconv = \"genai-1.41-strict\"\n\
                        headers = { authorization = \"Basic env:OTLP_TOKEN\" }\n\
                        values = { zone = \"prod-eu-west-2\" }\n";
        assert_eq!(form.written(), expected);
    }
}
