//! Tests the store with a real database: what is written can be read back once, and nothing of a failed batch remains.

use std::sync::Arc;

use hookspan_core::{Change, Hook, Span, SpanKey, Timestamp};

use super::*;
use crate::store::open::reader;
use crate::store::rows::{
    self, SESSION_COLUMNS, SESSION_TABLES, SPAN_COLUMNS, SPAN_TABLES, TURN_COLUMNS, TURN_TABLES,
};
use crate::store::sample;
use crate::store::write::Preparer;

fn store() -> (tempfile::TempDir, Store) {
    let temp = tempfile::tempdir().unwrap();
    let store = Store::open(&temp.path().join("hookspan.db")).unwrap();
    (temp, store)
}

fn arrival(key: u8, body: &[u8]) -> Arrival {
    let hook = Hook {
        observed_at: Timestamp(i64::from(key)),
        boottime_ns: Some(u64::MAX),
        argument: Some("stop".into()),
        body: body.to_vec(),
        ..Hook::default()
    };
    Preparer::default().prepare([key; 16], 2, hook)
}

fn write(open: &mut Transaction<'_>, arrival: &Arrival) -> rusqlite::Result<bool> {
    open.hook(arrival).map(|seq| seq.is_some())
}

fn changes(list: Vec<Change>) -> Changes {
    let mut changes = Changes::default();
    list.into_iter().for_each(|change| changes.push(change));
    changes
}

fn number(store: &Store, sql: &str) -> i64 {
    store.db.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn core_values_read_back_as_they_were() {
    let (_temp, mut store) = store();
    let (span, session, turn) =
        (sample::span("c1", "Shell"), sample::session("c1"), sample::turn("c1"));
    let all = changes(vec![
        Change::Span(Box::new(span.clone())),
        Change::Session(Box::new(session.clone())),
        Change::Turn(Box::new(turn.clone())),
    ]);
    let ((), committed) = store.transaction(|open| open.changes(&all)).unwrap();
    assert_eq!(committed.sessions, BTreeMap::from([("c1".to_owned(), 1)]));
    assert!(committed.settled);

    let db = reader(&store.path).unwrap();
    let sql = format!("SELECT {SPAN_COLUMNS} FROM {SPAN_TABLES}");
    assert_eq!(db.query_row(&sql, [], rows::span).unwrap(), (1, span));
    let sql = format!("SELECT {SESSION_COLUMNS} FROM {SESSION_TABLES}");
    assert_eq!(db.query_row(&sql, [], rows::session).unwrap(), session);
    let sql = format!("SELECT {TURN_COLUMNS} FROM {TURN_TABLES}");
    assert_eq!(db.query_row(&sql, [], rows::turn).unwrap(), turn);
}

#[test]
fn a_repeated_hook_changes_no_row_and_takes_no_place() {
    let (_temp, mut store) = store();
    let body = br#"{"hook_event_name":"stop","conversation_id":"c1"}"#;
    let one = |open: &mut Transaction<'_>| write(open, &arrival(1, body));
    assert!(store.transaction(one).unwrap().0);
    assert!(!store.transaction(one).unwrap().0);
    let both = |open: &mut Transaction<'_>| {
        Ok((write(open, &arrival(1, b"other"))?, write(open, &arrival(2, b"x"))?))
    };
    assert_eq!(store.transaction(both).unwrap().0, (false, true));
    assert_eq!(store.last_seq(), 2);
    let hook = store.hook(1).unwrap().unwrap();
    assert_eq!(hook, Hook { seq: 1, body: body.to_vec(), ..arrival(1, body).hook });
}

#[test]
fn a_failed_batch_leaves_nothing_and_may_be_repeated() {
    let (_temp, mut store) = store();
    let all = changes(vec![Change::Span(Box::new(sample::span("c1", "Shell")))]);
    store.count("received", 1);
    let mut fail = true;
    for _ in 0..2 {
        let result = store.transaction(|open| {
            write(open, &arrival(1, b"x"))?;
            open.changes(&all)?;
            if std::mem::take(&mut fail) { Err(rusqlite::Error::InvalidQuery) } else { Ok(()) }
        });
        assert_eq!(result.is_ok(), number(&store, "SELECT count(*) FROM span") == 1);
    }
    assert_eq!(store.last_seq(), 1);
    assert_eq!(number(&store, "SELECT max(seq) FROM settled"), 1);
    assert_eq!(
        number(&store, "SELECT sum(count) FROM histogram WHERE days = 1 AND dimension = 'kind'"),
        1
    );
    assert_eq!(number(&store, "SELECT value FROM counter WHERE key = 'received'"), 2);
    assert_eq!(number(&store, "SELECT CAST(value AS INTEGER) FROM state WHERE key = 'rev'"), 1);
}

