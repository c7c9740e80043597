//! The example that `hookspan config example` prints: every key, its meaning and its default.

/// The text of `config.example.toml`. Every key is commented out and has its default value, so the file changes
/// nothing.
pub(crate) const EXAMPLE: &str = r#"# hookspan's configuration. Put this file where `hookspan doctor` says that hookspan looks for it, by default
# ~/.config/hookspan/config.toml. Every key is optional and shown here with its default. Flags take precedence over environment
# variables, and these over this file. `hookspan config check` checks the file.

[dashboard]
# Address and port of the dashboard and its API. "unix:/PATH" is a Unix socket that only you can use (0600), for commands and
# proxies. A list may contain one address and any number of sockets.
#listen = "127.0.0.1:4329"
# Require a sign-in: browsers sign in with `hookspan open`, scripts use a token that `hookspan token create` prints. Without it,
# every account of this computer can read the dashboard at a loopback port.
#token = true
# Further NAME:PORT that browsers may use for the dashboard, for example behind a proxy.
#allow_hosts = []
# User ids of further accounts whose programs may connect to a loopback port, for example that of a proxy (Linux). Your own account
# and root always may.
#allow_uids = []
# Allow listening without TLS on an address that other machines can reach. They, and everybody on the network between, can then
# read what is sent.
#insecure = false

[receive]
# Accept OTLP (spans, metrics and logs) from other programs of this computer: builds, tests, and agents with telemetry of their own.
# docs/receiving.md says what becomes of them. A sender shows a token that `hookspan token create NAME --receive` prints.
#enabled = false
# Where to listen, for OTLP over HTTP and gRPC alike: an address of this computer, "unix:/PATH" (a socket that only you can use, without
# a token), or a list of both. The ports that OTLP usually has, 4317 and 4318, stay free for a backend.
#listen = "127.0.0.1:4328"
# User ids of further accounts whose programs may connect (Linux). They need a token, too.
#allow_uids = []
# Maximum number of stored spans of one session, and of one day (UTC). What is beyond is refused and counted.
#max_spans_per_session = 20_000
#max_spans_per_day = 200_000
# Maximum number of bytes stored on one day.
#max_bytes_per_day = 268_435_456

[trace]
# "generation": one trace per turn, and a small one per session that links to them. "session": one trace per session.
#mode = "generation"
# A span for the session itself.
#session_span = true
# A span for each answer of the model, which also carries the turn's tokens.
#llm_spans = true
# Tab completions: "off", "rollup" (one span per minute) or "span" (one per completion).
#tab = "rollup"
# A session ends after this long without events; a later event continues it as a new segment.
#session_idle = "1h"
# A turn without a reported end ends after this long without events.
#generation_idle = "30m"
# A finished turn is exported after this long, so that late hooks are included.
#settle_delay = "2s"
# Finished calls of a turn that runs longer than this are exported early; "0s" = never.
#flush_after = "1m"

[semconv]
# Shape of exported spans: "genai-1.41-strict" (follows the conventions exactly, for new destinations), "genai-1.41" or "genai-0.1".
# docs/attributes.md compares them.
#profile = "genai-1.41"
# OpenInference attributes for Phoenix and others: "kind" (the span kind only), "full" or "off".
#openinference = "kind"

[redact]
# Secrets are replaced in everything that leaves the raw log; PRIVACY.md says what counts as one. A rule of your own is a name and a
# regular expression. The expression's first group is the secret; without a group, the whole match is. Instead of this list you can
# write [[redact.rule]] tables.
#rule = [{ name = "ticket", pattern = "ACME-[0-9]{4,8}" }]
# Regular expressions for texts that are not replaced. Each must match a whole secret.
#allow = ["not-a-secret-[0-9]+"]

[evidence]
# If hooks and transcripts do not tell which call started a subagent, look it up in Cursor's own database. The database is opened
# read-only, and nothing but this is read. false = never.
#cursor_store = true
# Path of that database; empty: User/globalStorage/state.vscdb in Cursor's folder.
#cursor_store_path = ""
# When a turn begins and ends, record branch, commit and remote (without credentials) of the repository that contains the workspace,
# and the commits made in between. They are read from the repository's files; Git is not run. false = never.
#repository = true

