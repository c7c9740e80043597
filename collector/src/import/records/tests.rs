//! Tests objects in every layout, and text that is not an object.

use super::*;

/// Gives a few bytes at a time.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.1.min(self.0.len()).min(into.len());
        let (now, rest) = self.0.split_at(len);
        into[..len].copy_from_slice(now);
        self.0 = rest;
        Ok(len)
    }
}

fn read(text: &str) -> Vec<(u64, String, String, Kind)> {
    let collect = |pace: usize| {
        let mut records = Records::new(Slow(text.as_bytes(), pace));
        let mut found = Vec::new();
        while let Some(Item { line, prefix, body, kind }) = records.next().unwrap() {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            found.push((line, text(prefix), text(body), kind));
        }
        found
    };
    let at_once = collect(usize::MAX);
    for pace in [1, 3, 17] {
        assert_eq!(collect(pace), at_once, "{pace} bytes at a time: {text}");
    }
    at_once
}

#[track_caller]
fn check(text: &str, expected: &[(u64, &str, &str, Kind)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(line, prefix, body, kind)| (*line, (*prefix).into(), (*body).into(), *kind))
        .collect();
    assert_eq!(read(text), expected, "{text}");
}

use Kind::{Broken, Object, Text, Unfinished};

#[test]
fn objects_are_found_in_every_layout() {
    let both = [(1, "", "{\"a\":1}", Object), (2, "", "{\"b\":2}", Object)];
    check("{\"a\":1}\n{\"b\":2}\n", &both);
    check("{\"a\":1}\r\n\r\n{\"b\":2}", &[both[0], (3, "", "{\"b\":2}", Object)]);
    let glued = [both[0], (1, "", "{\"b\":2}", Object)];
    for text in [
        "{\"a\":1}{\"b\":2}",
        "[{\"a\":1},{\"b\":2}]",
        "[ {\"a\":1} , {\"b\":2} ]\n",
        "\u{1e}{\"a\":1}\u{1e}{\"b\":2}",
        "[[{\"a\":1}],[{\"b\":2}]]",
    ] {
        check(text, &glued);
    }
    check(
        "[\n  {\"a\":1},\n  {\"b\":2}\n]\n",
        &[(2, "", "{\"a\":1}", Object), (3, "", "{\"b\":2}", Object)],
    );
    let pretty = "{\n  \"a\": [\n    {\"x\": \"}\"}\n  ],\n  \"b\": {}\n}";
    check(&format!("{pretty}\n{pretty}\n"), &[(1, "", pretty, Object), (7, "", pretty, Object)]);
    check("{\"q\":\"\\\"{[\\\\\"}", &[(1, "", "{\"q\":\"\\\"{[\\\\\"}", Object)]);
    check("", &[]);
    check(" \n\n ", &[]);
    check("[]", &[]);
}

#[test]
fn a_logs_own_words_stand_before_the_object_or_alone() {
    check(
        "[2026-10-05 12:00:01] {\"a\":1}\nReceived input: {\"b\":2}\nstarted\n",
        &[
            (1, "[2026-10-05 12:00:01]", "{\"a\":1}", Object),
            (2, "Received input:", "{\"b\":2}", Object),
            (3, "", "started", Text),
        ],
    );
    check(
        "[2026-10-05 12:00:01] {\n  \"a\": 1\n}\n[2026-10-05 12:00:02] {\"b\":2}\n",
        &[
            (1, "[2026-10-05 12:00:01]", "{\n  \"a\": 1\n}", Object),
            (4, "[2026-10-05 12:00:02]", "{\"b\":2}", Object),
        ],
    );
}

#[test]
fn what_is_broken_costs_its_own_lines_only() {
    check(
        "{\"a\": 1, \"b\n{\"c\":3}",
        &[(1, "", "{\"a\": 1, \"b", Broken), (2, "", "{\"c\":3}", Object)],
    );
    check(
        "{\"a\": 1,\n{\"c\":3}\n",
        &[(1, "", "{\"a\": 1,", Broken), (2, "", "{\"c\":3}", Object)],
    );
    // The second line could be the value of the first. It is read as a hook.
    check(
        "{\"a\":\n{\"c\":3}\n{\"d\":4}\n",
        &[(1, "", "{\"a\":", Broken), (2, "", "{\"c\":3}", Object), (3, "", "{\"d\":4}", Object)],
    );
    let cut = "{\n  \"a\": 1,\n  \"b\": \"";
    check(&format!("{cut}\n{{\"c\":3}}\n"), &[(1, "", cut, Broken), (4, "", "{\"c\":3}", Object)]);
    check(
        "{\"a\": 1} and more\n{\"c\":3}",
        &[(1, "", "{\"a\": 1} and more", Broken), (2, "", "{\"c\":3}", Object)],
    );
    check("{\"c\":3}\n{\"a\": ", &[(1, "", "{\"c\":3}", Object), (2, "", "{\"a\":", Unfinished)]);
    check("{\"c\":3}}\n", &[(1, "", "{\"c\":3}}", Broken)]);
    check(
        "for (;;) {\n  x();\n}\n",
        &[(1, "for (;;)", "{", Broken), (2, "", "x();", Text), (3, "", "}", Text)],
    );
}

#[test]
fn depth_and_hostile_layouts_cost_no_more_than_their_length() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let mut records = Records::new(deep.as_bytes());
    assert_eq!(records.next().unwrap().unwrap().kind, Object);
    // Each line could continue in the next one, up to the end.
    let open = "{\"a\":\n".repeat(200_000);
    let mut records = Records::new(open.as_bytes());
    let mut items = 0;
    while records.next().unwrap().is_some() {
        items += 1;
    }
    assert!(items <= 200_000, "{items}");
}

#[test]
fn what_is_too_long_is_cut_and_the_rest_goes_on() {
    let long = format!(
        "{{\"a\":\"{}\"}}\n{{\"b\":2}}\n{}\n{{\"c\":3}}",
        "x".repeat(LONGEST),
        "y".repeat(LONGEST + 5)
    );
    let mut records = Records::new(long.as_bytes());
    let mut found = Vec::new();
    while let Some(item) = records.next().unwrap() {
        found.push((item.line, item.body.len(), item.kind));
    }
    assert_eq!(
        found,
        [(1, LONGEST, Kind::Cut), (2, 7, Object), (3, LONGEST, Kind::Cut), (4, 7, Object)]
    );
}
