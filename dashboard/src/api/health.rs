//! How hookspan itself is doing, and waking a destination.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use serde_json::{Map, json};

use super::extract::Route;
use super::{Answer, json, read};
use crate::App;
use crate::problem::Problem;
use crate::source::{DestinationHealth, Health};

#[derive(Serialize)]
struct HealthItem {
    now_us: i64,
    version: String,
    token_required: bool,
    journal: JournalItem,
    db: DbItem,
    counters: Map<String, serde_json::Value>,
    exporters: Vec<ExporterItem>,
}

#[derive(Serialize)]
struct JournalItem {
    segments: u64,
    bytes: u64,
    behind_bytes: u64,
}

#[derive(Serialize)]
struct DbItem {
    bytes: u64,
    wal: u64,
}

#[derive(Serialize)]
struct ExporterItem {
    name: String,
    endpoint_host: String,
    state: String,
    last_ok_us: Option<i64>,
    last_error: Option<String>,
    queued: u64,
    delivered: u64,
    lost: Map<String, serde_json::Value>,
}

pub(super) async fn health(State(app): State<Arc<App>>) -> Answer {
    let (now_us, health) =
        read(&app, |source| Ok((source.now_ns() / 1_000, source.health()?))).await?;
    json(&view(now_us, health, app.guard.token.is_some()))
}

fn view(now_us: i64, health: Health, token_required: bool) -> HealthItem {
    let journal = health.journal;
    HealthItem {
        now_us,
        version: health.version,
        token_required,
        journal: JournalItem {
            segments: journal.segments,
            bytes: journal.bytes,
            behind_bytes: journal.behind_bytes,
        },
        db: DbItem { bytes: health.database_bytes, wal: health.wal_bytes },
        counters: counts(health.counters),
        exporters: health.destinations.into_iter().map(exporter).collect(),
    }
}

fn exporter(destination: DestinationHealth) -> ExporterItem {
    ExporterItem {
        name: destination.name,
        endpoint_host: destination.endpoint_host,
        state: destination.state,
        last_ok_us: destination.last_ok.map(|at| at.as_us()),
        last_error: destination.last_error,
        queued: destination.queued,
        delivered: destination.delivered,
        lost: counts(destination.lost),
    }
}

fn counts(counts: Vec<(String, u64)>) -> Map<String, serde_json::Value> {
    counts.into_iter().map(|(name, count)| (name, count.into())).collect()
}

pub(super) async fn retry(State(app): State<Arc<App>>, Route(name): Route<String>) -> Answer {
    let control = Arc::clone(&app.control);
    let woken = read(&app, move |_| control.retry(&name)).await?;
    if !woken {
        return Err(Problem::not_found("exporter"));
    }
    json(&json!({ "retrying": true, "url": "/health" }))
}
