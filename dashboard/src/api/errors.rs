//! Failures that look alike, as groups.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;

use super::extract::Params;
use super::{Answer, Page, json, read, session_url};
use crate::App;
use crate::source::ErrorGroup;

#[derive(Serialize)]
struct ErrorItem {
    fingerprint: String,
    count: u64,
    sessions: u64,
    first_us: i64,
    last_us: i64,
    sample: String,
    sample_name: String,
    url: String,
}

impl From<ErrorGroup> for ErrorItem {
    fn from(group: ErrorGroup) -> Self {
        Self {
            url: format!("{}#{}", session_url(&group.sample_root), group.sample),
            fingerprint: group.fingerprint,
            count: group.count,
            sessions: group.sessions,
            first_us: group.first.as_us(),
            last_us: group.last.as_us(),
            sample: group.sample.to_string(),
            sample_name: group.sample_name,
        }
    }
}

pub(super) async fn errors(State(app): State<Arc<App>>, params: Params) -> Answer {
    let limit = params.limit()?;
    let groups = read(&app, move |source| source.errors(limit)).await?;
    json(&Page { items: groups.into_iter().map(ErrorItem::from).collect(), next: None })
}
