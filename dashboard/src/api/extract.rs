//! Parameters: from text to what a handler needs, with an error that names the one that is wrong.

use std::collections::BTreeMap;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use hookspan_view::line::LineKind;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// The query. Of a repeated parameter the last one counts.
pub(super) struct Params(BTreeMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Query(pairs) = query.map_err(|_: QueryRejection| {
            Problem::bad_parameter("query", "the query is not percent-encoded UTF-8")
        })?;
        Ok(Self(pairs.into_iter().collect()))
    }
}

impl Params {
    /// A parameter that is not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// A parameter that must be a whole number.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<i64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Problem::bad_parameter(name, "not a whole number"))
    }

    /// A time or a duration in microseconds, as nanoseconds.
    pub(super) fn nanoseconds(&self, name: &'static str) -> Result<Option<i64>, Problem> {
        Ok(self.number(name)?.map(|us| us.saturating_mul(1_000)))
    }

    /// What spans are drawn as.
    pub(super) fn kind(&self) -> Result<Option<LineKind>, Problem> {
        let Some(word) = self.text("kind") else { return Ok(None) };
        LineKind::parse(word).map(Some).ok_or_else(|| {
            let words = LineKind::ALL.map(LineKind::as_str).join(", ");
            Problem::bad_parameter("kind", format!("one of {words}"))
        })
    }

    /// How many items to answer.
    pub(super) fn limit(&self) -> Result<usize, Problem> {
        match self.number("limit")? {
            None => Ok(50),
            Some(limit @ 1..=500) => Ok(usize::try_from(limit).unwrap_or(500)),
            Some(_) => Err(Problem::bad_parameter("limit", "between 1 and 500")),
        }
    }
}

/// Path parameters; what does not decode does not exist.
pub(super) struct Route<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Route<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        let Path(path) = path.map_err(|_: PathRejection| Problem::not_found("path"))?;
        Ok(Self(path))
    }
}
