//! Flags that limit what a command lists, counts or deletes. Pages and API have the same ones: `docs/figures.md`.

use hookspan_view::filter::{Unfit, WORDS};
use hookspan_view::source::LineFilter;

use crate::config::Misuse;

/// The words as flags.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Narrow down")]
pub(super) struct Narrow {
    /// This tool only; an MCP tool by its own name
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// This kind only: turn, shell, mcp, edits, ...
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Turns of this model only
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// This project only: the name of its folder, or its whole path
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// "error": only what failed
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Since then: "2026-11-30" or "2026-11-30T09:15:00Z", in UTC
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Up to then; of a day to its end
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

impl Narrow {
    /// The filter that these flags make together.
    ///
    /// # Errors
    ///
    /// [`Misuse`] if a flag's value is not valid.
    pub(super) fn filter(&self) -> Result<LineFilter, Misuse> {
        let Self { tool, kind, model, project, status, from, to } = self;
        let mut filter = LineFilter::default();
        for (word, value) in WORDS.into_iter().zip([tool, kind, model, project, status, from, to]) {
            let set = value.as_ref().map_or(Ok(true), |value| filter.set(word, value));
            set.map_err(|Unfit { word, wanted }| Misuse(format!("--{word}: {wanted}")))?;
        }
        Ok(filter)
    }
}
