//! Flags that limit what a command lists, counts or deletes. Pages and the API have the same filters; see
//! `docs/figures.md`.

use hookspan_view::filter::{Unfit, WORDS, YES};
use hookspan_view::source::LineFilter;

use super::calendar::Calendar;
use crate::config::Misuse;

/// The filters as flags.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Narrow down")]
pub(super) struct Narrow {
    /// Only this tool; for an MCP tool its name without the server
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only this kind: turn, shell, mcp, edits, ...
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only turns of this model; "none": no model was named
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Only this project: the name of its folder, or its whole path; "none": no folder is known
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// "error": only what failed
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Since then: "2026-11-30" or "2026-11-30T09:15:00" in this machine's zone, or "2026-11-30T09:15:00Z"
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// End of the period; a day means the end of that day
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Sessions that ended on this branch; "none": no branch is known
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Sessions of which this came: tests_failed, tests_passed, pull_request, committed, left_open, unchanged, none
    #[arg(long, value_name = "WORD")]
    outcome: Option<String>,
    /// Sessions with this tag; "none": without any
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Sessions with a star
    #[arg(long)]
    starred: bool,
}

impl Narrow {
    /// The filter that these flags make together.
    ///
    /// # Errors
    ///
    /// [`Misuse`] if a flag's value is not valid.
    pub(super) fn filter(&self, calendar: &Calendar) -> Result<LineFilter, Misuse> {
        let Self { tool, kind, model, project, status, from, to, branch, outcome, tag, starred } =
            self;
        let starred = &starred.then(|| YES.to_owned());
        let values = [tool, kind, model, project, status, from, to, branch, outcome, tag, starred];
        let mut filter = LineFilter::default();
        for (word, value) in WORDS.into_iter().zip(values) {
            match (word, value) {
                (_, None) => {}
                ("from" | "to", Some(value)) => calendar.set(&mut filter, word, value)?,
                (_, Some(value)) => {
                    let set = filter.set(word, value).map(drop);
                    set.map_err(|Unfit { word, wanted }| Misuse(format!("--{word}: {wanted}")))?;
                }
            }
        }
        Ok(filter)
    }
}
