use super::*;

#[test]
fn pages_of_sessions_neither_repeat_nor_skip_at_equal_times() {
    let (_dir, _store, readers) =
        stored([session_at("a", 5), session_at("b", 5), session_at("c", 5), session_at("d", 9)]);
    let all = SessionFilter::default();
    assert_eq!(roots(&readers, &all, None), ["d", "c"]);
    assert_eq!(roots(&readers, &all, Some((5, "c".to_owned()))), ["b", "a"]);
    assert_eq!(roots(&readers, &all, Some((5, "a".to_owned()))), Vec::<String>::new());
}

#[test]
fn sessions_since_a_time_are_found_by_the_index_on_their_last_activity() {
    let (_dir, _store, readers) =
        stored([session_at("a", 5), session_at("b", 7), session_at("c", 9), session_at("d", 4)]);
    let since = |from_ns| {
        let spans = LineFilter { from_ns: Some(from_ns), ..LineFilter::default() };
        roots(&readers, &SessionFilter { spans, ..Default::default() }, None)
    };
    assert_eq!(since(7), ["c", "b"]);
    assert_eq!(since(8), ["c"]);
    assert_eq!(since(10), Vec::<String>::new());
}

#[test]
fn filters_take_text_as_text() {
    let (_dir, _store, readers) = stored([session_at("a", 5), session_at("b%'", 6)]);
    let text = |text: &str| SessionFilter { text: Some(text.to_owned()), ..Default::default() };
    assert_eq!(roots(&readers, &text("%'"), None), ["b%'"]);
    assert_eq!(roots(&readers, &text("' OR 1=1 --"), None), Vec::<String>::new());
    let state = |state| SessionFilter { state: Some(state), ..Default::default() };
    assert_eq!(roots(&readers, &state(SessionState::ToolOpen), None).len(), 2);
    assert_eq!(roots(&readers, &state(SessionState::Done), None).len(), 0);
    let project = |name: &str| {
        let spans = LineFilter { project: Some(name.to_owned()), ..LineFilter::default() };
        roots(&readers, &SessionFilter { spans, ..Default::default() }, None).len()
    };
    let found = ["project", "Project", "/home/dev/project", "proj", "dev/project"].map(project);
    assert_eq!(found, [2, 2, 2, 0, 0]);
}

#[test]
fn every_order_of_sessions_pages_by_the_key_the_cursor_holds() {
    let changes: Vec<_> = (0..7_i64)
        .map(|n| {
            let mut session = sample::session(&format!("s{n}"));
            session.last_at = Timestamp(n);
            session.started_at = Timestamp(-n);
            session.errors = n.cast_unsigned() % 3;
            session.tool_calls = n.cast_unsigned() % 2;
            session.active_ns = n * n;
            session.tokens = (n % 2 == 0)
                .then(|| Tokens { input: Some(n.cast_unsigned()), ..Tokens::default() });
            Change::Session(Box::new(session))
        })
        .collect();
    let (_dir, _store, readers) = stored(changes);
    for (sort, ascending) in
        SessionSort::ALL.into_iter().flat_map(|sort| [(sort, false), (sort, true)])
    {
        let filter = SessionFilter { sort, ascending, ..SessionFilter::default() };
        let (mut before, mut seen) = (None, Vec::new());
        loop {
            let page = readers.with(|db| sessions(db, &filter, before.as_ref(), 2)).unwrap();
            let Some(last) = page.last() else { break };
            before = Some((sort.key(last), last.root.to_string()));
            seen.extend(page.iter().map(|one| (sort.key(one), one.root.to_string())));
        }
        assert_eq!(seen.len(), 7, "{sort:?}");
        let right = |a, b| if ascending { a < b } else { a > b };
        assert!(seen.is_sorted_by(right), "{sort:?} {ascending}: {seen:?}");
    }
}

#[test]
fn sessions_are_found_by_what_their_spans_are() {
    let (_dir, _store, readers) = stored([
        session_at("r", 5),
        session_at("q", 6),
        Change::Span(Box::new(sample::span("r", "a"))),
    ]);
    let second = 1_000_000_000;
    let by = |kind, min_ns| SessionFilter {
        spans: LineFilter { kind: Some(kind), min_ns: Some(min_ns), ..LineFilter::default() },
        ..SessionFilter::default()
    };
    let kind = LineKind::of(&sample::span("r", "a"));
    assert_eq!(roots(&readers, &by(kind, second), None), ["r"]);
    assert!(roots(&readers, &by(kind, second + 1), None).is_empty());
    assert!(roots(&readers, &by(LineKind::Tab, 0), None).is_empty());
}

#[test]
fn sessions_are_found_by_the_longest_call_of_a_tool_settled_or_not() {
    const SECOND: i64 = 1_000_000_000;
    let call = |root: &str, key: &str, tool: &str, seconds: i64, settled| {
        let mut span = sample::span(root, key);
        let name = span.attributes.iter_mut().find(|one| one.key == "gen_ai.tool.name").unwrap();
        name.value = Value::Str(tool.into());
        let end = Timestamp(span.start.0 + seconds * SECOND);
        span.end = span.end.map(|was| End { at: end, ..was });
        span.settled = settled;
        Change::Span(Box::new(span))
    };
    let (_dir, mut store, readers) = stored([
        session_at("quick", 5),
        session_at("slow", 6),
        session_at("live", 7),
        call("quick", "a", "Shell", 1, true),
        call("slow", "b", "Shell", 2, true),
        call("slow", "c", "Shell", 9, true),
        call("slow", "d", "db_query", 1, true),
        call("live", "e", "Shell", 20, false),
    ]);
    let by = |tool: &str, seconds: i64| {
        let (tool, min_ns) = (Some(tool.to_owned()), Some(seconds * SECOND));
        let spans = LineFilter { tool, min_ns, ..LineFilter::default() };
        roots(&readers, &SessionFilter { spans, ..SessionFilter::default() }, None)
    };
    assert_eq!(by("shell", 2), ["live", "slow"]);
    assert_eq!(by("Shell", 10), ["live"]);
    assert_eq!(by("DB_query", 0), ["slow"]);
    assert!(by("She", 0).is_empty());
    // The span settles. Then the child turns out to belong to another session, and its calls move there.
    write(&mut store, [Change::Settle(SpanKey::of(&sample::span("live", "e")))]);
    assert_eq!(by("Shell", 20), ["live"]);
    write(&mut store, [Change::Bind { conversation: "live".into(), root: "quick".into() }]);
    assert_eq!(by("Shell", 20), ["quick"]);
    store.delete(&Selection::sessions(&["slow".to_owned()])).unwrap();
    assert!(by("db_query", 0).is_empty());
}
