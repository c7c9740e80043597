//! Measures how fast the dashboard answers over a large store. It fills the store in the same way as a collector, and
//! then sends requests.
//!
//! ```text
//! cargo run --release -p hookspan --example api_latency -- 1000000
//! ```
//!
//! Prints the median and the 99th percentile of each request, from the call to the finished JSON.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measuring program stops at what is broken, and prints"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::http::Request;
use hookspan::parts::{
    Arrival, Batch, Engine, Extras, Horizon, Preparer, Readers, Redaction, Search, Signals, Store,
    StoreSource,
};
use hookspan_core::{Hook, HookSource, Timestamp};
use hookspan_dashboard::{Clock, Settings};
use hookspan_view::Result as Answer;
use hookspan_view::health::JournalHealth;
use hookspan_view::source::Control;
use hookspan_view::source::Deleted;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// Calls of one session. With turns, thoughts and the segment, a session has about 5,000 spans.
const CALLS: usize = 4_700;
const CALLS_PER_TURN: usize = 47;
const DAY_NS: i64 = 86_400_000_000_000;
/// Number of times that each request is sent.
const TIMES: usize = 200;

struct Nothing;

impl Control for Nothing {
    fn retry(&self, _: &str) -> Answer<bool> {
        Ok(false)
    }

    fn delete(&self, _: &[String]) -> Answer<Deleted> {
        Ok(Deleted::default())
    }
}

fn main() {
    let spans: usize = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("hookspan.db");
    let started = Instant::now();
    let roots = fill(&database, spans.div_ceil(CALLS * 21 / 20));
    println!("filled {spans} spans in {:.0?}", started.elapsed());
    let started = Instant::now();
    let search = Search::start(
        Readers::new(&database),
        &dir.path().join("search.db"),
        Redaction::default(),
        crossbeam_channel::never(),
        Arc::default(),
    )
    .unwrap();
    let extras = Extras {
        search_path: Some(dir.path().join("search.db")),
        search: Some(search.handle()),
        ..Extras::default()
    };
    // Waits until the indexer is behind, which shows that it has begun, and then until it has caught up.
    for behind in [true, false] {
        let deadline = Instant::now() + Duration::from_secs(if behind { 20 } else { 3_600 });
        while (search.handle().lag() > 0) != behind && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    println!("indexed in {:.0?}", started.elapsed());
    for file in std::fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
        println!("{:?} {} MiB", file.file_name(), file.metadata().unwrap().len() >> 20);
    }
    ask(&database, extras, &roots);
}

/// Fills the store with sessions of about 5,000 spans over thirty days, through normalise, fold and store. Returns
/// their ids.
fn fill(database: &Path, sessions: usize) -> Vec<String> {
    let mut store = Store::open(database).unwrap();
    store.begin("bench").unwrap();
    let config = hookspan_core::Config::default();
    let mut engine = Engine::new(store, config, Signals::default(), crossbeam_channel::never());
    let now = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos()).unwrap();
    let mut preparer = Preparer::default();
    let roots: Vec<String> = (0..sessions).map(|n| format!("bench-{n:06}")).collect();
    for (number, root) in roots.iter().enumerate() {
        let share = (sessions - number) as f64 / sessions as f64;
        let mut at = now - DAY_NS / 4 - (share * 29.0 * DAY_NS as f64) as i64;
        let mut arrivals = Vec::new();
        for turn in 0..CALLS / CALLS_PER_TURN {
            let mut hook = |name: &str, own: Value| {
                at += 40_000_000;
                arrivals.push(arrival(&mut preparer, root, turn, at, name, own));
            };
            hook(
                "beforeSubmitPrompt",
                json!({"prompt": format!("make turn {turn} of {root} work")}),
            );
            for call in 0..CALLS_PER_TURN {
                let (tool, input) = match call % 3 {
                    0 => (
                        "Shell",
                        json!({"command": format!("cargo test -p crate{} --lib", call * 7 % 31)}),
                    ),
                    1 => (
                        "Read",
                        json!({"file_path": format!("/home/dev/p{}/src/file{call}.rs", number % 9)}),
                    ),
                    _ => ("Grep", json!({"pattern": format!("fn handler_{call}")})),
                };
                let mut body = json!({"tool_name": tool, "tool_use_id": format!("{turn}-{call}"), "tool_input": input});
                hook("preToolUse", body.clone());
                body["tool_output"] =
                    json!(format!("running {call} tests in {tool}; timeout deliver ok {number}"));
                body["duration"] = json!(5 + call * call);
                // Every fiftieth call fails, with a hundred different messages.
                let n = turn * CALLS_PER_TURN + call;
                if n % 50 == 7 {
                    body["error_message"] =
                        json!(format!("exit code {}: test {} failed", n % 3, number % 33));
                    hook("postToolUseFailure", body);
                } else {
                    hook("postToolUse", body);
                }
            }
            hook(
                "afterAgentThought",
                json!({"text": "look at the drain first", "duration_ms": 20}),
            );
            hook(
                "stop",
                json!({"status": "completed", "input_tokens": 1_000, "output_tokens": 10}),
            );
        }
        let end = arrivals.last().map_or(0, |arrival| arrival.hook.observed_at.0);
        let mut arrivals = arrivals.into_iter().peekable();
        while arrivals.peek().is_some() {
            let arrivals = arrivals.by_ref().take(1_000).collect();
            engine.take(Batch { arrivals, ..Batch::default() }).unwrap();
        }
        let horizon = Horizon::At(Timestamp(end + 3 * 3_600_000_000_000));
        engine.take(Batch { horizon, ..Batch::default() }).unwrap();
    }
    roots
}

