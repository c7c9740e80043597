use super::*;

#[test]
fn files_are_added_up_by_what_calls_did_to_them() {
    let call = |root: &str, id: u8, path: &str, class: &str, lines: Option<i64>, failed: bool| {
        let mut span = sample::span(root, if class == "edit" { "Write" } else { "Read" });
        span.id = SpanId([id; 8]);
        span.start = Timestamp(i64::from(id) * 1_000);
        span.workspace = Some("/w/api".into());
        span.attributes.clear();
        let mut put = |key: &'static str, value| {
            span.attributes.push(Attribute { key: key.into(), value, class: Class::Plain });
        };
        put("file.path", Value::Str(path.into()));
        put("hookspan.tool.class", Value::Str(class.into()));
        if let Some(lines) = lines {
            put("hookspan.edit.lines_added", Value::Int(lines));
            put("hookspan.edit.lines_removed", Value::Int(1));
        }
        if !failed {
            span.status = Status::Unset;
        }
        Change::Span(Box::new(span))
    };
    let (_dir, mut store, readers) = stored([
        session_at("r", 5),
        session_at("s", 6),
        call("r", 1, "/w/api/src/a.rs", "read", None, false),
        call("r", 2, "/w/api/src/a.rs", "edit", Some(4), false),
        call("s", 3, "/w/api/src/a.rs", "edit", Some(9), true),
        call("s", 4, "/etc/hosts", "read", None, false),
        call("s", 5, "/w/api/src", "search", None, false),
    ]);
    let all = WantedFiles { period: (0, i64::MAX), ..WantedFiles::default() };
    let look = |wanted: &WantedFiles, most| {
        let mut found = readers.with(|db| files(db, wanted, most)).unwrap();
        found.files.sort_by(|a, b| a.path.cmp(&b.path));
        found
    };
    let found = look(&all, 100);
    let names: Vec<_> =
        found.files.iter().map(|one| (one.project.as_deref(), one.path.as_str())).collect();
    assert_eq!(names, [(None, "/etc/hosts"), (Some("api"), "src/a.rs")]);
    let a = &found.files[1];
    assert_eq!((a.reads, a.edits, a.errors, a.sessions), (1, 2, 1, 2));
    assert_eq!((a.added, a.removed), (Some(4), Some(1)), "an edit that failed changed nothing");
    assert_eq!(found.since, None);
    assert_eq!(look(&all, 2).since, Some(Timestamp(3_000)), "the newest two");
    let some = |project: Option<&str>, text: Option<&str>, session: Option<&str>| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let (project, text, session) = (own(project), own(text), own(session));
        look(&WantedFiles { project, text, session, ..all.clone() }, 100).files.len()
    };
    assert_eq!([some(Some("API"), None, None), some(None, Some("HOSTS"), None)], [1, 1]);
    assert_eq!([some(None, None, Some("r")), some(None, None, Some("nobody"))], [1, 0]);
    let of = |path: &str, limit| {
        let found = readers.with(|db| touches(db, ("api", path), (0, i64::MAX), limit)).unwrap();
        found.iter().map(|one| (one.start.0, one.edits, one.failed)).collect::<Vec<_>>()
    };
    assert_eq!(of("src/a.rs", 2), [(3_000, true, true), (2_000, true, false)]);
    // A deleted session takes the names with it that only it used.
    store.delete(&Selection::sessions(&["s".to_owned()])).unwrap();
    assert_eq!(look(&all, 100).files.len(), 1);
    let left = readers.with(|db| {
        db.query_row("SELECT group_concat(path) FROM file", [], |row| row.get::<_, String>(0))
    });
    assert_eq!(left.unwrap(), "src/a.rs");
}
