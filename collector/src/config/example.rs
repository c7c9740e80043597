//! The example that `hookspan config example` prints: every key, its meaning and its default.

/// The text of `config.example.toml`. Every key is commented out and has its default value, so the file changes
/// nothing.
pub(crate) const EXAMPLE: &str = r#"# hookspan's configuration. Put it where `hookspan doctor` says it looks, by default
# ~/.config/hookspan/config.toml. Every key is optional and shown here with its default.
# Flags beat the environment, the environment beats this file. `hookspan config check` checks it.

[dashboard]
# Address and port of the dashboard and its API. "unix:/PATH" is a Unix socket of yours alone (0600), for commands and proxies;
# a list holds one address and any number of sockets.
#listen = "127.0.0.1:4329"
# Ask who reads: browsers sign in with `hookspan open`, scripts with a token of `hookspan token create`. Any account of this
# computer can reach a loopback port.
#token = true
# Further NAME:PORT under which a browser may reach the dashboard, as behind a proxy.
#allow_hosts = []
# Numbers of accounts whose programs may connect to a loopback port beside your own and root's, as that of a proxy (Linux).
#allow_uids = []
# Listen on an address that other machines reach without TLS. They, and whoever is on the way, can then read what is sent.
#insecure = false

[trace]
# "generation": a trace per turn, linked, plus a small one per session. "session": one trace per session.
#mode = "generation"
# A span for the session itself.
#session_span = true
# A span for each answer of the model, which also carries the turn's tokens.
#llm_spans = true
# Tab completions: "off", "rollup" (one span per minute) or "span" (one per completion).
#tab = "rollup"
# A session ends after this long without events; a later event continues it as a new segment.
#session_idle = "1h"
# A turn whose end never came ends after this long without events.
#generation_idle = "30m"
# A finished turn waits this long for stragglers before it is exported.
#settle_delay = "2s"
# Finished calls of a turn that runs longer than this are exported early; "0s" = never.
#flush_after = "1m"

[semconv]
# Shape of exported spans: "genai-1.41-strict" (the conventions to the letter, for new destinations), "genai-1.41" or "genai-0.1".
# docs/attributes.md compares them.
#profile = "genai-1.41"
# OpenInference attributes for Phoenix and others: "kind" (the span kind only), "full" or "off".
#openinference = "kind"

[redact]
# Secrets are blanked in everything that leaves the raw log; PRIVACY.md says what counts as one. Rules of your own: a name and a
# regular expression, whose first group is the secret (without a group, the whole match). [[redact.rule]] tables do the same.
#rule = [{ name = "ticket", pattern = "ACME-[0-9]{4,8}" }]
# Regular expressions for secrets that stay, each for a whole secret.
#allow = ["not-a-secret-[0-9]+"]

[evidence]
# Where hooks and transcripts do not tell which call started a subagent, ask Cursor's own database: read-only, by key, only
# who works for whom. false = never.
#cursor_store = true
# Where it is; empty: User/globalStorage/state.vscdb in the folder of this system's Cursor.
#cursor_store_path = ""
# When a turn begins and ends, note branch, commit and remote (without credentials) of the repository that the workspace lies in, and
# the commits made meanwhile. Only its files are read: no Git is started. false = never.
#repository = true

[sandbox]
# Once it runs, the collector starts no program, writes only in its state directory and in folders for temporary files, opens no
# further port and connects only to the ports of its destinations, as far as the kernel enforces it (Linux). `hookspan doctor` says
# what holds. false = it gives up new privileges alone.
#enabled = true

[journal]
# Bound of the journal in bytes while a collector runs and cannot store; past it, hooks are lost and counted. While none runs, the
# hook program itself stops at 1 GiB.
#max_bytes = 1_073_741_824
# Size in bytes at which a part of it is closed, to be deleted once it is stored.
#segment_bytes = 67_108_864

[retention]
# Sessions whose last event is older than this are deleted, with everything recorded of them. So are older hooks that belong to no
# session, and older damaged databases that were moved aside. "0s" = never.
#max_age = "0s"
# While the database is larger than this many bytes, hooks that belong to no session are deleted, oldest first, and then the oldest
# sessions; 0 = it may grow.
#max_bytes = 0

