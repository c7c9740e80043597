//! What is left to do until hooks arrive.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use serde_json::json;

use super::{Answer, json, read};
use crate::App;

#[derive(Serialize)]
struct StepItem {
    id: &'static str,
    state: &'static str,
    command: Option<String>,
    hint: String,
}

pub(super) async fn install(State(app): State<Arc<App>>) -> Answer {
    let steps = read(&app, |source| source.install()).await?;
    let steps: Vec<_> = steps
        .into_iter()
        .map(|step| StepItem {
            id: step.id,
            state: step.state,
            command: step.command,
            hint: step.hint,
        })
        .collect();
    json(&json!({ "steps": steps, "url": "/" }))
}
