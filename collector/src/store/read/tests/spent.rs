use super::*;

#[test]
fn totals_count_turns_of_the_day_only() {
    let mut turn = sample::turn("r");
    turn.tokens = Some(Tokens {
        input: Some(10),
        output: Some(2),
        cache_read: Some(3),
        cache_write: Some(1),
    });
    let old = sample::turn("old");
    let (_dir, _store, readers) = stored([
        session_at("r", 9),
        session_at("old", 0),
        Change::Turn(Box::new(turn.clone())),
        Change::Turn(Box::new(old)),
    ]);
    let sums = readers.with(|db| totals(db, 1)).unwrap();
    let expected = Totals { turns: 1, active_ns: 7, errors: 1, tokens: turn.tokens };
    assert_eq!(sums, expected);
    assert_eq!(readers.with(|db| totals(db, 100)).unwrap(), Totals::default());
}

#[test]
fn the_time_of_a_turn_counts_once_it_has_settled_and_goes_with_its_session() {
    let turn = |root: &str| {
        let mut span = sample::span(root, "turn");
        span.kind = SpanKind::Generation;
        (span.id, span.conversation) = (sample::turn(root).span, root.into());
        span.workspace = Some("/home/dev/api/".into());
        span
    };
    let open = |root: &str| Span { settled: false, ..turn(root) };
    let told = |root: &str| Change::Turn(Box::new(sample::turn(root)));
    let (_dir, mut store, readers) = stored([Change::Span(Box::new(open("r"))), told("r")]);
    const DAY: i64 = 86_400_000_000_000;
    let all = |readers: &Readers| -> Vec<DayTime> {
        let spent = readers.with(|db| spent(db, &[-DAY, 2 * DAY])).unwrap();
        spent.into_iter().map(|one| one.time).collect()
    };
    assert_eq!(all(&readers), []);
    // The turn counts once: first with the summary beside it, then by what is stored, and never twice.
    write(&mut store, [Change::Settle(SpanKey::of(&turn("r")))]);
    write(&mut store, [Change::Span(Box::new(turn("s"))), told("s")]);
    write(&mut store, [Change::Span(Box::new(turn("s"))), told("s")]);
    let found = all(&readers);
    let summary = sample::turn("r");
    let one = |turns: u64| DayTime {
        day: 0,
        project: Some("api".to_owned()),
        turns,
        calls: 3 * turns,
        errors: turns,
        active_ns: 7 * turns.cast_signed(),
        parts: Parts {
            thinking: summary.parts.thinking * turns.cast_signed(),
            shell: summary.parts.shell * turns.cast_signed(),
            other: summary.parts.other * turns.cast_signed(),
            ..Parts::default()
        },
        input: None,
        output: None,
    };
    assert_eq!(found, [one(2)]);
    store.delete(&Selection::sessions(&["s".to_owned()])).unwrap();
    assert_eq!(all(&readers), [one(1)]);
    store.delete(&Selection::sessions(&["r".to_owned()])).unwrap();
    assert_eq!(all(&readers), []);
}

#[test]
fn tokens_of_a_day_are_unknown_until_a_turn_reports_some() {
    let told = |root: &str, input: Option<u64>| {
        let mut span = sample::span(root, "turn");
        span.kind = SpanKind::Generation;
        let mut turn = sample::turn(root);
        (span.id, span.conversation) = (turn.span, root.into());
        turn.tokens = input.map(|input| Tokens { input: Some(input), ..Tokens::default() });
        let session = Change::Session(Box::new(sample::session(root)));
        [session, Change::Span(Box::new(span)), Change::Turn(Box::new(turn))]
    };
    let (_dir, mut store, readers) = stored(told("r", None));
    let tokens = || {
        let day = readers.with(|db| spent(db, &[0, 86_400_000_000_000])).unwrap().remove(0).time;
        (day.turns, day.input, day.output)
    };
    assert_eq!(tokens(), (1, None, None));
    write(&mut store, told("s", Some(0)));
    assert_eq!(tokens(), (2, Some(0), None));
    write(&mut store, told("t", Some(7)));
    assert_eq!(tokens(), (3, Some(7), None));
    let day = [0, 86_400_000_000_000];
    let none = LineFilter::default();
    let counted = |most| readers.with(|db| spent_of(db, &day, &none, most)).unwrap();
    assert_eq!(counted(3), Some(readers.with(|db| spent(db, &day)).unwrap()));
    assert_eq!(counted(2), None, "more than may be looked at");
    for root in ["s", "t"] {
        store.delete(&Selection::sessions(&[root.to_owned()])).unwrap();
    }
    assert_eq!(tokens(), (1, None, None));
}

#[test]
fn columns_of_any_zone_have_what_a_count_of_each_turn_has() {
    const QUARTER: i64 = 900_000_000_000;
    let mut changes = Vec::new();
    // Turns around midnight of several days, of two projects and three models.
    for n in 0..240_i64 {
        let root = format!("r{n}");
        let start = n * 5 * QUARTER + n * 1_000_000_007;
        let mut turn = sample::turn(&root);
        let mut span = Span { kind: SpanKind::Generation, ..sample::span(&root, "turn") };
        (span.id, span.conversation) = (turn.span, Arc::clone(&span.root));
        span.start = Timestamp(start);
        span.end = Some(End { at: Timestamp(start + n), reason: EndReason::Matched });
        span.settled = true;
        let project = if n % 3 == 0 { "/w/api" } else { "/w/web" };
        span.workspace = Some(project.into());
        turn.started_at = span.start;
        turn.ended_at = span.end.map(|end| end.at);
        turn.model = (n % 4 > 0).then(|| format!("m{}", n % 2).into());
        turn.tokens = (n % 5 > 0).then(|| Tokens {
            input: Some(n.cast_unsigned()),
            output: Some(1),
            cache_read: Some(2),
            cache_write: None,
        });
        let mut session = sample::session(&root);
        session.workspace = Some(project.into());
        (session.started_at, session.last_at) = (span.start, Timestamp(start + n));
        changes.push(Change::Session(Box::new(session)));
        changes.push(Change::Span(Box::new(span)));
        changes.push(Change::Turn(Box::new(turn)));
    }
    let (_dir, _store, readers) = stored(changes);
    // UTC, Berlin with a change of the clock, New York, Kathmandu; a column of several days, and one of an hour.
    for (offset, lengths) in [
        (0, vec![96; 13]),
        (-8, vec![96, 96, 92, 96, 100, 96 * 7]),
        (20, vec![96; 12]),
        (-23, vec![4, 92, 96, 1, 2, 93, 96, 96 * 3]),
    ] {
        let mut edges = vec![offset * QUARTER];
        for length in lengths {
            edges.push(edges.last().unwrap() + length * QUARTER);
        }
        let sums = readers.with(|db| spent(db, &edges)).unwrap();
        let counted = readers.with(|db| spent_of(db, &edges, &LineFilter::default(), 1_000));
        assert_eq!(Some(&sums), counted.unwrap().as_ref(), "{offset}");
        assert!(sums.len() > 10, "{offset}");
    }
}
