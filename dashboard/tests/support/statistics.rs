//! The figures of the list.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hookspan_core::price::{Price, Prices, Usage};
use hookspan_core::{SpanKind, Tokens, TurnSummary};
use hookspan_view::Result;
use hookspan_view::facet;
use hookspan_view::source::{
    DayTime, Gap, HeatCell, LatencyRow, LineFilter, ProjectWork, Spent, Statistics, Totals,
};

use super::{Data, ListSource};

impl Statistics for ListSource {
    fn totals(&self, from_ns: i64) -> Result<Totals> {
        let data = self.data();
        let mut totals = Totals::default();
        let turns = data.turns.values().flatten();
        for turn in turns.filter(|turn| turn.started_at.0 >= from_ns) {
            totals.turns += 1;
            totals.errors += turn.errors;
            totals.active_ns += turn.ended_at.map_or(0, |end| end.since(turn.started_at));
            if let Some(tokens) = turn.tokens {
                let sum = totals.tokens.get_or_insert_with(Tokens::default);
                *sum = sum.plus(Tokens { cache_read: None, cache_write: None, ..tokens });
            }
        }
        Ok(totals)
    }

    fn usage(&self, from_ns: i64) -> Result<Vec<(Option<String>, Usage)>> {
        let data = self.data();
        let turns = data.turns.values().flatten().filter(|turn| turn.started_at.0 >= from_ns);
        let used = turns.filter_map(|turn| {
            Some((turn.model.as_deref().map(str::to_owned), turn.tokens?.into()))
        });
        Ok(used.collect())
    }

    fn prices(&self) -> &Prices {
        static TABLE: LazyLock<Prices> = LazyLock::new(|| {
            let price = Price { input: Some(2.0), output: Some(10.0), ..Price::default() };
            Prices::new("USD".to_owned(), [("composer-*".to_owned(), price)])
        });
        &TABLE
    }

    fn latency(&self, dimension: &str, _days: (i64, i64)) -> Result<Vec<LatencyRow>> {
        let data = self.data();
        let mut durations: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for stored in &data.spans {
            let (Some(end), true) = (stored.span.end, dimension == "tool") else { continue };
            if stored.span.kind == SpanKind::Tool {
                let us = u64::try_from(end.at.since(stored.span.start) / 1_000).unwrap();
                durations.entry(stored.span.name.clone()).or_default().push(us);
            }
        }
        let row = |(name, mut us): (String, Vec<u64>)| {
            us.sort_unstable();
            let at = |share: usize| us[(us.len() * share / 100).min(us.len() - 1)];
            LatencyRow {
                name,
                count: us.len() as u64,
                errors: 0,
                unknown: 0,
                p50_us: Some(at(50)),
                p90_us: Some(at(90)),
                p95_us: Some(at(95)),
                p99_us: Some(at(99)),
                max_us: Some(at(100)),
                total_us: Some(us.iter().sum()),
            }
        };
        Ok(durations.into_iter().map(row).collect())
    }

    fn latency_between(
        &self,
        dimension: &str,
        _between: (i64, i64),
    ) -> Result<Option<Vec<LatencyRow>>> {
        self.latency(dimension, (0, 0)).map(Some)
    }

    fn heat(
        &self,
        dimension: &str,
        name: Option<&str>,
        hours: (i64, i64),
        daily: bool,
    ) -> Result<Vec<HeatCell>> {
        let data = self.data();
        let mut cells: BTreeMap<(i64, u32), u64> = BTreeMap::new();
        for stored in &data.spans {
            let Some(end) = stored.span.end else { continue };
            let tool = format!("execute_tool {}", name.unwrap_or_default());
            let wanted = dimension == "tool"
                && stored.span.kind == SpanKind::Tool
                && (name.is_none() || stored.span.name == tool);
            let hour = stored.span.start.0.div_euclid(3_600_000_000_000);
            if wanted && (hours.0..=hours.1).contains(&hour) {
                let us = end.at.since(stored.span.start) / 1_000;
                let hour = if daily { hour.div_euclid(24) * 24 } else { hour };
                *cells.entry((hour, us.max(1).ilog2())).or_default() += 1;
            }
        }
        let cell = |((hour, bucket), count)| HeatCell { hour, bucket, count };
        Ok(cells.into_iter().map(cell).collect())
    }

