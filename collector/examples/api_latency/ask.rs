//! Sends every request of every page to an existing store, and measures the answers.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use hookspan::parts::{Extras, StoreSource};
use hookspan_dashboard::{Clock, Settings};
use hookspan_view::Result as Answer;
use hookspan_view::health::JournalHealth;
use hookspan_view::source::{Control, Deleted, FilterPage, MarkChange, Marked, SavedFilter};
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

/// Number of times that each request is sent, and the time after which no more are sent.
const TIMES: usize = 60;
const ENOUGH_MS: f64 = 4_000.0;
const AIM_MS: f64 = 50.0;

struct Nothing;

impl Control for Nothing {
    fn retry(&self, _: &str) -> Answer<bool> {
        Ok(false)
    }

    fn delete(&self, _: &[String]) -> Answer<Deleted> {
        Ok(Deleted::default())
    }

    fn mark(&self, _: &str, _: &[MarkChange]) -> Answer<Marked> {
        Ok(Marked::NoSession)
    }

    fn save_filter(&self, _: &SavedFilter) -> Answer<bool> {
        Ok(false)
    }

    fn forget_filter(&self, _: FilterPage, _: &str) -> Answer<bool> {
        Ok(false)
    }
}

struct Asker {
    router: Router,
    runtime: Runtime,
}

pub(crate) fn ask(database: &Path, extras: Extras, now: i64) {
    let source = StoreSource::new(database, Box::new(JournalHealth::default), []);
    let (_close, closing) = tokio::sync::watch::channel(false);
    let settings = Settings {
        door: None,
        address: Some(([127, 0, 0, 1], 4329).into()),
        allow_hosts: vec![],
        closing,
        clock: Clock::new(move || now),
        changes: tokio::sync::broadcast::Sender::new(1),
    };
    let router =
        hookspan_dashboard::router(Arc::new(source.with(extras)), Arc::new(Nothing), settings)
            .unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let asker = Asker { router, runtime };
    println!("{:<78} {:>8} {:>8} {:>8} {:>8}", "request", "first ms", "p50 ms", "max ms", "KiB");
    let mut slow = 0;
    for target in targets(&asker, now / 1_000) {
        slow += u32::from(asker.measure(&target) > AIM_MS);
    }
    println!("{slow} requests with a median above {AIM_MS} ms");
}

impl Asker {
    fn get(&self, target: &str) -> (u16, Vec<u8>) {
        self.runtime.block_on(async {
            let request =
                Request::get(format!("/api/v1/{target}")).header("host", "127.0.0.1:4329");
            let request = request.body(Body::empty()).unwrap();
            let answer = self.router.clone().oneshot(request).await.unwrap();
            let status = answer.status().as_u16();
            (status, to_bytes(answer.into_body(), usize::MAX).await.unwrap().to_vec())
        })
    }

    fn json(&self, target: &str) -> Value {
        serde_json::from_slice(&self.get(target).1).unwrap()
    }

    /// Prints a line. Returns the median, milliseconds.
    fn measure(&self, target: &str) -> f64 {
        let mut took = Vec::with_capacity(TIMES);
        let (mut status, mut size) = (0, 0);
        while took.len() < TIMES && took.iter().sum::<f64>() < ENOUGH_MS {
            let started = Instant::now();
            let answer = self.get(target);
            took.push(started.elapsed().as_secs_f64() * 1e3);
            (status, size) = (answer.0, answer.1.len());
        }
        let first = took[0];
        took.sort_by(f64::total_cmp);
        let median = took[took.len() / 2];
        let failed = if status == 200 { String::new() } else { format!(" answered {status}") };
        let mark = if median > AIM_MS { " !" } else { "" };
        let max = took[took.len() - 1];
        let name = target.replace("from_us", "from").replace("to_us", "to");
        let name = name.split("&columns=").next().unwrap_or_default();
        println!(
            "{name:<78} {first:>8.1} {median:>8.1} {max:>8.1} {:>8.1}{mark}{failed}",
            size as f64 / 1024.0
        );
        median
    }
}

