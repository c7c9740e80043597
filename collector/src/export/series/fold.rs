//! Adds settled spans to series. A pure function: it reads no clock and no store.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hookspan_core::price::Prices;
use hookspan_core::{Class, Span, SpanId, SpanKind, Status, Timestamp, Tokens, TraceId};

use super::exponential::Exponential;
use crate::config::destination::ContentPolicy;
use crate::export::otlp::Encoding;
use crate::export::private_names;
use crate::prices;

/// Maximum number of series (combinations of attributes) per metric. Further combinations are counted in one common
/// series, as OpenTelemetry's SDKs do. With this number, a request stays below 2 MiB; gRPC servers accept 4 MiB.
pub(super) const SERIES_MAX: usize = 250;

/// Maximum number of exemplars per point. The largest values since the last request are kept.
const EXEMPLARS_MAX: usize = 4;

/// Maximum number of characters in the text of an attribute.
const TEXT_MAX_CHARS: usize = 128;

/// The makers' names of the models that this release knows. The prices in the list are not used here.
static MODELS: LazyLock<Prices> = LazyLock::new(|| prices::with_public(Prices::default()));

/// The metrics that spans add to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Metric {
    TokenUsage,
    OperationDuration,
    ToolDuration,
    McpDuration,
    HookDuration,
    ToolWait,
    CacheTokens,
    Cost,
}

impl Metric {
    /// Name, unit, description.
    pub(super) const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::TokenUsage => (
                "gen_ai.client.token.usage",
                "{token}",
                "Number of input and output tokens used by a turn.",
            ),
            Self::OperationDuration => (
                "gen_ai.client.operation.duration",
                "s",
                "Duration of turns, subagents and answers.",
            ),
            Self::ToolDuration => {
                ("gen_ai.execute_tool.duration", "s", "The duration of a single tool execution.")
            }
            Self::McpDuration => (
                "mcp.client.operation.duration",
                "s",
                "The duration of an MCP tool call as the editor observed it.",
            ),
            Self::HookDuration => (
                "hookspan.hook.duration",
                "s",
                "Time of a tool call that hookspan's own hooks took.",
            ),
            Self::ToolWait => (
                "hookspan.tool.wait",
                "s",
                "Time of a tool call in which the tool did not run: approvals and hooks.",
            ),
            Self::CacheTokens => (
                "hookspan.usage.cache_tokens",
                "{token}",
                "Input tokens that were read from or written to the model's cache.",
            ),
            Self::Cost => (
                "hookspan.cost.estimate",
                "{currency}",
                "What the tokens come to by the price list; an estimate, never a bill.",
            ),
        }
    }

    const fn is_sum(self) -> bool {
        matches!(self, Self::CacheTokens | Self::Cost)
    }
}

/// A value with the span that it comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exemplar {
    pub(super) value: f64,
    pub(super) at: Timestamp,
    pub(super) trace: TraceId,
    pub(super) span: SpanId,
}

/// One combination of attributes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Point {
    Histogram(Exponential, Vec<Exemplar>),
    Sum(f64),
}

/// Sorted by key, unique.
pub(super) type Attributes = Vec<(&'static str, String)>;

/// Attribute of the common series beyond [`SERIES_MAX`], named as in OpenTelemetry's SDKs. In a request its value is a
/// boolean.
pub(super) const OVERFLOW: &str = "otel.metric.overflow";

/// Series by metric and attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Series {
    pub(super) points: BTreeMap<Metric, BTreeMap<Attributes, Point>>,
}

/// What a destination may learn about a span, and in which form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    pub(super) encoding: &'a Encoding,
    /// Whether the destination also gets this span. Only then may an exemplar refer to it.
    pub(super) is_sent: bool,
}

/// How long a person took to answer, if the call asked one.
fn answer_ms(span: &Span) -> Option<f64> {
    span.length_ns().filter(|_| span.asks_person()).map(|ns| ns as f64 / 1e6)
}