    fn latency_of(&self, dimension: &str, filter: &LineFilter) -> Result<Option<Vec<LatencyRow>>> {
        // A limit for these tests: more than 400 days are too many to count.
        const DAY_NS: i64 = 86_400_000_000_000;
        if filter.from_ns.zip(filter.to_ns).is_some_and(|(from, to)| to - from > 400 * DAY_NS) {
            return Ok(None);
        }
        let mut rows = self.latency(dimension, (0, 0))?;
        let tool = filter.tool.clone().map(|name| format!("execute_tool {name}"));
        rows.retain(|row| tool.as_ref().is_none_or(|tool| row.name == *tool));
        Ok(Some(rows))
    }

    fn heat_of(
        &self,
        dimension: &str,
        name: Option<&str>,
        filter: &LineFilter,
        daily: bool,
    ) -> Result<Option<Vec<HeatCell>>> {
        let hour = |ns: Option<i64>| ns.unwrap_or(0).div_euclid(3_600_000_000_000);
        let hours = (hour(filter.from_ns), hour(filter.to_ns));
        self.heat(dimension, filter.tool.as_deref().or(name), hours, daily).map(Some)
    }

    fn spent(&self, edges: &[i64]) -> Result<Vec<Spent>> {
        let data = self.data();
        let mut spent = Vec::new();
        for turn in data.turns.values().flatten() {
            let at = edges.partition_point(|edge| *edge <= turn.started_at.0);
            let Some(column) = at.checked_sub(1).filter(|_| at < edges.len()) else { continue };
            let Some(time) = time_of(&data, turn) else { continue };
            spent.push(Spent {
                time: DayTime { day: i64::try_from(column).unwrap(), ..time },
                model: turn.model.as_deref().map(str::to_owned),
                usage: turn.tokens.map(Usage::from).unwrap_or_default(),
            });
        }
        Ok(spent)
    }

    fn spent_of(&self, edges: &[i64], _filter: &LineFilter) -> Result<Option<Vec<Spent>>> {
        self.spent(edges).map(Some)
    }

    fn work(&self, between: (i64, i64)) -> Result<Vec<ProjectWork>> {
        let data = self.data();
        let mut projects: BTreeMap<Option<String>, ProjectWork> = BTreeMap::new();
        for session in &data.sessions {
            let turns = data.turns.get(&*session.root).into_iter().flatten();
            let turns = turns.filter(|turn| turn.ended_at.is_some());
            let is_within =
                |turn: &&TurnSummary| (between.0..=between.1).contains(&turn.started_at.0);
            let turns: Vec<_> = turns.filter(is_within).collect();
            let project = session.workspace.as_deref().and_then(facet::project);
            let project = project.map(std::borrow::Cow::into_owned);
            let work = projects.entry(project.clone()).or_default();
            work.project = project;
            work.sessions += u64::from(!turns.is_empty());
            work.edits += turns.iter().map(|turn| turn.work.edits).sum::<u64>();
        }
        Ok(projects.into_values().collect())
    }

    fn older(&self, _dimension: &str, before: i64) -> Result<Option<(i64, u64)>> {
        let data = self.data();
        let days = data.spans.iter().map(|one| one.span.start.0.div_euclid(86_400_000_000_000));
        let older: Vec<i64> = days.filter(|day| *day < before).collect();
        Ok(older.iter().max().map(|day| (*day, older.len() as u64)))
    }

    fn gaps(&self, from_ns: i64, _limit: usize) -> Result<Vec<Gap>> {
        Ok(vec![Gap { from_ns, to_ns: from_ns + 1_740_000_000_000, hooks: 212 }])
    }
}

/// The sums of one turn. `None` while the turn runs.
fn time_of(data: &Data, turn: &TurnSummary) -> Option<DayTime> {
    let session = data.sessions.iter().find(|session| session.root == turn.root);
    let folder = session.and_then(|one| one.workspace.as_deref()?.rsplit('/').next());
    Some(DayTime {
        day: turn.started_at.0.div_euclid(86_400_000_000_000),
        project: folder.map(str::to_owned),
        turns: 1,
        calls: turn.tool_calls,
        errors: turn.errors,
        active_ns: turn.ended_at?.since(turn.started_at),
        parts: turn.parts,
        input: turn.tokens.and_then(|tokens| tokens.input),
        output: turn.tokens.and_then(|tokens| tokens.output),
    })
}