#[test]
fn a_span_settles_and_counts_once_whatever_follows() {
    let (_temp, mut store) = store();
    let mut open_span = sample::span("c1", "Shell");
    (open_span.settled, open_span.end) = (false, None);
    let settled = sample::span("c1", "Shell");
    for span in [&open_span, &settled, &settled] {
        let one = changes(vec![Change::Span(Box::new(span.clone()))]);
        store.transaction(|open| open.changes(&one)).unwrap();
    }
    let other = changes(vec![Change::Span(Box::new(sample::span("c1", "Read")))]);
    store.transaction(|open| open.changes(&other)).unwrap();
    let places = "SELECT group_concat(seq) FROM (SELECT seq FROM settled ORDER BY span)";
    let text: String = store.db.query_row(places, [], |row| row.get(0)).unwrap();
    assert_eq!(text, "1,2");
    assert_eq!(number(&store, "SELECT count(*) FROM unsettled"), 0);
    assert_eq!(
        number(&store, "SELECT count FROM histogram WHERE days = 1 AND dimension = 'kind'"),
        2
    );
    assert_eq!(number(&store, "SELECT count FROM histogram WHERE days = 1 AND name = 'Shell'"), 1);
    assert_eq!(number(&store, "SELECT errors FROM histogram WHERE days = 1 AND name = 'Shell'"), 1);
}

#[test]
fn a_span_settles_wherever_it_is_by_then() {
    let (temp, mut store) = store();
    let told = sample::span("c1", "Shell");
    let running = Span { settled: false, ..told.clone() };
    let bind = |root: &str| Change::Bind { conversation: "c1".into(), root: root.into() };
    let settle = || changes(vec![Change::Settle(SpanKey::of(&told))]);
    let all = changes(vec![bind("c1"), Change::Span(Box::new(running))]);
    store.transaction(|open| open.changes(&all)).unwrap();
    assert_eq!(number(&store, "SELECT count(*) FROM unsettled"), 1);
    store.transaction(|open| open.changes(&changes(vec![bind("parent")]))).unwrap();
    // The span is counted once, whether or not the store still has its old facts in memory.
    store.transaction(|open| open.changes(&settle())).unwrap();
    drop(store);
    let mut store = Store::open(&temp.path().join("hookspan.db")).unwrap();
    store.transaction(|open| open.changes(&settle())).unwrap();
    let nobody = SpanKey { id: told.id, conversation: "nobody".into() };
    let all = changes(vec![Change::Settle(nobody.clone()), Change::Withdraw(nobody)]);
    store.transaction(|open| open.changes(&all)).unwrap();
    assert_eq!(number(&store, "SELECT count(*) FROM unsettled"), 0);
    assert_eq!(number(&store, "SELECT total(seq) = 1 FROM settled"), 1);
    assert_eq!(number(&store, "SELECT count FROM histogram WHERE days = 1 AND name = 'Shell'"), 1);
}

#[test]
fn a_child_that_changes_its_parent_takes_what_is_unsettled_along() {
    let bind = |root: &str| Change::Bind { conversation: "c".into(), root: root.into() };
    let told = |root: &str, settled: bool| {
        let span = sample::span("c", "Shell");
        let conversation = "c".into();
        Change::Span(Box::new(Span { root: root.into(), conversation, settled, ..span }))
    };
    let key = || SpanKey { id: sample::span("c", "Shell").id, conversation: "c".into() };
    for last in [Change::Settle(key()), told("r2", true), Change::Withdraw(key())] {
        let (_temp, mut store) = store();
        let left = i64::from(!matches!(last, Change::Withdraw(_)));
        for list in
            [vec![bind("r1"), told("r1", false)], vec![bind("r2"), told("r2", false)], vec![last]]
        {
            let all = changes(list);
            store.transaction(|open| open.changes(&all)).unwrap();
        }
        assert_eq!(number(&store, "SELECT count(*) FROM unsettled"), 0);
        assert_eq!(number(&store, "SELECT count(*) FROM settled"), left);
        assert_eq!(
            number(
                &store,
                "SELECT coalesce(sum(count), 0) FROM histogram WHERE days = 1 AND name = 'Shell'"
            ),
            left
        );
    }
}

