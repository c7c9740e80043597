//! Reads the current state from the store.

use hookspan_core::content::extract;
use hookspan_core::{SessionSummary, Timestamp};
use hookspan_view::SourceError;
use hookspan_view::health::JournalHealth;
use hookspan_view::line::{Line, LineKind};
use hookspan_view::now::{OpenCall, Status, USUAL_DAYS, is_open, judge, open_call, sessions};
use hookspan_view::source::{LatencyRow, LineFilter, Sessions as _, Spans as _, Statistics as _};
use hookspan_view::subject::readable;

use crate::cli::Global;
use crate::cli::blank::Blank;
use crate::cli::calendar::Calendar;
use crate::source::StoreSource;

const SECOND_NS: i64 = 1_000_000_000;
const DAY_NS: i64 = 86_400 * SECOND_NS;
/// Number of newest spans that are searched for the last words of an agent.
const SPANS_MAX: usize = 40;
/// The usual durations of tools are read again after this time.
const USUAL_NS: i64 = 60 * SECOND_NS;

/// The current state.
#[derive(Debug)]
pub(super) struct Now {
    pub(super) at: Timestamp,
    /// The same as a clock shows it.
    pub(super) clock: String,
    /// Whether a collector runs. Without one, the state is that of the time when the last collector ended.
    pub(super) collector: bool,
    /// The command that starts a collector.
    pub(super) up: String,
    /// Sessions with a running turn. Those that need a person come first.
    pub(super) running: Vec<Agent>,
    /// Sessions that wait for their person, the newest first.
    pub(super) waiting: Vec<Agent>,
}

/// A session, and what it does.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) session: SessionSummary,
    pub(super) turn_start: Option<Timestamp>,
    pub(super) call: Option<(Line, OpenCall)>,
    pub(super) status: Status,
    /// The last line that it wrote.
    pub(super) words: Option<String>,
}

/// Reads the store. Keeps what has not changed between two reads.
pub(super) struct Look {
    source: StoreSource,
    calendar: Calendar,
    blank: Blank,
    up: String,
    usual: Vec<LatencyRow>,
    usual_at: Option<Timestamp>,
    kept: Option<(u64, Vec<Agent>)>,
}

impl Look {
    pub(super) fn new(global: &Global, blank: Blank) -> Self {
        let database = global.state.database();
        let source = StoreSource::new(&database, Box::new(JournalHealth::default), []);
        Self {
            source,
            calendar: Calendar::of_this_machine(),
            blank,
            up: global.command("up"),
            usual: Vec::new(),
            usual_at: None,
            kept: None,
        }
    }

    pub(super) fn rev(&self) -> anyhow::Result<u64> {
        Ok(self.source.position().map_err(|error| unreadable(&error))?.rev)
    }

    pub(super) fn now(&mut self, rev: u64, at: Timestamp, collector: bool) -> anyhow::Result<Now> {
        let kept = self.kept.take().filter(|(seen, _)| *seen == rev).map(|(_, agents)| agents);
        let mut agents = match kept {
            Some(agents) => agents,
            None => self.agents(at).map_err(|error| unreadable(&error))?,
        };
        for agent in &mut agents {
            let call = agent.call.as_ref().map(|(_, call)| call);
            agent.status = judge(&agent.session, call, at).status;
        }
        self.kept = Some((rev, agents.clone()));
        let (mut running, waiting): (Vec<Agent>, Vec<Agent>) =
            agents.into_iter().partition(|agent| is_open(&agent.session));
        running.sort_by_key(|agent| !agent.status.alarms());
        Ok(Now {
            at,
            clock: self.calendar.clock(at),
            collector,
            up: self.up.clone(),
            running,
            waiting,
        })
    }

    fn agents(&mut self, at: Timestamp) -> hookspan_view::Result<Vec<Agent>> {
        self.learn(at)?;
        let mut recent = sessions(&self.source, at, &mut false)?;
        recent.sort_by_key(|session| core::cmp::Reverse(session.last_at));
        recent.into_iter().map(|session| self.agent(session)).collect()
    }

    fn agent(&self, mut session: SessionSummary) -> hookspan_view::Result<Agent> {
        let (mut call, mut turn_start) = (None, None);
        if is_open(&session) {
            call = self.source.open_call(&session.root)?;
            turn_start = self.source.turns(&session.root)?.last().map(|turn| turn.started_at);
        }
        let call = match call {
            Some(mut line) => {
                let open = open_call(&self.source, &line, &self.usual)?;
                self.blank.label(&mut line.label);
                Some((line, open))
            }
            None => None,
        };
        let mut words = self.words(&session.root)?;
        words.iter_mut().for_each(|words| self.blank.label(words));
        self.blank.session(&mut session);
        Ok(Agent { session, turn_start, call, status: Status::Running, words })
    }

    /// The last line of the newest response or thought.
    fn words(&self, root: &str) -> hookspan_view::Result<Option<String>> {
        let filter = LineFilter { session: Some(root.to_owned()), ..LineFilter::default() };
        let newest = self.source.matching(&filter, None, SPANS_MAX)?;
        let said = newest
            .iter()
            .find(|(_, line)| matches!(line.kind, LineKind::Response | LineKind::Thinking));
        let Some((_, line)) = said else { return Ok(None) };
        let Some((_, span)) = self.source.span_row(line.row)? else { return Ok(None) };
        let Some(content) = span.contents.first() else { return Ok(None) };
        let Some(body) = self.source.body(content.hook)? else { return Ok(None) };
        let text = extract(content.field, &body).map(readable).map(|content| content.text);
        // The whole text is redacted before it is cut, because half a secret matches no rule.
        let text = text.map(|text| self.blank.text(&text).into_owned());
        Ok(text.as_deref().and_then(last_line).map(str::to_owned))
    }

    /// Reads how long the calls of each tool usually take.
    fn learn(&mut self, at: Timestamp) -> hookspan_view::Result<()> {
        if self.usual_at.is_some_and(|learnt| at.since(learnt) < USUAL_NS) {
            return Ok(());
        }
        let today = at.0.div_euclid(DAY_NS);
        self.usual = self.source.latency("tool", (today - USUAL_DAYS, today))?;
        self.usual_at = Some(at);
        Ok(())
    }
}

fn unreadable(error: &SourceError) -> anyhow::Error {
    anyhow::anyhow!("cannot read the database: {}", error.0)
}

fn last_line(text: &str) -> Option<&str> {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("```"))
}
