//! Figures for Prometheus and compatible programs. Whoever may read the API may read them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use super::read;
use crate::App;
use crate::problem::Problem;

pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Result<impl IntoResponse, Problem> {
    let text = read(&app, |source| source.exposition()).await?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text))
}
