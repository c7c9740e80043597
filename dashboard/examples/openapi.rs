//! Writes the API's description from the handlers.
fn main() -> std::io::Result<()> {
    std::fs::write(
        concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json"),
        hookspan_dashboard::document(),
    )
}
