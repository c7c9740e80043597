//! Tests packs: hooks of a conversation are stored together, and only the raw log knows about packs.

use hookspan_core::Hook;

use super::*;
use crate::store::prune::Selection;
use crate::store::write::{Preparer, Store};

fn store() -> (tempfile::TempDir, Store) {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(&temp.path().join("hookspan.db")).unwrap();
    (temp, store)
}

/// Body of the hook `key` in `conversation`. If `conversation` is empty, a body that cannot be parsed.
fn body(key: u8, conversation: &str) -> Vec<u8> {
    let id = format!("\"conversation_id\":\"{conversation}\",");
    let id = if conversation.is_empty() { "no JSON" } else { &id };
    format!(
        "{{\"hook_event_name\":\"stop\",{id}\"key\":{key},\"text\":\"{}\"}}",
        "words ".repeat(99)
    )
    .into_bytes()
}

fn arrivals(hooks: &[(u8, &str)]) -> Vec<Arrival> {
    let mut preparer = Preparer::default();
    for (key, conversation) in hooks {
        let hook = Hook { body: body(*key, conversation), ..Hook::default() };
        preparer.add([*key; 16], 0, hook);
    }
    assert_eq!(preparer.waiting(), hooks.len());
    preparer.finish()
}

fn write(store: &mut Store, arrivals: &[Arrival]) {
    store
        .transaction(|open| arrivals.iter().try_for_each(|arrival| open.hook(arrival).map(drop)))
        .unwrap();
}

fn bodies(store: &mut Store) -> Vec<Vec<u8>> {
    let last = store.last_seq();
    (1..=last).filter_map(|seq| store.hook(seq).unwrap()).map(|hook| hook.body).collect()
}

/// Keys of the table of payloads, and the number of bytes in it.
fn payloads(store: &Store) -> (Vec<i64>, i64) {
    let sql = "SELECT seq, length(body) FROM payload ORDER BY seq";
    let mut statement = store.db.prepare(sql).unwrap();
    let rows: Vec<(i64, i64)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    (rows.iter().map(|row| row.0).collect(), rows.iter().map(|row| row.1).sum())
}

#[test]
fn hooks_of_a_conversation_that_come_together_share_a_pack_and_read_back_alone() {
    let (_temp, mut store) = store();
    let hooks = [(1, "a"), (2, "b"), (3, "a"), (4, ""), (5, "b"), (6, ""), (7, "a"), (8, "c")];
    write(&mut store, &arrivals(&hooks));
    let expected: Vec<_> = hooks.iter().map(|(key, of)| body(*key, of)).collect();
    assert_eq!(bodies(&mut store), expected);
    let (keys, together) = payloads(&store);
    assert_eq!(
        keys,
        [1, 2, 4, 6, 8],
        "one of `a`, one of `b`, and those without a conversation alone"
    );

    let (_temp, mut apart) = self::store();
    for hook in hooks {
        write(&mut apart, &arrivals(&[hook]));
    }
    assert_eq!(bodies(&mut apart), expected);
    let (keys, bytes) = payloads(&apart);
    assert!(keys.len() == 8 && together * 3 < bytes * 2, "{together} and {bytes}");
}

#[test]
fn a_pack_has_a_bound_and_a_large_body_is_alone() {
    let mut preparer = Preparer::default();
    let large = |len: usize| {
        [b"{\"conversation_id\":\"a\",\"x\":\"".as_slice(), &vec![b'x'; len], b"\"}"].concat()
    };
    for (key, len) in [(1, 30_000), (2, 30_000), (3, 30_000), (4, 90_000), (5, 10)] {
        preparer.add([key; 16], 0, Hook { body: large(len), ..Hook::default() });
    }
    let arrivals = preparer.finish();
    let alone: Vec<_> = arrivals.iter().map(|one| one.body.is_alone()).collect();
    assert_eq!(alone, [false, false, false, true, false]);
    assert!(arrivals.iter().all(|one| one.body.start + one.body.len <= one.body.pack.len));
    assert!(Arc::ptr_eq(&arrivals[2].body.pack, &arrivals[4].body.pack));
    assert!(!Arc::ptr_eq(&arrivals[0].body.pack, &arrivals[2].body.pack));
}

