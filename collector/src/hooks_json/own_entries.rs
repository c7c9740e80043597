//! The entries of a hooks.json that run the hook program, in any form.

use super::document::{Command, Document};
use super::recognise::{Form, Recognised, recognise};

/// An entry of hooks.json that runs the hook program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ours {
    /// The event it stands under.
    pub event: String,
    /// The entry's index in the array of that event, or in its group if it is in one.
    pub index: usize,
    /// Whether it is one level deeper, in a `hooks` array of its own as in Claude's settings. Cursor has no such groups
    /// and does not run the entry.
    pub in_group: bool,
    /// Whether its group also contains other programs' hooks.
    pub shares_group: bool,
    /// Line in the file, from 1.
    pub line: usize,
    /// Column in the file, from 1.
    pub column: usize,
    /// The command, as written.
    pub command: String,
    /// What the command runs.
    pub recognised: Recognised,
}

impl Ours {
    /// Whether Cursor on this system would run the hook program through this entry, judging by its form.
    #[must_use]
    pub fn runs_here(&self) -> bool {
        !self.in_group && !matches!(self.recognised.form, Form::Elsewhere(_))
    }
}

/// Every entry that runs the hook program, in the order of the file.
#[must_use]
pub fn entries(document: &Document<'_>) -> Vec<Ours> {
    document.commands().into_iter().filter_map(Ours::of).collect()
}

impl Ours {
    fn of(command: Command) -> Option<Self> {
        let recognised = recognise(&command.command)?;
        Some(Self {
            event: command.event,
            index: command.index,
            in_group: command.group.is_some(),
            shares_group: command.group.is_some_and(|hooks| hooks > 1),
            line: command.line,
            column: command.column,
            command: command.command,
            recognised,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_tell_line_column_and_group() {
        let text = r#"{
  "version": 1,
  "hooks": {
    "stop": [
      { "hooks": [ { "type": "command", "command": "exec /x/hookspan-shim --dir /d stop" } ] },
      { "command": "./mine.sh" }, { "command": "HOOKSPAN_DIR=/d /x/hookspan-shim stop" },
      { "hooks": [ { "command": "./other.sh" }, { "command": "/x/hookspan-shim stop" } ] }
    ]
  }
}"#;
        let found = entries(&Document::parse(text).unwrap());
        let places: Vec<_> = found
            .iter()
            .map(|ours| (ours.line, ours.column, ours.index, ours.in_group, ours.shares_group))
            .collect();
        assert_eq!(
            places,
            [(5, 20, 0, true, false), (6, 35, 2, false, false), (7, 49, 3, true, true)]
        );
        assert_eq!(found.iter().filter(|ours| ours.runs_here()).count(), 1);
    }
}
