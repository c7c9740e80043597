//! `hookspan mark`: a star, tags and a note for a session.

use std::process::ExitCode;

use hookspan_view::filter::Unfit;
use hookspan_view::item::MarkItem;
use hookspan_view::source::{MarkChange, Marked, TAGS_MAX};

use super::output::{note, print, print_json};
use super::sessions::{marks_word, short};
use super::{Global, show};
use crate::config::Misuse;
use crate::store::{marks, open};

/// Give a session a star, tags and a note; without options, print those that it has
///
/// Marks stay on this machine: no destination gets them. They survive a rebuild, and are deleted with the session.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  hookspan mark last --star\n  hookspan mark d95a19cf --tag flaky --tag later --note \"the lock is taken twice\"\n  \
                  hookspan mark last --untag later --note \"\"\n\n`hookspan sessions --starred` and `hookspan sessions --tag flaky` list them."
)]
pub(crate) struct Args {
    /// Session id, the beginning of one, or `last`
    #[arg(value_name = "ID")]
    id: String,
    /// Give it a star
    #[arg(long, conflicts_with = "unstar")]
    star: bool,
    /// Take its star
    #[arg(long)]
    unstar: bool,
    /// Add a tag: one word. May be given several times
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Remove a tag. May be given several times
    #[arg(long, value_name = "TAG")]
    untag: Vec<String>,
    /// Set the note; an empty one removes it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Print the marks as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    fn changes(&self) -> Result<Vec<MarkChange>, Misuse> {
        let unfit = |Unfit { word, wanted }| Misuse(format!("--{word}: {wanted}"));
        let star = (self.star || self.unstar).then_some(MarkChange::Star(self.star));
        let gone = self.untag.iter().map(|tag| MarkChange::untag(tag));
        let new = self.tag.iter().map(|tag| MarkChange::tag(tag));
        let note = self.note.as_deref().map(MarkChange::note);
        let changes = star.map(Ok).into_iter().chain(gone).chain(new).chain(note);
        changes.collect::<Result<_, _>>().map_err(unfit)
    }
}

/// Runs the command.
///
/// # Errors
/// There is no such session, a text is not valid, or the database cannot be written.
pub(crate) fn run(global: &Global, args: Args) -> anyhow::Result<ExitCode> {
    let changes = args.changes()?;
    let path = global.state.database();
    let database = open::reader(&path)?;
    let root = show::find(&database, &args.id)?;
    let marks = if changes.is_empty() {
        marks::of(&database, &root)?
    } else {
        match marks::change(&path, &root, &changes)? {
            Marked::Done(marks) => marks,
            Marked::NoSession => anyhow::bail!("session {root} is gone"),
            Marked::TooManyTags => {
                return Err(Misuse(format!("--tag: a session has at most {TAGS_MAX} tags")).into());
            }
        }
    };
    if args.json {
        print_json(&MarkItem::from(marks))?;
        return Ok(ExitCode::SUCCESS);
    }
    let said = [marks_word(&marks).trim_end().to_owned(), marks.note];
    let said: Vec<String> = said.into_iter().filter(|text| !text.is_empty()).collect();
    if said.is_empty() {
        note(&format!("session {} has no star, tag or note", short(&root)));
        return Ok(ExitCode::SUCCESS);
    }
    let lines = said.iter().flat_map(|text| text.lines());
    print(&lines.map(|line| crate::text::visible(line, usize::MAX) + "\n").collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}