# What tokens cost, for estimates on pages and in `hookspan show` and `stats`: never a bill, and nothing is shown without prices.
[prices]
# A price list of your own, from this file's folder: JSON of LiteLLM, models.dev or OpenRouter, or {"model": {"input": 3, ...}} with
# dollars for a million tokens. It is read, never fetched.
#file = "prices.json"
# Below that, list prices from public collections, not checked against the makers' own pages. `hookspan stats` says their date.
#public = true

# Your own prices hold before both. The name is a model's label or the maker's name, `*` stands for anything, and the name that says most
# holds. Repeat the table for several.
#[prices."example-model-*"]
# Prices of a million tokens; what has none is shown as unpriced. Cache tokens are inside the input, and priced as what they are.
#input = 3.0
#output = 15.0
#cache_read = 0.3
#cache_write = 3.75
# One for all tables.
#currency = "USD"

# Where traces are sent. Without one, nothing leaves this computer. Repeat the table for several. `hookspan destinations test`
# tries them.
# OTEL_EXPORTER_OTLP_ENDPOINT and its sisters make one more, called "env".
#[[destination]]
# Its name here, in `hookspan status` and on the dashboard.
#name = "jaeger"
# Fills what is unset: "otlp", "jaeger", "tempo", "grafana-cloud", "datadog-agent", "datadog", "datadog-llmobs",
# "honeycomb", "langfuse", "phoenix" or "mlflow".
#preset = "otlp"
# URL of the receiver; unset: the preset's.
#endpoint = "http://127.0.0.1:4318"
# "http/protobuf" or "grpc"; unset: the preset's.
#protocol = "http/protobuf"
# What leaves: "off" (no paths, no names of programs or servers), "metadata" (no content) or "full" (prompts, answers,
# arguments and results too).
#content = "metadata"
# Blank secrets. false = leave them in, which only content = "full" allows.
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
# What a new destination gets of the past: "none", "24h" or "all".
#backfill = "none"
# Spans older than this are not sent, but counted as lost, also while the destination has never accepted anything. Unset: spans
# of any age are sent. For backends that refuse old spans.
#max_span_age = "7d"
# Spans that may wait while the destination is down; past it the oldest are lost and counted.
#backlog_max_spans = 100_000
# PEM files: a certificate to trust (the issuer's, or the server's own, self-signed or not), the client's own certificate and
# its key. While one of them cannot be read, this destination is paused, and the file is read again every half minute.
#certificate = "/etc/ssl/my-root.pem"
#client_certificate = "/etc/ssl/me.pem"
#client_key = "/etc/ssl/me.key"
# Share of sessions that is sent, 0 to 1; a session is sent whole or not at all.
#sample = 1.0
# Attributes of this destination's resource, such as a team's name. OTEL_RESOURCE_ATTRIBUTES gives some to every destination.
#attributes = { "team.name" = "payments" }
# Whose spans these are, as user.id: what names you, and the key of its hash (128 bits, the same on every machine with this key). What
# names you never leaves. Unset: nobody is told.
#user = "env:USER"
#user_key = "file:/etc/hookspan/user.key"
# Metrics beside the spans: durations and tokens as exponential histograms, and hookspan's own state. docs/attributes.md lists them.
#metrics = false
# URL for metrics over HTTP; unset: `endpoint` with /v1/metrics for its /v1/traces.
#metrics_endpoint = "http://127.0.0.1:4318/v1/metrics"
# What sums count from: "delta" (since the last request) or "cumulative" (since the start); unset: the preset's, else as
# OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE says, else "cumulative".
#metrics_temporality = "cumulative"
# Time between two requests, from 1s to 1d.
#metrics_interval = "60s"
# Link from a span to its page at the destination; unset: the preset's.
#link = "http://127.0.0.1:16686/trace/{trace_id}?uiFind={span_id}"
# Header name = "env:VARIABLE" or "file:/path", also after a word as in "Bearer env:TOKEN"; no secret stands in this file.
# While the variable is not set or the file cannot be read, this destination is paused. A running collector reads a file again
# every half minute, and a variable when it starts.
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

    /// The keys that the file's own types know. They are read from the error message about an unknown key.
    fn known(table: &str, text: &str) -> Vec<String> {
        let message = File::parse(Path::new("x"), text).unwrap_err().0;
        let (_, expected) =
            message.split_once("expected").unwrap_or_else(|| panic!("{table}: {message}"));
        expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }
}
