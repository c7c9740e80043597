//! Tests the order of deletion, and that exactly what was counted is deleted.

use hookspan_core::{Change, Hook, Timestamp};

use super::*;
use crate::store::sample;
use crate::store::write::{Arrival, Changes, Preparer, Store};

fn keep(max_age_ns: i64, max_bytes: u64) -> Retention {
    Retention { max_age_ns, max_bytes }
}

fn hook(at: i64, body: &str) -> Arrival {
    let hook = Hook { observed_at: Timestamp(at), body: body.into(), ..Hook::default() };
    let mut id = [0; 16];
    id[..8].copy_from_slice(&at.to_be_bytes());
    id[15] = body.len() as u8;
    Preparer::default().prepare(id, 0, hook)
}

/// A store with sessions of one hook each, and with unowned hooks.
fn filled(sessions: &[(&str, i64)], unowned: &[(&str, i64)]) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("x.db")).unwrap();
    let mut changes = Changes::default();
    let mut hooks = Vec::new();
    for (root, at) in sessions {
        let mut session = sample::session(root);
        session.last_at = Timestamp(*at);
        changes.push(Change::Session(Box::new(session)));
        changes.push(Change::Span(Box::new(sample::span(root, "Shell"))));
        let body = format!("{{\"hook_event_name\":\"stop\",\"conversation_id\":\"{root}\"}}");
        hooks.push(hook(*at, &body));
    }
    hooks.extend(unowned.iter().map(|(body, at)| hook(*at, body)));
    store
        .transaction(|open| {
            open.hooks(&hooks)?
                .len()
                .eq(&hooks.len())
                .then_some(())
                .ok_or(rusqlite::Error::InvalidQuery)
        })
        .unwrap();
    store.transaction(|open| open.changes(&changes)).unwrap();
    (folder, store)
}

fn all_that_goes(
    store: &mut Store,
    next: impl Fn(&Connection) -> Selection,
) -> (Vec<Selection>, Deleted) {
    let (mut steps, mut sum) = (Vec::new(), Deleted::default());
    loop {
        let what = store.run(|db| Ok(next(db))).unwrap();
        if what.is_empty() {
            return (steps, sum);
        }
        let one = store.delete(&what).unwrap().0;
        sum.sessions += one.sessions;
        sum.turns += one.turns;
        sum.spans += one.spans;
        sum.hooks += one.hooks;
        sum.bytes += one.bytes;
        steps.push(what);
        assert!(steps.len() < 50, "it does not end: {steps:?}");
    }
}

#[test]
fn sessions_are_due_by_age_or_by_the_size_of_the_database_oldest_first() {
    let (_folder, mut store) = filled(&[("new", 900), ("old", 100), ("older", 50)], &[]);
    store
        .run(|db| {
            assert!(due(db, keep(0, 0), 1_000)?.is_empty());
            assert_eq!(due(db, keep(500, 0), 1_000)?.sessions, ["older", "old"]);
            assert_eq!(due(db, keep(5_000, 1), 1_000)?.sessions, ["older", "old", "new"]);
            assert!(due(db, keep(0, 1 << 40), 1_000)?.is_empty());
            Ok(())
        })
        .unwrap();
}

#[test]
fn hooks_of_nobody_go_before_any_session_and_by_their_own_age() {
    let unowned = [("no JSON", 300), ("[1]", 200), ("later", 950)];
    let (_folder, mut store) = filled(&[("old", 100), ("new", 900)], &unowned);
    let first = store.run(|db| due(db, keep(0, 1), 1_000)).unwrap();
    assert_eq!((first.sessions.len(), &*first.hooks), (0, &[4, 3, 5][..]), "oldest first");
    let (steps, _) = all_that_goes(&mut store, |db| due(db, keep(500, 0), 1_000).unwrap());
    assert_eq!(steps[0].hooks, [4, 3]);
    assert_eq!(steps[1].sessions, ["old"]);
    assert_eq!(steps.len(), 2, "what is younger stays: {steps:?}");
}

#[test]
fn thousands_of_broken_hooks_cost_no_session() {
    // These words do not compress well.
    let word = |at: u64| format!("{:016x}", at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let broken: Vec<String> =
        (0..4_000).map(|i| (0..60).map(|j| word(60 * i + j)).collect()).collect();
    let unowned: Vec<(&str, i64)> = broken.iter().map(|body| &**body).zip(1_000..).collect();
    let names: Vec<String> = (0..30).map(|i| format!("session-{i}")).collect();
    let sessions: Vec<(&str, i64)> = names.iter().map(|name| &**name).zip(500..).collect();
    let (_folder, mut store) = filled(&sessions, &unowned);
    let (steps, gone) = all_that_goes(&mut store, |db| due(db, keep(0, 1 << 20), 9_000).unwrap());
    assert_eq!(gone.sessions, 0, "{gone:?}");
    assert!(gone.hooks > 0 && steps.iter().all(|step| step.hooks.len() <= HOOKS_STEP as usize));
}

#[test]
fn a_conversation_that_never_became_a_session_goes_with_its_hooks() {
    let lonely = "{\"conversation_id\":\"lonely\",\"cut";
    let (_folder, mut store) = filled(&[("kept", 900)], &[(lonely, 100), (lonely, 200)]);
    let what = store.run(|db| due(db, keep(500, 0), 1_000)).unwrap();
    assert_eq!((what.hooks.len(), what.conversations.len()), (0, 1), "{what:?}");
    assert_eq!(store.delete(&what).unwrap().0.hooks, 2);
    // A conversation that became a session in the meantime stays.
    let kept: i64 = store
        .run(|db| db.query_row("SELECT id FROM name WHERE text = 'kept'", [], |row| row.get(0)))
        .unwrap();
    let late = Selection { conversations: vec![kept], ..Selection::default() };
    assert_eq!(store.delete(&late).unwrap().0, Deleted::default());
}

#[test]
fn nothing_is_due_while_hooks_wait_to_be_folded() {
    let (_folder, mut store) = filled(&[("a", 100)], &[("x", 100)]);
    store.start_rebuild("epoch").unwrap();
    assert!(store.run(|db| due(db, keep(1, 1), 1_000)).unwrap().is_empty());
}

#[test]
fn what_is_counted_is_what_goes() {
    let unowned = [("no JSON", 300), ("[1]", 200), ("{\"conversation_id\":\"lonely\",\"cut", 10)];
    let (_folder, mut store) = filled(&[("a", 100), ("b", 400), ("c", 900)], &unowned);
    for before in [0, 250, 500, i64::MAX] {
        let counted = store.run(|db| count(db, before)).unwrap();
        let (_, gone) = all_that_goes(&mut store, |db| older_than(db, before).unwrap());
        assert_eq!(gone, counted, "before {before}");
        assert_eq!(store.run(|db| count(db, before)).unwrap(), Deleted::default());
    }
}
