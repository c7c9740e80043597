//! Checks the editor of hooks.json with any text.

use std::path::Path;

use hookspan::parts::{Document, Entry, Events, Form, Made, Ours, entries, install, uninstall};

/// The text is either edited so that the edit can be undone byte for byte, or it is refused.
pub fn hooks_json(data: &[u8]) {
    let Ok(before) = std::str::from_utf8(data) else { return };
    let Ok(entry) = Entry::new(Path::new("/s/bin/hookspan-shim"), None, true) else { return };
    let events = Events::Minimal.names();
    let mut made = Made::default();
    let Ok(after) = install(before, &entry, &events, &mut made) else { return };
    let is_plain = |ours: &Ours| ours.recognised.form == Form::Plain && !ours.in_group;
    if Document::parse(before).is_ok_and(|it| !entries(&it).iter().all(is_plain)) {
        // Entries in other forms count as ours, or are converted to our form.
        let again = install(&after, &entry, &events, &mut made.clone());
        assert!(again.is_ok_and(|again| again == after), "a second install changes: {after}");
        return;
    }
    let Ok(document) = Document::parse(&after) else { panic!("an edit broke it: {after}") };
    let ours: Vec<_> =
        document.found().into_iter().filter(|found| found.is_ours()).map(|f| f.event).collect();
    assert!(events.iter().all(|event| ours.iter().any(|ours| ours == event)), "{after}");
    assert_eq!(ours.len(), events.len(), "{after}");
    let again = install(&after, &entry, &events, &mut made.clone());
    assert!(again.is_ok_and(|again| again == after), "a second install changes: {after}");
    let Ok(restored) = uninstall(&after, Some(&made), false) else { panic!("stuck: {after}") };
    let had_ours = Document::parse(before)
        .is_ok_and(|document| document.found().iter().any(|found| found.is_ours()));
    if had_ours {
        let left = Document::parse(&restored).map(|document| document.found());
        assert!(left.is_ok_and(|found| found.iter().all(|found| !found.is_ours())), "{restored}");
    } else {
        assert_eq!(restored, before, "installed: {after}");
    }
}
