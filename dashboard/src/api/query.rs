//! Parameters that several endpoints have in common.

use std::borrow::Cow;

use hookspan_core::SessionState;
use hookspan_view::filter::YES;
use hookspan_view::line::LineKind;
use hookspan_view::outcome::OutcomeFilter;
use hookspan_view::source::{LineFilter, SessionSort};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::cursor;
use crate::problem::Problem;

/// A whole number.
#[derive(Clone, Copy)]
pub(super) struct Number(pub(super) i64);

impl Number {
    /// Microseconds as nanoseconds.
    pub(super) fn us_as_ns(self) -> i64 {
        self.0.saturating_mul(1_000)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        text.parse().map(Self).map_err(|_| D::Error::custom("not a whole number"))
    }
}

impl JsonSchema for Number {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer" })
    }
}

/// How many items an answer has.
#[derive(Clone, Copy)]
struct Limit(usize);

impl Limit {
    const DEFAULT: usize = 50;
    const MAX: i64 = 500;
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Number::deserialize(from)?.0 {
            limit @ 1..=Self::MAX => Ok(Self(usize::try_from(limit).unwrap_or(Self::DEFAULT))),
            _ => Err(D::Error::custom("between 1 and 500")),
        }
    }
}

impl JsonSchema for Limit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "integer", "minimum": 1, "maximum": Self::MAX, "default": Self::DEFAULT,
        })
    }
}

/// Words of which a parameter is one.
pub(super) trait Words: Copy + 'static {
    /// All of them.
    fn all() -> impl Iterator<Item = Self>;
    /// The word itself.
    fn word(self) -> &'static str;
}

/// A parameter whose value is one of several words.
#[derive(Clone, Copy)]
pub(super) struct OneOf<T>(pub(super) T);

impl<T: Words> OneOf<T> {
    fn words() -> Vec<&'static str> {
        T::all().map(T::word).collect()
    }
}

impl<'de, T: Words> Deserialize<'de> for OneOf<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        let found = T::all().find(|one| one.word() == text).map(Self);
        found.ok_or_else(|| D::Error::custom(format!("one of {}", Self::words().join(", "))))
    }
}

impl<T: Words> JsonSchema for OneOf<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        std::any::type_name::<T>().into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::words() })
    }
}

/// Declares an enum whose variants are the words of a parameter.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(in crate::api) enum $name { $($variant),+ }

        impl $crate::api::query::Words for $name {
            fn all() -> impl Iterator<Item = Self> {
                [$(Self::$variant),+].into_iter()
            }

            fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}
pub(super) use words;

impl Words for LineKind {
    fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Words for OutcomeFilter {
    fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

/// The value of `starred`.
#[derive(Clone, Copy)]
pub(super) struct Yes;

impl Words for Yes {
    fn all() -> impl Iterator<Item = Self> {
        [Self].into_iter()
    }

    fn word(self) -> &'static str {
        YES
    }
}

impl Words for SessionState {
    fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Words for SessionSort {
    fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

words! {
    /// How something ended, as far as lists can filter by it.
    Status { Error = "error" }
}

/// Which page of a list.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Paging {
    /// number of items: 50 unless given, at most 500
    limit: Option<Limit>,
    /// `next` of the previous page
    cursor: Option<String>,
}

impl Paging {
    /// How many items to answer.
    pub(super) fn limit(&self) -> usize {
        self.limit.map_or(Limit::DEFAULT, |limit| limit.0)
    }

    /// The cursor, as a number and a text.
    pub(super) fn position(&self) -> Result<Option<(i64, String)>, Problem> {
        self.cursor().map(cursor::decode).transpose()
    }

    /// The cursor as it was given.
    pub(super) fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }
}

/// Words that limit what a figure counts, in addition to a period.
#[derive(Clone, Deserialize, JsonSchema)]
pub(super) struct Narrow {
    /// name of a project, the whole path of its folder, or `none`
    project: Option<String>,
    /// name of the model of its turn, or `none`
    model: Option<String>,
    /// name of a tool
    tool: Option<String>,
    /// what it is drawn as
    kind: Option<OneOf<LineKind>>,
    /// only what failed
    status: Option<OneOf<Status>>,
    /// branch of its session at the end, or `none`
    branch: Option<String>,
    /// what came of its session
    outcome: Option<OneOf<OutcomeFilter>>,
    /// tag of its session, or `none`
    tag: Option<String>,
    /// only of sessions with a star
    starred: Option<OneOf<Yes>>,
}

impl Narrow {
    /// The filter for these words, without a period.
    pub(super) fn filter(self) -> LineFilter {
        LineFilter {
            project: self.project,
            model: self.model,
            tool: self.tool,
            kind: self.kind.map(|kind| kind.0),
            failed: self.status.is_some(),
            branch: self.branch,
            outcome: self.outcome.map(|outcome| outcome.0),
            tag: self.tag,
            starred: self.starred.is_some(),
            ..LineFilter::default()
        }
    }
}

/// Filters of spans, as in the filter bar.
#[derive(Deserialize, JsonSchema)]
pub(super) struct SpanQuery {
    /// id of a session
    session: Option<String>,
    /// name of a project, the whole path of its folder, or `none`
    project: Option<String>,
    /// name of the model of its turn, or `none`
    model: Option<String>,
    /// name of a tool
    tool: Option<String>,
    /// what it is drawn as
    kind: Option<OneOf<LineKind>>,
    /// only what failed
    status: Option<OneOf<Status>>,
    /// branch of its session at the end, or `none`
    branch: Option<String>,
    /// what came of its session
    outcome: Option<OneOf<OutcomeFilter>>,
    /// tag of its session, or `none`
    tag: Option<String>,
    /// only of sessions with a star
    starred: Option<OneOf<Yes>>,
    /// took at least
    min_us: Option<Number>,
    /// took less than
    max_us: Option<Number>,
    /// began at or after
    from_us: Option<Number>,
    /// began at or before
    to_us: Option<Number>,
}

impl From<SpanQuery> for LineFilter {
    fn from(query: SpanQuery) -> Self {
        Self {
            session: query.session,
            project: query.project,
            model: query.model,
            tool: query.tool,
            kind: query.kind.map(|kind| kind.0),
            failed: query.status.is_some(),
            branch: query.branch,
            outcome: query.outcome.map(|outcome| outcome.0),
            tag: query.tag,
            starred: query.starred.is_some(),
            min_ns: query.min_us.map(Number::us_as_ns),
            max_ns: query.max_us.map(Number::us_as_ns),
            from_ns: query.from_us.map(Number::us_as_ns),
            to_ns: query.to_us.map(Number::us_as_ns),
        }
    }
}
