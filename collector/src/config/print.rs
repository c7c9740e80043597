//! Prints the configuration in force as a person would write it.

use std::time::Duration;

use hookspan_core::price::Price;
use hookspan_core::sessions::{TabMode, TraceMode};
use hookspan_redact::UserRule;
use toml::{Table, Value};

use super::listen::Place;
use super::notify::{Kind, Notify};
use super::{Config, OpenInference};

/// Replacement for a value that may hold a secret.
const HIDDEN: &str = "(set, not shown)";

impl Config {
    /// The configuration as TOML. Header values, keys, and variables that may contain credentials are not printed.
    #[must_use]
    pub fn to_toml(&self) -> Table {
        let mut root = Table::new();
        root.insert("dashboard".into(), Value::Table(self.dashboard_table()));
        root.insert("receive".into(), Value::Table(self.receive_table()));
        root.insert("trace".into(), Value::Table(self.trace_table()));
        root.insert("semconv".into(), Value::Table(self.semconv_table()));
        root.insert("redact".into(), Value::Table(self.redact_table()));
        root.insert("evidence".into(), Value::Table(self.evidence_table()));
        let sandbox = Table::from_iter([("enabled".into(), Value::from(self.sandbox))]);
        root.insert("sandbox".into(), Value::Table(sandbox));
        let journal = Table::from_iter([
            ("max_bytes".into(), int(self.journal.max_bytes)),
            ("segment_bytes".into(), int(self.journal.segment_bytes)),
        ]);
        root.insert("journal".into(), Value::Table(journal));
        let retention = Table::from_iter([
            ("max_age".into(), time(self.retention.max_age_ns)),
            ("max_bytes".into(), int(self.retention.max_bytes)),
        ]);
        root.insert("retention".into(), Value::Table(retention));
        let notify = self.notify_table();
        if !notify.is_empty() {
            root.insert("notify".into(), Value::Table(notify));
        }
        let prices = self.prices_table();
        if !prices.is_empty() {
            root.insert("prices".into(), Value::Table(prices));
        }
        let destinations: Vec<Value> =
            self.destinations.iter().map(|table| Value::Table(hide_secrets(table))).collect();
        if !destinations.is_empty() {
            root.insert("destination".into(), Value::Array(destinations));
        }
        let environment = self.environment_table();
        if !environment.is_empty() {
            root.insert("environment".into(), Value::Table(environment));
        }
        root
    }

    fn evidence_table(&self) -> Table {
        let path = self.evidence.cursor_store_path.display().to_string();
        Table::from_iter([
            ("cursor_store".into(), Value::from(self.evidence.cursor_store)),
            ("cursor_store_path".into(), Value::from(path)),
            ("repository".into(), Value::from(self.evidence.repository)),
        ])
    }

    /// Headers may hold a secret, and so may an address and the words of a command: services put keys there.
    fn notify_table(&self) -> Table {
        let kinds = |kinds: &[Kind]| {
            Value::from(kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>())
        };
        let way = |own: Option<(&str, Value)>, kind: &[Kind], content: bool| {
            let own = own.into_iter().map(|(key, value)| (key.to_owned(), value));
            let all =
                [("kinds".to_owned(), kinds(kind)), ("content".to_owned(), Value::from(content))];
            Value::Table(own.chain(all).collect())
        };
        let hidden = |key| Some((key, Value::from(HIDDEN)));
        let Notify { desktop, webhook, command } = &self.notify;
        let ways = [
            ("desktop", desktop.as_ref().map(|one| way(None, &one.kinds, one.content))),
            ("webhook", webhook.as_ref().map(|one| way(hidden("url"), &one.kinds, one.content))),
            ("command", command.as_ref().map(|one| way(hidden("argv"), &one.kinds, one.content))),
        ];
        ways.into_iter().filter_map(|(key, way)| Some((key.to_owned(), way?))).collect()
    }

    fn prices_table(&self) -> Table {
        let row = |price: Price| {
            let rates = [
                ("input", price.input),
                ("output", price.output),
                ("cache_read", price.cache_read),
                ("cache_write", price.cache_write),
            ];
            let rates = rates.into_iter().filter_map(|(key, rate)| Some((key, rate?)));
            let mut table: Table =
                rates.map(|(key, rate)| (key.to_owned(), Value::from(rate))).collect();
            table.insert("currency".into(), Value::from(self.prices.currency.as_str()));
            Value::Table(table)
        };
        let lists = &self.price_lists;
        let file = lists.file.as_ref().map(|file| Value::from(file.display().to_string()));
        let lists = [("file", file), ("public", lists.public.then_some(Value::from(true)))];
        let lists = lists.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let rows = self.prices.rows().map(|(pattern, price)| (pattern.to_owned(), row(price)));
        lists.chain(rows).collect()
    }

    fn environment_table(&self) -> Table {
        let shown = |(name, value): (&String, &String)| {
            let shown = if is_secret(name) { HIDDEN } else { value };
            (name.clone(), Value::from(shown))
        };
        self.otel.iter().map(shown).collect()
    }