impl Series {
    /// Counts a settled span.
    pub(super) fn add(&mut self, span: &Span, rules: Rules<'_>) {
        let told = Told { span, rules };
        if let Some(seconds) = span.work_ns().map(|ns| ns as f64 / 1e9) {
            match span.kind {
                SpanKind::Generation | SpanKind::Subagent | SpanKind::Response => {
                    let attributes = told.operation(true);
                    self.record(Metric::OperationDuration, attributes, seconds, told);
                }
                SpanKind::Tool => {
                    self.record(Metric::ToolDuration, told.tool(), seconds, told);
                    if span.text("mcp.method.name").is_some() {
                        self.record(Metric::McpDuration, told.mcp(), seconds, told);
                    }
                }
                _ => {}
            }
        }
        if span.kind == SpanKind::Tool {
            for (key, metric) in
                [("hookspan.hook_ms", Metric::HookDuration), ("hookspan.wait_ms", Metric::ToolWait)]
            {
                if let Some(ms) = span.number(key) {
                    let asked = answer_ms(span).filter(|_| metric == Metric::ToolWait);
                    let ms = ms + asked.unwrap_or(0.0);
                    self.record(metric, told.wait(metric), ms / 1e3, told);
                }
            }
        }
        self.tokens(told);
    }

    /// Adds the span's tokens. Only one span of a turn has token attributes, so nothing is counted twice.
    fn tokens(&mut self, told: Told<'_>) {
        let count = |key: &str| {
            let count = told.span.number(key).filter(|count| *count >= 0.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
            count.map(|count| count as u64)
        };
        let tokens = Tokens {
            input: count("gen_ai.usage.input_tokens"),
            output: count("gen_ai.usage.output_tokens"),
            cache_read: count("gen_ai.usage.cache_read.input_tokens"),
            cache_write: count("gen_ai.usage.cache_creation.input_tokens"),
        };
        for (kind, tokens) in [("input", tokens.input), ("output", tokens.output)] {
            let Some(tokens) = tokens else { continue };
            let attributes = told.with(told.operation(false), "gen_ai.token.type", kind);
            self.record(Metric::TokenUsage, attributes, tokens as f64, told);
        }
        for (kind, tokens) in [("read", tokens.cache_read), ("write", tokens.cache_write)] {
            let Some(tokens) = tokens else { continue };
            let attributes = told.with(told.model(), "hookspan.cache.operation", kind);
            self.record(Metric::CacheTokens, attributes, tokens as f64, told);
        }
        let prices = &told.rules.encoding.prices;
        let label = told.span.text("gen_ai.request.model");
        if (tokens.input.is_some() || tokens.output.is_some())
            && label.is_some_and(|label| prices.price(label).is_some())
            && let Some(estimate) = prices.estimate(label, tokens.into())
        {
            let currency = prices.currency.clone();
            let attributes = told.with(told.model(), "hookspan.cost.currency", &currency);
            self.record(Metric::Cost, attributes, estimate.amount, told);
        }
    }

    fn record(&mut self, metric: Metric, attributes: Attributes, value: f64, told: Told<'_>) {
        let all = self.points.entry(metric).or_default();
        let is_known = all.contains_key(&attributes);
        let fits = is_known || all.len() < SERIES_MAX;
        let key = if fits { attributes } else { vec![(OVERFLOW, "true".to_owned())] };
        let new = || match metric.is_sum() {
            true => Point::Sum(0.0),
            false => Point::Histogram(Exponential::default(), Vec::new()),
        };
        match all.entry(key).or_insert_with(new) {
            Point::Sum(sum) => *sum += value,
            Point::Histogram(histogram, exemplars) => {
                histogram.record(value);
                if told.rules.is_sent {
                    keep(exemplars, told.exemplar(value));
                }
            }
        }
    }

    /// Removes the exemplars, because each request contains only those since the previous request.
    pub(super) fn forget_exemplars(&mut self) {
        for point in self.points.values_mut().flat_map(BTreeMap::values_mut) {
            if let Point::Histogram(_, exemplars) = point {
                exemplars.clear();
            }
        }
    }
}

/// Keeps the largest values, the largest first.
fn keep(exemplars: &mut Vec<Exemplar>, new: Exemplar) {
    let at = exemplars.partition_point(|kept| kept.value >= new.value);
    if at < EXEMPLARS_MAX {
        exemplars.insert(at, new);
        exemplars.truncate(EXEMPLARS_MAX);
    }
}

#[derive(Clone, Copy)]
struct Told<'a> {
    span: &'a Span,
    rules: Rules<'a>,
}