[sandbox]
# After its start, the collector may not start programs or open further ports. It may write only in its state directory and in folders
# for temporary files, and connect only to the ports of its destinations. The kernel enforces this (Linux); `hookspan doctor` says how
# much of it is in force. false = it only gives up the right to new privileges.
#enabled = true

[journal]
# Maximum size of the journal in bytes while a collector runs and cannot store hooks. Beyond it, hooks are lost and counted. While no
# collector runs, the maximum is 1 GiB.
#max_bytes = 1_073_741_824
# The journal is divided into parts of this many bytes. A part is deleted once all of it is stored.
#segment_bytes = 67_108_864

[retention]
# Sessions whose last event is older than this are deleted, with everything recorded of them. So are hooks without a session that are
# older, and damaged databases that were moved aside earlier. "0s" = never.
#max_age = "0s"
# While the database is larger than this many bytes, hooks without a session are deleted, the oldest first, and then the oldest
# sessions. 0 = no limit.
#max_bytes = 0

# What tells you about agents. Without one of these tables, nothing does. `hookspan notify test` tries them, `hookspan status` counts
# them. Each is sent for the kinds that it names: "waiting" (an approval is likely, or a question was asked), "finished" (a turn ended),
# "failed" and "hanging" (a turn runs, and no hook has come for ten minutes). At most 20 are sent in ten minutes.
# A notice of the desktop: `notify-send` on Linux, `osascript` on macOS; not built for Windows, use a command there.
#[notify.desktop]
#kinds = ["waiting", "failed", "hanging"]
# Send project, branch, the first prompt, the last error and the reason, too; without secrets, as an export.
#content = false

# A JSON object that is posted to an address: https, or http on this machine. Redirects are not followed. Three attempts, ten seconds each.
#[notify.webhook]
#url = "https://example.com/hook"
# A secret is "env:NAME" or "file:PATH", as in a destination.
#headers = { authorization = "Bearer env:HOOK_KEY" }
#kinds = ["waiting", "failed", "hanging"]
#content = false

# A program and its arguments, started without a shell. It gets the same JSON object on standard input, and has ten seconds.
#[notify.command]
#argv = ["/usr/local/bin/tell-me"]
#kinds = ["waiting", "failed", "hanging"]
#content = false

# Prices of tokens, for estimates on pages and in `hookspan show` and `stats`. An estimate is not a bill. Without prices there is none.
[prices]
# Path of a price list, relative to this file's folder: JSON as published by LiteLLM, models.dev or OpenRouter, or
# {"model": {"input": 3, ...}} in dollars per million tokens. It is never downloaded.
#file = "prices.json"
# For models without a price there: use list prices from public collections. They were not compared with the makers' own pages.
# `hookspan stats` shows their date.
#public = true

# Prices in this file take precedence over both. The name of the table is a model's label or its maker's name for it; `*` stands for
# any text. If several names match, the one with the most other characters is used. Repeat the table for further models.
#[prices."example-model-*"]
# Prices per million tokens. Tokens without a price are shown as unpriced. Cached tokens are part of the input, and have prices of
# their own.
#input = 3.0
#output = 15.0
#cache_read = 0.3
#cache_write = 3.75
# The same in all tables.
#currency = "USD"

