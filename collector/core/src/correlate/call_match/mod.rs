//! Decides which hooks are one call: first the generic layer by ids and inputs, then the specific layer by inputs,
//! durations and times, then the rest if nothing speaks against it.

mod generic;
mod leftover;
mod specific;

use crate::correlate::fact::Fact;
use crate::correlate::tool_call::Call;
use crate::model::time::Timestamp;

/// Maximum number of equal calls in one turn that are considered for a hook, around the hook's time.
const NEAR: usize = 512;

/// All calls among `facts`, which are in order, sorted by their first hook.
pub(crate) fn pair<'a>(facts: &[&'a Fact]) -> Vec<Call<'a>> {
    let mut calls = generic::pair(facts);
    let known = calls.len();
    specific::add(facts, &mut calls);
    specific::number(&mut calls[known..]);
    leftover::join(&mut calls, known);
    calls.iter_mut().for_each(Call::classify);
    let first = |call: &Call<'_>| call.hooks().map(|fact| fact.key()).min();
    if !calls.is_sorted_by_key(first) {
        calls.sort_by_cached_key(first);
    }
    calls
}

/// Those of the calls `equals`, which are in order, that are around the time `at`.
fn near<'b>(equals: &'b [usize], calls: &[Call<'_>], at: Timestamp) -> &'b [usize] {
    if equals.len() <= NEAR {
        return equals;
    }
    let place = equals.partition_point(|&call| calls[call].first() < at);
    &equals[place.saturating_sub(NEAR / 2)..(place + NEAR / 2).min(equals.len())]
}