#[test]
fn sketches_survive_a_restart_and_add_up() {
    let (temp, mut store) = store();
    for key in ["a", "b", "c"] {
        let one = changes(vec![Change::Span(Box::new(sample::span(key, "Shell")))]);
        store.transaction(|open| open.changes(&one)).unwrap();
        store = Store::open(&temp.path().join("hookspan.db")).unwrap();
    }
    assert_eq!(number(&store, "SELECT count FROM histogram WHERE days = 1 AND name = 'Shell'"), 3);
    let bytes: Vec<u8> = store
        .db
        .query_row("SELECT sketch FROM histogram WHERE days = 1 AND name = 'Shell'", [], |row| {
            row.get(0)
        })
        .unwrap();
    let read: hdrhistogram::Histogram<u64> =
        hdrhistogram::serialization::Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
    assert_eq!(read.len(), 3);
    let p50 = read.value_at_quantile(0.5);
    assert!((990_000..=1_010_000).contains(&p50), "{p50}");
}

#[test]
fn binding_a_child_moves_what_stood_under_it() {
    let (_temp, mut store) = store();
    let bind = |conversation: &str, root: &str| Change::Bind {
        conversation: conversation.into(),
        root: root.into(),
    };
    let alone = changes(vec![
        bind("parent", "parent"),
        bind("child", "child"),
        Change::Session(Box::new(sample::session("child"))),
        Change::Turn(Box::new(sample::turn("child"))),
        Change::Span(Box::new(sample::span("child", "Read"))),
    ]);
    store.transaction(|open| open.changes(&alone)).unwrap();
    let bound = changes(vec![bind("child", "parent")]);
    store.transaction(|open| open.changes(&bound)).unwrap();
    assert_eq!(number(&store, "SELECT count(*) FROM session"), 0);
    assert_eq!(number(&store, "SELECT count(*) FROM turn"), 0);
    let root = "SELECT count(*) FROM span s JOIN name n ON n.id = s.root WHERE n.text = 'parent'";
    assert_eq!(number(&store, root), 1);
    assert_eq!(number(&store, "SELECT count(*) FROM conversation WHERE held"), 2);
    let gone = changes(vec![Change::Forget("parent".into())]);
    store.transaction(|open| open.changes(&gone)).unwrap();
    assert_eq!(number(&store, "SELECT count(*) FROM conversation WHERE held"), 0);
}

#[test]
fn a_withdrawn_span_is_gone_and_may_come_back() {
    let (_temp, mut store) = store();
    let span = sample::span("c1", "Shell");
    let steps = [
        (vec![Change::Span(Box::new(span.clone()))], 1),
        (vec![Change::Withdraw(SpanKey::of(&span))], 0),
        (vec![Change::Withdraw(SpanKey::of(&span)), Change::Span(Box::new(span.clone()))], 1),
        (vec![Change::Span(Box::new(span.clone())), Change::Withdraw(SpanKey::of(&span))], 0),
    ];
    for (list, left) in steps {
        let all = changes(list);
        store.transaction(|open| open.changes(&all)).unwrap();
        for table in ["span", "settled"] {
            assert_eq!(number(&store, &format!("SELECT count(*) FROM {table}")), left, "{table}");
        }
    }
}

#[test]
fn horizons_never_pass_a_hook_that_is_still_to_come() {
    let (_temp, mut store) = store();
    let import = |key: u8, at: i64| {
        let mut arrival = arrival(key, b"x");
        arrival.hook.observed_at = Timestamp(at);
        arrival.hook.source = HookSource::Import;
        arrival
    };
    let live = |key: u8, at: i64| {
        let mut live = import(key, at);
        live.hook.source = HookSource::Shim;
        live
    };
    store
        .transaction(|open| {
            for arrival in [
                live(1, 100),
                live(2, 110),
                live(3, 120),
                import(4, 50),
                import(5, 20),
                import(6, 30),
                import(7, 10),
                live(8, 130),
            ] {
                write(open, &arrival)?;
            }
            Ok(())
        })
        .unwrap();
    store.start_rebuild("e").unwrap();
    assert_eq!(store.horizons(1).unwrap(), [110, 120, 10, 10, 10, 10, 130, i64::MIN]);
    assert_eq!(store.horizons(3).unwrap(), [10, 10, i64::MIN]);
    assert_eq!(store.horizons(8).unwrap(), [i64::MIN]);
}

#[test]
fn a_damaged_body_reads_as_an_empty_one_and_is_counted() {
    let (_temp, mut store) = store();
    store.transaction(|open| write(open, &arrival(1, &[b'a'; 4_096]))).unwrap();
    store.db.execute("UPDATE payload SET body = zeroblob(9)", []).unwrap();
    assert_eq!(store.hook(1).unwrap().unwrap().body, b"");
    store.transaction(|_| Ok(())).unwrap();
    assert_eq!(number(&store, "SELECT value FROM counter WHERE key = 'damaged_body'"), 1);
}