fn arrival(
    preparer: &mut Preparer,
    root: &str,
    turn: usize,
    at: i64,
    name: &str,
    own: Value,
) -> Arrival {
    let mut body = json!({
        "hook_event_name": name, "conversation_id": root, "generation_id": format!("{root}-{turn}"),
        "model": "composer-2", "cursor_version": "3.7.19", "workspace_roots": [format!("/home/dev/p{}", turn % 9)],
    });
    body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    let body = body.to_string().into_bytes();
    let hook =
        Hook { observed_at: Timestamp(at), source: HookSource::Import, body, ..Hook::default() };
    let mut id = [0; 16];
    id[..8].copy_from_slice(&at.to_be_bytes());
    id[8..].copy_from_slice(&xx(root).to_be_bytes());
    preparer.prepare(id, 0, hook)
}

/// Computes a number from a name.
fn xx(text: &str) -> u64 {
    text.bytes().fold(7, |sum, byte| sum.wrapping_mul(1_099_511_628_211) ^ u64::from(byte))
}

fn ask(database: &Path, extras: Extras, roots: &[String]) {
    let source = StoreSource::new(database, Box::new(JournalHealth::default), []);
    let (_close, closing) = tokio::sync::watch::channel(false);
    let settings = Settings {
        door: None,
        address: Some(([127, 0, 0, 1], 4329).into()),
        allow_hosts: vec![],
        closing,
        clock: Clock::new(|| hookspan::parts::now().0),
        changes: tokio::sync::broadcast::Sender::new(1),
    };
    let router =
        hookspan_dashboard::router(Arc::new(source.with(extras)), Arc::new(Nothing), settings)
            .unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    println!("{:<44} {:>9} {:>9} {:>9}", "question", "p50 ms", "p99 ms", "KiB");
    let middle = &roots[roots.len() / 2];
    for (name, target) in [
        ("sessions, first page", "/api/v1/sessions?limit=50".to_owned()),
        (
            "sessions, filtered by tool and duration",
            "/api/v1/sessions?tool=Shell&min_us=1000000&limit=50".to_owned(),
        ),
        (
            "sessions, filtered by what none has",
            "/api/v1/sessions?tool=Task&min_us=1000000&limit=50".to_owned(),
        ),
        ("turns of one session", format!("/api/v1/sessions/{middle}/turns")),
        ("one session of 5,000 spans, columns", format!("/api/v1/sessions/{middle}/spans")),
        ("percentiles over 30 days", "/api/v1/latency?days=30".to_owned()),
        ("percentiles over ten years", "/api/v1/latency?days=3660".to_owned()),
        ("heatmap over 30 days", "/api/v1/latency/heatmap?days=30".to_owned()),
        ("heatmap over ten years", "/api/v1/latency/heatmap?days=3660".to_owned()),
        ("where the time went, 30 days", "/api/v1/time?days=30".to_owned()),
        ("where the time went, ten years", "/api/v1/time?days=3660".to_owned()),
        ("search, a common word", "/api/v1/search?q=timeout".to_owned()),
        (
            "search, two words and a filter",
            "/api/v1/search?q=cargo%20crate21%20kind:shell".to_owned(),
        ),
        ("search, part of a word", "/api/v1/search?q=andler_4".to_owned()),
        ("search, nothing", "/api/v1/search?q=xylophone".to_owned()),
        ("overview", "/api/v1/overview".to_owned()),
        ("errors, grouped", "/api/v1/errors".to_owned()),
        ("errors of one tool, grouped", "/api/v1/errors?tool=Shell".to_owned()),
        ("spans of a kind", "/api/v1/spans?kind=shell&limit=100".to_owned()),
        ("failed spans", "/api/v1/spans?status=error&limit=100".to_owned()),
        ("newest spans", "/api/v1/spans?limit=100".to_owned()),
    ] {
        let mut took = Vec::with_capacity(TIMES);
        let mut size = 0;
        for _ in 0..TIMES {
            let started = Instant::now();
            size = runtime.block_on(async {
                let request = Request::get(&target).header("host", "127.0.0.1:4329");
                let answer =
                    router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
                assert_eq!(answer.status().as_u16(), 200, "{target}");
                to_bytes(answer.into_body(), usize::MAX).await.unwrap().len()
            });
            took.push(started.elapsed().as_secs_f64() * 1e3);
        }
        took.sort_by(f64::total_cmp);
        let at = |share: usize| took[(TIMES - 1) * share / 100];
        println!("{name:<44} {:>9.1} {:>9.1} {:>9.1}", at(50), at(99), size as f64 / 1024.0);
    }
}
