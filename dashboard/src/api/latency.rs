//! Percentiles per tool, model or kind.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use serde_json::json;

use super::extract::Params;
use super::{Answer, json, read};
use crate::App;
use crate::problem::Problem;
use crate::source::LatencyRow;

const DAY_NS: i64 = 86_400_000_000_000;
const DAYS_MAX: i64 = 3_660;

#[derive(Serialize)]
struct LatencyItem {
    name: String,
    n: u64,
    errors: u64,
    p50_us: u64,
    p90_us: u64,
    p95_us: u64,
    p99_us: u64,
    max_us: u64,
}

impl From<LatencyRow> for LatencyItem {
    fn from(row: LatencyRow) -> Self {
        let LatencyRow { name, count, errors, p50_us, p90_us, p95_us, p99_us, max_us } = row;
        Self { name, n: count, errors, p50_us, p90_us, p95_us, p99_us, max_us }
    }
}

pub(super) async fn latency(State(app): State<Arc<App>>, params: Params) -> Answer {
    let group = match params.text("group").unwrap_or("tool") {
        group @ ("tool" | "model" | "kind") => group.to_owned(),
        _ => return Err(Problem::bad_parameter("group", "tool, model or kind")),
    };
    let days @ 1..=DAYS_MAX = params.number("days")?.unwrap_or(30) else {
        return Err(Problem::bad_parameter("days", "between 1 and 3660"));
    };
    let dimension = group.clone();
    let rows = read(&app, move |source| {
        let today = source.now_ns().div_euclid(DAY_NS);
        source.latency(&dimension, (today - days + 1, today))
    });
    let rows: Vec<_> = rows.await?.into_iter().map(LatencyItem::from).collect();
    json(
        &json!({ "group": group, "days": days, "items": rows, "url": format!("/latency?group={group}&days={days}") }),
    )
}
