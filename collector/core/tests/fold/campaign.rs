//! Plays generated sessions in every way in which a stream can arrive; the example `stories` plays hundreds of
//! thousands.

use std::collections::{BTreeMap, BTreeSet};

use hookspan_core::{
    Config, Event, Hook, SessionParts, Span, SpanKind, Timestamp, TurnSummary, Value, normalise,
};

use crate::accounting::{copies, sent, shown};
use crate::support::{Player, Store, fold, render};
use crate::truth::score;
use crate::world::{Dice, Flavor, Surface, World, make};

/// Maximum time by which hooks reach the journal out of order.
const DISORDER_NS: i64 = 200_000_000;

/// An error describes the difference and how to reproduce it.
pub(crate) type Verdict = Result<(), String>;

/// Plays the session of `seed` in every way. Errors describe the difference.
pub(crate) fn live(seed: u64) -> Verdict {
    let surface = match seed % 4 {
        0 => Surface::Cli,
        1 => Surface::Print,
        _ => Surface::Ide,
    };
    let mut dice = Dice::new(seed ^ 0x5eed);
    let crowded = make(seed, surface, Flavor { crowded: true, odd: false });
    let plain = make(seed, surface, Flavor { crowded: false, odd: false });
    let odd = make(seed, surface, Flavor { crowded: false, odd: true });
    let store = whole(&crowded)?;
    on_its_way(&crowded, &store, &mut dice, false)?;
    let store = whole(&plain)?;
    on_its_way(&plain, &store, &mut dice, true)?;
    for lost in plain.kinds() {
        without(&plain, lost)?;
    }
    some_lost(&crowded, &mut dice)?;
    let store = whole(&odd).map_err(|what| format!("odd: {what}"))?;
    on_its_way(&odd, &store, &mut dice, false).map_err(|what| format!("odd: {what}"))
}

/// If every hook arrives, the spans equal the truth.
fn whole(world: &World) -> Result<Store, String> {
    let store = fold(Config::default(), &world.hooks, usize::MAX);
    sound(&store)?;
    let score = score(&world.truth(None), &store);
    if score.is_right() {
        return accounted(&store, &world.hooks, world.again).map(|()| store);
    }
    let (bodies, shown) = (bodies(&world.hooks), render(&store));
    Err(format!("the whole stream: {score:#?}\n{bodies}{shown}"))
}

/// The hooks themselves, a line each.
fn bodies(hooks: &[Hook]) -> String {
    let line =
        |hook: &Hook| format!("{} {}\n", hook.observed_at.0, String::from_utf8_lossy(&hook.body));
    hooks.iter().map(line).collect()
}

/// Checks that every hook is visible in exactly one span. A hook may instead count as a copy if it equals another one
/// shortly before. `again` is the number of hooks that repeat another hook in other words.
fn accounted(store: &Store, hooks: &[Hook], again: usize) -> Verdict {
    let (shown, sent) = (shown(store), sent(hooks));
    let (of_shown, of_sent) = (shown.values().sum::<usize>(), hooks.len() - again);
    if of_shown == of_sent || (of_shown < of_sent && of_sent - of_shown <= copies(hooks)) {
        return Ok(());
    }
    let count =
        |of: &BTreeMap<String, usize>, name: &str| of.get(name).copied().unwrap_or_default();
    let differ = |name: &&String| count(&shown, name) != count(&sent, name);
    let names: BTreeSet<&String> = shown.keys().chain(sent.keys()).filter(differ).collect();
    let differences: Vec<String> = names
        .into_iter()
        .map(|name| format!("{} of {} {name}", count(&shown, name), count(&sent, name)))
        .collect();
    let differences = differences.join(", ");
    let (bodies, shown) = (bodies(hooks), render(store));
    Err(format!("{of_shown} of {of_sent} hooks are shown ({differences})\n{bodies}{shown}"))
}

