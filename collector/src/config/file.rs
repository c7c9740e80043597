//! The configuration file as it is written. Every key is optional, and an unknown key is an error.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookspan_core::price::{Price, Prices};
use hookspan_core::sessions::{Config as Core, TabMode, TraceMode};
use hookspan_redact::UserRule;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Misuse;
use super::destination::DestinationForm;
use super::listen;
use super::notify::Notify;
use super::place::{self, Place};
use super::{Config, OpenInference, PriceLists, Profile, Receive};

/// The whole file. Fields and variants are named as a person writes them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    dashboard: Option<DashboardTable>,
    receive: Option<ReceiveTable>,
    trace: Option<TraceTable>,
    semconv: Option<SemconvTable>,
    redact: Option<RedactTable>,
    evidence: Option<EvidenceTable>,
    sandbox: Option<SandboxTable>,
    journal: Option<JournalTable>,
    retention: Option<RetentionTable>,
    notify: Option<Notify>,
    prices: Option<PricesTable>,
    destination: Option<Vec<DestinationForm>>,
    /// The destinations as written. [`super::destination`] resolves them when they are used.
    #[serde(skip)]
    destinations: Vec<toml::Table>,
    #[serde(skip)]
    places: Vec<Place>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DashboardTable {
    #[serde(default, deserialize_with = "places")]
    listen: Option<Vec<listen::Place>>,
    token: Option<bool>,
    #[serde(default, deserialize_with = "hosts")]
    allow_hosts: Option<Vec<String>>,
    allow_uids: Option<Vec<u32>>,
    insecure: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceiveTable {
    enabled: Option<bool>,
    #[serde(default, deserialize_with = "places")]
    listen: Option<Vec<listen::Place>>,
    allow_uids: Option<Vec<u32>>,
    max_spans_per_session: Option<u64>,
    max_spans_per_day: Option<u64>,
    max_bytes_per_day: Option<u64>,
}

impl ReceiveTable {
    fn apply(self, receive: &mut Receive) {
        set(&mut receive.enabled, self.enabled);
        set(&mut receive.listen, self.listen);
        set(&mut receive.allow_uids, self.allow_uids);
        set(&mut receive.max_spans_per_session, self.max_spans_per_session);
        set(&mut receive.max_spans_per_day, self.max_spans_per_day);
        set(&mut receive.max_bytes_per_day, self.max_bytes_per_day);
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceTable {
    mode: Option<ModeWord>,
    session_span: Option<bool>,
    llm_spans: Option<bool>,
    tab: Option<TabWord>,
    #[serde(default, deserialize_with = "some_time")]
    session_idle: Option<i64>,
    #[serde(default, deserialize_with = "some_time")]
    generation_idle: Option<i64>,
    #[serde(default, deserialize_with = "time")]
    settle_delay: Option<i64>,
    #[serde(default, deserialize_with = "time")]
    flush_after: Option<i64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModeWord {
    Generation,
    Session,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TabWord {
    Off,
    Rollup,
    Span,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SemconvTable {
    profile: Option<ProfileWord>,
    openinference: Option<OpenInferenceWord>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum ProfileWord {
    #[serde(rename = "genai-1.41")]
    Genai141,
    #[serde(rename = "genai-0.1")]
    Genai01,
    #[serde(rename = "genai-1.41-strict")]
    Genai141Strict,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OpenInferenceWord {
    Kind,
    Full,
    Off,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EvidenceTable {
    cursor_store: Option<bool>,
    cursor_store_path: Option<PathBuf>,
    repository: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SandboxTable {
    enabled: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RedactTable {
    rule: Option<Vec<RuleForm>>,
    #[serde(default, deserialize_with = "exceptions")]
    allow: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleForm {
    #[serde(deserialize_with = "rule_name")]
    name: String,
    #[serde(deserialize_with = "rule_pattern")]
    pattern: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalTable {
    #[serde(default, deserialize_with = "journal_bytes")]
    max_bytes: Option<u64>,
    #[serde(default, deserialize_with = "segment_bytes")]
    segment_bytes: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    #[serde(default, deserialize_with = "rate")]
    input: Option<f64>,
    #[serde(default, deserialize_with = "rate")]
    output: Option<f64>,
    #[serde(default, deserialize_with = "rate")]
    cache_read: Option<f64>,
    #[serde(default, deserialize_with = "rate")]
    cache_write: Option<f64>,
    currency: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RetentionTable {
    #[serde(default, deserialize_with = "time")]
    max_age: Option<i64>,
    max_bytes: Option<u64>,
}

impl File {
    /// Reads TOML.
    ///
    /// # Errors
    ///
    /// The message names file, line and column. For a misspelt word it also names the nearest known word.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, Misuse> {
        let explained = |error: toml::de::Error| Misuse(explain(path, text, &error));
        let mut file: Self = toml::from_str(text).map_err(explained)?;
        if file.destination.take().is_some() {
            let table: toml::Table = toml::from_str(text).map_err(explained)?;
            let written = table.get("destination").and_then(toml::Value::as_array);
            let tables = written.into_iter().flatten().filter_map(toml::Value::as_table);
            file.destinations = tables.cloned().collect();
            file.places = place::destinations(path, text);
        }
        Ok(file)
    }

    /// Replaces the settings in `config` by those that the file sets.
    pub(super) fn apply(self, config: &mut Config) {
        if let Some(table) = self.dashboard {
            set(&mut config.dashboard.listen, table.listen);
            set(&mut config.dashboard.token, table.token);
            set(&mut config.dashboard.allow_hosts, table.allow_hosts);
            set(&mut config.dashboard.allow_uids, table.allow_uids);
            set(&mut config.dashboard.insecure, table.insecure);
        }
        if let Some(table) = self.receive {
            table.apply(&mut config.receive);
        }
        if let Some(table) = self.trace {
            table.apply(&mut config.core);
        }
        if let Some(table) = self.semconv {
            set(&mut config.semconv.profile, table.profile.map(Into::into));
            set(&mut config.semconv.openinference, table.openinference.map(Into::into));
        }
        if let Some(table) = self.redact {
            let rule = |form: RuleForm| UserRule { name: form.name, pattern: form.pattern };
            let rules = table.rule.map(|forms| forms.into_iter().map(rule).collect());
            set(&mut config.redact.rules, rules);
            set(&mut config.redact.allow, table.allow);
        }
        if let Some(table) = self.sandbox {
            set(&mut config.sandbox, table.enabled);
        }
        if let Some(table) = self.evidence {
            set(&mut config.evidence.cursor_store, table.cursor_store);
            set(&mut config.evidence.cursor_store_path, table.cursor_store_path);
            set(&mut config.evidence.repository, table.repository);
        }
        if let Some(table) = self.journal {
            set(&mut config.journal.max_bytes, table.max_bytes);
            set(&mut config.journal.segment_bytes, table.segment_bytes);
        }
        if let Some(table) = self.retention {
            set(&mut config.retention.max_age_ns, table.max_age);
            set(&mut config.retention.max_bytes, table.max_bytes);
        }
        set(&mut config.notify, self.notify);
        if let Some(table) = self.prices {
            config.prices = table.own;
            config.price_lists = table.lists;
        }
        config.destinations = self.destinations;
        config.places = self.places;
    }
}

impl TraceTable {
    fn apply(self, core: &mut Core) {
        set(&mut core.trace_mode, self.mode.map(Into::into));
        set(&mut core.session_span, self.session_span);
        set(&mut core.llm_spans, self.llm_spans);
        set(&mut core.tab, self.tab.map(Into::into));
        set(&mut core.session_idle_ns, self.session_idle);
        set(&mut core.generation_idle_ns, self.generation_idle);
        set(&mut core.settle_delay_ns, self.settle_delay);
        set(&mut core.flush_after_ns, self.flush_after);
    }
}

fn set<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

impl From<ModeWord> for TraceMode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::Generation => Self::Generation,
            ModeWord::Session => Self::Session,
        }
    }
}

impl From<TabWord> for TabMode {
    fn from(word: TabWord) -> Self {
        match word {
            TabWord::Off => Self::Off,
            TabWord::Rollup => Self::Rollup,
            TabWord::Span => Self::Span,
        }
    }
}

impl From<ProfileWord> for Profile {
    fn from(word: ProfileWord) -> Self {
        match word {
            ProfileWord::Genai141 => Self::Genai141,
            ProfileWord::Genai01 => Self::Genai01,
            ProfileWord::Genai141Strict => Self::Genai141Strict,
        }
    }
}

impl From<OpenInferenceWord> for OpenInference {
    fn from(word: OpenInferenceWord) -> Self {
        match word {
            OpenInferenceWord::Kind => Self::Kind,
            OpenInferenceWord::Full => Self::Full,
            OpenInferenceWord::Off => Self::Off,
        }
    }
}

fn time<'de, D: Deserializer<'de>>(input: D) -> Result<Option<i64>, D::Error> {
    let text = String::deserialize(input)?;
    let time: Duration = humantime::parse_duration(&text).map_err(|error| {
        de::Error::custom(format!(
            "`{text}` is not a duration ({error}); write it like \"500ms\", \"2s\", \"30m\" or \"1h 30m\""
        ))
    })?;
    match i64::try_from(time.as_nanos()) {
        Ok(ns) => Ok(Some(ns)),
        Err(_) => Err(de::Error::custom(format!("`{text}` is longer than 292 years"))),
    }
}

fn some_time<'de, D: Deserializer<'de>>(input: D) -> Result<Option<i64>, D::Error> {
    match time(input)? {
        Some(0) => Err(de::Error::custom("this duration must be longer than zero")),
        time => Ok(time),
    }
}

fn rule_name<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let name = String::deserialize(input)?;
    let rule = UserRule { name, pattern: "x".to_owned() };
    rule.check().map_err(de::Error::custom)?;
    Ok(rule.name)
}

fn rule_pattern<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let pattern = String::deserialize(input)?;
    let rule = UserRule { name: "x".to_owned(), pattern };
    rule.check().map_err(de::Error::custom)?;
    Ok(rule.pattern)
}

fn exceptions<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<String>>, D::Error> {
    let patterns = Vec::<String>::deserialize(input)?;
    for pattern in &patterns {
        hookspan_redact::check_exception(pattern)
            .map_err(|error| de::Error::custom(format!("`{pattern}`: {error}")))?;
    }
    Ok(Some(patterns))
}

fn rate<'de, D: Deserializer<'de>>(input: D) -> Result<Option<f64>, D::Error> {
    let price = f64::deserialize(input)?;
    if !(0.0..=1e9).contains(&price) {
        return Err(de::Error::custom(format!(
            "{price} is not a price of a million tokens: 0 or more"
        )));
    }
    Ok(Some(price))
}

/// `[prices]`: the price lists to use, and one table per model pattern.
#[derive(Debug)]
struct PricesTable {
    own: Prices,
    lists: PriceLists,
}

impl<'de> Deserialize<'de> for PricesTable {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = PricesTable;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`file`, `public`, and a table of prices for each model")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PricesTable, A::Error> {
                let (mut tables, mut lists) = (BTreeMap::new(), PriceLists::default());
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "file" => lists.file = Some(map.next_value()?),
                        "public" => lists.public = map.next_value()?,
                        _ => drop(tables.insert(key, map.next_value::<PriceTable>()?)),
                    }
                }
                let own = prices(tables)?;
                Ok(PricesTable { own, lists })
            }
        }
        input.deserialize_map(Keys)
    }
}

/// Amounts in different currencies cannot be added up, so there may be only one currency.
fn prices<E: de::Error>(tables: BTreeMap<String, PriceTable>) -> Result<Prices, E> {
    let mut currency: Option<String> = None;
    for said in tables.values().filter_map(|table| table.currency.as_deref()) {
        if said.is_empty() || said.chars().count() > 8 || said.chars().any(char::is_control) {
            return Err(E::custom("a currency is a short word like \"USD\""));
        }
        if currency.get_or_insert_with(|| said.to_owned()) != said {
            return Err(E::custom("prices of two currencies: use one for all models"));
        }
    }
    let price = |table: PriceTable| Price {
        input: table.input,
        output: table.output,
        cache_read: table.cache_read,
        cache_write: table.cache_write,
    };
    let rows = tables.into_iter().map(|(pattern, table)| (pattern, price(table)));
    Ok(Prices::new(currency.unwrap_or_else(|| "USD".to_owned()), rows))
}

/// A smaller journal could not hold one large payload.
const JOURNAL_MIN_BYTES: u64 = 16 << 20;

fn journal_bytes<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    let bytes = u64::deserialize(input)?;
    if bytes < JOURNAL_MIN_BYTES {
        return Err(de::Error::custom(format!(
            "the journal needs at least {JOURNAL_MIN_BYTES} bytes, not {bytes}"
        )));
    }
    Ok(Some(bytes))
}

/// The largest frame must fit into a segment. In smaller segments, most operations would be renames and reservations.
const SEGMENT_MIN_BYTES: u64 = 1 << 20;

fn segment_bytes<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    let bytes = u64::deserialize(input)?;
    if bytes < SEGMENT_MIN_BYTES {
        return Err(de::Error::custom(format!(
            "a segment needs at least {SEGMENT_MIN_BYTES} bytes, not {bytes}"
        )));
    }
    Ok(Some(bytes))
}

/// One place or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Places {
    One(String),
    Several(Vec<String>),
}

