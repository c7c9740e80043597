use std::collections::BTreeSet;

use hookspan_core::{Change, Timestamp};
use hookspan_view::health::JournalHealth;

use super::*;
use crate::source::{AskJournal, Extras, StoreSource};
use crate::store::sample;
use crate::store::write::{Changes, Store};

#[test]
fn sums_never_fall_and_labels_are_escaped() {
    let told = Told::new();
    for (value, shown) in [(5.0, "5"), (3.0, "5"), (7.0, "7")] {
        let mut page = Page { out: String::new(), told: &told };
        page.sum("a_total", &[("b", "x\"\\\ny")], value);
        assert_eq!(page.out, format!("a_total{{b=\"x\\\"\\\\\\ny\"}} {shown}\n"));
    }
}

#[test]
fn a_histogram_adds_up() {
    let told = Told::new();
    let mut page = Page { out: String::new(), told: &told };
    let cell = |bucket, count| HeatCell { hour: 0, bucket, count };
    let row = LatencyRow { total_us: Some(3_000_000), ..LatencyRow::default() };
    let mut all = Distribution::default();
    all.add(&[cell(3, 1), cell(20, 2), cell(40, 1)], &row);
    page.histogram("d", ("k", "v"), &all);
    let line =
        |text: &str| assert!(page.out.lines().any(|line| line == text), "{text}: {}", page.out);
    line("d_bucket{k=\"v\",le=\"0.002048\"} 1");
    line("d_bucket{k=\"v\",le=\"2.097152\"} 3");
    line("d_bucket{k=\"v\",le=\"+Inf\"} 4");
    line("d_sum{k=\"v\"} 3");
    line("d_count{k=\"v\"} 4");
}

/// Series and values of a page, read by the grammar of the format. Panics at the first line that violates it.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let (mut families, mut series) = (BTreeMap::new(), BTreeMap::new());
    let is_name = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        name.chars().all(plain) && name.starts_with(|c: char| !c.is_ascii_digit())
    };
    assert!(text.ends_with('\n'), "the last line has an end");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(is_name(name) && ["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(families.insert(name, kind), None, "a family is declared once: {line}");
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let (bare, labels) = name.split_once('{').unwrap_or((name, "}"));
        let of = ["_bucket", "_sum", "_count"].iter().find_map(|end| bare.strip_suffix(end));
        let kind = of.and_then(|of| families.get(of)).or_else(|| families.get(bare));
        let kind = *kind.unwrap_or_else(|| panic!("no family: {line}"));
        assert!(is_name(bare) && (kind != "counter" || bare.ends_with("_total")), "{line}");
        let labels = labels.strip_suffix('}').unwrap();
        for pair in labels.split(',').filter(|pair| !pair.is_empty()) {
            let (label, value) = pair.split_once('=').unwrap();
            assert!(is_name(label), "{line}");
            assert!(value.len() >= 2 && value.starts_with('"') && value.ends_with('"'), "{line}");
        }
        let value: f64 = value.parse().unwrap();
        assert!(value >= 0.0 && value.is_finite(), "{line}");
        assert_eq!(series.insert(name.to_owned(), value), None, "a series comes once: {line}");
    }
    series
}

#[test]
fn the_page_is_in_the_format_and_names_nothing_of_ones_own() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("hookspan.db");
    let mut store = Store::open(&path).unwrap();
    let mut changes = Changes::default();
    let mut row = sample::session("c1");
    row.last_at = clock::now();
    changes.push(Change::Session(Box::new(row)));
    for (at, tool) in ["Shell", "Shell", "acme_secret_tool"].into_iter().enumerate() {
        let mut span = sample::span("c1", tool);
        span.id = hookspan_core::SpanId::derive("c1", "g1", "tool", &at.to_string());
        let now = clock::now().0;
        span.start = Timestamp(now - 3_000_000_000);
        span.end = span.end.map(|end| hookspan_core::End { at: Timestamp(now), ..end });
        span.settled = true;
        changes.push(Change::Span(Box::new(span)));
    }
    store.transaction(|open| open.changes(&changes)).unwrap();
    let journal: AskJournal = Box::new(JournalHealth::default);
    let source = StoreSource::new(&path, journal, []).with(Extras::default());
    let text = source.exposition().unwrap();
    let series = parse(&text);
    assert!(!text.contains("acme"), "{text}");
    let tools: BTreeSet<_> = series
        .iter()
        .filter(|(name, _)| name.starts_with("gen_ai_execute_tool_duration_seconds_count"))
        .map(|(name, count)| format!("{} {count}", name.split('"').nth(1).unwrap()))
        .collect();
    assert_eq!(tools, BTreeSet::from(["Shell 2".to_owned(), "other 1".to_owned()]), "{text}");
    let of = |le: &str| {
        let name = format!(
            "gen_ai_execute_tool_duration_seconds_bucket{{gen_ai_tool_name=\"Shell\",le=\"{le}\"}}"
        );
        series[&name]
    };
    assert_eq!((of("2.097152"), of("4.194304"), of("+Inf")), (0.0, 2.0, 2.0));
    assert_eq!(parse(&source.exposition().unwrap()).len(), series.len(), "the same series again");
}
