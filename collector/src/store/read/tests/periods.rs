use super::*;

#[test]
fn failures_durations_and_percentiles_are_read() {
    let call = |key: &str| {
        let mut span = sample::span("r", key);
        span.name = "execute_tool Shell cargo".to_owned();
        span.plain_name = "execute_tool Shell".into();
        let tool = span.attributes.iter_mut().find(|said| said.key == "gen_ai.tool.name");
        tool.unwrap().value = Value::Str("Shell".into());
        span
    };
    let kind = LineKind::of(&call("a")).as_str();
    let spans = ["a", "b"].map(|key| Change::Span(Box::new(call(key))));
    let (_dir, _store, readers) = stored(spans);
    let all = LineFilter::default();
    let failures = readers.with(|db| lines::failures(db, &all, 10)).unwrap();
    assert_eq!(failures.len(), 2);
    assert_eq!((&*failures[0].root, &*failures[0].message), ("r", "exit code 101"));
    let none = LineFilter { tool: Some("Read".to_owned()), ..LineFilter::default() };
    assert!(readers.with(|db| lines::failures(db, &none, 10)).unwrap().is_empty());
    let shell = LineFilter { tool: Some("shell".to_owned()), ..LineFilter::default() };
    assert_eq!(readers.with(|db| lines::failures(db, &shell, 10)).unwrap().len(), 2);
    let hour = sample::span("r", "a").start.0.div_euclid(3_600_000_000_000);
    let cells = readers.with(|db| heat(db, "kind", Some(kind), (hour, hour), false)).unwrap();
    assert_eq!(cells, [HeatCell { hour, bucket: 19, count: 2 }]);
    assert!(
        readers.with(|db| heat(db, "kind", Some("x"), (hour, hour), false)).unwrap().is_empty()
    );
    let day = sample::span("r", "a").start.0.div_euclid(86_400_000_000_000);
    let rows = readers.with(|db| latency(db, "kind", (day, day))).unwrap();
    assert_eq!((rows[0].name.as_str(), rows[0].count, rows[0].errors), (kind, 2, 2));
    let p50 = rows[0].p50_us.unwrap();
    assert!((990_000..=1_010_000).contains(&p50), "{p50}");
    assert!(readers.with(|db| latency(db, "kind", (day + 1, day + 9))).unwrap().is_empty());
}

#[test]
fn percentiles_of_any_period_are_those_of_its_sorted_durations() {
    const DAY: i64 = 86_400_000_000_000;
    let first = sample::span("r", "a").start.0.div_euclid(DAY);
    let us = |n: i64| 700 + n * n * 1_313 % 90_000_000;
    let spans = (0..900_i64).map(|n| {
        let mut span = sample::span("r", &n.to_string());
        span.start = Timestamp((first + n / 10) * DAY + n * 1_000);
        span.end = span.end.map(|end| End { at: Timestamp(span.start.0 + us(n) * 1_000), ..end });
        Change::Span(Box::new(span))
    });
    let mut session = sample::session("r");
    (session.started_at, session.last_at) =
        (Timestamp(first * DAY), Timestamp((first + 100) * DAY));
    let session = Change::Session(Box::new(session));
    let (_dir, _store, readers) = stored(std::iter::once(session).chain(spans));
    // Periods that begin and end at every kind of place in a block of days, with and without whole blocks in between.
    for (from, to) in [(0, 89), (1, 1), (3, 70), (17, 40), (31, 64), (40, 89), (64, 65)] {
        let days = (first + from, first + to);
        let rows = readers.with(|db| latency(db, "kind", days)).unwrap();
        let mut sorted: Vec<i64> = (from * 10..(to + 1) * 10).map(us).collect();
        sorted.sort_unstable();
        let row = &rows[0];
        assert_eq!(row.count, sorted.len() as u64, "{from} to {to}");
        assert_eq!(row.total_us, Some(sorted.iter().sum::<i64>().cast_unsigned()));
        for (share, found) in [
            (0.5, row.p50_us),
            (0.9, row.p90_us),
            (0.95, row.p95_us),
            (0.99, row.p99_us),
            (1.0, row.max_us),
        ] {
            let exact = sorted[(share * sorted.len() as f64).ceil() as usize - 1] as f64;
            let found = found.unwrap();
            let wrong = (found as f64 - exact).abs() / exact;
            assert!(wrong <= 0.001, "{from} to {to}, {share}: {found} is not {exact}");
        }
        // A period that begins within its first day and ends within its last one, as days of a zone do.
        let start = |n: i64| (first + n / 10) * DAY + n * 1_000;
        let within = (start(from * 10 + 5), start(to * 10 + 7));
        let between = |most| readers.with(|db| latency_between(db, "kind", within, most)).unwrap();
        let wanted: Vec<i64> = (from * 10 + 5..=to * 10 + 7).map(us).collect();
        // 13 spans are read at most: where no whole day lies between, the parts of both days are one.
        let part = between(13).unwrap().remove(0);
        assert_eq!(part.count, wanted.len() as u64, "{from} to {to}");
        assert_eq!(part.total_us, Some(wanted.iter().sum::<i64>().cast_unsigned()));
        assert_eq!(between(2), None, "more spans than may be counted one by one");
        let hours = (days.0 * 24, days.1 * 24 + 23);
        for daily in [true, false] {
            let cells = readers.with(|db| heat(db, "kind", None, hours, daily)).unwrap();
            assert_eq!(cells.iter().map(|cell| cell.count).sum::<u64>(), row.count);
        }
    }
    assert_eq!(readers.with(|db| older(db, "kind", first + 2)).unwrap(), Some((first + 1, 20)));
    assert_eq!(readers.with(|db| older(db, "kind", first)).unwrap(), None);
}