# Where traces are sent. Without a destination, nothing leaves this computer. Repeat the table for further destinations.
# `hookspan destinations test` tests them. The variables OTEL_EXPORTER_OTLP_* define one more, called "env".
#[[destination]]
# Name of the destination in commands and on the dashboard.
#name = "jaeger"
# Supplies the values that are not set: "otlp", "jaeger", "tempo", "grafana-cloud", "datadog-agent", "datadog", "datadog-llmobs",
# "honeycomb", "langfuse", "phoenix" or "mlflow".
#preset = "otlp"
# URL of the receiver; unset: the preset's.
#endpoint = "http://127.0.0.1:4318"
# "http/protobuf" or "grpc"; unset: the preset's.
#protocol = "http/protobuf"
# What is sent: "off" (no content, no paths, no names of programs or servers), "metadata" (no content) or "full" (prompts, answers,
# arguments and results, too).
#content = "metadata"
# Replace secrets. false = send them, which is allowed only with content = "full".
#redact = true
# Allow content = "full" over plain http to another machine. Without this, hookspan refuses such a destination.
#allow_plain_http = false
# Paths, in arguments and results too: "relative" to the workspace, with ~ for a home folder, "full", "hash" or "off".
#paths = "relative"
# As in [semconv], for this destination only.
#semconv = "genai-1.41"
#openinference = "kind"
# "gzip" or "none"; unset: gzip, except to this computer.
#compression = "gzip"
# Milliseconds for one attempt.
#timeout_ms = 10_000
# Which earlier spans a new destination gets: "none", "24h" or "all".
#backfill = "none"
# For backends that refuse old spans: spans older than this are counted as lost and not sent, even if the destination never accepted
# one. Unset: spans of any age are sent.
#max_span_age = "7d"
# Maximum number of spans that wait while the destination is down. Beyond it, the oldest are lost and counted.
#backlog_max_spans = 100_000
# PEM files: a certificate to trust (the issuer's, or the server's own, self-signed or not), the client's own certificate and
# its key. While one of them cannot be read, this destination is paused, and the file is read again every half minute.
#certificate = "/etc/ssl/my-root.pem"
#client_certificate = "/etc/ssl/me.pem"
#client_key = "/etc/ssl/me.key"
# Share of sessions that are sent, 0 to 1. A session is sent as a whole or not at all.
#sample = 1.0
# Resource attributes for this destination only, such as a team's name. Those in OTEL_RESOURCE_ATTRIBUTES are sent to every destination.
#attributes = { "team.name" = "payments" }
# Tell the destination whose spans it gets. `user` is a text that identifies you, and `user_key` a secret key. Only a hash of both is
# sent, as user.id (128 bits, the same on every machine with this key). Unset: nothing is sent.
#user = "env:USER"
#user_key = "file:/etc/hookspan/user.key"
# Send metrics as well: durations and tokens as exponential histograms, and hookspan's own state. docs/attributes.md lists them.
#metrics = false
# URL for metrics over HTTP; unset: `endpoint`, with /v1/metrics in place of /v1/traces.
#metrics_endpoint = "http://127.0.0.1:4318/v1/metrics"
# The time from which sums count: "delta" (since the last request) or "cumulative" (since the start). Unset: the preset's value, else
# that of OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE, else "cumulative".
#metrics_temporality = "cumulative"
# Time between two requests, from 1s to 1d.
#metrics_interval = "60s"
# Prompts and answers as log records beside the spans, as events of the GenAI conventions. `content` decides what is in them. They show
# as a destination of their own, NAME:logs. docs/attributes.md describes them.
#logs = false
# URL for log records over HTTP; unset: `endpoint` with /v1/logs for its /v1/traces.
#logs_endpoint = "http://127.0.0.1:4318/v1/logs"
# Link from a span to its page at the destination; unset: the preset's.
#link = "http://127.0.0.1:16686/trace/{trace_id}?uiFind={span_id}"
# Header name = "env:VARIABLE" or "file:/path", with a word before it if needed ("Bearer env:TOKEN"), so that no secret is in this
# file. While the variable is not set or the file cannot be read, this destination is paused. The collector reads variables when it
# starts, and files again every half minute.
#headers = { authorization = "Bearer env:MY_TOKEN" }
# Values for the placeholders of a preset's endpoint and link.
#values = { ui = "http://127.0.0.1:16686" }
"#;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;
    use crate::config::file::File;

    /// The example with all keys enabled. Lines of prose have a space after `#`.
    fn switched_on() -> String {
        let line = |line: &str| match line.strip_prefix('#') {
            Some(key) if !key.starts_with(' ') => key.to_owned(),
            _ => line.to_owned(),
        };
        EXAMPLE.lines().map(line).fold(String::new(), |mut text, line| {
            text.push_str(&line);
            text.push('\n');
            text
        })
    }

    #[test]
    fn the_committed_example_is_current() {
        let committed = include_str!("../../../config.example.toml");
        assert_eq!(committed, EXAMPLE, "run: hookspan config example > config.example.toml");
    }

    #[test]
    fn the_example_as_it_is_changes_nothing() {
        let mut config = Config::default();
        File::parse(Path::new("example"), EXAMPLE).unwrap().apply(&mut config);
        assert_eq!(config.to_toml(), Config::default().to_toml());
    }

    #[test]
    fn the_defaults_it_names_are_the_defaults() {
        let mut config = Config::default();
        config.dashboard.listen = vec!["unix:/x".parse().unwrap()];
        config.dashboard.token = false;
        config.dashboard.allow_uids.push(1);
        config.dashboard.insecure = true;
        config.receive = crate::config::Receive {
            enabled: true,
            listen: vec!["unix:/x".parse().unwrap()],
            allow_uids: vec![1],
            max_spans_per_session: 1,
            max_spans_per_day: 1,
            max_bytes_per_day: 1,
        };
        config.dashboard.allow_hosts.push("a:1".to_owned());
        config.core = hookspan_core::Config {
            trace_mode: hookspan_core::sessions::TraceMode::Session,
            session_span: false,
            llm_spans: false,
            tab: hookspan_core::sessions::TabMode::Span,
            session_idle_ns: 1,
            generation_idle_ns: 1,
            settle_delay_ns: 1,
            flush_after_ns: 1,
            ..hookspan_core::Config::default()
        };
        config.journal = crate::config::Journal { max_bytes: 1, segment_bytes: 1 };
        config.retention = crate::config::Retention { max_age_ns: 1, max_bytes: 1 };
        config.evidence.cursor_store = false;
        config.evidence.cursor_store_path = "/x".into();
        config.evidence.repository = false;
        config.semconv.profile = crate::config::Profile::Genai01;
        config.semconv.openinference = crate::config::OpenInference::Off;
        File::parse(Path::new("example"), &switched_on()).unwrap().apply(&mut config);
        assert_eq!(config.destinations.len(), 1);
        config.destinations.clear();
        assert_eq!(config.prices.rows().count(), 1);
        config.prices = hookspan_core::price::Prices::default();
        let notify = &config.notify;
        assert!(notify.desktop.is_some() && notify.webhook.is_some() && notify.command.is_some());
        config.notify = crate::config::notify::Notify::default();
        assert!(config.price_lists.public && config.price_lists.file.is_some());
        config.price_lists = crate::config::PriceLists::default();
        assert_eq!((config.redact.rules.len(), config.redact.allow.len()), (1, 1));
        config.redact = crate::config::Redact::default();
        assert_eq!(config.to_toml(), Config::default().to_toml());
    }

    #[test]
    fn every_key_of_every_table_is_in_it() {
        let example: toml::Table = toml::from_str(&switched_on()).unwrap();
        for name in known("", "\"?\" = 1") {
            let (shown, form) = match &example[&name] {
                toml::Value::Array(tables) => {
                    (tables[0].as_table().unwrap(), format!("[[{name}]]\n\"?\" = 1"))
                }
                table if name == "prices" => {
                    let mut tables = table.as_table().unwrap().iter();
                    let (pattern, prices) = tables.find(|(_, table)| table.is_table()).unwrap();
                    (prices.as_table().unwrap(), format!("[prices.\"{pattern}\"]\n\"?\" = 1"))
                }
                table => (table.as_table().unwrap(), format!("[{name}]\n\"?\" = 1")),
            };
            let mut shown: Vec<&str> = shown.keys().map(String::as_str).collect();
            let mut keys = known(&name, &form);
            shown.sort_unstable();
            keys.sort_unstable();
            assert_eq!(shown, keys, "[{name}]");
        }
    }

    /// The keys that the types of the configuration file accept, taken from the error message about an unknown key.
    fn known(table: &str, text: &str) -> Vec<String> {
        let message = File::parse(Path::new("x"), text).unwrap_err().0;
        let (_, expected) =
            message.split_once("expected").unwrap_or_else(|| panic!("{table}: {message}"));
        expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }
}
