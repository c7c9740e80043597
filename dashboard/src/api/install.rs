//! What remains to be done until hooks arrive.

use std::sync::Arc;

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Answer, json, read};
use crate::App;

/// The remaining steps.
#[derive(Serialize, JsonSchema)]
pub(super) struct Installation {
    steps: Vec<StepItem>,
    url: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "InstallStep")]
struct StepItem {
    /// install, restart, first_hook
    id: &'static str,
    /// todo, ok, failed
    state: &'static str,
    /// What to type, if anything.
    command: Option<String>,
    hint: String,
}

pub(super) async fn install(State(app): State<Arc<App>>) -> Answer<Installation> {
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
    json(Installation { steps, url: "/" })
}
