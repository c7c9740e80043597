//! Converts parameters from text to types. Errors name the parameter that is wrong.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::description::{Input, Operation};
use crate::problem::Problem;

/// Parameters of the query, each a field of `T`. An empty parameter counts as left out. If a parameter occurs twice,
/// the last one counts.
pub(super) struct Params<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<BTreeMap<String, String>>::from_request_parts(parts, state).await;
        let Query(pairs) = query.map_err(|_: QueryRejection| {
            Problem::bad_parameter("query", "the query is not percent-encoded UTF-8")
        })?;
        let given = pairs.into_iter().filter(|(_, text)| !text.is_empty());
        let given = given.map(|(name, text)| (name, Value::String(text))).collect();
        // Every error here comes from the types in `query`. Its text is ours and does not quote the wrong value.
        serde_path_to_error::deserialize(Value::Object(given)).map(Self).map_err(|error| {
            Problem::bad_parameter(error.path().to_string(), error.inner().to_string())
        })
    }
}

impl<T: JsonSchema> Input for Params<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.query::<T>();
    }
}

/// Path parameters. If one cannot be decoded, the answer is "not found".
pub(super) struct Route<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Route<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        let Path(path) = path.map_err(|_: PathRejection| Problem::not_found("path"))?;
        Ok(Self(path))
    }
}

impl<T> Input for Route<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.segments();
    }
}

/// The body of a POST.
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|_| Problem::bad_parameter("body", "it did not arrive whole"))?;
        // serde's message may quote the body. The problem is described without it.
        serde_json::from_slice(&bytes).map(Self).map_err(|error| {
            let place = format!("not the JSON object that is wanted, at column {}", error.column());
            Problem::bad_parameter("body", place)
        })
    }
}

impl<T: JsonSchema> Input for Body<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.body::<T>();
    }
}
