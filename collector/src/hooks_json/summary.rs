//! Summarises a change in a few lines.

use std::collections::BTreeSet;

use super::document::Document;
use super::own_entries;
use super::own_entries::Ours;
use super::recognise::Form;
use super::version::{self, Version};

/// The difference between two texts of hooks.json, by entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Added entries of ours.
    pub added: usize,
    /// Updated entries of ours.
    pub updated: usize,
    /// Removed entries of ours.
    pub removed: usize,
    /// Entries of other programs. They are kept.
    pub kept: usize,
    /// Programs that the updated entries ran before, if they differ.
    pub programs_before: BTreeSet<String>,
    /// State directories that the updated entries named before.
    pub dirs_before: BTreeSet<String>,
    /// The `version` that will be replaced by 1: line, column and text.
    pub version: Option<(usize, usize, String)>,
    /// Entries that run the hook program in another form. They are kept as they are.
    pub others: Vec<Ours>,
}

impl Summary {
    /// Compares two texts. An invalid text counts as empty.
    #[must_use]
    pub(crate) fn of(before: &str, after: &str) -> Self {
        let (before, after) = (Document::parse(before).ok(), Document::parse(after).ok());
        let ours = |document: &Option<Document<'_>>| {
            document.as_ref().map(own_entries::entries).unwrap_or_default()
        };
        let (old, new) = (ours(&before), ours(&after));
        let (old_plain, new_plain) = (plain(&old), plain(&new));
        let all = after.as_ref().map_or(0, |document| document.found().len());
        let mut summary = Self {
            kept: all.saturating_sub(new_plain.len()),
            others: new.iter().filter(|ours| !is_plain(ours)).cloned().collect(),
            ..Self::default()
        };
        for entry in &new_plain {
            let same = |old: &&&Ours| old.event == entry.event;
            let before = old_plain.iter().find(|old| same(old) && old.command == entry.command);
            let Some(before) = before.or_else(|| old_plain.iter().find(same)) else {
                summary.added += 1;
                continue;
            };
            if before.command != entry.command {
                summary.updated += 1;
                let (old, new) = (&before.recognised, &entry.recognised);
                if old.program != new.program {
                    summary.programs_before.insert(old.program.clone());
                }
                if old.dir != new.dir {
                    summary.dirs_before.extend(old.dir.clone());
                }
            }
        }
        summary.removed = (old_plain.len() + summary.added).saturating_sub(new_plain.len());
        let void = before.as_ref().map(version::of);
        if let Some(Version::Void { line, column, found, .. }) = void
            && after.as_ref().map(version::of) == Some(Version::Valid)
        {
            summary.version = Some((line, column, found));
        }
        summary
    }
}

/// Entries that `install` manages: those in its own form, and groups that it replaces by such entries.
fn plain(ours: &[Ours]) -> Vec<&Ours> {
    ours.iter().filter(|ours| is_plain(ours)).collect()
}

fn is_plain(ours: &Ours) -> bool {
    ours.recognised.form == Form::Plain && !ours.shares_group
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::edit::{Made, install};
    use super::super::recognise::System;
    use super::super::{Entry, Events};
    use super::*;

    fn installed(before: &str) -> Summary {
        let entry = Entry::new(Path::new("/s/bin/hookspan-shim"), Some(Path::new("/s")), true);
        let names = Events::Standard.names();
        let after = install(before, &entry.unwrap(), &names, &mut Made::default()).unwrap();
        Summary::of(before, &after)
    }

    #[test]
    fn a_summary_counts_entries_that_come_change_and_stay() {
        let new = installed("");
        assert_eq!((new.added, new.updated, new.removed, new.kept), (15, 0, 0, 0));
        let others =
            r#"{ "version": 1, "hooks": { "stop": [{ "command": "a" }, { "command": "b" }] } }"#;
        let beside = installed(others);
        assert_eq!((beside.added, beside.kept), (15, 2));
        let moved = installed(
            r#"{ "version": "1", "hooks": { "stop": [{ "command": "/x/bin/hookspan-shim --dir /x stop" }],
                "workspaceOpen": [{ "command": "/x/bin/hookspan-shim workspaceOpen" }] } }"#,
        );
        assert_eq!((moved.added, moved.updated, moved.removed), (14, 1, 1));
        assert_eq!(moved.dirs_before, BTreeSet::from(["/x".to_owned()]));
        assert_eq!(moved.version, Some((1, 14, "\"1\"".to_owned())));
    }

    #[test]
    fn entries_in_another_form_are_named_and_stay() {
        let found = installed(
            r#"{ "version": 1, "hooks": { "stop": [
                { "command": "HOOKSPAN_DIR=/x /x/hookspan-shim stop" },
                { "command": "C:\\Users\\kim\\hookspan-shim.exe stop", "timeout": 10 }
            ] } }"#,
        );
        assert_eq!((found.added, found.kept), (14, 2));
        let forms: Vec<_> = found.others.iter().map(|ours| ours.recognised.form).collect();
        assert_eq!(forms, [Form::Wrapped, Form::Elsewhere(System::Windows)]);
    }
}