impl Told<'_> {
    fn exemplar(&self, value: f64) -> Exemplar {
        let span = self.span;
        let at = span.end.map_or(span.start, |end| end.at);
        Exemplar { value, at, trace: span.trace, span: span.id }
    }

    fn operation(&self, with_error: bool) -> Attributes {
        let mut all = self.model();
        self.copy(&mut all, "gen_ai.operation.name");
        self.copy(&mut all, "gen_ai.provider.name");
        if with_error {
            self.error(&mut all);
        }
        sorted(all)
    }

    fn tool(&self) -> Attributes {
        let mut all = Attributes::new();
        for key in ["gen_ai.agent.name", "gen_ai.tool.name", "gen_ai.tool.type"] {
            self.copy(&mut all, key);
        }
        self.error(&mut all);
        sorted(all)
    }

    fn mcp(&self) -> Attributes {
        let mut all = Attributes::new();
        for key in
            ["gen_ai.operation.name", "gen_ai.tool.name", "mcp.method.name", "network.transport"]
        {
            self.copy(&mut all, key);
        }
        self.error(&mut all);
        sorted(all)
    }

    fn wait(&self, metric: Metric) -> Attributes {
        let mut all = Attributes::new();
        if metric == Metric::ToolWait {
            self.copy(&mut all, "gen_ai.tool.name");
        }
        all
    }

    /// The label that the editor shows, and the maker's name of the model.
    fn model(&self) -> Attributes {
        let mut all = Attributes::new();
        self.copy(&mut all, "gen_ai.request.model");
        let Some(label) = self.span.text("gen_ai.request.model") else { return all };
        let own = self.rules.encoding.prices.name(label);
        let name = own.or_else(|| MODELS.name(label)).filter(|name| *name != "auto");
        if let Some(name) = name {
            all.push(("gen_ai.response.model", self.allowed("gen_ai.response.model", name)));
        }
        all
    }

    fn error(&self, all: &mut Attributes) {
        if let Status::Error { kind, .. } = &self.span.status {
            all.push(("error.type", kind.as_str().to_owned()));
        }
    }

    fn with(&self, mut all: Attributes, key: &'static str, value: &str) -> Attributes {
        all.push((key, value.to_owned()));
        sorted(all)
    }

    fn copy(&self, all: &mut Attributes, key: &'static str) {
        if let Some(text) = self.span.text(key) {
            all.push((key, self.allowed(key, text)));
        }
    }

    /// The text in the form that the destination's policy allows.
    fn allowed(&self, key: &str, text: &str) -> String {
        let encoding = self.rules.encoding;
        let found = self.span.attributes.iter().find(|attribute| attribute.key == key);
        let is_detail = found.is_some_and(|attribute| attribute.class != Class::Plain);
        let text = match encoding.content {
            // The name of an MCP tool would reveal the server.
            ContentPolicy::Off if is_detail => "mcp".into(),
            ContentPolicy::Off => private_names::attribute(key, text).unwrap_or_default(),
            ContentPolicy::Metadata | ContentPolicy::Full => text.into(),
        };
        encoding.redacted(&text).chars().take(TEXT_MAX_CHARS).collect()
    }
}

fn sorted(mut all: Attributes) -> Attributes {
    all.sort_unstable();
    all.dedup_by(|later, earlier| later.0 == earlier.0);
    all
}
