use super::*;

fn generation(root: &str, start: i64) -> Span {
    let mut span = sample::span(root, "x");
    span.id = SpanId::derive(root, "g1", "generation", "");
    (span.kind, span.parent, span.start) = (SpanKind::Generation, None, Timestamp(start));
    span
}

fn segment(root: &str, key: &str, start: i64) -> Span {
    let mut span = sample::span(root, "x");
    span.id = SpanId::derive(root, "", "session", key);
    (span.kind, span.parent, span.start) = (SpanKind::Session, None, Timestamp(start));
    span.conversation = root.into();
    span
}

fn of_session(readers: &Readers, since: Option<u64>) -> Vec<Line> {
    let found = readers.with(|db| lines::of_session(db, "r", since, 100)).unwrap();
    found.into_iter().map(|found| found.line).collect()
}

#[test]
fn a_turn_hangs_under_the_segment_it_started_in_and_a_call_under_its_turn() {
    let spans = [
        segment("r", "0", 10),
        segment("r", "1", 1_000),
        generation("r", 1_500),
        sample::span("r", "call"),
    ];
    let (_dir, _store, readers) = stored(spans.map(|span| Change::Span(Box::new(span))));
    let found = of_session(&readers, None);
    let row = |id| found.iter().find(|line| line.id == id).unwrap().row;
    let second = row(SpanId::derive("r", "", "session", "1"));
    let turn = found.iter().find(|line| line.kind == LineKind::Turn).unwrap();
    let call =
        found.iter().find(|line| line.parent.is_some() && line.kind != LineKind::Turn).unwrap();
    assert_eq!(turn.parent, Some(second));
    assert_eq!(call.parent, Some(turn.row));
    assert_eq!(readers.with(|db| span_count(db, "r")).unwrap(), 4);
}

#[test]
fn a_delta_holds_what_was_written_since() {
    let (_dir, mut store, readers) = stored([Change::Span(Box::new(sample::span("r", "a")))]);
    let at = readers.with(position).unwrap();
    write(&mut store, [Change::Span(Box::new(sample::span("r", "b")))]);
    let found = of_session(&readers, Some(at.rev));
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0],
        Line { row: found[0].row, ..Line::new(1, None, &sample::span("r", "b"), None) }
    );
    assert_eq!(of_session(&readers, Some(at.rev + 1)).len(), 0);
}

#[test]
fn the_columns_of_a_line_say_what_the_whole_span_says() {
    let (_dir, _store, readers) = stored([Change::Span(Box::new(sample::span("r", "a")))]);
    let whole = readers.with(|db| spans(db, "r", 10)).unwrap();
    let (row, span) = &whole[0];
    assert_eq!(of_session(&readers, None), [Line::new(*row, None, span, None)]);
}

#[test]
fn spans_of_all_sessions_are_found_by_what_they_are_and_page() {
    let session = |root: &str| {
        let mut session = sample::session(root);
        let at = sample::span(root, "a").start;
        (session.started_at, session.last_at) = (at, at.plus(5_000_000_000));
        Change::Session(Box::new(session))
    };
    let span = |root: &str, key: &str| Change::Span(Box::new(sample::span(root, key)));
    let (_dir, _store, readers) =
        stored([session("r"), session("q"), span("r", "a"), span("r", "b"), span("q", "c")]);
    let all = LineFilter { failed: true, ..LineFilter::default() };
    let page = |before| readers.with(|db| lines::matching(db, &all, before, 2)).unwrap();
    let first = page(None);
    assert_eq!(first.len(), 2);
    let last = &first[1].1.line;
    assert_eq!(page(Some((last.start.0, last.row))).len(), 1);
    let q = LineFilter { session: Some("q".to_owned()), ..LineFilter::default() };
    assert_eq!(readers.with(|db| lines::matching(db, &q, None, 9)).unwrap().len(), 1);
    let long = LineFilter { max_ns: Some(1_000), ..LineFilter::default() };
    assert!(readers.with(|db| lines::matching(db, &long, None, 9)).unwrap().is_empty());
}

#[test]
fn a_span_is_found_by_its_id_and_a_trace_by_its_root() {
    let bind = |conversation: &str, root: &str| Change::Bind {
        conversation: conversation.into(),
        root: root.into(),
    };
    let call = |root: &str| sample::span(root, "Read");
    let root =
        Span { parent: None, id: SpanId::derive("r-child", "g1", "generation", ""), ..call("r") };
    let (_dir, mut store, readers) = stored([
        bind("r", "r"),
        bind("r-child", "r"),
        Change::Span(Box::new(call("r"))),
        Change::Span(Box::new(root.clone())),
        bind("s-child", "s-child"),
        Change::Span(Box::new(Span { root: "s-child".into(), ..call("s") })),
    ]);
    let alone = |id| readers.with(|db| span(db, id)).unwrap().map(|(row, _)| row);
    let within =
        |root: &str, id| readers.with(|db| span_of(db, root, id)).unwrap().map(|(row, _)| row);
    assert_eq!(
        [alone(call("r").id), alone(root.id), alone(call("s").id)],
        [Some(1), Some(2), Some(3)]
    );
    assert_eq!(alone(SpanId([7; 8])), None);
    assert_eq!(readers.with(|db| span_row(db, 1)).unwrap().unwrap(), (1, call("r")));
    assert_eq!(readers.with(|db| body(db, 7)).unwrap(), None);
    assert_eq!([within("r", call("r").id), within("s-child", call("s").id)], [Some(1), Some(3)]);
    assert_eq!([within("s-child", call("r").id), within("nobody", call("r").id)], [None, None]);
    let found = readers.with(|db| trace(db, root.trace)).unwrap();
    assert_eq!(found, Some(("r".to_owned(), root.id)));
    // The conversation is bound to another session.
    write(&mut store, [bind("s-child", "s")]);
    assert_eq!([within("s", call("s").id), within("s-child", call("s").id)], [Some(3), Some(3)]);
}