#[test]
fn a_pack_comes_with_the_first_of_its_hooks_that_is_new() {
    let (_temp, mut store) = store();
    write(&mut store, &arrivals(&[(1, "a")]));
    write(&mut store, &arrivals(&[(1, "a"), (2, "a"), (3, "a")]));
    // All hooks are known, so nothing of the pack is stored.
    write(&mut store, &arrivals(&[(2, "a"), (3, "a")]));
    assert_eq!(bodies(&mut store), [1, 2, 3].map(|key| body(key, "a")));
    assert_eq!(payloads(&store).0, [1, 2]);
}

#[test]
fn a_refused_batch_is_written_whole_the_next_time() {
    let (_temp, mut store) = store();
    let both = arrivals(&[(1, "a"), (2, "a")]);
    let refused = store.transaction(|open| {
        open.hook(&both[0])?;
        open.hook(&both[1])?;
        Err::<(), _>(rusqlite::Error::InvalidQuery)
    });
    refused.unwrap_err();
    write(&mut store, &both);
    assert_eq!(bodies(&mut store), [1, 2].map(|key| body(key, "a")));
}

#[test]
fn deleting_a_conversation_takes_its_packs_and_no_others() {
    let (_temp, mut store) = store();
    write(&mut store, &arrivals(&[(1, "a"), (2, "b"), (3, "a"), (4, "b"), (5, "")]));
    store.delete(&Selection::sessions(&["a".to_owned()])).unwrap();
    assert_eq!(bodies(&mut store), [body(2, "b"), body(4, "b"), body(5, "")]);
    assert_eq!(payloads(&store).0, [2, 5]);
}

#[test]
fn a_hook_that_is_read_as_another_conversations_later_leaves_the_pack() {
    let (_temp, mut store) = store();
    let all = arrivals(&[(1, "a"), (2, "a"), (3, "a"), (4, "b")]);
    write(&mut store, &all);
    let moved = Reading { conversation: "b".into(), ..all[1].reading.clone() };
    store.transaction(|open| open.folded(2, &moved)).unwrap();
    let expected = [(1, "a"), (2, "a"), (3, "a"), (4, "b")].map(|(key, of)| body(key, of));
    assert_eq!(bodies(&mut store), expected);
    assert_eq!(payloads(&store).0, [1, 2, 3, 4]);
    store.delete(&Selection::sessions(&["a".to_owned()])).unwrap();
    assert_eq!(bodies(&mut store), [body(2, "a"), body(4, "b")]);
}

#[test]
fn damage_of_a_pack_costs_the_bodies_in_it_and_is_counted() {
    let (_temp, mut store) = store();
    write(&mut store, &arrivals(&[(1, "a"), (2, "b"), (3, "a"), (4, "b")]));
    store.db.execute("UPDATE payload SET xxh64 = xxh64 + 1 WHERE seq = 1", []).unwrap();
    store.reopen().unwrap();
    assert_eq!(bodies(&mut store), [vec![], body(2, "b"), vec![], body(4, "b")]);
    assert_eq!(store.counted.get("damaged_body"), Some(&2));
}

#[test]
fn places_that_lie_outside_their_pack_are_damage() {
    let (_temp, mut store) = store();
    write(&mut store, &arrivals(&[(1, "a"), (2, "a")]));
    for (start, len) in [(-1_i64, 10_i64), (0, -1), (i64::MAX, i64::MAX), (1_000, 9_999)] {
        store
            .db
            .execute(
                "UPDATE raw_hook SET body_start = ?1, body_len = ?2 WHERE seq = 2",
                (start, len),
            )
            .unwrap();
        assert_eq!(bodies(&mut store), [body(1, "a"), vec![]], "{start} {len}");
    }
}