    fn redact_table(&self) -> Table {
        let rule = |rule: &UserRule| {
            Value::Table(Table::from_iter([
                ("name".into(), Value::from(rule.name.as_str())),
                ("pattern".into(), Value::from(rule.pattern.as_str())),
            ]))
        };
        Table::from_iter([
            ("allow".into(), Value::from(self.redact.allow.clone())),
            ("rule".into(), Value::Array(self.redact.rules.iter().map(rule).collect())),
        ])
    }

    fn dashboard_table(&self) -> Table {
        let hosts = self.dashboard.allow_hosts.iter().map(|host| Value::from(host.as_str()));
        let uids = self.dashboard.allow_uids.iter().map(|uid| Value::from(i64::from(*uid)));
        Table::from_iter([
            ("listen".into(), listen(&self.dashboard.listen)),
            ("token".into(), Value::from(self.dashboard.token)),
            ("allow_hosts".into(), Value::Array(hosts.collect())),
            ("allow_uids".into(), Value::Array(uids.collect())),
            ("insecure".into(), Value::from(self.dashboard.insecure)),
        ])
    }

    fn receive_table(&self) -> Table {
        let receive = &self.receive;
        let uids = receive.allow_uids.iter().map(|uid| Value::from(i64::from(*uid)));
        Table::from_iter([
            ("enabled".into(), Value::from(receive.enabled)),
            ("listen".into(), listen(&receive.listen)),
            ("allow_uids".into(), Value::Array(uids.collect())),
            ("max_spans_per_session".into(), int(receive.max_spans_per_session)),
            ("max_spans_per_day".into(), int(receive.max_spans_per_day)),
            ("max_bytes_per_day".into(), int(receive.max_bytes_per_day)),
        ])
    }

    fn trace_table(&self) -> Table {
        let mode = match self.core.trace_mode {
            TraceMode::Generation => "generation",
            TraceMode::Session => "session",
        };
        let tab = match self.core.tab {
            TabMode::Off => "off",
            TabMode::Rollup => "rollup",
            TabMode::Span => "span",
        };
        Table::from_iter([
            ("mode".into(), Value::from(mode)),
            ("session_span".into(), Value::from(self.core.session_span)),
            ("llm_spans".into(), Value::from(self.core.llm_spans)),
            ("tab".into(), Value::from(tab)),
            ("session_idle".into(), time(self.core.session_idle_ns)),
            ("generation_idle".into(), time(self.core.generation_idle_ns)),
            ("settle_delay".into(), time(self.core.settle_delay_ns)),
            ("flush_after".into(), time(self.core.flush_after_ns)),
        ])
    }

    fn semconv_table(&self) -> Table {
        let profile = self.semconv.profile.as_str();
        let openinference = match self.semconv.openinference {
            OpenInference::Kind => "kind",
            OpenInference::Full => "full",
            OpenInference::Off => "off",
        };
        Table::from_iter([
            ("profile".into(), Value::from(profile)),
            ("openinference".into(), Value::from(openinference)),
        ])
    }
}

fn listen(places: &[Place]) -> Value {
    let places: Vec<Value> = places.iter().map(|place| Value::from(place.to_string())).collect();
    match <[Value; 1]>::try_from(places) {
        Ok([one]) => one,
        Err(several) => Value::Array(several),
    }
}

fn int(value: u64) -> Value {
    Value::from(i64::try_from(value).unwrap_or(i64::MAX))
}

fn time(ns: i64) -> Value {
    let time = Duration::from_nanos(u64::try_from(ns).unwrap_or_default());
    Value::from(humantime::format_duration(time).to_string())
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["header", "key", "token", "secret", "password", "authorization"]
        .iter()
        .any(|word| name.contains(word))
}

fn hide_secrets(table: &Table) -> Table {
    table
        .iter()
        .map(|(key, value)| {
            let shown = match value {
                Value::Table(inner) if is_secret(key) => Value::Table(
                    inner.keys().map(|name| (name.clone(), Value::from(HIDDEN))).collect(),
                ),
                _ if is_secret(key) => Value::from(HIDDEN),
                Value::Table(inner) => Value::Table(hide_secrets(inner)),
                other => other.clone(),
            };
            (key.clone(), shown)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_never_shown() {
        let table = "name = \"x\"\nendpoint = \"http://h:1\"\napi_key = \"k1\"\n[headers]\nx-team = \"k2\"\n";
        let mut config =
            Config { destinations: vec![toml::from_str(table).unwrap()], ..Config::default() };
        config.otel.insert("OTEL_EXPORTER_OTLP_HEADERS".into(), "a=k3".into());
        config.otel.insert("OTEL_SERVICE_NAME".into(), "svc".into());
        let text = toml::to_string(&config.to_toml()).unwrap();
        for secret in ["k1", "k2", "k3"] {
            assert!(!text.contains(secret), "{text}");
        }
        for shown in ["x-team", "http://h:1", "svc"] {
            assert!(text.contains(shown), "{text}");
        }
    }
}
