use hookspan_core::Change;

use super::*;
use crate::store::sample;
use crate::store::write::{Changes, Store};

fn world() -> (tempfile::TempDir, std::path::PathBuf, Store) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("hookspan.db");
    let mut store = Store::open(&path).unwrap();
    let mut batch = Changes::default();
    batch.push(Change::Session(Box::new(sample::session("a"))));
    store.transaction(|open| open.changes(&batch)).unwrap();
    (temp, path, store)
}

fn done(marked: Result<Marked, OpenError>) -> SessionMarks {
    match marked.unwrap() {
        Marked::Done(marks) => marks,
        other => panic!("{other:?}"),
    }
}

#[test]
fn marks_are_set_and_removed_and_none_leaves_no_row() {
    let (_temp, path, _store) = world();
    let tag = |text: &str| MarkChange::tag(text).unwrap();
    let note = MarkChange::note("why\nnot").unwrap();
    let set =
        done(change(&path, "a", &[MarkChange::Star(true), tag("b"), tag("A"), tag("a"), note]));
    let tags = vec!["A".to_owned(), "b".to_owned()];
    assert_eq!(set, SessionMarks { starred: true, tags, note: "why\nnot".to_owned() });
    let db = open::reader(&path).unwrap();
    assert_eq!(all_of(&db, &["a", "b"]).unwrap().len(), 1);
    let gone = [
        MarkChange::Star(false),
        MarkChange::untag("a").unwrap(),
        MarkChange::untag("B").unwrap(),
        MarkChange::note("").unwrap(),
    ];
    assert_eq!(done(change(&path, "a", &gone)), SessionMarks::default());
    let rows = "SELECT (SELECT count(*) FROM mark) + (SELECT count(*) FROM tag)";
    assert_eq!(db.query_row(rows, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[test]
fn too_many_tags_and_unknown_sessions_change_nothing() {
    let (_temp, path, _store) = world();
    let tags: Vec<_> = (0..=TAGS_MAX).map(|n| MarkChange::tag(&format!("t{n}")).unwrap()).collect();
    assert_eq!(change(&path, "a", &tags).unwrap(), Marked::TooManyTags);
    assert_eq!(done(change(&path, "a", &tags[1..])).tags.len(), TAGS_MAX);
    assert_eq!(change(&path, "a", &tags[..1]).unwrap(), Marked::TooManyTags);
    assert_eq!(change(&path, "b", &tags[..1]).unwrap(), Marked::NoSession);
}

#[test]
fn filters_are_kept_by_page_and_name_up_to_a_bound() {
    let (_temp, path, _store) = world();
    let filter =
        |name: &str, query: &str| SavedFilter::new(FilterPage::Errors, name, query).unwrap();
    for number in 0..SAVED_MAX {
        assert!(save(&path, &filter(&format!("f{number}"), "tool=Shell")).unwrap());
    }
    assert!(!save(&path, &filter("one more", "tool=Read")).unwrap());
    assert!(save(&path, &filter("F0", "tool=Read")).unwrap(), "in place of f0");
    let db = open::reader(&path).unwrap();
    let kept = filters(&db).unwrap();
    assert_eq!(kept.len(), SAVED_MAX);
    assert!(kept.contains(&filter("F0", "tool=Read")));
    assert!(remove(&path, FilterPage::Errors, "f0").unwrap());
    assert!(!remove(&path, FilterPage::Errors, "f0").unwrap());
    assert!(!remove(&path, FilterPage::Files, "f1").unwrap());
}