#[test]
fn a_commit_in_haste_leaves_the_disk_for_later_and_only_until_told_otherwise() {
    let (_temp, mut store) = store();
    store.checkpoint_beside().unwrap();
    let level = |store: &Store| number(store, "PRAGMA synchronous");
    assert_eq!(level(&store), open::FULL);
    store.set_haste(true).unwrap();
    assert_eq!(level(&store), open::NORMAL);
    store.transaction(|open| write(open, &arrival(1, b"x"))).unwrap();
    store.set_haste(false).unwrap();
    assert_eq!(level(&store), open::FULL);
    store.set_haste(true).unwrap();
    store.reopen().unwrap();
    assert_eq!(level(&store), open::FULL);
    assert!(store.checkpoint().unwrap(), "all of the log is in the database");
}

#[test]
fn the_log_is_moved_beside_the_writer_and_stays_bounded() {
    let (temp, mut store) = store();
    store.checkpoint_beside().unwrap();
    store.set_haste(true).unwrap();
    let log = temp.path().join("hookspan.db-wal");
    let body = vec![b'x'; 20_000];
    let mut largest = 0;
    for number in 0..6_000_u64 {
        let hook = Hook { body: body.clone(), ..Hook::default() };
        let id = u128::from(number).to_be_bytes();
        let mut one = Preparer::default().prepare(id, 0, hook);
        // The body is stored as it came, because it cannot be compressed.
        one.body.pack = Arc::new(crate::store::codec::Packed {
            codec: 0,
            len: body.len() as u64,
            xxh64: one.body.xxh64,
            bytes: body.clone(),
        });
        store.written += 40;
        store.transaction(|open| open.hook(&one)).unwrap();
        largest = largest.max(log.metadata().unwrap().len());
    }
    assert!(largest < 90 << 20, "{largest}");
    assert!(store.checkpoint().unwrap());
    assert_eq!(number(&store, "SELECT count(*) FROM payload"), 6_000);
}

#[test]
fn a_store_that_older_rules_derived_is_told_apart_until_it_is_rebuilt() {
    let (_temp, mut store) = store();
    let older = |store: &Store| crate::store::cli::has_older_rules(&store.db).unwrap();
    store.begin("1").unwrap();
    assert!(!older(&store));
    let span = changes(vec![Change::Span(Box::new(sample::span("r", "a")))]);
    store.transaction(|open| open.changes(&span)).unwrap();
    assert!(!older(&store));
    store.db.execute("UPDATE state SET value = '0' WHERE key = 'rules'", []).unwrap();
    assert!(older(&store));
    store.begin("2").unwrap();
    assert!(older(&store), "opening it derives nothing");
    store.start_rebuild("3").unwrap();
    store.transaction(|open| open.changes(&span)).unwrap();
    assert!(!older(&store));
    store.db.execute("DELETE FROM state WHERE key = 'rules'", []).unwrap();
    assert!(older(&store), "before there was a number");
}

#[test]
fn the_number_of_a_deleted_hook_is_not_given_again() {
    let (temp, mut store) = store();
    let path = temp.path().join("hookspan.db");
    let hook = |number: u8, conversation: &str| {
        let body =
            format!("{{\"hook_event_name\":\"stop\",\"conversation_id\":\"{conversation}\"}}");
        arrival(number, body.as_bytes())
    };
    for (number, conversation) in [(1, "old"), (2, "new"), (3, "new")] {
        let one = hook(number, conversation);
        store.transaction(|open| open.hook(&one)).unwrap();
    }
    let of = |store: &Store, seq: i64| crate::store::prune::Selection {
        conversations: vec![number(
            store,
            &format!("SELECT conversation FROM raw_hook WHERE seq = {seq}"),
        )],
        ..Default::default()
    };
    let what = of(&store, 3);
    assert_eq!(store.delete(&what).unwrap().0.hooks, 2);
    assert_eq!(number(&store, "SELECT max(seq) FROM raw_hook"), 1);
    drop(store);

    let mut store = Store::open(&path).unwrap();
    assert_eq!(store.last_seq(), 3);
    assert!(!store.is_behind(), "what is gone does not wait to be folded");
    let (seq, _) = store.transaction(|open| open.hook(&hook(4, "old"))).unwrap();
    assert_eq!(seq, Some(4), "whoever follows the raw log by number sees it");
    let what = of(&store, 4);
    store.delete(&what).unwrap();
    store.start_rebuild("e2").unwrap();
    drop(store);
    assert_eq!(Store::open(&path).unwrap().last_seq(), 4);
}