fn places<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<listen::Place>>, D::Error> {
    let texts = match Places::deserialize(input) {
        Ok(Places::One(text)) => vec![text],
        Ok(Places::Several(texts)) => texts,
        Err(_) => {
            let form =
                "this is a text like \"127.0.0.1:4329\" or \"unix:/PATH\", or a list of such texts";
            return Err(de::Error::custom(form));
        }
    };
    let parsed: Result<_, _> = texts.iter().map(|text| text.parse()).collect();
    parsed.map(Some).map_err(de::Error::custom)
}

fn hosts<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Vec<String>>, D::Error> {
    let hosts = Vec::<String>::deserialize(input)?;
    if let Some(wrong) = hosts.iter().find(|host| !super::is_host_and_port(host)) {
        return Err(de::Error::custom(format!(
            "`{wrong}` is not NAME:PORT, like \"build.lan:4329\""
        )));
    }
    Ok(Some(hosts))
}

/// An error message `file:line:column: what is wrong`, with the word that was probably meant.
fn explain(path: &Path, text: &str, error: &toml::de::Error) -> String {
    let place = match error.span() {
        Some(span) => {
            let (line, column) = position(text, span.start);
            format!("{}:{line}:{column}", path.display())
        }
        None => path.display().to_string(),
    };
    let message = error.message().trim();
    let what = message.replacen("unknown field", "unknown key", 1);
    match suggestion(message) {
        Some(nearest) => format!("{place}: {what}; did you mean `{nearest}`?"),
        None => format!("{place}: {what}"),
    }
}

/// Line and column of a byte offset. Both count from 1, and the column counts characters.
#[must_use]
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}

/// The known word nearest to the unknown one in serde's "unknown field `x`, expected one of `a`, `b`".
fn suggestion(message: &str) -> Option<&str> {
    if !message.starts_with("unknown ") {
        return None;
    }
    let mut words = message.split('`').skip(1).step_by(2);
    let unknown = words.next()?;
    words
        .map(|known| (strsim::jaro_winkler(unknown, known), known))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}
