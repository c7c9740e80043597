//! Serves the dashboard with invented sessions: `cargo run -p hookspan-dashboard --example demo [PORT] [TURNS]`.
//!
//! It asks for no sign-in, so that a page can be viewed while it is being written.

#![expect(clippy::print_stdout, reason = "says where it serves")]
#![expect(clippy::unwrap_used, reason = "an example that cannot serve has nothing else to do")]

#[path = "../tests/support/mod.rs"]
pub mod support;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hookspan_dashboard::{Settings, router};
use support::{ListSource, OneDestination, story};

fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos().try_into().unwrap()
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u16>().unwrap());
    let port = arguments.next().unwrap_or(4330);
    let turns = arguments.next().unwrap_or(40);
    let source = Arc::new(ListSource::new(story::library(now_ns(), turns.into())));
    let (_open, closing) = tokio::sync::watch::channel(false);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = Settings {
        door: None,
        address: Some(address),
        allow_hosts: Vec::new(),
        closing,
        clock: source.clock(),
        changes: source.changes(),
    };
    let app = router(source.clone(), Arc::new(OneDestination), settings).unwrap();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            source.change("0176a3f0-live", |data| data.now_ns = now_ns());
        }
    });
    println!("http://{address}/");
    axum::serve(listener, app).await.unwrap();
}