/// A call whose length no hook reports.
fn untold(root: &str, key: &str) -> Span {
    let mut span = sample::span(root, key);
    let unknown = Attribute {
        key: std::borrow::Cow::Borrowed("hookspan.duration_unknown"),
        value: Value::Bool(true),
        class: Class::Plain,
    };
    let at = span.attributes.partition_point(|one| *one.key < *unknown.key);
    span.attributes.insert(at, unknown);
    span
}

#[test]
fn an_unknown_length_counts_as_a_call_and_nowhere_as_a_length() {
    let told = |span: Span| Change::Span(Box::new(span));
    let session = |root: &str| Change::Session(Box::new(sample::session(root)));
    let (_dir, mut store, readers) = stored([
        session("r"),
        session("q"),
        told(untold("r", "Shell")),
        told(untold("q", "Shell")),
    ]);
    let day = untold("r", "Shell").start.0.div_euclid(86_400_000_000_000);
    let row = || readers.with(|db| latency(db, "tool", (day, day))).unwrap().remove(0);
    let known = |row: &LatencyRow| [row.total_us, row.p50_us, row.p99_us, row.max_us];
    let longer = |ns: i64| {
        let tool = Some("Shell".to_owned());
        let spans = LineFilter { tool, min_ns: Some(ns), ..LineFilter::default() };
        let lines = readers.with(|db| lines::matching(db, &spans, None, 9)).unwrap().len();
        let filter = SessionFilter { spans, ..SessionFilter::default() };
        (readers.with(|db| sessions(db, &filter, None, 9)).unwrap().len(), lines)
    };
    let cells = || {
        let hours = (day * 24, day * 24 + 23);
        let cells = readers.with(|db| heat(db, "tool", None, hours, false)).unwrap();
        cells.iter().map(|cell| cell.count).sum::<u64>()
    };
    assert_eq!((row().count, row().errors, row().unknown), (2, 2, 2));
    assert_eq!(known(&row()), [None; 4]);
    assert_eq!((longer(0), cells()), ((0, 0), 0));
    // One of the calls turns out to have an end. Then the change is undone.
    write(&mut store, [told(sample::span("r", "Shell"))]);
    assert_eq!((row().count, row().unknown, row().total_us), (2, 1, Some(1_000_000)));
    assert_eq!((longer(0), longer(2_000_000_000), cells()), ((1, 1), (0, 0), 1));
    let failed =
        LineFilter { failed: true, tool: Some("Shell".to_owned()), ..LineFilter::default() };
    let filter = SessionFilter { spans: failed.clone(), ..SessionFilter::default() };
    assert_eq!(readers.with(|db| sessions(db, &filter, None, 9)).unwrap().len(), 2);
    // The same figures, counted one by one.
    let counted = |most| readers.with(|db| latency_of(db, "tool", &failed, most)).unwrap();
    assert_eq!(counted(2), Some(vec![row()]));
    assert_eq!(counted(1), None, "more than may be looked at");
    let cells_of =
        readers.with(|db| heat_of(db, "tool", Some("Shell"), &failed, false, 2)).unwrap();
    assert_eq!(cells_of.map(|cells| cells.iter().map(|cell| cell.count).sum()), Some(cells()));
    write(&mut store, [told(untold("r", "Shell"))]);
    assert_eq!((row().count, row().unknown, known(&row())), (2, 2, [None; 4]));
    assert_eq!((longer(0), cells()), ((0, 0), 0));
}