/// Every request of the pages: addresses as the scripts send them.
fn targets(asker: &Asker, now_us: i64) -> Vec<String> {
    const DAY_US: i64 = 86_400_000_000;
    let newest =
        asker.json("sessions?limit=1&sort=last")["items"][0]["id"].as_str().map(str::to_owned);
    let newest = newest.unwrap_or_else(|| "bench-000000".to_owned());
    // A long session, and its rows.
    let long =
        asker.json("sessions?limit=1&sort=calls")["items"][0]["id"].as_str().map(str::to_owned);
    let long = long.unwrap_or_else(|| newest.clone());
    let rows = asker.json(&format!("sessions/{long}/spans?format=rows&limit=200"));
    let rows: Vec<i64> = rows["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| row["row"].as_i64())
        .collect();
    let list: Vec<String> = rows.iter().take(60).map(i64::to_string).collect();
    let day = now_us.div_euclid(DAY_US) * DAY_US;
    let mut out: Vec<String> = [
        "overview",
        "now",
        "health",
        "install",
        "privacy",
        "access",
        "audit",
        "sessions?limit=50",
        "sessions?limit=50&sort=errors",
        "sessions?limit=50&sort=active&order=asc",
        "sessions?tool=Shell&min_us=1000000&limit=50",
        "sessions?project=project3&limit=50",
        "sessions?model=composer-2&state=running&limit=50",
        "sessions?status=error&limit=50",
        "sessions?tool=Task&limit=50",
        "sessions?limit=8&q=part",
        "sessions?limit=50&q=xylophone",
        "spans?limit=200",
        "spans?kind=shell&limit=100",
        "spans?status=error&limit=100",
        "spans?project=project3&kind=shell&limit=100",
        "spans?tool=Grep&min_us=1900000&limit=100",
        "errors",
        "errors?tool=Shell",
        "errors?project=project3",
        "errors?kind=edit",
        "files?days=30",
        "files?days=365",
        "files?days=30&q=file1",
        "files?days=30&project=project3",
        "file?path=%2Fhome%2Fdev%2Fproject3%2Fsrc%2Fpart1%2Ffile9.rs&days=30",
        "file?path=%2Fhome%2Fdev%2Fproject3%2Fsrc%2Fpart1%2Ffile9.rs&days=365",
        "digest?days=1",
        "digest?days=7",
        "digest?days=31",
        "search?q=timeout",
        "search?q=cargo%20crate21%20kind:shell",
        "search?q=andler_4",
        "search?q=xylophone",
        "search?q=ca",
        "search?q=deliver&project=project3",
    ]
    .map(str::to_owned)
    .to_vec();
    out.push(format!("overview?from_us={day}"));
    for days in [1, 7, 30, 365] {
        let from = day - (days - 1) * DAY_US;
        out.push(format!("files?from_us={from}&sort=edits"));
        out.push(format!("errors?from_us={from}"));
        for by in ["project", "model", "kind"] {
            out.push(format!("time?days={days}&by={by}"));
            // Days of a zone five hours west of UTC: they are not UTC days.
            out.push(format!(
                "time?by={by}&from_us={}&to_us={now_us}&columns=1440*{days}",
                from + 5 * DAY_US / 24
            ));
        }
        for group in ["tool", "model", "kind", "project"] {
            out.push(format!("latency?group={group}&days={days}"));
        }
        out.push(format!("latency?group=tool&from_us={}&to_us={now_us}", from + 5 * DAY_US / 24));
        out.push(format!("latency?group=tool&days={days}&project=project3"));
        out.push(format!("latency/heatmap?days={days}"));
        out.push(format!("latency/heatmap?days={days}&group=tool&name=Shell"));
    }
    for session in [&newest, &long] {
        for rest in ["", "/turns", "/spans", "/edits", "/lints", "/critical-path", "/spans?focus=1"]
        {
            if !rest.contains("focus") {
                out.push(format!("sessions/{session}{rest}"));
            }
        }
    }
    out.push(format!("compare?a={newest}&b={long}"));
    out.push(format!("sessions/{long}/steps?rows={}", list.join(",")));
    out.push(format!("privacy/preview?session={long}"));
    for row in rows.iter().skip(4).take(3) {
        out.push(format!("spans/{row}"));
    }
    out
}
