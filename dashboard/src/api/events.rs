//! Writes the events of the live stream as bytes.

use axum::body::Bytes;
use hookspan_view::Source;
use hookspan_view::source::Position;
use serde_json::json;

use super::sessions::SessionItem;

/// The client must reload everything that it shows.
pub(super) fn resync(reason: &str) -> Bytes {
    Bytes::from(format!("event: resync\ndata: {{\"reason\":\"{reason}\"}}\n\n"))
}

/// For each session: its newest state, and a notice that its spans changed.
pub(super) fn notice_events(
    source: &dyn Source,
    at: &Position,
    sessions: &[(String, u64)],
) -> hookspan_view::Result<String> {
    let mut text = String::new();
    for (root, spans) in sessions {
        if let Some(session) = source.session(root)? {
            event(&mut text, at, "session", &SessionItem::from(session));
        }
        let data = json!({ "session": root, "rev": at.rev, "changed": spans });
        event(&mut text, at, "spans", &data);
    }
    Ok(text)
}

/// The event with a short version of hookspan's health.
pub(super) fn health_event(source: &dyn Source, now_ns: i64) -> hookspan_view::Result<String> {
    let health = source.health()?;
    let failing = health.destinations.iter().filter(|one| one.state != "ok" && one.state != "off");
    let data = json!({
        "now_us": now_ns / 1_000,
        "behind_bytes": health.journal.behind_bytes,
        "failing": failing.map(|one| &one.name).collect::<Vec<_>>(),
    });
    Ok(format!("event: health\ndata: {data}\n\n"))
}

/// JSON contains no raw line breaks, so one `data:` line can hold any value.
pub(super) fn event(text: &mut String, at: &Position, name: &str, data: &impl serde::Serialize) {
    let data = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    text.push_str(&format!("id: {}:{}\nevent: {name}\ndata: {data}\n\n", at.epoch, at.rev));
}