/// Checks that the spans stay the same if hooks are shuffled, arrive in pieces, survive a restart, and (if `twice`)
/// come from two sources. Crowded sessions come from one source: if two equal commands run at once and each is reported
/// twice, nothing tells which hook is the copy.
fn on_its_way(world: &World, expected: &Store, dice: &mut Dice, twice: bool) -> Verdict {
    let mut stream: Vec<(i64, Event)> = Vec::new();
    for event in world.hooks.iter().map(normalise) {
        let delay = dice.roll(DISORDER_NS as u64) as i64;
        stream.push((event.at.0 + delay, event.clone()));
        // Both sources run for each hook, the second some milliseconds later.
        if twice && dice.roll(3) == 0 {
            let late = 5_000_000 + dice.roll(4_000_000) as i64;
            let (seq, at) = (event.seq + 1_000_000, event.at.plus(late));
            let delay = dice.roll(DISORDER_NS as u64) as i64;
            stream.push((at.0 + delay, Event { seq, at, ..event.clone() }));
        }
        // Also, a record may be read twice.
        if dice.roll(8) == 0 {
            stream.push((event.at.0 + delay, event));
        }
    }
    stream.sort_by_key(|(at, event)| (*at, event.seq));
    let events: Vec<Event> = stream.into_iter().map(|(_, event)| event).collect();
    let restart = dice.roll(events.len() as u64) as usize;
    let batch = 1 + dice.roll(20) as usize;
    let mut player = Player::new(Config::default());
    for (index, chunk) in events.chunks(batch).enumerate() {
        player.take(chunk.iter().cloned());
        let last = chunk.iter().map(|event| event.at).max().unwrap_or_default();
        player.pass(last.plus(-DISORDER_NS));
        if (index * batch..(index + 1) * batch).contains(&restart) {
            player.restart();
        }
    }
    let store = player.finish();
    sound(&store)?;
    same(expected, &store).map_err(|what| format!("on its way: {what}"))
}

/// Checks that the loss of one kind of hook causes exactly the documented degradation.
fn without(world: &World, lost: &str) -> Verdict {
    let left = world.without(lost);
    let store = fold(Config::default(), &left, 16);
    sound(&store)?;
    let score = score(&world.truth(Some(lost)), &store);
    if score.is_right() {
        return accounted(&store, &left, 0).map_err(|what| format!("without {lost}: {what}"));
    }
    Err(format!("without {lost}: {score:#?}\n{}", render(&store)))
}

/// Checks that spans stay connected if random hooks are lost.
fn some_lost(world: &World, dice: &mut Dice) -> Verdict {
    let left: Vec<Hook> = world.hooks.iter().filter(|_| dice.roll(4) > 0).cloned().collect();
    let store = fold(Config::default(), &left, 5);
    sound(&store)?;
    accounted(&store, &left, 0).map_err(|what| format!("some lost: {what}"))
}

/// Checks what must hold in every store: parents exist and cover their children, everything is final, parts add up.
fn sound(store: &Store) -> Verdict {
    store.check();
    for span in store.spans.values() {
        if !span.settled {
            return Err(format!("not final: {span:#?}"));
        }
        let late = span.attributes.iter().any(|attribute| attribute.key == "hookspan.late");
        if let Some(parent) = span.parent.and_then(|parent| store.spans.get(&parent))
            && !late
        {
            let end = |end: Option<hookspan_core::End>| end.map_or(Timestamp(i64::MAX), |e| e.at);
            // A delegation is allowed to outlive its turn.
            let outlives = parent.kind == SpanKind::Generation && is_delegation(span);
            let is_inside = outlives || end(span.end) <= end(parent.end);
            if span.start < parent.start || !is_inside {
                return Err(format!("outside its parent: {span:#?}\n{}", render(store)));
            }
        }
    }
    let mut active: BTreeMap<&str, i64> = BTreeMap::new();
    for turn in store.turns.values() {
        let length = turn.ended_at.map_or(0, |end| end.since(turn.started_at));
        let parts = turn.parts;
        if parts.total() != length || parts.named().iter().any(|(_, part)| *part < 0) {
            return Err(format!("parts of {length} ns: {:?}\n{}", turn.parts, render(store)));
        }
        *active.entry(&turn.root).or_default() += length;
    }
    for session in store.sessions.values() {
        let turns = active.get(&*session.root).copied().unwrap_or_default();
        if session.active_ns != turns {
            return Err(format!("active {} of {turns} ns", session.active_ns));
        }
        let turns: Vec<TurnSummary> =
            store.turns.values().filter(|turn| turn.root == session.root).cloned().collect();
        let SessionParts { turns: parts, idle, whole } = SessionParts::of(session, &turns);
        if parts.total() != session.active_ns || parts.total() + idle != whole || idle < 0 {
            return Err(format!("parts of a session of {whole} ns: {parts:?}, idle {idle}"));
        }
    }
    Ok(())
}

fn is_delegation(span: &Span) -> bool {
    let class = span.attributes.iter().find(|one| one.key == "hookspan.tool.class");
    span.kind == SpanKind::Subagent
        || class.is_some_and(|one| matches!(&one.value, Value::Str(class) if class == "task"))
}

fn same(expected: &Store, got: &Store) -> Verdict {
    if expected.spans == got.spans && expected.turns == got.turns {
        return Ok(());
    }
    let mut text = String::new();
    for span in expected.spans.values().filter(|span| got.spans.get(&span.id) != Some(span)) {
        text.push_str(&format!("- {span:?}\n"));
    }
    for span in got.spans.values().filter(|span| expected.spans.get(&span.id) != Some(span)) {
        text.push_str(&format!("+ {span:?}\n"));
    }
    Err(format!("{text}{}---\n{}", render(expected), render(got)))
}
