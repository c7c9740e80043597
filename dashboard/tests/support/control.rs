//! The changes that a page may request, without any effect.

use hookspan_view::Result;
use hookspan_view::source::{Control, Deleted};

/// Knows the destination `datadog` only.
#[derive(Debug)]
pub struct OneDestination;

impl Control for OneDestination {
    fn retry(&self, destination: &str) -> Result<bool> {
        Ok(destination == "datadog")
    }

    fn delete(&self, roots: &[String]) -> Result<Deleted> {
        let sessions = roots.len() as u64;
        Ok(Deleted { sessions, spans: sessions * 10, hooks: sessions * 20, ..Deleted::default() })
    }
}
